/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States of streams: their open calls, 34 bytes each, up to 8.9 MB. Each commit has those of all streams that moved, and what it frees is acknowledged
 * behind it: where they do not fit the database no commit ever would, and the worker stood still for good. So long ones have a part of it
 * alone. A stream past that is kept without its calls (mr_resume_shorten()): after a kill they are told as lost.
 */
#include "pipeline/spool_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "pipeline/mark.h"
#include "pipeline/resume.h"

/* Of the spool; the database has half of it, dictionaries a quarter. */
#define PART 8
/* Shorter ones are kept whatever there is; they lie in the pages of their rows. */
#define SHORT 1024u
/* A long one's last page is part empty. */
#define PAGE 4096u

#define BYTES(length) ((length) > SHORT ? (length) + PAGE : 0)

static enum mr_status get_old(struct mr_spool *spool, const struct mr_mark *mark,
                              uint64_t *bytes, struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status = mr_sql_prepare(
        spool->db, "SELECT length(state) FROM stream WHERE sender = ? AND stream = ?",
        &sql, error);

    *bytes = 0;
    if (status != MR_OK)
        return status;
    mr_sql_id(&sql, mark->id);
    mr_sql_u64(&sql, mark->stream);
    status = mr_sql_row(&sql, error);
    if (status == MR_OK)
        *bytes = mr_sql_get_u64(&sql);
    *bytes = BYTES(*bytes);
    mr_sql_finish(&sql);
    return status == MR_END ? MR_OK : status;
}

/* What ended is not subtracted as it goes; for all streams that find no room in a transaction one look through the table will do. */
static enum mr_status count_again(struct mr_spool *spool, struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status =
        mr_sql_prepare(spool->db,
                       "SELECT sum(length(state) + ?), count(*) FROM stream "
                       "WHERE length(state) > ?",
                       &sql, error);

    if (status != MR_OK)
        return status;
    mr_sql_u64(&sql, PAGE);
    mr_sql_u64(&sql, SHORT);
    status = mr_sql_row(&sql, error);
    if (status == MR_OK)
        spool->stream_bytes = mr_sql_get_u64(&sql);
    spool->is_stream_bytes_counted = true;
    mr_sql_finish(&sql);
    return status;
}

enum mr_status mr_spool_fit_stream(struct mr_spool *spool, struct mr_mark *mark,
                                   uint8_t *bytes, struct mr_error *error)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(10 * MR_SECOND_NS);
    uint64_t size = BYTES(mark->bytes.size), max = spool->config.bytes_max / PART, old;
    enum mr_status status;

    if (size == 0)
        return MR_OK;
    status = get_old(spool, mark, &old, error);
    if (status == MR_OK && spool->stream_bytes + size > max + old &&
        !spool->is_stream_bytes_counted)
        status = count_again(spool, error);
    if (status != MR_OK)
        return status;
    if (spool->stream_bytes + size <= max + old) {
        spool->stream_bytes += size;
        spool->stream_bytes -= old < spool->stream_bytes ? old : spool->stream_bytes;
        return MR_OK;
    }
    (void)mr_log_limited(
        &limit, MR_LOG_WARN,
        "--spool %s: open calls of many deep stacks are too large for it: after "
        "a kill they are lost, reason budget",
        spool->folder);
    if (mr_resume_shorten(mark->bytes, bytes))
        mark->bytes = mr_span_of(bytes, MR_RESUME_SHORT_SIZE);
    return MR_OK;
}
