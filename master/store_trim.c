/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --store-max: after a checkpoint the oldest windows go until no more than KEEP_BYTES are in use.
 *
 *                  oldest <------> newest
 *     path_stat    x x x x x | k k k k      x may go, the oldest of all three tables first
 *     shape_stat   x x x x x x x x | k      k stays: a series reaches back that far, so that
 *     entry_stat   x x x x H x x x | k        a load wants it
 *                                           H stays: older, but still in memory (its slot got
 *                                             nothing newer), so that it can be written again
 *
 * What is older than k and not in memory is late (master/model_series.c), and a load passes over it: nothing reads it,
 * and nothing writes it again, so dropping it changes no answer. Totals are rows of other tables.
 *
 * It goes in steps of STEP_NS, each a transaction, with a pause as long as the step or until the next commit, so that who
 * waits for an acknowledgement waits a step longer at most. A window may be half gone after a step.
 *
 * The file gives nothing back to its disk: free pages are used again, so it grows no further. That is what a bound needs;
 * VACUUM would write the whole file anew while nothing is acknowledged, and auto_vacuum moves a page for each one that is
 * freed, in every store and for ever, for the one case that a limit is lowered.
 */
#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "master/store_private.h"

#include <inttypes.h>

#define KEEP_BYTES(max)                                                                  \
    ((max) - (max) / 10) /* the rest is room for what comes before the next checkpoint */
#define STEP_NS (20 * MR_MILLISECOND_NS)
#define ROWS "1000" /* at a time: what a step is longer than STEP_NS at most */
#define NOT_ANY UINT64_MAX

#define USED                                                                             \
    "SELECT (page_count - freelist_count) * page_size"                                   \
    " FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
#define NEWEST(table) "SELECT coalesce(max(window), 0) FROM " table
#define OLDEST(table)                                                                    \
    "SELECT window FROM " table " WHERE window >= ? ORDER BY window LIMIT 1"
#define DROP(table, key)                                                                 \
    "DELETE FROM " table " WHERE window = ?1 AND " key " < coalesce((SELECT " key        \
    " FROM " table " WHERE window = ?1 ORDER BY " key " LIMIT 1 OFFSET " ROWS            \
    "), 9223372036854775807)"
#define TABLE(series, name, key) series, NEWEST(name), OLDEST(name), DROP(name, key)

static const struct {
    enum mr_model_series series;
    const char *newest, *oldest, *drop;
} tables[] = {
    {TABLE(MR_SERIES_ENTRY, "entry_stat", "entry")},
    {TABLE(MR_SERIES_SHAPE, "shape_stat", "shape")},
    {TABLE(MR_SERIES_PATH, "path_stat", "path")},
};

#define TABLE_COUNT MR_ARRAY_COUNT(tables)

struct trim {
    struct mr_store *store;
    struct mr_sql used, oldest[TABLE_COUNT], drop[TABLE_COUNT];
    uint64_t window[TABLE_COUNT]; /* the oldest that may go, or NOT_ANY */
    uint64_t end[TABLE_COUNT];    /* windows from here on stay */
    uint64_t used_bytes, rows;
    bool is_more; /* it ended for lack of time */
    struct mr_error *error;
};

/* The one number of the next row; MR_END: there is no row. */
static enum mr_status ask(struct mr_sql *sql, uint64_t *value, struct mr_error *error)
{
    enum mr_status status = mr_sql_row(sql, error);

    if (status == MR_OK)
        *value = mr_sql_get_u64(sql);
    sqlite3_reset(sql->statement);
    sql->at = 0;
    return status;
}

static bool is_held(const struct trim *trim, size_t at, uint64_t window)
{
    struct mr_model *model = trim->store->model;
    const struct mr_model_root *root = mr_model_read_lock(model);
    bool is_held = mr_model_window_at(root, tables[at].series, window) != NULL;

    mr_model_read_unlock(model);
    return is_held;
}

/* Puts the first window from `from` on that may go into trim->window[at]. */
static enum mr_status find_window(struct trim *trim, size_t at, uint64_t from)
{
    uint64_t window = from;

    for (;;) {
        mr_sql_u64(&trim->oldest[at], window);
        enum mr_status status = ask(&trim->oldest[at], &window, trim->error);
        if (status == MR_END || (status == MR_OK && window >= trim->end[at])) {
            trim->window[at] = NOT_ANY;
            return MR_OK;
        }
        if (status != MR_OK)
            return status;
        if (!is_held(trim, at, window)) {
            trim->window[at] = window;
            return MR_OK;
        }
        window++;
    }
}

/* As far back as a load reads: master/store_load.c. */
static enum mr_status find_end(struct trim *trim, size_t at)
{
    enum mr_model_series series = tables[at].series;
    uint64_t newest = 0, span_s = (uint64_t)mr_model_series_seconds(series) *
                                  mr_model_series_windows(series);
    struct mr_sql sql;
    enum mr_status status =
        mr_sql_prepare(trim->store->db, tables[at].newest, &sql, trim->error);

    if (status == MR_OK)
        status = ask(&sql, &newest, trim->error);
    mr_sql_finish(&sql);
    trim->end[at] = newest < span_s ? 0 : newest - span_s + 1;
    return status;
}

static enum mr_status prepare_table(struct trim *trim, size_t at)
{
    sqlite3 *db = trim->store->db;
    enum mr_status status =
        mr_sql_prepare(db, tables[at].oldest, &trim->oldest[at], trim->error);

    if (status == MR_OK)
        status = mr_sql_prepare(db, tables[at].drop, &trim->drop[at], trim->error);
    if (status == MR_OK)
        status = find_end(trim, at);
    return status == MR_OK ? find_window(trim, at, 0) : status;
}

static enum mr_status prepare(struct trim *trim)
{
    enum mr_status status = MR_OK;

    for (size_t at = 0; at < TABLE_COUNT && status == MR_OK; at++)
        status = prepare_table(trim, at);
    return status;
}

static void finish(struct trim *trim)
{
    mr_sql_finish(&trim->used);
    for (size_t at = 0; at < TABLE_COUNT; at++) {
        mr_sql_finish(&trim->oldest[at]);
        mr_sql_finish(&trim->drop[at]);
    }
}

/* The table with the oldest window that may go; false: nothing may. */
static bool find_table(const struct trim *trim, size_t *table)
{
    *table = 0;
    for (size_t at = 1; at < TABLE_COUNT; at++)
        if (trim->window[at] < trim->window[*table])
            *table = at;
    return trim->window[*table] != NOT_ANY;
}

static enum mr_status drop_rows(struct trim *trim, size_t at)
{
    mr_sql_u64(&trim->drop[at], trim->window[at]);
    enum mr_status status = mr_sql_run(&trim->drop[at], trim->error);
    uint64_t rows = (uint64_t)sqlite3_changes(trim->store->db);

    if (status != MR_OK)
        return status;
    trim->rows += rows;
    if (rows == 0) /* that was all of it, else we come again */
        status = find_window(trim, at, trim->window[at] + 1);
    return status == MR_OK ? ask(&trim->used, &trim->used_bytes, trim->error) : status;
}

static enum mr_status drop_windows(struct trim *trim, uint64_t keep_bytes)
{
    uint64_t until_ns = mr_clock_monotonic_ns() + STEP_NS;
    enum mr_status status = prepare(trim);
    size_t at;

    while (status == MR_OK && trim->used_bytes > keep_bytes && find_table(trim, &at)) {
        trim->is_more = mr_clock_monotonic_ns() >= until_ns;
        if (trim->is_more)
            break;
        status = drop_rows(trim, at);
    }
    return status;
}

/* One transaction, if there is something to do. */
static enum mr_status take_step(struct trim *trim)
{
    struct mr_store *store = trim->store;
    uint64_t max_bytes = store->config.max_bytes;
    enum mr_status status = mr_sql_prepare(store->db, USED, &trim->used, trim->error);

    if (status == MR_OK)
        status = ask(&trim->used, &trim->used_bytes, trim->error);
    if (status != MR_OK || max_bytes == 0 || trim->used_bytes <= KEEP_BYTES(max_bytes))
        return status;
    status = mr_store_begin(store, trim->error);
    if (status != MR_OK)
        return status;
    return mr_store_end(store, drop_windows(trim, KEEP_BYTES(max_bytes)), trim->error);
}

/* Once: it does not go away by itself, and the metric goes on telling it. */
static void tell_over_max(struct mr_store *store, uint64_t used_bytes)
{
    if (store->is_over_max_told)
        return;
    store->is_over_max_told = true;
    mr_log_warn(
        "store %s: %" PRIu64 " bytes are in use, --store-max is %" PRIu64
        ", and all old windows are gone: what is left is of all time, or of the last "
        "hour, and stays. Nothing is lost, and it may grow on; give it a larger "
        "--store-max, or, with a new --store, lower limits of the model (--max-paths, "
        "--max-shapes, --max-exemplar-bytes)",
        store->directory, used_bytes, store->config.max_bytes);
}

static void note_step(const struct trim *trim, uint64_t spent_ns)
{
    struct mr_store *store = trim->store;
    struct mr_store_stats *stats = &store->stats;
    bool is_over_max = store->config.max_bytes && !trim->is_more &&
                       trim->used_bytes > store->config.max_bytes;

    pthread_mutex_lock(&store->mutex);
    stats->used_bytes = trim->used_bytes;
    stats->is_over_max = is_over_max;
    stats->trimmed_rows += trim->rows;
    if (trim->rows) {
        stats->trim_ns_sum += spent_ns;
        if (spent_ns > stats->trim_ns_max)
            stats->trim_ns_max = spent_ns;
    }
    pthread_mutex_unlock(&store->mutex);
    if (is_over_max)
        tell_over_max(store, trim->used_bytes);
}

/* Acknowledgements do not depend on it, so that it is no failure of the store's patience. */
static void note_failure(struct mr_store *store, const struct mr_error *error)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(60 * MR_SECOND_NS);

    pthread_mutex_lock(&store->mutex);
    store->stats.failures++;
    pthread_mutex_unlock(&store->mutex);
    mr_log_limited(&limit, MR_LOG_ERROR,
                   "store: %s; old windows are not dropped (--store-max) until it can be "
                   "written",
                   error->text);
}

void mr_store_trim(struct mr_store *store)
{
    struct mr_error error = MR_ERROR_NONE;
    struct trim trim = {.store = store, .error = &error};
    uint64_t start_ns = mr_clock_monotonic_ns();
    enum mr_status status = take_step(&trim);

    finish(&trim);
    store->trim_pause_ns = mr_clock_monotonic_ns() - start_ns;
    store->is_trim_due = status == MR_OK && trim.is_more;
    if (status == MR_OK)
        note_step(&trim, store->trim_pause_ns);
    else
        note_failure(store, &error);
}
