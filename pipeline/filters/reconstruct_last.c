/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "base/assert.h"
#include "pipeline/filters/reconstruct_private.h"

/*
 * What a hit adds to the score, and a miss takes off. At 0 the stream does not repeat itself, and only one trace of
 * PROBE is remembered and then tried.
 */
#define HIT 4u
#define SCORE_MAX 32u
#define PROBE 64u

bool mr_reconstruct_is_again(struct mr_last_trace *last, const struct mr_event *events,
                             uint64_t count)
{
    uint32_t at = 0;

    if (last->count == 0)
        return false;
    if (count >= last->count)
        while (at < last->count && mr_event_word(&events[at]) == last->words[at] &&
               mr_event_word(&events[at + 1]) == last->words[at + 1])
            at += 2;
    if (at == last->count) {
        last->score = last->score + HIT < SCORE_MAX ? last->score + HIT : SCORE_MAX;
        return true;
    }
    last->score -= last->score > 0;
    last->count = 0;
    return false;
}

void mr_reconstruct_remember(struct mr_last_trace *last, const struct mr_event *events,
                             uint64_t count)
{
    uint32_t depth = 0;

    if (count > MR_LAST_TRACE_EVENTS || (!last->score && ++last->traces % PROBE))
        return;
    last->depth = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct mr_event event = events[i];

        depth += event.kind == MR_EVENT_OPEN ? 1u : UINT32_MAX;
        last->depth = depth > last->depth ? depth : last->depth;
        event.flags = 0; /* as it came */
        last->words[i] = mr_event_word(&event);
    }
    MR_ASSERT(depth == 0);
    last->count = (uint32_t)count;
}
