/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A probe without a program: what a test says in its name comes over a real connection, in custody.
 *
 *     struct test_source source = {.id = ..., .app = "idle", .clock = ...};
 *     test_source_start(&source, "tcp://127.0.0.1:7410");
 *     test_source_item(&source, &item);
 *     test_source_frame(&source, MR_FRAME_CHUNKS, bytes, size);
 *     test_source_finish(&source);
 *
 * What cannot be done ends the process with a text. One thread.
 */
#ifndef MR_TESTS_SYSTEM_LIB_SOURCE_H
#define MR_TESTS_SYSTEM_LIB_SOURCE_H

#include "net/chunk.h"
#include "net/control.h"
#include "net/sender.h"

#define TEST_SOURCE_SITE_STEP 16u /* between functions of test_source_begin() */

struct test_source {
    struct mr_id id;
    const char *app;
    struct mr_clock_info clock;
    struct mr_sender sender;
};

_Noreturn void test_source_fail(const char *what, const char *why);
/* `source` stays where it is. */
void test_source_start(struct test_source *source, const char *endpoint);
/*
 * Starts one of a random id and the monotonic clock, with the module of `name`, epoch 1: function number i is the site
 * MR_SITE_FIRST_MODULE + i * TEST_SOURCE_SITE_STEP. `name` stays where it is.
 */
void test_source_begin(struct test_source *source, const char *name, uint32_t functions,
                       const char *endpoint);
/* A frame of one chunk: its body, of words, is sent behind its header. */
void test_source_chunk(struct test_source *source, const struct mr_chunk *chunk);
/* Room for one frame's payload; then committed. */
uint8_t *test_source_reserve(struct test_source *source, size_t size);
void test_source_commit(struct test_source *source, enum mr_frame_type type, size_t size);
void test_source_item(struct test_source *source, const struct mr_dict_item *item);
void test_source_frame(struct test_source *source, enum mr_frame_type type,
                       const void *payload, size_t size);
/* Until all is acknowledged; the connection stays. */
void test_source_drain(struct test_source *source);
/* Heartbeats, for as long as one of them may take. */
void test_source_idle(struct test_source *source);
void test_source_finish(struct test_source *source);

#endif
