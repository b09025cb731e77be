/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "master/model.h"
#include "master/summary.h"
#include "naive.h"
#include "net/ids.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
/* after the four above */
#include <cmocka.h>

static const struct mr_id sender = {7, 7};

struct fixture {
    struct mr_model *model;
    struct mr_buffer bytes;
    struct mr_delta_writer w;
};

static void open_model(struct fixture *f, struct mr_model_limits limits)
{
    mr_model_thread_enter();
    assert_int_equal(mr_model_new(&limits, &f->model), MR_OK);
    mr_buffer_init(&f->bytes, 8 << 20);
}

static void close_model(struct fixture *f)
{
    mr_model_thread_leave();
    mr_model_free(f->model);
    mr_buffer_fini(&f->bytes);
}

static void begin(struct fixture *f, uint64_t created_s)
{
    mr_buffer_clear(&f->bytes);
    mr_delta_begin(&f->w, &f->bytes);
    mr_delta_head(&f->w, 1, created_s * MR_SECOND_NS);
}

static enum mr_status apply(struct fixture *f)
{
    assert_int_equal(mr_delta_status(&f->w), MR_OK);
    return mr_model_apply_delta(f->model, sender, mr_buffer_span(&f->bytes), NULL);
}

static struct mr_path_stats one_call(uint64_t self, uint64_t total)
{
    struct mr_path_stats stats = {
        .ok = 1, .self = {self, self, self}, .total = {total, total, total}};

    stats.histogram = MR_HISTOGRAM_EMPTY;
    assert_int_equal(mr_histogram_add(&stats.histogram, total, 1), MR_OK);
    return stats;
}

/* One call of a path of `depth` different sites, the first `first`. */
static void put_path(struct fixture *f, uint64_t first, uint32_t depth, uint64_t window)
{
    struct mr_path_stats stats = one_call(1, depth);
    uint32_t scope = mr_delta_scope(&f->w, (struct mr_id){1, 1}), path = MR_DELTA_NONE;

    for (uint32_t i = 0; i < depth; i++) {
        uint32_t site = mr_delta_site(&f->w, (struct mr_id){2, first + i});

        path = mr_delta_path(&f->w, path, i ? 0 : scope, site, 0);
    }
    mr_delta_path_stat(&f->w, path, window, &stats);
    mr_histogram_fini(&stats.histogram);
}

static void random_deltas_agree_with_the_naive_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct fixture f;
        struct naive naive;

        printf("seed %llu\n", (unsigned long long)seed);
        open_model(&f, MR_MODEL_LIMITS_DEFAULT);
        naive_init(&naive, seed);
        for (int i = 0; i < 60; i++) {
            naive_delta(&naive, &f.bytes);
            assert_int_equal(
                mr_model_apply_delta(f.model, sender, mr_buffer_span(&f.bytes), NULL),
                MR_OK);
            if (i % 7 == 0)
                assert_int_equal(mr_model_publish(f.model), MR_OK);
            if (i % 20 == 0) {
                assert_int_equal(mr_model_publish(f.model), MR_OK);
                naive_check(&naive, mr_model_read_lock(f.model));
                mr_model_read_unlock(f.model);
            }
        }
        assert_int_equal(mr_model_publish(f.model), MR_OK);
        naive_check(&naive, mr_model_read_lock(f.model));
        mr_model_read_unlock(f.model);
        naive_fini(&naive);
        close_model(&f);
    }
}

static void a_reader_keeps_its_moment(void **state)
{
    struct fixture f;

    (void)state;
    open_model(&f, MR_MODEL_LIMITS_DEFAULT);
    begin(&f, 1000);
    put_path(&f, 0, 3, 1000);
    assert_int_equal(apply(&f), MR_OK);
    assert_int_equal(mr_model_publish(f.model), MR_OK);
    const struct mr_model_root *root = mr_model_read_lock(f.model);
    for (int i = 0; i < 10; i++) {
        begin(&f, 1000);
        put_path(&f, 0, 3, 1000);
        put_path(&f, (uint64_t)(10 * i), 9, 1000);
        assert_int_equal(apply(&f), MR_OK);
        assert_int_equal(mr_model_publish(f.model), MR_OK);
    }
    assert_int_equal(mr_model_count(root, MR_MODEL_PATH), 3);
    assert_int_equal(mr_model_path_stat(root, 2)->stats.ok, 1);
    assert_int_equal(root->totals.ok, 1);
    mr_model_read_unlock(f.model);
    root = mr_model_read_lock(f.model);
    assert_int_equal(mr_model_path_stat(root, 2)->stats.ok, 11);
    mr_model_read_unlock(f.model);
    close_model(&f);
}

static void a_delta_that_is_cut_changes_nothing(void **state)
{
    struct fixture f;

    (void)state;
    open_model(&f, MR_MODEL_LIMITS_DEFAULT);
    begin(&f, 1000);
    put_path(&f, 0, 5, 1000);
    put_path(&f, 50, 5, 1000);
    for (size_t size = 1; size < f.bytes.size; size++) {
        struct mr_error error = MR_ERROR_NONE;
        enum mr_status status =
            mr_model_apply_delta(f.model, sender, mr_span_of(f.bytes.data, size), &error);

        if (status == MR_OK) /* cut between two items: a smaller delta */
            continue;
        assert_int_equal(status, MR_EFORMAT);
        assert_non_null(strstr(error.text, "delta"));
    }
    assert_int_equal(mr_model_publish(f.model), MR_OK);
    const struct mr_model_root *root = mr_model_read_lock(f.model);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_PATH); i++)
        sum += mr_model_path_stat(root, i)->stats.ok;
    assert_int_equal(sum, root->totals.ok);
    mr_model_read_unlock(f.model);
    close_model(&f);
}

static void limits_refuse_and_count(void **state)
{
    struct fixture f;
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;

    (void)state;
    limits.paths = 10;
    limits.sites = 12;
    open_model(&f, limits);
    begin(&f, 1000);
    put_path(&f, 0, 8, 1000);
    put_path(&f, 100, 8, 1000);
    assert_int_equal(apply(&f), MR_OK);
    assert_int_equal(mr_model_publish(f.model), MR_OK);
    const struct mr_model_root *root = mr_model_read_lock(f.model);
    assert_int_equal(mr_model_count(root, MR_MODEL_SITE), 12);
    assert_int_equal(mr_model_count(root, MR_MODEL_PATH), 10);
    assert_int_equal(root->refused[MR_MODEL_SITE], 4);
    assert_int_equal(root->refused[MR_MODEL_PATH], 6);
    assert_int_equal(root->refused[MR_MODEL_PATH_STAT], 1);
    assert_int_equal(root->totals.ok, 1);
    mr_model_read_unlock(f.model);
    close_model(&f);
}

static void put_stream(struct fixture *f, uint64_t source, uint32_t stream)
{
    const struct mr_ledger_entry entry = {
        .last = 100, .reduced = 5, .lost = {[MR_LOSS_BUDGET] = 2}};

    mr_delta_ledger(&f->w, mr_delta_source(&f->w, (struct mr_id){4, source}), stream,
                    &entry);
}

static void events_of_streams_past_the_limit_are_counted(void **state)
{
    struct fixture f;
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;
    struct mr_summary_past_limit past_limit;

    (void)state;
    limits.streams = 3;
    open_model(&f, limits);
    for (uint32_t i = 0; i < 10; i++) {
        begin(&f, 1000);
        put_stream(&f, 4, 1 + (uint32_t)i % 5);
        assert_int_equal(apply(&f), MR_OK);
    }
    assert_int_equal(mr_model_publish(f.model), MR_OK);
    const struct mr_model_root *root = mr_model_read_lock(f.model);
    mr_summary_make_past_limit(root, &past_limit);
    assert_int_equal(mr_model_count(root, MR_MODEL_STREAM), 3 + 1);
    assert_int_equal(mr_model_stream(root, 3)->stream, MR_MODEL_STREAMS_REST);
    assert_int_equal(mr_model_stream(root, 3)->entry.last, 0);
    assert_int_equal(mr_model_stream(root, 3)->entry.reduced, 4 * 5);
    assert_int_equal(mr_model_stream(root, 3)->entry.lost[MR_LOSS_BUDGET], 4 * 2);
    assert_int_equal(past_limit.events, 4 * 7);
    assert_int_equal(past_limit.source_events, 0);
    assert_int_equal(past_limit.calls, 0);
    assert_int_equal(past_limit.traces, 0);
    mr_model_read_unlock(f.model);
    close_model(&f);
}

static void a_stream_of_the_number_of_the_rest_is_of_the_rest(void **state)
{
    struct fixture f;
    struct mr_summary_past_limit past_limit;

    (void)state;
    open_model(&f, MR_MODEL_LIMITS_DEFAULT);
    begin(&f, 1000);
    put_stream(&f, 4, MR_MODEL_STREAMS_REST);
    assert_int_equal(apply(&f), MR_OK);
    assert_int_equal(mr_model_publish(f.model), MR_OK);
    const struct mr_model_root *root = mr_model_read_lock(f.model);
    mr_summary_make_past_limit(root, &past_limit);
    assert_int_equal(mr_model_stream(root, 0)->entry.last, 0);
    assert_int_equal(past_limit.events, 7);
    mr_model_read_unlock(f.model);
    close_model(&f);
}

static void events_of_sources_past_the_limit_are_counted(void **state)
{
    struct fixture f;
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;
    struct mr_summary_past_limit past_limit;

    (void)state;
    limits.sources = 2;
    open_model(&f, limits);
    for (uint64_t i = 0; i < 10; i++) {
        begin(&f, 1000);
        put_stream(&f, i % 5, 1);
        assert_int_equal(apply(&f), MR_OK);
    }
    assert_int_equal(mr_model_publish(f.model), MR_OK);
    const struct mr_model_root *root = mr_model_read_lock(f.model);
    mr_summary_make_past_limit(root, &past_limit);
    assert_int_equal(mr_model_count(root, MR_MODEL_STREAM), 2);
    assert_int_equal(past_limit.source_events, 6 * 7);
    assert_int_equal(past_limit.events, 0);
    mr_model_read_unlock(f.model);
    close_model(&f);
}

/* Traces of an entry point, and calls of its path: the path may find no room. */
static void put_entry(struct fixture *f, uint64_t site, uint64_t traces)
{
    const struct mr_entry_stats entry = {
        .traces = {[MR_COVERAGE_WHOLE] = traces, [MR_COVERAGE_INCOMPLETE] = 1}};
    const struct mr_path_stats stats = {
        .ok = traces, .failed = 2, .incomplete = 1, .histogram = MR_HISTOGRAM_EMPTY};
    uint32_t path =
        mr_delta_path(&f->w, MR_DELTA_NONE, mr_delta_scope(&f->w, (struct mr_id){1, 1}),
                      mr_delta_site(&f->w, (struct mr_id){2, site}), 0);

    mr_delta_path_stat(&f->w, path, 1000, &stats);
    mr_delta_entry_stat(&f->w, path, 1000, &entry);
}

static void calls_and_traces_of_paths_past_the_limit_are_counted(void **state)
{
    struct fixture f;
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;
    struct mr_summary_past_limit past_limit;

    (void)state;
    limits.paths = 2;
    open_model(&f, limits);
    for (uint64_t i = 0; i < 10; i++) {
        begin(&f, 1000);
        put_entry(&f, i % 5, 10);
        assert_int_equal(apply(&f), MR_OK);
    }
    assert_int_equal(mr_model_publish(f.model), MR_OK);
    const struct mr_model_root *root = mr_model_read_lock(f.model);
    mr_summary_make_past_limit(root, &past_limit);
    assert_int_equal(root->totals.ok, 4 * 10);
    assert_int_equal(past_limit.calls, 6 * 13);
    assert_int_equal(past_limit.traces, 6 * 11);
    mr_model_read_unlock(f.model);
    close_model(&f);
}

static void put_site(struct fixture *f, const char *name, enum mr_site_quality quality)
{
    struct mr_dict_writer writer;
    uint8_t bytes[512];
    const struct mr_dict_item item = {.kind = MR_DICT_SITE,
                                      .site = {.id = {2, 0},
                                               .module = "prog",
                                               .offset = 0x40,
                                               .name = name,
                                               .file = "",
                                               .quality = quality}};

    mr_dict_writer_init(&writer, bytes, sizeof(bytes));
    assert_int_equal(mr_dict_put(&writer, &item), MR_OK);
    size_t size = mr_dict_writer_finish(&writer);
    assert_int_equal(mr_model_apply_dict(f->model, mr_span_of(bytes, size), NULL), MR_OK);
    assert_int_equal(mr_model_publish(f->model), MR_OK);
}

static void check_label(struct fixture *f, const char *expected)
{
    char text[MR_SITE_LABEL_SIZE];
    const struct mr_model_root *root = mr_model_read_lock(f->model);

    assert_string_equal(mr_model_site_label(mr_model_site(root, 0), text), expected);
    assert_int_equal(mr_model_count(root, MR_MODEL_SITE), 1);
    mr_model_read_unlock(f->model);
}

static void names_come_late_and_only_get_better(void **state)
{
    struct fixture f;

    (void)state;
    open_model(&f, MR_MODEL_LIMITS_DEFAULT);
    begin(&f, 1000);
    put_path(&f, 0, 1, 1000);
    assert_int_equal(apply(&f), MR_OK);
    assert_int_equal(mr_model_publish(f.model), MR_OK);
    check_label(&f, "site 00000000000000020000000000000000");
    put_site(&f, "", MR_QUALITY_OFFSET);
    check_label(&f, "prog+0x40");
    put_site(&f, "debug", MR_QUALITY_DEBUG);
    check_label(&f, "debug");
    put_site(&f, "symbol", MR_QUALITY_SYMBOL);
    check_label(&f, "debug");
    close_model(&f);
}

static void put_node(struct fixture *f, uint64_t repeat)
{
    uint8_t payload[256];
    struct mr_buffer children;
    struct mr_dict_writer writer;
    struct mr_dict_item item = {.kind = MR_DICT_NODE,
                                .node = {.id = {5, 5}, .site = {2, 0}}};
    const struct mr_node_child child = {.id = {6, 6}, .repeat = repeat};

    mr_buffer_init(&children, 256);
    assert_int_equal(mr_node_child_put(&children, &child), MR_OK);
    item.node.children = mr_buffer_span(&children);
    mr_dict_writer_init(&writer, payload, sizeof(payload));
    assert_int_equal(mr_dict_put(&writer, &item), MR_OK);
    assert_int_equal(
        mr_model_apply_dict(f->model, mr_span_of(payload, mr_dict_writer_finish(&writer)),
                            NULL),
        MR_OK);
    mr_buffer_fini(&children);
}

static void two_nodes_of_one_id_are_a_collision(void **state)
{
    struct fixture f;
    const struct mr_model_root *root;

    (void)state;
    open_model(&f, MR_MODEL_LIMITS_DEFAULT);
    put_node(&f, 1);
    put_node(&f, 1);
    put_node(&f, 2);
    assert_int_equal(mr_model_publish(f.model), MR_OK);
    root = mr_model_read_lock(f.model);
    assert_int_equal(root->collisions, 1);
    assert_int_equal(mr_model_count(root, MR_MODEL_NODE), 1);
    mr_model_read_unlock(f.model);
    close_model(&f);
}

static void the_series_are_a_ring_of_windows(void **state)
{
    struct fixture f;
    const uint64_t start = 1700000040;

    (void)state;
    open_model(&f, MR_MODEL_LIMITS_DEFAULT);
    for (uint64_t minute = 0; minute < 70; minute++) {
        begin(&f, start + 60 * minute);
        put_path(&f, 0, 1, start + 60 * minute);
        assert_int_equal(apply(&f), MR_OK);
        assert_int_equal(mr_model_publish(f.model), MR_OK);
    }
    begin(&f, start + 60 * 70);
    put_path(&f, 0, 1, start);               /* gone from the ring */
    put_path(&f, 0, 1, start + 60 * 69 + 5); /* same minute as the newest */
    put_path(&f, 0, 1, start + 60 * 200);    /* too far in the future */
    assert_int_equal(apply(&f), MR_OK);
    assert_int_equal(mr_model_publish(f.model), MR_OK);
    const struct mr_model_root *root = mr_model_read_lock(f.model);
    assert_int_equal(root->late_points, 1);
    assert_int_equal(root->refused_points, 1);
    assert_int_equal(root->points[MR_SERIES_PATH], 60);
    assert_null(mr_model_window_at(root, MR_SERIES_PATH, start + 60 * 9));
    const struct mr_model_window *newest =
        mr_model_window_at(root, MR_SERIES_PATH, start + 60 * 69 + 30);
    assert_non_null(newest);
    const struct mr_model_path_stat *point = mr_cow_get(&newest->points, 0);
    assert_int_equal(point->stats.ok, 2);
    assert_int_equal(root->totals.ok, 73); /* whatever the windows say */
    mr_model_read_unlock(f.model);
    close_model(&f);
}

/* A worker whose clock is wrong: windows of all others would be late for ever. */
static void a_sender_whose_clock_is_ahead_takes_no_windows_from_others(void **state)
{
    struct fixture f;
    const uint64_t now_s = mr_clock_realtime_ns() / MR_SECOND_NS, years_s = 100000000;

    (void)state;
    open_model(&f, MR_MODEL_LIMITS_DEFAULT);
    begin(&f, now_s + years_s);
    put_path(&f, 0, 1, now_s + years_s);
    assert_int_equal(apply(&f), MR_OK);
    begin(&f, 0); /* it tells no time */
    put_path(&f, 0, 1, now_s + years_s);
    assert_int_equal(apply(&f), MR_OK);
    begin(&f, now_s);
    put_path(&f, 0, 1, now_s);
    assert_int_equal(apply(&f), MR_OK);
    assert_int_equal(mr_model_publish(f.model), MR_OK);
    const struct mr_model_root *root = mr_model_read_lock(f.model);
    assert_int_equal(root->refused_points, 2);
    assert_int_equal(root->late_points, 0);
    assert_non_null(mr_model_window_at(root, MR_SERIES_PATH, now_s));
    assert_int_equal(root->totals.ok, 3);
    mr_model_read_unlock(f.model);
    close_model(&f);
}

static void a_full_series_forgets_the_oldest_window(void **state)
{
    struct fixture f;
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;

    (void)state;
    limits.series_points = 20;
    open_model(&f, limits);
    for (uint64_t minute = 0; minute < 8; minute++) {
        begin(&f, 6000 + 60 * minute);
        for (uint64_t i = 0; i < 5; i++)
            put_path(&f, 10 * i, 1, 6000 + 60 * minute);
        assert_int_equal(apply(&f), MR_OK);
        assert_int_equal(mr_model_publish(f.model), MR_OK);
    }
    const struct mr_model_root *root = mr_model_read_lock(f.model);
    assert_int_equal(root->points[MR_SERIES_PATH], 20);
    assert_int_equal(root->refused_points, 0);
    assert_int_equal(mr_model_window_at(root, MR_SERIES_PATH, 6000)->count, 0);
    assert_int_equal(mr_model_window_at(root, MR_SERIES_PATH, 6000 + 60 * 7)->count, 5);
    mr_model_read_unlock(f.model);
    close_model(&f);
}

static void what_a_full_series_has_grows_on_in_its_place(void **state)
{
    struct fixture f;
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;

    (void)state;
    limits.series_points = 6;
    open_model(&f, limits);
    begin(&f, 6000);
    put_path(&f, 0, 1, 6000); /* the window before: stays while nothing needs its room */
    assert_int_equal(apply(&f), MR_OK);
    for (int times = 0; times < 3; times++) {
        begin(&f, 6060);
        for (uint64_t i = 0; i < 5; i++)
            put_path(&f, 10 * i, 1, 6060);
        assert_int_equal(apply(&f), MR_OK);
    }
    assert_int_equal(mr_model_publish(f.model), MR_OK);
    const struct mr_model_root *root = mr_model_read_lock(f.model);
    assert_int_equal(mr_model_window_at(root, MR_SERIES_PATH, 6000)->count, 1);
    mr_model_read_unlock(f.model);
    begin(&f, 6060);
    for (uint64_t i = 0; i < 7; i++) /* the sixth has the room of the window before */
        put_path(&f, 10 * i, 1, 6060);
    assert_int_equal(apply(&f), MR_OK);
    begin(&f, 6060);
    for (uint64_t i = 0; i < 7; i++)
        put_path(&f, 10 * i, 1, 6060);
    assert_int_equal(apply(&f), MR_OK);
    assert_int_equal(mr_model_publish(f.model), MR_OK);
    root = mr_model_read_lock(f.model);
    const struct mr_model_window *window = mr_model_window_at(root, MR_SERIES_PATH, 6060);
    assert_int_equal(root->points[MR_SERIES_PATH], 6);
    assert_int_equal(root->refused_points, 2); /* the seventh, twice */
    for (uint32_t i = 0; i < 6; i++) {
        const struct mr_model_path_stat *point = mr_cow_get(&window->points, i);

        assert_int_equal(point->stats.ok, i < 5 ? 5 : 2);
    }
    mr_model_read_unlock(f.model);
    close_model(&f);
}

/* As of one executable under two names. */
static void put_shape(struct fixture *f, uint64_t scope_number)
{
    struct mr_shape_stats stats = {.ok = 1,
                                   .calls = 1,
                                   .first_ns = 1000 * MR_SECOND_NS,
                                   .last_ns = 1000 * MR_SECOND_NS,
                                   .time = {5, 5, 5}};
    uint32_t scope = mr_delta_scope(&f->w, (struct mr_id){1, scope_number});
    uint32_t site = mr_delta_site(&f->w, (struct mr_id){2, 2});
    uint32_t path = mr_delta_path(&f->w, MR_DELTA_NONE, scope, site, 0);

    stats.histogram = MR_HISTOGRAM_EMPTY;
    assert_int_equal(mr_histogram_add(&stats.histogram, 5, 1), MR_OK);
    mr_delta_shape_stat(&f->w, mr_delta_shape(&f->w, scope, path, (struct mr_id){3, 3}),
                        1000, &stats);
    mr_histogram_fini(&stats.histogram);
}

static void a_shape_is_found_in_every_scope_that_has_it(void **state)
{
    struct fixture f;
    uint32_t found = 0;

    (void)state;
    open_model(&f, MR_MODEL_LIMITS_DEFAULT);
    for (uint64_t scope = 1; scope <= 3; scope++) {
        begin(&f, 1000);
        put_shape(&f, scope);
        assert_int_equal(apply(&f), MR_OK);
        assert_int_equal(mr_model_publish(f.model), MR_OK);
    }
    const struct mr_model_root *root = mr_model_read_lock(f.model);
    for (uint32_t i = mr_model_find_shape(root, (struct mr_id){3, 3}); i != MR_MODEL_NONE;
         i = mr_model_shape(root, i)->next_same)
        found++;
    assert_int_equal(found, 3);
    mr_model_read_unlock(f.model);
    close_model(&f);
}

/* A payload of a delta made so long after the first; of `open` traces of the entry point `site`, or none. */
static void tell_open(struct fixture *f, uint64_t after_ns, uint64_t site, uint64_t open)
{
    const struct mr_open_stats stats = {.count = open, .ages = {open}, .oldest_ns = 5};
    uint32_t path;

    mr_buffer_clear(&f->bytes);
    mr_delta_begin(&f->w, &f->bytes);
    mr_delta_head(&f->w, 1, 1000 * MR_SECOND_NS + after_ns);
    path =
        mr_delta_path(&f->w, MR_DELTA_NONE, mr_delta_scope(&f->w, (struct mr_id){1, 1}),
                      mr_delta_site(&f->w, (struct mr_id){2, site}), 0);
    if (open)
        mr_delta_open(&f->w, path, path, &stats);
    assert_int_equal(apply(f), MR_OK);
    assert_int_equal(mr_model_publish(f->model), MR_OK);
}

/* Of all entry points. */
static uint64_t open_now(const struct fixture *f)
{
    const struct mr_model_root *root = mr_model_read_lock(f->model);
    uint64_t now_ns = mr_clock_realtime_ns(), count = 0;

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_OPEN); i++)
        if (mr_model_open_is_current(root, mr_model_open(root, i), now_ns))
            count += mr_model_open(root, i)->stats.count;
    mr_model_read_unlock(f->model);
    return count;
}

/* A worker that ends says so right behind its last delta. */
static void the_next_delta_ends_what_it_does_not_tell_of_however_soon_it_comes(
    void **state)
{
    struct fixture f;

    (void)state;
    open_model(&f, MR_MODEL_LIMITS_DEFAULT);
    tell_open(&f, 0, 1, 2);
    tell_open(&f, 0, 2, 3); /* more of the same delta */
    assert_int_equal(open_now(&f), 5);
    tell_open(&f, MR_MILLISECOND_NS, 2, 1);
    assert_int_equal(open_now(&f), 1);
    tell_open(&f, 2 * MR_MILLISECOND_NS, 2, 0);
    assert_int_equal(open_now(&f), 0);
    close_model(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_deltas_agree_with_the_naive_model),
        cmocka_unit_test(a_reader_keeps_its_moment),
        cmocka_unit_test(a_delta_that_is_cut_changes_nothing),
        cmocka_unit_test(limits_refuse_and_count),
        cmocka_unit_test(calls_and_traces_of_paths_past_the_limit_are_counted),
        cmocka_unit_test(events_of_sources_past_the_limit_are_counted),
        cmocka_unit_test(a_stream_of_the_number_of_the_rest_is_of_the_rest),
        cmocka_unit_test(events_of_streams_past_the_limit_are_counted),
        cmocka_unit_test(names_come_late_and_only_get_better),
        cmocka_unit_test(two_nodes_of_one_id_are_a_collision),
        cmocka_unit_test(the_series_are_a_ring_of_windows),
        cmocka_unit_test(a_sender_whose_clock_is_ahead_takes_no_windows_from_others),
        cmocka_unit_test(a_full_series_forgets_the_oldest_window),
        cmocka_unit_test(what_a_full_series_has_grows_on_in_its_place),
        cmocka_unit_test(a_shape_is_found_in_every_scope_that_has_it),
        cmocka_unit_test(
            the_next_delta_ends_what_it_does_not_tell_of_however_soon_it_comes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
