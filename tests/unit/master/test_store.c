/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "master/store.h"
#include "naive.h"
#include "net/ids.h"

#include <poll.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
/* after the four above */
#include <cmocka.h>

static const struct mr_id sender = {7, 7};

struct fixture {
    char folder[64], directory[80];
    struct mr_model *model;
    struct mr_store *store;
    struct mr_buffer bytes;
    uint64_t sequence;
};

static struct mr_store_config config_of(const struct fixture *f, uint64_t checkpoint_ns)
{
    return (struct mr_store_config){.directory = f->directory,
                                    .sync = MR_STORE_SYNC_NORMAL,
                                    .commit_interval_ns = 1000000,
                                    .checkpoint_interval_ns = checkpoint_ns,
                                    .checkpoint_bytes = 1 << 30};
}

static void open_store(struct fixture *f, uint64_t checkpoint_ns)
{
    const struct mr_store_config config = config_of(f, checkpoint_ns);
    struct mr_error error = MR_ERROR_NONE;

    assert_int_equal(mr_model_new(&MR_MODEL_LIMITS_DEFAULT, &f->model), MR_OK);
    enum mr_status status = mr_store_open(&config, f->model, &f->store, &error);
    if (status != MR_OK)
        fail_msg("%s", error.text);
    assert_int_equal(mr_store_start(f->store, &error), MR_OK);
}

static void close_store(struct fixture *f)
{
    assert_int_equal(mr_store_stop(f->store), MR_OK);
    mr_store_close(f->store);
    mr_model_free(f->model);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    snprintf(f->folder, sizeof(f->folder), "/tmp/mr-store-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->directory, sizeof(f->directory), "%s/s", f->folder);
    mr_buffer_init(&f->bytes, 8 << 20);
    mr_model_thread_enter();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"millrace.sqlite", "millrace.sqlite-wal",
                                        "millrace.sqlite-shm", "lock"};
    char path[160];

    mr_model_thread_leave();
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "%s/%s", f->directory, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(f->directory);
    (void)rmdir(f->folder);
    mr_buffer_fini(&f->bytes);
    free(f);
    return 0;
}

/* As ingest does: apply, append, tell the journal's number, publish. */
static void take(struct fixture *f, struct naive *naive)
{
    uint64_t number;

    naive_delta(naive, &f->bytes);
    struct mr_span payload = mr_buffer_span(&f->bytes);
    assert_int_equal(mr_model_apply_delta(f->model, sender, payload, NULL), MR_OK);
    assert_int_equal(mr_store_append(f->store, sender, ++f->sequence, MR_FRAME_DELTA,
                                     payload, &number),
                     MR_OK);
    mr_model_set_journal(f->model, number);
    assert_int_equal(mr_model_publish(f->model), MR_OK);
}

static void wait_for_position(struct fixture *f, uint64_t sequence)
{
    struct mr_store_position position = {.sequence = 0};

    while (position.sequence < sequence) {
        struct pollfd fd = {.fd = mr_store_event_fd(f->store), .events = POLLIN};

        assert_int_equal(poll(&fd, 1, 60000), 1);
        while (mr_store_committed(f->store, &position))
            assert_true(mr_id_equal(position.sender, sender));
    }
    assert_int_equal(mr_store_position(f->store, sender), sequence);
}

static void check(const struct naive *naive, struct mr_model *model)
{
    naive_check(naive, mr_model_read_lock(model));
    mr_model_read_unlock(model);
}

/* Copies the files as a crash would leave them: the writer never gets to close. */
static void copy_store(const struct fixture *f, const char *to)
{
    char command[320];

    snprintf(command, sizeof(command), "mkdir %s && cp %s/millrace.sqlite* %s/", to,
             f->directory, to);
    assert_int_equal(system(command), 0);
}

static void remove_copy(const char *directory)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", directory);
    assert_int_equal(system(command), 0);
}

static void a_restart_brings_all_back_whatever_was_checkpointed(void **state)
{
    struct fixture *f = *state;
    struct naive naive;

    naive_init(&naive, 42);
    for (int round = 0; round < 6; round++) {
        /* rounds that checkpoint all the time, and rounds that only do at the end */
        open_store(f, round % 2 ? 1000000 : MR_HOUR_NS);
        if (round)
            check(&naive, f->model);
        assert_int_equal(mr_store_position(f->store, sender), f->sequence);
        for (int i = 0; i < 25; i++)
            take(f, &naive);
        wait_for_position(f, f->sequence);
        close_store(f);
    }
    naive_fini(&naive);
}

static void what_is_committed_survives_a_crash_at_any_time(void **state)
{
    struct fixture *f = *state;
    struct naive naive;
    char copy[96];

    naive_init(&naive, 43);
    open_store(f, 20 * MR_MILLISECOND_NS);
    for (int round = 0; round < 8; round++) {
        struct mr_error error = MR_ERROR_NONE;
        struct mr_model *model;

        for (int i = 0; i < 10; i++)
            take(f, &naive);
        wait_for_position(f, f->sequence);
        snprintf(copy, sizeof(copy), "%s/copy%d", f->folder, round);
        /* a checkpoint that is copied half is what SQLite's own tests are for: stop it */
        struct mr_store_stats stats;
        mr_store_stats(f->store, &stats);
        copy_store(f, copy);
        struct mr_store_stats after;
        mr_store_stats(f->store, &after);
        if (after.checkpoints == stats.checkpoints) {
            assert_int_equal(mr_model_new(&MR_MODEL_LIMITS_DEFAULT, &model), MR_OK);
            if (mr_store_load(copy, model, &error) != MR_OK)
                fail_msg("%s", error.text);
            check(&naive, model);
            mr_model_free(model);
        }
        remove_copy(copy);
    }
    close_store(f);
    naive_fini(&naive);
}

static void a_report_reads_a_store_that_is_in_use(void **state)
{
    struct fixture *f = *state;
    struct mr_error error = MR_ERROR_NONE;
    struct mr_model *model;
    struct naive naive;

    naive_init(&naive, 44);
    open_store(f, MR_HOUR_NS);
    for (int i = 0; i < 10; i++)
        take(f, &naive);
    wait_for_position(f, f->sequence);
    assert_int_equal(mr_model_new(&MR_MODEL_LIMITS_DEFAULT, &model), MR_OK);
    assert_int_equal(mr_store_load(f->directory, model, &error), MR_OK);
    check(&naive, model);
    mr_model_free(model);
    close_store(f);
    naive_fini(&naive);
}

/* How long the store stays between seeing that nothing is durable and taking the signal back. */
static uint64_t read_late_ns;

/* The linker puts it before read() (--wrap). */
ssize_t __real_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size)
{
    const struct timespec pause = {.tv_nsec = (long)read_late_ns};

    if (read_late_ns)
        nanosleep(&pause, NULL);
    return __real_read(fd, to, size);
}

static void a_commit_that_ends_while_one_looks_is_told(void **state)
{
    struct fixture *f = *state;
    struct mr_store_position position;
    struct naive naive;

    naive_init(&naive, 46);
    open_store(f, MR_HOUR_NS);
    read_late_ns = 50 * MR_MILLISECOND_NS;
    for (int round = 0; round < 10; round++) {
        take(f, &naive);
        if (!mr_store_committed(f->store, &position))
            wait_for_position(f, f->sequence);
        assert_int_equal(mr_store_position(f->store, sender), f->sequence);
    }
    read_late_ns = 0;
    close_store(f);
    naive_fini(&naive);
}

static void the_series_come_back_too(void **state)
{
    struct fixture *f = *state;
    struct naive naive;
    uint32_t points[MR_SERIES_COUNT];

    naive_init(&naive, 45);
    open_store(f, MR_HOUR_NS);
    for (int i = 0; i < 30; i++)
        take(f, &naive);
    memcpy(points, mr_model_read_lock(f->model)->points, sizeof(points));
    mr_model_read_unlock(f->model);
    close_store(f);
    open_store(f, MR_HOUR_NS);
    assert_true(points[MR_SERIES_PATH] > 0 && points[MR_SERIES_ENTRY] > 0);
    assert_memory_equal(points, mr_model_read_lock(f->model)->points, sizeof(points));
    mr_model_read_unlock(f->model);
    close_store(f);
    naive_fini(&naive);
}

static void a_second_one_is_refused(void **state)
{
    struct fixture *f = *state;
    const struct mr_store_config config = config_of(f, MR_HOUR_NS);
    struct mr_error error = MR_ERROR_NONE;
    struct mr_model *model;
    struct mr_store *store;

    open_store(f, MR_HOUR_NS);
    assert_int_equal(mr_model_new(&MR_MODEL_LIMITS_DEFAULT, &model), MR_OK);
    assert_int_equal(mr_store_open(&config, model, &store, &error), MR_EADDR);
    assert_non_null(strstr(error.text, "in use by another master"));
    mr_model_free(model);
    close_store(f);
}

static void run_sql(const struct fixture *f, const char *text)
{
    char path[128];
    sqlite3 *db;

    snprintf(path, sizeof(path), "%s/%s", f->directory, MR_STORE_FILE);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void expect_load(const struct fixture *f, enum mr_status status, const char *word)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_model *model;

    assert_int_equal(mr_model_new(&MR_MODEL_LIMITS_DEFAULT, &model), MR_OK);
    assert_int_equal(mr_store_load(f->directory, model, &error), status);
    assert_non_null(strstr(error.text, word));
    mr_model_free(model);
}

/* One limit lower than what is there: the option that raises it is named. */
static void expect_load_with(const struct fixture *f, struct mr_model_limits lower,
                             const char *option)
{
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;
    struct mr_error error = MR_ERROR_NONE;
    struct mr_model *model;

    limits.sites = lower.sites ? lower.sites : limits.sites;
    limits.paths = lower.paths ? lower.paths : limits.paths;
    assert_int_equal(mr_model_new(&limits, &model), MR_OK);
    assert_int_equal(mr_store_load(f->directory, model, &error), MR_ELIMIT);
    assert_non_null(strstr(error.text, option));
    mr_model_free(model);
}

static void damage_and_other_versions_are_named(void **state)
{
    struct fixture *f = *state;
    struct naive naive;

    expect_load(f, MR_ENOTFOUND, "no store");
    naive_init(&naive, 46);
    open_store(f, MR_HOUR_NS);
    for (int i = 0; i < 5; i++)
        take(f, &naive);
    close_store(f);
    expect_load_with(f, (struct mr_model_limits){.sites = 1}, "--max-sites");
    expect_load_with(f, (struct mr_model_limits){.paths = 1}, "--max-paths");
    run_sql(f, "UPDATE path SET parent = 3000 WHERE idx = 2");
    expect_load(f, MR_EFORMAT, "table path");
    expect_load(f, MR_EFORMAT, "move its folder away");
    run_sql(f, "UPDATE path SET parent = NULL, site = 9999 WHERE idx = 2");
    expect_load(f, MR_EFORMAT, "table path");
    run_sql(f,
            "DELETE FROM path; UPDATE path_total SET histogram = x'ff' WHERE path = 1");
    expect_load(f, MR_EFORMAT, "table path_total");
    run_sql(f,
            "DELETE FROM path_total; DELETE FROM path_stat; DELETE FROM entry;"
            "DELETE FROM entry_stat; INSERT INTO journal VALUES(1, x'00', 1, 18, x'05')");
    expect_load(f, MR_EFORMAT, "");
    run_sql(f, "UPDATE meta SET value = 99 WHERE key = 'schema_version'");
    expect_load(f, MR_EVERSION, "schema version 99");
    naive_fini(&naive);
}

static bool is_failing(struct fixture *f)
{
    struct mr_store_stats stats;

    mr_store_stats(f->store, &stats);
    return stats.failing_ns > 0;
}

static void move_file(const struct fixture *f, const char *from, const char *to)
{
    char before[160], after[160];

    snprintf(before, sizeof(before), "%s/%s", f->directory, from);
    snprintf(after, sizeof(after), "%s/%s", f->directory, to);
    assert_int_equal(rename(before, after), 0);
}

/* What is written on it then nobody would find again. */
static void a_store_whose_file_is_gone_acknowledges_nothing(void **state)
{
    struct fixture *f = *state;
    struct mr_store_position position;
    struct naive naive;

    naive_init(&naive, 45);
    open_store(f, MR_HOUR_NS);
    take(f, &naive);
    wait_for_position(f, f->sequence);
    move_file(f, "millrace.sqlite", "elsewhere");
    take(f, &naive);
    for (int i = 0; i < 6000 && !is_failing(f); i++)
        usleep(10000);
    assert_true(is_failing(f));
    assert_false(mr_store_committed(f->store, &position));
    move_file(f, "elsewhere", "millrace.sqlite");
    wait_for_position(f, f->sequence);
    assert_false(is_failing(f));
    close_store(f);
    open_store(f, MR_HOUR_NS);
    check(&naive, f->model);
    close_store(f);
    naive_fini(&naive);
}

static void too_much_that_waits_is_refused(void **state)
{
    struct fixture *f = *state;
    const struct mr_store_config config = config_of(f, MR_HOUR_NS);
    uint64_t number, taken = 0;
    static uint8_t payload[1 << 20];

    assert_int_equal(mr_model_new(&MR_MODEL_LIMITS_DEFAULT, &f->model), MR_OK);
    assert_int_equal(mr_store_open(&config, f->model, &f->store, NULL), MR_OK);
    assert_true(mr_store_has_room(f->store, sizeof(payload)));
    while (mr_store_append(f->store, sender, taken + 1, MR_FRAME_DICT,
                           mr_span_of(payload, sizeof(payload)), &number) == MR_OK)
        taken++;
    assert_int_equal(taken, 63); /* 64 MiB with the rows' heads */
    assert_false(mr_store_has_room(f->store, sizeof(payload)));
    mr_store_close(f->store); /* never started: nothing is written */
    mr_model_free(f->model);
}

static const struct mr_id scope_id = {1, 1}, site_id = {2, 2};

static void take_frame(struct fixture *f, uint8_t type, struct mr_span payload)
{
    struct mr_error error = MR_ERROR_NONE;
    uint64_t number;

    if (mr_model_apply(f->model, sender, type, payload, &error) != MR_OK)
        fail_msg("%s", error.text);
    assert_int_equal(
        mr_store_append(f->store, sender, ++f->sequence, type, payload, &number), MR_OK);
    mr_model_set_journal(f->model, number);
    assert_int_equal(mr_model_publish(f->model), MR_OK);
}

static void take_counter_item(struct fixture *f, const char *name, const char *absent)
{
    const struct mr_dict_item item = {.kind = MR_DICT_SPAN_COUNTER,
                                      .span_counter = {.scope = scope_id,
                                                       .id = mr_id_span_counter(name),
                                                       .name = name,
                                                       .unit = "1",
                                                       .absent = absent}};
    uint8_t bytes[512];
    struct mr_dict_writer writer;

    mr_dict_writer_init(&writer, bytes, sizeof(bytes));
    assert_int_equal(mr_dict_put(&writer, &item), MR_OK);
    take_frame(f, MR_FRAME_DICT, mr_span_of(bytes, mr_dict_writer_finish(&writer)));
}

/* A path with a call of 3 page faults, two of them its own. */
static void take_counts(struct fixture *f)
{
    const struct mr_counter_stats stats = {
        .calls = 1, .backward = 2, .self = {2, 2, 2}, .total = {3, 3, 3}};
    struct mr_delta_writer w;

    mr_buffer_clear(&f->bytes);
    mr_delta_begin(&w, &f->bytes);
    mr_delta_head(&w, 1, 1);
    uint32_t site = mr_delta_site(&w, site_id), scope = mr_delta_scope(&w, scope_id);
    uint32_t path = mr_delta_path(&w, MR_DELTA_NONE, scope, site, 0);
    uint32_t counter = mr_delta_span_counter(&w, mr_id_span_counter("page-faults"));
    mr_delta_path_counter(&w, path, 1700000000, counter, &stats);
    take_frame(f, MR_FRAME_DELTA, mr_buffer_span(&f->bytes));
}

static void check_counts(struct mr_model *model, uint64_t deltas)
{
    const struct mr_model_root *root = mr_model_read_lock(model);
    const struct mr_counter_stats *stats = mr_model_counter_of_path(root, 0, 0);

    assert_int_equal(mr_model_count(root, MR_MODEL_SPAN_COUNTER), 2);
    assert_string_equal(mr_model_span_counter(root, 0)->name, "page-faults");
    assert_string_equal(mr_model_span_counter(root, 1)->name, "cycles");
    assert_int_equal(mr_model_count(root, MR_MODEL_COUNTER_NOTE), 2);
    assert_string_equal(mr_model_counter_note(root, 0)->absent, "");
    assert_string_equal(mr_model_counter_note(root, 1)->absent, "no such thing");
    assert_non_null(stats);
    assert_int_equal(stats->calls, deltas);
    assert_int_equal(stats->backward, 2 * deltas);
    assert_int_equal(stats->self.sum, 2 * deltas);
    assert_int_equal(stats->total.sum, 3 * deltas);
    assert_int_equal(stats->total.min, 3);
    assert_null(mr_model_counter_of_path(root, 0, 1)); /* absent, not 0 */
    mr_model_read_unlock(model);
}

static void counters_come_back_by_journal_and_by_checkpoint(void **state)
{
    struct fixture *f = *state;

    for (uint64_t round = 0; round < 4; round++) {
        open_store(f, round % 2 ? 1000000 : MR_HOUR_NS);
        if (round)
            check_counts(f->model, round);
        take_counts(f);
        take_counter_item(f, "page-faults", "");
        take_counter_item(f, "cycles", "no such thing");
        wait_for_position(f, f->sequence);
        check_counts(f->model, round + 1);
        close_store(f);
    }
}

static void take_note(struct fixture *f, const char *value, uint64_t version)
{
    const struct mr_dict_item item = {.kind = MR_DICT_NOTE,
                                      .note = {.about = scope_id,
                                               .site = site_id,
                                               .key = "k",
                                               .value = value,
                                               .version = version}};
    uint8_t bytes[512];
    struct mr_dict_writer writer;

    mr_dict_writer_init(&writer, bytes, sizeof(bytes));
    assert_int_equal(mr_dict_put(&writer, &item), MR_OK);
    take_frame(f, MR_FRAME_DICT, mr_span_of(bytes, mr_dict_writer_finish(&writer)));
}

static void check_note(struct mr_model *model, const char *value)
{
    const struct mr_model_root *root = mr_model_read_lock(model);

    assert_int_equal(mr_model_count(root, MR_MODEL_NOTE), 1);
    assert_string_equal(mr_model_note_of(root, scope_id, site_id, "k"), value);
    assert_null(mr_model_note_of(root, scope_id, site_id, "other"));
    assert_null(mr_model_note_of(root, site_id, scope_id, "k"));
    mr_model_read_unlock(model);
}

static void the_newest_note_comes_back_by_journal_and_by_checkpoint(void **state)
{
    struct fixture *f = *state;

    for (uint64_t round = 0; round < 4; round++) {
        char value[2] = {(char)('a' + round), '\0'}, old[2] = {(char)('a' + round - 1)};

        open_store(f, round % 2 ? 1000000 : MR_HOUR_NS);
        if (round)
            check_note(f->model, old);
        take_note(f, value, 10 + round);
        take_note(f, "stale", 10 + round);
        wait_for_position(f, f->sequence);
        check_note(f->model, value);
        close_store(f);
    }
}

/* What a millrace left that knew of no counters. */
static void a_store_without_tables_of_counters_is_read_and_goes_on(void **state)
{
    struct fixture *f = *state;
    struct mr_error error = MR_ERROR_NONE;
    struct mr_model *model;
    char path[128];
    sqlite3 *db;

    open_store(f, MR_HOUR_NS);
    close_store(f);
    snprintf(path, sizeof(path), "%s/%s", f->directory, MR_STORE_FILE);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "DROP TABLE span_counter; DROP TABLE counter_note;"
                                  "DROP TABLE path_counter",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(mr_model_new(&MR_MODEL_LIMITS_DEFAULT, &model), MR_OK);
    assert_int_equal(mr_store_load(f->directory, model, &error), MR_OK);
    mr_model_free(model);
    open_store(f, MR_HOUR_NS);
    take_counts(f);
    wait_for_position(f, f->sequence);
    close_store(f);
    open_store(f, MR_HOUR_NS);
    const struct mr_model_root *root = mr_model_read_lock(f->model);
    assert_int_equal(mr_model_counter_of_path(root, 0, 0)->calls, 1);
    mr_model_read_unlock(f->model);
    close_store(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_restart_brings_all_back_whatever_was_checkpointed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_committed_survives_a_crash_at_any_time,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_report_reads_a_store_that_is_in_use, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_commit_that_ends_while_one_looks_is_told,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_series_come_back_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_newest_note_comes_back_by_journal_and_by_checkpoint, set_up, tear_down),
        cmocka_unit_test_setup_teardown(counters_come_back_by_journal_and_by_checkpoint,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_store_without_tables_of_counters_is_read_and_goes_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_second_one_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damage_and_other_versions_are_named, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_store_whose_file_is_gone_acknowledges_nothing,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_much_that_waits_is_refused, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
