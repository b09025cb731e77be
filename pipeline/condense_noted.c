/* SPDX-License-Identifier: Apache-2.0 */
/* Calls whose ends were noted by who follows them: the events around them are not looked at. */
#include "base/assert.h"
#include "pipeline/condense_private.h"

/* Where a piece begins. */
struct begin {
    uint64_t opened;
    uint32_t depth;
};

uint64_t mr_condense_least_ns(const struct mr_condense *condense)
{
    bool may = condense->is_full && !condense->is_odd && !condense->is_given_up &&
               condense->depth > 0 && condense->depth <= MR_CONDENSE_NOTED_DEPTH &&
               condense->log_count == 0;

    return may ? condense->shortest_ns : UINT64_MAX;
}

/* How many calls have opened before event `at` of the piece, where `depth` are open. */
static uint64_t opened_at(const struct begin *begin, uint32_t at, uint32_t depth)
{
    MR_DEBUG_ASSERT(at + depth >= begin->depth && (at + depth - begin->depth) % 2 == 0);
    return begin->opened + (at + depth - begin->depth) / 2;
}

static struct mr_condense_open call_of(const struct mr_condense *condense,
                                       const struct mr_condense_notes *notes,
                                       const struct begin *begin,
                                       const struct mr_condense_noted *noted)
{
    const struct mr_event *open;
    struct mr_condense_open call;

    if (noted->opened == MR_CONDENSE_BEFORE) {
        MR_DEBUG_ASSERT(noted->depth < begin->depth);
        call = condense->open[noted->depth];
        call.child_ns = noted->child_ns;
        return call;
    }
    open = &notes->events[noted->opened];
    return (struct mr_condense_open){.start_ns = open->ns,
                                     .child_ns = noted->child_ns,
                                     .number =
                                         opened_at(begin, noted->opened, noted->depth),
                                     .site = open->site};
}

/* Every call that is kept has had a place among the open ones. */
static void make_places(struct mr_condense *condense, uint32_t count)
{
    void *open = condense->open;

    while (condense->open_capacity < count && !condense->is_given_up) {
        (void)mr_condense_grow(condense, &open, &condense->open_capacity,
                               sizeof(*condense->open), MR_CONDENSE_DEPTH_MAX);
        condense->open = open;
    }
}

static void end_call(struct mr_condense *condense, const struct mr_condense_notes *notes,
                     const struct begin *begin, const struct mr_condense_noted *ended)
{
    const struct mr_event *close = &notes->events[ended->closed];
    const struct mr_condense_open call = call_of(condense, notes, begin, ended);
    uint32_t open = ended->depth + 1;

    if (open > MR_CONDENSE_DEPTH_MAX)
        return;
    make_places(condense, open);
    condense->depth = ended->depth;
    condense->closed = opened_at(begin, ended->closed, open) - open;
    if (!condense->is_given_up &&
        mr_condense_is_longer(close->ns - call.start_ns, call.number,
                              condense->shortest_ns, condense->shortest_number))
        mr_condense_keep(condense, &call, close->ns - call.start_ns, close);
}

void mr_condense_feed_noted(struct mr_condense *condense,
                            const struct mr_condense_notes *notes)
{
    const struct begin begin = {condense->opened, condense->depth};

    MR_ASSERT(notes->count > 0 && notes->open_count > 0);
    MR_ASSERT(notes->open_count <= MR_CONDENSE_NOTED_DEPTH);
    for (uint32_t i = 0; i < notes->ended_count && !condense->is_given_up; i++)
        end_call(condense, notes, &begin, &notes->ended[i]);
    make_places(condense, notes->open_count);
    if (condense->is_given_up)
        return;
    for (uint32_t i = 0; i < notes->open_count; i++)
        condense->open[i] = call_of(condense, notes, &begin, &notes->open[i]);
    condense->depth = notes->open_count;
    condense->opened = opened_at(&begin, notes->count, notes->open_count);
    condense->closed = condense->opened - condense->depth;
    condense->last_ns = notes->events[notes->count - 1].ns;
}
