/* SPDX-License-Identifier: Apache-2.0 */
/* A lane that is told events as text, and what came out of it. */
#ifndef MR_TESTS_UNIT_PIPELINE_SUPPORT_REDUCE_H
#define MR_TESTS_UNIT_PIPELINE_SUPPORT_REDUCE_H

#include "net/delta.h"
#include "support_lane.h"
#include "support_model.h"

struct test_reduced {
    struct test_text text;
};

/*
 * Writes events of stream 1: "+1" enters f1, "-1" exits it, "s1" status failed, "l4,2,1" loses 4 events with 2 pops and 1 push,
 * "p1" prunes f1, "t9" goes on by 9 ns, "w" to the next second. Without a step the time stands.
 */
void test_reduce_write(struct test_lane *lane, const char *text);
void test_reduce_write_times(struct test_lane *lane, uint32_t count, const char *text);

/* All of `events`, with the start site f<start> where that is not 0. */
void test_reduce_run_with(const struct test_options *options, uint32_t start,
                          const char *events, struct test_reduced *result);
void test_reduce_run(const char *events, struct test_reduced *result);
/* The line that begins so goes on so. */
void test_reduce_expect(struct test_reduced *result, const char *prefix,
                        const char *rest);
void test_reduce_done(struct test_reduced *result);

/* What all deltas say of calls, of traces that were whole, and of the ledger. */
void test_reduce_add_up(const struct test_lane *lane, uint64_t *ok, uint64_t *whole,
                        struct mr_ledger_entry *ledger);

#endif
