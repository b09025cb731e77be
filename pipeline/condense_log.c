/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: events that wait to be looked at. Of a trace that outgrows it all of the log is, and the first thousand calls would all stay at
 * first, half of the next, and so on. So a guess, half of what a call took at least that stayed in the last such trace, passes shorter ones over.
 * If as many stay then as may, it was right: what was passed over is shorter than all of them. Else the log is looked at once more.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "pipeline/condense_private.h"

/* Its sizes in events. At first less than the open calls of a trace that waits would take. */
#define LOG_FIRST 16u
#define LOG_PART 4 /* of the budget: what logs may fill of it */

static uint32_t log_most(const struct mr_condense_budget *budget)
{
    return budget->log_most ? budget->log_most : MR_CONDENSE_LOG_MIN;
}

void mr_condense_learn_log(struct mr_condense_budget *budget, bool is_enough)
{
    uint32_t most = is_enough ? 2 * log_most(budget) : log_most(budget) / 2;

    most = most < MR_CONDENSE_LOG_MAX ? most : MR_CONDENSE_LOG_MAX;
    budget->log_most = most > MR_CONDENSE_LOG_MIN ? most : MR_CONDENSE_LOG_MIN;
}

void mr_condense_release_log(struct mr_condense *condense)
{
    condense->budget->used -= condense->log_capacity * MR_CONDENSE_LOG_EVENT;
    free(condense->log);
    condense->log = NULL;
    condense->log_capacity = 0;
}

/* Beside its events. */
static uint16_t *log_whole(const struct mr_condense *condense)
{
    void *end = condense->log ? condense->log + condense->log_capacity : NULL;

    return end;
}

static void clear_log(struct mr_condense *condense)
{
    condense->log_count = 0;
    if (condense->log_capacity > MR_CONDENSE_LOG_KEPT)
        mr_condense_release_log(condense);
}

static void take_log(struct mr_condense *condense)
{
    const struct mr_condense_piece log = {condense->log, log_whole(condense),
                                          condense->log_count};

    mr_condense_take(condense, &log);
}

void mr_condense_feed(struct mr_condense *condense, const struct mr_condense_piece *piece)
{
    take_log(condense);
    clear_log(condense);
    mr_condense_take(condense, piece);
}

/* Room for `count` more events in the log: false when they are too many, or there is no memory for them. */
static bool make_log_room(struct mr_condense *condense, uint32_t count)
{
    const struct mr_condense_budget *budget = condense->budget;
    uint32_t wanted = condense->log_count + count, capacity = LOG_FIRST;
    struct mr_event *grown;
    size_t more;

    if (wanted <= condense->log_capacity)
        return true;
    while (capacity < wanted)
        capacity *= 2;
    more = (capacity - condense->log_capacity) * MR_CONDENSE_LOG_EVENT;
    if (budget->used + more > budget->limit / LOG_PART)
        return false;
    grown = malloc(capacity * MR_CONDENSE_LOG_EVENT);
    if (!grown)
        return false;
    if (condense->log_count) {
        memcpy(grown, condense->log, condense->log_count * sizeof(*grown));
        memcpy(grown + capacity, log_whole(condense),
               condense->log_count * sizeof(uint16_t));
    }
    free(condense->log);
    condense->budget->used += more;
    condense->log = grown;
    condense->log_capacity = capacity;
    return true;
}

/* False: there is no memory for it. */
static bool add_to_log(struct mr_condense *condense,
                       const struct mr_condense_piece *piece)
{
    uint32_t count = condense->log_count;

    if (!make_log_room(condense, piece->count))
        return false;
    memcpy(condense->log + count, piece->events, piece->count * sizeof(*piece->events));
    memcpy(log_whole(condense) + count, piece->whole,
           piece->count * sizeof(*piece->whole));
    condense->log_count += piece->count;
    return true;
}

/* Looks at the log, of a trace of which nothing else was looked at, by the guess. False: that was too high; nothing has changed. */
static bool take_by_guess(struct mr_condense *condense)
{
    condense->is_full = true;
    condense->shortest_ns = condense->budget->guess_ns;
    condense->shortest_number = UINT64_MAX;
    take_log(condense);
    if (condense->kept_count >= condense->limit)
        return true;
    condense->is_full = condense->is_odd = false;
    condense->depth = condense->below = condense->apart = condense->kept_count = 0;
    condense->opened = condense->closed = condense->last_ns = 0;
    return false;
}

/* The trace is longer than what is only copied. */
static void outgrow(struct mr_condense *condense, const struct mr_condense_piece *piece)
{
    struct mr_condense_budget *budget = condense->budget;

    mr_condense_learn_log(budget, false);
    if (budget->guess_ns > 0 && take_by_guess(condense))
        clear_log(condense);
    mr_condense_feed(condense, piece);
    mr_condense_drop_shorter(condense);
    budget->guess_ns = condense->is_full ? condense->shortest_ns / 2 : 0;
}

void mr_condense_later(struct mr_condense *condense,
                       const struct mr_condense_piece *piece)
{
    bool is_begun = condense->opened > 0 || condense->is_given_up;
    bool is_small = condense->log_count == 0 && piece->count < LOG_FIRST;
    bool is_long = piece->count + condense->log_count > log_most(condense->budget);

    if (!is_begun && is_long)
        outgrow(condense, piece);
    else if (is_begun || is_small || !add_to_log(condense, piece))
        mr_condense_feed(condense, piece);
}
