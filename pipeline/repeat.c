/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/repeat.h"

#include <assert.h>
#include <string.h>

#include "base/assert.h"

static_assert(sizeof(struct mr_event) == 16 && offsetof(struct mr_event, site) == 8,
              "a call is all of an event but its time");

static void play_trace(const struct mr_repeat *repeat, const uint32_t *times,
                       uint64_t base_ns, uint16_t root_flags, struct mr_event *out)
{
    for (uint32_t i = 0; i < repeat->events; i++) {
        out[i].ns = base_ns + times[i];
        memcpy(&out[i].site, &repeat->calls[i], sizeof(repeat->calls[i]));
    }
    out[0].flags = root_flags;
    out[repeat->events - 1].flags = root_flags;
}

struct mr_batch *mr_repeat_play(const struct mr_batch *repeats, uint32_t first,
                                uint32_t count, uint16_t root_flags)
{
    const struct mr_repeat *repeat = repeats->repeat;
    const uint32_t *times = mr_batch_times_const(repeats);
    struct mr_batch *out = mr_batch_new(MR_BATCH_EVENTS);

    MR_ASSERT(first + count <= repeats->trace_count);
    MR_ASSERT((uint64_t)count * repeat->events <= MR_BATCH_EVENTS_MAX);
    if (!out)
        return NULL;
    out->source = repeats->source;
    out->stream = repeats->stream;
    out->wall_shift_ns = repeats->wall_shift_ns;
    for (uint32_t i = first; i < first + count; i++) {
        play_trace(repeat, times + (size_t)i * repeat->events, repeats->base_ns,
                   root_flags, out->events + out->event_count);
        out->event_count += repeat->events;
    }
    return out;
}
