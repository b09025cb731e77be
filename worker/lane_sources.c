/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a lane gives its graph: frames, and the ends of sources. A source is freed when its END has passed the lane's filters, which
 * know its streams until then. The lane's thread.
 */
#include "worker/lane_private.h"

#include "base/assert.h"
#include "base/log.h"
#include "pipeline/source.h"

#include <stdlib.h>

/* Gives the graph a batch; after its first failure nothing more is acknowledged. */
static enum mr_status push(struct mr_lane *lane, struct mr_batch *batch)
{
    enum mr_status status = batch ? mr_graph_push(lane->config.graph, batch) : MR_ENOMEM;

    if (status != MR_OK && lane->status == MR_OK) {
        lane->status = status;
        mr_log_error("%s: the analysis stopped: %s", lane->config.name,
                     mr_status_text(status));
    }
    return status;
}

void mr_lane_push_frame(struct mr_lane *lane, struct mr_lane_sender *sender,
                        const struct mr_frame *frame)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_FRAME);

    mr_lane_count(&lane->config.counters->frames, 1);
    mr_lane_count(&lane->config.counters->bytes, frame->payload.size);
    mr_lane_keep_dict(lane, sender, frame);
    if (batch) {
        batch->source = sender->source;
        batch->frame = *frame;
    }
    (void)push(lane, batch);
}

/* A source that has ended, until its END has passed the lane's filters. */
struct mr_lane_ended {
    struct mr_source *source;
    struct mr_source
        *again; /* NULL, or: ends then, with what that would have handed over */
    struct mr_lane_ended *next;
};

void mr_lane_let_source(struct mr_lane *lane, struct mr_source *source,
                        struct mr_source *again)
{
    struct mr_lane_ended *ended = malloc(sizeof(*ended));

    if (ended) { /* else it leaks: there is no memory, and the filters may still use it */
        *ended = (struct mr_lane_ended){source, again, lane->ended};
        lane->ended = ended;
    }
}

static void push_end(struct mr_lane *lane, struct mr_source *source,
                     enum mr_source_state state, bool is_handed_over)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_END);

    if (batch) {
        batch->source = source;
        batch->end_state = (uint32_t)state;
        batch->is_handed_over = is_handed_over;
    }
    (void)push(lane, batch);
}

void mr_lane_end_source(struct mr_lane *lane, struct mr_lane_sender *sender,
                        enum mr_source_state state)
{
    MR_ASSERT(sender->source);
    push_end(lane, sender->source, state, false);
    mr_lane_let_source(lane, sender->source, NULL);
    sender->source = NULL;
}

struct mr_source *mr_lane_hand_source_over(struct mr_lane *lane,
                                           struct mr_lane_sender *sender)
{
    struct mr_source *source = sender->source;

    push_end(lane, source, MR_SOURCE_LIVE, true);
    mr_lane_count(&lane->config.counters->finished, 1);
    sender->source = NULL;
    return source;
}

/* Its streams, told to nobody, end here after all. */
static void end_again(struct mr_lane *lane, const struct mr_lane_ended *ended)
{
    if (!mr_lane_take_back(ended->source, ended->again)) {
        mr_source_free(ended->again);
        return;
    }
    push_end(lane, ended->again, MR_SOURCE_LIVE, false);
    mr_lane_let_source(lane, ended->again, NULL);
}

void mr_lane_free_ended(struct mr_lane *lane, bool all)
{
    struct mr_lane_ended **at = &lane->ended;

    while (*at) {
        struct mr_lane_ended *ended = *at;

        if (!all && !mr_source_is_done(ended->source)) {
            at = &ended->next;
            continue;
        }
        *at = ended->next;
        if (ended->again && all)
            mr_source_free(ended->again);
        else if (ended->again)
            end_again(lane, ended);
        mr_source_free(ended->source);
        free(ended);
    }
}
