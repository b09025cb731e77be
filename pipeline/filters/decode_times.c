/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The times of words that are known but for these, in loops that compilers make vectors of (pipeline/CMakeLists.txt). At most
 * BLOCK words at a time, so that what is between two loops stays near.
 */
#include "net/bytes.h"
#include "pipeline/filters/decode_run.h"

#define BLOCK 256u

/* The upper and lower halves of `count` words: in which bits the upper ones are not `wire`; the lower ones less `start`. */
static uint32_t split(const uint8_t *restrict words, const uint32_t *restrict wire,
                      uint32_t count, uint32_t start, uint32_t *restrict now)
{
    uint32_t other = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t word = mr_get_u64(words + (size_t)MR_WORD_SIZE * i);

        other |= (uint32_t)(word >> 32) ^ wire[i];
        now[i] = (uint32_t)word - start;
    }
    return other;
}

/* Bit 31: one is 2^31 or more, or below the one before it. */
static uint32_t find_bad(const uint32_t *now, uint32_t count)
{
    uint32_t bad = now[0];

    for (uint32_t i = 1; i < count; i++)
        bad |= now[i] | (now[i] - now[i - 1]);
    return bad;
}

/* Times below 2^32, as the last one is. */
static void tell_times(const struct mr_words_base *base, const uint32_t *restrict now,
                       uint32_t count, uint32_t *restrict times)
{
    const uint64_t part = base->part;
    const uint32_t mult = base->mult, shift = base->shift;

    for (uint32_t i = 0; i < count; i++)
        times[i] = (uint32_t)((part + (uint64_t)now[i] * mult) >> shift);
}

static void take_block(const struct mr_words_base *base, const uint32_t *wire,
                       const uint8_t *words, uint32_t count, struct mr_words_seen *seen,
                       uint32_t *times)
{
    uint32_t now[1 + BLOCK];

    now[0] = seen->now;
    seen->other |= split(words, wire, count, base->start, now + 1);
    seen->bad |= find_bad(now, 1 + count);
    seen->now = now[count];
    tell_times(base, now + 1, count, times);
}

bool mr_words_times(const struct mr_words_base *base, const uint32_t *wire,
                    const uint8_t *words, uint32_t count, uint32_t *past, uint32_t *times,
                    bool is_wide)
{
    struct mr_words_seen seen = {.now = *past};
    uint32_t done = 0;

    MR_UNUSED(is_wide);
#if MR_HAS_WIDE_BUILD
    if (is_wide) {
        done = count & ~7u;
        mr_words_times_wide(base, wire, words, done, &seen, times);
    }
#endif
    while (done < count) {
        uint32_t block = count - done < BLOCK ? count - done : BLOCK;

        take_block(base, wire + done, words + (size_t)MR_WORD_SIZE * done, block, &seen,
                   times + done);
        done += block;
    }
    if ((seen.other & ~MR_WIRE_LAP) || seen.bad >> 31 ||
        (base->part + (uint64_t)seen.now * base->mult) >> base->shift > INT32_MAX)
        return false;
    *past = seen.now;
    return true;
}
