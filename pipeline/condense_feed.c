/* SPDX-License-Identifier: Apache-2.0 */
/* Events -> calls that end. */
#include "base/assert.h"
#include "pipeline/condense_private.h"

static void open_call(struct mr_condense *condense, const struct mr_event *event,
                      uint64_t ns)
{
    void *open = condense->open;

    if (condense->apart || (condense->depth && event->flags & MR_EVENT_ROOT)) {
        condense->apart++;
        condense->is_odd = true;
        return;
    }
    if (condense->depth == MR_CONDENSE_DEPTH_MAX) {
        if (condense->below++ == 0)
            condense->below_ns = ns;
        condense->opened++;
        return;
    }
    if (condense->depth == condense->open_capacity) {
        bool is_grown = mr_condense_grow(condense, &open, &condense->open_capacity,
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
    if (!condense->is_full ||
        mr_condense_is_longer(total_ns, call->number, condense->shortest_ns,
                              condense->shortest_number))
        mr_condense_keep(condense, call, total_ns, event);
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
    condense->is_odd |= event->ns < condense->last_ns ||
                        event->flags & (MR_EVENT_INCOMPLETE | MR_EVENT_UNKNOWN);
    if (event->ns > condense->last_ns)
        condense->last_ns = event->ns;
    if (event->kind == MR_EVENT_OPEN)
        open_call(condense, event, condense->last_ns);
    else
        close_call(condense, event, condense->last_ns);
}

void mr_condense_take(struct mr_condense *condense, const struct mr_condense_piece *piece)
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
