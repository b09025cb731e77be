/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the writer naps between two passes over the rings. Each pass makes a chunk of every ring that has something, and a chunk
 * costs its header, its acknowledgement, and some 400 ns in a worker, however small it is (docs/why/2026-11-26-chunks.md). So
 * passes that bring little of each ring are made less often. No I/O, no clock; one thread.
 */
#ifndef MR_PROBE_PACE_H
#define MR_PROBE_PACE_H

#include "base/clock.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

/* Of a ring: less than this is not worth a chunk. */
#define MR_PACE_BYTES 16384u
/* A ring of which this part came in one chunk, an eighth, fills soon. */
#define MR_PACE_RING_SHARE 8u
#define MR_PACE_MIN_NS (120 * MR_MICROSECOND_NS) /* of the 300 us that fill a ring */
#define MR_PACE_MIN_HYBRID_NS (50 * MR_MICROSECOND_NS)
/* Naps from here on end when a quarter of a ring is filled (probe/ring.c); shorter ones are not worth its system call. */
#define MR_PACE_WAKEABLE_NS (200 * MR_MICROSECOND_NS)
#define MR_PACE_MAX_NS (4 * MR_MILLISECOND_NS)

struct mr_pace {
    uint64_t nap_ns; /* the next one; 0 at first */
};

/* A pass: the frames that were made of the rings, until they were empty. */
struct mr_pass {
    uint64_t bytes;
    uint32_t rings;  /* that they came from, at least: most of a frame's chunks */
    bool has_more;   /* is left in the rings, to go by the last frame */
    bool fills_soon; /* one of the rings */
};

/* How long to nap after a pass that brought something; 0: not at all. */
MR_HIDDEN uint64_t mr_pace_after(struct mr_pace *pace, const struct mr_pass *pass,
                                 bool is_hybrid);

#endif
