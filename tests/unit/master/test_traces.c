/* SPDX-License-Identifier: Apache-2.0 */
/* Exemplars and paths of a shape in the model and the store: which ones stay, and that they come back. */
#include "base/clock.h"
#include "base/compiler.h"
#include "master/model.h"
#include "master/store.h"
#include "net/delta.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* after the four above */
#include <cmocka.h>

#define TRACES 60u
#define SHAPES 12u

static const struct mr_id sender = {7, 7};

struct trace {
    uint64_t start_ns, ns, event;
    uint32_t shape; /* SHAPES: of none */
    enum mr_exemplar_status status;
    uint64_t request; /* that it answers; 0: none */
};

static struct trace trace_of(uint32_t i)
{
    return (struct trace){.start_ns = 1000 + i * 7919 % 101,
                          .ns = 10 + i * 31 % 50,
                          .event = 2 * (uint64_t)i,
                          .shape = i % (SHAPES + 1),
                          .status = (enum mr_exemplar_status)(i % 3)};
}

/* A payload with one trace, and with a call of 5 ns on the paths of its shape. */
static struct mr_span payload_of(struct mr_buffer *bytes, const struct trace *trace)
{
    const struct mr_exemplar_call calls[] = {
        {.total_ns = trace->ns, .elided_calls = 4, .elided_ns = 3},
        {.start_ns = 1, .total_ns = 2, .site = 1, .depth = 1, .flags = 1}};
    const struct mr_exemplar exemplar = {.why = MR_EXEMPLAR_ALL,
                                         .status = trace->status,
                                         .stream = 1,
                                         .before = trace->event,
                                         .start_ns = trace->start_ns,
                                         .calls = 6,
                                         .call_count = 2,
                                         .items = calls};
    const struct mr_shape_path_stats stats = {1, 0, {5, 5, 5}, {5, 5, 5}};
    uint32_t root, inner, scope, source, shape = MR_DELTA_NONE;
    struct mr_delta_writer w;

    mr_buffer_clear(bytes);
    mr_delta_begin(&w, bytes);
    mr_delta_head(&w, 1, 1);
    (void)mr_delta_site(&w, (struct mr_id){1, 1});
    (void)mr_delta_site(&w, (struct mr_id){2, 2});
    scope = mr_delta_scope(&w, (struct mr_id){3, 3});
    source = mr_delta_source(&w, (struct mr_id){4, 4});
    root = mr_delta_path(&w, MR_DELTA_NONE, scope, 0, 0);
    inner = mr_delta_path(&w, root, 0, 1, 0);
    if (trace->shape < SHAPES) {
        shape = mr_delta_shape(&w, scope, root, (struct mr_id){50 + trace->shape, 5});
        mr_delta_shape_path(&w, shape, inner, &stats);
    }
    if (trace->request)
        mr_delta_asked(&w, (struct mr_id){6, trace->request}, 2, root, shape, source,
                       &exemplar);
    else
        mr_delta_exemplar(&w, root, shape, source, &exemplar);
    assert_int_equal(mr_delta_status(&w), MR_OK);
    return mr_buffer_span(bytes);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* A line per exemplar, sorted. */
static char *text_of(struct mr_model *model)
{
    const struct mr_model_root *root = mr_model_read_lock(model);
    uint32_t count = mr_model_count(root, MR_MODEL_EXEMPLAR);
    char *text = calloc(count + 1, 100), *at = text;
    char(*lines)[100] = calloc(count + 1, sizeof(*lines));

    assert_true(text && lines);
    for (uint32_t i = 0; i < count; i++) {
        const struct mr_model_exemplar *row = mr_model_exemplar(root, i);

        assert_int_equal(row->exemplar.call_count, 2);
        assert_int_equal(row->exemplar.items[0].elided_calls, 4);
        assert_int_equal(row->exemplar.items[1].depth, 1);
        assert_int_equal(row->exemplar.items[1].site, 1);
        assert_int_equal(row->exemplar.calls, 6);
        assert_int_equal(row->exemplar.source.hi, 4);
        snprintf(
            lines[i], sizeof(lines[i]),
            "shape %d why %u status %d start %u ns %u event %u",
            row->shape == MR_MODEL_NONE ? -1
                                        : (int)mr_model_shape(root, row->shape)->id.hi,
            row->exemplar.why, (int)row->exemplar.status,
            (unsigned)row->exemplar.start_ns, (unsigned)mr_exemplar_ns(&row->exemplar),
            (unsigned)row->exemplar.before);
    }
    mr_model_read_unlock(model);
    qsort(lines, count, sizeof(*lines), by_text);
    for (uint32_t i = 0; i < count; i++)
        at += sprintf(at, "%s\n", lines[i]);
    free(lines);
    return text;
}

static void apply(struct mr_model *model, const struct trace *trace)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_buffer bytes;

    mr_buffer_init(&bytes, 1 << 20);
    if (mr_model_apply_delta(model, sender, payload_of(&bytes, trace), &error) != MR_OK)
        fail_msg("%s", error.text);
    mr_buffer_fini(&bytes);
}

static char *run_in_order(uint32_t step, uint32_t exemplars)
{
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;
    struct mr_model *model;
    char *text;

    limits.exemplars = exemplars;
    assert_int_equal(mr_model_new(&limits, &model), MR_OK);
    for (uint32_t i = 0; i < TRACES; i++) {
        const struct trace trace = trace_of(i * step % TRACES);

        apply(model, &trace);
    }
    assert_int_equal(mr_model_publish(model), MR_OK);
    text = text_of(model);
    mr_model_free(model);
    return text;
}

static uint32_t lines_of(const char *text)
{
    uint32_t count = 0;

    for (; *text; text++)
        count += *text == '\n';
    return count;
}

static void the_same_exemplars_stay_in_whatever_order_they_come(void **state)
{
    static const uint32_t places[] = {1, 5, 100}, counts[] = {2, 10, 2 * (SHAPES + 2)};

    (void)state;
    for (int i = 0; i < 3; i++) {
        char *expected = run_in_order(1, places[i]);

        assert_int_equal(lines_of(expected), counts[i]);
        for (uint32_t step = 7; step < 60; step++) {
            char *actual;

            if (step % 2 == 0 || step % 3 == 0 || step % 5 == 0)
                continue;
            actual = run_in_order(step, places[i]);
            assert_string_equal(actual, expected);
            free(actual);
        }
        free(expected);
    }
}

static void past_the_bytes_they_are_refused_and_counted(void **state)
{
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;
    const struct trace one = trace_of(1), two = trace_of(2);
    const struct mr_model_root *root;
    struct mr_model *model;

    (void)state;
    limits.exemplar_bytes = 4 * sizeof(struct mr_exemplar_call);
    assert_int_equal(mr_model_new(&limits, &model), MR_OK);
    apply(model, &one);
    apply(model, &two);
    assert_int_equal(mr_model_publish(model), MR_OK);
    root = mr_model_read_lock(model);
    assert_int_equal(mr_model_count(root, MR_MODEL_EXEMPLAR), 2);
    assert_int_equal(root->refused[MR_MODEL_EXEMPLAR], 2);
    mr_model_read_unlock(model);
    mr_model_free(model);
}

/* Whatever came before: a slower one of the same shape needs no more than the slowest had. */
static void past_the_bytes_a_better_one_takes_the_room_of_what_it_replaces(void **state)
{
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;
    const struct trace first = {.start_ns = 10, .ns = 20},
                       slower = {.start_ns = 11, .ns = 30};
    const struct mr_model_root *root;
    struct mr_model *model;

    (void)state;
    limits.exemplar_bytes = 4 * sizeof(struct mr_exemplar_call);
    assert_int_equal(mr_model_new(&limits, &model), MR_OK);
    apply(model, &first);
    apply(model, &slower);
    assert_int_equal(mr_model_publish(model), MR_OK);
    root = mr_model_read_lock(model);
    assert_int_equal(mr_model_count(root, MR_MODEL_EXEMPLAR), 2);
    assert_int_equal(mr_exemplar_ns(&mr_model_exemplar(root, 0)->exemplar), 20);
    assert_int_equal(mr_exemplar_ns(&mr_model_exemplar(root, 1)->exemplar), 30);
    assert_int_equal(root->refused[MR_MODEL_EXEMPLAR], 0);
    mr_model_read_unlock(model);
    mr_model_free(model);
}

struct told {
    uint32_t count;
    uint64_t requests, starts; /* summed */
};

static bool on_asked(void *context, struct mr_id request,
                     const struct mr_exemplar *exemplar, struct mr_exemplar *gone)
{
    struct told *told = context;

    assert_int_equal(exemplar->why, MR_EXEMPLAR_ASKED);
    assert_int_equal(exemplar->source.hi, 4);
    told->count++;
    told->requests += request.lo;
    told->starts += exemplar->start_ns;
    MR_UNUSED(gone);
    return true;
}

/* They do not compete with others, nor by shape: the latest have the places. */
static void answers_have_places_of_their_own_and_the_latest_stay(void **state)
{
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;
    const struct trace best = {.start_ns = 1, .ns = 100, .shape = SHAPES};
    struct told told = {.count = 0};
    struct mr_model *model;
    char *text;

    (void)state;
    limits.exemplars = 2;
    assert_int_equal(mr_model_new(&limits, &model), MR_OK);
    mr_model_on_asked(model, on_asked, &told);
    apply(model, &best);
    for (uint64_t i = 0; i < 8; i++) {
        const struct trace answer = {.start_ns = 10 + i * 3 % 4,
                                     .ns = 20,
                                     .event = i % 4,
                                     .shape = SHAPES,
                                     .request = 5};

        apply(model, &answer); /* each of four comes twice */
    }
    assert_int_equal(mr_model_publish(model), MR_OK);
    text = text_of(model);
    assert_string_equal(text, "shape -1 why 1 status 0 start 1 ns 100 event 0\n"
                              "shape -1 why 2 status 0 start 1 ns 100 event 0\n"
                              "shape -1 why 4 status 0 start 12 ns 20 event 2\n"
                              "shape -1 why 4 status 0 start 13 ns 20 event 1\n");
    assert_int_equal(told.count, 8);
    assert_int_equal(told.requests, 8 * 5);
    assert_int_equal(told.starts, 2 * (10 + 11 + 12 + 13));
    free(text);
    mr_model_free(model);
}

static void one_of_a_site_that_was_refused_is_refused_and_nobody_is_told(void **state)
{
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;
    const struct trace answer = {.start_ns = 10, .ns = 20, .shape = SHAPES, .request = 5};
    const struct trace other = {.start_ns = 10, .ns = 20, .shape = SHAPES};
    struct told told = {.count = 0};
    const struct mr_model_root *root;
    struct mr_model *model;

    (void)state;
    limits.sites = 1;
    assert_int_equal(mr_model_new(&limits, &model), MR_OK);
    mr_model_on_asked(model, on_asked, &told);
    apply(model, &answer);
    apply(model, &other);
    assert_int_equal(mr_model_publish(model), MR_OK);
    root = mr_model_read_lock(model);
    assert_int_equal(mr_model_count(root, MR_MODEL_EXEMPLAR), 0);
    assert_int_equal(root->refused[MR_MODEL_EXEMPLAR], 2);
    mr_model_read_unlock(model);
    assert_int_equal(told.count, 0);
    mr_model_free(model);
}

/* Room for two calls and a root: the oldest answer keeps its root alone, then there is none for a third. */
static void past_the_bytes_the_oldest_answers_keep_their_root_alone(void **state)
{
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;
    const struct mr_model_root *root;
    struct mr_model *model;

    (void)state;
    limits.exemplar_bytes = 3 * sizeof(struct mr_exemplar_call);
    assert_int_equal(mr_model_new(&limits, &model), MR_OK);
    for (uint64_t i = 0; i < 2; i++) {
        const struct trace answer = {
            .start_ns = 10 + i, .ns = 20, .event = i, .shape = SHAPES, .request = 5};

        apply(model, &answer);
    }
    assert_int_equal(mr_model_publish(model), MR_OK);
    root = mr_model_read_lock(model);
    assert_int_equal(mr_model_count(root, MR_MODEL_EXEMPLAR), 2);
    assert_int_equal(mr_model_exemplar(root, 0)->exemplar.call_count, 1);
    assert_int_equal(mr_model_exemplar(root, 0)->exemplar.items[0].elided_calls, 5);
    assert_int_equal(mr_model_exemplar(root, 0)->exemplar.items[0].elided_ns, 5);
    assert_int_equal(mr_model_exemplar(root, 1)->exemplar.call_count, 2);
    assert_int_equal(root->refused[MR_MODEL_EXEMPLAR], 0);
    mr_model_read_unlock(model);
    mr_model_free(model);
}

/* One that begins at 50 answers nobody, and 20 takes the place of 30. */
static bool by_start(void *context, struct mr_id request,
                     const struct mr_exemplar *exemplar, struct mr_exemplar *gone)
{
    MR_UNUSED(context);
    MR_UNUSED(request);
    if (exemplar->start_ns == 20) {
        *gone = *exemplar;
        gone->start_ns = 30;
    }
    return exemplar->start_ns != 50;
}

/* There is room for the calls of three, and a root. */
static void what_answers_nobody_takes_no_room_of_what_does(void **state)
{
    static const uint64_t starts[] = {10, 30, 50, 20, 60};
    static const uint64_t kept[][2] = {{10, 2}, {30, 1}, {20, 2}, {60, 2}};
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;
    const struct mr_model_root *root;
    struct mr_model *model;

    (void)state;
    limits.exemplar_bytes = 7 * sizeof(struct mr_exemplar_call);
    assert_int_equal(mr_model_new(&limits, &model), MR_OK);
    mr_model_on_asked(model, by_start, NULL);
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
        const struct trace answer = {
            .start_ns = starts[i], .ns = 20, .shape = SHAPES, .request = 5};

        apply(model, &answer);
    }
    assert_int_equal(mr_model_publish(model), MR_OK);
    root = mr_model_read_lock(model);
    assert_int_equal(mr_model_count(root, MR_MODEL_EXEMPLAR), 4);
    for (uint32_t i = 0; i < 4; i++) {
        const struct mr_exemplar *exemplar = &mr_model_exemplar(root, i)->exemplar;

        assert_int_equal(exemplar->start_ns, kept[i][0]);
        assert_int_equal(exemplar->call_count, kept[i][1]);
    }
    assert_int_equal(root->refused[MR_MODEL_EXEMPLAR], 0);
    mr_model_read_unlock(model);
    mr_model_free(model);
}

/* Asked for, where its root alone is left, and the first of its shape, with its calls. */
static void a_trace_is_found_where_most_of_its_calls_are(void **state)
{
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;
    const struct trace first = {.start_ns = 10, .ns = 20, .shape = SHAPES};
    const struct mr_model_exemplar *found;
    const struct mr_model_root *root;
    struct mr_model *model;

    (void)state;
    limits.exemplar_bytes = 3 * sizeof(struct mr_exemplar_call);
    assert_int_equal(mr_model_new(&limits, &model), MR_OK);
    for (uint64_t i = 0; i < 2; i++) {
        struct trace answer = first;

        answer.start_ns += i;
        answer.request = 5;
        apply(model, &answer);
    }
    apply(model, &first);
    assert_int_equal(mr_model_publish(model), MR_OK);
    root = mr_model_read_lock(model);
    found = mr_model_exemplar(root, 0);
    assert_int_equal(found->exemplar.call_count, 1);
    found = mr_model_find_exemplar(root, mr_model_exemplar_id(&found->exemplar));
    assert_int_equal(found->exemplar.start_ns, 10);
    assert_int_equal(found->exemplar.why, MR_EXEMPLAR_FIRST);
    assert_int_equal(found->exemplar.call_count, 2);
    assert_null(mr_model_find_exemplar(root, (struct mr_id){1, 1}));
    mr_model_read_unlock(model);
    mr_model_free(model);
}

struct fixture {
    char folder[64], directory[80];
    struct mr_model *model;
    struct mr_store *store;
};

static void open_store(struct fixture *f, uint64_t checkpoint_ns)
{
    const struct mr_store_config config = {.directory = f->directory,
                                           .sync = MR_STORE_SYNC_NORMAL,
                                           .commit_interval_ns = 1000000,
                                           .checkpoint_interval_ns = checkpoint_ns,
                                           .checkpoint_bytes = 1 << 30};
    struct mr_error error = MR_ERROR_NONE;

    assert_int_equal(mr_model_new(&MR_MODEL_LIMITS_DEFAULT, &f->model), MR_OK);
    if (mr_store_open(&config, f->model, &f->store, &error) != MR_OK)
        fail_msg("%s", error.text);
    assert_int_equal(mr_store_start(f->store, &error), MR_OK);
}

static void close_store(struct fixture *f)
{
    assert_int_equal(mr_store_stop(f->store), MR_OK);
    mr_store_close(f->store);
    mr_model_free(f->model);
}

static void check_paths(struct mr_model *model, uint64_t traces)
{
    const struct mr_model_root *root = mr_model_read_lock(model);
    uint64_t ok = 0, sum_ns = 0;

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_SHAPE_PATH); i++) {
        const struct mr_model_shape_path *row = mr_model_shape_path(root, i);

        assert_int_equal(row->path, 1);
        ok += row->stats.ok;
        sum_ns += row->stats.total.sum;
        assert_int_equal(row->stats.total.max, 5);
    }
    assert_int_equal(ok, traces);
    assert_int_equal(sum_ns, 5 * traces);
    mr_model_read_unlock(model);
}

/* Rounds end with and without a checkpoint in between: by table and by journal. */
static void they_come_back_by_journal_and_by_checkpoint(void **state)
{
    struct fixture *f = *state;
    uint64_t sequence = 0, traces = 0;
    struct mr_buffer bytes;
    char *before = NULL;

    mr_buffer_init(&bytes, 1 << 20);
    for (uint32_t round = 0; round < 4; round++) {
        open_store(f, round % 2 ? 1000000 : MR_HOUR_NS);
        if (before) {
            char *after = text_of(f->model);

            assert_string_equal(after, before);
            free(after);
            free(before);
        }
        check_paths(f->model, traces);
        for (uint32_t i = round; i < TRACES; i += 4) {
            struct trace trace = trace_of(i);
            struct mr_span payload;
            uint64_t number;

            trace.request = i % 5 == 0;
            payload = payload_of(&bytes, &trace);
            traces += trace.shape < SHAPES;
            assert_int_equal(mr_model_apply_delta(f->model, sender, payload, NULL),
                             MR_OK);
            assert_int_equal(mr_store_append(f->store, sender, ++sequence, MR_FRAME_DELTA,
                                             payload, &number),
                             MR_OK);
            mr_model_set_journal(f->model, number);
            assert_int_equal(mr_model_publish(f->model), MR_OK);
        }
        before = text_of(f->model);
        close_store(f);
    }
    free(before);
    mr_buffer_fini(&bytes);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    snprintf(f->folder, sizeof(f->folder), "/tmp/mr-traces-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->directory, sizeof(f->directory), "%s/s", f->folder);
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
    free(f);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            the_same_exemplars_stay_in_whatever_order_they_come, set_up, tear_down),
        cmocka_unit_test_setup_teardown(past_the_bytes_they_are_refused_and_counted,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            past_the_bytes_a_better_one_takes_the_room_of_what_it_replaces, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(
            answers_have_places_of_their_own_and_the_latest_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            one_of_a_site_that_was_refused_is_refused_and_nobody_is_told, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(
            past_the_bytes_the_oldest_answers_keep_their_root_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_answers_nobody_takes_no_room_of_what_does,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_trace_is_found_where_most_of_its_calls_are,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(they_come_back_by_journal_and_by_checkpoint,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
