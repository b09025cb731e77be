/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source of one call tree: a root that calls CHILDREN functions, each once.
 *
 *     wide ENDPOINT CHILDREN
 */
#include "../lib/source.h"

#include "base/clock.h"
#include "net/chunk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SITE_STEP 16u
#define CHILDREN_MAX 1000000u
#define CHUNK_WORDS 8000u

struct source {
    struct test_source probe;
    uint64_t words[CHUNK_WORDS];
    uint32_t count;
    uint64_t ticks, chunk_ticks, events;
};

static void send_chunk(struct source *source, uint8_t flags)
{
    size_t size = source->count * sizeof(uint64_t);
    uint8_t *out = test_source_reserve(&source->probe, MR_CHUNK_HEADER_SIZE + size);
    const struct mr_chunk chunk = {.flags = flags,
                                   .stream = 1,
                                   .epoch = 1,
                                   .first_event = source->events,
                                   .events = source->count,
                                   .ticks = source->chunk_ticks,
                                   .records = source->count,
                                   .body = mr_span_of(source->words, size)};

    mr_chunk_put_header(&chunk, out);
    memcpy(out + MR_CHUNK_HEADER_SIZE, source->words, size);
    test_source_commit(&source->probe, MR_FRAME_CHUNKS, MR_CHUNK_HEADER_SIZE + size);
    source->events += source->count;
    source->count = 0;
    source->chunk_ticks = source->ticks;
}

static void put(struct source *source, uint32_t function, uint64_t direction)
{
    source->ticks += 20;
    source->words[source->count++] = mr_word_event(
        MR_SITE_FIRST_MODULE + function * SITE_STEP, direction, source->ticks);
    if (source->count == CHUNK_WORDS)
        send_chunk(source, 0);
}

static void start(struct source *source, const char *endpoint)
{
    const struct mr_dict_item module = {.kind = MR_DICT_MODULE,
                                        .module = {.epoch = 1,
                                                   .site_base = MR_SITE_FIRST_MODULE,
                                                   .size = (CHILDREN_MAX + 2) * SITE_STEP,
                                                   .address = 0x400000,
                                                   .build_id = mr_span_of("wide", 4),
                                                   .path = "/nonexistent/wide"}};

    source->probe.app = "wide";
    source->probe.clock = (struct mr_clock_info){
        .kind = MR_CLOCK_MONOTONIC, .mult = 1, .realtime_ns = mr_clock_realtime_ns()};
    if (mr_id_random(&source->probe.id) != MR_OK)
        test_source_fail("start", "no random numbers");
    test_source_start(&source->probe, endpoint);
    test_source_item(&source->probe, &module);
}

int main(int argc, char **argv)
{
    static struct source source;
    uint32_t children = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;

    if (children == 0 || children > CHILDREN_MAX) {
        (void)fprintf(stderr, "usage: wide ENDPOINT CHILDREN\n");
        return 2;
    }
    start(&source, argv[1]);
    put(&source, 0, 0);
    for (uint32_t i = 1; i <= children; i++) {
        put(&source, i, 0);
        put(&source, i, MR_WORD_EXIT);
    }
    put(&source, 0, MR_WORD_EXIT);
    send_chunk(&source, MR_CHUNK_LAST);
    test_source_finish(&source.probe);
    (void)printf("%llu\n", (unsigned long long)source.events);
    return 0;
}
