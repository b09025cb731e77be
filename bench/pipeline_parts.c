/* SPDX-License-Identifier: Apache-2.0 */
/* One stream after the other, of each all parts in turns, so that what the machine does in between meets all of them. */
#include "bench/interrupt.h"
#include "bench/lane_plain.h"
#include "bench/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOPS_WARM 2 /* paths, shapes and memory are made in the first */
/*
 * What a lane has before it is measured. In its first second templates are learned and exemplars find their places, which costs
 * never-sqlite a fifth; a lane that keeps up does so for hours.
 */
#define WARM_NS MR_SECOND_NS
#define ROUNDS_MAX 1000
/* Of --events: a start, three deltas and the first of everything are then a small part of a loop. */
#define WORKER_TIMES 10
#define COPY_BYTES (UINT32_C(64) << 10)

const char *const mr_bench_part_names[MR_BENCH_PART_COUNT] = {
    [MR_BENCH_PART_MEMCPY] = "memcpy",
    [MR_BENCH_PART_PLAIN] = "plain",
    [MR_BENCH_PART_CONSED] = "consed",
    [MR_BENCH_PART_DECODE] = "decode",
    [MR_BENCH_PART_RECONSTRUCT] = "reconstruct",
    [MR_BENCH_PART_REDUCE] = "reduce",
    [MR_BENCH_PART_ANALYSIS] = "analysis",
    [MR_BENCH_PART_LANE] = "lane",
    [MR_BENCH_PART_DELTA] = "delta",
    [MR_BENCH_PART_WORKER] = "worker",
};

/* All that runs over one stream. */
struct parts {
    struct mr_pipeline_bench *bench;
    struct mr_bench_stream stream;
    struct lane_plain *plain, *consed;
    uint8_t *copy;
    struct mr_bench_lane *lanes[MR_BENCH_STAGES];
    uint32_t rounds;                /* in a loop, until the lane is due to give a delta */
    struct mr_bench_worker *worker; /* NULL: not asked for */
    uint64_t worker_events;         /* that it is sent in a loop, at least */
    struct mr_bench_stream
        unheard;     /* what it is sent instead, of a stream that never repeats */
    uint64_t pushed; /* events */
    uint64_t worker_lost;
    struct mr_error error;
    double ns[MR_BENCH_PART_COUNT][MR_BENCH_LOOPS_MAX];
    double deltas[MR_BENCH_LOOPS_MAX];
};

static double run_memcpy(const struct parts *parts)
{
    uint64_t start_ns = mr_bench_cpu_ns();

    for (uint32_t i = 0; i < parts->stream.run_count; i++) {
        const struct mr_bench_run *run = &parts->stream.runs[i];
        size_t left = run->count * sizeof(uint64_t);

        for (const uint8_t *from = (const uint8_t *)run->words; left > 0;) {
            size_t size = left < COPY_BYTES ? left : COPY_BYTES;

            memcpy(parts->copy, from, size);
            from += size;
            left -= size;
        }
    }
    return (double)(mr_bench_cpu_ns() - start_ns);
}

static double run_plain(const struct parts *parts, struct lane_plain *plain)
{
    uint64_t start_ns = mr_bench_cpu_ns();

    for (uint32_t i = 0; i < parts->stream.run_count; i++) {
        const struct mr_bench_run *run = &parts->stream.runs[i];

        lane_plain_choose(plain, run->stack);
        lane_plain_run(plain, run->words, run->count);
    }
    lane_plain_reset(plain);
    return (double)(mr_bench_cpu_ns() - start_ns);
}

static double run_lane(const struct parts *parts, uint32_t which, double *deltas)
{
    struct mr_bench_lane *lane = parts->lanes[which];
    uint64_t spent_ns = mr_bench_lane_spent_ns(lane);
    uint64_t ticks_ns = mr_bench_lane_ticks_ns(lane);

    mr_bench_lane_play(lane, &parts->stream);
    spent_ns = mr_bench_lane_spent_ns(lane) - spent_ns;
    ticks_ns = mr_bench_lane_ticks_ns(lane) - ticks_ns;
    *deltas += (double)ticks_ns;
    return (double)(spent_ns - ticks_ns);
}

static double run_delta(const struct parts *parts)
{
    struct mr_bench_lane *lane = parts->lanes[MR_BENCH_STAGES - 1];
    uint64_t ticks_ns = mr_bench_lane_ticks_ns(lane);

    mr_bench_lane_tick(lane);
    return (double)(mr_bench_lane_ticks_ns(lane) - ticks_ns);
}

static enum mr_status run_worker(struct parts *parts, double *ns)
{
    struct mr_bench_stream *stream = &parts->stream;
    enum mr_status status;

    *ns = (double)NAN;
    if (!parts->worker)
        return MR_OK;
    if (parts->unheard.made)
        stream = &parts->unheard;
    status = mr_bench_worker_play(parts->worker, stream, parts->worker_events, ns,
                                  &parts->error);
    if (parts->unheard.made)
        mr_bench_advance(&parts->unheard);
    return status;
}

/* What comes next of a stream that is made. */
static void advance(struct parts *parts)
{
    if (parts->stream.made && parts->pushed > 0)
        mr_bench_advance(&parts->stream);
}

/* All lanes, as none may miss a frame. */
static void run_lanes(struct parts *parts, double lanes[MR_BENCH_STAGES], double *deltas)
{
    for (uint32_t i = 0; i < MR_BENCH_STAGES; i++)
        lanes[i] = run_lane(parts, i, deltas);
    parts->pushed += parts->stream.events;
}

/* The stream, or its next loop, once through everything; adds what each took. */
static void run_round(struct parts *parts, double ns[MR_BENCH_PART_COUNT])
{
    double lanes[MR_BENCH_STAGES];

    advance(parts);
    ns[MR_BENCH_PART_MEMCPY] += run_memcpy(parts);
    ns[MR_BENCH_PART_PLAIN] += run_plain(parts, parts->plain);
    ns[MR_BENCH_PART_CONSED] += run_plain(parts, parts->consed);
    run_lanes(parts, lanes, &ns[MR_BENCH_PART_DELTA]);
    ns[MR_BENCH_PART_DECODE] += lanes[0];
    ns[MR_BENCH_PART_RECONSTRUCT] += lanes[1] - lanes[0];
    ns[MR_BENCH_PART_REDUCE] += lanes[2] - lanes[1];
    ns[MR_BENCH_PART_ANALYSIS] += lanes[2] - lanes[0];
    ns[MR_BENCH_PART_LANE] += lanes[2];
}

/* MR_END: interrupted. */
static enum mr_status run_loop(struct parts *parts, double ns[MR_BENCH_PART_COUNT])
{
    uint64_t before = parts->pushed;

    for (int i = 0; i < MR_BENCH_PART_COUNT; i++)
        ns[i] = 0;
    for (uint32_t i = 0; i < parts->rounds; i++) {
        if (mr_interrupt_seen())
            return MR_END;
        run_round(parts, ns);
    }
    ns[MR_BENCH_PART_DELTA] += run_delta(parts);
    for (int i = 0; i < MR_BENCH_PART_WORKER; i++)
        ns[i] /= (double)(parts->pushed - before);
    return run_worker(parts, &ns[MR_BENCH_PART_WORKER]);
}

/*
 * As many rounds as a lane that does nothing else has from one delta to the next; in a round that is longer there are some. After each,
 * what was known of every path begins anew, and what was in the caches was pushed out of them.
 */
static void set_rounds(struct parts *parts, const double ns[MR_BENCH_PART_COUNT])
{
    struct mr_bench_lane *lane = parts->lanes[MR_BENCH_STAGES - 1];
    uint64_t least_ns = parts->bench->options.delta_ms * MR_MILLISECOND_NS;
    uint64_t period_ns =
        mr_bench_lane_period(lane, least_ns, lane_plain_paths(parts->plain));
    double round_ns = ns[MR_BENCH_PART_LANE] * (double)parts->stream.events;
    double rounds = ceil((double)period_ns / round_ns);

    parts->rounds = rounds < 1 ? 1 : rounds < ROUNDS_MAX ? (uint32_t)rounds : ROUNDS_MAX;
    if (least_ns > 0 && round_ns > (double)period_ns)
        mr_bench_lane_set_period(lane, period_ns);
}

/* Until the lane has had WARM_NS, where a loop is longer than a play. MR_END: interrupted. */
static enum mr_status warm_up(struct parts *parts)
{
    const struct mr_bench_lane *lane = parts->lanes[MR_BENCH_STAGES - 1];
    double lanes[MR_BENCH_STAGES], deltas = 0;

    while (parts->bench->options.delta_ms > 0 && mr_bench_lane_spent_ns(lane) < WARM_NS) {
        for (uint32_t i = 0; i < parts->rounds; i++) {
            if (mr_interrupt_seen())
                return MR_END;
            advance(parts);
            run_lanes(parts, lanes, &deltas);
        }
        (void)run_delta(parts);
    }
    return MR_OK;
}

/* As mr_rounds wants it; there is one case. */
static enum mr_status measure(void *context, size_t index, uint32_t loop)
{
    struct parts *parts = context;
    const struct mr_bench_lane *lane = parts->lanes[MR_BENCH_STAGES - 1];
    uint64_t deltas = mr_bench_lane_ticks(lane);
    double ns[MR_BENCH_PART_COUNT];
    enum mr_status status = run_loop(parts, ns);

    (void)index;
    parts->deltas[loop] = (double)(mr_bench_lane_ticks(lane) - deltas);
    for (int i = 0; i < MR_BENCH_PART_COUNT && status == MR_OK; i++)
        parts->ns[i][loop] = ns[i];
    return status == MR_OK ? MR_OK : MR_END; /* what failed once is not tried again */
}

/*
 * What the worker is sent in a loop. A stream that never repeats cannot be sent a second time, as it would have come before:
 * there is one for it that is as long.
 */
static enum mr_status begin_worker(struct parts *parts)
{
    parts->worker_events = WORKER_TIMES * parts->bench->options.events;
    (void)mr_bench_make_unheard(&parts->stream, parts->worker_events, &parts->unheard);
    return mr_bench_worker_start(parts->bench, &parts->worker, &parts->error);
}

static enum mr_status begin(struct parts *parts, const struct mr_stream_kind *kind)
{
    enum mr_status status = kind->make(parts->bench, kind, &parts->stream, &parts->error);
    double ns[MR_BENCH_PART_COUNT];

    if (status != MR_OK)
        return status;
    parts->plain = lane_plain_new(false);
    parts->consed = lane_plain_new(true);
    parts->copy = malloc(COPY_BYTES);
    if (!parts->copy)
        return MR_ENOMEM;
    for (uint32_t i = 0; i < MR_BENCH_STAGES; i++)
        parts->lanes[i] = mr_bench_lane_new(&parts->stream, i + 1, MR_PLACE_FUSED, NULL);
    if (kind->in & (MR_STREAMS_MAIN | MR_STREAMS_RECORDED) && parts->bench->has_worker)
        status = begin_worker(parts);
    parts->rounds = 1;
    for (int i = 0; i < LOOPS_WARM && status == MR_OK; i++)
        status = run_loop(parts, ns);
    if (status == MR_OK)
        set_rounds(parts, ns);
    return status == MR_OK ? warm_up(parts) : status;
}

static void finish(struct parts *parts)
{
    mr_bench_worker_stop(parts->worker);
    for (uint32_t i = 0; i < MR_BENCH_STAGES; i++)
        if (parts->lanes[i])
            mr_bench_lane_free(parts->lanes[i]);
    lane_plain_free(parts->plain);
    lane_plain_free(parts->consed);
    free(parts->copy);
    mr_bench_stream_free(&parts->unheard);
    mr_bench_stream_free(&parts->stream);
    free(parts);
}

/* The ledger says that all was reduced. */
static uint64_t count_lost(const struct parts *parts)
{
    const struct mr_bench_lane *lane = parts->lanes[MR_BENCH_STAGES - 1];

    return parts->pushed - mr_bench_lane_counter(lane, "reduced");
}

/* How many deltas a loop had. */
static enum mr_status add_deltas(struct parts *parts, const struct mr_stream_kind *kind,
                                 const struct mr_rounds *rounds)
{
    char name[MR_RESULT_NAME_SIZE];

    (void)snprintf(name, sizeof(name), "%s/%s/fused",
                   mr_bench_part_names[MR_BENCH_PART_DELTA], kind->name);
    return mr_pipeline_add(parts->bench, name, "deltas", "1", parts->deltas, rounds->kept,
                           NULL, NULL);
}

/* The analysis beside the other bar. */
static enum mr_status add_to_consed(struct parts *parts,
                                    const struct mr_stream_kind *kind,
                                    const struct mr_rounds *rounds)
{
    char name[MR_RESULT_NAME_SIZE];

    (void)snprintf(name, sizeof(name), "%s/%s/fused",
                   mr_bench_part_names[MR_BENCH_PART_ANALYSIS], kind->name);
    return mr_pipeline_add(parts->bench, name, "ns_per_event", "ns",
                           parts->ns[MR_BENCH_PART_ANALYSIS], rounds->kept, "consed",
                           parts->ns[MR_BENCH_PART_CONSED]);
}

static enum mr_status add_results(struct parts *parts, const struct mr_stream_kind *kind,
                                  const struct mr_rounds *rounds)
{
    struct mr_pipeline_bench *bench = parts->bench;
    enum mr_status status = MR_OK;
    size_t before = bench->results.count;
    uint64_t lost = count_lost(parts);
    char name[MR_RESULT_NAME_SIZE];

    for (int i = 0; i < MR_BENCH_PART_COUNT && status == MR_OK; i++) {
        (void)snprintf(name, sizeof(name), "%s/%s/fused", mr_bench_part_names[i],
                       kind->name);
        if (!isnan(parts->ns[i][0]))
            status =
                mr_pipeline_add(bench, name, "ns_per_event", "ns", parts->ns[i],
                                rounds->kept, i == MR_BENCH_PART_PLAIN ? NULL : "plain",
                                parts->ns[MR_BENCH_PART_PLAIN]);
    }
    if (status == MR_OK)
        status = add_to_consed(parts, kind, rounds);
    if (status == MR_OK)
        status = add_deltas(parts, kind, rounds);
    for (size_t i = before; i < bench->results.count; i++) {
        struct mr_result *result = &bench->results.items[i];
        bool is_worker = strncmp(result->name, "worker/", 7) == 0;

        result->has_lost = is_worker || strncmp(result->name, "lane/", 5) == 0;
        result->lost = is_worker ? parts->worker_lost : lost;
    }
    if (status == MR_OK && parts->stream.is_recorded)
        status = mr_pipeline_share(bench, kind, &parts->stream);
    return status;
}

enum mr_status mr_pipeline_measure(struct mr_pipeline_bench *bench,
                                   const struct mr_stream_kind *kind,
                                   struct mr_error *error)
{
    struct parts *parts = calloc(1, sizeof(*parts));
    struct mr_rounds rounds = {.loops = (uint32_t)bench->options.loops,
                               .steal_percent = (uint32_t)bench->options.steal_max,
                               .case_count = 1,
                               .measure = measure,
                               .context = parts,
                               .progress = kind->name};
    enum mr_status status;

    if (!parts)
        return MR_ENOMEM;
    parts->bench = bench;
    status = begin(parts, kind);
    if (status == MR_OK) {
        mr_rounds_run(&rounds);
        mr_bench_lane_drain(parts->lanes[MR_BENCH_STAGES - 1]);
        bench->discarded += rounds.discarded;
        bench->is_partial |= rounds.is_partial;
        status = parts->error.status;
    }
    if (status == MR_OK)
        status = mr_bench_worker_end(parts->worker, &parts->worker_lost, &parts->error);
    if (status == MR_OK && rounds.kept > 0)
        status = add_results(parts, kind, &rounds);
    *error = parts->error;
    finish(parts);
    return status;
}
