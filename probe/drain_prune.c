/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks of pruned sites into streams (probe/prune_marks.h), as cuts, and out of the words
 * behind them what is of such a site all the same: a thread may have been on its way into
 * the ring while its code was switched.
 *
 *     words     f  f' g  g'  f  f' |mark   f  f' g  g'  f'    |settled   f f' g g'
 *     stream    f  f' g  g'  f  f' prune         g  g'        prune S         g g'
 *
 * An enter behind the mark is taken out and counted, with its exit; the exit of a call that
 * was open at the mark stays, until that is settled. So the stream holds each call whole or
 * not at all, and nothing of the site once it is settled.
 *
 * What comes later than MR_PRUNE_LATE_NS is not looked for: looking costs every word.
 */
#include "probe/drain_private.h"
#include "probe/pruned.h"

#include <string.h>

#define MR_PRUNE_LATE_NS MR_SECOND_NS
#define SYNC_WORDS 2
#define RECORD_WORDS 2

static const struct mr_prune_mark *next_mark(const struct mr_ring *ring)
{
    return &ring->shared->prunes.items[ring->staged.pruned.seen % MR_PRUNE_MARKS_KEPT];
}

uint64_t mr_drain_prune_due(const struct mr_ring *ring)
{
    if (!mr_drain_has_prune(ring))
        return UINT64_MAX;
    return mr_prune_marks_has(&ring->shared->prunes, ring->staged.pruned.seen)
               ? mr_load_relaxed(&next_mark(ring)->ticks)
               : 0;
}

/* True if the mark tells that the sites settle, absent or there. */
static bool put_payloads(const struct mr_prune_mark *mark, uint64_t ticks,
                         uint64_t *words, size_t *size)
{
    uint32_t count = mr_load_relaxed(&mark->count);
    uint64_t what = 0;

    for (uint32_t i = 0; i < count && i < MR_PRUNE_MARK_SITES; i++) {
        what = mr_load_relaxed(&mark->payloads[i]);
        if (what & MR_PRUNE_ON_AGAIN && !(what & MR_PRUNE_SETTLED))
            continue; /* of no use but to us */
        words[(*size)++] = mr_word_record(MR_RECORD_PRUNE, 1, 0, ticks);
        words[(*size)++] = what & ~(what & MR_PRUNE_ON_AGAIN ? MR_PRUNE_SETTLED : 0);
    }
    return what & MR_PRUNE_SETTLED;
}

/* Marks that are not kept any more: a cut, and what we know is still not in the stream. */
static void pass_over(struct mr_ring *ring, uint64_t ticks, uint64_t *words, size_t *size)
{
    uint32_t count = mr_prune_marks_count(&ring->shared->prunes);

    ring->staged.pruned.seen = count - (MR_PRUNE_MARKS_KEPT - 2);
    words[(*size)++] = mr_word_record(MR_RECORD_CUT, 1, 0, ticks);
    words[(*size)++] = ring->staged.cuts_seen;
}

void mr_drain_put_prune(struct mr_drain_frame *frame, struct mr_ring *ring,
                        uint64_t now_ns)
{
    struct mr_chunk chunk = mr_drain_chunk_at(ring);
    struct mr_ring_place *place = &ring->staged;
    uint64_t words[SYNC_WORDS + RECORD_WORDS * MR_PRUNE_MARK_SITES];
    uint64_t due = mr_drain_prune_due(ring);
    size_t size = SYNC_WORDS;
    bool is_settled = false;

    if (due > place->ticks)
        place->ticks = due;
    words[0] = mr_word_record(MR_RECORD_SYNC, 1, 0, place->ticks);
    words[1] = place->ticks;
    if (due == 0)
        pass_over(ring, place->ticks, words, &size);
    else
        is_settled = put_payloads(next_mark(ring), place->ticks, words, &size);
    /* Given up while it was read: what was read may be of another. */
    if (due != 0 && !mr_prune_marks_has(&ring->shared->prunes, place->pruned.seen)) {
        size = SYNC_WORDS;
        pass_over(ring, place->ticks, words, &size);
    } else if (due != 0) {
        place->pruned.seen++;
    }
    place->pruned.is_looked_at = true;
    place->pruned.until_ns = is_settled ? now_ns + MR_PRUNE_LATE_NS : 0;
    memcpy(mr_drain_chunk_body(frame), words, size * WORD_BYTES);
    mr_drain_put_chunk(frame, ring, &chunk, size);
}

bool mr_drain_is_prune_at_rest(const struct mr_ring *ring, uint64_t now_ns)
{
    uint64_t ns;

    if (!mr_drain_has_prune(ring))
        return false;
    if (!mr_prune_marks_has(&ring->shared->prunes, ring->staged.pruned.seen))
        return true;
    ns = mr_load_relaxed(&next_mark(ring)->ns);
    return now_ns > ns && now_ns - ns > MR_CUT_REST_NS;
}

/* `mark`: its number + 1, 0 none. Numbers wrap. */
static bool is_told(uint32_t seen, uint32_t mark)
{
    return mark != 0 && (int32_t)(seen - mark) >= 0;
}

/*
 * A site that is pruned once more gets a new `since` before it has no `until` any more: one that has none is never seen with the `since` of
 * the time before, which is told, as then an enter would be taken out and its exit stay.
 */
static bool is_absent(const struct mr_ring_pruned *at, const struct mr_pruned_site *site)
{
    uint32_t until = mr_load_acquire(&site->until); /* [U] */

    return !is_told(at->seen, until) && is_told(at->seen, mr_load_relaxed(&site->since));
}

/* Forgets calls above it: their exits do not come. */
static bool close_open(struct mr_ring_pruned *at, uint32_t site)
{
    if (at->deeper > 0) {
        at->deeper--;
        return true;
    }
    for (uint32_t i = at->open_count; i > 0; i--)
        if (at->open[i - 1] == site) {
            at->open_count = i - 1;
            return true;
        }
    return false;
}

/* With the commit; of more sites than a frame has room for, at once. */
static void count_drop(struct mr_drain_frame *frame, uint32_t slot)
{
    uint32_t i = 0;

    while (i < frame->drop_count && frame->drops[i].slot != slot)
        i++;
    if (i == MR_DRAIN_DROPS_MAX) {
        mr_count_single_writer(&mr_pruned_at(slot)->dropped, 1);
        return;
    }
    if (i == frame->drop_count)
        frame->drops[frame->drop_count++] = (struct mr_drain_drop){.slot = slot};
    frame->drops[i].calls++;
}

static bool must_go(struct mr_drain_frame *frame, struct mr_ring_pruned *at,
                    uint64_t word)
{
    uint32_t site = mr_word_site(word), slot = mr_pruned_find(site);
    const struct mr_pruned_site *known;

    if (slot == MR_PRUNED_NONE)
        return false;
    known = mr_pruned_at(slot);
    if (!is_absent(at, known))
        return false;
    if (word & MR_WORD_EXIT)
        return close_open(at, site) ||
               is_told(at->seen, mr_load_relaxed(&known->settled));
    count_drop(frame, slot);
    if (at->open_count < MR_RING_PRUNED_OPEN_MAX)
        at->open[at->open_count++] = site;
    else
        at->deeper++;
    return true;
}

static size_t words_of(uint64_t word)
{
    uint32_t site = mr_word_site(word);

    return site >= MR_SITE_FIRST_NAMED ? 1 : 1 + (site >> 8 & 0xff);
}

static uint64_t word_at(const uint8_t *body, size_t index)
{
    uint64_t word;

    memcpy(&word, body + index * WORD_BYTES, WORD_BYTES);
    return word;
}

size_t mr_drain_take_out(struct mr_drain_frame *frame, struct mr_ring *ring,
                         uint64_t now_ns, uint8_t *body, size_t count, size_t *kept)
{
    struct mr_ring_pruned *at = &ring->staged.pruned;
    size_t index = 0, out = 0;

    while (index < count) {
        uint64_t word = word_at(body, index);
        size_t words = words_of(word);
        bool is_call = mr_word_site(word) >= MR_SITE_FIRST_NAMED;
        bool is_value = (mr_word_site(word) & 0xff) == MR_RECORD_COUNTER && !is_call;

        if (mr_drain_is_malformed(word) || index + words > count)
            break;
        if (is_call)
            at->was_dropped = must_go(frame, at, word);
        if (!at->was_dropped || !(is_call || is_value)) {
            memmove(body + out * WORD_BYTES, body + index * WORD_BYTES,
                    words * WORD_BYTES);
            out += words;
        }
        index += words;
    }
    *kept = out;
    if (at->until_ns != 0 && now_ns > at->until_ns)
        *at = (struct mr_ring_pruned){.seen = at->seen};
    return index;
}

void mr_drain_count_drops(const struct mr_drain_frame *frame)
{
    for (uint32_t i = 0; i < frame->drop_count; i++)
        mr_count_single_writer(&mr_pruned_at(frame->drops[i].slot)->dropped,
                               frame->drops[i].calls);
}
