/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters of one thread: opened at its first counted event, read at each, closed at
 * its end. System calls only, no floating point.
 *
 * field            written by    read by       access
 * threads[].state  its thread    taking ones   compare-exchange FREE -> TAKEN [T], release
 *                                              store of FREE [F]
 * descriptors[]    its thread    forked child  relaxed: the child has one thread
 * refused[]        any thread    writer        relaxed, compare-exchange: hints
 * the rest of threads[]: its thread, and handlers on it: set before state OPEN
 * Pairs: [F]-[T] the last use of a place before its next.
 * Progress: wait-free but for system calls. Checked by: tests/system/counters
 *
 * threads[] lies in memory that is zero in a child however it was forked: the pages that
 * the kernel mapped are not there either, and the descriptors count another thread.
 */
#include "probe/counters.h"

#include "probe/counters_page.h"
#include "probe/futex.h"
#include "probe/own_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

enum state { FREE, TAKEN, OPEN, GONE };

struct mr_counter_thread {
    _Atomic uint32_t state;
    int32_t descriptors[MR_COUNTERS_MAX];
    uint64_t ids[MR_COUNTERS_MAX];
    struct perf_event_mmap_page *pages[MR_COUNTERS_MAX]; /* hardware; NULL: none */
};

#define PAGE_BYTES 4096
#define READ_FORMAT                                                                      \
    (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID)

static _Thread_local struct mr_counter_thread *self MR_TLS_INITIAL_EXEC;
static _Thread_local bool is_refused MR_TLS_INITIAL_EXEC;

#if MR_ARCH_HAS_PMC
static uint64_t read_pmc(uint32_t index)
{
    return mr_arch_pmc(index);
}
static uint64_t read_ticks(void)
{
    return MR_COMPILER_TICKS();
}
static const struct mr_counter_machine machine = {true, read_pmc, read_ticks};
#else
static const struct mr_counter_machine machine = {.has_pmc = false};
#endif

bool mr_counters_map(struct mr_counters *counters)
{
    size_t bytes = counters->threads_max * sizeof(*counters->threads);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED || madvise(memory, bytes, MADV_WIPEONFORK) != 0)
        return false;
    counters->threads = memory;
    return true;
}

/*
 * Each alone: in a group, Linux 6.18 brings a clock up to date only when the thread leaves the processor, and with a
 * clock as its leader counts no page faults; and reading two of a group takes as long as reading both.
 */
int mr_counters_open(const struct mr_counter_event *event)
{
    struct perf_event_attr attributes;
    long fd, high;

    memset(&attributes, 0, sizeof(attributes));
    attributes.size = sizeof(attributes);
    attributes.type = event->type;
    attributes.config = event->config;
    attributes.config1 = event->config1;
    attributes.config2 = event->config2;
    attributes.exclude_hv = 1;
    attributes.exclude_kernel = event->is_user_only;
    attributes.read_format = READ_FORMAT;
    fd = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return -1;
    /* Out of the way of the program, which takes the lowest numbers. */
    high = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, MR_OWN_FD_MIN);
    if (high < 0)
        return (int)fd;
    (void)syscall(SYS_close, fd);
    return (int)high;
}

/* Whether the number still means the event: the program may have closed all there were. */
static bool is_ours(int fd, uint64_t id)
{
    uint64_t now;

    return syscall(SYS_ioctl, fd, PERF_EVENT_IOC_ID, &now) == 0 && now == id;
}

static size_t place_of(const struct mr_counters *counters,
                       const struct mr_counter_thread *thread, uint32_t counter)
{
    return (size_t)(thread - counters->threads) * MR_COUNTERS_MAX + counter;
}

static void close_all(struct mr_counters *counters, struct mr_counter_thread *thread)
{
    for (uint32_t i = 0; i < MR_COUNTERS_MAX; i++) {
        size_t at = place_of(counters, thread, i);
        int32_t fd = mr_load_relaxed(&counters->descriptors[at]) - 1;

        if (thread->pages[i])
            (void)syscall(SYS_munmap, thread->pages[i], PAGE_BYTES);
        thread->pages[i] = NULL;
        if (fd >= 0 && is_ours(fd, counters->ids[at]))
            (void)syscall(SYS_close, fd);
        mr_store_relaxed(&counters->descriptors[at], 0);
    }
}

/* Without this page, the counter is read by a system call. */
static void map_page(struct mr_counter_thread *thread, uint32_t counter)
{
    long page = syscall(SYS_mmap, NULL, PAGE_BYTES, PROT_READ, MAP_SHARED,
                        thread->descriptors[counter], 0);

    thread->pages[counter] =
        page < 0 && page > -PAGE_BYTES ? NULL : (struct perf_event_mmap_page *)page;
}

static bool open_one(struct mr_counters *counters, struct mr_counter_thread *thread,
                     uint32_t counter)
{
    const struct mr_counter_event *event = &counters->items[counter].event;
    size_t at = place_of(counters, thread, counter);
    int fd = mr_counters_open(event);

    if (fd < 0)
        return false;
    thread->descriptors[counter] = fd;
    if (syscall(SYS_ioctl, fd, PERF_EVENT_IOC_ID, &thread->ids[counter]) != 0) {
        (void)syscall(SYS_close, fd);
        return false;
    }
    counters->ids[at] = thread->ids[counter];
    mr_store_relaxed(&counters->descriptors[at], fd + 1);
    if (!event->is_software)
        map_page(thread, counter);
    return true;
}

static struct mr_counter_thread *take_place(struct mr_counters *counters)
{
    for (uint32_t i = 0; i < counters->threads_max; i++) {
        struct mr_counter_thread *thread = &counters->threads[i];
        uint32_t state = FREE;

        if (mr_load_relaxed(&thread->state) == FREE &&
            mr_compare_exchange_acq_rel(&thread->state, &state, TAKEN)) /* [T] */
            return thread;
    }
    return NULL;
}

static void refuse(struct mr_counters *counters, uint32_t why)
{
    is_refused = true;
    for (uint32_t i = 0; i < MR_COUNTERS_REASONS_MAX; i++) {
        uint32_t there = 0;

        if (mr_compare_exchange_relaxed(&counters->refused[i], &there, why) ||
            there == why)
            return;
    }
}

/* All or none. Signals are blocked. */
static void open_all(struct mr_counters *counters)
{
    struct mr_counter_thread *thread = take_place(counters);

    if (!thread) {
        refuse(counters, MR_COUNTERS_BUDGET);
        return;
    }
    for (uint32_t i = 0; i < counters->present; i++)
        if (!open_one(counters, thread, i)) {
            refuse(counters, (uint32_t)errno);
            close_all(counters, thread);
            mr_store_release(&thread->state, FREE); /* [F] */
            return;
        }
    self = thread;
    mr_store_relaxed(&thread->state, OPEN); /* for handlers on this thread */
}

static bool has_counters(struct mr_counters *counters)
{
    uint64_t mask;

    if (is_refused)
        return false;
    if (self && mr_load_relaxed(&self->state) != FREE) /* FREE: wiped by a fork */
        return mr_load_relaxed(&self->state) == OPEN;
    mask = mr_signals_block();
    if (!self || mr_load_relaxed(&self->state) == FREE)
        open_all(counters);
    mr_signals_restore(mask);
    return !is_refused;
}

/* `is_running`: false when the event had no time on the processor at all so far. */
static bool read_single(uint32_t counter, uint64_t *value, bool *is_running)
{
    struct {
        uint64_t count, enabled, running, id;
    } bytes;

    if (syscall(SYS_read, self->descriptors[counter], &bytes, sizeof(bytes)) !=
            (long)sizeof(bytes) ||
        bytes.id != self->ids[counter])
        return false;
    *is_running = bytes.running > 0;
    *value = mr_counter_scale(bytes.count, bytes.enabled, bytes.running);
    return true;
}

/* False: not to be had at this event. */
static bool read_all(struct mr_counters *counters, uint64_t *values)
{
    bool is_there = true, is_running = true;

    for (uint32_t i = 0; i < counters->present && is_there && is_running; i++)
        if (!self->pages[i] ||
            !mr_counter_page_read(self->pages[i], &machine, &values[i]))
            is_there = read_single(i, &values[i], &is_running);
    if (!is_there) {
        mr_store_relaxed(&self->state, GONE); /* its place stays taken */
        refuse(counters, EBADF);
    }
    return is_there && is_running;
}

bool mr_counters_read(struct mr_counters *counters, uint64_t values[MR_COUNTERS_MAX])
{
    return has_counters(counters) && read_all(counters, values);
}

void mr_counters_thread_end(struct mr_counters *counters)
{
    struct mr_counter_thread *thread = self;

    self = NULL;
    is_refused = true; /* what is called from here on is not counted */
    if (!thread || mr_load_relaxed(&thread->state) == FREE)
        return;
    close_all(counters, thread);
    mr_store_release(&thread->state, FREE); /* [F] */
}

void mr_counters_after_fork(struct mr_counters *counters)
{
    self = NULL;
    is_refused = false;
    for (uint32_t i = 0; i < MR_COUNTERS_REASONS_MAX; i++)
        mr_store_relaxed(&counters->refused[i], 0);
    for (uint32_t i = 0; i < counters->threads_max * MR_COUNTERS_MAX; i++) {
        int32_t fd = mr_load_relaxed(&counters->descriptors[i]) - 1;

        if (fd >= 0 && is_ours(fd, counters->ids[i]))
            (void)syscall(SYS_close, fd);
        mr_store_relaxed(&counters->descriptors[i], 0);
    }
}
