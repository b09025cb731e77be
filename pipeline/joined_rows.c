/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/joined_rows.h"

#include "base/assert.h"
#include "base/clock.h"

void mr_joined_sums_init(struct mr_joined_sums *sums)
{
    *sums = (struct mr_joined_sums){.stats.histogram = MR_HISTOGRAM_EMPTY};
    for (uint32_t i = 0; i < MR_JOINED_NODES_MAX; i++)
        sums->edges[i].histogram = MR_HISTOGRAM_EMPTY;
}

void mr_joined_sums_fini(struct mr_joined_sums *sums)
{
    mr_histogram_fini(&sums->stats.histogram);
    for (uint32_t i = 0; i < MR_JOINED_NODES_MAX; i++)
        mr_histogram_fini(&sums->edges[i].histogram);
}

static enum mr_status add_edge(struct mr_edge_stats *stats,
                               const struct mr_joined_edge *edge)
{
    mr_times_add(&stats->time, edge->ns, stats->count == 0);
    stats->count++;
    stats->clamped += edge->is_clamped;
    return mr_histogram_add(&stats->histogram, edge->ns, 1);
}

static enum mr_status set_stats(struct mr_joined_stats *stats,
                                const struct mr_joined *joined)
{
    bool is_timed = joined->status != MR_PART_INCOMPLETE;
    uint64_t took = is_timed ? joined->took_ns : 0;

    mr_histogram_clear(&stats->histogram);
    stats->ok = joined->status == MR_PART_OK;
    stats->failed = joined->status == MR_PART_FAILED;
    stats->incomplete = !is_timed;
    stats->first_ns = stats->last_ns = joined->end_ns;
    stats->time = (struct mr_times){took, took, took};
    stats->slowest = is_timed ? joined->trace : (struct mr_id){0, 0};
    return is_timed ? mr_histogram_add(&stats->histogram, took, 1) : MR_OK;
}

enum mr_status mr_joined_sums_set(struct mr_joined_sums *sums,
                                  const struct mr_joined *joined)
{
    enum mr_status status = set_stats(&sums->stats, joined);

    for (uint32_t i = 0; i < joined->node_count; i++) {
        struct mr_edge_stats *edge = &sums->edges[i];

        mr_histogram_clear(&edge->histogram);
        edge->count = edge->clamped = 0;
        edge->time = (struct mr_times){0, 0, 0};
    }
    for (uint32_t i = 0; i < joined->edge_count && status == MR_OK; i++) {
        MR_ASSERT(joined->edges[i].place < joined->node_count);
        status = add_edge(&sums->edges[joined->edges[i].place], &joined->edges[i]);
    }
    return status;
}

void mr_joined_rows_init(struct mr_joined_rows *rows)
{
    mr_joined_sums_init(&rows->sums);
    mr_joined_rows_begin(rows);
}

void mr_joined_rows_fini(struct mr_joined_rows *rows)
{
    mr_joined_sums_fini(&rows->sums);
}

void mr_joined_rows_begin(struct mr_joined_rows *rows)
{
    for (uint32_t i = 0; i < MR_JOINED_ROWS_KNOWN; i++)
        rows->known[i].id = (struct mr_id){0, 0};
}

static uint32_t index_of(struct mr_joined_rows *rows, struct mr_delta_writer *writer,
                         const struct mr_joined *joined)
{
    uint32_t at = (uint32_t)(joined->id.lo % MR_JOINED_ROWS_KNOWN);

    if (!mr_id_equal(rows->known[at].id, joined->id)) {
        rows->known[at].id = joined->id;
        rows->known[at].index =
            mr_delta_joined(writer, joined->id, joined->nodes, joined->node_count);
    }
    return rows->known[at].index;
}

enum mr_status mr_joined_rows_put(struct mr_joined_rows *rows,
                                  struct mr_delta_writer *writer,
                                  const struct mr_joined *joined, uint32_t window_s)
{
    uint32_t index = index_of(rows, writer, joined);
    uint64_t window = joined->end_ns / MR_SECOND_NS / window_s * window_s;
    enum mr_status status = mr_joined_sums_set(&rows->sums, joined);

    MR_ASSERT(window_s > 0);
    if (status != MR_OK)
        return status;
    mr_delta_joined_stat(writer, index, window, &rows->sums.stats);
    for (uint32_t i = 1; i < joined->node_count; i++)
        if (rows->sums.edges[i].count)
            mr_delta_joined_edge(writer, index, window, i, &rows->sums.edges[i]);
    return mr_delta_status(writer);
}
