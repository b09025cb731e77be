/* SPDX-License-Identifier: Apache-2.0 */
/* What copied words mean: numbers of events, losses, times. */
#include "probe/drain_private.h"

#include <string.h>

static uint64_t word_at(const uint8_t *body, size_t index)
{
    uint64_t word;

    memcpy(&word, body + index * WORD_BYTES, WORD_BYTES);
    return word;
}

/* Full time of a word: within 2^31 ticks of the last sync, as the owner sees to it. */
static void set_ticks(struct mr_ring_place *place, uint64_t word)
{
    int32_t step = (int32_t)((uint32_t)word - (uint32_t)place->sync_ticks);
    uint64_t ticks = place->sync_ticks + (uint64_t)(int64_t)step;

    if (ticks > place->ticks) /* an inversion does not turn the stream back */
        place->ticks = ticks;
}

static uint64_t events_of(uint32_t kind)
{
    static const uint8_t counts[] = {
#define X(number, name, words, event) [number] = (event),
        MR_RECORD_KINDS(X)
#undef X
    };

    return kind < MR_ARRAY_COUNT(counts) ? counts[kind] : 0;
}

void mr_drain_account_loss(struct mr_ring_place *place, struct mr_drain_totals *totals,
                           uint64_t payload)
{
    uint64_t events = payload & ((UINT64_C(1) << 48) - 1);
    uint32_t reason = (payload >> 48) & 0xff;

    place->next_event += events;
    place->lost += events;
    if (reason < MR_LOSS_REASON_COUNT)
        totals->lost[reason] += events;
}

/* One record that is no plain event, at `index`; its words. */
static size_t account_record(const uint8_t *body, size_t index,
                             struct mr_ring_place *place, struct mr_drain_totals *totals)
{
    uint64_t word = word_at(body, index);
    uint32_t site = mr_word_site(word), kind = site & 0xff;
    size_t words = 1 + (site >> 8 & 0xff);

    if (kind == MR_RECORD_SYNC) {
        place->sync_ticks = word_at(body, index + 1) & MR_WORD_PAYLOAD_MASK;
        word = place->sync_ticks;
    } else if (kind == MR_RECORD_LOSS) {
        mr_drain_account_loss(place, totals, word_at(body, index + 1));
    } else {
        place->next_event += events_of(kind);
        totals->events += events_of(kind);
    }
    set_ticks(place, word);
    return words;
}

/* What no owner writes; left behind where a word came long after it was given up. */
bool mr_drain_is_malformed(uint64_t word)
{
    static const uint16_t words_of[] = {
#define X(number, name, words, event) [number] = (words) + 1,
        MR_RECORD_KINDS(X)
#undef X
    };
    uint32_t site = mr_word_site(word), kind = site & 0xff, words = site >> 8;

    if (site >= MR_SITE_FIRST_NAMED)
        return false;
    if (kind >= MR_ARRAY_COUNT(words_of))
        return true;
    if (words_of[kind] == UINT8_MAX + 1)
        return words == 0 || words > MR_RECORD_WORDS_LIMIT;
    return words_of[kind] != words + 1;
}

size_t mr_drain_account_one(const uint8_t *body, size_t index, size_t count,
                            struct mr_ring_place *place, struct mr_drain_totals *totals)
{
    uint64_t word = word_at(body, index);
    uint32_t site = mr_word_site(word);

    if (site >= MR_SITE_FIRST_NAMED) {
        place->next_event++;
        totals->events++;
        set_ticks(place, word);
        return 1;
    }
    if (mr_drain_is_malformed(word) || index + 1 + (site >> 8 & 0xff) > count)
        return 0;
    return account_record(body, index, place, totals);
}

/* Accounts for `count` words; how many of them are whole records. */
size_t mr_drain_account(const uint8_t *body, size_t count, struct mr_ring_place *place,
                        struct mr_drain_totals *totals)
{
    size_t index = 0, words = 1;

    while (index < count && words > 0) {
        words = mr_drain_account_one(body, index, count, place, totals);
        index += words;
    }
    return index;
}

size_t mr_drain_account_plain(const uint8_t *body, size_t count,
                              struct mr_ring_place *place, struct mr_drain_totals *totals)
{
    place->next_event += count;
    totals->events += count;
    set_ticks(place, word_at(body, count - 1));
    return count;
}
