/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One program of a plan (plan.py): threads that hand work to each other, and to other such programs over TCP. Each thread keeps a
 * log of what it did (expected.py reads it), which is how the test knows what millrace must say.
 *
 *     program PLAN LOG SOCKET,SOCKET,..      what it does; prefix of its logs; for each program of the plan a connected socket,
 *                                            - for itself
 *
 * Roots run in main(), one after the other; each message and each job runs a task, in the thread that gets it. It ends when as many
 * tasks have run as the plan says; or it kills itself when its input is closed.
 */
#ifndef MR_TEST_PLANS_PROGRAM_H
#define MR_TEST_PLANS_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#define TASKS_MAX 8192
#define THREADS_MAX 16

/* How a job is handed over, or a message sent. */
enum how {
    HOW_PLAIN,
    HOW_UNATTACHED, /* job: runs without attach */
    HOW_UNDETACHED, /* the detach is missing */
    HOW_DETACHED_TWICE,
    HOW_DROPPED, /* nobody gets it */
    HOW_TWICE,   /* two get it */
    HOW_INSIDE,  /* message: its task says when to receive */
    HOW_NEVER,   /* its header is ignored */
    HOW_UNREADABLE,
    HOW_ZERO, /* a header of zeros */
    HOW_HEADLESS,
    HOW_COUNT
};

enum verb {
    VERB_CALL,
    VERB_SPAN,
    VERB_END, /* of CALL or SPAN */
    VERB_FAIL,
    VERB_SLEEP,
    VERB_HAND,
    VERB_SEND,
    VERB_ASK,
    VERB_ANSWER,
    VERB_RECEIVE,
    VERB_BEGIN,
    VERB_DETACH,
    VERB_STEAL,
    VERB_DONE, /* the task ends */
    VERB_COUNT
};

struct step {
    enum verb verb;
    uint32_t target; /* function, span, us, or program */
    uint32_t task;
    enum how how;
};

struct plan {
    uint32_t self, threads, expected, pause_us;
    bool is_pool_traced; /* the function that its threads begin with */
    bool hands_on;       /* the listener gives messages to the pool */
    struct step *tasks[TASKS_MAX];
    uint32_t *roots, root_count;
};

/* program_plan.c: exits where the file is wrong. */
void plan_read(const char *path, struct plan *plan);

/* program_log.c: a line of the calling thread's log; its name is `prefix`.N. */
void log_begin(const char *prefix);
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_end(void);
int64_t log_now_ns(void);

#endif
