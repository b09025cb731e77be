/* SPDX-License-Identifier: Apache-2.0 */
/* Merging of what deltas carry: sums stop at 2^64 - 1, so the order never matters, whatever the input. */
#include "net/delta.h"

#include "base/sum.h"

static uint64_t min_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void mr_times_add(struct mr_times *into, uint64_t ns, bool first)
{
    mr_sum_add(&into->sum, ns);
    into->min = first ? ns : min_of(into->min, ns);
    into->max = max_of(into->max, ns);
}

void mr_times_merge(struct mr_times *into, const struct mr_times *from, bool into_empty,
                    bool from_empty)
{
    if (from_empty)
        return;
    if (into_empty) {
        *into = *from;
        return;
    }
    mr_sum_add(&into->sum, from->sum);
    into->min = min_of(into->min, from->min);
    into->max = max_of(into->max, from->max);
}

enum mr_status mr_path_stats_merge(struct mr_path_stats *into,
                                   const struct mr_path_stats *from)
{
    bool into_empty = !(into->ok | into->failed), from_empty = !(from->ok | from->failed);
    enum mr_status status = mr_histogram_merge(&into->histogram, &from->histogram);

    if (status != MR_OK)
        return status;
    mr_sum_add(&into->ok, from->ok);
    mr_sum_add(&into->failed, from->failed);
    mr_sum_add(&into->incomplete, from->incomplete);
    mr_times_merge(&into->self, &from->self, into_empty, from_empty);
    mr_times_merge(&into->total, &from->total, into_empty, from_empty);
    return MR_OK;
}

enum mr_status mr_shape_stats_merge(struct mr_shape_stats *into,
                                    const struct mr_shape_stats *from)
{
    bool into_empty = !(into->ok | into->failed), from_empty = !(from->ok | from->failed);
    enum mr_status status = mr_histogram_merge(&into->histogram, &from->histogram);

    if (status != MR_OK)
        return status;
    mr_times_merge(&into->time, &from->time, into_empty, from_empty);
    if (!from_empty) {
        into->first_ns =
            into_empty ? from->first_ns : min_of(into->first_ns, from->first_ns);
        into->last_ns = max_of(into->last_ns, from->last_ns);
    }
    mr_sum_add(&into->ok, from->ok);
    mr_sum_add(&into->failed, from->failed);
    mr_sum_add(&into->calls, from->calls);
    mr_sum_add(&into->folded, from->folded);
    return MR_OK;
}

void mr_entry_stats_merge(struct mr_entry_stats *into, const struct mr_entry_stats *from)
{
    for (int i = 0; i < MR_COVERAGE_COUNT; i++) {
        mr_sum_add(&into->traces[i], from->traces[i]);
        mr_sum_add(&into->calls[i], from->calls[i]);
        mr_sum_add(&into->time_ns[i], from->time_ns[i]);
    }
}

void mr_counter_stats_merge(struct mr_counter_stats *into,
                            const struct mr_counter_stats *from)
{
    bool into_empty = into->calls == 0, from_empty = from->calls == 0;

    mr_times_merge(&into->self, &from->self, into_empty, from_empty);
    mr_times_merge(&into->total, &from->total, into_empty, from_empty);
    mr_sum_add(&into->calls, from->calls);
    mr_sum_add(&into->backward, from->backward);
}

/* held goes up and down; it wraps, which is as good as any in what is broken then. */
void mr_ledger_entry_merge(struct mr_ledger_entry *into,
                           const struct mr_ledger_entry *from)
{
    into->last = max_of(into->last, from->last);
    mr_sum_add(&into->reduced, from->reduced);
    into->held = (int64_t)((uint64_t)into->held + (uint64_t)from->held);
    for (int i = 0; i < MR_LOSS_REASON_COUNT; i++)
        mr_sum_add(&into->lost[i], from->lost[i]);
}

bool mr_open_stats_merge(struct mr_open_stats *into, const struct mr_open_stats *from)
{
    bool is_older =
        into->count == 0 || from->oldest_ns < into->oldest_ns ||
        (from->oldest_ns == into->oldest_ns && from->since_ns > into->since_ns);

    if (from->count == 0)
        return false;
    mr_sum_add(&into->count, from->count);
    for (int i = 0; i < MR_OPEN_AGES; i++)
        mr_sum_add(&into->ages[i], from->ages[i]);
    if (is_older) {
        into->oldest_ns = from->oldest_ns;
        into->since_ns = from->since_ns;
    }
    return is_older;
}

uint32_t mr_open_age(uint64_t open_ns)
{
    static const uint64_t up_to_ns[] = {UINT64_C(1000000000), UINT64_C(10000000000),
                                        UINT64_C(60000000000), UINT64_C(600000000000)};
    uint32_t age = 0;

    while (age < MR_OPEN_AGES - 1 && open_ns > up_to_ns[age])
        age++;
    return age;
}

enum mr_status mr_joined_stats_merge(struct mr_joined_stats *into,
                                     const struct mr_joined_stats *from)
{
    bool into_empty = !(into->ok | into->failed), from_empty = !(from->ok | from->failed);
    bool is_first = into_empty && into->incomplete == 0;
    bool is_last = from_empty && from->incomplete == 0;
    enum mr_status status = mr_histogram_merge(&into->histogram, &from->histogram);

    if (status != MR_OK || is_last)
        return status;
    if (!from_empty && (into_empty || from->time.max > into->time.max ||
                        (from->time.max == into->time.max &&
                         mr_id_compare(from->slowest, into->slowest) > 0)))
        into->slowest = from->slowest;
    into->first_ns = is_first ? from->first_ns : min_of(into->first_ns, from->first_ns);
    into->last_ns = max_of(into->last_ns, from->last_ns);
    mr_sum_add(&into->ok, from->ok);
    mr_sum_add(&into->failed, from->failed);
    mr_sum_add(&into->incomplete, from->incomplete);
    mr_times_merge(&into->time, &from->time, into_empty, from_empty);
    return MR_OK;
}

enum mr_status mr_edge_stats_merge(struct mr_edge_stats *into,
                                   const struct mr_edge_stats *from)
{
    enum mr_status status = mr_histogram_merge(&into->histogram, &from->histogram);

    if (status != MR_OK)
        return status;
    mr_times_merge(&into->time, &from->time, into->count == 0, from->count == 0);
    mr_sum_add(&into->count, from->count);
    mr_sum_add(&into->clamped, from->clamped);
    return MR_OK;
}

void mr_shape_path_stats_merge(struct mr_shape_path_stats *into,
                               const struct mr_shape_path_stats *from)
{
    bool into_empty = !(into->ok | into->failed), from_empty = !(from->ok | from->failed);

    mr_sum_add(&into->ok, from->ok);
    mr_sum_add(&into->failed, from->failed);
    mr_times_merge(&into->self, &from->self, into_empty, from_empty);
    mr_times_merge(&into->total, &from->total, into_empty, from_empty);
}
