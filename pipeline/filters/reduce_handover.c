/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a stream that moves to another receiver (pipeline/handover.h). What is open goes with it: its ledger says held here, and
 * the next one counts it when it closes.
 */
#include <stdlib.h>

#include "pipeline/filters/reduce_private.h"
#include "pipeline/resume.h"

/* Its open call trees, and what joins them: who goes on with it tells them. */
static void let_open(struct mr_reduce *reduce, struct mr_reduce_stream *stream)
{
    while (stream->trace_count) {
        mr_reduce_exemplars_drop(reduce, &stream->traces[stream->trace_count - 1]);
        mr_reduce_drop_trace(stream);
    }
    stream->depth = 0;
    mr_reduce_links_free(stream);
}

/* Nobody can say where the exits of its open calls belong. */
static void lose_held(struct mr_reduce_stream *stream)
{
    uint64_t held = stream->last - stream->reduced - stream->lost_sum;

    stream->lost[MR_LOSS_BUDGET] += held;
    stream->lost_sum += held;
}

static void count(struct mr_reduce *reduce, const struct mr_reduce_stream *stream,
                  enum mr_handover_told told)
{
    mr_counters_add(&reduce->counters, MR_REDUCE_HANDED_OVER, told == MR_HANDOVER_WHOLE);
    mr_counters_add(&reduce->counters, MR_REDUCE_HANDED_SHORT, told != MR_HANDOVER_WHOLE);
    if (told != MR_HANDOVER_WHOLE)
        mr_counters_add(&reduce->counters, MR_REDUCE_LINKS_LOST, stream->has_links);
}

enum mr_status mr_reduce_hand_over(struct mr_reduce *reduce,
                                   struct mr_reduce_stream *stream, uint64_t ns)
{
    struct mr_resume_stream given;
    struct mr_resume_links links;
    enum mr_handover_told told;
    enum mr_status status = mr_reduce_give_stream(reduce, stream, &links, &given);

    if (given.last_ns < ns) /* of its events none is later */
        given.last_ns = ns;
    if (status == MR_OK)
        status = mr_reduce_lists_give(reduce, stream, &given.lists);
    if (status == MR_OK)
        status = mr_handover_put(&stream->stream->source->handover, reduce->config->sites,
                                 &given, &told);
    mr_resume_free_lists(given.lists);
    free(given.calls);
    if (status != MR_OK)
        return status;
    if (told == MR_HANDOVER_NONE)
        lose_held(stream);
    count(reduce, stream, told);
    let_open(reduce, stream);
    return MR_OK;
}
