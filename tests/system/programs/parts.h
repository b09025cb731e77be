/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that random programs are made of. generate.py writes functions of this form, in C or C++:
 *
 *     TRACED int f3(int depth)
 *     {
 *         ENTER;
 *         CALL(f7);
 *         TIMES(20) CALL(f1);
 *         if (CHANCE(7)) FAIL;
 *         return depth;
 *     }
 *
 * and what is declared here as extern.
 */
#ifndef MR_TESTS_SYSTEM_PARTS_H
#define MR_TESTS_SYSTEM_PARTS_H

#include "traced.h"

#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

typedef int (*function)(int depth);
struct program {
    uint64_t seed;
    uint32_t functions; /* how many */
    uint32_t calls, thread_calls,
        child_calls;   /* of the main thread, another one, a child process: at most */
    bool jumps, ticks; /* whether it has any */
};

extern const struct program program;
extern const function functions[];

/* --- statements ----------------------------------------------------------------------- */

#define CALL(function_)                                                                  \
    do {                                                                                 \
        if (truth_may_call(depth))                                                       \
            (void)(function_)(depth + 1);                                                \
    } while (0)
#define ANY functions[truth_random(program.functions)]
#define CHANCE(count_) (truth_random(count_) == 0)

#define FAIL                                                                             \
    do {                                                                                 \
        mr_status_failed();                                                              \
        truth_fail(true);                                                                \
    } while (0)
#define NOT_FAILED                                                                       \
    do {                                                                                 \
        mr_status_ok();                                                                  \
        truth_fail(false);                                                               \
    } while (0)

/* So often in the life of a process. */
static int dives_left = 3, threads_left = 10, crowds_left = 1, processes_left = 4,
           plugins_left = 5, contexts_left = 20, waits_left = 10;

ALWAYS_INLINE bool once_of(int *left)
{
    return __atomic_fetch_sub(left, 1, __ATOMIC_RELAXED) > 0;
}

TRACED static int leaf(int depth)
{
    ENTER;
    return depth * 3;
}

TRACED static int other_leaf(int depth)
{
    ENTER;
    return depth * 5;
}

TRACED static int ping(int depth);

TRACED static int pong(int depth)
{
    ENTER;
    return depth > 0 ? ping(depth - 1) + 1 : 0;
}

TRACED static int ping(int depth)
{
    ENTER;
    return depth > 0 ? pong(depth - 1) + 1 : 0;
}

TRACED static int dive(int depth)
{
    ENTER;
    return depth > 0 ? dive(depth - 1) + 1 : 0;
}

#define DIVE(depth_)                                                                     \
    do {                                                                                 \
        if (once_of(&dives_left))                                                        \
            (void)dive(depth_);                                                          \
    } while (0)

/* Frames whose size is known at run time only. */
#define ON_STACK(function_)                                                              \
    do {                                                                                 \
        volatile char *bytes_ = (volatile char *)alloca(truth_random(2000) + 1);         \
        bytes_[0] = 1;                                                                   \
        CALL(function_);                                                                 \
        bytes_[0] = 2;                                                                   \
    } while (0)

/* --- jumps ---------------------------------------------------------------------------- */

#define LANDINGS_MAX 16

/* Where this thread can jump to. A handler that comes at any time jumps to none before `first`, as nobody knows what the
 * thread was about to do; but what waits for it (wait_for_tick()) is done with all that. */
struct landing {
    sigjmp_buf at;
    unsigned depth;
    bool is_in_handler, is_floating;
};

static __thread struct {
    struct landing landings[LANDINGS_MAX];
    unsigned first, count;
} jumps;
static __thread volatile sig_atomic_t is_in_handler, is_waiting;
static volatile sig_atomic_t ticks, has_ticks;
static __thread bool is_thread; /* not the process's first */

/* What a jump there leaves. */
NEVER static void leave_for(const struct landing *landing)
{
    if (truth_is_floating() && !landing->is_floating) {
        truth_land(0);
        truth_float_end();
        is_waiting = 0;
    }
    truth_land(landing->depth);
    is_in_handler = landing->is_in_handler;
}

/* While signals are as they were: the next handler may come as soon as it has jumped. */
NEVER static void jump(void)
{
    const unsigned count = jumps.count - jumps.first;
    struct landing *landing;

    if (jumps.count <= jumps.first)
        return;
    landing = &jumps.landings[jumps.first + truth_random(count)];
    leave_for(landing);
    siglongjmp(landing->at, 1);
}

#define JUMP jump()
#define WITH_LANDING(...)                                                                \
    do {                                                                                 \
        const unsigned index_ = jumps.count;                                             \
        struct landing *const landing_ = &jumps.landings[index_];                        \
        if (index_ == LANDINGS_MAX)                                                      \
            break;                                                                       \
        landing_->depth = truth_depth();                                                 \
        landing_->is_in_handler = is_in_handler;                                         \
        landing_->is_floating = truth_is_floating();                                     \
        jumps.count = index_ + 1;                                                        \
        if (sigsetjmp(landing_->at, 1) == 0) {                                           \
            __VA_ARGS__                                                                  \
        }                                                                                \
        jumps.count = index_;                                                            \
    } while (0)

/* --- exceptions ----------------------------------------------------------------------- */

static __thread int catching; /* calls that would catch what is thrown now */

#ifdef __cplusplus
#define THROW                                                                            \
    do {                                                                                 \
        if (catching)                                                                    \
            throw 1;                                                                     \
    } while (0)
#define TRY(...)                                                                         \
    do {                                                                                 \
        catching++;                                                                      \
        try {                                                                            \
            __VA_ARGS__                                                                  \
        } catch (int) {                                                                  \
        }                                                                                \
        catching--;                                                                      \
    } while (0)
#define TRY_AND_RETHROW(...)                                                             \
    do {                                                                                 \
        catching++;                                                                      \
        try {                                                                            \
            __VA_ARGS__                                                                  \
        } catch (int) {                                                                  \
            if (catching > 1 && CHANCE(2)) {                                             \
                catching--;                                                              \
                throw;                                                                   \
            }                                                                            \
        }                                                                                \
        catching--;                                                                      \
    } while (0)

/* In a block: a destructor that calls, on every way out of it. */
struct object {
    MR_NEVER_TRACE __attribute__((always_inline)) inline object()
    {
    }
    TRACED ~object()
    {
        ENTER;
        (void)leaf(1);
        KEEP;
    }
};

TRACED static int compare(const void *left, const void *right)
{
    ENTER;
    if (CHANCE(6))
        THROW;
    return *(const int *)left - *(const int *)right;
}

/* Through frames of the C library, which are not traced. */
#define SORT                                                                             \
    do {                                                                                 \
        int values_[5] = {5, 3, 1, 4, 2};                                                \
        qsort(values_, 5, sizeof(values_[0]), compare);                                  \
    } while (0)

/* Its destructor runs when the thread ends. */
#define OF_THREAD                                                                        \
    do {                                                                                 \
        static thread_local object object_;                                              \
        (void)object_;                                                                   \
    } while (0)
#endif

/* --- handlers of signals -------------------------------------------------------------- */

/* raise() calls it. What it calls cannot throw past it. */
TRACED static void on_signal(int number)
{
    const int depth = 20, was_catching = catching;

    ENTER;
    (void)number;
    is_in_handler = 1;
    catching = 0;
    CALL(ANY);
    if (program.jumps && CHANCE(4))
        jump();
    catching = was_catching;
    is_in_handler = 0;
    KEEP;
}

#define RAISE                                                                            \
    do {                                                                                 \
        if (!is_in_handler && truth_may_call(depth))                                     \
            (void)raise(SIGUSR1);                                                        \
    } while (0)

/* A timer's, at any time: it calls nothing that must not be called then, and jumps to its own landing; or to one of those that
 * the thread has, which waits for it (wait_for_tick()). */
TRACED static void on_tick(int number)
{
    const sig_atomic_t was_waiting = is_waiting;
    const unsigned first = jumps.first, count = jumps.count;
    const int depth = 20, error = errno;

    (void)number;
    truth_float_begin();
    is_waiting = 0;
    jumps.first = count;
    {
        ENTER;
        (void)ping((int)truth_random(4));
        if (program.jumps)
            WITH_LANDING(CALL(leaf); jump(););
        jumps.first = first;
        ticks++;
        if (program.jumps && was_waiting && CHANCE(2))
            jump();
    }
    jumps.count = count;
    is_waiting = was_waiting;
    truth_float_end();
    errno = error;
    KEEP;
}

TRACED static int wait_for_tick(int depth)
{
    ENTER;
    const sig_atomic_t before = ticks;

    is_waiting = 1;
    while (has_ticks && ticks == before)
        KEEP;
    is_waiting = 0;
    return depth;
}

#define WAIT_FOR_TICK                                                                    \
    do {                                                                                 \
        if (!is_thread && once_of(&waits_left))                                          \
            CALL(wait_for_tick);                                                         \
    } while (0)

/* One timer for the main thread, one for any that works. */
NEVER static void start_ticks(void)
{
    const struct itimerval working = {{0, 3000}, {0, 3000}};
    const struct itimerspec always = {{0, 500000}, {0, 500000}};
    struct sigevent event;
    struct sigaction action;
    timer_t timer;

    memset(&action, 0, sizeof(action));
    action.sa_handler = on_tick;
    action.sa_flags = SA_RESTART;
    sigaddset(&action.sa_mask, SIGALRM);
    sigaddset(&action.sa_mask, SIGPROF);
    MUST(sigaction(SIGALRM, &action, NULL) == 0 &&
         sigaction(SIGPROF, &action, NULL) == 0);
    memset(&event, 0, sizeof(event));
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGALRM;
    event._sigev_un._tid = gettid();
    has_ticks = true;
    MUST(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 &&
         timer_settime(timer, 0, &always, NULL) == 0);
    MUST(setitimer(ITIMER_PROF, &working, NULL) == 0);
}

#endif
