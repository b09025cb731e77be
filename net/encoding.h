/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a sender writes what it sends, chosen by what its link does. No I/O, no clock, no memory: the caller measures and
 * tells. One thread.
 *
 *     level    who          costs (SQLite's events)     bytes an event
 *     words    own host     nothing                     8
 *     compact  network      2.6 ns to write, 2.2 to read more    1.6 .. 1.9
 *     zstd     full link    2.5 .. 3.3 ns more          0.3 .. 1.5
 *
 * Up: the socket took no more for half of the time, for UP_NS, though the receiver gives credit (from words for UP_WORDS_NS).
 * That may be the link or the receiver: once what was written before has gone, the events acknowledged per second are compared
 * with those before, and without a gain of a tenth (or with a loss, where the link is full no more) the step is taken back,
 * and the next try is twice as far off. Down: the link was not full
 * for DOWN_NS, and what is sent would be half of what the link was seen to carry at most; or the writer itself cannot keep
 * up while the link has room. (docs/why/2026-11-20-wire.md)
 *
 *     mr_encoding_init(&choice, MR_ENCODING_COMPACT, MR_ENCODING_COMPACT_ZSTD);
 *     every MR_ENCODING_PERIOD_NS or later:
 *         has_changed = mr_encoding_step(&choice, &sample);     // choice.level
 */
#ifndef MR_NET_ENCODING_H
#define MR_NET_ENCODING_H

#include <stdbool.h>
#include <stdint.h>

#include "net/wire.h"

#define MR_ENCODING_PERIOD_NS UINT64_C(100000000)
#define MR_ENCODING_UP_NS UINT64_C(300000000)
#define MR_ENCODING_UP_WORDS_NS                                                          \
    UINT64_C(2000000000) /* own host: mostly the receiver's doing */
#define MR_ENCODING_TRY_NS UINT64_C(500000000)
#define MR_ENCODING_DOWN_NS UINT64_C(5000000000)
#define MR_ENCODING_BACKOFF_MIN_NS UINT64_C(2000000000)
#define MR_ENCODING_BACKOFF_MAX_NS UINT64_C(64000000000)

/* What has been measured until now; all sums since the sender began, but for the last. */
struct mr_encoding_sample {
    uint64_t now_ns;
    uint64_t events;     /* acknowledged */
    uint64_t bytes;      /* given to the socket */
    uint64_t stalled_ns; /* frames waited for the socket, not for credit */
    uint64_t busy_ns;    /* CPU time of the one who encodes and sends */
    uint64_t lost;       /* events lost, or threads that waited, for want of room */
    uint64_t acked;      /* sequence of the newest frame acknowledged */
    uint64_t made;       /* of the newest frame made */
};

struct mr_encoding_choice {
    enum mr_encoding level, base, limit; /* of now; of a link with room; never above */
    enum mr_encoding_reason reason;      /* of the last change */
    uint64_t changes;
    bool has_last, is_trying;
    struct mr_encoding_sample last; /* of the step before */
    /* While the link is full, and while it is not: since when. 0: it is not so. */
    struct mr_encoding_sample full_since;
    uint64_t free_since_ns, busy_since_ns;
    /* Of a step up under trial. */
    enum mr_encoding from;
    uint64_t made_before; /* the newest frame of the level before */
    double rate_before;   /* events per ns */
    struct mr_encoding_sample try_since;
    uint64_t hold_until_ns, backoff_ns;
    double capacity; /* most bytes per ns seen on a full link; 0: unknown */
    double size[MR_ENCODING_COUNT]; /* bytes per event as seen; 0: unknown */
};

/* `base` for a link with room; limit >= base. base == limit: fixed. */
void mr_encoding_init(struct mr_encoding_choice *choice, enum mr_encoding base,
                      enum mr_encoding limit, enum mr_encoding_reason reason);
/* True when `level` has changed; what is made from now on is to be written so. */
bool mr_encoding_step(struct mr_encoding_choice *choice,
                      const struct mr_encoding_sample *sample);
/* Of the words of FORMAT.md section 5, link. */
const char *mr_encoding_name(uint32_t level);
const char *mr_encoding_reason_text(uint32_t reason);

#endif
