/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door's side of counters and of the depth limit: an event with what was read at it,
 * or none. No state of its own.
 */
#include "probe/hook.h"
#include "probe/registry.h"

#include <errno.h>

/*
 * At an enter the counters are read before the clock, at an exit after it, so that the
 * call is not timed reading them; its caller is.
 */
MR_NOINLINE static void count(struct mr_thread *thread, struct mr_counters *counters,
                              uint32_t clock, uint64_t bits)
{
    uint64_t values[MR_COUNTERS_MAX], ticks = 0;
    bool is_read;

    mr_tick_forget(&thread->tick); /* what follows is not before it */
    if (bits & MR_WORD_EXIT)
        ticks = mr_clock_read((enum mr_clock_mode)clock);
    is_read = mr_counters_read(counters, values);
    if (!(bits & MR_WORD_EXIT))
        ticks = mr_clock_read((enum mr_clock_mode)clock);
    if (is_read)
        mr_ring_event_counted(thread, bits, ticks, values, counters->present);
    else
        mr_ring_event_at(thread, bits, ticks);
}

static bool is_counted(uint64_t bits)
{
    if (mr_probe->counters.present == 0)
        return false;
    return mr_probe->config.is_counting_functions ||
           mr_word_site(bits) < MR_SITE_FIRST_MODULE;
}

static void event_at_once(struct mr_thread *thread, uint32_t clock, uint64_t bits)
{
    if (clock == MR_CLOCK_MODE_HYBRID)
        mr_ring_event_hybrid(thread, bits);
    else
        mr_ring_event_at(thread, bits, mr_clock_read((enum mr_clock_mode)clock));
}

bool mr_counters_takes(struct mr_thread *thread, uint64_t bits)
{
    int saved_errno = errno;
    bool is_taken;

    if (!thread->words)
        (void)mr_thread_meet(thread);
    is_taken = mr_depth_takes(&mr_probe->depth, thread, bits, MR_FRAME_ADDRESS());
    errno = saved_errno;
    return is_taken;
}

MR_NOINLINE static void event_without_ring(struct mr_thread *thread, uint64_t bits)
{
    struct mr_event event = {.bits = bits, .words = 1};

    mr_thread_event(thread, &event);
}

/*
 * The first event of a thread may come in a handler on a small stack: what leads to
 * mr_thread_meet() has small frames.
 */
void mr_counters_event(struct mr_thread *thread, uint64_t bits)
{
    uint32_t clock = mr_load_relaxed(&mr_hook_state.clock);
    int saved_errno = errno;

    if (clock == 0) /* recording ended meanwhile */
        return;
    if (!thread->words)
        (void)mr_thread_meet(thread);
    if (mr_hook_state.counted & MR_COUNTED_DEPTH && !mr_counters_takes(thread, bits))
        clock = 0; /* too deep */
    if (clock != 0 && !thread->words)
        event_without_ring(thread, bits);
    else if (clock != 0 && is_counted(bits))
        count(thread, &mr_probe->counters, clock, bits);
    else if (clock != 0)
        event_at_once(thread, clock, bits);
    errno = saved_errno;
}
