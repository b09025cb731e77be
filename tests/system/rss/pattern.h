/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call pattern like that of SQLite's speedtest1 at any length (measured there: 26,000 paths, 1,150 functions, most of the
 * calls in few, very long traces): a fixed path tree of 50,000 nodes, of which 22,439 are reached, below each node two
 * variants of what it calls, and traces that go along them: a third of the calls in 1,280 short shapes, the others in long
 * traces, of which there are as many shapes as asked for. Deterministic.
 */
#ifndef TESTS_PATTERN_H
#define TESTS_PATTERN_H

#include <stdint.h>

#define PATTERN_PATHS 50000
#define PATTERN_ROOTS 80
#define PATTERN_SITES 1150
#define PATTERN_MAIN                                                                     \
    PATTERN_SITES /* the outer frame's function: one more than the others */

struct pattern_node {
    uint32_t site, first_child, child_count;
};

struct pattern {
    struct pattern_node
        nodes[PATTERN_PATHS]; /* the first PATTERN_ROOTS are entry points */
    uint64_t random;
    uint64_t long_shapes; /* 0: no long trace is like any before */
    /* Called for each enter (exit 0) and exit (1) with a site of 0 .. PATTERN_SITES. */
    void (*emit)(void *context, uint32_t site, int exit);
    void *context;
};

void pattern_init(struct pattern *pattern, uint64_t long_shapes,
                  void (*emit)(void *, uint32_t, int), void *context);
/* One trace; one of 64 is long, the rest have one of 1,280 shapes. */
void pattern_trace(struct pattern *pattern);

#endif
