/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event streams for bench_lane: frames with one chunk of words each, that can be played again and again: the same calls,
 * the clock going on.
 *
 *     lane_stream_make(LANE_RECURSION, 2000000, &stream);
 *     for each loop: use stream.frames, lane_stream_advance(&stream)
 *     lane_stream_free(&stream);
 */
#ifndef BENCH_LANE_STREAM_H
#define BENCH_LANE_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "net/control.h"

#define LANE_SITES 2048u /* functions 0 .. LANE_SITES - 1: site FIRST + 16 k */
#define LANE_SITE_STEP 16u
#define LANE_START_NS UINT64_C(1700000000000000000)
#define LANE_CLOCK_MULT 1717986918u /* 2.5 GHz: 0.4 ns a tick */
#define LANE_CLOCK_SHIFT 32

/* Case, name. */
#define LANE_CASES(X)                                                                    \
    X(LANE_RECURSION, "recursion-10")                                                    \
    X(LANE_MIXED_100, "mixed-100")                                                       \
    X(LANE_MIXED_1000, "mixed-1000")                                                     \
    X(LANE_SQLITE, "sqlite-like")

enum lane_case {
#define X(name, text) name,
    LANE_CASES(X)
#undef X
        LANE_CASE_COUNT
};

struct lane_stream {
    uint8_t *bytes; /* frames' payloads one after the other: header, words */
    struct mr_span *frames;
    uint32_t frame_count;
    uint64_t events;            /* of one loop; all calls are closed at its end */
    uint64_t first_event;       /* of this loop */
    uint64_t ticks, loop_ticks; /* just before the loop; that it takes */
};

/* About `events`, whole traces. Aborts without memory. */
void lane_stream_make(enum lane_case which, uint64_t events, struct lane_stream *stream);
/* The next loop: headers and the low 32 bits of all times go on. */
void lane_stream_advance(struct lane_stream *stream);
void lane_stream_free(struct lane_stream *stream);

/* The words of frame `i`. */
struct mr_span lane_stream_words(const struct lane_stream *stream, uint32_t i);

#endif
