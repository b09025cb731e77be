/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doors: what compilers call for instrumented functions, and manual spans. All end
 * in mr_ring_event(). Built without floating-point and SIMD instructions, so that these
 * registers stay what they were whatever the caller holds in them.
 */
#include "probe/include/millrace/probe.h"
#include "probe/registry.h"

MR_EXPORT unsigned char mr_probe_active;

/* Of mr_probe, beside each other and one load away. */
MR_HIDDEN struct mr_windows mr_hook_windows;

MR_COLD MR_NOINLINE static void wide(struct mr_thread *thread, uint64_t dir,
                                     uint64_t address)
{
    struct mr_event event = {.bits = mr_word_record(MR_RECORD_WIDE, 1, dir, 0),
                             .payload = address & MR_WORD_PAYLOAD_MASK,
                             .words = 2};

    if (thread->words)
        mr_ring_event_slow(thread, &event, mr_clock_ticks(), MR_INDEX_NONE);
    else
        mr_thread_event(thread, &event);
}

MR_COLD MR_NOINLINE static void event_without_ring(struct mr_thread *thread,
                                                   uint64_t bits)
{
    struct mr_event event = {.bits = bits, .words = 1};

    mr_thread_event(thread, &event);
}

static MR_ALWAYS_INLINE void record(uint64_t bits)
{
    struct mr_thread *thread = &mr_thread_self;

    if (MR_UNLIKELY(!thread->words))
        event_without_ring(thread, bits);
    else
        mr_ring_event(thread, bits);
}

static MR_ALWAYS_INLINE void record_function(uint64_t address, uint64_t dir)
{
    uint64_t site = address - mr_hook_windows.exe_origin;

    if (!mr_probe_enabled())
        return;
    if (MR_UNLIKELY(site - MR_SITE_FIRST_MODULE >=
                    MR_WINDOW_LIBRARIES - MR_SITE_FIRST_MODULE)) {
        site = address - mr_hook_windows.library_origin;
        if (MR_UNLIKELY(site - MR_WINDOW_LIBRARIES >=
                        MR_SITE_LIMIT - MR_WINDOW_LIBRARIES)) {
            wide(&mr_thread_self, dir, address);
            return;
        }
    }
    record(dir | site << MR_WORD_SITE_SHIFT);
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

/* Two threads that meet a site at once make two numbers of one name; one is kept. */
MR_COLD MR_NOINLINE static uint32_t span_id(struct mr_span_site *site)
{
    return mr_arch_set_u32(&site->id, mr_named_add(&mr_probe->named, site->name,
                                                   site->file, site->line, site->flags));
}

static MR_ALWAYS_INLINE uint64_t span_bits(struct mr_span_site *site)
{
    uint32_t id = mr_arch_load_u32(&site->id);

    if (MR_UNLIKELY(id == 0))
        id = span_id(site);
    return (uint64_t)id << MR_WORD_SITE_SHIFT;
}

MR_EXPORT void mr_probe_enter(struct mr_span_site *site)
{
    record(span_bits(site));
}

MR_EXPORT void mr_probe_exit(struct mr_span_site *site)
{
    record(span_bits(site) | MR_WORD_EXIT);
}
