/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/joined_rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/compiler.h"

#define KEPT_MAX                                                                         \
    32u /* places of a row whose memory stays for the next one; of all rows MR_JOINED_PLACES_MAX */

static_assert(MR_JOINED_ROWS_MAX < UINT16_MAX, "slots are of 16 bits");
static_assert(MR_JOINED_PLACES_MAX >= MR_JOINED_NODES_MAX, "any shape has room");

static void clear_edges(struct mr_edge_stats *edges, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        mr_histogram_clear(&edges[i].histogram);
        edges[i].count = edges[i].clamped = 0;
        edges[i].time = (struct mr_times){0, 0, 0};
    }
}

static void clear_stats(struct mr_joined_stats *stats)
{
    struct mr_histogram histogram = stats->histogram;

    mr_histogram_clear(&histogram);
    *stats = (struct mr_joined_stats){.histogram = histogram};
}

static enum mr_status add_edge(struct mr_edge_stats *stats,
                               const struct mr_joined_edge *edge)
{
    mr_times_add(&stats->time, edge->ns, stats->count == 0);
    stats->count++;
    stats->clamped += edge->is_clamped;
    return mr_histogram_add(&stats->histogram, edge->ns, 1);
}

static enum mr_status add_stats(struct mr_joined_stats *stats,
                                const struct mr_joined *joined)
{
    bool is_timed = joined->status != MR_PART_INCOMPLETE;
    uint64_t took = is_timed ? joined->took_ns : 0;
    const struct mr_joined_stats one = {
        .ok = joined->status == MR_PART_OK,
        .failed = joined->status == MR_PART_FAILED,
        .incomplete = !is_timed,
        .first_ns = joined->end_ns,
        .last_ns = joined->end_ns,
        .time = {took, took, took},
        .slowest = is_timed ? joined->trace : (struct mr_id){0, 0},
        .histogram = MR_HISTOGRAM_EMPTY}; /* its count is added below */
    enum mr_status status = mr_joined_stats_merge(stats, &one);

    return status == MR_OK && is_timed ? mr_histogram_add(&stats->histogram, took, 1)
                                       : status;
}

static enum mr_status add_trace(struct mr_joined_stats *stats,
                                struct mr_edge_stats *edges,
                                const struct mr_joined *joined)
{
    enum mr_status status = add_stats(stats, joined);

    for (uint32_t i = 0; i < joined->edge_count && status == MR_OK; i++) {
        MR_ASSERT(joined->edges[i].place < joined->node_count);
        status = add_edge(&edges[joined->edges[i].place], &joined->edges[i]);
    }
    return status;
}

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

enum mr_status mr_joined_sums_set(struct mr_joined_sums *sums,
                                  const struct mr_joined *joined)
{
    clear_stats(&sums->stats);
    clear_edges(sums->edges, joined->node_count);
    return add_trace(&sums->stats, sums->edges, joined);
}

void mr_joined_rows_init(struct mr_joined_rows *rows)
{
    *rows = (struct mr_joined_rows){.count = 0};
    for (uint32_t i = 0; i < MR_JOINED_ROWS_MAX; i++)
        rows->rows[i].stats.histogram = MR_HISTOGRAM_EMPTY;
}

static void free_places(struct mr_joined_row *row)
{
    for (uint32_t i = 0; i < row->capacity; i++)
        mr_histogram_fini(&row->edges[i].histogram);
    free(row->edges);
    free(row->nodes);
    row->edges = NULL;
    row->nodes = NULL;
    row->capacity = 0;
}

void mr_joined_rows_fini(struct mr_joined_rows *rows)
{
    for (uint32_t i = 0; i < MR_JOINED_ROWS_MAX; i++) {
        free_places(&rows->rows[i]);
        mr_histogram_fini(&rows->rows[i].stats.histogram);
    }
}

/* Room for the places of a shape, all of them empty. */
static bool make_places(struct mr_joined_row *row, uint32_t count)
{
    if (count > row->capacity) {
        free_places(row);
        row->nodes = malloc(count * sizeof(*row->nodes));
        row->edges = calloc(count, sizeof(*row->edges));
        if (!row->nodes || !row->edges) {
            free_places(row);
            return false;
        }
        row->capacity = count;
        for (uint32_t i = 0; i < count; i++)
            row->edges[i].histogram = MR_HISTOGRAM_EMPTY;
    }
    clear_edges(row->edges, count);
    return true;
}

/* The slot of the row, or the free one where it belongs: half of them are. */
static uint16_t *slot_of(struct mr_joined_rows *rows, struct mr_id id, uint64_t window)
{
    uint32_t at = (uint32_t)(id.lo ^ window) % MR_ARRAY_COUNT(rows->slots);

    for (; rows->slots[at]; at = (at + 1) % MR_ARRAY_COUNT(rows->slots)) {
        const struct mr_joined_row *row = &rows->rows[rows->slots[at] - 1];

        if (mr_id_equal(row->id, id) && row->window == window)
            break;
    }
    return &rows->slots[at];
}

static enum mr_status begin_row(struct mr_joined_rows *rows,
                                const struct mr_joined *joined, uint64_t window,
                                uint16_t *slot)
{
    struct mr_joined_row *row = &rows->rows[rows->count];

    if (rows->count == MR_JOINED_ROWS_MAX ||
        rows->places + joined->node_count > MR_JOINED_PLACES_MAX)
        return MR_ELIMIT;
    if (!make_places(row, joined->node_count))
        return MR_ENOMEM;
    clear_stats(&row->stats);
    memcpy(row->nodes, joined->nodes, joined->node_count * sizeof(*row->nodes));
    row->node_count = joined->node_count;
    row->id = joined->id;
    row->window = window;
    rows->places += joined->node_count;
    *slot = (uint16_t)++rows->count;
    return MR_OK;
}

enum mr_status mr_joined_rows_add(struct mr_joined_rows *rows,
                                  const struct mr_joined *joined, uint32_t window_s)
{
    uint64_t window = joined->end_ns / MR_SECOND_NS / window_s * window_s;
    uint16_t *slot = slot_of(rows, joined->id, window);
    enum mr_status status = MR_OK;
    struct mr_joined_row *row;

    MR_ASSERT(window_s > 0);
    if (*slot == 0)
        status = begin_row(rows, joined, window, slot);
    if (status != MR_OK)
        return status;
    row = &rows->rows[*slot - 1];
    return add_trace(&row->stats, row->edges, joined);
}

void mr_joined_rows_write(const struct mr_joined_rows *rows, uint32_t number,
                          struct mr_delta_writer *writer)
{
    const struct mr_joined_row *row = &rows->rows[number];
    uint32_t index;

    MR_ASSERT(number < rows->count);
    index = mr_delta_joined(writer, row->id, row->nodes, row->node_count);
    mr_delta_joined_stat(writer, index, row->window, &row->stats);
    for (uint32_t i = 1; i < row->node_count; i++)
        if (row->edges[i].count)
            mr_delta_joined_edge(writer, index, row->window, i, &row->edges[i]);
}

void mr_joined_rows_clear(struct mr_joined_rows *rows)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < MR_JOINED_ROWS_MAX; i++) {
        struct mr_joined_row *row = &rows->rows[i];

        if (row->capacity > KEPT_MAX || kept + row->capacity > MR_JOINED_PLACES_MAX)
            free_places(row);
        kept += row->capacity;
    }
    memset(rows->slots, 0, sizeof(rows->slots));
    rows->count = rows->places = 0;
}
