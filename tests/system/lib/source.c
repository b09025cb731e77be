/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/endpoint.h"

#define OUTBOX_SIZE (32u << 20)
#define MAX_FRAME (1u << 20)
#define WAIT_NS (100 * MR_MILLISECOND_NS)
#define FINISH_NS (60 * MR_SECOND_NS)

void test_source_fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "source: %s: %s\n", what, why);
    exit(1);
}

static size_t hello(void *context, const struct mr_custody_hello *custody, uint8_t *out,
                    size_t capacity)
{
    struct test_source *source = context;
    struct mr_hello message = {.sender = source->id,
                               .role = MR_ROLE_PROBE,
                               .oldest = custody->acked + 1,
                               .custody = *custody,
                               .token = "",
                               .source = {.host = "localhost",
                                          .app = source->app,
                                          .version = "1",
                                          .exe = "/nonexistent/source",
                                          .pid = (uint32_t)getpid(),
                                          .start_ns = source->clock.realtime_ns,
                                          .clock = source->clock}};

    return mr_hello_put(&message, out, capacity);
}

void test_source_start(struct test_source *source, const char *endpoint)
{
    struct mr_sender_config config = {.incarnation = source->id,
                                      .outbox_size = OUTBOX_SIZE,
                                      .outbox = malloc(OUTBOX_SIZE),
                                      .max_frame = MAX_FRAME,
                                      .hello = hello,
                                      .context = source,
                                      .now_ns_seed = mr_clock_monotonic_ns()};
    struct mr_endpoints endpoints;
    struct mr_error error = MR_ERROR_NONE;

    if (!config.outbox)
        test_source_fail("start", "no memory");
    if (mr_endpoints_parse(endpoint, &endpoints, &error) != MR_OK ||
        mr_endpoints_numeric(&endpoints, config.addresses, &config.address_count,
                             &error) != MR_OK)
        test_source_fail(endpoint, error.text);
    if (mr_sender_init(&source->sender, &config) != MR_OK)
        test_source_fail("sender", source->sender.last_error.text);
}

void test_source_begin(struct test_source *source, const char *name, uint32_t functions,
                       const char *endpoint)
{
    char path[64];
    const struct mr_dict_item module = {
        .kind = MR_DICT_MODULE,
        .module = {.epoch = 1,
                   .site_base = MR_SITE_FIRST_MODULE,
                   .size = functions * TEST_SOURCE_SITE_STEP,
                   .address = 0x400000,
                   .build_id = mr_span_of(name, strlen(name)),
                   .path = path}};

    (void)snprintf(path, sizeof(path), "/nonexistent/%s", name);
    source->app = name;
    source->clock = (struct mr_clock_info){
        .kind = MR_CLOCK_MONOTONIC, .mult = 1, .realtime_ns = mr_clock_realtime_ns()};
    if (mr_id_random(&source->id) != MR_OK)
        test_source_fail("start", "no random numbers");
    test_source_start(source, endpoint);
    test_source_item(source, &module);
}

void test_source_chunk(struct test_source *source, const struct mr_chunk *chunk)
{
    size_t size = MR_CHUNK_HEADER_SIZE + chunk->body.size;
    uint8_t *out = test_source_reserve(source, size);

    mr_chunk_put_header(chunk, out);
    memcpy(out + MR_CHUNK_HEADER_SIZE, chunk->body.data, chunk->body.size);
    test_source_commit(source, MR_FRAME_CHUNKS, size);
}

uint8_t *test_source_reserve(struct test_source *source, size_t size)
{
    uint8_t *out;

    while (!(out = mr_sender_reserve(&source->sender, size)))
        if (mr_sender_poll(&source->sender, WAIT_NS) == MR_EREFUSED)
            test_source_fail("refused", source->sender.last_error.text);
    return out;
}

void test_source_commit(struct test_source *source, enum mr_frame_type type, size_t size)
{
    (void)mr_sender_commit(&source->sender, type, 0, size);
    (void)mr_sender_poll(&source->sender, 0);
}

void test_source_item(struct test_source *source, const struct mr_dict_item *item)
{
    struct mr_dict_writer writer;

    mr_dict_writer_init(&writer, test_source_reserve(source, MR_TEXT_MAX), MR_TEXT_MAX);
    if (mr_dict_put(&writer, item) != MR_OK)
        test_source_fail("dictionary", "does not fit");
    test_source_commit(source, MR_FRAME_DICT, mr_dict_writer_finish(&writer));
}

void test_source_frame(struct test_source *source, enum mr_frame_type type,
                       const void *payload, size_t size)
{
    memcpy(test_source_reserve(source, size), payload, size);
    test_source_commit(source, type, size);
}

void test_source_drain(struct test_source *source)
{
    while (!mr_sender_is_drained(&source->sender))
        if (mr_sender_poll(&source->sender, WAIT_NS) == MR_EREFUSED)
            test_source_fail("refused", source->sender.last_error.text);
}

void test_source_idle(struct test_source *source)
{
    (void)mr_sender_poll(&source->sender, WAIT_NS);
}

void test_source_finish(struct test_source *source)
{
    if (mr_sender_finish(&source->sender, MR_BYE_FINISHED,
                         mr_clock_monotonic_ns() + FINISH_NS) != MR_OK)
        test_source_fail("end", "not acknowledged in time");
}
