/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field            written by  read by        access
 * levels (thread)  its thread  its handlers   the count relaxed; a place is written before
 *                                             and after it, as a handler between the two
 *                                             uses the same place
 * skipped[]        any thread  writer, stats  relaxed: a sum, told when it is told
 *
 * Progress: wait-free but for the system calls of a first event. Checked by:
 * tests/unit/probe/test_depth.c, tests/system/depth
 */
#include "probe/depth.h"

#include "probe/futex.h"

#include <sys/mman.h>

#define LEVELS_BYTES (sizeof(struct mr_levels) + MR_LEVELS_MAX * sizeof(struct mr_level))
/* Doors differ in how far below their caller they take the stack's address. */
#define STACK_SLACK 4096

static _Thread_local struct mr_levels *self MR_TLS_INITIAL_EXEC;
static _Thread_local bool is_refused MR_TLS_INITIAL_EXEC;

static void map_levels(void)
{
    uint64_t mask = mr_signals_block();
    long memory;

    if (!self && !is_refused) {
        memory = syscall(SYS_mmap, NULL, LEVELS_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        is_refused = memory == -1;
        self = is_refused ? NULL : (struct mr_levels *)memory;
    }
    mr_signals_restore(mask);
}

/* NULL: this thread is not limited. */
static struct mr_levels *levels_of(const struct mr_thread *thread)
{
    uint32_t cuts;

    if (!thread->ring) /* it records nothing, and its end is not seen */
        return NULL;
    cuts = mr_cuts_count(&thread->ring->shared->cuts);
    if (!self && !is_refused && !(thread->flags & MR_THREAD_CLOSED))
        map_levels();
    if (self && self->cuts != cuts) {
        mr_store_relaxed(&self->count, 0);
        self->over = 0;
        self->cuts = cuts;
    }
    return self;
}

/* On another stack, addresses tell nothing of which calls are gone. */
static bool is_on_signal_stack(void)
{
    struct {
        void *sp;
        int flags;
        size_t size;
    } stack = {.flags = 0};

    return syscall(SYS_sigaltstack, NULL, &stack) == 0 &&
           stack.flags & 1 /* SS_ONSTACK */;
}

/*
 * The first of the open calls that are gone, given that a call of `site` begins at
 * `stack`: far below it on the stack, or the same function at the same place.
 */
static uint32_t first_gone(const struct mr_levels *levels, uint32_t site, uint64_t stack)
{
    uint32_t count = mr_load_relaxed(&levels->count), gone = count;

    for (uint32_t i = count; i > 0 && levels->items[i - 1].stack <= stack; i--) {
        const struct mr_level *level = &levels->items[i - 1];

        if (level->stack + STACK_SLACK < stack ||
            (level->stack == stack && level->site == site))
            gone = i - 1;
    }
    return gone;
}

static void forget_gone(struct mr_levels *levels, uint32_t site, uint64_t stack)
{
    uint32_t gone = first_gone(levels, site, stack);

    if (gone == mr_load_relaxed(&levels->count) || is_on_signal_stack())
        return;
    levels->over = 0;
    mr_store_relaxed(&levels->count, gone);
}

static void push(struct mr_levels *levels, uint32_t site, uint64_t stack)
{
    uint32_t at = mr_load_relaxed(&levels->count);
    struct mr_level level = {stack, site};

    /* A span may be begun by a function that returns before it ends: its caller's place. */
    if (site < MR_SITE_FIRST_MODULE)
        level.stack = at > 0 ? levels->items[at - 1].stack : UINT64_MAX;
    levels->items[at] = level;
    atomic_signal_fence(memory_order_seq_cst);
    mr_store_relaxed(&levels->count, at + 1);
    atomic_signal_fence(memory_order_seq_cst);
    levels->items[at] = level;
}

bool mr_levels_enter(struct mr_levels *levels, uint32_t limit, uint32_t site,
                     uint64_t stack)
{
    if (mr_load_relaxed(&levels->count) >= limit)
        forget_gone(levels, site, stack);
    if (mr_load_relaxed(&levels->count) == MR_LEVELS_MAX)
        levels->over++;
    else
        push(levels, site, stack);
    return levels->over == 0 && mr_load_relaxed(&levels->count) <= limit;
}

static bool is_over(struct mr_levels *levels, uint64_t stack)
{
    if (levels->over > 0 && levels->items[MR_LEVELS_MAX - 1].stack + STACK_SLACK < stack)
        levels->over = 0;
    return levels->over > 0;
}

bool mr_levels_exit(struct mr_levels *levels, uint32_t limit, uint32_t site,
                    uint64_t stack)
{
    if (is_over(levels, stack)) {
        levels->over--;
        return false;
    }
    for (uint32_t i = mr_load_relaxed(&levels->count); i > 0; i--)
        if (levels->items[i - 1].site == site) {
            mr_store_relaxed(&levels->count, i - 1);
            return i <= limit;
        }
    return true; /* it began before recording did */
}

static void skip(struct mr_depth *depth)
{
    uintptr_t at = (uintptr_t)&self;

    (void)mr_add_relaxed(&depth->skipped[(at >> 12 ^ at >> 20) % MR_DEPTH_STRIPES].calls,
                         1);
}

bool mr_depth_takes(struct mr_depth *depth, struct mr_thread *thread, uint64_t bits,
                    uint64_t stack)
{
    struct mr_levels *levels = levels_of(thread);
    uint32_t site = mr_word_site(bits);

    if (!levels)
        return true;
    if (bits & MR_WORD_EXIT)
        return mr_levels_exit(levels, depth->limit, site, stack);
    if (mr_levels_enter(levels, depth->limit, site, stack))
        return true;
    skip(depth);
    return false;
}

bool mr_depth_is_recorded(const struct mr_depth *depth)
{
    return !self || (self->over == 0 && mr_load_relaxed(&self->count) <= depth->limit);
}

uint64_t mr_depth_skipped(const struct mr_depth *depth)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < MR_DEPTH_STRIPES; i++)
        sum += mr_load_relaxed(&depth->skipped[i].calls);
    return sum;
}

void mr_depth_thread_end(void)
{
    struct mr_levels *levels = self;

    self = NULL;
    if (levels)
        (void)syscall(SYS_munmap, levels, LEVELS_BYTES);
}

void mr_depth_after_fork(struct mr_depth *depth)
{
    for (size_t i = 0; i < MR_DEPTH_STRIPES; i++)
        mr_store_relaxed(&depth->skipped[i].calls, 0);
    if (self) {
        mr_store_relaxed(&self->count, 0);
        self->over = 0;
    }
}
