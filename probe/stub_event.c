/* SPDX-License-Identifier: Apache-2.0 */
/* What stubs call: see probe/stub.h. Built without floating-point and SIMD registers. */
#include "probe/hook.h"
#include "probe/registry.h"
#include "probe/ring.h"
#include "probe/stub.h"

void mr_site_event(uint64_t word_high)
{
    struct mr_thread *thread = &mr_thread_self;
    uint32_t clock = mr_load_relaxed(&mr_hook_state.clock);

    /* 0: recording ended meanwhile. */
    if (clock != 0 && mr_hook_state.counted & MR_COUNTED_FUNCTIONS)
        mr_counters_event(thread, word_high << 32);
    else if (clock == MR_CLOCK_MODE_HYBRID)
        mr_ring_event_hybrid(thread, word_high << 32);
    else if (clock != 0)
        mr_ring_event_at(thread, word_high << 32,
                         mr_clock_read((enum mr_clock_mode)clock));
}

void mr_site_event_slow(uint64_t word_high, uint64_t index, uint64_t ticks)
{
    mr_ring_event_one_slow(&mr_thread_self, word_high << 32, ticks, index);
}

void mr_site_event_again(uint64_t word_high, uint64_t index)
{
    mr_ring_event_again(&mr_thread_self, word_high << 32, index);
}

void mr_site_event_without_ring(uint64_t word_high)
{
    struct mr_event event = {.bits = word_high << 32, .words = 1};

    if (mr_hook_state.counted & MR_COUNTED_DEPTH)
        mr_counters_event(&mr_thread_self, word_high << 32);
    else
        mr_thread_event(&mr_thread_self, &event);
}
