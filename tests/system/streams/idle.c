/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source of many threads that wait: each has entered DEPTH calls, made some more before, and says nothing any more.
 *
 *     idle_streams ENDPOINT STREAMS DEPTH
 *
 * Once all is acknowledged it prints the number of events and waits for a line on stdin; then all calls end.
 */
#include "../lib/source.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SITES 8192u
#define DEPTH_MAX 5000u
#define CALLS 20u /* made and finished before it waits */

struct source {
    struct test_source probe;
    uint64_t words[2 * (DEPTH_MAX + CALLS)];
    uint32_t count;
    uint64_t ticks, events;
};

static void put(struct source *source, uint32_t function, bool is_exit)
{
    source->ticks += 20;
    source->words[source->count++] =
        mr_word_event(MR_SITE_FIRST_MODULE + function % SITES * TEST_SOURCE_SITE_STEP,
                      is_exit ? MR_WORD_EXIT : 0, source->ticks);
}

static void send_chunk(struct source *source, uint32_t stream, uint64_t first,
                       uint8_t flags, uint64_t ticks)
{
    const struct mr_chunk chunk = {
        .flags = flags,
        .stream = stream,
        .epoch = 1,
        .first_event = first,
        .events = source->count,
        .ticks = ticks,
        .records = source->count,
        .body = mr_span_of(source->words, source->count * sizeof(uint64_t))};

    test_source_chunk(&source->probe, &chunk);
    source->events += source->count;
    source->count = 0;
}

/* The thread's start function is an outer frame; below it a call tree waits. */
static void begin_stream(struct source *source, uint32_t stream, uint32_t depth)
{
    const struct mr_dict_item item = {.kind = MR_DICT_STREAM,
                                      .stream = {.stream = stream,
                                                 .tid = stream,
                                                 .name = "thread",
                                                 .start_site = MR_SITE_FIRST_MODULE}};
    uint64_t ticks = source->ticks;

    test_source_item(&source->probe, &item);
    put(source, 0, false);
    for (uint32_t i = 0; i < CALLS; i++) {
        put(source, 1 + i % 5, false);
        put(source, 1 + i % 5, true);
    }
    for (uint32_t i = 1; i < depth; i++)
        put(source, i, false);
    send_chunk(source, stream, 0, MR_CHUNK_FIRST, ticks);
}

static void end_stream(struct source *source, uint32_t stream, uint32_t depth)
{
    uint64_t ticks = source->ticks;

    for (uint32_t i = depth; i-- > 0;)
        put(source, i, true);
    send_chunk(source, stream, 2 * CALLS + depth, MR_CHUNK_LAST, ticks);
}

static int poll_stdin(void)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};

    return poll(&fd, 1, 0);
}

static void tell(struct source *source)
{
    char line[16];

    test_source_drain(&source->probe);
    (void)printf("%llu\n", (unsigned long long)source->events);
    (void)fflush(stdout);
    while (poll_stdin() == 0) /* heartbeats go on */
        test_source_idle(&source->probe);
    if (!fgets(line, sizeof(line), stdin))
        test_source_fail("stdin", "closed");
}

int main(int argc, char **argv)
{
    static struct source source;
    uint32_t streams = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    uint32_t depth = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;

    if (streams == 0 || depth == 0 || depth > DEPTH_MAX) {
        (void)fprintf(stderr, "usage: idle_streams ENDPOINT STREAMS DEPTH\n");
        return 2;
    }
    test_source_begin(&source.probe, "idle", SITES, argv[1]);
    for (uint32_t i = 1; i <= streams; i++)
        begin_stream(&source, i, depth);
    tell(&source);
    for (uint32_t i = 1; i <= streams; i++)
        end_stream(&source, i, depth);
    test_source_finish(&source.probe);
    (void)printf("%llu\n", (unsigned long long)source.events);
    return 0;
}
