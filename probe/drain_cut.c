/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts into streams: where recording was switched, a record says that nobody knows which
 * calls are open. It stands before the first record that has a later time. What a thread
 * recorded late, having looked before the switch, may come behind the cut too: then it is
 * part of what is not sure.
 */
#include "probe/drain_private.h"

#include <string.h>

#define CUT_WORDS 4

static uint64_t ticks_of_cut(const struct mr_ring *ring, uint32_t number, uint64_t *ns)
{
    uint64_t ticks;

    mr_cuts_at(&ring->shared->cuts, number, &ticks, ns);
    return ticks;
}

uint64_t mr_drain_cut_due(const struct mr_ring *ring)
{
    uint64_t ns;

    return mr_drain_has_cut(ring) ? ticks_of_cut(ring, ring->staged.cuts_seen, &ns)
                                  : UINT64_MAX;
}

size_t mr_drain_before(const uint8_t *body, size_t count, const struct mr_ring *ring,
                       uint64_t due, uint64_t *ticks)
{
    struct mr_ring_place place = ring->staged;
    struct mr_drain_totals totals;
    size_t index = 0, words = 1;

    memset(&totals, 0, sizeof(totals));
    while (index < count && words > 0) {
        words = mr_drain_account_one(body, index, count, &place, &totals);
        if (words > 0 && place.ticks >= due) {
            *ticks = place.ticks;
            return index;
        }
        index += words;
    }
    return index > 0 ? index : count; /* not whole: the caller sees that, too */
}

void mr_drain_put_cut(struct mr_drain_frame *frame, struct mr_ring *ring, uint64_t ticks)
{
    struct mr_chunk chunk = mr_drain_chunk_at(ring);
    struct mr_ring_place *place = &ring->staged;
    uint64_t words[CUT_WORDS], ns, due = ticks_of_cut(ring, place->cuts_seen, &ns);

    do {
        if (due > place->ticks)
            place->ticks = due;
        place->cuts_seen++;
        due = ticks_of_cut(ring, place->cuts_seen, &ns);
    } while (mr_drain_has_cut(ring) && due <= ticks);
    words[0] = mr_word_record(MR_RECORD_SYNC, 1, 0, place->ticks);
    words[1] = place->ticks;
    words[2] = mr_word_record(MR_RECORD_CUT, 1, 0, place->ticks);
    words[3] = place->cuts_seen;
    memcpy(mr_drain_chunk_body(frame), words, sizeof(words));
    mr_drain_put_chunk(frame, ring, &chunk, CUT_WORDS);
}

bool mr_drain_is_cut_at_rest(const struct mr_ring *ring, uint64_t now_ns, uint64_t *ticks)
{
    uint32_t count = mr_cuts_count(&ring->shared->cuts);
    uint64_t ns;

    if (ring->staged.cuts_seen == count)
        return false;
    /* The newest, so that the two of a switch are told as one. */
    *ticks = ticks_of_cut(ring, count - 1, &ns);
    return now_ns > ns && now_ns - ns > MR_CUT_REST_NS;
}
