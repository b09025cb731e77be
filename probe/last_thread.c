/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process ends when its last thread does, by pthread_exit() in main() or in the thread that forked it. libc counts threads
 * for that, and ours among them: with them alone left it would stand there for ever. So where the first thread may have
 * ended, we look whether any is left that is not ours, and do what libc does: exit(0), in a thread that is not ours either.
 *
 * field        written by       read by           access
 * own_tids[]   each own thread  helper, control   release [T], acquire [O]
 * is_over      helper, control  the same          exchange: one of them ends the process
 * ring->tid    who takes it     helper, control   relaxed: one that is just being taken is looked at again
 * Pairs: [T]-[O] a tid that is read is that of one of ours.
 */
#include "probe/registry.h"

#include "probe/futex.h"

#include <fcntl.h>
#include <stdlib.h>

#define ENTRIES_SIZE 4096

/* Of getdents64(2). */
struct entry {
    uint64_t inode, offset;
    uint16_t size;
    uint8_t type;
    char name[];
};

static bool is_own(const struct mr_probe *probe, uint32_t tid)
{
    for (uint32_t i = 0; i < MR_OWN_THREADS_MAX; i++)
        if (mr_load_acquire(&probe->own_tids[i]) == tid) /* [O] */
            return true;
    return false;
}

/* Whether the first thread has a ring, which it gives back when it ends. Most of the time this is all that is asked. */
static bool has_ring(struct mr_probe *probe)
{
    struct mr_ring *ring = mr_load_acquire(&probe->pool.rings);

    for (; ring; ring = ring->next)
        if (mr_load_acquire(&ring->state) == MR_RING_OWNED &&
            mr_load_relaxed(&ring->tid) == probe->source.pid)
            return true;
    return false;
}

/* Whether the threads of `entries` are all ours, or have ended: the first one stays, as what it was, until the process ends. */
static bool are_over(const struct mr_probe *probe, const uint8_t *entries, long size)
{
    for (long at = 0; at < size;) {
        const struct entry *entry = (const void *)(entries + at);
        uint32_t tid = (uint32_t)strtoul(entry->name, NULL, 10);

        if (tid != 0 && !is_own(probe, tid) && !mr_thread_has_ended(tid))
            return false;
        at += entry->size;
    }
    return true;
}

static bool are_all_over(const struct mr_probe *probe)
{
    _Alignas(struct entry) uint8_t entries[ENTRIES_SIZE];
    long fd, size = 0;
    bool is_over = mr_thread_has_ended(probe->source.pid);

    if (!is_over)
        return false;
    fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/task",
                 O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (fd < 0)
        return false;
    while (is_over && (size = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0)
        is_over = are_over(probe, entries, size);
    (void)syscall(SYS_close, fd);
    return is_over && size == 0;
}

static void *end_process(void *argument)
{
    MR_UNUSED(argument);
    exit(0); /* NOLINT(concurrency-mt-unsafe): there is no other thread of the program */
}

void mr_last_thread_look(struct mr_probe *probe)
{
    pthread_t thread;

    if (has_ring(probe) || !are_all_over(probe) ||
        mr_exchange_acq_rel(&probe->is_over, 1) != 0)
        return;
    if (pthread_create(&thread, NULL, end_process, NULL) != 0)
        mr_store_relaxed(&probe->is_over, 0); /* the next look tries again */
}
