/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a queue to a receiver on this host stands: the program makes events faster than the receiver takes them, and what is
 * queued in between helps nobody, but goes through memory instead of near caches. Then rings wait while MR_STANDING_WINDOW bytes
 * are not acknowledged (the standing queue of CoDel, RFC 8289; docs/why/2026-11-24-standing-queue.md). No I/O, no clock; one thread.
 *
 * The queue is there for bursts, and for receivers that pause. So it stands only once it was as long as its owner lets it get, for
 * `patience_ns`, at a receiver that took MR_STANDING_RATE all the while: all of it would be gone in a moment. It stands no longer
 * when less than the window was held for MR_STANDING_RELIEF_NS, or the receiver gets slower.
 */
#ifndef MR_PROBE_STANDING_H
#define MR_PROBE_STANDING_H

#include "base/clock.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_STANDING_WINDOW (256u << 10)
/* Bytes a second: 16 MiB in an eighth of one. */
#define MR_STANDING_RATE (UINT64_C(128) << 20)
/* Over so long the rate is taken, and whether the queue was long. */
#define MR_STANDING_PERIOD_NS (25 * MR_MILLISECOND_NS)
#define MR_STANDING_RELIEF_NS (20 * MR_MILLISECOND_NS)

struct mr_standing {
    bool stands;
    uint64_t behind_ns; /* the window was held then, at last */
    /* Of the period. */
    uint64_t since_ns, acked_then;
    bool was_long;
    uint64_t
        long_ns; /* periods in a row in which it was long at some time, and the receiver fast */
};

/* A look at the queue, as often as can be. */
struct mr_standing_look {
    uint64_t now_ns;
    uint64_t held;        /* bytes, not acknowledged or not sent yet */
    uint64_t acked;       /* bytes, a sum; on this connection */
    bool is_long;         /* now, or since the last look */
    uint64_t patience_ns; /* for how long it is to be long, in whole periods */
};

/* Whether rings are to wait; `stands` says whether the window is in force. */
MR_HIDDEN bool mr_standing_step(struct mr_standing *standing,
                                const struct mr_standing_look *look);
/* The connection has ended, or is another. */
MR_HIDDEN void mr_standing_reset(struct mr_standing *standing);

#endif
