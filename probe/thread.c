/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread and its ring: given at its first event, taken back at its end.
 *
 * field      written by  read by        access
 * stripes[]  any thread  writer, stats  relaxed: sums, told when they are told
 * stalled    any thread  any thread     relaxed; a hint, waits are bounded
 * name[]     owner       writer         relaxed bytes; name_version is released [P]
 *                                       after them and acquired [C] in announce.c; a
 *                                       name torn by the next one is told again
 * Progress: wait-free but for the system calls of a first event.
 */
#include "probe/registry.h"

#include "probe/futex.h"
#include "probe/patience.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/prctl.h>

#include "probe/include/millrace/probe.h"

/* A thread that was refused a ring asks again after this many lost events. */
#define REFUSED_RETRY 4096
#define WAIT_SLEEP_NS (50 * MR_MICROSECOND_NS)

_Thread_local struct mr_thread mr_thread_self MR_TLS_INITIAL_EXEC;
/* How often this thread's destructor was called; see thread_end(). */
static _Thread_local uint32_t end_count MR_TLS_INITIAL_EXEC;

static void lose(struct mr_probe *probe, enum mr_loss_reason reason)
{
    uintptr_t self = (uintptr_t)&mr_thread_self;
    size_t stripe = (self >> 12 ^ self >> 20) % MR_LOSS_STRIPES;

    (void)mr_add_relaxed(&probe->stripes[stripe].lost[reason], 1);
}

uint64_t mr_probe_source_lost(const struct mr_probe *probe, uint32_t reason)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < MR_LOSS_STRIPES; i++)
        sum += mr_load_relaxed(&probe->stripes[i].lost[reason]);
    return sum;
}

static void set_name(struct mr_ring *ring, const char *name)
{
    size_t i;

    for (i = 0; i < MR_RING_NAME_SIZE - 1 && name[i]; i++)
        mr_store_relaxed(&ring->name[i], name[i]);
    mr_store_relaxed(&ring->name[i], '\0');
    (void)mr_add_acq_rel(&ring->name_version, 1); /* [P] */
}

static void describe(struct mr_probe *probe, struct mr_thread *thread,
                     struct mr_ring *ring)
{
    char name[16] = "";

    mr_store_relaxed(&ring->tid, (uint32_t)syscall(SYS_gettid));
    ring->start_address = thread->start_address;
    if (ring->start_address == 0 && mr_load_relaxed(&ring->tid) == probe->main_tid)
        ring->start_address = probe->main_address;
    ring->start_site = mr_windows_site(&probe->windows, ring->start_address);
    ring->start_ticks = mr_clock_read(probe->clock.mode);
    ring->cuts_before = mr_thread_cuts_before(probe, thread, mr_load_relaxed(&ring->tid));
    ring->prunes_before = mr_load_acquire(&probe->pool.shared.prunes.settled); /* [T] */
    (void)prctl(PR_GET_NAME, name);
    set_name(ring, name);
}

/* pthread_setspecific() may allocate, and so call a hook: that event is nested. */
static bool give_ring(struct mr_probe *probe, struct mr_thread *thread)
{
    struct mr_ring *ring = mr_pool_take(&probe->pool);

    if (!ring)
        return false;
    describe(probe, thread, ring);
    (void)pthread_setspecific(probe->thread_key, thread);
    mr_ring_attach(thread, ring);
    mr_pool_publish(ring);
    return true;
}

static bool try_ring(struct mr_thread *thread)
{
    uint64_t mask = mr_signals_block();
    bool is_given;

    thread->flags |= MR_THREAD_BUSY;
    is_given = thread->words || give_ring(mr_probe, thread);
    thread->flags &= ~(uint32_t)MR_THREAD_BUSY;
    mr_signals_restore(mask);
    return is_given;
}

/*
 * Policy block: a ring whose thread has ended is free as soon as the writer has drained
 * it. As for a full ring, a handler that comes meanwhile does not wait in its turn; and
 * after a wait that was in vain none waits, this thread or another, until the writer has
 * taken something: else each of many short threads would wait for who is not there. A function of its own: a thread that gets its
 * ring at once may be in a handler on the smallest stack there is.
 */
static MR_NOINLINE bool wait_for_ring(struct mr_thread *thread)
{
    struct mr_pool *pool = &mr_probe->pool;
    struct mr_patience patience = mr_patience_begin();
    uint64_t left_ns = pool->shared.block_timeout_ns;
    uint32_t taken = mr_load_relaxed(&pool->shared.taken);
    bool is_given = false;

    if (pool->shared.policy != MR_POLICY_BLOCK ||
        patience.began_ns < thread->blocked_until_ns ||
        mr_load_relaxed(&pool->shared.stalled) == taken + 1)
        return false;
    while (!is_given && mr_pool_may_give(pool) && mr_ring_has_writer(&pool->shared) &&
           (left_ns = mr_patience_left(&patience, pool->shared.block_timeout_ns)) > 0) {
        thread->blocked_until_ns = patience.seen_ns + left_ns;
        mr_ring_wake_writer(&pool->shared);
        mr_sleep_ns(WAIT_SLEEP_NS);
        is_given = try_ring(thread);
    }
    if (!is_given && left_ns == 0)
        mr_store_relaxed(&pool->shared.stalled, taken + 1);
    thread->blocked_until_ns = 0;
    return is_given;
}

bool mr_thread_meet(struct mr_thread *thread)
{
    if (thread->words)
        return true;
    if (thread->flags || thread->refused % REFUSED_RETRY != 0)
        return false;
    return try_ring(thread) || wait_for_ring(thread);
}

static void lose_without_ring(struct mr_thread *thread)
{
    if (thread->flags & MR_THREAD_OWN)
        return;
    if (thread->flags & MR_THREAD_BUSY)
        lose(mr_probe, MR_LOSS_NESTED);
    else if (thread->flags & MR_THREAD_CLOSED)
        lose(mr_probe, MR_LOSS_EXIT);
    else {
        thread->refused++;
        lose(mr_probe, MR_LOSS_BUDGET);
    }
}

void mr_thread_event(struct mr_thread *thread, const struct mr_event *event)
{
    int saved_errno = errno;

    if (mr_thread_meet(thread))
        mr_ring_event_slow(thread, event, mr_clock_read(mr_probe->clock.mode),
                           MR_INDEX_NONE);
    else
        lose_without_ring(thread);
    errno = saved_errno;
}

/* ThreadSanitizer's runtime forgets a thread before the last call: there, the first. */
#define END_CALLS (MR_SANITIZE_THREAD ? 1 : PTHREAD_DESTRUCTOR_ITERATIONS)

/*
 * Called up to PTHREAD_DESTRUCTOR_ITERATIONS times as long as the value is set again:
 * the last of them, so that what other destructors call is recorded. C++ thread_local
 * destructors have run before the first.
 */
static void thread_end(void *value)
{
    struct mr_thread *thread = value;
    uint64_t mask;

    if (++end_count < END_CALLS && pthread_setspecific(mr_probe->thread_key, thread) == 0)
        return;
    mask = mr_signals_block();
    if (thread->words)
        mr_ring_detach(thread);
    mr_counters_thread_end(&mr_probe->counters);
    mr_depth_thread_end();
    thread->flags |= MR_THREAD_CLOSED;
    mr_signals_restore(mask);
}

void mr_thread_key_init(struct mr_probe *probe)
{
    /* Without a key, ends of threads are not seen; their rings stay theirs. */
    (void)pthread_key_create(&probe->thread_key, thread_end);
}

void mr_thread_after_fork(struct mr_thread *thread)
{
    uint64_t start_address = thread->start_address;

    *thread = (struct mr_thread){.start_address = start_address};
}

static void rename_thread(struct mr_ring *ring, const char *name)
{
    set_name(ring, name);
    if (ring->recorded)
        mr_ring_record_name(ring);
}

MR_EXPORT void mr_thread_name(const char *name)
{
    int saved_errno = errno;

    if (mr_probe_enabled() && mr_thread_meet(&mr_thread_self))
        rename_thread(mr_thread_self.ring, name);
    errno = saved_errno;
}
