/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A probe without a program: sends the events of pattern.h to a level-1 worker as fast as it takes them.
 *
 *     rss_sender ENDPOINT LONG-SHAPES EVENTS...
 *
 * At each count of EVENTS it waits until everything is acknowledged, prints the exact number of events so far and how
 * many traces, and goes on when a line comes on stdin. At the end the stream and the source end properly.
 */
#include "net/sender.h"
#include "base/assert.h"
#include "base/clock.h"
#include "net/chunk.h"
#include "net/control.h"
#include "net/endpoint.h"
#include "tests/system/rss/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STREAM 1
#define EPOCH 1
#define CHUNK_WORDS 32768
#define OUTBOX_SIZE (32u << 20)
#define MAX_FRAME (1u << 20)
#define WAIT_NS (100 * MR_MILLISECOND_NS)
#define FINISH_NS (30 * MR_SECOND_NS)
#define SITE_SPACING 16 /* bytes of code per function */

struct feed {
    struct mr_sender sender;
    struct mr_id id;
    struct mr_clock_info clock;
    uint64_t events, traces;
    uint64_t ticks, chunk_ticks; /* ns here: mult 1, shift 0 */
    uint32_t count;              /* words of the chunk that is being filled */
    uint8_t flags;
    uint64_t words[CHUNK_WORDS];
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "rss_sender: %s: %s\n", what, why);
    exit(1);
}

static size_t hello(void *context, const struct mr_custody_hello *custody, uint8_t *out,
                    size_t capacity)
{
    struct feed *feed = context;
    struct mr_hello message = {.sender = feed->id,
                               .role = MR_ROLE_PROBE,
                               .oldest = custody->acked + 1,
                               .custody = *custody};

    message.token = "";
    message.source = (struct mr_source_info){.host = "localhost",
                                             .app = "rss",
                                             .version = "1",
                                             .exe = "/nonexistent/rss",
                                             .pid = (uint32_t)getpid(),
                                             .start_ns = feed->clock.realtime_ns,
                                             .clock = feed->clock,
                                             .policy = MR_POLICY_BLOCK};
    return mr_hello_put(&message, out, capacity);
}

static void poll_once(struct feed *feed)
{
    if (mr_sender_poll(&feed->sender, WAIT_NS) == MR_EREFUSED)
        fail("refused", feed->sender.last_error.text);
}

static uint8_t *reserve(struct feed *feed, size_t size)
{
    uint8_t *out;

    while (!(out = mr_sender_reserve(&feed->sender, size)))
        poll_once(feed);
    return out;
}

static void send_chunk(struct feed *feed)
{
    size_t size = feed->count * sizeof(uint64_t);
    uint8_t *out = reserve(feed, MR_CHUNK_HEADER_SIZE + size);
    struct mr_chunk chunk = {.encoding = MR_CHUNK_WORDS,
                             .flags = feed->flags,
                             .stream = STREAM,
                             .epoch = EPOCH,
                             .first_event = feed->events - feed->count,
                             .events = feed->count,
                             .ticks = feed->chunk_ticks,
                             .records = feed->count,
                             .body = {(const uint8_t *)feed->words, size}};

    mr_chunk_put_header(&chunk, out);
    memcpy(out + MR_CHUNK_HEADER_SIZE, feed->words, size);
    mr_sender_commit(&feed->sender, MR_FRAME_CHUNKS, 0, MR_CHUNK_HEADER_SIZE + size);
    feed->flags = 0;
    feed->count = 0;
    feed->chunk_ticks = feed->ticks;
    (void)mr_sender_poll(&feed->sender, 0);
}

static void emit(void *context, uint32_t site, int exit)
{
    struct feed *feed = context;

    feed->ticks += 20;
    feed->words[feed->count++] = mr_word_event(MR_SITE_FIRST_MODULE + site * SITE_SPACING,
                                               exit ? MR_WORD_EXIT : 0, feed->ticks);
    feed->events++;
    if (feed->count == CHUNK_WORDS)
        send_chunk(feed);
}

static void send_dictionary(struct feed *feed)
{
    static const uint8_t build_id[20] = "rss test pattern v1";
    struct mr_dict_item module = {.kind = MR_DICT_MODULE};
    struct mr_dict_item stream = {.kind = MR_DICT_STREAM};
    struct mr_dict_writer writer;

    module.module =
        (struct mr_dict_module){.epoch = EPOCH,
                                .site_base = MR_SITE_FIRST_MODULE,
                                .size = (PATTERN_SITES + 1) * SITE_SPACING,
                                .flags = MR_MODULE_EXECUTABLE,
                                .address = 0x400000,
                                .build_id = mr_span_of(build_id, sizeof build_id),
                                .path = "/nonexistent/rss"};
    stream.stream = (struct mr_dict_stream){.stream = STREAM,
                                            .tid = 1,
                                            .name = "main",
                                            .start_site = MR_SITE_FIRST_MODULE +
                                                          PATTERN_MAIN * SITE_SPACING};
    mr_dict_writer_init(&writer, reserve(feed, MR_TEXT_MAX), MR_TEXT_MAX);
    if (mr_dict_put(&writer, &module) != MR_OK || mr_dict_put(&writer, &stream) != MR_OK)
        fail("dictionary", "does not fit");
    mr_sender_commit(&feed->sender, MR_FRAME_DICT, 0, mr_dict_writer_finish(&writer));
}

static void start(struct feed *feed, const char *endpoint)
{
    struct mr_sender_config config = {.outbox_size = OUTBOX_SIZE,
                                      .max_frame = MAX_FRAME,
                                      .hello = hello,
                                      .context = feed};
    struct mr_endpoints endpoints;
    struct mr_error error = MR_ERROR_NONE;

    if (mr_endpoints_parse(endpoint, &endpoints, &error) != MR_OK ||
        mr_endpoints_numeric(&endpoints, config.addresses, &config.address_count,
                             &error) != MR_OK)
        fail(endpoint, error.text);
    if (mr_id_random(&feed->id) != MR_OK || !(config.outbox = malloc(OUTBOX_SIZE)))
        fail("start", "no memory or no random numbers");
    config.incarnation = feed->id;
    config.now_ns_seed = mr_clock_monotonic_ns();
    feed->clock = (struct mr_clock_info){
        .kind = MR_CLOCK_MONOTONIC, .mult = 1, .realtime_ns = mr_clock_realtime_ns()};
    if (mr_sender_init(&feed->sender, &config) != MR_OK)
        fail("sender", feed->sender.last_error.text);
    send_dictionary(feed);
    feed->flags = MR_CHUNK_FIRST;
}

/* Everything up to here is in the worker's custody; the reader of stdout answers with a line. */
static void pause_here(struct feed *feed)
{
    char line[16];

    send_chunk(feed);
    while (!mr_sender_is_drained(&feed->sender))
        poll_once(feed);
    printf("%llu %llu\n", (unsigned long long)feed->events,
           (unsigned long long)feed->traces);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        fail("stdin", "closed");
}

static void finish(struct feed *feed)
{
    emit(feed, PATTERN_MAIN, 1);
    feed->flags = MR_CHUNK_LAST | MR_CHUNK_SOURCE_END;
    send_chunk(feed);
    if (mr_sender_finish(&feed->sender, MR_BYE_FINISHED,
                         mr_clock_monotonic_ns() + FINISH_NS) != MR_OK)
        fail("end", "not acknowledged in time");
    printf("%llu %llu\n", (unsigned long long)feed->events,
           (unsigned long long)feed->traces);
}

int main(int argc, char **argv)
{
    static struct feed feed;
    static struct pattern pattern;

    if (argc < 4) {
        fprintf(stderr, "usage: rss_sender ENDPOINT LONG-SHAPES EVENTS...\n");
        return 2;
    }
    start(&feed, argv[1]);
    pattern_init(&pattern, strtoull(argv[2], NULL, 10), emit, &feed);
    emit(&feed, PATTERN_MAIN, 0);
    for (int i = 3; i < argc; i++) {
        uint64_t mark = strtoull(argv[i], NULL, 10);
        for (; feed.events < mark; feed.traces++)
            pattern_trace(&pattern);
        pause_here(&feed);
    }
    finish(&feed);
    return 0;
}
