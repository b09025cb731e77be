/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source whose sends have ids that were used before, as no probe makes them.
 *
 *     same_send ENDPOINT send       a call tree that sends message 1
 *     same_send ENDPOINT receive    a call tree that receives message 1
 *     same_send ENDPOINT deep       DEPTH call trees, each of which receives a message and sends the next
 *                                   one as often as a part has edges
 */
#include "../lib/source.h"

#include "net/part.h"

#include <stdio.h>
#include <string.h>

#define LOOP MR_SITE_FIRST_MODULE /* the thread's start function: an outer frame */
#define REQUEST (MR_SITE_FIRST_MODULE + TEST_SOURCE_SITE_STEP)
#define DEPTH 4u
#define DEEP_FIRST 100u /* its first message */
#define LINK_WORDS 4u
#define WORDS_MAX (2 + DEPTH * (2 + (1 + MR_PART_EDGES_MAX) * (1 + LINK_WORDS)))

struct source {
    struct test_source probe;
    uint64_t words[WORDS_MAX];
    uint32_t count, events;
    uint64_t ticks;
};

static void put_word(struct source *source, uint64_t word)
{
    source->words[source->count++] = word;
}

static void put_call(struct source *source, uint32_t site, uint64_t dir)
{
    source->ticks += 20;
    put_word(source, mr_word_event(site, dir, source->ticks));
    source->events++;
}

static void put_message(struct source *source, enum mr_record_kind kind, uint64_t number)
{
    source->ticks += 20;
    put_word(source, mr_word_record(kind, LINK_WORDS, 0, source->ticks));
    put_word(source, 7); /* the trace */
    put_word(source, 7);
    put_word(source, number << 4);
    put_word(source, 0);
    source->events++;
}

static void put_request(struct source *source, uint64_t received, uint64_t sent,
                        uint32_t times)
{
    put_call(source, REQUEST, 0);
    if (received)
        put_message(source, MR_RECORD_RECEIVE, received);
    for (uint32_t i = 0; i < times; i++)
        put_message(source, MR_RECORD_SEND, sent);
    put_call(source, REQUEST, MR_WORD_EXIT);
}

static void start(struct source *source, const char *endpoint)
{
    const struct mr_dict_item stream = {
        .kind = MR_DICT_STREAM,
        .stream = {.stream = 1, .tid = 1, .name = "thread", .start_site = LOOP}};

    test_source_begin(&source->probe, "same", 2, endpoint);
    test_source_item(&source->probe, &stream);
}

static void send_chunk(struct source *source)
{
    const struct mr_chunk chunk = {
        .flags = MR_CHUNK_FIRST | MR_CHUNK_LAST,
        .stream = 1,
        .epoch = 1,
        .events = source->events,
        .records = source->count,
        .body = mr_span_of(source->words, source->count * sizeof(uint64_t))};

    test_source_chunk(&source->probe, &chunk);
}

int main(int argc, char **argv)
{
    static struct source source;
    const char *what = argc > 2 ? argv[2] : "";

    if (strcmp(what, "send") != 0 && strcmp(what, "receive") != 0 &&
        strcmp(what, "deep") != 0) {
        (void)fprintf(stderr, "usage: same_send ENDPOINT send|receive|deep\n");
        return 2;
    }
    start(&source, argv[1]);
    put_call(&source, LOOP, 0);
    if (strcmp(what, "send") == 0)
        put_request(&source, 0, 1, 1);
    else if (strcmp(what, "receive") == 0)
        put_request(&source, 1, 0, 0);
    for (uint32_t i = 0; strcmp(what, "deep") == 0 && i < DEPTH; i++)
        put_request(&source, i ? DEEP_FIRST + i : 0, DEEP_FIRST + i + 1,
                    MR_PART_EDGES_MAX);
    put_call(&source, LOOP, MR_WORD_EXIT);
    send_chunk(&source);
    test_source_finish(&source.probe);
    return 0;
}
