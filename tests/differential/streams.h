/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random streams: first as events, then as scripts, cut into chunks and frames anywhere.
 *
 *     struct streams streams = {0};
 *     streams_make(&random, &mood, &streams);
 *     streams_write(&random, &streams, &cut, &script);       // again and again, cut otherwise
 *     streams_clear(&streams);
 */
#ifndef MR_TESTS_DIFFERENTIAL_STREAMS_H
#define MR_TESTS_DIFFERENTIAL_STREAMS_H

#include "../unit/unit_test.h"
#include "script.h"

#define STREAMS_MAX 64u
#define STREAMS_TOKENS 4096u
#define STREAMS_NAMED 8u /* wire sites of spans, from the first named one on */

/* How wild they are; rates are of 10,000 events. */
struct mood {
    uint32_t streams, events; /* events: of each, about */
    uint32_t functions;       /* how many are called, at least 1 */
    uint32_t depth;           /* calls return, rather than go deeper than this */
    uint32_t opens; /* of 100: how often a call goes deeper rather than returns */
    uint32_t losses, gaps, cuts, unwinds, strays, statuses, others, wides, unknowns;
    uint32_t landings; /* which functions a lane has met matters: for one lane */
    uint32_t backward, equal, leaps;
    uint64_t step, leap; /* ticks, up to */
    uint32_t links;      /* sends, receives, hand-offs */
    uint32_t
        tokens; /* how many edges there can be, up to STREAMS_TOKENS: few of many streams meet more often */
    uint32_t repeats;  /* what was called is called again as it was, up to so often */
    uint32_t wrappers; /* calls that hardly ever return, one below the other, up to */
    bool has_spans, has_roots, has_outers, has_late;
    bool repeats_roots; /* no call inside another one is said again */
    bool
        says_roots_inside; /* what came again and again as a root comes inside a call, too */
};

struct event;

struct stream {
    struct event *events;
    size_t count, capacity;
    uint32_t start_site;
    uint64_t first_ticks;
};

struct streams {
    struct stream items[STREAMS_MAX];
    uint32_t count;
    uint32_t span_flags[STREAMS_NAMED];
    bool has_spans,
        has_late; /* late: one module and half of the spans are told in the middle */
};

/* Where the borders lie. */
struct cut {
    uint32_t chunk_max;    /* records of a chunk, up to */
    uint32_t frame_chunks; /* chunks of a frame, up to */
    uint32_t compact;      /* of 100 chunks: encoded so */
    uint32_t idle;         /* of 100 chunks: followed by one without records */
    uint32_t ticks,
        opens;     /* of 100 frames: followed by a tick; by a look at what is open */
    bool in_order; /* one stream after the other */
    bool keeps_header_time; /* the header's time is that of the record before */
    const uint8_t
        *lanes; /* of each stream; NULL: all are written, else those of `lane` */
    uint8_t lane;
};

void streams_make(struct mr_test_random *random, const struct mood *mood,
                  struct streams *streams);
void streams_write(struct mr_test_random *random, const struct streams *streams,
                   const struct cut *cut, struct script *script);
void streams_clear(struct streams *streams);

#endif
