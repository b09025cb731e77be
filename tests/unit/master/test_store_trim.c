/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What --store-max drops and what not: the same frames go into a store with a limit and into one without, and SQL tells
 * the two files apart.
 */
#include "base/atomics.h"
#include "base/clock.h"
#include "master/model_private.h"
#include "master/store.h"
#include "net/delta.h"
#include "tests/unit/unit_test.h"

#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIMIT (UINT64_C(2) << 20)
#define KEEP (LIMIT - LIMIT / 10)
#define FIRST UINT64_C(1699999200) /* a full hour, Unix s */
#define WINDOWS 300
/* Windows that come before the next look at the limit, at most: all of them take more than half as much again as the limit. */
#define ROOM (WINDOWS * 2 / 3 / 10)
#define SHAPES 100
#define WAIT_MS 60000

static const struct mr_id sender = {7, 7}, scope_id = {1, 1};

struct side {
    char directory[80];
    uint64_t max_bytes, sequence;
    struct mr_model *model;
    struct mr_store *store;
};

struct fixture {
    char folder[64];
    struct side limited, full;
    struct mr_buffer bytes;
};

static void open_side(struct side *side)
{
    const struct mr_store_config config = {.directory = side->directory,
                                           .sync = MR_STORE_SYNC_NORMAL,
                                           .commit_interval_ns = 5000000,
                                           .checkpoint_interval_ns = 1000000,
                                           .checkpoint_bytes = 1 << 30,
                                           .max_bytes = side->max_bytes};
    struct mr_error error = MR_ERROR_NONE;

    assert_int_equal(mr_model_new(&MR_MODEL_LIMITS_DEFAULT, &side->model), MR_OK);
    if (mr_store_open(&config, side->model, &side->store, &error) != MR_OK)
        fail_msg("%s", error.text);
    assert_int_equal(mr_store_start(side->store, &error), MR_OK);
}

/* What the store had to tell at last. */
static struct mr_store_stats close_side(struct side *side)
{
    struct mr_store_stats stats;

    assert_int_equal(mr_store_stop(side->store), MR_OK);
    mr_store_stats(side->store, &stats);
    mr_store_close(side->store);
    mr_model_free(side->model);
    return stats;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    snprintf(f->folder, sizeof(f->folder), "/tmp/mr-trim-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->limited.directory, sizeof(f->limited.directory), "%s/l", f->folder);
    snprintf(f->full.directory, sizeof(f->full.directory), "%s/f", f->folder);
    f->limited.max_bytes = LIMIT;
    mr_buffer_init(&f->bytes, 1 << 20);
    mr_model_thread_enter();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[96];

    mr_model_thread_leave();
    snprintf(command, sizeof(command), "rm -rf %s", f->folder);
    assert_int_equal(system(command), 0);
    mr_buffer_fini(&f->bytes);
    free(f);
    return 0;
}

static void put_shape(struct mr_delta_writer *w, uint32_t scope, uint32_t path,
                      uint64_t window, uint64_t number)
{
    const struct mr_id root = {number + 1, 9};
    struct mr_shape_stats stats = {.ok = 1,
                                   .calls = number,
                                   .first_ns = window * MR_SECOND_NS,
                                   .last_ns = window * MR_SECOND_NS,
                                   .histogram = MR_HISTOGRAM_EMPTY};

    mr_times_add(&stats.time, 1000 * (number + 1), true);
    for (uint64_t i = 0; i < 8; i++)
        assert_int_equal(mr_histogram_add(&stats.histogram, UINT64_C(1000) << i, 1),
                         MR_OK);
    mr_delta_shape_stat(w, mr_delta_shape(w, scope, path, root), window, &stats);
    mr_histogram_fini(&stats.histogram);
}

/* One entry point with SHAPES shapes, in one window. */
static void make_delta(struct fixture *f, uint64_t window)
{
    struct mr_path_stats stats = {.ok = SHAPES, .histogram = MR_HISTOGRAM_EMPTY};
    const struct mr_entry_stats traces = {.traces = {SHAPES}};
    struct mr_delta_writer w;

    mr_buffer_clear(&f->bytes);
    mr_delta_begin(&w, &f->bytes);
    mr_delta_head(&w, 1, 1);
    uint32_t scope = mr_delta_scope(&w, scope_id);
    uint32_t site = mr_delta_site(&w, (struct mr_id){2, 2});
    uint32_t path = mr_delta_path(&w, MR_DELTA_NONE, scope, site, 0);
    mr_delta_path_stat(&w, path, window, &stats);
    mr_delta_entry_stat(&w, path, window, &traces);
    for (uint64_t i = 0; i < SHAPES; i++)
        put_shape(&w, scope, path, window, i);
}

static struct mr_store_stats stats_of(struct side *side)
{
    struct mr_store_stats stats;

    mr_store_stats(side->store, &stats);
    return stats;
}

/* As ingest does. */
static void take(struct side *side, struct mr_span payload)
{
    uint64_t number;

    assert_int_equal(mr_model_apply_delta(side->model, sender, payload, NULL), MR_OK);
    assert_int_equal(mr_store_append(side->store, sender, ++side->sequence,
                                     MR_FRAME_DELTA, payload, &number),
                     MR_OK);
    mr_model_set_journal(side->model, number);
    assert_int_equal(mr_model_publish(side->model), MR_OK);
}

static void take_window(struct fixture *f, uint64_t window)
{
    make_delta(f, window);
    take(&f->limited, mr_buffer_span(&f->bytes));
    take(&f->full, mr_buffer_span(&f->bytes));
}

/* Until all of it is in tables, and there is no more in use than may be. */
static void settle(struct side *side, uint64_t keep_bytes)
{
    const struct mr_model_root *root = mr_model_read_lock(side->model);
    uint64_t generation = root->head.generation;
    int tries = 0;

    mr_model_read_unlock(side->model);
    /* Relaxed: it only grows. */
    while (mr_load_relaxed(&side->model->saved_generation) < generation ||
           stats_of(side).used_bytes > keep_bytes) {
        assert_true(++tries < WAIT_MS);
        usleep(1000);
    }
}

/* Both: a slot whose window is not in the store yet takes no other one. */
static void settle_both(struct fixture *f)
{
    settle(&f->limited, f->limited.max_bytes ? KEEP : UINT64_MAX);
    settle(&f->full, UINT64_MAX);
}

static uint64_t file_size(const struct side *side)
{
    char path[128];
    struct stat info;

    snprintf(path, sizeof(path), "%s/%s", side->directory, MR_STORE_FILE);
    assert_int_equal(stat(path, &info), 0);
    return (uint64_t)info.st_size;
}

/* One number of the limited store; the other one is attached as `other`. */
static int64_t ask(const struct fixture *f, const char *query)
{
    char text[256];
    sqlite3_stmt *statement;
    sqlite3 *db;

    snprintf(text, sizeof(text), "%s/%s", f->limited.directory, MR_STORE_FILE);
    assert_int_equal(sqlite3_open(text, &db), SQLITE_OK);
    snprintf(text, sizeof(text), "ATTACH '%s/%s' AS other", f->full.directory,
             MR_STORE_FILE);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(db, query, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", query, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return value;
}

/* Rows of `table` in `from` that `in` does not have, or not so. */
static int64_t missing(const struct fixture *f, const char *table, const char *from,
                       const char *in, const char *where)
{
    char query[256];

    snprintf(query, sizeof(query),
             "SELECT count(*) FROM (SELECT * FROM %s.%s WHERE %s EXCEPT SELECT * FROM "
             "%s.%s)",
             from, table, where, in, table);
    return ask(f, query);
}

static void check_totals(const struct fixture *f)
{
    static const char *const tables[] = {"site",  "scope",       "path", "path_total",
                                         "entry", "shape_total", "shape"};

    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
        assert_int_equal(missing(f, tables[i], "main", "other", "true"), 0);
        assert_int_equal(missing(f, tables[i], "other", "main", "true"), 0);
    }
    assert_int_equal(ask(f, "SELECT count(*) FROM shape_total"), SHAPES);
}

static const struct {
    const char *name, *series;
} windowed[] = {
    {"entry_stat", "window > (SELECT max(window) - 600 FROM other.entry_stat)"},
    {"shape_stat", "window > (SELECT max(window) - 600 FROM other.shape_stat)"},
    {"path_stat", "window > (SELECT max(window) - 3600 FROM other.path_stat)"}};

/* What is there is as without a limit, and of the series all is there. */
static void check_windows(const struct fixture *f)
{
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(missing(f, windowed[i].name, "main", "other", "true"), 0);
        assert_int_equal(
            missing(f, windowed[i].name, "other", "main", windowed[i].series), 0);
    }
}

static void load(const struct side *side, struct mr_model **model)
{
    struct mr_error error = MR_ERROR_NONE;

    assert_int_equal(mr_model_new(&MR_MODEL_LIMITS_DEFAULT, model), MR_OK);
    if (mr_store_load(side->directory, *model, &error) != MR_OK)
        fail_msg("%s", error.text);
}

static void check_loads_the_same(const struct fixture *f)
{
    struct mr_model *limited, *full;

    load(&f->limited, &limited);
    load(&f->full, &full);
    const struct mr_model_root *a = mr_model_read_lock(limited);
    const struct mr_model_root *b = mr_model_read_lock(full);
    assert_memory_equal(a->points, b->points, sizeof(a->points));
    assert_memory_equal(a->newest, b->newest, sizeof(a->newest));
    assert_memory_equal(&a->totals, &b->totals, sizeof(a->totals));
    for (uint32_t table = 0; table < MR_MODEL_TABLE_COUNT; table++)
        assert_int_equal(mr_model_count(a, table), mr_model_count(b, table));
    assert_true(a->points[MR_SERIES_SHAPE] >= SHAPES);
    mr_model_read_unlock(full);
    mr_model_read_unlock(limited);
    mr_model_free(full);
    mr_model_free(limited);
}

/* A minute apart, the series hold 10 for shapes and entries, 60 for paths. `unsaved`: so many at a time. */
static void take_windows(struct fixture *f, uint64_t first, uint64_t apart_s,
                         uint64_t unsaved)
{
    for (uint64_t i = 0; i < WINDOWS; i++) {
        take_window(f, first + apart_s * i);
        if (i % unsaved && i + 1 < WINDOWS)
            continue;
        settle_both(f);
        assert_true(f->limited.max_bytes == 0 || file_size(&f->limited) <= LIMIT);
    }
}

static void the_oldest_windows_go_and_totals_stay(void **state)
{
    struct fixture *f = *state;

    open_side(&f->limited);
    open_side(&f->full);
    take_windows(f, FIRST, 60, 2);
    const struct mr_store_stats stats = close_side(&f->limited);
    assert_int_equal(stats.max_bytes, LIMIT);
    assert_false(stats.is_over_max);
    assert_int_equal(close_side(&f->full).trimmed_rows, 0);
    assert_true(file_size(&f->limited) <= LIMIT);
    assert_true(file_size(&f->full) > 3 * LIMIT / 2);
    int64_t gone = 0;
    for (size_t i = 0; i < 3; i++)
        gone += missing(f, windowed[i].name, "other", "main", "true");
    assert_int_equal(gone, stats.trimmed_rows);
    check_windows(f);
    check_totals(f);
    check_loads_the_same(f);
    /* Oldest first: what is left is no older than what is gone, but for what a series held when there was a look at last. */
    int64_t last = ask(f, "SELECT max(window) FROM (SELECT * FROM other.shape_stat "
                          "EXCEPT SELECT * FROM main.shape_stat)");
    assert_true(ask(f, "SELECT min(window) FROM shape_stat") >= last);
    assert_true(ask(f, "SELECT min(window) FROM entry_stat") >= last);
    assert_true(ask(f, "SELECT min(window) FROM path_stat") >= last ||
                ask(f, "SELECT max(window) - min(window) FROM path_stat") <
                    3600 + 60 * ROOM);
    assert_true(last > (int64_t)FIRST && last < (int64_t)(FIRST + 60 * WINDOWS - 600));
    open_side(&f->limited);
    assert_int_equal(mr_store_position(f->limited.store, sender), f->limited.sequence);
    close_side(&f->limited);
}

static void a_window_that_memory_holds_stays_and_takes_what_is_late(void **state)
{
    struct fixture *f = *state;

    open_side(&f->limited);
    open_side(&f->full);
    take_window(f, FIRST);
    settle_both(f);
    take_windows(f, FIRST + 60, 3600, 1); /* all in one slot, and that is another */
    take_window(f, FIRST);
    settle_both(f);
    close_side(&f->limited);
    close_side(&f->full);
    assert_true(ask(f, "SELECT min(window) FROM other.shape_stat WHERE window NOT IN "
                       "(SELECT window FROM main.shape_stat)") == FIRST + 60);
    assert_int_equal(ask(f, "SELECT count(*) FROM shape_stat WHERE window = 1699999200"),
                     SHAPES);
    assert_int_equal(ask(f, "SELECT ok FROM path_stat WHERE window = 1699999200"),
                     2 * SHAPES);
    check_windows(f);
    check_totals(f);
    check_loads_the_same(f);
}

static void a_store_that_grew_without_a_limit_gets_below_one(void **state)
{
    struct fixture *f = *state;

    f->limited.max_bytes = 0;
    open_side(&f->limited);
    open_side(&f->full);
    take_windows(f, FIRST, 60, 2);
    assert_true(stats_of(&f->limited).used_bytes > LIMIT);
    assert_int_equal(close_side(&f->limited).trimmed_rows, 0);
    f->limited.max_bytes = LIMIT;
    open_side(&f->limited);
    for (int tries = 0; stats_of(&f->limited).trimmed_rows == 0; tries++) {
        assert_true(tries < WAIT_MS); /* nothing comes: it does so by itself */
        usleep(1000);
    }
    settle_both(f);
    close_side(&f->limited);
    close_side(&f->full);
    check_windows(f);
    check_totals(f);
    check_loads_the_same(f);
}

/* Lines with `word` that `body` writes to stderr. */
static int count_lines(struct fixture *f, const char *word,
                       void (*body)(struct fixture *))
{
    char path[96], line[2048];
    int kept = dup(STDERR_FILENO), count = 0;

    snprintf(path, sizeof(path), "%s/log", f->folder);
    FILE *file = fopen(path, "w+e");
    assert_non_null(file);
    assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
    body(f);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    (void)close(kept);
    rewind(file);
    while (fgets(line, sizeof(line), file))
        count += strstr(line, word) != NULL;
    (void)fclose(file);
    return count;
}

static void exceed_the_limit(struct fixture *f)
{
    f->limited.max_bytes = 65536; /* less than the tables take when they are empty */
    open_side(&f->limited);
    open_side(&f->full);
    for (uint64_t i = 0; i < 5; i++) {
        take_window(f, FIRST + i);
        settle(&f->limited, UINT64_MAX);
        settle(&f->full, UINT64_MAX);
    }
    for (int tries = 0; !stats_of(&f->limited).is_over_max; tries++) {
        assert_true(tries < WAIT_MS);
        usleep(1000);
    }
    assert_true(stats_of(&f->limited).used_bytes > 65536);
    assert_int_equal(stats_of(&f->limited).trimmed_rows, 0);
    assert_int_equal(stats_of(&f->limited).failures, 0);
    close_side(&f->limited);
    close_side(&f->full);
}

static void a_limit_that_cannot_be_held_is_told_once(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(count_lines(f, "--store-max is 65536", exceed_the_limit), 1);
    check_windows(f);
    check_totals(f);
    check_loads_the_same(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_oldest_windows_go_and_totals_stay, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            a_window_that_memory_holds_stays_and_takes_what_is_late, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_store_that_grew_without_a_limit_gets_below_one,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_limit_that_cannot_be_held_is_told_once, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
