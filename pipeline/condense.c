/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/condense.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "pipeline/condense_private.h"

#define CAPACITY_FIRST 16u
#define CAPACITY_KEPT 256u /* by reset; what is larger goes back */

void mr_condense_init(struct mr_condense *condense, struct mr_condense_budget *budget,
                      uint32_t limit)
{
    MR_ASSERT(limit >= 1 && limit <= MR_EXEMPLAR_CALLS_MAX);
    *condense = (struct mr_condense){.budget = budget, .limit = limit};
}

static void release_kept(struct mr_condense *condense)
{
    condense->budget->used -= condense->kept_capacity * sizeof(*condense->kept);
    free(condense->kept);
    condense->kept = NULL;
    condense->kept_capacity = 0;
}

static void release_open(struct mr_condense *condense)
{
    condense->budget->used -= condense->open_capacity * sizeof(*condense->open);
    free(condense->open);
    condense->open = NULL;
    condense->open_capacity = 0;
}

static void release_ranks(struct mr_condense *condense)
{
    if (condense->ranks)
        condense->budget->used -= 2 * (size_t)condense->limit * sizeof(*condense->ranks);
    free(condense->ranks);
    condense->ranks = NULL;
}

void mr_condense_fini(struct mr_condense *condense)
{
    mr_condense_release_log(condense);
    release_ranks(condense);
    release_kept(condense);
    release_open(condense);
}

void mr_condense_reset(struct mr_condense *condense)
{
    if (condense->log_count >= MR_CONDENSE_LOG_MIN / 2)
        mr_condense_learn_log(condense->budget, true);
    if (condense->kept_capacity > CAPACITY_KEPT)
        release_kept(condense);
    if (condense->open_capacity > CAPACITY_KEPT)
        release_open(condense);
    if (condense->log_capacity > MR_CONDENSE_LOG_KEPT)
        mr_condense_release_log(condense);
    release_ranks(condense);
    *condense = (struct mr_condense){.budget = condense->budget,
                                     .limit = condense->limit,
                                     .open = condense->open,
                                     .open_capacity = condense->open_capacity,
                                     .kept = condense->kept,
                                     .kept_capacity = condense->kept_capacity,
                                     .log = condense->log,
                                     .log_capacity = condense->log_capacity};
}

bool mr_condense_grow(struct mr_condense *condense, void **items, uint32_t *capacity,
                      size_t size, uint32_t most)
{
    uint32_t wanted = *capacity ? 2 * *capacity : CAPACITY_FIRST;
    void *grown = NULL;
    size_t more;

    if (wanted > most)
        wanted = most;
    MR_ASSERT(wanted > *capacity);
    more = (wanted - *capacity) * size;
    if (more <= condense->budget->limit - condense->budget->used)
        grown = realloc(*items, wanted * size);
    if (!grown) {
        condense->is_given_up = true;
        return false;
    }
    condense->budget->used += more;
    *items = grown;
    *capacity = wanted;
    return true;
}

static bool comes_before(const struct mr_condense_rank *a,
                         const struct mr_condense_rank *b)
{
    return mr_condense_is_longer(a->total_ns, a->number, b->total_ns, b->number);
}

static void swap(struct mr_condense_rank *a, struct mr_condense_rank *b)
{
    struct mr_condense_rank kept = *a;

    *a = *b;
    *b = kept;
}

/*
 * Brings the rank at `at` to its place among those from `first` to `last`: longer ones stand before it. Its place. Each is moved, as
 * no processor foretells which ones must be.
 */
static uint32_t partition(struct mr_condense_rank *ranks, uint32_t first, uint32_t last,
                          uint32_t at)
{
    uint32_t place = first;

    swap(&ranks[at], &ranks[last]);
    for (uint32_t i = first; i < last; i++) {
        swap(&ranks[i], &ranks[place]);
        place += comes_before(&ranks[place], &ranks[last]);
    }
    swap(&ranks[place], &ranks[last]);
    return place;
}

/* Quickselect: the rank that `wanted` others stand before. No two are equal. */
static struct mr_condense_rank select_rank(struct mr_condense_rank *ranks, uint32_t count,
                                           uint32_t wanted)
{
    uint32_t first = 0, last = count - 1;

    while (first < last) {
        uint32_t place = partition(ranks, first, last, first + (last - first) / 2);

        if (place == wanted)
            break;
        if (place < wanted)
            first = place + 1;
        else
            last = place - 1;
    }
    return ranks[wanted];
}

/* Where more calls are kept than may stay. False without memory for it. */
static bool make_ranks(struct mr_condense *condense)
{
    size_t size = 2 * (size_t)condense->limit * sizeof(*condense->ranks);

    if (condense->ranks)
        return true;
    if (size <= condense->budget->limit - condense->budget->used)
        condense->ranks = malloc(size);
    if (!condense->ranks) {
        condense->is_given_up = true;
        return false;
    }
    condense->budget->used += size;
    return true;
}

/* The longest `limit` stay, in the order in which they were closed. */
void mr_condense_drop_shorter(struct mr_condense *condense)
{
    struct mr_condense_rank *ranks = condense->ranks, shortest;
    uint32_t count = 0;

    if (condense->kept_count <= condense->limit)
        return;
    MR_ASSERT(ranks);
    for (uint32_t i = 0; i < condense->kept_count; i++)
        ranks[i] = (struct mr_condense_rank){condense->kept[i].total_ns,
                                             condense->kept[i].number};
    shortest = select_rank(ranks, condense->kept_count, condense->limit - 1);
    for (uint32_t i = 0; i < condense->kept_count; i++) {
        const struct mr_condense_call *call = &condense->kept[i];

        if (!mr_condense_is_longer(shortest.total_ns, shortest.number, call->total_ns,
                                   call->number))
            condense->kept[count++] = *call;
    }
    MR_ASSERT(count == condense->limit);
    condense->kept_count = count;
    condense->shortest_ns = shortest.total_ns;
    condense->shortest_number = shortest.number;
    condense->is_full = true;
}

MR_NOINLINE void mr_condense_keep(struct mr_condense *condense,
                                  const struct mr_condense_open *call, uint64_t total_ns,
                                  const struct mr_event *close)
{
    void *kept = condense->kept;

    MR_DEBUG_ASSERT(condense->depth < condense->open_capacity);
    if (condense->kept_count == condense->limit && !make_ranks(condense))
        return;
    if (condense->kept_count == 2 * condense->limit)
        mr_condense_drop_shorter(condense);
    if (condense->kept_count == condense->kept_capacity) {
        bool is_grown = mr_condense_grow(condense, &kept, &condense->kept_capacity,
                                         sizeof(*condense->kept), 2 * condense->limit);

        condense->kept = kept;
        if (!is_grown)
            return;
    }
    condense->kept[condense->kept_count++] = (struct mr_condense_call){
        .start_ns = call->start_ns,
        .total_ns = total_ns,
        .child_ns = call->child_ns,
        .number = call->number,
        .inside = condense->closed - (call->number - condense->depth),
        .site = close->flags & MR_EVENT_UNKNOWN ? close->site : call->site,
        .depth = condense->depth,
        .flags = (close->flags & MR_EVENT_FAILED ? MR_EXEMPLAR_CALL_FAILED : 0u) |
                 (close->flags & (MR_EVENT_INCOMPLETE | MR_EVENT_UNKNOWN)
                      ? MR_EXEMPLAR_CALL_INCOMPLETE
                      : 0u) |
                 (close->flags & MR_EVENT_UNWOUND ? MR_EXEMPLAR_CALL_UNWOUND : 0u)};
}

/*
 * They stand in the order of their ends, and each has its caller among them. Their places in the order of their opening
 * take the place of their numbers: of each the size of its subtree first, then from the last end to the first, as a root
 * stands before its last subtree, and this behind all others.
 */
static void number_by_opening(const struct mr_condense *condense)
{
    struct mr_condense_open *levels = condense->open; /* what was open is closed now */
    uint32_t last = condense->open_capacity - 1;

    for (uint32_t i = 0; i <= last; i++)
        levels[i].number = 0;
    for (uint32_t i = 0; i < condense->kept_count; i++) {
        struct mr_condense_call *call = &condense->kept[i];

        call->number = 1;
        if (call->depth < last) {
            call->number += levels[call->depth + 1].number;
            levels[call->depth + 1].number = 0;
        }
        levels[call->depth].number += call->number;
    }
    for (uint32_t i = condense->kept_count; i-- > 0;) {
        struct mr_condense_call *call = &condense->kept[i];
        uint64_t end = levels[call->depth].number;

        if (call->depth < last)
            levels[call->depth + 1].number = end;
        call->number = end - call->number;
        levels[call->depth].number = call->number;
    }
}

static void sort_by_opening(struct mr_condense *condense)
{
    struct mr_condense_call *kept = condense->kept, other;

    if (condense->kept_count < condense->opened)
        number_by_opening(condense); /* else the numbers are the places */
    for (uint32_t i = 0; i < condense->kept_count; i++)
        while (kept[i].number != i) {
            other = kept[kept[i].number];
            kept[kept[i].number] = kept[i];
            kept[i] = other;
        }
}

/* Those around it that are kept have not it, nor what is below it, among what is elided. */
static void take_out(struct mr_exemplar_call *outer, const struct mr_condense_call *call)
{
    outer->elided_calls -= 1 + call->inside;
    outer->elided_ns -= call->total_ns;
}

uint32_t mr_condense_finish(struct mr_condense *condense, struct mr_exemplar_call *calls)
{
    /* Where the calls around the next one stand in `calls`: what was open is closed now. */
    struct mr_condense_open *around = condense->open;

    MR_ASSERT(condense->depth == 0 && !condense->is_given_up && condense->kept_count > 0);
    mr_condense_drop_shorter(condense);
    sort_by_opening(condense);
    for (uint32_t i = 0; i < condense->kept_count; i++) {
        const struct mr_condense_call *call = &condense->kept[i];

        calls[i] = (struct mr_exemplar_call){.start_ns = call->start_ns -
                                                         condense->kept[0].start_ns,
                                             .total_ns = call->total_ns,
                                             .elided_calls = call->inside,
                                             .elided_ns = call->child_ns,
                                             .site = call->site,
                                             .depth = call->depth,
                                             .flags = call->flags};
        around[call->depth].number = i;
        if (call->depth > 0)
            take_out(&calls[around[call->depth - 1].number], call);
    }
    return condense->kept_count;
}
