/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the recorder that runs at a thread's first event: system calls and atomics
 * only, no floating point.
 *
 * field       written by      read by      access
 * words_used  taking threads  the same     compare-exchange, relaxed: only a sum
 * ring_count  taking threads  a stranger   compare-exchange; is_made tells what counts
 * is_made     taking thread   a stranger   release store [P], acquire load [C]
 * is_full,    taking threads  the same     relaxed: hints; a rename too many fails
 *  is_named
 * Progress: lock-free but for system calls.
 */
#include "probe/recorder.h"

#include "base/atomics.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE_BYTES UINT64_C(4096)

static bool reserve_by_file(struct mr_recorder *recorder, uint64_t offset, uint64_t bytes)
{
    return mr_own_fd_is_there(&recorder->fd) &&
           syscall(SYS_fallocate, recorder->fd.fd, 0, offset, bytes) == 0;
}

/* MADV_POPULATE_WRITE fails where a store would be answered by SIGBUS. */
bool mr_recorder_reserve(struct mr_recorder *recorder, const void *at, uint64_t bytes)
{
    uint64_t first = (uintptr_t)at / PAGE_BYTES * PAGE_BYTES;
    uint64_t last = ((uintptr_t)at + bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    uint64_t offset = first - (uintptr_t)recorder->header;

    if (syscall(SYS_madvise, first, last - first, MADV_POPULATE_WRITE) == 0)
        return true;
    return errno == EINVAL && reserve_by_file(recorder, offset, last - first);
}

static bool take_bytes(struct mr_recorder *recorder, uint64_t bytes, uint64_t *offset)
{
    struct mr_recorder_header *header = recorder->header;
    uint64_t room = header->file_size - header->words_offset;
    uint64_t used = mr_load_relaxed(&header->words_used);

    do
        if (used + bytes > room)
            return false;
    while (!mr_compare_exchange_relaxed(&header->words_used, &used, used + bytes));
    *offset = header->words_offset + used;
    return true;
}

static struct mr_recorder_ring *take_place(struct mr_recorder *recorder)
{
    struct mr_recorder_header *header = recorder->header;
    struct mr_recorder_ring *rings = (void *)((uint8_t *)header + header->rings_offset);
    uint32_t count = mr_load_relaxed(&header->ring_count);

    do
        if (count == header->ring_max)
            return NULL;
    while (!mr_compare_exchange_relaxed(&header->ring_count, &count, count + 1));
    return &rings[count];
}

static void make_ring(struct mr_recorder_ring *ring, uint64_t offset, uint64_t bytes)
{
    ring->words_offset = offset;
    ring->capacity = bytes / sizeof(uint64_t);
    mr_store_relaxed(&ring->writing, MR_RECORDER_NONE);
    for (size_t i = 0; i < MR_RECORDER_ANCHORS; i++)
        mr_store_relaxed(&ring->anchors[i].index, MR_RECORDER_NONE);
    mr_store_release(&ring->is_made, 1); /* [P] */
}

/* The first ring of a forked child: now there is something that is worth a name. */
static void take_name(struct mr_recorder *recorder)
{
    size_t size = 0;
    char before[MR_RECORDER_PATH_SIZE + sizeof(MR_RECORDER_SUFFIX_NEW)];

    if (mr_load_relaxed(&recorder->is_named))
        return;
    for (; recorder->path[size]; size++)
        before[size] = recorder->path[size];
    for (size_t i = 0; i < sizeof(MR_RECORDER_SUFFIX_NEW); i++)
        before[size + i] = MR_RECORDER_SUFFIX_NEW[i];
    (void)syscall(SYS_renameat2, AT_FDCWD, before, AT_FDCWD, recorder->path, 0);
    mr_store_relaxed(&recorder->is_named, 1);
}

struct mr_recorder_ring *mr_recorder_ring_new(struct mr_recorder *recorder,
                                              uint64_t bytes, _Atomic uint64_t **words)
{
    struct mr_recorder_ring *ring;
    uint64_t offset;
    uint8_t *at;

    if (mr_load_relaxed(&recorder->is_full) || !take_bytes(recorder, bytes, &offset))
        return NULL;
    at = (uint8_t *)recorder->header + offset;
    ring = take_place(recorder);
    if (!ring || !mr_recorder_reserve(recorder, ring, sizeof(*ring)) ||
        !mr_recorder_reserve(recorder, at, bytes)) {
        mr_store_relaxed(&recorder->is_full, 1);
        return NULL;
    }
    make_ring(ring, offset, bytes);
    take_name(recorder);
    *words = (void *)at;
    return ring;
}
