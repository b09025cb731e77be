/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe's own threads: writer, helper, ticker, control.
 *
 * field         written by        read by         access
 * own_started   who starts one    forking thread  relaxed: by who forks, or it does not matter
 * own_begun     the new thread    forking thread  release [B], acquire [F]
 * own_tids[]    the new thread    own threads     release [T], see last_thread.c; relaxed where it ends
 * own_next      the new thread    the new thread  relaxed: a place of its own
 * Invariant: a process is not copied while one of them is about to begin, for FORK_WAIT_NS
 * at most: what runs in a thread before its function, such as a sanitizer's runtime, may
 * hold locks that its allocator then has for ever in the child.
 */
#include "probe/registry.h"

#include "probe/futex.h"
#include "probe/patience.h"

#include <sys/prctl.h>

#define FORK_WAIT_NS (500 * MR_MILLISECOND_NS)
#define FORK_SLEEP_NS (20 * MR_MICROSECOND_NS)

enum mr_status mr_own_thread(struct mr_probe *probe, void *(*start)(void *))
{
    uint64_t mask = mr_signals_block();
    pthread_attr_t attributes;
    pthread_t thread;
    int failure = pthread_attr_init(&attributes);

    if (failure == 0) {
        (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        (void)mr_add_relaxed(&probe->own_started, 1);
        /* Ours passes it through: nothing is recorded yet. So do those of tools. */
        failure = pthread_create(&thread, &attributes, start, probe);
        if (failure != 0)
            (void)mr_add_acq_rel(&probe->own_begun, 1); /* nobody waits for it */
        (void)pthread_attr_destroy(&attributes);
    }
    mr_signals_restore(mask);
    return failure == 0 ? MR_OK : MR_ENOMEM;
}

void mr_own_thread_begin(struct mr_probe *probe, const char *name)
{
    mr_thread_self.flags = MR_THREAD_OWN;
    (void)prctl(PR_SET_NAME, name);
    mr_store_release(
        &probe->own_tids[mr_add_relaxed(&probe->own_next, 1) % MR_OWN_THREADS_MAX],
        (uint32_t)syscall(SYS_gettid));         /* [T] */
    (void)mr_add_acq_rel(&probe->own_begun, 1); /* [B] */
}

void mr_own_thread_end(struct mr_probe *probe)
{
    uint32_t tid = (uint32_t)syscall(SYS_gettid);

    for (uint32_t i = 0; i < MR_OWN_THREADS_MAX; i++)
        if (mr_load_relaxed(&probe->own_tids[i]) == tid)
            mr_store_relaxed(&probe->own_tids[i], 0);
}

void mr_own_threads_before_fork(struct mr_probe *probe)
{
    struct mr_patience patience = mr_patience_begin();

    while (mr_load_acquire(&probe->own_begun) != /* [F] */
               mr_load_relaxed(&probe->own_started) &&
           mr_patience_left(&patience, FORK_WAIT_NS) > 0)
        mr_sleep_ns(FORK_SLEEP_NS);
}

void mr_own_threads_after_fork(struct mr_probe *probe)
{
    mr_store_relaxed(&probe->own_started, 0);
    mr_store_relaxed(&probe->own_begun, 0);
    for (uint32_t i = 0; i < MR_OWN_THREADS_MAX; i++)
        mr_store_relaxed(&probe->own_tids[i], 0);
    mr_store_relaxed(&probe->own_next, 0);
    mr_store_relaxed(&probe->is_over, 0);
}
