/* SPDX-License-Identifier: Apache-2.0 */
/* Which share of a stream its shapes and paths tell: what a lane says of it, merged. */
#include "bench/pipeline.h"

#include "base/table.h"
#include "net/delta.h"
#include "pipeline/accumulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART_BYTES (4u << 20)
#define SHAPES_MAX (1u << 24)
#define CHECK(condition) ((condition) ? (void)0 : abort())

enum part { RECURRING, ONCE, PATHS, INCOMPLETE, PARTS };
static const char *const part_names[PARTS] = {"recurring", "once", "paths", "incomplete"};

struct shape {
    uint64_t traces, calls, ns;
};

struct sums {
    struct shape *shapes; /* by number in `ids` */
    struct mr_table ids;
    uint32_t shape_count, shape_capacity;
    uint32_t *payload_shapes; /* of the payload at hand */
    uint32_t payload_capacity;
    uint64_t traces, calls[PARTS], ns[PARTS];
    uint64_t
        path_ns; /* self times of paths below entry points; also of trees that are open */
    uint8_t *is_outer; /* paths of the payload at hand */
    uint32_t path_capacity;
};

static void *room(void *items, uint32_t *capacity, uint32_t index, size_t size)
{
    if (index < *capacity)
        return items;
    *capacity = 2 * index + 256;
    items = realloc(items, *capacity * size);
    CHECK(items);
    return items;
}

static void take_shape(struct sums *sums, const struct mr_delta_item *item)
{
    uint32_t number;

    CHECK(mr_table_find_or_add(&sums->ids, item->id, sums->shape_count, &number) ==
          MR_OK);
    if (number == sums->shape_count) {
        sums->shapes =
            room(sums->shapes, &sums->shape_capacity, number, sizeof(*sums->shapes));
        sums->shapes[sums->shape_count++] = (struct shape){0};
    }
    sums->payload_shapes = room(sums->payload_shapes, &sums->payload_capacity,
                                item->index, sizeof(*sums->payload_shapes));
    sums->payload_shapes[item->index] = number;
}

static void take_item(struct sums *sums, const struct mr_delta_item *item)
{
    struct shape *shape;

    switch (item->tag) {
    case MR_DELTA_SHAPE:
        take_shape(sums, item);
        break;
    case MR_DELTA_SHAPE_STAT:
        shape = &sums->shapes[sums->payload_shapes[item->shape]];
        shape->traces += item->shape_stats->ok + item->shape_stats->failed;
        shape->calls += item->shape_stats->calls;
        shape->ns += item->shape_stats->time.sum;
        break;
    case MR_DELTA_PATH:
        sums->is_outer = room(sums->is_outer, &sums->path_capacity, item->index, 1);
        sums->is_outer[item->index] = (item->flags & MR_DELTA_PATH_OUTER) != 0;
        break;
    case MR_DELTA_PATH_STAT:
        if (!sums->is_outer[item->path])
            sums->path_ns += item->path_stats->self.sum;
        break;
    case MR_DELTA_ENTRY_STAT:
        for (int i = 0; i < MR_COVERAGE_COUNT; i++)
            sums->traces += item->entry_stats->traces[i];
        sums->calls[PATHS] += item->entry_stats->calls[MR_COVERAGE_PATHS];
        sums->ns[PATHS] += item->entry_stats->time_ns[MR_COVERAGE_PATHS];
        sums->calls[INCOMPLETE] += item->entry_stats->calls[MR_COVERAGE_INCOMPLETE];
        sums->ns[INCOMPLETE] += item->entry_stats->time_ns[MR_COVERAGE_INCOMPLETE];
        break;
    default:
        break;
    }
}

static void take_payload(struct sums *sums, struct mr_span payload)
{
    struct mr_delta_reader reader;
    struct mr_delta_item item;

    mr_delta_reader_init(&reader, payload);
    while (mr_delta_next(&reader, &item) == MR_OK)
        take_item(sums, &item);
    mr_delta_reader_fini(&reader);
}

/* Filter behind the lane. */
static enum mr_status sum_open(struct mr_filter *filter, const void *config,
                               struct mr_error *error)
{
    (void)error;
    *(struct sums **)mr_filter_state(filter) = *(struct sums *const *)config;
    return MR_OK;
}

static enum mr_status sum_process(struct mr_filter *filter, struct mr_batch *batch)
{
    if (batch->kind == MR_BATCH_DELTA)
        take_payload(*(struct sums **)mr_filter_state(filter),
                     mr_buffer_span(&batch->bytes));
    mr_batch_free(batch);
    return MR_OK;
}

static const struct mr_filter_kind sum_filter = {.name = "sum",
                                                 .state_size = sizeof(struct sums *),
                                                 .open = sum_open,
                                                 .process = sum_process};

static enum mr_status add(struct mr_pipeline_bench *bench,
                          const struct mr_stream_kind *kind, const char *what,
                          const char *metric, const char *unit, double value)
{
    char name[MR_RESULT_NAME_SIZE];

    (void)snprintf(name, sizeof(name), "share/%s/%s", kind->name, what);
    return mr_pipeline_add(bench, name, metric, unit, &value, 1, NULL, NULL);
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static enum mr_status add_all(struct mr_pipeline_bench *bench,
                              const struct mr_stream_kind *kind, const struct sums *sums)
{
    uint64_t calls = 0, ns = 0;
    enum mr_status status = MR_OK;

    for (int i = 0; i < PARTS; i++) {
        calls += sums->calls[i];
        ns += sums->ns[i];
    }
    for (int i = 0; i < PARTS && status == MR_OK; i++) {
        status = add(bench, kind, part_names[i], "calls_percent", "%",
                     percent(sums->calls[i], calls));
        if (status == MR_OK)
            status = add(bench, kind, part_names[i], "time_percent", "%",
                         percent(sums->ns[i], ns));
    }
    if (status == MR_OK)
        status = add(bench, kind, "on-a-path", "time_percent", "%",
                     percent(sums->path_ns < ns ? sums->path_ns : ns, ns));
    if (status == MR_OK)
        status = add(bench, kind, "all", "traces", "1", (double)sums->traces);
    return status == MR_OK
               ? add(bench, kind, "all", "shapes", "1", (double)sums->shape_count)
               : status;
}

enum mr_status mr_pipeline_share(struct mr_pipeline_bench *bench,
                                 const struct mr_stream_kind *kind,
                                 const struct mr_bench_stream *stream)
{
    struct sums sums = {.shapes = NULL}, *at = &sums;
    const struct mr_graph_node keep = {&sum_filter, &at, MR_PLACE_FUSED};
    struct mr_bench_lane *lane =
        mr_bench_lane_new(stream, MR_BENCH_STAGES, MR_PLACE_FUSED, &keep);
    enum mr_status status;

    mr_table_init(&sums.ids, SHAPES_MAX);
    mr_bench_lane_play(lane, stream);
    mr_bench_lane_drain(lane);
    mr_bench_lane_free(lane);
    for (uint32_t i = 0; i < sums.shape_count; i++) {
        enum part part = sums.shapes[i].traces > 1 ? RECURRING : ONCE;

        sums.calls[part] += sums.shapes[i].calls;
        sums.ns[part] += sums.shapes[i].ns;
    }
    status = add_all(bench, kind, &sums);
    mr_table_fini(&sums.ids);
    free(sums.shapes);
    free(sums.payload_shapes);
    free(sums.is_outer);
    return status;
}
