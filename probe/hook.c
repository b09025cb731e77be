/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doors: what compilers call for instrumented functions, and manual spans. All end
 * in mr_ring_event(). Built without floating-point and SIMD instructions, so that these
 * registers stay what they were whatever the caller holds in them.
 */
#include "probe/hook.h"

#include "probe/include/millrace/probe.h"
#include "probe/pruned.h"
#include "probe/registry.h"

/*
 * The common way of an event saves no register and makes no frame: what is rare stands in
 * cold functions and is called last, so that nothing has to be kept across the call.
 * Checked by: tests/system/probe.
 */

/* For the depth limit: a function outside every site window, by a number hardly another has. */
static uint64_t wide_bits(uint64_t address)
{
    uint64_t number = address % (MR_SITE_LIMIT - MR_SITE_FIRST_MODULE);

    return (MR_SITE_FIRST_MODULE + number) << MR_WORD_SITE_SHIFT;
}

MR_COLD MR_NOINLINE static void wide(struct mr_thread *thread, uint64_t dir,
                                     uint64_t address)
{
    struct mr_event event = {.bits = mr_word_record(MR_RECORD_WIDE, 1, dir, 0),
                             .payload = address & MR_WORD_PAYLOAD_MASK,
                             .words = 2};

    if (mr_hook_state.counted & MR_COUNTED_DEPTH &&
        !mr_counters_takes(thread, dir | wide_bits(address)))
        return;
    if (thread->words)
        mr_ring_wide(thread, dir, address, mr_clock_read(mr_probe->clock.mode));
    else
        mr_thread_event(thread, &event);
}

MR_COLD MR_NOINLINE static void event_without_ring(uint64_t bits)
{
    struct mr_event event = {.bits = bits, .words = 1};

    mr_thread_event(&mr_thread_self, &event);
}

MR_NOINLINE static void read_hybrid(uint64_t bits, uint64_t number)
{
    struct mr_thread *thread = &mr_thread_self;

    if (MR_UNLIKELY(!thread->words))
        event_without_ring(bits);
    else if (number == thread->tick.seen) /* it does not move, or nobody ticks */
        mr_ring_event(thread, bits);
    else
        mr_ring_event_read(thread, bits, number);
}

/* mr_ring_event_hybrid() of a thread that may have no ring. */
static MR_ALWAYS_INLINE void record_hybrid(uint64_t bits)
{
    struct mr_thread *thread = &mr_thread_self;
    uint64_t number = mr_load_relaxed(&mr_tick.number);

    if (MR_LIKELY(mr_ring_shares(thread, number)))
        mr_ring_event_shared(thread, bits);
    else
        read_hybrid(bits, number);
}

MR_NOINLINE static void record_monotonic(uint64_t bits)
{
    struct mr_thread *thread = &mr_thread_self;

    if (MR_UNLIKELY(!thread->words))
        event_without_ring(bits);
    else
        mr_ring_event_at(thread, bits, mr_clock_monotonic_ns());
}

static void record_other(uint32_t clock, uint64_t bits);

static MR_ALWAYS_INLINE void record_counter(uint64_t bits)
{
    struct mr_thread *thread = &mr_thread_self;

    if (MR_UNLIKELY(!thread->words))
        event_without_ring(bits);
    else
        mr_ring_event(thread, bits);
}

/* `clock` is mr_hook_state's: 0 where recording ended meanwhile. */
static MR_ALWAYS_INLINE void record(uint32_t clock, uint64_t bits)
{
    /* First the one to which a branch is something. */
    if (MR_LIKELY(clock == MR_CLOCK_MODE_HYBRID))
        record_hybrid(bits);
    else if (MR_LIKELY(clock == MR_CLOCK_MODE_COUNTER))
        record_counter(bits);
    else
        record_other(clock, bits);
}

/* While a filter is in force: is this function to be recorded? */
static bool is_chosen(uint64_t bits)
{
    uint32_t site = mr_word_site(bits);
    const _Atomic uint8_t *exceptions = mr_load_acquire(&mr_hook_state.exceptions);
    /* Relaxed: a switch is seen a little earlier or later. */
    uint32_t byte = mr_load_relaxed(&exceptions[site / 8]);
    uint32_t is_exception = byte >> site % 8 & 1;

    return is_exception != mr_load_relaxed(&mr_hook_state.is_default_on);
}

/* Counted: with counters or a depth limit. */
MR_NOINLINE static void record_other(uint32_t clock, uint64_t bits)
{
    if (clock & MR_HOOK_FILTERED && !is_chosen(bits))
        mr_pruned_enter(&mr_thread_self, bits);
    else if (clock & MR_HOOK_COUNTED)
        mr_counters_event(&mr_thread_self, bits);
    else if (clock & MR_HOOK_FILTERED)
        record(clock & ~MR_HOOK_FILTERED, bits);
    else if (clock == MR_CLOCK_MODE_MONOTONIC)
        record_monotonic(bits);
}

static MR_ALWAYS_INLINE void record_function(uint64_t address, uint64_t dir)
{
    uint32_t clock = mr_load_relaxed(&mr_hook_state.hook_clock);
    uint64_t site;

    if (MR_LIKELY(!clock))
        return;
    site = address - mr_hook_state.windows.exe_origin;
    if (MR_UNLIKELY(site - MR_SITE_FIRST_MODULE >=
                    MR_WINDOW_LIBRARIES - MR_SITE_FIRST_MODULE)) {
        site = address - mr_hook_state.windows.library_origin;
        if (MR_UNLIKELY(site - MR_WINDOW_LIBRARIES >=
                        MR_SITE_LIMIT - MR_WINDOW_LIBRARIES)) {
            if (!(clock & MR_HOOK_FILTERED) ||
                mr_load_relaxed(&mr_hook_state.is_default_on))
                wide(&mr_thread_self, dir, address);
            return;
        }
    }
    record(clock, dir | site << MR_WORD_SITE_SHIFT);
}

MR_EXPORT void __cyg_profile_func_enter(void *function, void *call_site)
{
    MR_UNUSED(call_site);
    record_function((uintptr_t)function, 0);
}

MR_EXPORT void __cyg_profile_func_exit(void *function, void *call_site)
{
    MR_UNUSED(call_site);
    record_function((uintptr_t)function, MR_WORD_EXIT);
}

static MR_ALWAYS_INLINE void record_span(uint32_t id, uint64_t dir)
{
    uint64_t bits = dir | (uint64_t)id << MR_WORD_SITE_SHIFT;

    if (MR_UNLIKELY(mr_hook_state.counted & MR_COUNTED_SPANS))
        mr_counters_event(&mr_thread_self, bits);
    else
        record(mr_load_relaxed(&mr_hook_state.clock), bits);
}

/* Two threads that meet a site at once make two numbers of one name; one is kept. */
MR_COLD MR_NOINLINE static void first_of_site(struct mr_span_site *site, uint64_t dir)
{
    uint32_t id =
        mr_named_add(&mr_probe->named, site->name, site->file, site->line, site->flags);

    record_span(mr_arch_set_u32(&site->id, id), dir);
}

static MR_ALWAYS_INLINE void record_site(struct mr_span_site *site, uint64_t dir)
{
    uint32_t id = mr_arch_load_u32(&site->id);

    if (MR_UNLIKELY(id == 0))
        first_of_site(site, dir);
    else
        record_span(id, dir);
}

MR_EXPORT void mr_probe_enter(struct mr_span_site *site)
{
    record_site(site, 0);
}

MR_EXPORT void mr_probe_exit(struct mr_span_site *site)
{
    record_site(site, MR_WORD_EXIT);
}
