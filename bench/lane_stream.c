/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/lane_stream.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "net/chunk.h"

#define FRAME_WORDS 8192u
#define FRAME_BYTES (MR_CHUNK_HEADER_SIZE + FRAME_WORDS * sizeof(uint64_t))
#define DEPTH 10
#define TREES_MAX 1000
#define TREE_CALLS_MIN 4
#define TREE_CALLS_MAX 60
#define TREE_SITES 200
#define CHILDREN_MAX 6u
#define SQLITE_NODES 100000u
#define SQLITE_SITES 1150u
#define SQLITE_ROOTS 80u
#define SQLITE_FIRST 100u /* node that the first root calls first */
#define CHECK(condition) ((condition) ? (void)0 : abort())

struct maker {
    uint64_t *words;
    uint64_t count, limit, ticks, random;
};

static uint64_t next_random(uint64_t *state)
{
    uint64_t value = *state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

/* Between events: 16 to 80 ns, and one in 64 times up to 6.5 us more. */
static void put(struct maker *maker, uint32_t function, int exit)
{
    uint64_t random = next_random(&maker->random);

    CHECK(maker->count < maker->limit && function < LANE_SITES);
    maker->ticks += 40 + random % 160;
    if ((random >> 32 & 63) == 0)
        maker->ticks += random >> 50;
    maker->words[maker->count++] =
        mr_word_event(MR_SITE_FIRST_MODULE + LANE_SITE_STEP * function,
                      exit ? MR_WORD_EXIT : 0, maker->ticks);
}

static void make_recursion(struct maker *maker, uint64_t events)
{
    while (maker->count < events) {
        for (int i = 0; i < DEPTH; i++)
            put(maker, 1, 0);
        for (int i = 0; i < DEPTH; i++)
            put(maker, 1, 1);
    }
}

/* A random tree: after each call it goes on below or beside it, or some levels up. */
static void put_tree(struct maker *maker, uint64_t seed)
{
    uint32_t stack[TREE_CALLS_MAX], depth = 0;
    uint64_t calls =
        TREE_CALLS_MIN + next_random(&seed) % (TREE_CALLS_MAX - TREE_CALLS_MIN + 1);

    for (uint64_t i = 0; i < calls; i++) {
        while (depth > 1 && next_random(&seed) % 5 < 2)
            put(maker, stack[--depth], 1);
        stack[depth] = (uint32_t)(next_random(&seed) % TREE_SITES);
        put(maker, stack[depth++], 0);
    }
    while (depth > 0)
        put(maker, stack[--depth], 1);
}

/* Tree k with a probability proportional to 1 / (k + 1). */
static void make_mixed(struct maker *maker, uint64_t events, uint32_t trees)
{
    double sums[TREES_MAX], sum = 0;

    for (uint32_t i = 0; i < trees; i++)
        sums[i] = sum += 1.0 / (i + 1);
    while (maker->count < events) {
        double at = sum * ((double)(next_random(&maker->random) >> 11) * 0x1p-53);
        uint32_t tree = 0;

        while (tree + 1 < trees && sums[tree] <= at)
            tree++;
        put_tree(maker, tree + 1);
    }
}

static uint64_t mix(uint64_t seed)
{
    return next_random(&seed);
}

/*
 * Like SQLite's speedtest1 (here 10,600 paths, there 26,000; 1,150 functions): node i of the path tree calls the nodes CHILDREN_MAX i + 1
 * and following, as many as its number says, of these three quarters in each of two variants, once or twice.
 */
static void put_node(struct maker *maker, uint64_t node, uint64_t variant)
{
    uint32_t function = (uint32_t)(mix(node + SQLITE_NODES) % SQLITE_SITES);
    uint64_t first = CHILDREN_MAX * node + 1, count = mix(node) % (CHILDREN_MAX + 1);

    put(maker, function, 0);
    for (uint64_t child = first; child < first + count && child < SQLITE_NODES; child++) {
        uint64_t bits = mix(child << 1 | variant);

        for (uint64_t repeat = bits % 4 ? 1 + (bits >> 8 & 1) : 0; repeat > 0; repeat--)
            put_node(maker, child, bits >> 1 & 1);
    }
    put(maker, function, 1);
}

/* One trace of 64 is long and like none before, the others have one of 1,280 shapes. */
static void make_sqlite(struct maker *maker, uint64_t events)
{
    while (maker->count < events) {
        uint64_t bits = next_random(&maker->random);
        uint64_t root = (bits >> 32) % SQLITE_ROOTS, shape = bits % 16;
        bool is_long = (bits >> 8 & 63) == 0;
        uint64_t seed = is_long ? bits : root << 8 | shape;
        uint64_t calls = is_long ? 16 + (bits >> 16) % 496 : 1 + shape % 4;

        put(maker, (uint32_t)root, 0);
        while (calls-- > 0) {
            uint64_t child = next_random(&seed);

            put_node(maker, SQLITE_FIRST + CHILDREN_MAX * root + child % CHILDREN_MAX,
                     child >> 32 & 1);
        }
        put(maker, (uint32_t)root, 1);
    }
}

static void make_words(enum lane_case which, uint64_t events, struct maker *maker)
{
    switch (which) {
    case LANE_RECURSION:
        make_recursion(maker, events);
        break;
    case LANE_MIXED_100:
        make_mixed(maker, events, 100);
        break;
    case LANE_MIXED_1000:
        make_mixed(maker, events, TREES_MAX);
        break;
    case LANE_SQLITE:
        make_sqlite(maker, events);
        break;
    case LANE_CASE_COUNT:
        abort();
    }
}

static uint32_t words_of(const struct lane_stream *stream, uint32_t frame)
{
    uint64_t left = stream->events - (uint64_t)frame * FRAME_WORDS;

    return left < FRAME_WORDS ? (uint32_t)left : FRAME_WORDS;
}

static uint64_t *words_at(const struct lane_stream *stream, uint32_t frame)
{
    return (uint64_t *)(void *)(stream->bytes + frame * FRAME_BYTES +
                                MR_CHUNK_HEADER_SIZE);
}

struct mr_span lane_stream_words(const struct lane_stream *stream, uint32_t i)
{
    return mr_span_of(words_at(stream, i), words_of(stream, i) * sizeof(uint64_t));
}

static void write_headers(struct lane_stream *stream)
{
    uint64_t ticks = stream->ticks, first = stream->first_event;

    for (uint32_t i = 0; i < stream->frame_count; i++) {
        uint32_t count = words_of(stream, i);
        struct mr_chunk chunk = {.encoding = MR_CHUNK_WORDS,
                                 .flags = first == 0 ? MR_CHUNK_FIRST : 0,
                                 .stream = 1,
                                 .first_event = first,
                                 .events = count,
                                 .ticks = ticks,
                                 .records = count,
                                 .body = lane_stream_words(stream, i)};

        mr_chunk_put_header(&chunk, stream->bytes + i * FRAME_BYTES);
        for (uint32_t j = 0; j < count; j++) /* steps are below 2^31 */
            ticks += (uint32_t)words_at(stream, i)[j] - (uint32_t)ticks;
        first += count;
    }
}

/* Space for the last trace to pass `events`. */
#define OVERSHOOT 4000000u

void lane_stream_make(enum lane_case which, uint64_t events, struct lane_stream *stream)
{
    struct maker maker = {.limit = events + OVERSHOOT, .random = 1};

    maker.words = malloc(maker.limit * sizeof(*maker.words));
    CHECK(maker.words);
    make_words(which, events, &maker);
    *stream = (struct lane_stream){.events = maker.count, .loop_ticks = maker.ticks};
    stream->frame_count = (uint32_t)((maker.count + FRAME_WORDS - 1) / FRAME_WORDS);
    CHECK(stream->frame_count > 0);
    stream->bytes = malloc(stream->frame_count * FRAME_BYTES);
    stream->frames = malloc(stream->frame_count * sizeof(*stream->frames));
    CHECK(stream->bytes && stream->frames);
    for (uint32_t i = 0; i < stream->frame_count; i++) {
        size_t size = words_of(stream, i) * sizeof(uint64_t);

        memcpy(words_at(stream, i), maker.words + (size_t)i * FRAME_WORDS, size);
        stream->frames[i] =
            mr_span_of(stream->bytes + i * FRAME_BYTES, MR_CHUNK_HEADER_SIZE + size);
    }
    free(maker.words);
    write_headers(stream);
}

void lane_stream_advance(struct lane_stream *stream)
{
    for (uint32_t i = 0; i < stream->frame_count; i++)
        for (uint32_t j = 0; j < words_of(stream, i); j++) {
            uint64_t *word = &words_at(stream, i)[j];
            uint32_t ticks = (uint32_t)*word + (uint32_t)stream->loop_ticks;

            *word = (*word & ~(uint64_t)UINT32_MAX) | ticks;
        }
    stream->ticks += stream->loop_ticks;
    stream->first_event += stream->events;
    write_headers(stream);
}

void lane_stream_free(struct lane_stream *stream)
{
    free(stream->bytes);
    free(stream->frames);
    *stream = (struct lane_stream){0};
}
