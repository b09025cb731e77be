/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hot loops of decode: enters and exits of known sites. Words are read in blocks (decode_run.h); a block in which a time steps
 * back is read again word by word. 2.1 -> 0.8 ns an event of SQLite with vectors (docs/why/2026-11-20-analysis.md).
 */
#include "pipeline/filters/decode_run.h"

#include <assert.h>
#include <string.h>

#include "net/bytes.h"
#include "pipeline/filters/decode_private.h"

#define BLOCK_WORDS 64u /* 256 gain nothing more */
/* Of a run, without vectors: they cost 6 ns a record in vain where records are never far. */
#define FIRST_WORDS 8u
#define RUN_EVENTS 256 /* of a compact chunk: 4 KiB between the two loops */

static_assert(offsetof(struct mr_event, site) == 8 &&
                  offsetof(struct mr_event, kind) == 12 && MR_EVENT_EXIT == 1,
              "see put_event()");

/* In two stores: of the struct as a whole, gcc makes a chain of masks through all iterations (2.1 instead of 1.3 ns). */
static MR_ALWAYS_INLINE void put_event(struct mr_event *out, uint64_t word, uint64_t slot,
                                       uint64_t ns)
{
    uint64_t call = (uint32_t)slot | (word >> 62 & 1) << 32;

    out->ns = ns;
    memcpy(&out->site, &call, sizeof(call));
}

static uint64_t count_unknown(const struct mr_event *events, uint32_t count)
{
    uint64_t unknown = 0;

    for (uint32_t i = 0; i < count; i++)
        unknown += events[i].site == MR_SITE_UNKNOWN;
    return unknown;
}

/* Word by word, times clamped. Returns how many words it took: fewer than `count` when one is something else. */
static uint32_t run_clamped(struct mr_words *words, struct mr_event *out, uint32_t count)
{
    uint32_t done;

    for (done = 0; done < count; done++, words->at += MR_WORD_SIZE) {
        uint64_t word = mr_get_u64(words->at);
        uint64_t slot = mr_site_map_find(&words->map, mr_word_site(word));
        int32_t step = (int32_t)((uint32_t)word - (uint32_t)words->ticks);

        if (slot == MR_SITE_MAP_NONE)
            break;
        words->inversions += step < 0;
        words->ticks += step < 0 ? 0 : (uint32_t)step;
        put_event(&out[done], word, slot, mr_ticks_ns(&words->clock, words->ticks));
    }
    return done;
}

/* At most BLOCK_WORDS; as run_clamped(). */
static MR_ALWAYS_INLINE uint32_t run_block(struct mr_words *words, struct mr_event *out,
                                           uint32_t count)
{
    const struct mr_site_map map = words->map; /* in registers: `out` may be anything */
    const struct mr_words_base base = mr_words_base(&words->clock, words->ticks);
    const uint32_t shift = base.shift, mult = base.mult, start = base.start;
    const uint8_t *at = words->at;
    uint32_t past = 0, bad = 0, done;

    for (done = 0; done < count; done++, at += MR_WORD_SIZE) {
        uint64_t word = mr_get_u64(at);
        uint64_t slot = mr_site_map_find(&map, mr_word_site(word));
        uint32_t now = (uint32_t)word - start;

        if (MR_UNLIKELY(slot == MR_SITE_MAP_NONE)) /* records are in no map */
            break;
        bad |= now | (now - past); /* bit 31 */
        past = now;
        /* Both below 2^63 where nothing is bad. */
        put_event(&out[done], word, slot,
                  base.ns + ((base.part + (uint64_t)now * mult) >> shift));
    }
    if (MR_UNLIKELY(bad >> 31))
        return run_clamped(words, out, count);
    words->at = at;
    words->ticks += past;
    return done;
}

uint32_t mr_words_read(struct mr_words *words, struct mr_event *out, uint32_t count,
                       bool is_wide)
{
    const uint32_t first = count < FIRST_WORDS ? count : FIRST_WORDS;
    uint32_t done = run_block(words, out, first);

    MR_UNUSED(is_wide);
    if (done < first)
        return done;
    while (done < count) {
        uint32_t block = count - done < BLOCK_WORDS ? count - done : BLOCK_WORDS;
        uint32_t taken = 0;

#if MR_HAS_WIDE_BUILD
        if (is_wide)
            taken = mr_words_read_wide(words, out + done, block);
#endif
        if (taken < block)
            taken += run_block(words, out + done + taken, block - taken);
        done += taken;
        if (taken < block)
            break;
    }
    return done;
}

/* Returns how many; the reader stands at the first word that is something else, or at its end. */
static uint32_t run_words(struct mr_decode *decode, struct mr_event *out,
                          uint32_t capacity)
{
    struct mr_record_reader *reader = &decode->reader;
    struct mr_words words = {.at = reader->at,
                             .map = decode->source->map,
                             .clock = decode->source->ticks,
                             .ticks = reader->ticks};
    uint32_t count = reader->left < capacity ? reader->left : capacity;
    uint32_t done = mr_words_read(&words, out, count, MR_CPU_IS_WIDE());

    reader->at = words.at;
    reader->left -= done;
    reader->ticks = words.ticks;
    decode->inversions += words.inversions;
    if (MR_UNLIKELY(decode->source->map_has_unknown))
        decode->unknown_sites += count_unknown(out, done);
    decode->counted += done;
    return done;
}

/* As run_words(), of a compact chunk. Sites that are in no map yet are looked up. */
static uint32_t run_compact(struct mr_decode *decode, struct mr_event *out,
                            uint32_t capacity)
{
    const struct mr_ticks clock = decode->source->ticks;
    struct mr_record_event events[RUN_EVENTS];
    uint32_t count, unknown = 0;

    count = mr_record_next_run(&decode->reader, events,
                               capacity < RUN_EVENTS ? capacity : RUN_EVENTS);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t slot = mr_site_map_find(&decode->source->map, events[i].site);
        uint32_t site = (uint32_t)slot;

        if (MR_UNLIKELY(slot == MR_SITE_MAP_NONE))
            site = mr_source_resolve(decode->source, decode->sites, decode->epoch,
                                     events[i].site);
        unknown += site == MR_SITE_UNKNOWN;
        out[i] = (struct mr_event){.ns = mr_ticks_ns(&clock, events[i].ticks),
                                   .site = site,
                                   .kind = (uint16_t)events[i].is_exit};
    }
    decode->unknown_sites += unknown;
    decode->counted += count;
    return count;
}

uint32_t mr_decode_run(struct mr_decode *decode, struct mr_event *out, uint32_t capacity)
{
    if (decode->reader.encoding == MR_CHUNK_WORDS)
        return run_words(decode, out, capacity);
    return run_compact(decode, out, capacity);
}
