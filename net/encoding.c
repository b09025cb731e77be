/* SPDX-License-Identifier: Apache-2.0 */
#include "net/encoding.h"

#include "base/assert.h"
#include "base/compiler.h"

/* Of a period: more, and the link is full. */
#define FULL_SHARE 0.5
/* Of a second's events more than before: less is no gain. */
#define GAIN 1.1
/* The same: less is a loss, though the link be full no more. */
#define KEPT 0.95
/* Of what the link can carry: what a lower level may need. */
#define ROOM 0.5
/* Of one processor, for BUSY_NS: the writer is what limits. */
#define BUSY_SHARE 0.9
#define BUSY_NS (10 * MR_ENCODING_PERIOD_NS)

void mr_encoding_init(struct mr_encoding_choice *choice, enum mr_encoding base,
                      enum mr_encoding limit, enum mr_encoding_reason reason)
{
    MR_DEBUG_ASSERT(base <= limit && limit < MR_ENCODING_COUNT);
    *choice = (struct mr_encoding_choice){.level = base,
                                          .base = base,
                                          .limit = limit,
                                          .reason = reason,
                                          .backoff_ns = MR_ENCODING_BACKOFF_MIN_NS};
}

static double per_ns(uint64_t from, uint64_t to, uint64_t ns)
{
    return ns ? (double)(to - from) / (double)ns : 0;
}

static bool change(struct mr_encoding_choice *choice, enum mr_encoding level,
                   enum mr_encoding_reason reason)
{
    choice->level = level;
    choice->reason = reason;
    choice->changes++;
    choice->full_since.now_ns = 0;
    choice->free_since_ns = 0;
    choice->busy_since_ns = 0;
    return true;
}

/* Not again for a while, and then for longer. */
static void hold(struct mr_encoding_choice *choice, uint64_t now_ns)
{
    choice->hold_until_ns = now_ns + choice->backoff_ns;
    if (choice->backoff_ns < MR_ENCODING_BACKOFF_MAX_NS)
        choice->backoff_ns *= 2;
}

/* Only while all frames that count are of this level. */
static void learn_size(struct mr_encoding_choice *choice,
                       const struct mr_encoding_sample *sample)
{
    const struct mr_encoding_sample *last = &choice->last;

    if (!choice->is_trying && sample->events > last->events &&
        sample->bytes > last->bytes)
        choice->size[choice->level] = (double)(sample->bytes - last->bytes) /
                                      (double)(sample->events - last->events);
}

static bool start_try(struct mr_encoding_choice *choice,
                      const struct mr_encoding_sample *sample)
{
    const struct mr_encoding_sample *since = &choice->full_since;

    choice->rate_before =
        per_ns(since->events, sample->events, sample->now_ns - since->now_ns);
    choice->from = choice->level;
    choice->made_before = sample->made;
    choice->try_since.now_ns = 0;
    choice->is_trying = true;
    return change(choice, choice->level + 1, MR_ENCODING_LINK_FULL);
}

/*
 * A step up was made. It stays when more events arrive, or as many on a link that is full no
 * more. Where fewer do, it was the writer that gave the link room, by its own work.
 */
static bool judge(struct mr_encoding_choice *choice,
                  const struct mr_encoding_sample *sample, bool is_full)
{
    const struct mr_encoding_sample *since = &choice->try_since;
    double rate;

    if (sample->acked <= choice->made_before)
        return false; /* what is sent was written before */
    if (since->now_ns == 0) {
        choice->try_since = *sample;
        return false;
    }
    if (sample->now_ns - since->now_ns < MR_ENCODING_TRY_NS)
        return false;
    rate = per_ns(since->events, sample->events, sample->now_ns - since->now_ns);
    choice->is_trying = false;
    if (rate > (is_full ? GAIN : KEPT) * choice->rate_before) {
        choice->backoff_ns = MR_ENCODING_BACKOFF_MIN_NS;
        return false;
    }
    hold(choice, sample->now_ns);
    return change(choice, choice->from, MR_ENCODING_NO_GAIN);
}

static uint64_t patience(enum mr_encoding level)
{
    return level == MR_ENCODING_WORDS ? MR_ENCODING_UP_WORDS_NS : MR_ENCODING_UP_NS;
}

static bool on_full(struct mr_encoding_choice *choice,
                    const struct mr_encoding_sample *sample)
{
    uint64_t period_ns = sample->now_ns - choice->last.now_ns;
    double carried = per_ns(choice->last.bytes, sample->bytes, period_ns);

    choice->free_since_ns = choice->busy_since_ns = 0;
    if (choice->full_since.now_ns == 0) {
        choice->full_since = choice->last;
        choice->capacity = 0; /* links change */
    }
    if (carried > choice->capacity)
        choice->capacity = carried;
    if (choice->level == choice->limit || sample->now_ns < choice->hold_until_ns ||
        sample->now_ns - choice->full_since.now_ns < patience(choice->level))
        return false;
    return start_try(choice, sample);
}

/* Whether the level below would do with ROOM of the link. */
static bool has_room(const struct mr_encoding_choice *choice,
                     const struct mr_encoding_sample *sample)
{
    double rate =
        per_ns(choice->last.events, sample->events, sample->now_ns - choice->last.now_ns);

    return choice->capacity <= 0 ||
           rate * choice->size[choice->level - 1] <= ROOM * choice->capacity;
}

/* The writer has no time left, and events are lost for it. */
static bool is_overworked(struct mr_encoding_choice *choice,
                          const struct mr_encoding_sample *sample)
{
    double share = per_ns(choice->last.busy_ns, sample->busy_ns,
                          sample->now_ns - choice->last.now_ns);

    if (share < BUSY_SHARE || sample->lost == choice->last.lost)
        choice->busy_since_ns = 0;
    else if (choice->busy_since_ns == 0)
        choice->busy_since_ns = sample->now_ns;
    return choice->busy_since_ns && sample->now_ns - choice->busy_since_ns >= BUSY_NS;
}

static bool on_free(struct mr_encoding_choice *choice,
                    const struct mr_encoding_sample *sample)
{
    choice->full_since.now_ns = 0;
    if (choice->free_since_ns == 0)
        choice->free_since_ns = sample->now_ns;
    if (choice->level > MR_ENCODING_WORDS && choice->base != choice->limit &&
        is_overworked(choice, sample)) {
        hold(choice, sample->now_ns);
        return change(choice, choice->level - 1, MR_ENCODING_WRITER_BUSY);
    }
    if (choice->level <= choice->base ||
        sample->now_ns - choice->free_since_ns < MR_ENCODING_DOWN_NS)
        return false;
    if (!has_room(choice, sample)) {
        choice->free_since_ns = sample->now_ns;
        return false;
    }
    return change(choice, choice->level - 1, MR_ENCODING_LINK_FREE);
}

bool mr_encoding_step(struct mr_encoding_choice *choice,
                      const struct mr_encoding_sample *sample)
{
    bool is_full, has_changed = false;

    if (!choice->has_last) {
        choice->has_last = true;
        choice->last = *sample;
        return false;
    }
    if (sample->now_ns - choice->last.now_ns < MR_ENCODING_PERIOD_NS)
        return false;
    is_full = per_ns(choice->last.stalled_ns, sample->stalled_ns,
                     sample->now_ns - choice->last.now_ns) > FULL_SHARE;
    learn_size(choice, sample);
    if (choice->is_trying)
        has_changed = judge(choice, sample, is_full);
    else
        has_changed = is_full ? on_full(choice, sample) : on_free(choice, sample);
    choice->last = *sample;
    return has_changed;
}

const char *mr_encoding_name(uint32_t level)
{
    static const char *const names[] = {
#define X(number, name, text) [number] = (text),
        MR_ENCODINGS(X)
#undef X
    };

    return level < MR_ARRAY_COUNT(names) ? names[level] : "?";
}

const char *mr_encoding_reason_text(uint32_t reason)
{
    static const char *const texts[] = {
#define X(number, name, text) [number] = (text),
        MR_ENCODING_REASONS(X)
#undef X
    };

    return reason < MR_ARRAY_COUNT(texts) ? texts[reason] : "?";
}
