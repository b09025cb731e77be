/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/module_index.h"

#include <stdlib.h>

#include "base/assert.h"
#include "pipeline/modules.h"

#define GROUP 16u /* entries; a group is looked through one by one */

static uint64_t start_of(const struct mr_module *module, enum mr_module_axis_kind kind)
{
    return kind == MR_MODULE_BY_SITE ? module->site_base : module->address;
}

/* The last place that a module of some size covers. */
static uint64_t last_of(const struct mr_module *module, enum mr_module_axis_kind kind)
{
    uint64_t start = start_of(module, kind), beyond = module->size - 1;

    return beyond > UINT64_MAX - start ? UINT64_MAX : start + beyond;
}

/* How many of `count` bounds are at or below the place. */
static uint32_t count_to(const uint64_t *bounds, uint32_t count, uint64_t place)
{
    uint32_t from = 0;

    while (from < count) {
        uint32_t middle = from + (count - from) / 2;

        if (bounds[middle] <= place)
            from = middle + 1;
        else
            count = middle;
    }
    return from;
}

static int compare_places(const void *a, const void *b)
{
    const uint64_t *of_a = a, *of_b = b;

    return (*of_a > *of_b) - (*of_a < *of_b);
}

/* Sorts, and leaves each once; how many. */
static uint32_t sort_bounds(uint64_t *bounds, uint32_t count)
{
    uint32_t kept = 0;

    qsort(bounds, count, sizeof(*bounds), compare_places);
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || bounds[i] != bounds[kept - 1])
            bounds[kept++] = bounds[i];
    return kept;
}

static enum mr_status make_bounds(struct mr_module_axis *axis,
                                  const struct mr_module_index *index,
                                  const struct mr_module *items,
                                  enum mr_module_axis_kind kind)
{
    uint32_t count = 0;

    axis->bounds = malloc(2 * (size_t)index->count * sizeof(*axis->bounds));
    if (!axis->bounds)
        return MR_ENOMEM;
    for (uint32_t i = index->first; i < index->first + index->count; i++) {
        if (items[i].size == 0)
            continue;
        axis->bounds[count++] = start_of(&items[i], kind);
        if (last_of(&items[i], kind) < UINT64_MAX)
            axis->bounds[count++] = last_of(&items[i], kind) + 1;
    }
    axis->bound_count = sort_bounds(axis->bounds, count);
    for (axis->leafs = 1; axis->leafs < axis->bound_count;)
        axis->leafs *= 2;
    return MR_OK;
}

/*
 * Adds the module to the list of each of its nodes, or only counts it there. Before the lists have places, lists[node + 1] is how
 * many are in that of node; while they are filled, lists[node] is where the next one goes.
 */
static void visit_nodes(struct mr_module_axis *axis, const struct mr_module *items,
                        uint32_t number, enum mr_module_axis_kind kind)
{
    const struct mr_module *module = &items[number];
    uint32_t from, to;

    if (module->size == 0)
        return;
    from = count_to(axis->bounds, axis->bound_count, start_of(module, kind)) - 1;
    to = count_to(axis->bounds, axis->bound_count, last_of(module, kind));
    for (from += axis->leafs, to += axis->leafs; from < to; from /= 2, to /= 2) {
        uint32_t nodes[2], count = 0;

        if (from & 1)
            nodes[count++] = from++;
        if (to & 1)
            nodes[count++] = --to;
        while (count-- > 0)
            if (axis->entries)
                axis->entries[axis->lists[nodes[count]]++] = number;
            else
                axis->lists[nodes[count] + 1]++;
    }
}

static uint32_t latest_gone(const struct mr_module_axis *axis,
                            const struct mr_module *items, uint32_t group)
{
    uint32_t total = axis->lists[(size_t)2 * axis->leafs], latest = 0;

    for (uint32_t i = group * GROUP; i < (group + 1) * GROUP && i < total; i++)
        if (items[axis->entries[i]].gone > latest)
            latest = items[axis->entries[i]].gone;
    return latest;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static enum mr_status make_gone_tree(struct mr_module_axis *axis,
                                     const struct mr_module *items)
{
    uint32_t total = axis->lists[(size_t)2 * axis->leafs];
    uint32_t *tree;

    for (axis->groups = 1; axis->groups * GROUP < total;)
        axis->groups *= 2;
    axis->gone_max = calloc(2 * (size_t)axis->groups, sizeof(*axis->gone_max));
    tree = axis->gone_max;
    if (!tree)
        return MR_ENOMEM;
    for (uint32_t i = 0; i < axis->groups; i++)
        tree[axis->groups + i] = latest_gone(axis, items, i);
    for (size_t i = axis->groups - 1; i > 0; i--)
        tree[i] = larger(tree[2 * i], tree[2 * i + 1]);
    return MR_OK;
}

/* `order`: all of the modules, by epoch. */
static enum mr_status build_axis(struct mr_module_index *index,
                                 const struct mr_module *items, const uint32_t *order,
                                 enum mr_module_axis_kind kind)
{
    struct mr_module_axis *axis = &index->axes[kind];
    enum mr_status status = make_bounds(axis, index, items, kind);
    uint32_t nodes = 2 * axis->leafs;

    if (status != MR_OK)
        return status;
    axis->lists = calloc((size_t)nodes + 1, sizeof(*axis->lists));
    if (!axis->lists)
        return MR_ENOMEM;
    for (uint32_t i = 0; i < index->count; i++)
        visit_nodes(axis, items, order[i], kind);
    for (uint32_t i = 0; i < nodes; i++)
        axis->lists[i + 1] += axis->lists[i];
    axis->entries = malloc(((size_t)axis->lists[nodes] + 1) * sizeof(*axis->entries));
    if (!axis->entries)
        return MR_ENOMEM;
    for (uint32_t i = 0; i < index->count; i++)
        visit_nodes(axis, items, order[i], kind);
    for (uint32_t i = nodes; i > 0; i--) /* each went on to where the next began */
        axis->lists[i] = axis->lists[i - 1];
    axis->lists[0] = 0;
    return make_gone_tree(axis, items);
}

struct by_epoch {
    uint32_t epoch, number;
};

static int compare_epochs(const void *a, const void *b)
{
    const struct by_epoch *of_a = a, *of_b = b;

    if (of_a->epoch != of_b->epoch)
        return of_a->epoch < of_b->epoch ? -1 : 1;
    return (of_a->number > of_b->number) - (of_a->number < of_b->number);
}

static uint32_t *order_by_epoch(const struct mr_module *items, uint32_t first,
                                uint32_t count)
{
    struct by_epoch *sorted = malloc(count * sizeof(*sorted));
    uint32_t *order = calloc(count, sizeof(*order));

    if (sorted && order) {
        for (uint32_t i = 0; i < count; i++)
            sorted[i] = (struct by_epoch){items[first + i].epoch, first + i};
        qsort(sorted, count, sizeof(*sorted), compare_epochs);
        for (uint32_t i = 0; i < count; i++)
            order[i] = sorted[i].number;
    }
    if (!sorted) {
        free(order);
        order = NULL;
    }
    free(sorted);
    return order;
}

static int compare_reaches(const void *a, const void *b)
{
    const struct mr_module_reach *of_a = a, *of_b = b;

    return (of_a->site_base > of_b->site_base) - (of_a->site_base < of_b->site_base);
}

static enum mr_status build_reaches(struct mr_module_index *index,
                                    const struct mr_module *items)
{
    struct mr_module_reach *reaches = malloc(index->count * sizeof(*reaches));

    if (!reaches)
        return MR_ENOMEM;
    for (uint32_t i = 0; i < index->count; i++) {
        const struct mr_module *module = &items[index->first + i];

        reaches[i] = (struct mr_module_reach){.site_base = module->site_base,
                                              .end_max = (uint64_t)module->site_base +
                                                         module->size};
    }
    qsort(reaches, index->count, sizeof(*reaches), compare_reaches);
    for (uint32_t i = 1; i < index->count; i++)
        if (reaches[i].end_max < reaches[i - 1].end_max)
            reaches[i].end_max = reaches[i - 1].end_max;
    index->reaches = reaches;
    return MR_OK;
}

enum mr_status mr_module_index_build(struct mr_module_index *index,
                                     const struct mr_module *items, uint32_t first,
                                     uint32_t count)
{
    uint32_t *order = order_by_epoch(items, first, count);
    enum mr_status status = order ? MR_OK : MR_ENOMEM;

    MR_ASSERT(count > 0 && count <= 1u << 24);
    *index = (struct mr_module_index){.first = first, .count = count};
    if (status == MR_OK)
        status = build_axis(index, items, order, MR_MODULE_BY_SITE);
    if (status == MR_OK)
        status = build_axis(index, items, order, MR_MODULE_BY_ADDRESS);
    if (status == MR_OK)
        status = build_reaches(index, items);
    if (status != MR_OK)
        mr_module_index_fini(index);
    free(order);
    return status;
}

void mr_module_index_fini(struct mr_module_index *index)
{
    for (uint32_t i = 0; i < MR_MODULE_AXES; i++) {
        free(index->axes[i].bounds);
        free(index->axes[i].lists);
        free(index->axes[i].entries);
        free(index->axes[i].gone_max);
    }
    free(index->reaches);
    *index = (struct mr_module_index){.count = 0};
}

/* The node of the place's leaf; 0: no module covers it. */
static uint32_t leaf_of(const struct mr_module_axis *axis, uint64_t place)
{
    uint32_t count = count_to(axis->bounds, axis->bound_count, place);

    return count ? axis->leafs + count - 1 : 0;
}

/* The first entry of [from, to) whose module begins after the epoch. */
static uint32_t first_after(const struct mr_module_axis *axis,
                            const struct mr_module *items, uint32_t from, uint32_t to,
                            uint32_t epoch)
{
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;

        if (items[axis->entries[middle]].epoch <= epoch)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The last group up to `last` of which some module may be gone after the epoch, or MR_MODULE_NONE. */
static uint32_t last_group(const struct mr_module_axis *axis, uint32_t last,
                           uint32_t epoch)
{
    uint32_t node = axis->groups + last;

    while (axis->gone_max[node] <= epoch) {
        while ((node & 1) == 0) /* nothing is before it below what is above it */
            node /= 2;
        if (node == 1)
            return MR_MODULE_NONE;
        node--;
    }
    while (node < axis->groups)
        node = 2 * node + (axis->gone_max[(size_t)2 * node + 1] > epoch);
    return node - axis->groups;
}

static void put_right(const struct mr_module_axis *axis, const struct mr_module *items,
                      uint32_t group)
{
    uint32_t node = axis->groups + group;

    axis->gone_max[node] = latest_gone(axis, items, group);
    for (node /= 2; node > 0; node /= 2)
        axis->gone_max[node] = larger(axis->gone_max[(size_t)2 * node],
                                      axis->gone_max[(size_t)2 * node + 1]);
}

/* The last entry of [from, to) whose module is not gone in the epoch, or MR_MODULE_NONE. */
static uint32_t last_held(const struct mr_module_axis *axis,
                          const struct mr_module *items, uint32_t from, uint32_t to,
                          uint32_t epoch)
{
    while (to > from) {
        uint32_t group = last_group(axis, (to - 1) / GROUP, epoch), begin;

        if (group == MR_MODULE_NONE || (group + 1) * GROUP <= from)
            return MR_MODULE_NONE;
        begin = group * GROUP > from ? group * GROUP : from;
        if (to > (group + 1) * GROUP)
            to = (group + 1) * GROUP;
        for (; to > begin; to--)
            if (items[axis->entries[to - 1]].gone > epoch)
                return to - 1;
        put_right(axis, items, group);
    }
    return MR_MODULE_NONE;
}

uint32_t mr_module_index_holding(const struct mr_module_index *index,
                                 const struct mr_module *items,
                                 enum mr_module_axis_kind kind, uint64_t place,
                                 uint32_t epoch, uint32_t best)
{
    const struct mr_module_axis *axis = &index->axes[kind];

    for (uint32_t node = leaf_of(axis, place); node > 0; node /= 2) {
        uint32_t from = axis->lists[node];
        uint32_t to = first_after(axis, items, from, axis->lists[node + 1], epoch);

        if (best != MR_MODULE_NONE && items[best].epoch > 0) /* no earlier is better */
            from = first_after(axis, items, from, to, items[best].epoch - 1);
        to = last_held(axis, items, from, to, epoch);
        if (to != MR_MODULE_NONE && mr_module_is_later(items, axis->entries[to], best))
            best = axis->entries[to];
    }
    return best;
}

uint32_t mr_module_index_next(const struct mr_module_index *index,
                              const struct mr_module *items,
                              enum mr_module_axis_kind kind, uint64_t place,
                              uint32_t epoch, uint32_t best)
{
    const struct mr_module_axis *axis = &index->axes[kind];

    for (uint32_t node = leaf_of(axis, place); node > 0; node /= 2) {
        uint32_t end = axis->lists[node + 1];
        uint32_t at = first_after(axis, items, axis->lists[node], end, epoch);

        if (at == end)
            continue;
        at = axis->entries[first_after(axis, items, at, end,
                                       items[axis->entries[at]].epoch) -
                           1];
        if (mr_module_is_sooner(items, at, best))
            best = at;
    }
    return best;
}

bool mr_module_index_overlaps(const struct mr_module_index *index, uint64_t from,
                              uint64_t to)
{
    uint32_t begin = 0, end = index->count;

    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;

        if (index->reaches[middle].site_base < to)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin > 0 && index->reaches[begin - 1].end_max > from;
}
