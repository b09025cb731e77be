/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the analysis must say of a stream, computed the naive way: the calls are built as a tree of structs, whole traces are
 * held in memory, statistics are gathered by recursion over finished trees, shapes are texts, histograms come from
 * logarithms. Shares no line with the pipeline; only the form of its result (support_model.h) is common.
 *
 *     struct test_reference *reference = test_reference_new(TEST_FOLDED);
 *     test_reference_event(reference, 1, &event);              // in the order of the stream
 *     test_reference_end(reference, &text);                    // streams end, lines
 */
#ifndef MR_TESTS_UNIT_PIPELINE_SUPPORT_REFERENCE_H
#define MR_TESTS_UNIT_PIPELINE_SUPPORT_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "support_text.h"

enum test_exactness { TEST_FOLDED, TEST_EXACT, TEST_SET };

enum test_kind {
    TEST_ENTER,
    TEST_EXIT,
    TEST_LOSS,
    TEST_GAP,
    TEST_STATUS,
    TEST_UNWIND,
    TEST_OTHER
};

struct test_event {
    enum test_kind kind;
    uint64_t ns;       /* after the start; may go back: then the time before counts */
    uint32_t function; /* ENTER, EXIT; 0 is unknown to the worker */
    uint64_t events;   /* LOSS, GAP */
    uint32_t reason, pops, pushes; /* LOSS */
    uint32_t value;                /* STATUS: failed; UNWIND: depth that remains */
};

struct test_reference;

struct test_reference *test_reference_new(enum test_exactness exactness);
/* Its bottom call of this function is an outer frame. */
void test_reference_start(struct test_reference *reference, uint32_t stream,
                          uint32_t function);
void test_reference_event(struct test_reference *reference, uint32_t stream,
                          const struct test_event *event);
/* All streams end; writes the lines and frees everything. */
void test_reference_end(struct test_reference *reference, struct test_text *text);

#endif
