/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source of one call tree: a root that calls CHILDREN functions, each once.
 *
 *     wide ENDPOINT CHILDREN
 */
#include "../lib/source.h"

#include <stdio.h>
#include <stdlib.h>

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
    const struct mr_chunk chunk = {
        .flags = flags,
        .stream = 1,
        .epoch = 1,
        .first_event = source->events,
        .events = source->count,
        .ticks = source->chunk_ticks,
        .records = source->count,
        .body = mr_span_of(source->words, source->count * sizeof(uint64_t))};

    test_source_chunk(&source->probe, &chunk);
    source->events += source->count;
    source->count = 0;
    source->chunk_ticks = source->ticks;
}

static void put(struct source *source, uint32_t function, uint64_t direction)
{
    source->ticks += 20;
    source->words[source->count++] =
        mr_word_event(MR_SITE_FIRST_MODULE + function * TEST_SOURCE_SITE_STEP, direction,
                      source->ticks);
    if (source->count == CHUNK_WORDS)
        send_chunk(source, 0);
}

int main(int argc, char **argv)
{
    static struct source source;
    uint32_t children = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;

    if (children == 0 || children > CHILDREN_MAX) {
        (void)fprintf(stderr, "usage: wide ENDPOINT CHILDREN\n");
        return 2;
    }
    test_source_begin(&source.probe, "wide", CHILDREN_MAX + 2, argv[1]);
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
