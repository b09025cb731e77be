/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `millrace scale` decides, apart from all I/O: from what the workers of a level said last, one action at a time.
 *
 *     absent --start--> starting --answers--> up --drain--> draining --no sender--> empty --stop--> ending --gone--> absent
 *        ^                  '--too late--> failed --as long again--> absent            (draining too long: stop as it is)
 *
 * In this order, the first that holds:
 *     empty, or draining for too long          stop it; one that failed, again after a cool-down
 *     fewer up and starting than `min`         start one
 *     mean of those up above `high`            start one, up to `max`        not within the cool-down,
 *     mean below `low`                         drain one, if the others'     nor while one starts or drains
 *                                              mean then stays below `high`
 *
 * Plain data, one thread.
 */
#ifndef MR_SCALE_RULES_H
#define MR_SCALE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_SCALE_WORKERS_MAX 64
#define MR_SCALE_REASON_MAX 160
/* Looks in a row without an answer after which a worker is gone. */
#define MR_SCALE_MISSES_MAX 3

enum mr_scale_state {
    MR_SCALE_ABSENT,
    MR_SCALE_STARTING,
    MR_SCALE_UP,
    MR_SCALE_DRAINING,
    MR_SCALE_EMPTY,
    MR_SCALE_ENDING, /* stop was told */
    MR_SCALE_FAILED
};

struct mr_scale_worker {
    enum mr_scale_state state;
    uint64_t since_ns; /* in that state */
    uint64_t retry_ns; /* a command failed: none is told it before */
    double utilisation;
    uint32_t senders, misses;
};

struct mr_scale_limits {
    double high, low; /* 0 .. 1 */
    uint32_t min, max;
    bool takes_last; /* the victim is the highest number, not the least used */
    uint64_t cool_down_ns, start_timeout_ns, drain_timeout_ns;
};

struct mr_scale_group {
    struct mr_scale_limits limits;
    struct mr_scale_worker workers[MR_SCALE_WORKERS_MAX]; /* number n at n - 1 */
    uint64_t quiet_until_ns;                              /* the cool-down */
};

enum mr_scale_verb { MR_SCALE_NOTHING, MR_SCALE_START, MR_SCALE_DRAIN, MR_SCALE_STOP };

struct mr_scale_action {
    enum mr_scale_verb verb;
    uint32_t number; /* of the worker, from 1 */
    uint32_t count;  /* that will be up or starting behind it */
    char reason[MR_SCALE_REASON_MAX];
};

/* What a worker said of itself, or that it did not answer (NULL). */
struct mr_scale_answer {
    enum mr_scale_state state; /* UP, DRAINING, EMPTY or ENDING */
    double utilisation;
    uint32_t senders;
};
void mr_scale_hear(struct mr_scale_group *group, uint32_t number,
                   const struct mr_scale_answer *answer, uint64_t now_ns);
/* Mean utilisation of those that are up; `*up` is how many. */
double mr_scale_mean(const struct mr_scale_group *group, uint32_t *up);
/* What is to be done now. Nothing is changed by it. */
struct mr_scale_action mr_scale_decide(const struct mr_scale_group *group,
                                       uint64_t now_ns);
/* It was done, or could not be. */
void mr_scale_done(struct mr_scale_group *group, const struct mr_scale_action *action,
                   bool has_worked, uint64_t now_ns);

const char *mr_scale_verb_word(enum mr_scale_verb verb);

#endif
