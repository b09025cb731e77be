/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A repeat: the call tree that a stream repeats. Where a stream's last traces were all the same, reduce says so, and decode
 * looks for that tree in the words themselves. What it finds goes on as a REPEATS batch: times alone, no event of a call.
 *
 *     words      R1 A1 a1 r1 | R2 A2 a2 r2 | ...      R r, A a: enter and exit; only their times differ
 *     calls      R  A  a  r                           site and kind, once
 *     wire       the same, as the upper halves of the words
 *     times      .. .. .. .. | .. .. .. .. | ...      of the batch: ns after base_ns, 32 bits each
 *
 * Who cannot take such a batch as it is (a call tree is open, say) makes plain events of it, and what comes out is the same:
 * a repeat saves work and decides nothing. Nobody has to keep one: it is given up when it is of no use for a while.
 *
 * reduce makes it and gives it to the stream, decode owns it from then on. Both run on one thread, as the lane's filters do
 * where they are fused; else there are none (mr_reduce_config.has_repeats).
 */
#ifndef MR_PIPELINE_REPEAT_H
#define MR_PIPELINE_REPEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/batch.h"

#define MR_REPEAT_EVENTS_MAX 256u
#define MR_REPEATS_MAX 1024u /* of a lane, 3 KiB each at most */
#define MR_REPEAT_MISSES_MAX 16u

struct mr_repeat {
    uint32_t events; /* of the trace; even */
    uint32_t depth;  /* calls open at a time */
    /* For reduce: its template of it, while the generation is that of its templates. */
    uint32_t template, generation;
    uint32_t *live;  /* of the lane: how many there are; decode counts off */
    uint32_t misses; /* times in a row that it was of no use */
    /* For decode. */
    uint32_t map_version; /* of the source, in which `wire` holds; 0: none */
    uint32_t wire[MR_REPEAT_EVENTS_MAX]; /* as often as there is room */
    uint32_t wire_count;
    uint64_t calls
        [MR_REPEAT_EVENTS_MAX]; /* as struct mr_event has them from its site on, no flags */
};

/* It was of no use, or it was. Any filter of the lane. */
static inline void mr_repeat_missed(struct mr_repeat *repeat)
{
    repeat->misses += repeat->misses < MR_REPEAT_MISSES_MAX;
}
static inline void mr_repeat_helped(struct mr_repeat *repeat)
{
    repeat->misses = 0;
}

/* The times of a REPEATS batch, repeat->events of each trace. They lie where other batches have events. */
static inline uint32_t *mr_batch_times(struct mr_batch *batch)
{
    return (uint32_t *)(void *)batch->events;
}
static inline const uint32_t *mr_batch_times_const(const struct mr_batch *batch)
{
    return (const uint32_t *)(const void *)batch->events;
}
/* Events that the batch stands for. */
static inline uint64_t mr_batch_events(const struct mr_batch *batch)
{
    if (batch->kind == MR_BATCH_REPEATS)
        return (uint64_t)batch->trace_count * batch->repeat->events;
    return batch->kind == MR_BATCH_EVENTS ? batch->event_count : 0;
}
/* The site of the root. */
static inline uint32_t mr_repeat_site(const struct mr_repeat *repeat)
{
    return (uint32_t)repeat->calls[0];
}

/*
 * `count` traces of a REPEATS batch, from number `first` on, as a new EVENTS batch; roots are marked with `root_flags`. NULL
 * without memory.
 */
struct mr_batch *mr_repeat_play(const struct mr_batch *repeats, uint32_t first,
                                uint32_t count, uint16_t root_flags);

#endif
