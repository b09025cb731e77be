/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of decode over words: decode_run.c, decode_times.c, and the same for AVX2 (.._wide.c). For them, decode_repeat.c and
 * their test. Plain values; any thread.
 *
 * Inside a block of words times count from its beginning, so that no event waits for the one before it: with the product of
 * the beginning split into whole and broken nanoseconds, an event costs one 64-bit multiplication, and the result is that of
 * mr_ticks_ns(). This holds while times neither step back nor move 2^31 ticks.
 */
#ifndef MR_PIPELINE_FILTERS_DECODE_RUN_H
#define MR_PIPELINE_FILTERS_DECODE_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/batch.h"
#include "pipeline/site_map.h"
#include "pipeline/ticks.h"

#define MR_WORD_SIZE 8

/* What the loops read and count. */
struct mr_words {
    const uint8_t *at; /* borrowed */
    struct mr_site_map map;
    struct mr_ticks clock;
    uint64_t ticks, inversions;
};

/* Times from `ticks` on: an event `now` ticks later is at ns + ((part + now * mult) >> shift). */
struct mr_words_base {
    uint64_t part, ns;
    uint32_t start, mult, shift;
};

static MR_ALWAYS_INLINE struct mr_words_base mr_words_base(const struct mr_ticks *clock,
                                                           uint64_t ticks)
{
    const mr_u128 product = (mr_u128)(ticks + clock->add) * clock->mult;
    const uint32_t shift = clock->shift & 63;

    return (struct mr_words_base){.part =
                                      (uint64_t)product & ((UINT64_C(1) << shift) - 1),
                                  .ns = clock->offset + (uint64_t)(product >> shift),
                                  .start = (uint32_t)ticks,
                                  .mult = clock->mult,
                                  .shift = shift};
}

/*
 * The next words, at most `count`, as events while they are enters and exits of sites in the map; `words` stands behind
 * them. Returns how many. `is_wide`: where MR_CPU_IS_WIDE() alone; the result is the same.
 */
uint32_t mr_words_read(struct mr_words *words, struct mr_event *out, uint32_t count,
                       bool is_wide);

/* The lap's bit of a word, in its upper half: of the ring that it came from. */
#define MR_WIRE_LAP UINT32_C(0x80000000)

/*
 * The times of `count` words whose upper halves, but for the lap, are `wire`: ns after base->ns. `*past` is the time before them in
 * ticks after the base, then that of the last. False, with that as it was and anything in `times`, where they are other words, or a time
 * steps back, is 2^31 ticks or more after the base, or past INT32_MAX ns. `is_wide`: as above.
 */
bool mr_words_times(const struct mr_words_base *base, const uint32_t *wire,
                    const uint8_t *words, uint32_t count, uint32_t *past, uint32_t *times,
                    bool is_wide);

/* What was seen of words that are known but for their times. */
struct mr_words_seen {
    uint32_t other; /* bits in which an upper half is another one */
    uint32_t bad;   /* bit 31: a time is none that is told so */
    uint32_t now;   /* ticks of the last, after the base */
};

#if MR_HAS_WIDE_BUILD
/* Of whole groups of eight: adds to what was seen, and tells their times. */
void mr_words_times_wide(const struct mr_words_base *base, const uint32_t *wire,
                         const uint8_t *words, uint32_t count, struct mr_words_seen *seen,
                         uint32_t *times);
/* As mr_words_read(), but takes only whole groups of four; and nothing where a time among `count` words steps back. */
uint32_t mr_words_read_wide(struct mr_words *words, struct mr_event *out, uint32_t count);
#endif

#endif
