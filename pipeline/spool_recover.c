/* SPDX-License-Identifier: Apache-2.0 */
/* What an earlier process has left. Nothing of it is trusted: what is not sound is passed over, and said in the log. */
#include "pipeline/spool_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "net/bytes.h"
#include "net/frame.h"

#define MAX_FRAME (64u << 20)

/* A frame that was found. */
struct found_frame {
    struct mr_spool_sender *sender;
    uint64_t epoch, sequence;
    struct mr_span bytes; /* in a map */
};

struct map {
    void *data;
    size_t size;
    struct map *next;
};

struct recovery {
    struct mr_spool *spool;
    struct map *maps;
    struct found_frame *frames;
    size_t frame_count, frame_capacity;
    struct mr_table used_sites; /* by open calls */
    bool knows_used;            /* all of them */
    struct mr_error *error;
};

static bool add_frame(struct recovery *recovery, const struct found_frame *frame)
{
    if (recovery->frame_count == recovery->frame_capacity) {
        size_t capacity = recovery->frame_capacity ? 2 * recovery->frame_capacity : 1024;
        struct found_frame *grown = realloc(recovery->frames, capacity * sizeof(*grown));

        if (!grown)
            return false;
        recovery->frames = grown;
        recovery->frame_capacity = capacity;
    }
    recovery->frames[recovery->frame_count++] = *frame;
    return true;
}

/* The records of a file's last generation. */
static bool read_records(struct recovery *recovery, struct mr_spool_file *file,
                         struct mr_span rest)
{
    struct mr_spool_record record;
    struct mr_span head, bytes;

    while (mr_span_take(&rest, MR_SPOOL_RECORD_SIZE, &head) &&
           mr_spool_record_get(head.data, &record) &&
           record.generation == file->generation &&
           mr_span_take(&rest, record.size, &bytes)) {
        struct found_frame found = {.epoch = record.epoch, .bytes = bytes};
        struct mr_span one = bytes;
        struct mr_frame frame;
        struct mr_error why = MR_ERROR_NONE;
        size_t need;

        if (mr_frame_take(&one, MAX_FRAME, &frame, &need, &why) != MR_OK ||
            one.size != 0) {
            mr_log_warn(
                "%s/frames/%" PRIu64 ": a frame is not whole: it was being written when "
                "the worker was killed, or it is damaged; nothing behind it is used",
                recovery->spool->folder, file->number);
            return true;
        }
        found.sequence = frame.sequence;
        found.sender = mr_spool_find_or_add(recovery->spool, record.sender);
        if (!found.sender || !add_frame(recovery, &found) ||
            !mr_spool_file_share(file, found.sender, found.sequence))
            return false;
    }
    return true;
}

static const char magic[8] = {'M', 'R', 'S', 'P', 'O', 'O', 'L', '1'};

/* False: no memory. What is no file of frames holds nothing. */
static bool read_file(struct recovery *recovery, struct mr_spool_file *file)
{
    struct map *map;
    struct stat about;
    struct mr_span bytes, head = {0};
    char path[512];

    mr_spool_file_path(recovery->spool, file->number, path, sizeof(path));
    file->fd = open(path, O_RDWR | O_CLOEXEC);
    if (file->fd < 0 || fstat(file->fd, &about) != 0 ||
        about.st_size < (off_t)MR_SPOOL_FILE_HEAD)
        return true;
    file->allocated = (size_t)about.st_size;
    mr_add_relaxed(&recovery->spool->frame_bytes, file->allocated);
    map = malloc(sizeof(*map));
    if (!map)
        return false;
    map->size = (size_t)about.st_size;
    map->data = mmap(NULL, map->size, PROT_READ, MAP_PRIVATE, file->fd, 0);
    if (map->data == MAP_FAILED) {
        free(map);
        return false;
    }
    map->next = recovery->maps;
    recovery->maps = map;
    bytes = mr_span_of(map->data, map->size);
    (void)mr_span_take(&bytes, MR_SPOOL_FILE_HEAD, &head);
    if (memcmp(head.data, magic, sizeof(magic)) != 0)
        return true;
    file->generation = mr_get_u64(head.data + sizeof(magic));
    file->size = file->allocated; /* nothing is appended to it */
    return read_records(recovery, file, bytes);
}

static bool add_old_file(struct recovery *recovery, const char *name)
{
    struct mr_spool *spool = recovery->spool;
    struct mr_spool_file *file;
    char *end;
    uint64_t number = strtoull(name, &end, 10);

    if (*name < '0' || *name > '9' || *end || number == UINT64_MAX)
        return true;
    file = calloc(1, sizeof(*file));
    if (!file)
        return false;
    *file = (struct mr_spool_file){.number = number,
                                   .is_old = true,
                                   .fd = -1,
                                   .serial = mr_add_relaxed(&spool->next_serial, 1) + 1,
                                   .next = spool->old};
    spool->old = file;
    if (number >= mr_load_relaxed(&spool->next_number))
        mr_store_relaxed(&spool->next_number, number + 1); /* one thread as yet */
    return read_file(recovery, file);
}

static enum mr_status read_files(struct recovery *recovery)
{
    char path[512];
    struct dirent *entry;
    bool has_memory = true;
    DIR *folder;

    (void)snprintf(path, sizeof(path), "%s/frames", recovery->spool->folder);
    folder = opendir(path);
    if (!folder)
        return mr_error_set_errno(recovery->error, MR_EIO, errno, "--spool: %s", path);
    while (has_memory && (entry = readdir(folder))) /* the only thread */
        has_memory = add_old_file(recovery, entry->d_name);
    (void)closedir(folder);
    return has_memory ? MR_OK
                      : mr_error_set(recovery->error, MR_ENOMEM, "--spool: no memory");
}

static int compare_frames(const void *a, const void *b)
{
    const struct found_frame *x = a, *y = b;
    int order = mr_id_compare(x->sender->id, y->sender->id);

    if (order == 0)
        order = (x->epoch > y->epoch) - (x->epoch < y->epoch);
    return order ? order : (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* The first frame of the sender's epoch. */
static size_t find_frames(const struct recovery *recovery, struct mr_spool_sender *sender,
                          uint64_t epoch)
{
    const struct found_frame key = {.sender = sender, .epoch = epoch};
    size_t low = 0, high = recovery->frame_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (compare_frames(&recovery->frames[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The frames from the first that is not covered on, as far as they follow each other. */
static enum mr_status take_frames(struct recovery *recovery, struct mr_spool_found *found)
{
    struct mr_custody *custody = &found->position.custody;
    uint64_t last = custody->state == MR_CUSTODY_CLOSED ? custody->settled : UINT64_MAX;
    uint64_t next = mr_load_relaxed(&found->sender->covered) + 1; /* one thread as yet */
    size_t at = find_frames(recovery, found->sender, custody->epoch);
    enum mr_status status = MR_OK;

    for (; status == MR_OK && at < recovery->frame_count; at++) {
        const struct found_frame *frame = &recovery->frames[at];

        if (frame->sender != found->sender || frame->epoch != custody->epoch ||
            frame->sequence > last)
            break;
        if (frame->sequence < next)
            continue;
        if (frame->sequence > next) {
            mr_log_error("--spool %s: frames %" PRIu64 " to %" PRIu64
                         " of a sender are missing; those behind them are not used",
                         recovery->spool->folder, next, frame->sequence - 1);
            break;
        }
        status = mr_buffer_append(&found->frames, frame->bytes.data, frame->bytes.size);
        next++;
    }
    custody->taken = next - 1;
    return status;
}

static enum mr_status take_dicts(struct recovery *recovery, struct mr_spool_found *found)
{
    struct mr_sql sql;
    enum mr_status status = mr_sql_prepare(
        recovery->spool->db,
        "SELECT payload FROM dict WHERE sender = ? AND serial = ? AND sequence <= ? "
        "ORDER BY number",
        &sql, recovery->error);

    if (status != MR_OK)
        return status;
    mr_sql_id(&sql, found->sender->id);
    mr_sql_u64(&sql, found->position.serial);
    mr_sql_u64(&sql, mr_load_relaxed(&found->sender->covered)); /* one thread as yet */
    while ((status = mr_sql_row(&sql, recovery->error)) == MR_OK) {
        struct mr_span payload = mr_sql_get_blob(&sql);
        struct mr_buffer *grown =
            realloc(found->dicts, (found->dict_count + 1) * sizeof(*found->dicts));

        if (!grown)
            break;
        found->dicts = grown;
        mr_buffer_init(&found->dicts[found->dict_count++], MAX_FRAME);
        status = mr_buffer_append(&found->dicts[found->dict_count - 1], payload.data,
                                  payload.size);
        if (status != MR_OK)
            break;
    }
    mr_sql_finish(&sql);
    return status == MR_END ? MR_OK : MR_ENOMEM;
}

static enum mr_status take_source(struct recovery *recovery, struct mr_spool_found *found)
{
    struct mr_sql sql;
    enum mr_status status = mr_sql_prepare(
        recovery->spool->db, "SELECT state FROM source WHERE sender = ? AND serial = ?",
        &sql, recovery->error);

    if (status != MR_OK)
        return status;
    mr_sql_id(&sql, found->sender->id);
    mr_sql_u64(&sql, found->position.serial);
    status = mr_sql_row(&sql, recovery->error);
    if (status == MR_OK) {
        found->resume = mr_resume_new(&recovery->spool->sites);
        status = found->resume
                     ? mr_resume_set_source(found->resume, mr_sql_get_blob(&sql))
                     : MR_ENOMEM;
    }
    mr_sql_finish(&sql);
    if (status != MR_EFORMAT || !found->resume)
        return status == MR_END ? MR_OK : status;
    mr_resume_free(found->resume);
    found->resume = NULL;
    mr_log_error("--spool %s: where a source stands is damaged: it begins anew",
                 recovery->spool->folder);
    return MR_OK;
}

static void use_sites(struct recovery *recovery, const struct mr_resume_stream *stream)
{
    for (uint32_t i = 0; i < stream->depth; i++)
        if (mr_table_put(&recovery->used_sites, stream->calls[i].site_id, 0) != MR_OK)
            recovery->knows_used = false;
}

static enum mr_status take_streams(struct recovery *recovery,
                                   struct mr_spool_found *found)
{
    struct mr_sql sql;
    enum mr_status status =
        mr_sql_prepare(recovery->spool->db,
                       "SELECT stream, state FROM stream WHERE sender = ? AND serial = ?",
                       &sql, recovery->error);

    if (status != MR_OK)
        return status;
    mr_sql_id(&sql, found->sender->id);
    mr_sql_u64(&sql, found->position.serial);
    while ((status = mr_sql_row(&sql, recovery->error)) == MR_OK) {
        uint32_t stream = (uint32_t)mr_sql_get_u64(&sql);

        status = mr_resume_add_stream(found->resume, stream, mr_sql_get_blob(&sql));
        if (status == MR_OK)
            use_sites(recovery, &found->resume->streams[found->resume->stream_count - 1]);
        if (status == MR_EFORMAT)
            mr_log_error("--spool %s: where stream %" PRIu32
                         " stands is damaged: it begins anew",
                         recovery->spool->folder, stream);
        else if (status != MR_OK)
            break;
    }
    mr_sql_finish(&sql);
    return status == MR_END ? MR_OK : status;
}

static enum mr_status take_sites(struct recovery *recovery)
{
    struct mr_sql sql;
    enum mr_status status = mr_sql_prepare(
        recovery->spool->db, "SELECT id, item FROM site", &sql, recovery->error);

    while (status == MR_OK && (status = mr_sql_row(&sql, recovery->error)) == MR_OK) {
        struct mr_id id = mr_sql_get_id(&sql);

        (void)mr_resume_sites_add(&recovery->spool->sites, id, mr_sql_get_blob(&sql));
    }
    mr_sql_finish(&sql);
    return status == MR_END ? MR_OK : status;
}

static enum mr_status drop_site(struct recovery *recovery, struct mr_id id,
                                struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status =
        mr_sql_prepare(recovery->spool->db, "DELETE FROM site WHERE id = ?", &sql, error);

    if (status != MR_OK)
        return status;
    mr_sql_id(&sql, id);
    status = mr_sql_run(&sql, error);
    mr_sql_finish(&sql);
    return status;
}

static enum mr_status drop_unused(struct recovery *recovery, struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status =
        mr_sql_prepare(recovery->spool->db, "SELECT id FROM site", &sql, error);

    while (status == MR_OK && (status = mr_sql_row(&sql, error)) == MR_OK) {
        struct mr_id id = mr_sql_get_id(&sql);

        if (mr_table_find(&recovery->used_sites, id) == MR_TABLE_NONE)
            status = drop_site(recovery, id, error); /* SQLite allows it of this row */
    }
    mr_sql_finish(&sql);
    return status == MR_END ? MR_OK : status;
}

/* Sites that no open call needs: the lanes begin anew, and tell those that they will need. Where there is no room, the next start does it. */
static void prune_sites(struct recovery *recovery)
{
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status;

    if (!recovery->knows_used)
        return;
    status = mr_spool_begin(recovery->spool, &error);
    if (status == MR_OK)
        status = mr_spool_end(recovery->spool, drop_unused(recovery, &error), &error);
    if (status != MR_OK)
        mr_log_warn("--spool %s: sites of the past stay in it: %s",
                    recovery->spool->folder, error.text);
}

static bool read_position(struct mr_sql *sql, struct mr_spool_position *position)
{
    uint64_t state;

    position->custody.epoch = mr_sql_get_u64(sql);
    state = mr_sql_get_u64(sql);
    position->custody.settled = mr_sql_get_u64(sql);
    position->custody.attempt = mr_sql_get_u64(sql);
    position->serial = (uint32_t)mr_sql_get_u64(sql);
    position->has_left = mr_sql_get_u64(sql) != 0;
    position->bye_reason = (uint8_t)mr_sql_get_u64(sql);
    position->custody.state = (enum mr_custody_state)state;
    if (position->custody.state == MR_CUSTODY_OPEN)
        position->custody.state = MR_CUSTODY_BROKEN;
    return state <= MR_CUSTODY_CLOSED;
}

static void give_back(struct mr_spool_found *found)
{
    mr_buffer_fini(&found->frames);
    mr_resume_free(found->resume);
    for (uint32_t i = 0; i < found->dict_count; i++)
        mr_buffer_fini(&found->dicts[i]);
    free(found->dicts);
}

/* What is settled may be more than was written: what is covered was. */
static void settle(struct mr_spool_found *found)
{
    struct mr_custody *custody = &found->position.custody;
    uint64_t covered = mr_load_relaxed(&found->sender->covered); /* one thread as yet */

    if (custody->state == MR_CUSTODY_CLOSED)
        custody->settled = custody->taken;
    else
        custody->settled = covered;
}

static enum mr_status take_sender(struct recovery *recovery, struct mr_sql *sql,
                                  enum mr_status (*take)(void *context,
                                                         struct mr_spool_found *found),
                                  void *context)
{
    struct mr_spool_found found = {0};
    enum mr_status status = MR_OK;
    struct mr_id id = mr_sql_get_id(sql);
    bool is_sound = read_position(sql, &found.position) && !mr_id_is_zero(id);
    uint64_t covered = mr_sql_get_u64(sql);

    found.hello = mr_sql_get_blob(sql);
    if (!is_sound)
        return MR_OK;
    mr_buffer_init(&found.frames, SIZE_MAX);
    found.sender = mr_spool_find_or_add(recovery->spool, id);
    if (!found.sender)
        return mr_error_set(recovery->error, MR_ENOMEM, "--spool: no memory");
    mr_store_release(&found.sender->covered, covered);
    status = take_frames(recovery, &found);
    settle(&found);
    if (status == MR_OK)
        status = mr_spool_dict_recover(recovery->spool, found.sender,
                                       found.position.serial, recovery->error);
    if (status == MR_OK && found.position.serial)
        status = take_dicts(recovery, &found);
    if (status == MR_OK && found.position.serial)
        status = take_source(recovery, &found);
    if (status == MR_OK && found.resume)
        status = take_streams(recovery, &found);
    if (status == MR_OK)
        status = take(context, &found);
    give_back(&found);
    return status;
}

static enum mr_status take_senders(struct recovery *recovery,
                                   enum mr_status (*take)(void *context,
                                                          struct mr_spool_found *found),
                                   void *context)
{
    struct mr_sql sql;
    enum mr_status status =
        mr_sql_prepare(recovery->spool->db,
                       "SELECT id, epoch, state, settled, attempt, serial, has_left, bye,"
                       " covered, hello FROM sender",
                       &sql, recovery->error);

    while (status == MR_OK && (status = mr_sql_row(&sql, recovery->error)) == MR_OK)
        status = take_sender(recovery, &sql, take, context);
    mr_sql_finish(&sql);
    return status == MR_END ? MR_OK : status;
}

enum mr_status mr_spool_recover(struct mr_spool *spool,
                                enum mr_status (*take)(void *context,
                                                       struct mr_spool_found *found),
                                void *context, struct mr_error *error)
{
    struct recovery recovery = {.spool = spool, .knows_used = true, .error = error};
    enum mr_status status;

    mr_table_init(&recovery.used_sites, MR_TABLE_COUNT_MAX);
    status = read_files(&recovery);
    if (recovery.frame_count)
        qsort(recovery.frames, recovery.frame_count, sizeof(*recovery.frames),
              compare_frames);
    if (status == MR_OK)
        status = take_sites(&recovery);
    if (status == MR_OK)
        status = take_senders(&recovery, take, context);
    if (status == MR_OK)
        prune_sites(&recovery);
    mr_table_fini(&recovery.used_sites);
    while (recovery.maps) {
        struct map *map = recovery.maps;

        recovery.maps = map->next;
        (void)munmap(map->data, map->size);
        free(map);
    }
    for (uint32_t i = 0; i < spool->sender_count; i++)
        spool->senders[i]->log_serial = 0; /* what comes goes to other files */
    free(recovery.frames);
    if (status != MR_OK && error->status == MR_OK)
        (void)mr_error_set(error, status, "--spool %s: %s", spool->folder,
                           mr_status_text(status));
    return status;
}
