/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of calls as text, and what reconstruct makes of them, as text too. For tests alone; fails the test that calls. */
#ifndef MR_TESTS_UNIT_PIPELINE_SUPPORT_EVENTS_H
#define MR_TESTS_UNIT_PIPELINE_SUPPORT_EVENTS_H

#include "support_lane.h"

/*
 * The output as text: "+1r" opens f1 as a root, "-1" closes it. Letters: r root, o outer, f failed, i incomplete, w unwound,
 * u unknown. "#N" N events reduced at once, "!R:N" N events lost for reason R, "B" trace broken, "P" trace pruned, "L" learned, "." stream end.
 */
char *test_events_text(const struct test_lane *lane); /* to be freed */
/*
 * Writes events of stream 1, one ns apart: "+1" enters f1, "-1" exits it, "s1" status failed, "s0" ok, "u2" unwinds to depth 2,
 * "L..." lands (write_landing()), "l4,2,1" loses 4 events with 2 pops and 1 push, "p1" prunes f1, "P1" settles it, "q1" has f1 on again, "c1" is a cut, "|" ends the chunk, "g5" loses 5 events between chunks, "t9" goes on 9 s,
 * "=" has the next event happen at the time of the one before.
 */
void test_events_write(struct test_lane *lane, const char *text);
/* Ends the source: what comes of it is `expected`. Ends the lane too. */
void test_events_end(struct test_lane *lane, const char *expected);
/* What comes of `events`; `start`: the function that the stream announces, 0: none. */
void test_events_expect_with(const struct mr_reconstruct_config *config, uint32_t start,
                             const char *events, const char *expected);
void test_events_expect(const char *events, const char *expected);
/* head, so many times unit, tail; to be freed. */
char *test_events_repeat(const char *head, const char *unit, int count, const char *tail);
void test_events_expect_repeated(const char *head, const char *unit, int count,
                                 const char *tail, const char *head_out,
                                 const char *unit_out, const char *tail_out);

#endif
