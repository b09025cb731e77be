/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pthread_create() in front of libc's, to learn each thread's start function, an outer
 * frame of the thread's stream (docs/FORMAT.md section 5, stream), and when it begins
 * (probe/cuts.h). Signals wait until that is known: a handler's first event makes the thread's ring, which tells it.
 * Everything else is passed through. In the static library there is none, and start functions stay
 * unknown: see interpose_none.c.
 *
 * field  written by                read by          access
 * state  creating, new thread      creating thread  compare-exchange [A], release [F]
 * start, creating thread           new thread       before pthread_create(), which
 *  argument,                                        synchronises
 *  signals
 */
#include "probe/registry.h"

#include "probe/futex.h"
#include "probe/include/millrace/probe.h"

#include <dlfcn.h>
#include <string.h>

/* Threads between their creation and their first instruction; beyond: not learned. */
#define STARTS_MAX 256

struct start {
    _Atomic uint32_t is_taken;
    void *(*start)(void *);
    void *argument;
    uint64_t signals; /* blocked in the new thread, when it begins */
};

/* Since glibc 2.32. 0: these attributes have a mask. */
extern MR_WEAK int pthread_attr_getsigmask_np(const pthread_attr_t *attributes,
                                              sigset_t *mask);

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                            void *);

static struct start starts[STARTS_MAX];
static create_function *_Atomic real_create;

static create_function *find_real(void)
{
    create_function *function = mr_load_relaxed(&real_create);
    void *symbol;

    if (function)
        return function;
    symbol = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&function, &symbol, sizeof(function)); /* ISO C has no such cast */
    mr_store_relaxed(&real_create, function);
    return function;
}

/* What is blocked in a thread with these attributes, of a creator that has blocked `signals`. */
static uint64_t mask_of(const pthread_attr_t *attributes, uint64_t signals)
{
    sigset_t mask;

    if (attributes && pthread_attr_getsigmask_np &&
        pthread_attr_getsigmask_np(attributes, &mask) == 0)
        memcpy(&signals, &mask, sizeof(signals));
    return signals;
}

MR_ARCH_NO_TSAN static void *thread_main(void *argument)
{
    struct start *slot = argument;
    void *(*start)(void *) = slot->start;
    void *start_argument = slot->argument;
    uint64_t signals = slot->signals;

    mr_store_release(&slot->is_taken, 0); /* [F] pairs with [A] in take_slot() */
    mr_thread_self.start_address = (uint64_t)(uintptr_t)start;
    /* [T] pairs with [S] in mr_cuts_settle(). */
    mr_thread_self.cuts_before = mr_load_acquire(&mr_probe->pool.shared.cuts.settled);
    mr_signals_restore(signals);
    return start(start_argument);
}

static struct start *take_slot(void)
{
    for (size_t i = 0; i < STARTS_MAX; i++) {
        uint32_t is_taken = 0;

        if (mr_load_relaxed(&starts[i].is_taken) == 0 &&
            mr_compare_exchange_acq_rel(&starts[i].is_taken, &is_taken, 1)) /* [A] */
            return &starts[i];
    }
    return NULL;
}

MR_EXPORT int pthread_create(pthread_t *restrict thread,
                             const pthread_attr_t *restrict attributes,
                             void *(*start)(void *), void *restrict argument)
{
    /* Also while recording is off: it may be on when the thread runs. */
    struct start *slot = mr_probe ? take_slot() : NULL;
    uint64_t signals;
    int failure;

    if (!slot)
        return find_real()(thread, attributes, start, argument);
    signals = mr_signals_block();
    slot->start = start;
    slot->argument = argument;
    slot->signals = mask_of(attributes, signals);
    failure = find_real()(thread, attributes, thread_main, slot);
    mr_signals_restore(signals);
    if (failure)
        mr_store_release(&slot->is_taken, 0);
    return failure;
}

void mr_interpose_after_fork(void)
{
    for (size_t i = 0; i < STARTS_MAX; i++)
        mr_store_relaxed(&starts[i].is_taken, 0);
}
