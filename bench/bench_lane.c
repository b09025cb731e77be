/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a lane costs per event, beside memcpy and a plain loop over the same words (lane_plain.h), in one process and
 * interleaved: each loop runs everything once, and the median of all loops is told. Thread CPU time, so that other work
 * on the machine does little harm.
 *
 *     bench_lane [--json] [--loops N] [--events N] [--case NAME]
 *
 *     memcpy, plain        the words alone
 *     decode               graph: decode | discard
 *     reconstruct, reduce  what the graph costs more with each of them
 *     analysis             reconstruct + reduce: to be compared with plain
 *     lane                 graph: decode | reconstruct | reduce | discard
 *     delta                one delta per loop, which `lane` is without
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "bench/lane_plain.h"
#include "bench/lane_stream.h"
#include "net/control.h"
#include "net/wire.h"
#include "pipeline/filters/decode.h"
#include "pipeline/filters/reconstruct.h"
#include "pipeline/filters/reduce.h"
#include "pipeline/graph.h"
#include "pipeline/source.h"

#define LOOPS_DEFAULT 15
#define LOOPS_MAX 1000
#define LOOPS_WARM 2 /* paths, shapes and memory are made in the first */
#define EVENTS_DEFAULT 2000000
#define STAGES 3
#define CHECK(condition) ((condition) ? (void)0 : abort())

enum metric {
    MEMCPY,
    PLAIN,
    DECODE,
    RECONSTRUCT,
    REDUCE,
    ANALYSIS,
    LANE,
    DELTA,
    METRICS
};

static const char *const metric_names[METRICS] = {
    "memcpy", "plain", "decode", "reconstruct", "reduce", "analysis", "lane", "delta"};

struct options {
    bool json;
    uint32_t loops;
    uint64_t events;
    const char *only;
};

struct lane {
    struct mr_sites *sites;
    struct mr_source *source;
    struct mr_graph *graph;
    struct mr_decode_config decode;
    struct mr_reconstruct_config reconstruct;
    struct mr_reduce_config reduce;
    uint32_t stages;
};

/* All that runs over the words of one case. */
struct bench {
    struct lane_stream stream;
    struct lane_plain *plain;
    uint8_t *copy;
    struct lane lanes[STAGES]; /* decode; and reconstruct; and reduce */
    uint64_t pushed;           /* events */
    double ns[METRICS][LOOPS_MAX];
};

static uint64_t cpu_ns(void)
{
    struct timespec time;

    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
    return (uint64_t)time.tv_sec * MR_SECOND_NS + (uint64_t)time.tv_nsec;
}

static void push(struct lane *lane, enum mr_frame_type type, struct mr_span payload)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_FRAME);

    CHECK(batch);
    batch->source = lane->source;
    batch->frame.type = (uint8_t)type;
    batch->frame.payload = payload;
    CHECK(mr_graph_push(lane->graph, batch) == MR_OK);
}

static void tell_module(struct lane *lane)
{
    struct mr_dict_item item = {.kind = MR_DICT_MODULE,
                                .module = {.site_base = MR_SITE_FIRST_MODULE,
                                           .size = LANE_SITES * LANE_SITE_STEP,
                                           .build_id = mr_span_of("0123456789", 10),
                                           .path = "/usr/bin/app"}};
    uint8_t payload[1024];
    struct mr_dict_writer writer;

    mr_dict_writer_init(&writer, payload, sizeof(payload));
    CHECK(mr_dict_put(&writer, &item) == MR_OK);
    push(lane, MR_FRAME_DICT, mr_span_of(payload, mr_dict_writer_finish(&writer)));
}

static void make_source(struct lane *lane)
{
    struct mr_hello hello = {.sender = {1, 2},
                             .role = MR_ROLE_PROBE,
                             .oldest = 1,
                             .token = "",
                             .source = {.host = "host",
                                        .app = "app",
                                        .version = "1",
                                        .exe = "/usr/bin/app",
                                        .clock = {.kind = MR_CLOCK_TSC,
                                                  .mult = LANE_CLOCK_MULT,
                                                  .shift = LANE_CLOCK_SHIFT,
                                                  .realtime_ns = LANE_START_NS}}};

    CHECK(mr_source_new(&hello, false, &lane->source) == MR_OK);
}

static void set_configs(struct lane *lane)
{
    lane->decode = (struct mr_decode_config){.sites = lane->sites, .streams_max = 16};
    lane->reconstruct = (struct mr_reconstruct_config){
        .outer.sites = lane->sites,
        .depth_max = MR_RECONSTRUCT_DEPTH_DEFAULT,
        .learn_ns = MR_RECONSTRUCT_LEARN_NS_DEFAULT,
        .learn_children = MR_RECONSTRUCT_LEARN_CHILDREN_DEFAULT};
    lane->reduce = MR_REDUCE_CONFIG_DEFAULT;
    lane->reduce.sites = lane->sites;
}

/* At the end of a graph batches are freed. */
static void lane_init(struct lane *lane, uint32_t stages)
{
    const struct mr_graph_node nodes[STAGES] = {
        {&mr_decode_filter, &lane->decode, MR_PLACE_FUSED},
        {&mr_reconstruct_filter, &lane->reconstruct, MR_PLACE_FUSED},
        {&mr_reduce_filter, &lane->reduce, MR_PLACE_FUSED}};

    lane->stages = stages;
    CHECK(mr_sites_new(MR_SITES_LIMIT_DEFAULT, &lane->sites) == MR_OK);
    make_source(lane);
    set_configs(lane);
    CHECK(mr_graph_new(nodes, stages, "bench", &lane->graph, NULL) == MR_OK);
    CHECK(mr_graph_start(lane->graph) == MR_OK);
    tell_module(lane);
}

static void lane_fini(struct lane *lane)
{
    mr_graph_free(lane->graph);
    mr_source_free(lane->source);
    mr_sites_free(lane->sites);
}

/* The sum of this name that the last filter keeps. */
static uint64_t ledger(const struct lane *lane, const char *name)
{
    struct mr_filter_stats stats[STAGES];

    CHECK(mr_graph_stats(lane->graph, stats, STAGES) == lane->stages);
    for (uint32_t i = 0; i < MR_FILTER_COUNTERS; i++)
        if (stats[lane->stages - 1].counter_names[i] &&
            strcmp(stats[lane->stages - 1].counter_names[i], name) == 0)
            return stats[lane->stages - 1].counters[i];
    abort();
}

static double run_memcpy(struct bench *bench)
{
    uint64_t start_ns = cpu_ns();

    for (uint32_t i = 0; i < bench->stream.frame_count; i++) {
        struct mr_span words = lane_stream_words(&bench->stream, i);

        memcpy(bench->copy, words.data, words.size);
    }
    return (double)(cpu_ns() - start_ns);
}

static double run_plain(struct bench *bench)
{
    uint64_t start_ns = cpu_ns();

    for (uint32_t i = 0; i < bench->stream.frame_count; i++) {
        struct mr_span words = lane_stream_words(&bench->stream, i);

        lane_plain_run(bench->plain, (const uint64_t *)(const void *)words.data,
                       words.size / sizeof(uint64_t));
    }
    return (double)(cpu_ns() - start_ns);
}

static double run_lane(struct bench *bench, uint32_t which)
{
    uint64_t start_ns = cpu_ns();

    for (uint32_t i = 0; i < bench->stream.frame_count; i++)
        push(&bench->lanes[which], MR_FRAME_CHUNKS, bench->stream.frames[i]);
    return (double)(cpu_ns() - start_ns);
}

static double run_delta(struct bench *bench, uint64_t now_ns)
{
    uint64_t start_ns = cpu_ns();

    CHECK(mr_graph_tick(bench->lanes[STAGES - 1].graph, now_ns) == MR_OK);
    return (double)(cpu_ns() - start_ns);
}

static void run_loop(struct bench *bench, uint32_t loop)
{
    double lanes[STAGES], ns[METRICS];
    uint64_t delta_now_ns = mr_clock_monotonic_ns() + (loop + 1) * MR_HOUR_NS;

    ns[MEMCPY] = run_memcpy(bench);
    ns[PLAIN] = run_plain(bench);
    for (uint32_t i = 0; i < STAGES; i++)
        lanes[i] = run_lane(bench, i);
    ns[DELTA] = run_delta(bench, delta_now_ns);
    bench->pushed += bench->stream.events;
    lane_stream_advance(&bench->stream);
    ns[DECODE] = lanes[0];
    ns[RECONSTRUCT] = lanes[1] - lanes[0];
    ns[REDUCE] = lanes[2] - lanes[1];
    ns[ANALYSIS] = lanes[2] - lanes[0];
    ns[LANE] = lanes[2];
    for (int i = 0; i < METRICS && loop >= LOOPS_WARM; i++)
        bench->ns[i][loop - LOOPS_WARM] = ns[i] / (double)bench->stream.events;
}

static int compare(const void *a, const void *b)
{
    const double *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

static double median(double *values, uint32_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void tell(const char *name, struct bench *bench, const struct options *options)
{
    double ns[METRICS];
    uint64_t lost = ledger(&bench->lanes[STAGES - 1], "lost");

    for (int i = 0; i < METRICS; i++)
        ns[i] = median(bench->ns[i], options->loops);
    if (!options->json)
        printf("%s: %llu events, %u paths, %llu shapes\n", name,
               (unsigned long long)bench->stream.events,
               (unsigned)lane_plain_paths(bench->plain),
               (unsigned long long)lane_plain_shapes(bench->plain));
    for (int i = 0; i < METRICS; i++) {
        if (options->json)
            printf("{\"bench\":\"lane\",\"case\":\"%s\",\"metric\":\"%s\",\"value\":%.3f,"
                   "\"unit\":\"ns/event\",\"ratio_to\":\"plain\",\"ratio\":%.3f,"
                   "\"lost\":%llu}\n",
                   name, metric_names[i], ns[i], ns[i] / ns[PLAIN],
                   (unsigned long long)lost);
        else
            printf("%-14s %-12s %9.2f %10.2f %8llu\n", name, metric_names[i], ns[i],
                   ns[i] / ns[PLAIN], (unsigned long long)lost);
    }
    (void)fflush(stdout);
}

/* The lane and the plain loop must have counted the same calls. */
static void check_counts(const struct bench *bench)
{
    CHECK(ledger(&bench->lanes[STAGES - 1], "reduced") == bench->pushed);
    CHECK(ledger(&bench->lanes[STAGES - 1], "lost") == 0);
    CHECK(2 * lane_plain_calls(bench->plain) == bench->pushed);
}

static void run_case(enum lane_case which, const char *name,
                     const struct options *options)
{
    struct bench *bench = calloc(1, sizeof(*bench));

    CHECK(bench);
    lane_stream_make(which, options->events, &bench->stream);
    bench->plain = lane_plain_new();
    bench->copy = malloc(MR_WIRE_MAX_FRAME_MIN);
    CHECK(bench->copy);
    for (uint32_t i = 0; i < STAGES; i++)
        lane_init(&bench->lanes[i], i + 1);
    for (uint32_t i = 0; i < LOOPS_WARM + options->loops; i++)
        run_loop(bench, i);
    tell(name, bench, options);
    for (uint32_t i = 0; i < STAGES; i++)
        CHECK(mr_graph_drain(bench->lanes[i].graph) == MR_OK);
    check_counts(bench);
    for (uint32_t i = 0; i < STAGES; i++)
        lane_fini(&bench->lanes[i]);
    lane_stream_free(&bench->stream);
    lane_plain_free(bench->plain);
    free(bench->copy);
    free(bench);
}

static MR_NORETURN void usage(void)
{
    (void)fprintf(stderr,
                  "usage: bench_lane [--json] [--loops N] [--events N] [--case NAME]\n");
    exit(2);
}

static uint64_t number(const char *text)
{
    char *end = NULL;
    uint64_t value = text ? strtoull(text, &end, 10) : 0;

    if (value == 0 || *end != '\0')
        usage();
    return value;
}

static struct options parse(char **argv)
{
    struct options options = {.loops = LOOPS_DEFAULT, .events = EVENTS_DEFAULT};

    for (; *argv; argv++) {
        if (strcmp(*argv, "--json") == 0)
            options.json = true;
        else if (strcmp(*argv, "--loops") == 0)
            options.loops = (uint32_t)number(*++argv);
        else if (strcmp(*argv, "--events") == 0)
            options.events = number(*++argv);
        else if (strcmp(*argv, "--case") == 0 && argv[1])
            options.only = *++argv;
        else
            usage();
    }
    options.loops = options.loops < LOOPS_MAX ? options.loops : LOOPS_MAX;
    return options;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {
#define X(name, text) [name] = (text),
        LANE_CASES(X)
#undef X
    };
    struct options options = parse(argv + (argc > 0));

    if (!options.json)
        printf("%-14s %-12s %9s %10s %8s   medians of %u loops\n", "case", "metric",
               "ns/event", "of plain", "lost", (unsigned)options.loops);
    for (uint32_t i = 0; i < LANE_CASE_COUNT; i++)
        if (!options.only || strcmp(options.only, names[i]) == 0)
            run_case((enum lane_case)i, names[i], &options);
    return 0;
}
