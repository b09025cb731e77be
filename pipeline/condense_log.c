/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: events that wait to be looked at. A trace whose events fill more than one piece of it may go on and on, and to look at all
 * of a long one costs as much as to reduce it. So a guess, what a call of long traces before took at least that stayed, passes shorter ones
 * over from then on; what was looked at stays in the log as well, until as many calls have stayed as may.
 *
 *     later   piece -> log
 *     later   piece -> log, all of which is looked at, by the guess
 *     noted   piece -> log; calls that were noted, by the guess
 *     ...
 *     enough calls stay: the guess was right, the log goes          the trace is wanted before, or the log is full: as if there had
 *                                                                   been no guess, all of the log is looked at
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "pipeline/condense_private.h"

/* Its sizes in events. At first less than the open calls of a trace that waits would take. */
#define LOG_FIRST 16u
#define LOG_PART 4 /* of the budget: what logs may fill of it */
/* A guess that was found right within so many events may be higher: less would be noted. */
#define GUESS_SOON (MR_CONDENSE_LOG_MIN / 2)

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

/* What was passed over by a guess that was too high is looked at after all. */
static void forget_guess(struct mr_condense *condense)
{
    condense->is_guess = condense->is_full = condense->is_odd = false;
    condense->depth = condense->below = condense->apart = condense->kept_count = 0;
    condense->opened = condense->closed = condense->last_ns = 0;
}

static void take_log(struct mr_condense *condense)
{
    const struct mr_condense_piece log = {condense->log, log_whole(condense),
                                          condense->log_count};

    mr_condense_take(condense, &log);
}

void mr_condense_feed(struct mr_condense *condense, const struct mr_condense_piece *piece)
{
    if (condense->is_guess)
        forget_guess(condense);
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

bool mr_condense_log(struct mr_condense *condense, const struct mr_condense_piece *piece)
{
    uint32_t count = condense->log_count;

    if (piece->count + count > log_most(condense->budget) ||
        !make_log_room(condense, piece->count))
        return false;
    memcpy(condense->log + count, piece->events, piece->count * sizeof(*piece->events));
    memcpy(log_whole(condense) + count, piece->whole,
           piece->count * sizeof(*piece->whole));
    condense->log_count += piece->count;
    return true;
}

void mr_condense_outgrow(struct mr_condense *condense,
                         const struct mr_condense_piece *piece)
{
    struct mr_condense_budget *budget = condense->budget;

    mr_condense_learn_log(budget, false);
    mr_condense_feed(condense, piece);
    budget->guess_ns = (condense->is_full ? condense->shortest_ns : budget->guess_ns) / 2;
}

static void begin_guess(struct mr_condense *condense)
{
    condense->is_guess = condense->is_full = true;
    condense->shortest_ns = condense->budget->guess_ns;
    condense->shortest_number = UINT64_MAX;
    take_log(condense);
}

void mr_condense_check_guess(struct mr_condense *condense)
{
    struct mr_condense_budget *budget = condense->budget;

    if (!condense->is_guess || condense->kept_count < condense->limit)
        return;
    if (condense->log_count < GUESS_SOON)
        budget->guess_ns += budget->guess_ns / 2 + 1;
    condense->is_guess = false;
    clear_log(condense);
}

void mr_condense_later(struct mr_condense *condense,
                       const struct mr_condense_piece *piece)
{
    bool is_begun =
        condense->is_given_up || (condense->opened > 0 && !condense->is_guess);
    bool is_second = condense->log_count > 0;

    if (is_begun || (!is_second && piece->count < LOG_FIRST)) {
        mr_condense_feed(condense, piece);
    } else if (!mr_condense_log(condense, piece)) {
        mr_condense_outgrow(condense, piece);
    } else if (condense->is_guess) {
        mr_condense_take(condense, piece);
        mr_condense_check_guess(condense);
    } else if (is_second && condense->budget->guess_ns > 0) {
        begin_guess(condense);
        mr_condense_check_guess(condense);
    }
}
