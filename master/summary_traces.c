/* SPDX-License-Identifier: Apache-2.0 */
/* Traces over several threads and processes, those that took place most often first. */
#include <stdlib.h>

#include "base/sum.h"
#include "master/ranked.h"
#include "master/summary_private.h"

static const char *keep(struct mr_arena *arena, const char *text)
{
    const char *copy = mr_arena_copy(arena, mr_span_of_text(text));

    return copy ? copy : "";
}

static void make_part(const struct mr_model_root *root, struct mr_arena *arena,
                      const struct mr_joined_node *node, uint32_t depth,
                      struct mr_summary_part *part)
{
    const struct mr_model_path *path =
        mr_model_path(root, mr_model_find(root, MR_MODEL_PATH, node->path));
    char text[MR_SITE_LABEL_SIZE];

    *part = (struct mr_summary_part){.depth = depth,
                                     .kind = node->kind,
                                     .flags = node->flags,
                                     .name = "",
                                     .app = "",
                                     .version = "",
                                     .host = ""};
    if (!path)
        return;
    part->name = keep(arena, mr_model_site_label(mr_model_site(root, path->site), text));
    part->app = keep(arena, mr_model_scope(root, path->scope)->app);
    part->version = keep(arena, mr_model_scope(root, path->scope)->version);
    part->host = keep(arena, mr_model_scope(root, path->scope)->host);
}

static void make_edge(const struct mr_edge_stats *stats, struct mr_summary_part *part)
{
    if (!stats || stats->count == 0)
        return;
    part->count = stats->count;
    part->clamped = stats->clamped;
    part->max_ns = stats->time.max;
    (void)mr_histogram_quantile(&stats->histogram, 0.5, &part->p50.value, &part->p50.low,
                                &part->p50.high);
    (void)mr_histogram_quantile(&stats->histogram, 0.99, &part->p99.value, &part->p99.low,
                                &part->p99.high);
    mr_summary_clamp(&part->p50, &stats->time);
    mr_summary_clamp(&part->p99, &stats->time);
}

static void make_stats(const struct mr_joined_stats *stats,
                       struct mr_summary_trace *trace)
{
    trace->ok = stats->ok;
    trace->failed = stats->failed;
    trace->incomplete = stats->incomplete;
    trace->is_timed = mr_sum(stats->ok, stats->failed) > 0;
    trace->max_ns = stats->time.max;
    trace->slowest = stats->slowest;
    if (!trace->is_timed)
        return;
    (void)mr_histogram_quantile(&stats->histogram, 0.5, &trace->p50.value,
                                &trace->p50.low, &trace->p50.high);
    (void)mr_histogram_quantile(&stats->histogram, 0.99, &trace->p99.value,
                                &trace->p99.low, &trace->p99.high);
    mr_summary_clamp(&trace->p50, &stats->time);
    mr_summary_clamp(&trace->p99, &stats->time);
}

/* Preorder with depths: how many children each open node still waits for. */
static enum mr_status make_trace(const struct mr_model_root *root, struct mr_arena *arena,
                                 uint32_t index, struct mr_summary_trace *trace)
{
    const struct mr_model_joined *joined = mr_model_joined(root, index);
    uint32_t left[MR_JOINED_NODES_MAX], depth = 0;

    trace->id = joined->id;
    trace->parts = mr_arena_take(arena, joined->node_count * sizeof(*trace->parts));
    if (!trace->parts)
        return MR_ENOMEM;
    trace->part_count = joined->node_count;
    for (uint32_t i = 0; i < joined->node_count; i++) {
        make_part(root, arena, &joined->nodes[i], depth, &trace->parts[i]);
        make_edge(mr_model_edge_of(root, index, i), &trace->parts[i]);
        left[depth] = joined->nodes[i].children;
        if (joined->nodes[i].children > 0) {
            depth++;
            continue;
        }
        while (depth > 0 && --left[depth - 1] == 0)
            depth--;
    }
    make_stats(&mr_model_joined_stat(root, index)->stats, trace);
    return MR_OK;
}

enum mr_status mr_summary_make_traces(const struct mr_model_root *root, size_t limit,
                                      struct mr_arena *arena, struct mr_summary *summary)
{
    uint32_t all = mr_model_count(root, MR_MODEL_JOINED);
    struct mr_ranked *order = calloc((size_t)all + 1, sizeof(*order));
    enum mr_status status = MR_OK;

    mr_summary_make_parts(root, &summary->parts);
    summary->joined_past_limit = mr_summary_traces_past_limit(root);
    summary->trace_total = all;
    summary->trace_count = all < limit ? all : limit;
    summary->joined = calloc(summary->trace_count + 1, sizeof(*summary->joined));
    if (!order || !summary->joined) {
        free(order);
        return MR_ENOMEM;
    }
    for (uint32_t i = 0; i < all; i++) {
        const struct mr_joined_stats *stats = &mr_model_joined_stat(root, i)->stats;

        order[i] =
            (struct mr_ranked){mr_sum3(stats->ok, stats->failed, stats->incomplete), i};
        mr_sum_add(&summary->joined_ok, stats->ok);
        mr_sum_add(&summary->joined_failed, stats->failed);
        mr_sum_add(&summary->joined_incomplete, stats->incomplete);
    }
    qsort(order, all, sizeof(*order), mr_ranked_compare);
    for (size_t i = 0; i < summary->trace_count && status == MR_OK; i++)
        status = make_trace(root, arena, order[i].index, &summary->joined[i]);
    free(order);
    return status;
}
