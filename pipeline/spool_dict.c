/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dictionaries of probes. A numbered frame is kept as it came, once. What comes out of custody is a dictionary that is told again, at
 * each connection after a restart (probe/repeat.c), in pages that differ by what has changed: of it those items are kept that no
 * telling had before, known by their hash. So what is told over and over takes room once.
 *
 * A dictionary stays while its source does, so a source that tells new items for ever would fill the database, and then no commit
 * would find the room that frees any. Dictionaries have a part of it alone: what comes past that is not kept.
 */
#include "pipeline/spool_private.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "net/control.h"

/* The largest item of a probe, and its array: strings have MR_TEXT_MAX bytes. */
#define ITEM_BYTES_MAX (64u << 10)

/* Of the spool: dictionaries of a sender, and of all. The database has half of it. */
#define SENDER_PART 8
#define PART 4

/* What an entry takes at most beside its payload, with its keys. */
#define DICT_ROW_BYTES 128
#define TOLD_ROW_BYTES 64

bool mr_spool_keeps_item(const struct mr_dict_item *item)
{
    return item->kind != MR_DICT_SYNC && item->kind != MR_DICT_TICKER &&
           item->kind != MR_DICT_LINK && item->kind != MR_DICT_SOURCE_LOSS;
}

/* Of whom a telling is, and what of it is new. */
struct telling {
    struct mr_spool *spool;
    struct mr_id sender;
    uint32_t serial;
    uint8_t *out; /* owned */
    struct mr_dict_writer page;
    uint64_t stored; /* bytes of the database */
};

/* With the lock held. */
static void count(struct mr_spool *spool, struct mr_spool_sender *sender, uint32_t serial,
                  uint64_t stored)
{
    if (serial > sender->dict_serial) {
        sender->old_dict_bytes += sender->dict_bytes;
        sender->dict_bytes = 0;
        sender->dict_serial = serial;
    }
    sender->dict_bytes += stored;
    spool->dict_bytes += stored;
}

void mr_spool_dict_over(struct mr_spool *spool, struct mr_spool_sender *sender,
                        uint32_t serial)
{
    spool->dict_bytes -= sender->old_dict_bytes;
    sender->old_dict_bytes = 0;
    if (serial < sender->dict_serial)
        return;
    spool->dict_bytes -= sender->dict_bytes;
    sender->dict_bytes = 0;
}

enum mr_status mr_spool_dict_recover(struct mr_spool *spool,
                                     struct mr_spool_sender *sender, uint32_t serial,
                                     struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status = mr_sql_prepare(
        spool->db,
        "SELECT (SELECT count(*) FROM dict WHERE sender = ?1), (SELECT "
        "sum(length(payload)) FROM dict WHERE sender = ?1), (SELECT count(*) FROM told "
        "WHERE sender = ?1)",
        &sql, error);

    if (status != MR_OK)
        return status;
    mr_sql_id(&sql, sender->id);
    status = mr_sql_row(&sql, error);
    if (status == MR_OK) {
        uint64_t stored = DICT_ROW_BYTES * mr_sql_get_u64(&sql);

        stored += mr_sql_get_u64(&sql);
        count(spool, sender, serial, stored + TOLD_ROW_BYTES * mr_sql_get_u64(&sql));
    }
    mr_sql_finish(&sql);
    return status;
}

/* With the lock held. */
static bool has_part(const struct mr_spool *spool, const struct mr_spool_sender *sender,
                     size_t size)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(10 * MR_SECOND_NS);
    uint64_t bytes_max = spool->config.bytes_max;
    uint64_t of_sender = sender->old_dict_bytes + sender->dict_bytes;

    if (of_sender + size <= bytes_max / SENDER_PART &&
        spool->dict_bytes + size <= bytes_max / PART)
        return true;
    (void)mr_log_limited(&limit, MR_LOG_WARN,
                         "--spool %s: a dictionary is too large for it: after a kill, "
                         "what is new in it is unknown until it is told again",
                         spool->folder);
    return false;
}

/* With the lock held. `stored` grows by what it takes. */
static enum mr_status put_row(struct mr_spool *spool, struct mr_id sender,
                              uint32_t serial, uint64_t sequence, struct mr_span payload,
                              uint64_t *stored, struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status = mr_sql_prepare(spool->db,
                                           "INSERT OR IGNORE INTO dict(sender, serial, "
                                           "sequence, payload) VALUES(?, ?, ?, ?)",
                                           &sql, error);

    if (status == MR_OK) {
        mr_sql_id(&sql, sender);
        mr_sql_u64(&sql, serial);
        mr_sql_u64(&sql, sequence);
        mr_sql_blob(&sql, payload);
        status = mr_sql_run(&sql, error);
    }
    if (status == MR_OK && sqlite3_changes(spool->db) > 0)
        *stored += DICT_ROW_BYTES + payload.size;
    mr_sql_finish(&sql);
    return status;
}

/* Whether no telling of this source had it; then it is noted. */
static enum mr_status note(struct telling *telling, struct mr_sql *sql,
                           struct mr_span item, bool *is_new, struct mr_error *error)
{
    enum mr_status status;

    mr_sql_id(sql, telling->sender);
    mr_sql_u64(sql, telling->serial);
    mr_sql_id(sql, mr_hash128(item));
    status = mr_sql_run(sql, error);
    *is_new = status == MR_OK && sqlite3_changes(telling->spool->db) > 0;
    if (*is_new)
        telling->stored += TOLD_ROW_BYTES;
    return status;
}

/* Writes the page as a row, and begins the next. */
static enum mr_status turn_page(struct telling *telling, size_t capacity,
                                struct mr_error *error)
{
    size_t size = mr_dict_writer_finish(&telling->page);
    enum mr_status status =
        size ? put_row(telling->spool, telling->sender, telling->serial, 0,
                       mr_span_of(telling->out, size), &telling->stored, error)
             : MR_OK;

    mr_dict_writer_init(&telling->page, telling->out, capacity);
    return status;
}

static enum mr_status tell(struct telling *telling, struct mr_sql *sql,
                           const struct mr_dict_item *item, struct mr_error *error)
{
    struct mr_dict_writer before = telling->page;
    bool is_new = false;
    enum mr_status status = MR_OK;

    if (telling->page.capacity - telling->page.size < ITEM_BYTES_MAX) {
        status = turn_page(telling, telling->page.capacity, error);
        before = telling->page;
    }
    if (status == MR_OK && mr_dict_put(&telling->page, item) != MR_OK)
        status = mr_error_set(error, MR_EFORMAT, "an item of a dictionary is too long");
    if (status == MR_OK)
        status =
            note(telling, sql,
                 mr_span_of(telling->out + before.size, telling->page.size - before.size),
                 &is_new, error);
    if (!is_new)
        telling->page = before;
    return status;
}

static enum mr_status tell_all(struct telling *telling, struct mr_dict_reader *reader,
                               struct mr_error *error)
{
    struct mr_dict_item item;
    struct mr_sql sql;
    enum mr_status status = mr_sql_prepare(
        telling->spool->db, "INSERT OR IGNORE INTO told VALUES(?, ?, ?)", &sql, error);

    while (status == MR_OK && (status = mr_dict_next(reader, &item, error)) == MR_OK)
        if (mr_spool_keeps_item(&item))
            status = tell(telling, &sql, &item, error);
    mr_sql_finish(&sql);
    if (status != MR_END)
        return status;
    return turn_page(telling, telling->page.capacity, error);
}

/* With the lock held. */
static enum mr_status put_told(struct mr_spool *spool, struct mr_id sender,
                               uint32_t serial, struct mr_span payload, uint64_t *stored,
                               struct mr_error *error)
{
    struct telling telling = {.spool = spool, .sender = sender, .serial = serial};
    size_t capacity = payload.size + 2 * (size_t)ITEM_BYTES_MAX;
    struct mr_dict_reader reader;
    enum mr_status status = mr_dict_open(&reader, payload, error);

    if (status != MR_OK)
        return status;
    telling.out = malloc(capacity);
    mr_dict_writer_init(&telling.page, telling.out, capacity);
    status = telling.out ? mr_spool_begin(spool, error)
                         : mr_error_set(error, MR_ENOMEM, "--spool: no memory");
    if (status == MR_OK)
        status = mr_spool_end(spool, tell_all(&telling, &reader, error), error);
    mr_dict_close(&reader);
    free(telling.out);
    *stored = telling.stored;
    return status;
}

enum mr_status mr_spool_put_dict(struct mr_spool *spool, struct mr_spool_sender *sender,
                                 uint32_t serial, uint64_t sequence,
                                 struct mr_span payload, struct mr_error *error)
{
    uint64_t stored = 0;
    enum mr_status status;

    pthread_mutex_lock(&spool->lock);
    if (!has_part(spool, sender, payload.size)) {
        pthread_mutex_unlock(&spool->lock);
        return MR_OK;
    }
    if (sequence == 0) {
        status = put_told(spool, sender->id, serial, payload, &stored, error);
    } else {
        status = mr_spool_begin(spool, error);
        if (status == MR_OK)
            status = mr_spool_end(
                spool,
                put_row(spool, sender->id, serial, sequence, payload, &stored, error),
                error);
    }
    if (status == MR_OK)
        count(spool, sender, serial, stored);
    pthread_mutex_unlock(&spool->lock);
    return status;
}
