/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/pipeline.h"

#include "bench/markov.h"
#include "bench/random.h"
#include "net/chunk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SITES MR_MADE_FUNCTIONS /* functions 0 .. SITES - 1: site FIRST + 16 k */
#define SITE_STEP 16u
#define CLOCK_MULT 1717986918u /* 2.5 GHz: 0.4 ns a tick */
#define CLOCK_SHIFT 32
#define FRAME_BYTES (UINT32_C(1) << 20) /* of a frame of many chunks */
#define CHUNK_EVENTS 8192u
#define CHUNK_EVENTS_MIN 64u
#define MIXED_CALLS_MIN 4
#define MIXED_CALLS_MAX 60
#define MIXED_SITES 200
#define NODE_CHILDREN 6u
#define SQLITE_NODES 100000u
#define SQLITE_SITES 1150u
#define SQLITE_ROOTS 80u
#define SQLITE_FIRST 100u /* node that the first root calls first */
#define WALK_ROOTS 16u
#define WALK_CALLS_MIN 8u
#define WALK_CALLS_MAX 60u
#define WALK_DEPTH 5u      /* 16 * 6^4 paths at most */
#define OVERSHOOT 4000000u /* words for the last trace to pass `events` */
#define CHECK(condition) ((condition) ? (void)0 : abort())

/* A chunk of a frame: its header is made anew for each loop. */
struct chunk {
    uint8_t *at;
    uint32_t stream, count;
};

struct mr_bench_made {
    struct mr_made_config config;
    uint64_t *words;
    uint64_t count, limit, ticks, loop_ticks, random;
    uint64_t *ends; /* of traces, where chunks may end */
    uint64_t end_count, end_capacity;
    double *sums; /* of 1 / (k + 1) */
    uint8_t *bytes;
    struct chunk *chunks;
    uint32_t chunk_count;
    uint64_t *next_event; /* by stream */
    uint64_t *numbers;    /* of a loop that is the first of its source */
    uint8_t dict[1024];
    size_t dict_size;
    bool is_new; /* each loop is made anew */
};

static void *need(void *memory)
{
    CHECK(memory);
    return memory;
}

/* Between events: 16 to 80 ns, and one in 64 times up to 6.5 us more. */
static void put(struct mr_bench_made *made, uint32_t function, int exit)
{
    uint64_t random = mr_random_next(&made->random);

    CHECK(made->count < made->limit && function < SITES);
    made->ticks += 40 + random % 160;
    if ((random >> 32 & 63) == 0)
        made->ticks += random >> 50;
    made->words[made->count++] =
        mr_word_event(MR_SITE_FIRST_MODULE + SITE_STEP * function,
                      exit ? MR_WORD_EXIT : 0, made->ticks);
}

/* A chunk may end here. */
static void may_cut(struct mr_bench_made *made)
{
    if (made->end_count == made->end_capacity) {
        made->end_capacity = made->end_capacity ? 2 * made->end_capacity : 1024;
        made->ends = need(realloc(made->ends, made->end_capacity * sizeof(*made->ends)));
    }
    made->ends[made->end_count++] = made->count;
}

static void put_recursion(struct mr_bench_made *made)
{
    for (uint64_t i = 0; i < made->config.number; i++)
        put(made, 1, 0);
    for (uint64_t i = 0; i < made->config.number; i++)
        put(made, 1, 1);
}

/* Number k with a probability proportional to 1 / (k + 1). */
static uint64_t draw(struct mr_bench_made *made)
{
    uint64_t count = made->config.number, low = 0, high = count - 1;
    double at =
        made->sums[count - 1] * ((double)(mr_random_next(&made->random) >> 11) * 0x1p-53);

    while (low < high) {
        uint64_t middle = (low + high) / 2;

        if (made->sums[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A random tree: after each call it goes on below or beside it, or some levels up. */
static void put_mixed(struct mr_bench_made *made)
{
    uint32_t stack[MIXED_CALLS_MAX], depth = 0;
    uint64_t seed = draw(made) + 1;
    uint64_t calls =
        MIXED_CALLS_MIN + mr_random_next(&seed) % (MIXED_CALLS_MAX - MIXED_CALLS_MIN + 1);

    for (uint64_t i = 0; i < calls; i++) {
        while (depth > 1 && mr_random_next(&seed) % 5 < 2)
            put(made, stack[--depth], 1);
        stack[depth] = (uint32_t)(mr_random_next(&seed) % MIXED_SITES);
        put(made, stack[depth++], 0);
    }
    while (depth > 0)
        put(made, stack[--depth], 1);
}

/*
 * Like SQLite's speedtest1 (here 10,600 paths, there 26,000; 1,150 functions): node i of the path tree calls the nodes NODE_CHILDREN i + 1
 * and following, as many as its number says, of these three quarters in each of two variants, once or twice.
 */
static void put_node(struct mr_bench_made *made, uint64_t node, uint64_t variant)
{
    uint32_t function = (uint32_t)(mr_random_of(node + SQLITE_NODES) % SQLITE_SITES);
    uint64_t first = NODE_CHILDREN * node + 1,
             count = mr_random_of(node) % (NODE_CHILDREN + 1);

    put(made, function, 0);
    for (uint64_t child = first; child < first + count && child < SQLITE_NODES; child++) {
        uint64_t bits = mr_random_of(child << 1 | variant);

        for (uint64_t repeat = bits % 4 ? 1 + (bits >> 8 & 1) : 0; repeat > 0; repeat--)
            put_node(made, child, bits >> 1 & 1);
    }
    put(made, function, 1);
}

/* One trace of 64 is long and like none before, the others have one of 1,280 shapes. */
static void put_sqlite(struct mr_bench_made *made)
{
    uint64_t bits = mr_random_next(&made->random);
    uint64_t root = (bits >> 32) % SQLITE_ROOTS, shape = bits % 16;
    bool is_long = (bits >> 8 & 63) == 0;
    uint64_t seed = is_long ? bits : root << 8 | shape;
    uint64_t calls = is_long ? 16 + (bits >> 16) % 496 : 1 + shape % 4;

    put(made, (uint32_t)root, 0);
    while (calls-- > 0) {
        uint64_t child = mr_random_next(&seed);

        put_node(made, SQLITE_FIRST + NODE_CHILDREN * root + child % NODE_CHILDREN,
                 child >> 32 & 1);
    }
    put(made, (uint32_t)root, 1);
}

/* A walk over a tree of at most 25,000 paths (of 3 levels: 688), which the seed decides: as many shapes as seeds. */
static void put_walk(struct mr_bench_made *made)
{
    uint64_t seed = made->config.number ? draw(made) : mr_random_next(&made->random),
             bits;
    uint32_t levels = made->config.levels ? made->config.levels : WALK_DEPTH;
    uint32_t stack[WALK_CALLS_MAX], depth = 0;
    uint64_t calls;

    seed = mr_random_of(seed);
    calls = WALK_CALLS_MIN + seed % (WALK_CALLS_MAX - WALK_CALLS_MIN);
    stack[depth++] = (uint32_t)(seed >> 32) % WALK_ROOTS;
    put(made, stack[0], 0);
    for (uint64_t i = 1; i < calls; i++) {
        bits = mr_random_next(&seed);
        while (depth > 1 && (depth == levels || (bits & 3) < 2)) {
            put(made, stack[--depth] % SITES, 1);
            bits >>= 2;
        }
        stack[depth] = NODE_CHILDREN * stack[depth - 1] + WALK_ROOTS +
                       (uint32_t)(bits >> 40) % NODE_CHILDREN;
        put(made, stack[depth++] % SITES, 0);
    }
    while (depth > 0)
        put(made, stack[--depth] % SITES, 1);
}

static_assert(OVERSHOOT >= 2 * MR_MARKOV_CALLS_MAX, "a tree has two words a call");

/* Other trees are not near as long, and lie in one chunk each. */
static void put_markov(struct mr_bench_made *made)
{
    const struct mr_markov_step *steps;
    uint32_t count = mr_markov_make(made->config.markov, &made->random, &steps);

    for (uint32_t i = 0; i < count; i++) {
        put(made, steps[i].function, steps[i].is_exit);
        if ((i + 1) % CHUNK_EVENTS == 0)
            may_cut(made);
    }
}

static void make_words(struct mr_bench_made *made)
{
    uint64_t start = made->ticks;

    made->count = 0;
    made->end_count = 0;
    while (made->count < made->config.events) {
        switch (made->config.kind) {
        case MR_MADE_RECURSION:
            put_recursion(made);
            break;
        case MR_MADE_MIXED:
            put_mixed(made);
            break;
        case MR_MADE_SQLITE:
            put_sqlite(made);
            break;
        case MR_MADE_SHAPES:
            put_walk(made);
            break;
        case MR_MADE_MARKOV:
            put_markov(made);
            break;
        }
        may_cut(made);
    }
    made->loop_ticks = made->ticks - start;
}

/* Whole traces make a chunk, many chunks a frame. */
static void cut(struct mr_bench_made *made, struct mr_bench_stream *stream)
{
    uint32_t streams = made->config.streams;
    uint64_t least = made->config.events / streams, from = 0;
    uint8_t *frame = made->bytes, *at = made->bytes;

    least = least < CHUNK_EVENTS ? least : CHUNK_EVENTS;
    least = least > CHUNK_EVENTS_MIN ? least : CHUNK_EVENTS_MIN;
    stream->frame_count = 1; /* the dictionary */
    stream->run_count = 0;
    made->chunk_count = 0;
    for (uint64_t i = 0; i < made->end_count; i++) {
        uint64_t count = made->ends[i] - from;

        if (count < least && i + 1 < made->end_count)
            continue;
        made->chunks[made->chunk_count] =
            (struct chunk){at, made->chunk_count % streams, (uint32_t)count};
        memcpy(at + MR_CHUNK_HEADER_SIZE, made->words + from, count * sizeof(uint64_t));
        mr_bench_add_run(stream,
                         &(struct mr_bench_run){made->words + from, (uint32_t)count, 0});
        made->chunk_count++;
        at += MR_CHUNK_HEADER_SIZE + count * sizeof(uint64_t);
        from = made->ends[i];
        if ((size_t)(at - frame) < FRAME_BYTES / 16 && i + 1 < made->end_count)
            continue;
        mr_bench_add_frame(stream, MR_FRAME_CHUNKS,
                           mr_span_of(frame, (size_t)(at - frame)));
        frame = at;
    }
    stream->events = made->count;
}

/* Headers as of a loop that begins at `ticks`, and with event `numbers`[i] of stream i, which they move on. */
static void write_headers(struct mr_bench_made *made, struct mr_bench_stream *stream,
                          uint64_t ticks, uint64_t *numbers)
{
    stream->first_ticks = ticks;
    for (uint32_t i = 0; i < made->chunk_count; i++) {
        const struct chunk *at = &made->chunks[i];
        const uint64_t *words =
            (const uint64_t *)(const void *)(at->at + MR_CHUNK_HEADER_SIZE);
        uint64_t *next = &numbers[at->stream];
        struct mr_chunk chunk = {.flags = *next == 0 ? MR_CHUNK_FIRST : 0,
                                 .stream = at->stream + 1,
                                 .first_event = *next,
                                 .events = at->count,
                                 .ticks = ticks,
                                 .records = at->count,
                                 .body = mr_span_of(words, at->count * sizeof(*words))};

        mr_chunk_put_header(&chunk, at->at);
        *next += at->count;
        for (uint32_t j = 0; j < at->count; j++) /* steps are below 2^31 */
            ticks += (uint32_t)words[j] - (uint32_t)ticks;
    }
    stream->last_ticks = ticks;
}

static void make_dictionary(struct mr_bench_made *made, struct mr_bench_stream *stream)
{
    struct mr_dict_item item = {.kind = MR_DICT_MODULE,
                                .module = {.site_base = MR_SITE_FIRST_MODULE,
                                           .size = SITES * SITE_STEP,
                                           .build_id = mr_span_of("0123456789", 10),
                                           .path = "/usr/bin/app"}};
    struct mr_dict_writer writer;

    mr_dict_writer_init(&writer, made->dict, sizeof(made->dict));
    CHECK(mr_dict_put(&writer, &item) == MR_OK);
    made->dict_size = mr_dict_writer_finish(&writer);
    mr_bench_add_frame(stream, MR_FRAME_DICT, mr_span_of(made->dict, made->dict_size));
}

/* The least trace has 2 events, so there are at most half as many chunks as words. */
static void allocate(struct mr_bench_made *made)
{
    uint64_t chunks = made->limit / CHUNK_EVENTS_MIN + 2;

    made->words = need(malloc(made->limit * sizeof(*made->words)));
    made->bytes =
        need(malloc(made->limit * sizeof(*made->words) + chunks * MR_CHUNK_HEADER_SIZE));
    made->chunks = need(malloc(chunks * sizeof(*made->chunks)));
    made->next_event = need(calloc(made->config.streams, sizeof(*made->next_event)));
    made->numbers = need(calloc(made->config.streams, sizeof(*made->numbers)));
    if (made->config.number && made->config.kind != MR_MADE_RECURSION)
        made->sums = need(malloc(made->config.number * sizeof(*made->sums)));
    for (uint64_t i = 0; made->sums && i < made->config.number; i++)
        made->sums[i] = (i ? made->sums[i - 1] : 0) + 1.0 / (double)(i + 1);
}

void mr_bench_make(const struct mr_made_config *config, struct mr_bench_stream *stream)
{
    struct mr_bench_made *made = need(calloc(1, sizeof(*made)));

    *stream = (struct mr_bench_stream){.made = made, .stacks = 1};
    made->config = *config;
    made->config.streams = config->streams ? config->streams : 1;
    made->limit = config->events + OVERSHOOT;
    made->random = 1;
    made->is_new = config->kind == MR_MADE_SHAPES || config->kind == MR_MADE_MARKOV;
    stream->hello =
        (struct mr_hello){.sender = {1, 2},
                          .role = MR_ROLE_PROBE,
                          .oldest = 1,
                          .token = "",
                          .source = {.host = "host",
                                     .app = "app",
                                     .version = "1",
                                     .exe = "/usr/bin/app",
                                     .clock_warning = "",
                                     .clock = {.kind = MR_CLOCK_TSC,
                                               .mult = CLOCK_MULT,
                                               .shift = CLOCK_SHIFT,
                                               .realtime_ns = mr_clock_realtime_ns()}}};
    allocate(made);
    make_dictionary(made, stream);
    make_words(made);
    cut(made, stream);
    write_headers(made, stream, 0, made->next_event);
}

bool mr_bench_make_unheard(const struct mr_bench_stream *stream, uint64_t events,
                           struct mr_bench_stream *unheard)
{
    struct mr_made_config config;

    if (!stream->made || !stream->made->is_new || stream->made->config.number > 0)
        return false;
    config = stream->made->config;
    config.events = events;
    mr_bench_make(&config, unheard);
    return true;
}

void mr_bench_advance(struct mr_bench_stream *stream)
{
    struct mr_bench_made *made = stream->made;
    uint64_t ticks = made->ticks;

    if (made->is_new) {
        make_words(made);
        cut(made, stream);
        write_headers(made, stream, ticks, made->next_event);
        return;
    }
    for (uint64_t i = 0; i < made->count; i++) {
        uint32_t low = (uint32_t)made->words[i] + (uint32_t)made->loop_ticks;

        made->words[i] = (made->words[i] & ~(uint64_t)UINT32_MAX) | low;
    }
    made->ticks += made->loop_ticks;
    cut(made, stream);
    write_headers(made, stream, ticks, made->next_event);
}

void mr_bench_from_first(struct mr_bench_stream *stream)
{
    struct mr_bench_made *made = stream->made;

    if (!made)
        return;
    memset(made->numbers, 0, made->config.streams * sizeof(*made->numbers));
    write_headers(made, stream, stream->first_ticks, made->numbers);
}

void mr_bench_add_frame(struct mr_bench_stream *stream, uint8_t type,
                        struct mr_span payload)
{
    if (stream->frame_count == stream->frame_capacity) {
        stream->frame_capacity = stream->frame_capacity ? 2 * stream->frame_capacity : 64;
        stream->frames = need(
            realloc(stream->frames, stream->frame_capacity * sizeof(*stream->frames)));
    }
    stream->frames[stream->frame_count++] = (struct mr_bench_frame){type, payload};
}

void mr_bench_add_run(struct mr_bench_stream *stream, const struct mr_bench_run *run)
{
    if (stream->run_count == stream->run_capacity) {
        stream->run_capacity = stream->run_capacity ? 2 * stream->run_capacity : 64;
        stream->runs =
            need(realloc(stream->runs, stream->run_capacity * sizeof(*stream->runs)));
    }
    stream->runs[stream->run_count++] = *run;
}

void mr_bench_stream_free(struct mr_bench_stream *stream)
{
    struct mr_bench_made *made = stream->made;

    if (made) {
        free(made->words);
        free(made->ends);
        free(made->sums);
        free(made->bytes);
        free(made->chunks);
        free(made->next_event);
        free(made->numbers);
        free(made);
    } else {
        for (uint32_t i = 0; i < stream->run_count; i++)
            free(stream->runs[i].words);
        mr_hello_free(&stream->message);
    }
    mr_markov_free(stream->markov);
    if (stream->traces)
        free(stream->traces->words);
    free(stream->traces);
    free(stream->bytes);
    free(stream->frames);
    free(stream->runs);
    *stream = (struct mr_bench_stream){0};
}
