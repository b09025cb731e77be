/* SPDX-License-Identifier: Apache-2.0 */
/* What waits of templates, and how it is counted. */
#include "pipeline/filters/reduce_templates.h"

#include <assert.h>
#include <string.h>

#include "base/assert.h"
#include "pipeline/filters/reduce_private.h"

static_assert((size_t)MR_TEMPLATE_EVENTS_MAX * sizeof(struct mr_event) <= UINT16_MAX,
              "offsets are 16 bits");
static_assert(offsetof(struct mr_event, ns) == 0, "ns_at() reads it");
static_assert(sizeof(struct mr_template_call) == 48, "without padding");

const struct mr_template_vectors *mr_templates_vectors(enum mr_vectors most)
{
#if MR_HAS_WIDE_BUILD
    if (most == MR_VECTORS_WIDER && MR_CPU_IS_WIDER())
        return &mr_template_vectors_wider;
    if (most >= MR_VECTORS_WIDE && MR_CPU_IS_WIDE())
        return &mr_template_vectors_wide;
#endif
    MR_UNUSED(most);
    return NULL;
}

/* What the totals of a call that wait come to; below 2^31. */
struct gain {
    uint32_t total_sum, self_sum;
    uint32_t is_new; /* some time is beyond what its path has known */
    uint32_t zeros;  /* totals that are 0 */
};

/* What a path has known of its times, as far as they are below 2^31. */
struct range {
    int32_t low, high; /* low > high: none */
};

static MR_ALWAYS_INLINE struct range range_of(struct mr_known known)
{
    uint64_t end = (uint64_t)known.low + known.width;

    if (known.low > INT32_MAX || known.width == 0)
        return (struct range){INT32_MAX, 0};
    return (struct range){(int32_t)known.low,
                          end <= INT32_MAX ? (int32_t)end - 1 : INT32_MAX};
}

/* `count` is a constant where it matters, so that compilers make vectors of it. */
static MR_ALWAYS_INLINE struct gain gain_of(const struct mr_path *path,
                                            const int32_t *totals, const int32_t *child,
                                            int32_t *parent, uint32_t count)
{
    const struct range total = range_of(path->total), self = range_of(path->self);
    uint32_t total_sum = 0, self_sum = 0, is_new = 0, zeros = 0;

    for (uint32_t i = 0; i < count; i++) {
        int32_t own = totals[i] - child[i];

        total_sum += (uint32_t)totals[i];
        self_sum += (uint32_t)own;
        is_new |= (uint32_t)(totals[i] < total.low) | (uint32_t)(totals[i] > total.high) |
                  (uint32_t)(own < self.low) | (uint32_t)(own > self.high);
        zeros += (uint32_t)(totals[i] == 0);
    }
    for (uint32_t i = 0; i < count; i++)
        parent[i] += totals[i];
    return (struct gain){total_sum, self_sum, is_new, zeros};
}

static MR_ALWAYS_INLINE void find_bins(const struct mr_reduce *reduce,
                                       const struct mr_path *path, const int32_t *totals,
                                       uint32_t count, uint32_t zeros, uint32_t *bins)
{
    uint32_t offset = path->bins.offset - path->bins.first;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t total = (uint32_t)totals[i];

        bins[i] = offset + mr_templates_bin(&reduce->templates, total + (total == 0));
    }
    for (uint32_t i = 0; zeros && i < count; i++)
        bins[i] = totals[i] ? bins[i] : i;
    MR_PREFETCH_WRITE(mr_bin_pool_at(&reduce->bins, bins[0]));
}

/*
 * One of each call after the other: two in a row of the same call would often meet in the same bin, and wait for each other in
 * the store buffer.
 */
static MR_ALWAYS_INLINE void count_places(struct mr_bin_pool *pool,
                                          mr_template_places *bins, uint32_t call_count,
                                          uint32_t waiting, bool is_narrow)
{
    uint32_t *words = pool->counts;

    for (uint32_t place = 0; place < waiting; place++)
        for (uint32_t i = 0; i < call_count; i++)
            if (is_narrow)
                mr_bin_pool_add(pool, mr_bin_pool_at(pool, bins[i][place]));
            else
                words[bins[i][place]]++;
}

static void count_bins(struct mr_bin_pool *pool, mr_template_places *bins,
                       uint32_t call_count, uint32_t waiting)
{
    if (pool->carries)
        count_places(pool, bins, call_count, waiting, true);
    else
        count_places(pool, bins, call_count, waiting, false);
}

static MR_ALWAYS_INLINE void count_gain(struct mr_path *path, const struct gain *gain,
                                        const int32_t *totals, const int32_t *child,
                                        uint32_t count)
{
    path->ok += count;
    path->zeros += gain->zeros;
    path->total_sum += gain->total_sum;
    path->self_sum += gain->self_sum;
    if (MR_UNLIKELY(gain->is_new))
        for (uint32_t i = 0; i < count; i++)
            mr_path_widen(path, (uint32_t)totals[i], (uint32_t)(totals[i] - child[i]));
}

/* Whether it has bins, not all totals being 0. */
static MR_ALWAYS_INLINE bool settle_call(struct mr_reduce *reduce,
                                         const struct mr_template_call *call,
                                         const int32_t *child, int32_t *parent,
                                         uint32_t count, uint32_t *bins)
{
    struct mr_path *path = &reduce->paths.nodes[call->path];
    struct gain gain = gain_of(path, call->totals, child, parent, count);

    MR_DEBUG_ASSERT(path->window == reduce->window);
    count_gain(path, &gain, call->totals, child, count);
    if (gain.zeros == count)
        return false;
    find_bins(reduce, path, call->totals, count, gain.zeros, bins);
    return true;
}

/* Counts what waits of each call, but in their bins; how many have such. */
static uint32_t gain_all(struct mr_reduce *reduce, const struct mr_template_call *calls,
                         uint32_t call_count, uint32_t count, mr_template_below *child,
                         mr_template_places *bins)
{
    uint32_t binned = 0;

    if (reduce->templates.vectors && count == MR_TEMPLATE_WAITING)
        return reduce->templates.vectors->gain(reduce, calls, call_count, child, bins);
    for (uint32_t i = 0; i < call_count; i++) {
        const struct mr_template_call *call = &calls[i];

        if (count == MR_TEMPLATE_WAITING)
            binned += settle_call(reduce, call, child[i], child[call->parent],
                                  MR_TEMPLATE_WAITING, bins[binned]);
        else
            binned += settle_call(reduce, call, child[i], child[call->parent], count,
                                  bins[binned]);
    }
    return binned;
}

static void settle(struct mr_reduce *reduce, struct mr_template *template)
{
    const struct mr_template_call *calls = reduce->templates.calls + template->first_call;
    const uint32_t count = template->waiting, call_count = template->calls;
    mr_template_places bins[MR_TEMPLATE_CALLS_MAX + 1];
    mr_template_below child[MR_TEMPLATE_CALLS_MAX + 1];
    uint32_t binned; /* calls with bins */

    MR_ASSERT(count > 0 && count <= MR_TEMPLATE_WAITING);
    memset(child, 0, (call_count + 1) * sizeof(*child));
    binned = gain_all(reduce, calls, call_count, count, child, bins);
    count_bins(&reduce->bins, bins, binned, count);
    template->waiting = 0;
    mr_filter_count(reduce->filter, MR_REDUCE_SUM_BULK, (uint64_t)count * call_count);
}

void mr_templates_settle(struct mr_reduce *reduce)
{
    struct mr_templates *templates = &reduce->templates;

    for (uint32_t i = 0; i < templates->listed_count; i++) {
        struct mr_template *template = &templates->items[templates->listed[i]];

        template->is_listed = false;
        if (template->waiting)
            settle(reduce, template);
    }
    templates->listed_count = 0;
    templates->epoch++;
}

/* Makes sure of the paths and bins of a template; false when a path has to begin the window. */
static bool arm(const struct mr_reduce *reduce, struct mr_template *template)
{
    const struct mr_templates *templates = &reduce->templates;
    struct mr_template_call *calls = templates->calls + template->first_call;

    for (uint32_t i = 0; i < template->calls; i++) {
        const struct mr_path *path = &reduce->paths.nodes[calls[i].path];
        uint32_t first = path->bins.first, end = first + path->bins.count;

        if (path->window != reduce->window)
            return false;
        first = first < MR_TEMPLATE_BINS ? first : MR_TEMPLATE_BINS;
        end = end < MR_TEMPLATE_BINS ? end : MR_TEMPLATE_BINS;
        calls[i].low = templates->lows[first];
        calls[i].width = templates->lows[end] - calls[i].low;
    }
    template->epoch = templates->epoch;
    return true;
}

static MR_ALWAYS_INLINE uint64_t ns_at(const struct mr_event *events, uint32_t offset)
{
    uint64_t ns;

    memcpy(&ns, (const uint8_t *)events + offset, sizeof(ns));
    return ns;
}

/* Puts the totals beside those that wait. False when one may not. */
static MR_ALWAYS_INLINE bool keep_times(struct mr_template_call *calls, uint32_t count,
                                        const struct mr_event *events, uint32_t place)
{
    uint64_t bad = 0; /* 0 has no bin, and needs none */

    for (uint32_t i = 0; i < count; i++) {
        struct mr_template_call *call = &calls[i];
        uint64_t total = ns_at(events, call->exit) - ns_at(events, call->enter);

        bad |= total - call->low >= call->width ? total : 0;
        call->totals[place] = (int32_t)(uint32_t)total;
    }
    return bad == 0;
}

bool mr_templates_keep(struct mr_reduce *reduce, struct mr_template *template,
                       const struct mr_event *events)
{
    struct mr_templates *templates = &reduce->templates;
    struct mr_template_call *calls = templates->calls + template->first_call;

    if (!mr_reduce_in_window(reduce, ns_at(events, calls[0].exit)) ||
        !mr_reduce_in_window(reduce, events[2 * template->calls - 1].ns) ||
        (template->epoch != templates->epoch && !arm(reduce, template)))
        return false;
    if (MR_UNLIKELY(!keep_times(calls, template->calls, events, template->waiting))) {
        template->epoch = templates->epoch - 1; /* the slow path makes room for it */
        return false;
    }
    if (!template->is_listed) {
        template->is_listed = true;
        templates->listed[templates->listed_count++] =
            (uint32_t)(template - templates->items);
    }
    if (++template->waiting == MR_TEMPLATE_WAITING)
        settle(reduce, template);
    return true;
}

/* The totals of a call in `traces` traces of `size` events each. False when one may not wait. */
static MR_ALWAYS_INLINE bool fill_call(struct mr_template_call *call,
                                       const uint32_t *times, uint32_t size,
                                       uint32_t traces)
{
    const uint32_t exit = mr_template_place(call->exit);
    const uint32_t enter = mr_template_place(call->enter);
    uint32_t bad = 0;

    for (uint32_t i = 0; i < traces; i++) {
        uint32_t total = times[i * size + exit] - times[i * size + enter];

        bad |= (total - call->low >= call->width) & (total != 0);
        call->totals[i] = (int32_t)total;
    }
    return !bad;
}

static bool fill_all(const struct mr_templates *templates,
                     const struct mr_template *template, const uint32_t *times,
                     uint32_t traces)
{
    struct mr_template_call *calls = templates->calls + template->first_call;
    bool is_good = true;

    if (templates->vectors && traces == MR_TEMPLATE_WAITING)
        return templates->vectors->fill(calls, template->calls, times);
    for (uint32_t i = 0; i < template->calls; i++)
        is_good &= fill_call(&calls[i], times, 2 * template->calls, traces);
    return is_good;
}

bool mr_templates_fill(struct mr_reduce *reduce, struct mr_template *template,
                       const uint32_t *times, uint32_t traces)
{
    const struct mr_templates *templates = &reduce->templates;

    MR_ASSERT(traces > 0 && traces <= MR_TEMPLATE_WAITING);
    if (template->waiting)
        settle(reduce, template);
    if (template->epoch != templates->epoch && !arm(reduce, template))
        return false;
    if (fill_all(templates, template, times, traces))
        return true;
    template->epoch = templates->epoch - 1; /* the slow path makes room for it */
    return false;
}

void mr_templates_count(struct mr_reduce *reduce, struct mr_template *template,
                        uint32_t traces)
{
    template->waiting = traces;
    settle(reduce, template);
}
