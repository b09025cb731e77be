/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/condense.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"

#define CAPACITY_FIRST 16u
#define CAPACITY_KEPT 256u /* by reset; what is larger goes back */
/* The log: bytes of an event in it, and its sizes in events. At first less than the open calls of a trace that waits would take. */
#define LOG_EVENT (sizeof(struct mr_event) + sizeof(uint16_t))
#define LOG_FIRST 16u
#define LOG_KEPT 4096u /* by reset; what is larger goes back */
#define LOG_PART 4     /* of the budget: what logs may fill of it */

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

static void release_log(struct mr_condense *condense)
{
    condense->budget->used -= condense->log_capacity * LOG_EVENT;
    free(condense->log);
    condense->log = NULL;
    condense->log_capacity = 0;
}

void mr_condense_fini(struct mr_condense *condense)
{
    release_log(condense);
    release_ranks(condense);
    release_kept(condense);
    release_open(condense);
}

static uint32_t log_most(const struct mr_condense_budget *budget)
{
    return budget->log_most ? budget->log_most : MR_CONDENSE_LOG_MIN;
}

/* A trace ended without a look at its log, or grew out of it. */
static void learn_log(struct mr_condense_budget *budget, bool is_enough)
{
    uint32_t most = is_enough ? 2 * log_most(budget) : log_most(budget) / 2;

    most = most < MR_CONDENSE_LOG_MAX ? most : MR_CONDENSE_LOG_MAX;
    budget->log_most = most > MR_CONDENSE_LOG_MIN ? most : MR_CONDENSE_LOG_MIN;
}

void mr_condense_reset(struct mr_condense *condense)
{
    if (condense->log_count >= MR_CONDENSE_LOG_MIN / 2)
        learn_log(condense->budget, true);
    if (condense->kept_capacity > CAPACITY_KEPT)
        release_kept(condense);
    if (condense->open_capacity > CAPACITY_KEPT)
        release_open(condense);
    if (condense->log_capacity > LOG_KEPT)
        release_log(condense);
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

/* Doubles `*items`, up to `most` of them, within the budget. */
static bool grow(struct mr_condense *condense, void **items, uint32_t *capacity,
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

static bool is_longer(uint64_t a_ns, uint64_t a_number, uint64_t b_ns, uint64_t b_number)
{
    return (a_ns > b_ns) | ((a_ns == b_ns) & (a_number < b_number));
}

static bool comes_before(const struct mr_condense_rank *a,
                         const struct mr_condense_rank *b)
{
    return is_longer(a->total_ns, a->number, b->total_ns, b->number);
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
static void drop_shorter(struct mr_condense *condense)
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

        if (!is_longer(shortest.total_ns, shortest.number, call->total_ns, call->number))
            condense->kept[count++] = *call;
    }
    MR_ASSERT(count == condense->limit);
    condense->kept_count = count;
    condense->shortest_ns = shortest.total_ns;
    condense->shortest_number = shortest.number;
    condense->is_full = true;
}

static MR_NOINLINE void keep(struct mr_condense *condense,
                             const struct mr_condense_open *call, uint64_t total_ns,
                             const struct mr_event *close)
{
    void *kept = condense->kept;

    if (condense->kept_count == condense->limit && !make_ranks(condense))
        return;
    if (condense->kept_count == 2 * condense->limit)
        drop_shorter(condense);
    if (condense->kept_count == condense->kept_capacity) {
        bool is_grown = grow(condense, &kept, &condense->kept_capacity,
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

static void open_call(struct mr_condense *condense, const struct mr_event *event,
                      uint64_t ns)
{
    void *open = condense->open;

    if (condense->apart || (condense->depth && event->flags & MR_EVENT_ROOT)) {
        condense->apart++;
        return;
    }
    if (condense->depth == MR_CONDENSE_DEPTH_MAX) {
        if (condense->below++ == 0)
            condense->below_ns = ns;
        condense->opened++;
        return;
    }
    if (condense->depth == condense->open_capacity) {
        bool is_grown = grow(condense, &open, &condense->open_capacity,
                             sizeof(*condense->open), MR_CONDENSE_DEPTH_MAX);

        condense->open = open;
        if (!is_grown)
            return;
    }
    condense->open[condense->depth++] = (struct mr_condense_open){
        .start_ns = ns, .number = condense->opened++, .site = event->site};
}

/* Of a call that is deeper than what is kept. */
static void close_below(struct mr_condense *condense, uint64_t ns)
{
    condense->closed++;
    if (--condense->below == 0)
        condense->open[condense->depth - 1].child_ns += ns - condense->below_ns;
}

static void close_call(struct mr_condense *condense, const struct mr_event *event,
                       uint64_t ns)
{
    const struct mr_condense_open *call;
    uint64_t total_ns;

    if (condense->apart) {
        condense->apart--;
        return;
    }
    if (condense->below) {
        close_below(condense, ns);
        return;
    }
    MR_ASSERT(condense->depth > 0);
    call = &condense->open[--condense->depth];
    total_ns = ns - call->start_ns;
    if (!condense->is_full || is_longer(total_ns, call->number, condense->shortest_ns,
                                        condense->shortest_number))
        keep(condense, call, total_ns, event);
    condense->closed++;
    if (condense->depth)
        condense->open[condense->depth - 1].child_ns += total_ns;
}

/* What run() keeps in registers. */
struct run {
    struct mr_condense_open *top; /* behind the innermost open call */
    uint64_t opened, ns, shortest_ns;
    uint32_t at;
};

/* Calls beside each other that are too short to be kept, and so is all that they call. */
static MR_ALWAYS_INLINE void pass_over(struct run *run,
                                       const struct mr_condense_piece *piece)
{
    uint64_t passed_ns = 0;

    while (run->at < piece->count && piece->whole[run->at]) {
        const struct mr_event *event = &piece->events[run->at];
        const uint32_t calls = piece->whole[run->at];
        const uint64_t end_ns = event[2 * (size_t)calls - 1].ns;

        MR_DEBUG_ASSERT(mr_event_word(event) <=
                        UINT32_MAX); /* it opens, without a flag */
        if (end_ns - event->ns >= run->shortest_ns || event->ns < run->ns)
            break;
        passed_ns += end_ns - event->ns;
        run->ns = end_ns;
        run->opened += calls;
        run->at += 2 * calls;
    }
    run->top[-1].child_ns += passed_ns;
}

/*
 * The many short calls of a long tree, without a branch that depends on whether one opens or closes (which no processor
 * foretells: 9 instead of 2 ns per event). Takes events until one is anything else, ends a call that may be kept, or the root.
 */
static uint32_t run(struct mr_condense *condense, const struct mr_condense_piece *piece,
                    uint32_t from)
{
    const struct mr_condense_open *bottom = condense->open + 1,
                                  *last = condense->open + condense->open_capacity - 1;
    struct run run = {.top = condense->open + condense->depth,
                      .opened = condense->opened,
                      .ns = condense->last_ns,
                      .shortest_ns = condense->shortest_ns,
                      .at = from};

    for (pass_over(&run, piece); run.at < piece->count; pass_over(&run, piece)) {
        const struct mr_event *event = &piece->events[run.at];
        const uint64_t word = mr_event_word(event), closes = word >> 32;
        struct mr_condense_open *call;
        uint64_t total_ns;

        if (MR_UNLIKELY(closes > 1 || event->ns < run.ns)) /* or it has flags */
            break;
        call = run.top - closes;
        if (MR_UNLIKELY(call < bottom || run.top >= last))
            break;
        total_ns = (event->ns - call->start_ns) & (0 - closes);
        if (MR_UNLIKELY(total_ns >= run.shortest_ns))
            break;
        run.ns = event->ns;
        call[-1].child_ns += total_ns;
        *call = (struct mr_condense_open){.start_ns = run.ns,
                                          .number = run.opened,
                                          .site = (uint32_t)word}; /* or it is gone */
        run.opened += !closes;
        run.top = call + !closes;
        run.at++;
    }
    condense->depth = (uint32_t)(run.top - condense->open);
    condense->opened = run.opened;
    condense->closed = run.opened - condense->depth;
    condense->last_ns = run.ns;
    return run.at;
}

static void step(struct mr_condense *condense, const struct mr_event *event)
{
    if (event->kind != MR_EVENT_OPEN && event->kind != MR_EVENT_CLOSE)
        return;
    if (event->ns > condense->last_ns)
        condense->last_ns = event->ns;
    if (event->kind == MR_EVENT_OPEN)
        open_call(condense, event, condense->last_ns);
    else
        close_call(condense, event, condense->last_ns);
}

static void take(struct mr_condense *condense, const struct mr_condense_piece *piece)
{
    uint32_t at = 0;

    while (at < piece->count && !condense->is_given_up) {
        if (condense->is_full && condense->depth > 0 && !condense->apart &&
            !condense->below)
            at = run(condense, piece, at);
        if (at < piece->count)
            step(condense, &piece->events[at++]);
    }
}

/* Beside its events. */
static uint16_t *log_whole(const struct mr_condense *condense)
{
    void *end = condense->log ? condense->log + condense->log_capacity : NULL;

    return end;
}

void mr_condense_feed(struct mr_condense *condense, const struct mr_condense_piece *piece)
{
    const struct mr_condense_piece log = {condense->log, log_whole(condense),
                                          condense->log_count};

    take(condense, &log);
    condense->log_count = 0;
    if (condense->log_capacity > LOG_KEPT)
        release_log(condense);
    take(condense, piece);
}

/* Room for `count` more events in the log: false when they are too many, or there is no memory for them. */
static bool make_log_room(struct mr_condense *condense, uint32_t count)
{
    const struct mr_condense_budget *budget = condense->budget;
    uint32_t wanted = condense->log_count + count, capacity = LOG_FIRST;
    struct mr_event *grown;
    size_t more;

    if (wanted <= condense->log_capacity)
        return true;
    while (capacity < wanted)
        capacity *= 2;
    more = (capacity - condense->log_capacity) * LOG_EVENT;
    if (budget->used + more > budget->limit / LOG_PART)
        return false;
    grown = malloc(capacity * LOG_EVENT);
    if (!grown)
        return false;
    if (condense->log_count) {
        memcpy(grown, condense->log, condense->log_count * sizeof(*grown));
        memcpy(grown + capacity, log_whole(condense),
               condense->log_count * sizeof(uint16_t));
    }
    free(condense->log);
    condense->budget->used += more;
    condense->log = grown;
    condense->log_capacity = capacity;
    return true;
}

void mr_condense_later(struct mr_condense *condense,
                       const struct mr_condense_piece *piece)
{
    bool is_begun = condense->opened > 0 || condense->is_given_up;
    bool is_small = condense->log_count == 0 && piece->count < LOG_FIRST;
    bool is_long = piece->count + condense->log_count > log_most(condense->budget);
    uint32_t count = condense->log_count;

    if (!is_begun && is_long)
        learn_log(condense->budget, false);
    if (is_begun || is_small || is_long || !make_log_room(condense, piece->count)) {
        mr_condense_feed(condense, piece);
        return;
    }
    memcpy(condense->log + count, piece->events, piece->count * sizeof(*piece->events));
    memcpy(log_whole(condense) + count, piece->whole,
           piece->count * sizeof(*piece->whole));
    condense->log_count += piece->count;
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
    drop_shorter(condense);
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
