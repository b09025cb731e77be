/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions are called most, and how many of their calls do little: from the words
 * that the writer drains anyway. Threads of the program pay nothing.
 *
 *     mr_site_stats_limit(stats, brief_ticks, cheap_ticks);      // how little is little
 *     mr_site_stats_look(stats, body, count);                    // the writer
 *     if (mr_site_stats_read(stats, i, &stat)) ...               // anybody
 *
 * A call is `brief` (`cheap`) where its exit follows its enter with nothing in between, not
 * later than that many ticks after what the shortest calls of the process take, which is
 * what tracing takes of each. So median(body) < limit exactly where brief > calls / 2; a
 * call with recorded calls below it is never brief.
 *
 * All words are looked at first, then one chunk in MR_SITE_STATS_SHARE, or, of chunks from
 * MR_SITE_STATS_LONG words on, which come of threads that make tens of millions of events a
 * second, or of a writer that comes late, in MR_SITE_STATS_LONG_SHARE: numbers are a sample,
 * shares of it are what they are good for. All are halved now and then, so that they tell of now. MR_SITE_STATS_SLOTS functions are followed; where one more comes, the
 * least called of four gives way, counted in `replaced`.
 *
 * look, limit: one thread, the writer. The rest: any.
 */
#ifndef MR_PROBE_SITE_STATS_H
#define MR_PROBE_SITE_STATS_H

#include "base/atomics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_SITE_STATS_SLOTS_LOG2 12
#define MR_SITE_STATS_SLOTS (1u << MR_SITE_STATS_SLOTS_LOG2)
#define MR_SITE_STATS_SHARE 8
#define MR_SITE_STATS_LONG 4096
#define MR_SITE_STATS_LONG_SHARE 32
#define MR_SITE_STATS_TIMES 1024 /* ticks; longer ones are not told apart */

struct mr_site_stat {
    uint32_t site, calls, brief, cheap;
};

struct mr_site_stats {
    /* The writer's. */
    uint64_t looked; /* words */
    uint64_t due;    /* of them, in MR_SITE_STATS_LONG_SHARE parts of one each */
    uint32_t brief_ticks, cheap_ticks, least_ticks;
    uint32_t time_count; /* in times[] since least_ticks was set */
    bool has_least;
    uint32_t times[MR_SITE_STATS_TIMES]; /* of calls without calls below, by ticks */
    /* Everybody's. */
    _Atomic uint32_t reset_wanted, reset_done;
    _Atomic uint64_t calls, cheap, replaced;
    struct mr_site_stat_slot {
        _Atomic uint32_t site, calls, brief, cheap;
    } slots[MR_SITE_STATS_SLOTS];
};

/* Nothing is looked at before. */
void mr_site_stats_limit(struct mr_site_stats *stats, uint64_t brief_ticks,
                         uint64_t cheap_ticks);
/* `count` words at `body`, whole records of one stream. */
void mr_site_stats_look(struct mr_site_stats *stats, const uint8_t *body, size_t count);
/* All numbers are 0 from the writer's next look on; until then nothing is read. */
void mr_site_stats_reset(struct mr_site_stats *stats);
/* Calls looked at, and those of them that are cheap. False: none yet. */
bool mr_site_stats_total(const struct mr_site_stats *stats, uint64_t *calls,
                         uint64_t *cheap);
/* Slot `index`; false: it is empty. Numbers may be of two moments. */
bool mr_site_stats_read(const struct mr_site_stats *stats, uint32_t index,
                        struct mr_site_stat *stat);

#endif
