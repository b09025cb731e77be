/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where calls are foretold badly and paths are so many that they lie in no near cache, each call waits for its path, and what waits was
 * guessed wrong. So the paths of some events are found ahead of the hot loop, by tags alone and without a branch that depends on what
 * comes: by the time the loop is there, they have come.
 *
 *     events   ENTER a  ENTER b  EXIT b  ENTER c  EXIT c  EXIT a
 *     scout    ->path   ->path           ->path                    stack of paths of its own; nothing is counted
 *     loop                                                         (follows)
 *
 * An event that is no call inside a call tree leads the scout astray; the loop ends there. To scout costs some 3 ns an event, so it is
 * done only where it pays: now and then the loop goes alone, and how much of it was not foretold says whether it shall.
 */
#include "pipeline/filters/reduce_private.h"

#define PATHS_MIN 8192u /* their first lines take half a MiB */
#define ALONE_EVENTS 4096u
#define SCOUTED_EVENTS (16 * ALONE_EVENTS)
#define MISSES 4u /* one in so many events: half of the calls */
#define BELOW 16u /* open calls whose ends it follows */

void mr_reduce_scout_learn(struct mr_reduce *reduce, bool is_scouted, uint32_t events)
{
    struct mr_reduce_scout *scout = &reduce->scout;

    if (is_scouted) {
        scout->left -= events < scout->left ? events : scout->left;
        return;
    }
    scout->alone += events;
    if (scout->alone < ALONE_EVENTS)
        return;
    if (scout->missed > scout->alone / MISSES && reduce->paths.count >= PATHS_MIN)
        scout->left = SCOUTED_EVENTS;
    scout->alone = 0;
    scout->missed = 0;
}

uint32_t mr_reduce_scout_ahead(struct mr_reduce *reduce, const struct mr_open_call *top,
                               uint32_t depth, const struct mr_event *events,
                               uint32_t count)
{
    const struct mr_paths *paths = &reduce->paths;
    uint32_t stack[1 + BELOW + MR_REDUCE_AHEAD], *at, i;

    depth = depth < BELOW ? depth : BELOW;
    count = count < MR_REDUCE_AHEAD ? count : MR_REDUCE_AHEAD;
    for (i = 0; i < depth; i++)
        stack[depth - i] = top[-(ptrdiff_t)i].path;
    at = stack + depth;
    for (i = 0; i < count && at != stack; i++) {
        uint64_t word = mr_event_word(&events[i]);
        bool is_open = word <= UINT32_MAX;
        uint32_t path = mr_paths_guess(paths, *at, (uint32_t)word, is_open);

        reduce->scout.paths[i] = path;
        at[1] = path;
        MR_PREFETCH_WRITE(&paths->nodes[is_open ? path : MR_PATH_NONE]);
        at += is_open ? 1 : -1;
    }
    return i;
}
