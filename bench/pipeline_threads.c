/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes side by side, each driven by a thread of its own with a stream of its own, and filters on threads of their own.
 * Wall time from the moment when all may run until the last one is done.
 *
 * field        written by   read by      access
 * runners[i]   main thread  thread i     before it starts; what it did is read after it was joined
 */
#include "bench/interrupt.h"
#include "bench/machine.h"
#include "bench/pipeline.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES_MAX 16u
#define PLAYS 4 /* of the stream, in a loop */

struct runner {
    struct mr_bench_stream stream;
    struct mr_bench_lane *lane;
    pthread_barrier_t *barrier;
    pthread_t thread;
};

struct setting {
    struct mr_pipeline_bench *bench;
    const struct mr_stream_kind *kind;
    uint32_t lanes;
    enum mr_place place;
};

static void *run(void *argument)
{
    struct runner *runner = argument;

    (void)pthread_barrier_wait(runner->barrier);
    for (int i = 0; i < PLAYS; i++) {
        mr_bench_lane_play(runner->lane, &runner->stream);
        if (i + 1 < PLAYS)
            mr_bench_advance(&runner->stream);
    }
    mr_bench_lane_drain(runner->lane);
    return NULL;
}

static void prepare(const struct setting *setting, struct runner *runner,
                    pthread_barrier_t *barrier)
{
    struct mr_made_config config = setting->kind->made;

    config.events = setting->bench->options.events / PLAYS;
    mr_bench_make(&config, &runner->stream);
    runner->lane =
        mr_bench_lane_new(&runner->stream, MR_BENCH_STAGES, setting->place, NULL);
    runner->barrier = barrier;
}

/* ns an event of all lanes together; advancing the streams is in it, on the thread that plays them. NAN: no threads. */
static double run_once(const struct setting *setting)
{
    struct runner *runners = calloc(setting->lanes, sizeof(*runners));
    uint64_t start_ns, events = 0;
    pthread_barrier_t barrier;
    double ns = (double)NAN;

    if (!runners || pthread_barrier_init(&barrier, NULL, setting->lanes + 1) != 0)
        abort();
    for (uint32_t i = 0; i < setting->lanes; i++)
        prepare(setting, &runners[i], &barrier);
    for (uint32_t i = 0; i < setting->lanes; i++)
        if (pthread_create(&runners[i].thread, NULL, run, &runners[i]) != 0)
            abort();
    (void)pthread_barrier_wait(&barrier);
    start_ns = mr_clock_monotonic_ns();
    for (uint32_t i = 0; i < setting->lanes; i++) {
        (void)pthread_join(runners[i].thread, NULL);
        events += PLAYS * runners[i].stream.events;
    }
    ns = (double)(mr_clock_monotonic_ns() - start_ns) / (double)events;
    for (uint32_t i = 0; i < setting->lanes; i++) {
        mr_bench_lane_free(runners[i].lane);
        mr_bench_stream_free(&runners[i].stream);
    }
    (void)pthread_barrier_destroy(&barrier);
    free(runners);
    return ns;
}

/* All settings of one stream. */
struct loops {
    struct setting settings[LANES_MAX + 1];
    size_t count;
    double ns[LANES_MAX + 1][MR_BENCH_LOOPS_MAX];
};

static enum mr_status measure(void *context, size_t index, uint32_t loop)
{
    struct loops *loops = context;

    if (mr_interrupt_seen())
        return MR_END;
    loops->ns[index][loop] = run_once(&loops->settings[index]);
    return MR_OK;
}

static enum mr_status measure_stream(struct mr_pipeline_bench *bench,
                                     const struct mr_stream_kind *kind)
{
    struct loops *loops = calloc(1, sizeof(*loops));
    uint32_t cpus = mr_machine_cpus();
    struct mr_rounds rounds = {.loops = (uint32_t)bench->options.loops,
                               .steal_percent = (uint32_t)bench->options.steal_max,
                               .measure = measure,
                               .context = loops,
                               .progress = "lanes"};
    enum mr_status status = MR_OK;

    if (!loops)
        return MR_ENOMEM;
    for (uint32_t lanes = 1; lanes <= cpus && lanes <= LANES_MAX; lanes++)
        loops->settings[loops->count++] =
            (struct setting){bench, kind, lanes, MR_PLACE_FUSED};
    loops->settings[loops->count++] = (struct setting){bench, kind, 1, MR_PLACE_THREAD};
    rounds.case_count = loops->count;
    mr_rounds_run(&rounds);
    bench->discarded += rounds.discarded;
    bench->is_partial |= rounds.is_partial;
    for (size_t i = 0; i < loops->count && status == MR_OK && rounds.kept > 0; i++) {
        const struct setting *setting = &loops->settings[i];
        char name[MR_RESULT_NAME_SIZE];

        (void)snprintf(name, sizeof(name), "lanes-%u/%s/%s", (unsigned)setting->lanes,
                       kind->name,
                       setting->place == MR_PLACE_FUSED ? "fused" : "threads");
        status = mr_pipeline_add(bench, name, "wall_ns_per_event", "ns", loops->ns[i],
                                 rounds.kept, i ? "lanes-1" : NULL, loops->ns[0]);
    }
    free(loops);
    return status;
}

enum mr_status mr_pipeline_threads(struct mr_pipeline_bench *bench,
                                   struct mr_error *error)
{
    enum mr_status status = MR_OK;

    (void)error;
    for (size_t i = 0; i < mr_stream_kind_count && status == MR_OK; i++)
        if (strcmp(mr_stream_kinds[i].name, "recursion-10") == 0 ||
            strcmp(mr_stream_kinds[i].name, "sqlite-like") == 0)
            status = measure_stream(bench, &mr_stream_kinds[i]);
    return status;
}
