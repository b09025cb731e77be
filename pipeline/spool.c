/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field               written by        read by     access
 * sender.covered      forward (commit)  its lane    release store [S], acquire load [C] in spool_log.c and mr_spool_covers()
 * sender.over         forward (commit)  its lane    the same
 * sender.is_gone      its lane          its lane, the first log's lane   release, acquire
 * sender.limit        its lane          its lane, the first log's lane   release, acquire
 * sender.serial, log_*, shares   its lane alone (and who recovers, before there are lanes)
 * sender.dict_*, old_dict_bytes, the database   any   any   under `lock`
 * Pairs: [S]-[C] the transaction before the number. Progress: a small transaction at most.
 */
#include "pipeline/spool_private.h"

#include <stdlib.h>

#include "base/assert.h"
#include "pipeline/mark.h"
#include "pipeline/resume.h"

/* What a HELLO of an earlier process has shown at most: it opened fewer connections than this between two transactions. */
#define ATTEMPT_STEP (UINT64_C(1) << 32)

struct mr_id mr_spool_self(const struct mr_spool *spool)
{
    return spool->self;
}

const char *mr_spool_folder(const struct mr_spool *spool)
{
    return spool->folder;
}

struct mr_spool_sender *mr_spool_find_or_add(struct mr_spool *spool, struct mr_id id)
{
    struct mr_spool_sender *made;
    uint32_t index = mr_table_find(&spool->ids, id);

    if (index != MR_TABLE_NONE)
        return spool->senders[index];
    if (spool->sender_count == spool->sender_capacity) {
        uint32_t capacity = spool->sender_capacity ? 2 * spool->sender_capacity : 64;
        struct mr_spool_sender **grown =
            realloc(spool->senders, capacity * sizeof(struct mr_spool_sender *));

        if (!grown)
            return NULL;
        spool->senders = grown;
        spool->sender_capacity = capacity;
    }
    made = calloc(1, sizeof(*made));
    if (!made || mr_table_put(&spool->ids, id, spool->sender_count) != MR_OK) {
        free(made);
        return NULL;
    }
    made->id = id;
    mr_store_relaxed(&made->limit, UINT64_MAX); /* nobody else has it yet */
    spool->senders[spool->sender_count++] = made;
    return made;
}

struct mr_spool_sender *mr_spool_sender(struct mr_spool *spool, struct mr_id id)
{
    struct mr_spool_sender *sender;

    pthread_mutex_lock(&spool->lock);
    sender = mr_spool_find_or_add(spool, id);
    pthread_mutex_unlock(&spool->lock);
    return sender;
}

static void bind_position(struct mr_sql *sql, const struct mr_spool_position *position)
{
    mr_sql_u64(sql, position->custody.epoch);
    mr_sql_u64(sql, (uint64_t)position->custody.state);
    mr_sql_u64(sql, position->custody.settled);
    mr_sql_u64(sql, position->custody.attempt);
    mr_sql_u64(sql, position->has_left);
    mr_sql_u64(sql, position->bye_reason);
}

/* What found no room once may find it in the reserve. */
static enum mr_status finish(struct mr_spool *spool, struct mr_sql *sql,
                             enum mr_status status, struct mr_error *error)
{
    int code = sqlite3_errcode(spool->db);

    mr_sql_finish(sql);
    if (status == MR_OK)
        return MR_OK;
    if (code == SQLITE_FULL || (code & 0xff) == SQLITE_IOERR) {
        (void)mr_spool_give_reserve(spool);
        return mr_error_set(error, MR_ELIMIT,
                            "--spool %s: the spool, or its disk, is full", spool->folder);
    }
    return status;
}

enum mr_status mr_spool_put_sender(struct mr_spool *spool, struct mr_spool_sender *sender,
                                   const struct mr_spool_position *position,
                                   struct mr_span hello, bool begins,
                                   struct mr_error *error)
{
    uint64_t covered =
        begins ? position->custody.settled : mr_load_acquire(&sender->covered); /* [C] */
    struct mr_sql sql;
    enum mr_status status;

    pthread_mutex_lock(&spool->lock);
    status =
        mr_sql_prepare(spool->db,
                       "INSERT INTO sender(id, epoch, state, settled, attempt, has_left, "
                       "bye, serial, covered, hello) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                       " ON CONFLICT(id) DO UPDATE SET epoch = excluded.epoch, state = "
                       "excluded.state, settled = excluded.settled, attempt = "
                       "excluded.attempt, serial = excluded.serial, has_left = "
                       "excluded.has_left, bye = excluded.bye, covered = "
                       "max(covered, excluded.covered), hello = excluded.hello",
                       &sql, error);
    if (status == MR_OK) {
        mr_sql_id(&sql, sender->id);
        bind_position(&sql, position);
        mr_sql_u64(&sql, position->serial);
        mr_sql_u64(&sql, covered);
        mr_sql_blob(&sql, hello);
        status = mr_sql_run(&sql, error);
    }
    status = finish(spool, &sql, status, error);
    if (status == MR_OK && begins) {
        mr_store_release(&sender->limit, UINT64_MAX);
        if (covered > mr_load_relaxed(&sender->covered)) /* under the lock, as a commit */
            mr_store_release(&sender->covered, covered); /* [S] */
    }
    if (status == MR_OK)
        mr_store_release(&sender->is_gone, false);
    pthread_mutex_unlock(&spool->lock);
    return status;
}

enum mr_status mr_spool_move_sender(struct mr_spool *spool,
                                    const struct mr_spool_sender *sender,
                                    const struct mr_spool_position *position,
                                    struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status;

    pthread_mutex_lock(&spool->lock);
    status =
        mr_sql_prepare(spool->db,
                       "UPDATE sender SET epoch = ?, state = ?, settled = ?, attempt = "
                       "?, has_left = ?, bye = ? WHERE id = ?",
                       &sql, error);
    if (status == MR_OK) {
        bind_position(&sql, position);
        mr_sql_id(&sql, sender->id);
        status = mr_sql_run(&sql, error);
    }
    status = finish(spool, &sql, status, error);
    pthread_mutex_unlock(&spool->lock);
    return status;
}

/* With the lock held. */
static enum mr_status run_of(struct mr_spool *spool, const char *text, struct mr_id id,
                             uint32_t serial, struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status = mr_sql_prepare(spool->db, text, &sql, error);

    if (status == MR_OK) {
        mr_sql_id(&sql, id);
        mr_sql_u64(&sql, serial);
        status = mr_sql_run(&sql, error);
    }
    return finish(spool, &sql, status, error);
}

/* The last one takes its place. It stays only for the files that have shares of it, which free it with the last. */
static void take_out(struct mr_spool *spool, struct mr_spool_sender *sender)
{
    uint32_t index = mr_table_find(&spool->ids, sender->id);
    struct mr_spool_sender *last = spool->senders[spool->sender_count - 1];

    MR_ASSERT(index != MR_TABLE_NONE && spool->senders[index] == sender);
    (void)mr_table_remove(&spool->ids, sender->id);
    if (last != sender)
        (void)mr_table_put(&spool->ids, last->id, index); /* it is there: no memory */
    spool->senders[index] = last;
    spool->sender_count--;
    if (sender->shares == 0)
        free(sender);
}

enum mr_status mr_spool_forget_sender(struct mr_spool *spool,
                                      struct mr_spool_sender *sender,
                                      struct mr_error *error)
{
    enum mr_status status;

    pthread_mutex_lock(&spool->lock);
    status = run_of(spool, "DELETE FROM sender WHERE id = ? AND serial <= ?", sender->id,
                    UINT32_MAX, error);
    if (status == MR_OK)
        mr_store_release(&sender->is_gone, true);
    if (status == MR_OK && !sender->is_old)
        take_out(spool, sender);
    pthread_mutex_unlock(&spool->lock);
    return status;
}

/* All of it may have been sent. */
static enum mr_status get_outbox(struct mr_spool *spool, struct mr_spool_upward *upward,
                                 struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status = mr_sql_prepare(
        spool->db, "SELECT count(*), max(sequence), sum(length(payload)) FROM outbox",
        &sql, error);

    if (status == MR_OK)
        status = mr_sql_row(&sql, error);
    if (status == MR_OK) {
        upward->frame_count = mr_sql_get_u64(&sql);
        upward->custody.sent = mr_sql_get_u64(&sql);
        upward->frame_bytes = mr_sql_get_u64(&sql);
    }
    mr_sql_finish(&sql);
    if (upward->custody.sent < upward->custody.acked)
        upward->custody.sent = upward->custody.acked;
    return status;
}

enum mr_status mr_spool_get_upward(struct mr_spool *spool, struct mr_spool_upward *upward,
                                   struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status;

    *upward = (struct mr_spool_upward){.custody = {.is_told = true}};
    pthread_mutex_lock(&spool->lock);
    status = mr_sql_prepare(
        spool->db, "SELECT custodian, epoch, attempt, acked FROM upward", &sql, error);
    if (status == MR_OK)
        status = mr_sql_row(&sql, error);
    if (status == MR_OK) {
        upward->custody.custodian = mr_sql_get_id(&sql);
        upward->custody.epoch = mr_sql_get_u64(&sql);
        upward->custody.attempt = mr_sql_get_u64(&sql) + ATTEMPT_STEP;
        upward->custody.acked = mr_sql_get_u64(&sql);
        upward->custody.was_shown = upward->custody.epoch > 0;
    }
    mr_sql_finish(&sql);
    if (status == MR_OK || status == MR_END)
        status = get_outbox(spool, upward, error);
    pthread_mutex_unlock(&spool->lock);
    return status;
}

enum mr_status mr_spool_each_frame(
    struct mr_spool *spool,
    enum mr_status (*take)(void *context, const struct mr_spool_frame *frame),
    void *context, struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status;

    pthread_mutex_lock(&spool->lock);
    status = mr_sql_prepare(
        spool->db, "SELECT sequence, type, payload FROM outbox ORDER BY sequence", &sql,
        error);
    while (status == MR_OK && (status = mr_sql_row(&sql, error)) == MR_OK) {
        struct mr_spool_frame frame = {.sequence = mr_sql_get_u64(&sql)};

        frame.type = (uint8_t)mr_sql_get_u64(&sql);
        frame.payload = mr_sql_get_blob(&sql);
        status = take(context, &frame);
    }
    mr_sql_finish(&sql);
    pthread_mutex_unlock(&spool->lock);
    return status == MR_END ? MR_OK : status;
}

static enum mr_status put_frames(struct mr_spool *spool, uint64_t sequence,
                                 const struct mr_batch *frames, struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status =
        mr_sql_prepare(spool->db, "INSERT INTO outbox VALUES(?, ?, ?)", &sql, error);

    for (; status == MR_OK && frames; frames = frames->next) {
        mr_sql_u64(&sql, sequence++);
        mr_sql_u64(&sql, frames->kind == MR_BATCH_DICT ? MR_FRAME_DICT : MR_FRAME_DELTA);
        mr_sql_blob(&sql, mr_span_of(frames->bytes.data, frames->bytes.size));
        status = mr_sql_run(&sql, error);
    }
    mr_sql_finish(&sql);
    return status;
}

#define WRITERS_MAX 5
/* Statements for a kind of entry; which of its values it takes, in this order. */
static const struct {
    const char *text;
    bool has_id, has_stream, has_serial, has_sequence, has_bytes;
} writers[][WRITERS_MAX] = {
    [MR_MARK_COVER] = {{"UPDATE sender SET covered = max(covered, ?2) WHERE id = ?1",
                        .has_id = true, .has_sequence = true}},
    [MR_MARK_SOURCE] = {{"REPLACE INTO source VALUES(?, ?, ?)", .has_id = true,
                         .has_serial = true, .has_bytes = true}},
    [MR_MARK_SOURCE_END] = {{"UPDATE sender SET serial = 0 WHERE id = ? AND serial <= ?",
                             .has_id = true, .has_serial = true},
                            {"DELETE FROM source WHERE sender = ? AND serial <= ?",
                             .has_id = true, .has_serial = true},
                            {"DELETE FROM stream WHERE sender = ? AND serial <= ?",
                             .has_id = true, .has_serial = true},
                            {"DELETE FROM dict WHERE sender = ? AND serial <= ?",
                             .has_id = true, .has_serial = true},
                            {"DELETE FROM told WHERE sender = ? AND serial <= ?",
                             .has_id = true, .has_serial = true}},
    [MR_MARK_STREAM] = {{"REPLACE INTO stream VALUES(?, ?, ?, ?)", .has_id = true,
                         .has_stream = true, .has_serial = true, .has_bytes = true}},
    [MR_MARK_STREAM_END] = {{"DELETE FROM stream WHERE sender = ? AND stream = ? AND "
                             "serial <= ?",
                             .has_id = true, .has_stream = true, .has_serial = true}},
    [MR_MARK_SITE] = {{"INSERT OR IGNORE INTO site VALUES(?, ?)", .has_id = true,
                       .has_bytes = true}},
};

static enum mr_status put_marks(struct mr_spool *spool, struct mr_span marks,
                                struct mr_error *error)
{
    struct mr_sql sql[MR_MARK_KIND_COUNT][WRITERS_MAX] = {0};
    uint8_t bytes[MR_RESUME_SHORT_SIZE];
    struct mr_mark mark;
    enum mr_status status = MR_OK;

    spool->is_stream_bytes_counted = false;
    while (status == MR_OK && mr_mark_next(&marks, &mark)) {
        if (mark.kind == MR_MARK_STREAM)
            status = mr_spool_fit_stream(spool, &mark, bytes, error);
        for (size_t i = 0;
             status == MR_OK && i < WRITERS_MAX && writers[mark.kind][i].text; i++) {
            struct mr_sql *one = &sql[mark.kind][i];

            if (!one->statement)
                status =
                    mr_sql_prepare(spool->db, writers[mark.kind][i].text, one, error);
            if (status != MR_OK)
                break;
            if (writers[mark.kind][i].has_id)
                mr_sql_id(one, mark.id);
            if (writers[mark.kind][i].has_stream)
                mr_sql_u64(one, mark.stream);
            if (writers[mark.kind][i].has_serial)
                mr_sql_u64(one, mark.serial);
            if (writers[mark.kind][i].has_sequence)
                mr_sql_u64(one, mark.sequence);
            if (writers[mark.kind][i].has_bytes)
                mr_sql_blob(one, mark.bytes);
            status = mr_sql_run(one, error);
        }
    }
    for (size_t kind = 0; kind < MR_MARK_KIND_COUNT; kind++)
        for (size_t i = 0; i < WRITERS_MAX; i++)
            mr_sql_finish(&sql[kind][i]);
    return status;
}

/* It is kept: lanes may forget what is covered. */
static void tell_marks(struct mr_spool *spool, struct mr_span marks)
{
    struct mr_mark mark;

    while (mr_mark_next(&marks, &mark)) {
        uint32_t index = mr_table_find(&spool->ids, mark.id);
        struct mr_spool_sender *sender;

        if (index == MR_TABLE_NONE ||
            (mark.kind != MR_MARK_COVER && mark.kind != MR_MARK_SOURCE_END))
            continue;
        sender = spool->senders[index];
        if (mark.kind == MR_MARK_SOURCE_END) {
            mr_spool_dict_over(spool, sender, mark.serial);
            mr_store_release(&sender->over, mark.serial);
        } else if (mark.sequence > mr_load_relaxed(&sender->covered)) { /* under lock */
            mr_store_release(&sender->covered, mark.sequence);          /* [S] */
        }
    }
}

enum mr_status mr_spool_begin(struct mr_spool *spool, struct mr_error *error)
{
    return mr_sql_exec(spool->db, "BEGIN IMMEDIATE", error);
}

enum mr_status mr_spool_end(struct mr_spool *spool, enum mr_status status,
                            struct mr_error *error)
{
    int code;

    if (status == MR_OK)
        status = mr_sql_exec(spool->db, "COMMIT", error);
    code = sqlite3_errcode(spool->db);
    if (status == MR_OK) {
        mr_spool_make_reserve(spool);
        return MR_OK;
    }
    if (!sqlite3_get_autocommit(spool->db))
        (void)sqlite3_exec(spool->db, "ROLLBACK", NULL, NULL, NULL);
    spool->stream_bytes = spool->config.bytes_max; /* counted when it matters */
    if (code != SQLITE_FULL && (code & 0xff) != SQLITE_IOERR)
        return status;
    (void)mr_spool_give_reserve(spool);
    return mr_error_set(error, MR_ELIMIT, "--spool %s: the spool, or its disk, is full",
                        spool->folder);
}

enum mr_status mr_spool_commit(struct mr_spool *spool, uint64_t first_sequence,
                               const struct mr_batch *frames, struct mr_span marks,
                               struct mr_error *error)
{
    enum mr_status status;

    pthread_mutex_lock(&spool->lock);
    status = mr_spool_begin(spool, error);
    if (status == MR_OK)
        status = put_frames(spool, first_sequence, frames, error);
    if (status == MR_OK)
        status = put_marks(spool, marks, error);
    status = mr_spool_end(spool, status, error);
    if (status == MR_OK)
        tell_marks(spool, marks);
    pthread_mutex_unlock(&spool->lock);
    return status;
}

static enum mr_status put_upward(struct mr_spool *spool,
                                 const struct mr_custody_hello *custody, uint64_t acked,
                                 struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status = mr_sql_prepare(
        spool->db, "REPLACE INTO upward VALUES(1, ?, ?, ?, ?)", &sql, error);

    if (status != MR_OK)
        return status;
    mr_sql_id(&sql, custody->custodian);
    mr_sql_u64(&sql, custody->epoch);
    mr_sql_u64(&sql, custody->attempt);
    mr_sql_u64(&sql, acked);
    status = mr_sql_run(&sql, error);
    mr_sql_finish(&sql);
    if (status == MR_OK)
        status = mr_sql_prepare(spool->db, "DELETE FROM outbox WHERE sequence <= ?", &sql,
                                error);
    if (status != MR_OK)
        return status;
    mr_sql_u64(&sql, acked);
    status = mr_sql_run(&sql, error);
    mr_sql_finish(&sql);
    return status;
}

enum mr_status mr_spool_keep(struct mr_spool *spool,
                             const struct mr_custody_hello *custody, uint64_t acked,
                             struct mr_error *error)
{
    enum mr_status status;

    pthread_mutex_lock(&spool->lock);
    status = mr_spool_begin(spool, error);
    if (status == MR_OK)
        status = put_upward(spool, custody, acked, error);
    status = mr_spool_end(spool, status, error);
    pthread_mutex_unlock(&spool->lock);
    return status;
}
