/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/pipeline.h"

#include "pipeline/filters/decode.h"
#include "pipeline/filters/reconstruct.h"
#include "pipeline/filters/reduce.h"
#include "pipeline/source.h"
#include "pipeline/symbols.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STREAMS_MAX (1u << 20)
#define TICK_NS MR_HOUR_NS
#define LOOK_BYTES                                                                       \
    (UINT32_C(256) << 10) /* of a stream, from one look at the clock to the next */
#define CHECK(condition) ((condition) ? (void)0 : abort())

struct ended {
    struct mr_source *source;
    struct ended *next;
};

struct mr_bench_lane {
    struct mr_sites *sites;
    struct mr_symbols *symbols; /* where outer frames are named */
    struct mr_source *source;
    struct ended *ended; /* sources that the filters may still use */
    struct mr_graph *graph;
    struct mr_decode_config decode;
    struct mr_reconstruct_config reconstruct;
    struct mr_reduce_config reduce;
    uint32_t stages;
    uint64_t now_ns, plays;
    uint64_t spent_ns;  /* processor time that it has had */
    uint64_t looked_ns; /* of the thread, when that was last counted */
    uint64_t period_ns,
        due_ns; /* of deltas; when the next is due, in time spent; 0: none */
    uint64_t ticks, ticks_ns;      /* deltas made; of all time spent, theirs */
    struct mr_bench_replay replay; /* of a stream that was recorded */
    struct mr_buffer room;         /* a frame of it */
};

uint64_t mr_bench_cpu_ns(void)
{
    struct timespec time;

    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
    return (uint64_t)time.tv_sec * MR_SECOND_NS + (uint64_t)time.tv_nsec;
}

/* As it is told this time. */
static struct mr_span payload_of(struct mr_bench_lane *lane,
                                 const struct mr_bench_frame *frame)
{
    uint8_t *at;
    size_t size;

    if (lane->replay.plays == 0 || frame->type == MR_FRAME_CHUNKS)
        return frame->payload;
    mr_buffer_clear(&lane->room);
    CHECK(mr_buffer_reserve(&lane->room, mr_bench_replay_room(frame), &at) == MR_OK);
    CHECK(mr_bench_replay_frame(&lane->replay, frame, at, &size) == MR_OK);
    return mr_span_of(at, size);
}

static void push(struct mr_bench_lane *lane, const struct mr_bench_frame *frame)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_FRAME);

    CHECK(batch);
    batch->source = lane->source;
    batch->frame.type = frame->type;
    batch->frame.sequence = 1;
    batch->frame.payload = payload_of(lane, frame);
    CHECK(mr_graph_push(lane->graph, batch) == MR_OK);
}

static void begin_source(struct mr_bench_lane *lane, const struct mr_bench_stream *stream)
{
    struct mr_hello hello = stream->hello;

    if (stream->is_recorded) {
        mr_bench_replay_later(&lane->replay, stream);
        hello = mr_bench_replay_hello(&lane->replay);
    }
    hello.oldest = 1;
    CHECK(mr_source_new(&hello, false, &lane->source) == MR_OK);
}

static void end_source(struct mr_bench_lane *lane)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_END);
    struct ended *ended = malloc(sizeof(*ended));

    CHECK(batch && ended);
    batch->source = lane->source;
    batch->end_state = MR_SOURCE_FINISHED;
    CHECK(mr_graph_push(lane->graph, batch) == MR_OK);
    *ended = (struct ended){lane->source, lane->ended};
    lane->ended = ended;
    lane->source = NULL;
}

/* Asked once for each site. */
static const char *name_of(void *context, const struct mr_site *site)
{
    struct mr_symbol symbol;

    (void)mr_symbols_lookup(context, site->module->build_id, site->module->path,
                            site->offset, &symbol);
    return symbol.name;
}

static uint64_t spent(void *lane)
{
    return ((const struct mr_bench_lane *)lane)->spent_ns;
}

static void set_configs(struct mr_bench_lane *lane, const struct mr_bench_stream *stream)
{
    lane->decode =
        (struct mr_decode_config){.sites = lane->sites, .streams_max = STREAMS_MAX};
    lane->reconstruct = (struct mr_reconstruct_config){
        .outer = {.sites = lane->sites,
                  .outer_globs = stream->outer,
                  .outer_glob_count = stream->outer_count,
                  .resolve = name_of,
                  .context = lane->symbols},
        .depth_max = MR_RECONSTRUCT_DEPTH_DEFAULT,
        .learn_ns = MR_RECONSTRUCT_LEARN_NS_DEFAULT,
        .learn_children = MR_RECONSTRUCT_LEARN_CHILDREN_DEFAULT};
    lane->reduce = MR_REDUCE_CONFIG_DEFAULT;
    lane->reduce.sites = lane->sites;
}

/* At the end of a graph batches are freed. */
struct mr_bench_lane *mr_bench_lane_new(const struct mr_bench_stream *stream,
                                        uint32_t stages, enum mr_place place,
                                        const struct mr_graph_node *keep)
{
    struct mr_bench_lane *lane = calloc(1, sizeof(*lane));
    struct mr_graph_node nodes[MR_BENCH_STAGES + 1] = {
        {&mr_decode_filter, &lane->decode, MR_PLACE_FUSED},
        {&mr_reconstruct_filter, &lane->reconstruct, place},
        {&mr_reduce_filter, &lane->reduce, place}};

    CHECK(lane && stages <= MR_BENCH_STAGES);
    lane->stages = stages;
    lane->spent_ns = 1; /* 0 is no time */
    mr_buffer_init(&lane->room, UINT32_MAX);
    CHECK(mr_sites_new(MR_SITES_LIMIT_DEFAULT, &lane->sites) == MR_OK);
    CHECK(stream->outer_count == 0 || mr_symbols_new(NULL, &lane->symbols) == MR_OK);
    set_configs(lane, stream);
    lane->reduce.has_repeats = place == MR_PLACE_FUSED;
    if (place == MR_PLACE_FUSED) { /* else what is measured is true time, too */
        lane->reduce.budget_clock = spent;
        lane->reduce.budget_context = lane;
    }
    lane->reconstruct.is_followed = place == MR_PLACE_FUSED && stages == MR_BENCH_STAGES;
    if (keep)
        nodes[stages] = *keep;
    CHECK(mr_graph_new(nodes, stages + (keep != NULL), "bench", &lane->graph, NULL) ==
          MR_OK);
    CHECK(mr_graph_start(lane->graph) == MR_OK);
    lane->now_ns = mr_clock_monotonic_ns();
    begin_source(lane, stream);
    return lane;
}

static void count_time(struct mr_bench_lane *lane)
{
    uint64_t now_ns = mr_bench_cpu_ns();

    lane->spent_ns += now_ns - lane->looked_ns;
    lane->looked_ns = now_ns;
}

static void tick(struct mr_bench_lane *lane, uint64_t later_ns)
{
    uint64_t before_ns = lane->spent_ns;

    lane->now_ns += later_ns;
    CHECK(mr_graph_tick(lane->graph, lane->now_ns) == MR_OK);
    count_time(lane);
    lane->ticks++;
    lane->ticks_ns += lane->spent_ns - before_ns;
    lane->due_ns = lane->spent_ns + lane->period_ns;
}

static void play_frames(struct mr_bench_lane *lane, const struct mr_bench_stream *stream)
{
    size_t unseen = 0;

    for (uint32_t i = 0; i < stream->frame_count; i++) {
        if (lane->plays > 0 && !stream->is_recorded &&
            stream->frames[i].type != MR_FRAME_CHUNKS)
            continue;
        push(lane, &stream->frames[i]);
        unseen += stream->frames[i].payload.size;
        if (unseen < LOOK_BYTES)
            continue;
        unseen = 0;
        count_time(lane);
        if (lane->period_ns > 0 && lane->spent_ns >= lane->due_ns)
            tick(lane, lane->period_ns);
    }
}

void mr_bench_lane_play(struct mr_bench_lane *lane, const struct mr_bench_stream *stream)
{
    lane->looked_ns = mr_bench_cpu_ns();
    if (!lane->source)
        begin_source(lane, stream);
    play_frames(lane, stream);
    CHECK(!mr_source_is_broken(lane->source));
    if (stream->is_recorded)
        end_source(lane);
    lane->plays++;
    count_time(lane);
}

uint64_t mr_bench_lane_period(const struct mr_bench_lane *lane, uint64_t least_ns,
                              uint32_t paths)
{
    struct mr_reduce_config reduce = lane->reduce;

    reduce.delta_period_ns = least_ns;
    return mr_reduce_period(&reduce, paths);
}

void mr_bench_lane_set_period(struct mr_bench_lane *lane, uint64_t period_ns)
{
    lane->period_ns = period_ns;
    lane->due_ns = lane->spent_ns + period_ns;
}

uint64_t mr_bench_lane_spent_ns(const struct mr_bench_lane *lane)
{
    return lane->spent_ns;
}

uint64_t mr_bench_lane_ticks(const struct mr_bench_lane *lane)
{
    return lane->ticks;
}

uint64_t mr_bench_lane_ticks_ns(const struct mr_bench_lane *lane)
{
    return lane->ticks_ns;
}

void mr_bench_lane_tick(struct mr_bench_lane *lane)
{
    lane->looked_ns = mr_bench_cpu_ns();
    tick(lane, TICK_NS);
}

void mr_bench_lane_drain(struct mr_bench_lane *lane)
{
    CHECK(mr_graph_drain(lane->graph) == MR_OK);
}

uint64_t mr_bench_lane_counter(const struct mr_bench_lane *lane, const char *name)
{
    struct mr_filter_stats stats[MR_GRAPH_NODES_MAX];
    uint32_t count = mr_graph_stats(lane->graph, stats, MR_GRAPH_NODES_MAX);

    CHECK(count >= lane->stages);
    for (uint32_t i = 0; i < MR_FILTER_COUNTERS; i++) {
        const char *known = stats[lane->stages - 1].counter_names[i];

        if (known && strcmp(known, name) == 0)
            return stats[lane->stages - 1].counters[i];
    }
    return 0;
}

void mr_bench_lane_free(struct mr_bench_lane *lane)
{
    mr_graph_free(lane->graph);
    mr_source_free(lane->source);
    while (lane->ended) {
        struct ended *next = lane->ended->next;

        mr_source_free(lane->ended->source);
        free(lane->ended);
        lane->ended = next;
    }
    mr_sites_free(lane->sites);
    mr_symbols_free(lane->symbols);
    mr_buffer_fini(&lane->room);
    free(lane);
}
