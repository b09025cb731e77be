/* SPDX-License-Identifier: Apache-2.0 */
/* What the runner costs per batch, merging per row, and looking up a function's name. */
#include "base/clock.h"
#include "bench/interrupt.h"
#include "bench/pipeline.h"
#include "net/delta.h"
#include "pipeline/accumulate.h"
#include "pipeline/graph.h"
#include "pipeline/pipe.h"
#include "pipeline/symbols.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCHES 200000u
#define PATHS 26000u /* SQLite's speedtest1, DESIGN section 6 */
#define FUNCTIONS 500u
#define FUNCTION_STEP UINT64_C(512) /* between the places that are looked up */
#define TEXT_FIRST UINT64_C(65536)
#define CHECK(condition) ((condition) ? (void)0 : abort())

enum metric {
    PIPE,
    GRAPH_FUSED,
    GRAPH_THREADS,
    MERGE_NEW,
    MERGE_KNOWN,
    MERGE_WRITE,
    LOOK_UP,
    METRICS
};

static const struct {
    const char *name, *metric;
    uint64_t count; /* of a loop */
} metrics[METRICS] = {
    [PIPE] = {"runner/pipe/threads", "ns_per_batch", BATCHES},
    [GRAPH_FUSED] = {"runner/graph-of-3/fused", "ns_per_batch", BATCHES},
    [GRAPH_THREADS] = {"runner/graph-of-3/threads", "ns_per_batch", BATCHES},
    [MERGE_NEW] = {"runner/merge/new", "ns_per_row", PATHS},
    [MERGE_KNOWN] = {"runner/merge/known", "ns_per_row", PATHS},
    [MERGE_WRITE] = {"runner/merge/write", "ns_per_row", PATHS},
    [LOOK_UP] = {"runner/look-up/self", "ns_per_function", FUNCTIONS},
};

struct loops {
    double ns[METRICS][MR_BENCH_LOOPS_MAX];
    struct mr_accumulator *accumulator;
    struct mr_buffer payload;
};

struct crossing {
    struct mr_pipe *pipe;
    struct mr_waker waker;
};

static void *consume(void *argument)
{
    struct crossing *crossing = argument;

    while (!mr_pipe_is_finished(crossing->pipe)) {
        if (mr_pipe_pop(crossing->pipe))
            continue;
        mr_waker_arm(&crossing->waker);
        if (mr_pipe_is_idle(crossing->pipe))
            mr_waker_sleep(&crossing->waker, MR_SECOND_NS);
        else
            mr_waker_disarm(&crossing->waker);
    }
    return NULL;
}

static uint64_t cross_pipe(void)
{
    struct crossing crossing;
    struct mr_batch *batch = mr_batch_new(MR_BATCH_END); /* its pointer alone travels */
    pthread_t thread;
    uint64_t start_ns;

    mr_waker_init(&crossing.waker);
    CHECK(batch && mr_pipe_new(64, &crossing.waker, &crossing.pipe) == MR_OK);
    start_ns = mr_clock_monotonic_ns();
    CHECK(pthread_create(&thread, NULL, consume, &crossing) == 0);
    for (uint32_t i = 0; i < BATCHES; i++)
        (void)mr_pipe_push(crossing.pipe, batch, NULL);
    mr_pipe_close(crossing.pipe);
    CHECK(pthread_join(thread, NULL) == 0);
    start_ns = mr_clock_monotonic_ns() - start_ns;
    mr_pipe_free(crossing.pipe);
    mr_batch_free(batch);
    return start_ns;
}

static enum mr_status pass(struct mr_filter *filter, struct mr_batch *batch)
{
    return mr_filter_emit(filter, batch);
}

static const struct mr_filter_kind pass_kind = {.name = "pass", .process = pass};

/* Three filters that do nothing, EVENTS batches made here and freed at the end. */
static uint64_t run_graph(enum mr_place place)
{
    const struct mr_graph_node nodes[] = {{&pass_kind, NULL, MR_PLACE_FUSED},
                                          {&pass_kind, NULL, place},
                                          {&pass_kind, NULL, place}};
    struct mr_graph *graph;
    uint64_t start_ns = mr_clock_monotonic_ns();

    CHECK(mr_graph_new(nodes, 3, "bench", &graph, NULL) == MR_OK);
    CHECK(mr_graph_start(graph) == MR_OK);
    for (uint32_t i = 0; i < BATCHES; i++) {
        struct mr_batch *batch = mr_batch_new(MR_BATCH_EVENTS);

        CHECK(batch && mr_graph_push(graph, batch) == MR_OK);
    }
    CHECK(mr_graph_drain(graph) == MR_OK);
    start_ns = mr_clock_monotonic_ns() - start_ns;
    mr_graph_free(graph);
    return start_ns;
}

static void write_paths(struct mr_buffer *out)
{
    struct mr_delta_writer w;
    uint32_t scope, site[500];
    static uint32_t path[PATHS];
    unsigned seed = 1;

    mr_buffer_init(out, SIZE_MAX / 2);
    mr_delta_begin(&w, out);
    scope = mr_delta_scope(&w, (struct mr_id){1, 1});
    for (uint64_t i = 0; i < 500; i++)
        site[i] = mr_delta_site(&w, (struct mr_id){i * 0x9e3779b97f4a7c15u, i});
    for (uint32_t i = 0; i < PATHS; i++) {
        struct mr_path_stats stats = {.ok = 20, .histogram = MR_HISTOGRAM_EMPTY};

        path[i] = mr_delta_path(&w, i ? path[(unsigned)rand_r(&seed) % i] : MR_DELTA_NONE,
                                scope, site[rand_r(&seed) % 500], 0);
        for (int n = 0; n < 20; n++) {
            uint64_t ns = 200 + (uint64_t)rand_r(&seed) % 2000;

            mr_times_add(&stats.total, ns, n == 0);
            mr_times_add(&stats.self, ns / 2, n == 0);
            CHECK(mr_histogram_add(&stats.histogram, ns, 1) == MR_OK);
        }
        mr_delta_path_stat(&w, path[i], 1, &stats);
        mr_histogram_fini(&stats.histogram);
    }
    CHECK(mr_delta_status(&w) == MR_OK);
}

static void merge(struct mr_accumulator *accumulator, const struct mr_buffer *payload)
{
    mr_accumulator_open(accumulator, mr_buffer_span(payload));
    CHECK(mr_accumulator_merge(accumulator, NULL) == MR_OK);
}

static void measure_merging(struct loops *loops, uint32_t loop)
{
    struct mr_accumulator *accumulator = loops->accumulator;
    uint64_t t0 = mr_clock_monotonic_ns(), t1, t2, t3;
    struct mr_buffer part;

    mr_buffer_init(&part, 8u << 20);
    merge(accumulator, &loops->payload);
    t1 = mr_clock_monotonic_ns();
    merge(accumulator, &loops->payload);
    t2 = mr_clock_monotonic_ns();
    CHECK(mr_accumulator_write_begin(accumulator) == MR_OK);
    while (mr_accumulator_write(accumulator, 1, 1, &part) == MR_OK)
        mr_buffer_clear(&part);
    mr_accumulator_reset(accumulator);
    t3 = mr_clock_monotonic_ns();
    mr_buffer_fini(&part);
    loops->ns[MERGE_NEW][loop] = (double)(t1 - t0);
    loops->ns[MERGE_KNOWN][loop] = (double)(t2 - t1);
    loops->ns[MERGE_WRITE][loop] = (double)(t3 - t2);
}

/* Places all over this program, opened anew. */
static uint64_t look_up(void)
{
    struct mr_symbols *symbols;
    uint64_t start_ns;

    CHECK(mr_symbols_new(NULL, &symbols) == MR_OK);
    start_ns = mr_clock_monotonic_ns();
    for (uint64_t i = 0; i < FUNCTIONS; i++) {
        struct mr_symbol symbol;

        (void)mr_symbols_lookup(symbols, mr_span_of(NULL, 0), "/proc/self/exe",
                                TEXT_FIRST + i * FUNCTION_STEP, &symbol);
    }
    start_ns = mr_clock_monotonic_ns() - start_ns;
    mr_symbols_free(symbols);
    return start_ns;
}

static enum mr_status measure(void *context, size_t index, uint32_t loop)
{
    struct loops *loops = context;

    (void)index;
    if (mr_interrupt_seen())
        return MR_END;
    loops->ns[PIPE][loop] = (double)cross_pipe();
    loops->ns[GRAPH_FUSED][loop] = (double)run_graph(MR_PLACE_FUSED);
    loops->ns[GRAPH_THREADS][loop] = (double)run_graph(MR_PLACE_THREAD);
    loops->ns[LOOK_UP][loop] = (double)look_up();
    measure_merging(loops, loop);
    for (int i = 0; i < METRICS; i++)
        loops->ns[i][loop] /= (double)metrics[i].count;
    return MR_OK;
}

enum mr_status mr_pipeline_runner(struct mr_pipeline_bench *bench, struct mr_error *error)
{
    struct loops *loops = calloc(1, sizeof(*loops));
    struct mr_rounds rounds = {.loops = (uint32_t)bench->options.loops,
                               .steal_percent = (uint32_t)bench->options.steal_max,
                               .case_count = 1,
                               .measure = measure,
                               .context = loops,
                               .progress = "runner"};
    enum mr_status status = MR_OK;

    (void)error;
    CHECK(loops && mr_accumulator_new(NULL, &loops->accumulator) == MR_OK);
    write_paths(&loops->payload);
    mr_rounds_run(&rounds);
    bench->discarded += rounds.discarded;
    bench->is_partial |= rounds.is_partial;
    for (int i = 0; i < METRICS && status == MR_OK && rounds.kept > 0; i++)
        status = mr_pipeline_add(bench, metrics[i].name, metrics[i].metric, "ns",
                                 loops->ns[i], rounds.kept, NULL, NULL);
    mr_buffer_fini(&loops->payload);
    mr_accumulator_free(loops->accumulator);
    free(loops);
    return status;
}
