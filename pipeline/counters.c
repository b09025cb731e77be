/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/counters.h"

#include "base/assert.h"
#include "base/clock.h"
#include "net/delta.h"

void mr_counters_init(struct mr_counters *counters, struct mr_filter *filter,
                      const char *const *names, uint32_t count)
{
    MR_ASSERT(count <= MR_FILTER_COUNTERS);
    *counters = (struct mr_counters){.filter = filter, .names = names, .count = count};
    for (uint32_t i = 0; i < count; i++)
        mr_filter_name_counter(filter, i, names[i]);
}

void mr_counters_add(struct mr_counters *counters, uint32_t slot, uint64_t add)
{
    MR_DEBUG_ASSERT(slot < counters->count);
    if (add == 0)
        return;
    counters->pending[slot] += add;
    counters->is_changed = true;
    mr_filter_count(counters->filter, slot, add);
}

enum mr_status mr_counters_emit(struct mr_counters *counters, uint32_t level)
{
    struct mr_delta_writer writer;
    struct mr_batch *batch;

    if (!counters->is_changed)
        return MR_OK;
    batch = mr_batch_new(MR_BATCH_DELTA);
    if (!batch)
        return MR_ENOMEM;
    mr_delta_begin(&writer, &batch->bytes);
    mr_delta_head(&writer, level, mr_clock_realtime_ns());
    for (uint32_t i = 0; i < counters->count; i++)
        if (counters->pending[i])
            mr_delta_counter(&writer, counters->names[i], counters->pending[i]);
    if (mr_delta_status(&writer) != MR_OK) {
        mr_batch_free(batch);
        return mr_delta_status(&writer);
    }
    for (uint32_t i = 0; i < counters->count; i++)
        counters->pending[i] = 0;
    counters->is_changed = false;
    return mr_filter_emit(counters->filter, batch);
}

enum mr_status mr_counters_tick(struct mr_counters *counters, uint32_t level,
                                uint64_t now_ns)
{
    if (now_ns - counters->told_ns < MR_COUNTERS_PERIOD_NS ||
        !mr_filter_can_emit(counters->filter))
        return MR_OK;
    counters->told_ns = now_ns;
    return mr_counters_emit(counters, level);
}
