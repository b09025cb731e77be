/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the runner costs per batch, and what merging costs per row.
 *
 *     bench_pipeline [program address...]      with arguments: also looks these functions up
 */
#include "base/clock.h"
#include "net/delta.h"
#include "pipeline/accumulate.h"
#include "pipeline/graph.h"
#include "pipeline/pipe.h"
#include "pipeline/symbols.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCHES 1000000u
#define ROUNDS 5
#define PATHS 26000u /* SQLite's speedtest1, DESIGN section 6 */
#define CHECK(condition) ((condition) ? (void)0 : abort())

/* The best of ROUNDS: the machine has other work now and then. */
static void tell(const char *what, uint64_t best_ns, uint64_t count, const char *unit)
{
    printf("%-40s %10.1f ns per %s\n", what, (double)best_ns / (double)count, unit);
}

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
        (void)mr_pipe_push(crossing.pipe, batch);
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

static void bench_merging(void)
{
    struct mr_accumulator *accumulator;
    struct mr_buffer payload, part;
    uint64_t first_ns = UINT64_MAX, again_ns = UINT64_MAX, write_ns = UINT64_MAX;

    CHECK(mr_accumulator_new(NULL, &accumulator) == MR_OK);
    write_paths(&payload);
    mr_buffer_init(&part, 8u << 20);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t t0 = mr_clock_monotonic_ns(), t1, t2, t3;

        merge(accumulator, &payload);
        t1 = mr_clock_monotonic_ns();
        merge(accumulator, &payload);
        t2 = mr_clock_monotonic_ns();
        CHECK(mr_accumulator_write_begin(accumulator) == MR_OK);
        while (mr_accumulator_write(accumulator, 1, 1, &part) == MR_OK)
            mr_buffer_clear(&part);
        mr_accumulator_reset(accumulator);
        t3 = mr_clock_monotonic_ns();
        first_ns = t1 - t0 < first_ns ? t1 - t0 : first_ns;
        again_ns = t2 - t1 < again_ns ? t2 - t1 : again_ns;
        write_ns = t3 - t2 < write_ns ? t3 - t2 : write_ns;
    }
    tell("merge, new rows", first_ns, PATHS, "row");
    tell("merge, known rows", again_ns, PATHS, "row");
    tell("write and reset", write_ns, PATHS, "row");
    mr_buffer_fini(&part);
    mr_buffer_fini(&payload);
    mr_accumulator_free(accumulator);
}

static void bench_symbols(int count, char **arguments)
{
    struct mr_symbols *symbols;
    uint64_t slowest_ns = 0, start_ns = mr_clock_monotonic_ns(), found = 0;

    CHECK(mr_symbols_new(NULL, &symbols) == MR_OK);
    for (int i = 2; i < count; i++) {
        struct mr_symbol symbol;
        uint64_t t0 = mr_clock_monotonic_ns(), spent_ns;

        found += mr_symbols_lookup(symbols, mr_span_of(NULL, 0), arguments[1],
                                   strtoull(arguments[i], NULL, 16), &symbol) == MR_OK;
        spent_ns = mr_clock_monotonic_ns() - t0;
        slowest_ns = spent_ns > slowest_ns ? spent_ns : slowest_ns;
    }
    start_ns = mr_clock_monotonic_ns() - start_ns;
    tell("look up a function", start_ns, (uint64_t)count - 2, "function");
    printf("%-40s %10.1f ms; %llu of %d found\n", "the slowest of them",
           (double)slowest_ns / 1e6, (unsigned long long)found, count - 2);
    mr_symbols_free(symbols);
}

int main(int argc, char **argv)
{
    uint64_t pipe_ns = UINT64_MAX, fused_ns = UINT64_MAX, threaded_ns = UINT64_MAX;

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t ns = cross_pipe();

        pipe_ns = ns < pipe_ns ? ns : pipe_ns;
        ns = run_graph(MR_PLACE_FUSED);
        fused_ns = ns < fused_ns ? ns : fused_ns;
        ns = run_graph(MR_PLACE_THREAD);
        threaded_ns = ns < threaded_ns ? ns : threaded_ns;
    }
    tell("pipe between two threads", pipe_ns, BATCHES, "batch");
    tell("graph of 3 filters, fused", fused_ns, BATCHES, "batch");
    tell("graph of 3 filters, a thread each", threaded_ns, BATCHES, "batch");
    bench_merging();
    if (argc > 2)
        bench_symbols(argc, argv);
    return 0;
}
