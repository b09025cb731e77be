/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hardware counter read by its own thread without a system call: the recipe of
 * linux/perf_event.h (struct perf_event_mmap_page), on the page that the kernel maps.
 *
 *     lock    changes when the kernel writes the page: read again
 *     offset  what was counted up to where `index` - 1 began
 *     index   the processor's counter, plus 1; 0: it is not on the processor now, or may
 *             not be read here
 *     width   bits of that counter that count; the rest is sign
 *     times   how long the event has been wanted, and has run: where it shared the
 *             processor with others, the count is scaled up by their ratio
 *
 *     uint64_t value;
 *     if (!mr_counter_page_read(page, &mr_counter_machine, &value))
 *         ... read(fd)                                  // the kernel knows in any case
 *
 * The thread that the event counts, and signal handlers on it. Changes no errno and no
 * floating-point state. Checked by: tests/unit/probe/test_counters_page.c
 */
#ifndef MR_PROBE_COUNTERS_PAGE_H
#define MR_PROBE_COUNTERS_PAGE_H

#include "base/compiler.h"

#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The kernel writes the page for some 100 ns at a time; so often means something is wrong. */
#define MR_COUNTER_PAGE_TRIES 100

/* What the processor is asked for; a test has its own. */
struct mr_counter_machine {
    bool has_pmc; /* the processor's counters can be read here at all */
    uint64_t (*pmc)(uint32_t index);
    uint64_t (*ticks)(void);
};

/* count x enabled / running: what it would be had the event run all the time. */
static inline MR_NO_INSTRUMENT uint64_t mr_counter_scale(uint64_t count, uint64_t enabled,
                                                         uint64_t running)
{
    if (enabled == running || running == 0)
        return count;
    return (uint64_t)((mr_u128)count * enabled / running);
}

/* The ns since the page's times were written, from the ticks now. */
static inline MR_NO_INSTRUMENT uint64_t
mr_counter_page_since(const volatile struct perf_event_mmap_page *page, uint64_t ticks)
{
    uint64_t quotient = ticks >> page->time_shift;
    uint64_t rest = ticks & ((UINT64_C(1) << page->time_shift) - 1);

    return page->time_offset + quotient * page->time_mult +
           (rest * page->time_mult >> page->time_shift);
}

/* One try; false when it cannot be read here. */
static inline MR_NO_INSTRUMENT bool mr_counter_page_try(
    const volatile struct perf_event_mmap_page *page,
    const struct mr_counter_machine *machine, uint64_t *value)
{
    uint64_t enabled = page->time_enabled, running = page->time_running;
    uint32_t index = page->index, unused = 64u - page->pmc_width;
    uint64_t pmc;

    if (index == 0 || unused >= 64)
        return false;
    if (enabled != running) { /* it shares; how far are the times by now? */
        uint64_t since;

        if (!page->cap_user_time)
            return false;
        since = mr_counter_page_since(page, machine->ticks());
        enabled += since;
        running += since;
    }
    pmc = machine->pmc(index - 1) << unused;
    *value = (uint64_t)page->offset + (uint64_t)((int64_t)pmc >> unused);
    *value = mr_counter_scale(*value, enabled, running);
    return true;
}

/* The count so far. False: not to be had without the kernel. */
static inline MR_NO_INSTRUMENT bool mr_counter_page_read(
    const volatile struct perf_event_mmap_page *page,
    const struct mr_counter_machine *machine, uint64_t *value)
{
    if (!machine->has_pmc || !page->cap_user_rdpmc)
        return false;
    for (int i = 0; i < MR_COUNTER_PAGE_TRIES; i++) {
        uint32_t lock = page->lock;
        bool is_read;

        /* The kernel writes on this processor, in our stead: only the compiler can reorder. */
        atomic_signal_fence(memory_order_seq_cst);
        is_read = mr_counter_page_try(page, machine, value);
        atomic_signal_fence(memory_order_seq_cst);
        if (page->lock == lock)
            return is_read;
    }
    return false;
}

#endif
