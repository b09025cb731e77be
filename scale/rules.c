/* SPDX-License-Identifier: Apache-2.0 */
#include "scale/rules.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

static struct mr_scale_worker *worker_of(struct mr_scale_group *group, uint32_t number)
{
    MR_ASSERT(number >= 1 && number <= MR_SCALE_WORKERS_MAX);
    return &group->workers[number - 1];
}

static void enter(struct mr_scale_worker *worker, enum mr_scale_state state,
                  uint64_t now_ns)
{
    if (worker->state == state)
        return;
    worker->state = state;
    worker->since_ns = now_ns;
}

static void hear_nothing(const struct mr_scale_group *group,
                         struct mr_scale_worker *worker, uint64_t now_ns)
{
    uint64_t here_ns = now_ns - worker->since_ns;

    worker->misses++;
    switch (worker->state) {
    case MR_SCALE_ABSENT:
        return;
    case MR_SCALE_STARTING:
        if (here_ns >= group->limits.start_timeout_ns)
            enter(worker, MR_SCALE_FAILED, now_ns);
        return;
    case MR_SCALE_FAILED:
        if (here_ns >= group->limits.start_timeout_ns)
            enter(worker, MR_SCALE_ABSENT, now_ns);
        return;
    case MR_SCALE_UP:
    case MR_SCALE_DRAINING:
    case MR_SCALE_EMPTY:
    case MR_SCALE_ENDING:
        if (worker->misses >= MR_SCALE_MISSES_MAX || worker->state == MR_SCALE_ENDING)
            enter(worker, MR_SCALE_ABSENT, now_ns);
        return;
    }
}

void mr_scale_hear(struct mr_scale_group *group, uint32_t number,
                   const struct mr_scale_answer *answer, uint64_t now_ns)
{
    struct mr_scale_worker *worker = worker_of(group, number);

    if (!answer) {
        hear_nothing(group, worker, now_ns);
        return;
    }
    worker->misses = 0;
    worker->utilisation = answer->utilisation;
    worker->senders = answer->senders;
    /* Told to stop, it may still say that it is empty. */
    if (worker->state == MR_SCALE_ENDING && answer->state != MR_SCALE_UP)
        return;
    /* A signal takes a moment: what was drained is not up again because it has not heard of it. */
    if (worker->state == MR_SCALE_DRAINING && answer->state == MR_SCALE_UP &&
        now_ns - worker->since_ns < group->limits.drain_timeout_ns)
        return;
    enter(worker, answer->state, now_ns);
}

static uint32_t count_in(const struct mr_scale_group *group, enum mr_scale_state state)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < group->limits.max; i++)
        count += group->workers[i].state == state;
    return count;
}

double mr_scale_mean(const struct mr_scale_group *group, uint32_t *up)
{
    double sum = 0;

    *up = 0;
    for (uint32_t i = 0; i < group->limits.max; i++) {
        if (group->workers[i].state != MR_SCALE_UP)
            continue;
        sum += group->workers[i].utilisation;
        ++*up;
    }
    return *up ? sum / *up : 0;
}

/* The number of the first in `state`, 0 where there is none. */
static uint32_t first_in(const struct mr_scale_group *group, enum mr_scale_state state)
{
    for (uint32_t i = 0; i < group->limits.max; i++)
        if (group->workers[i].state == state)
            return i + 1;
    return 0;
}

static uint32_t victim(const struct mr_scale_group *group)
{
    uint32_t best = 0;

    for (uint32_t i = 0; i < group->limits.max; i++) {
        if (group->workers[i].state != MR_SCALE_UP)
            continue;
        if (best == 0 || group->limits.takes_last ||
            group->workers[i].utilisation < group->workers[best - 1].utilisation)
            best = i + 1;
    }
    return best;
}

static bool has_drained_too_long(const struct mr_scale_group *group,
                                 const struct mr_scale_worker *worker, uint64_t now_ns)
{
    return worker->state == MR_SCALE_DRAINING &&
           now_ns - worker->since_ns >= group->limits.drain_timeout_ns;
}

/* Whose time has come to be stopped, those that are empty first; 0: nobody's. */
static uint32_t to_stop(const struct mr_scale_group *group, uint64_t now_ns,
                        bool *is_empty)
{
    uint32_t late = 0;

    for (uint32_t i = 0; i < group->limits.max; i++) {
        const struct mr_scale_worker *worker = &group->workers[i];

        if (now_ns < worker->retry_ns)
            continue;
        *is_empty = worker->state == MR_SCALE_EMPTY;
        if (*is_empty)
            return i + 1;
        if (late == 0 && has_drained_too_long(group, worker, now_ns))
            late = i + 1;
    }
    *is_empty = false;
    return late;
}

static struct mr_scale_action start_one(const struct mr_scale_group *group,
                                        uint32_t there, const char *reason)
{
    struct mr_scale_action action = {.verb = MR_SCALE_START,
                                     .number = first_in(group, MR_SCALE_ABSENT),
                                     .count = there + 1};

    if (action.number == 0) /* all are there, fail, or end */
        action.verb = MR_SCALE_NOTHING;
    (void)snprintf(action.reason, sizeof(action.reason), "%s%s", reason,
                   action.number ? "" : ", but no number is free");
    return action;
}

static struct mr_scale_action nothing(const char *reason)
{
    struct mr_scale_action action = {.verb = MR_SCALE_NOTHING};

    (void)snprintf(action.reason, sizeof(action.reason), "%s", reason);
    return action;
}

static struct mr_scale_action by_use(const struct mr_scale_group *group, uint32_t there)
{
    const struct mr_scale_limits *limits = &group->limits;
    struct mr_scale_action action = {.verb = MR_SCALE_NOTHING};
    char reason[MR_SCALE_REASON_MAX];
    uint32_t up;
    double mean = mr_scale_mean(group, &up);

    if (mean > limits->high) {
        (void)snprintf(reason, sizeof(reason),
                       "%.0f %% of %u workers in use, above %.0f %%", 100 * mean, up,
                       100 * limits->high);
        if (there < limits->max)
            return start_one(group, there, reason);
        (void)strncat(reason, ": at the cap (--max)",
                      sizeof(reason) - strlen(reason) - 1);
        return nothing(reason);
    }
    if (mean >= limits->low || up <= limits->min)
        return action;
    if (mean * up / (up - 1) >= limits->high)
        return nothing("below --low, but one less would be above --high");
    action = (struct mr_scale_action){
        .verb = MR_SCALE_DRAIN, .number = victim(group), .count = up - 1};
    (void)snprintf(action.reason, sizeof(action.reason),
                   "%.0f %% of %u workers in use, below %.0f %%", 100 * mean, up,
                   100 * limits->low);
    return action;
}

struct mr_scale_action mr_scale_decide(const struct mr_scale_group *group,
                                       uint64_t now_ns)
{
    uint32_t starting = count_in(group, MR_SCALE_STARTING);
    uint32_t there = count_in(group, MR_SCALE_UP) + starting;
    bool is_empty;
    uint32_t stop = to_stop(group, now_ns, &is_empty);

    if (stop) {
        struct mr_scale_action action = {
            .verb = MR_SCALE_STOP, .number = stop, .count = there};

        (void)snprintf(action.reason, sizeof(action.reason), "%s",
                       is_empty ? "it is empty"
                                : "it was not empty within --drain-timeout");
        return action;
    }
    if (there < group->limits.min)
        return start_one(group, there, "fewer than --min");
    if (starting || count_in(group, MR_SCALE_DRAINING) || now_ns < group->quiet_until_ns)
        return (struct mr_scale_action){.verb = MR_SCALE_NOTHING};
    return by_use(group, there);
}

void mr_scale_done(struct mr_scale_group *group, const struct mr_scale_action *action,
                   bool has_worked, uint64_t now_ns)
{
    struct mr_scale_worker *worker;

    if (action->verb == MR_SCALE_NOTHING)
        return;
    worker = worker_of(group, action->number);
    if (action->verb != MR_SCALE_STOP)
        group->quiet_until_ns = now_ns + group->limits.cool_down_ns;
    if (!has_worked)
        worker->retry_ns = now_ns + group->limits.cool_down_ns;
    if (!has_worked && action->verb != MR_SCALE_START)
        return; /* it is tried again */
    switch (action->verb) {
    case MR_SCALE_START:
        enter(worker, has_worked ? MR_SCALE_STARTING : MR_SCALE_FAILED, now_ns);
        break;
    case MR_SCALE_DRAIN:
        enter(worker, MR_SCALE_DRAINING, now_ns);
        break;
    case MR_SCALE_STOP:
        enter(worker, MR_SCALE_ENDING, now_ns);
        break;
    case MR_SCALE_NOTHING:
        break;
    }
}

const char *mr_scale_verb_word(enum mr_scale_verb verb)
{
    static const char *const words[] = {"nothing", "start", "drain", "stop"};

    return words[verb];
}
