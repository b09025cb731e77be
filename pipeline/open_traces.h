/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is open now, of all who tell it: the lanes of this worker, workers below. Open traces are a gauge, not gains: each teller says all of its at
 * once, with everything else that it tells or each second, and what it said last holds until it says so anew. Whoever merges tellers
 * says all that holds each time, as those above take what is not said again for ended:
 *
 *     lane 1    2 open     2 open     2 open          hung request in lane 2, which has nothing else to tell
 *     lane 2    1 open                     (a second later) 1 open
 *     merged    3 open     3 open     3 open  ...
 *
 *     mr_open_traces_take(&open, &batch, now_ns);           // each DELTA batch that has a teller
 *     mr_accumulator_choose(acc, MR_ACCUMULATE_NOT_OPEN);   // its other rows are merged, then
 *     mr_open_traces_merge(&open, another);                 // with each delta that leaves
 *
 * A telling is one or more payloads of one number; those with open traces come first. Kept are these rows and the names that they need, as bytes.
 * Bounded by MR_OPEN_TRACES_PAYLOADS_MAX and MR_OPEN_TRACES_BYTES_MAX. One thread.
 */
#ifndef MR_PIPELINE_OPEN_TRACES_H
#define MR_PIPELINE_OPEN_TRACES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/id.h"
#include "base/status.h"

#define MR_OPEN_TRACES_PAYLOADS_MAX 4096u
#define MR_OPEN_TRACES_BYTES_MAX ((size_t)64 << 20)

struct mr_accumulator;
struct mr_batch;

struct mr_open_traces_payload {
    struct mr_id teller;
    uint64_t telling;
    uint64_t told_ns;
    struct mr_buffer bytes;
};

struct mr_open_traces {
    struct mr_open_traces_payload
        *items; /* those of one teller in the order in which they came */
    uint32_t count, capacity;
    size_t bytes;
};

/* All zero is empty. */
void mr_open_traces_fini(struct mr_open_traces *open);
/*
 * Takes what a DELTA batch says of open traces, in the place of the teller's earlier tellings. MR_ELIMIT, MR_ENOMEM: this
 * payload's are left out. The batch stays the caller's. `now_ns`: of any clock that goes on, the same as for mr_open_traces_expire().
 */
enum mr_status mr_open_traces_take(struct mr_open_traces *open,
                                   const struct mr_batch *batch, uint64_t now_ns);
/* Whether others than `teller` have open traces. */
bool mr_open_traces_has_others(const struct mr_open_traces *open, struct mr_id teller);
/* Adds all to an accumulator, which has nothing else. MR_AGAIN: it is full, some are left out; MR_ENOMEM. */
enum mr_status mr_open_traces_merge(const struct mr_open_traces *open,
                                    struct mr_accumulator *accumulator);
/* Forgets tellers that said nothing for MR_OPEN_TOLD_FOR_NS. */
void mr_open_traces_expire(struct mr_open_traces *open, uint64_t now_ns);

#endif
