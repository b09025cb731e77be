/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/spool_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/log.h"
#include "net/bytes.h"
#include "net/ids.h"

#define FILE_BYTES ((size_t)8 << 20)
#define STEP_BYTES ((size_t)256 << 10) /* of allocation */
/*
 * A file that no frame needs is kept for so many tidies of a lane (10 ms each), to be written over. Frames are covered ten times a
 * second, all at once: to give their pages back and ask for them again cost a worker as much as all of its analysis.
 */
#define SPARE_TIDIES 100
/* Of the disk, left to the database, or a quarter of a small one: frames that filled it could never be covered. */
#define KEEP_BYTES ((uint64_t)16 << 20)

static const char magic[8] = {'M', 'R', 'S', 'P', 'O', 'O', 'L', '1'};

struct mr_spool_log {
    struct mr_spool *spool;
    struct mr_spool_file *files; /* the first is being written, or NULL */
    struct mr_spool_log *next;
};

void mr_spool_record_put(const struct mr_spool_record *record,
                         uint8_t out[MR_SPOOL_RECORD_SIZE])
{
    uint8_t *at = mr_put_u64(out, record->generation);

    at = mr_put_u32(at, record->size);
    at = mr_put_u32(at, 0);
    mr_id_put(record->sender, at);
    at = mr_put_u64(at + 16, record->epoch);
    at = mr_put_u64(at, 0);
    at = mr_put_u64(at, mr_hash64(mr_span_of(out, MR_SPOOL_RECORD_SIZE - 8)));
    MR_ASSERT(at == out + MR_SPOOL_RECORD_SIZE);
}

bool mr_spool_record_get(const uint8_t in[MR_SPOOL_RECORD_SIZE],
                         struct mr_spool_record *record)
{
    record->generation = mr_get_u64(in);
    record->size = mr_get_u32(in + 8);
    record->sender = mr_id_get(in + 16);
    record->epoch = mr_get_u64(in + 32);
    return mr_get_u64(in + 48) == mr_hash64(mr_span_of(in, MR_SPOOL_RECORD_SIZE - 8));
}

void mr_spool_file_path(const struct mr_spool *spool, uint64_t number, char *path,
                        size_t size)
{
    (void)snprintf(path, size, "%s/frames/%" PRIu64, spool->folder, number);
}

bool mr_spool_file_share(struct mr_spool_file *file, struct mr_spool_sender *sender,
                         uint64_t sequence)
{
    if (sender->log_serial == file->serial) {
        file->shares[sender->log_index].last = sequence;
        return true;
    }
    if (file->share_count == file->share_capacity) {
        uint32_t capacity = file->share_capacity ? 2 * file->share_capacity : 16;
        struct mr_spool_share *grown = realloc(file->shares, capacity * sizeof(*grown));

        if (!grown)
            return false;
        file->shares = grown;
        file->share_capacity = capacity;
    }
    sender->log_serial = file->serial;
    sender->log_index = file->share_count;
    if (file->is_old)
        sender->is_old = true;
    else
        sender->shares++;
    file->shares[file->share_count++] = (struct mr_spool_share){sender, sequence};
    return true;
}

/* The last one of the file. */
static void drop_share(struct mr_spool_file *file)
{
    struct mr_spool_sender *sender = file->shares[--file->share_count].sender;

    if (file->is_old) /* the sender is another lane's */
        return;
    if (sender->log_serial == file->serial)
        sender->log_serial = 0; /* its next frame is a share again */
    if (--sender->shares == 0 && mr_load_acquire(&sender->is_gone) && !sender->is_old)
        free(sender); /* nobody else knows it: mr_spool_forget_sender() */
}

void mr_spool_file_free(struct mr_spool *spool, struct mr_spool_file *file, bool unlinks)
{
    char path[512];

    while (file->share_count > 0)
        drop_share(file);

    if (file->fd >= 0)
        (void)close(file->fd);
    mr_spool_file_path(spool, file->number, path, sizeof(path));
    if (unlinks)
        (void)unlink(path); /* one that stays holds nothing that is needed */
    mr_add_relaxed(&spool->frame_bytes, (uint64_t) - (int64_t)file->allocated);
    free(file->shares);
    free(file);
}

struct mr_spool_log *mr_spool_log_new(struct mr_spool *spool)
{
    struct mr_spool_log *log = calloc(1, sizeof(*log));

    if (!log)
        return NULL;
    log->spool = spool;
    pthread_mutex_lock(&spool->lock);
    if (spool->old) { /* whose frames are on their way again */
        log->files = calloc(1, sizeof(*log->files));
        if (log->files) {
            *log->files =
                (struct mr_spool_file){.fd = -1, .is_old = true, .next = spool->old};
            spool->old = NULL;
        }
    }
    log->next = spool->logs;
    spool->logs = log;
    pthread_mutex_unlock(&spool->lock);
    return log;
}

static bool is_needed(const struct mr_spool_share *share)
{
    const struct mr_spool_sender *sender = share->sender;
    uint64_t limit = mr_load_acquire(&sender->limit);
    uint64_t last = share->last < limit ? share->last : limit;

    return !mr_load_acquire(&sender->is_gone) && !mr_spool_covers(sender, last);
}

/* Forgets shares from the end on; what is left at the end is needed. */
static bool is_free(struct mr_spool_file *file)
{
    while (file->share_count > 0) {
        if (is_needed(&file->shares[file->share_count - 1]))
            return false;
        drop_share(file);
    }
    return true;
}

/* What nobody needs goes: in /dev/shm it is RAM, and the worker may never come back. */
static void free_log(struct mr_spool_log *log)
{
    while (log->files) {
        struct mr_spool_file *file = log->files;

        log->files = file->next;
        mr_spool_file_free(log->spool, file, is_free(file));
    }
    free(log);
}

void mr_spool_logs_free(struct mr_spool *spool)
{
    while (spool->logs) {
        struct mr_spool_log *log = spool->logs;

        spool->logs = log->next;
        free_log(log);
    }
}

/* A new content begins, over the old one. */
static enum mr_status begin(struct mr_spool_log *log, struct mr_spool_file *file)
{
    uint8_t head[MR_SPOOL_FILE_HEAD];

    file->generation++;
    file->serial = mr_add_relaxed(&log->spool->next_serial, 1) + 1;
    file->share_count = 0;
    memcpy(head, magic, sizeof(magic));
    mr_put_u64(head + sizeof(magic), file->generation);
    file->size = sizeof(head);
    return pwrite(file->fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) ? MR_OK
                                                                            : MR_EIO;
}

/* A shares' index points into its file as long as that has not begun anew; then the sender's is old, too. */
static enum mr_status add_file(struct mr_spool_log *log)
{
    struct mr_spool_file *file = calloc(1, sizeof(*file));
    char path[512];

    if (!file)
        return MR_ELIMIT;
    file->number = mr_add_relaxed(&log->spool->next_number, 1);
    mr_spool_file_path(log->spool, file->number, path, sizeof(path));
    file->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file->fd < 0) {
        free(file);
        return MR_ELIMIT;
    }
    file->next = log->files;
    log->files = file;
    return MR_OK;
}

static bool leaves_room(const struct mr_spool_file *file, size_t more)
{
    struct statvfs about;
    uint64_t keep;

    if (fstatvfs(file->fd, &about) != 0)
        return true; /* the allocation will tell */
    keep = (uint64_t)about.f_blocks * about.f_frsize / 4;
    if (keep > KEEP_BYTES)
        keep = KEEP_BYTES;
    return (uint64_t)about.f_bavail * about.f_frsize >= keep + more;
}

/* On the disk, so that a write cannot fail for want of room. */
static enum mr_status allocate(struct mr_spool_log *log, struct mr_spool_file *file,
                               size_t end)
{
    size_t wanted = (end + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
    size_t more = wanted > file->allocated ? wanted - file->allocated : 0;

    if (more == 0)
        return MR_OK;
    if (mr_load_relaxed(&log->spool->frame_bytes) + more >
        log->spool->config.bytes_max / 2)
        return MR_ELIMIT;
    if (!leaves_room(file, more) ||
        posix_fallocate(file->fd, (off_t)file->allocated, (off_t)more) != 0)
        return MR_ELIMIT;
    file->allocated = wanted;
    mr_add_relaxed(&log->spool->frame_bytes, more);
    return MR_OK;
}

/* The file that is being written, where nothing of it is needed. */
static void begin_anew(struct mr_spool_log *log)
{
    struct mr_spool_file *file = log->files;

    if (file && file->fd >= 0 && file->size > MR_SPOOL_FILE_HEAD && is_free(file) &&
        begin(log, file) != MR_OK)
        mr_log_error("%s: cannot write", log->spool->folder);
}

static bool fits(const struct mr_spool_file *file, size_t size)
{
    return file && file->fd >= 0 && file->size > 0 &&
           (file->size == MR_SPOOL_FILE_HEAD || file->size + size <= FILE_BYTES);
}

/* One that is kept for it, to be written over: its pages are there already. */
static bool take_spare(struct mr_spool_log *log)
{
    struct mr_spool_file **at = log->files ? &log->files->next : &log->files;

    for (; *at; at = &(*at)->next) {
        struct mr_spool_file *file = *at;

        if (file->is_old || !is_free(file))
            continue;
        *at = file->next;
        file->next = log->files;
        file->unused = 0;
        log->files = file;
        return true;
    }
    return false;
}

enum mr_status mr_spool_log_reserve(struct mr_spool_log *log, size_t size)
{
    enum mr_status status = MR_OK;

    size += MR_SPOOL_RECORD_SIZE;
    if (fits(log->files, size) &&
        allocate(log, log->files, log->files->size + size) == MR_OK)
        return MR_OK;
    begin_anew(log);
    if (fits(log->files, size))
        return allocate(log, log->files, log->files->size + size);
    if (!log->files || log->files->fd < 0 || log->files->size > MR_SPOOL_FILE_HEAD)
        status = take_spare(log) ? MR_OK : add_file(log);
    if (status == MR_OK)
        status = allocate(log, log->files, MR_SPOOL_FILE_HEAD + size);
    if (status == MR_OK && begin(log, log->files) != MR_OK)
        status = MR_ELIMIT;
    return status;
}

enum mr_status mr_spool_log_append(struct mr_spool_log *log,
                                   struct mr_spool_sender *sender, uint64_t epoch,
                                   uint64_t sequence, struct mr_span frame)
{
    struct mr_spool_file *file = log->files;
    const struct mr_spool_record record = {.generation = file->generation,
                                           .epoch = epoch,
                                           .sender = sender->id,
                                           .size = (uint32_t)frame.size};
    uint8_t head[MR_SPOOL_RECORD_SIZE];
    struct iovec parts[2] = {{.iov_base = head, .iov_len = sizeof(head)},
                             {.iov_len = frame.size}};
    ssize_t size = (ssize_t)(sizeof(head) + frame.size);

    MR_ASSERT(file->size + (size_t)size <= file->allocated);
    memcpy(&parts[1].iov_base, &frame.data, sizeof(frame.data)); /* it is only read */
    mr_spool_record_put(&record, head);
    if (!mr_spool_file_share(file, sender, sequence))
        return MR_ENOMEM;
    if (pwritev(file->fd, parts, 2, (off_t)file->size) != size)
        return MR_EIO;
    file->size += (size_t)size;
    return MR_OK;
}

void mr_spool_log_tidy(struct mr_spool_log *log)
{
    struct mr_spool_file **at = log->files ? &log->files->next : &log->files;

    begin_anew(log);
    while (*at) {
        struct mr_spool_file *file = *at;
        bool is_spare = is_free(file);

        file->unused = is_spare ? file->unused + 1 : 0;
        if (!is_spare || (!file->is_old && file->unused <= SPARE_TIDIES)) {
            at = &file->next;
            continue;
        }
        *at = file->next;
        mr_spool_file_free(log->spool, file, true);
    }
}
