/* SPDX-License-Identifier: Apache-2.0 */
/* Deltas; what was read can be merged and written, and reads the same again. */
#include "base/assert.h"
#include "net/delta.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Merges the stats of an item with themselves, twice over. */
static void merge(const struct mr_delta_item *item)
{
    struct mr_path_stats paths = {.histogram = MR_HISTOGRAM_EMPTY};
    struct mr_shape_stats shapes = {.histogram = MR_HISTOGRAM_EMPTY};
    struct mr_entry_stats entries = {{0}, {0}, {0}};
    struct mr_ledger_entry ledger = {.held = 0};
    struct mr_counter_stats counters = {.calls = 0};
    struct mr_joined_stats joined = {.histogram = MR_HISTOGRAM_EMPTY};
    struct mr_edge_stats edges = {.histogram = MR_HISTOGRAM_EMPTY};
    struct mr_shape_path_stats shape_paths = {.ok = 0};

    for (int i = 0; i < 2; i++) {
        if (item->path_stats)
            MR_ASSERT(mr_path_stats_merge(&paths, item->path_stats) == MR_OK);
        if (item->shape_stats)
            MR_ASSERT(mr_shape_stats_merge(&shapes, item->shape_stats) == MR_OK);
        if (item->entry_stats)
            mr_entry_stats_merge(&entries, item->entry_stats);
        if (item->ledger)
            mr_ledger_entry_merge(&ledger, item->ledger);
        if (item->counter_stats)
            mr_counter_stats_merge(&counters, item->counter_stats);
        if (item->joined_stats)
            MR_ASSERT(mr_joined_stats_merge(&joined, item->joined_stats) == MR_OK);
        if (item->edge_stats)
            MR_ASSERT(mr_edge_stats_merge(&edges, item->edge_stats) == MR_OK);
        if (item->shape_path_stats)
            mr_shape_path_stats_merge(&shape_paths, item->shape_path_stats);
        if (item->exemplar)
            MR_ASSERT(!mr_exemplar_is_before(item->exemplar, item->exemplar,
                                             MR_EXEMPLAR_SLOWEST));
    }
    mr_histogram_fini(&joined.histogram);
    mr_histogram_fini(&edges.histogram);
    mr_histogram_fini(&paths.histogram);
    mr_histogram_fini(&shapes.histogram);
}

static void write_item(struct mr_delta_writer *w, const struct mr_delta_item *item)
{
    switch (item->tag) {
    case MR_DELTA_HEAD:
        mr_delta_head(w, item->level, item->created_ns);
        break;
    case MR_DELTA_SITE:
        (void)mr_delta_site(w, item->id);
        break;
    case MR_DELTA_SCOPE:
        (void)mr_delta_scope(w, item->id);
        break;
    case MR_DELTA_PATH:
        (void)mr_delta_path(w, item->parent, item->scope, item->site, item->flags);
        break;
    case MR_DELTA_PATH_STAT:
        mr_delta_path_stat(w, item->path, item->window, item->path_stats);
        break;
    case MR_DELTA_SOURCE:
        (void)mr_delta_source(w, item->id);
        break;
    case MR_DELTA_SHAPE:
        (void)mr_delta_shape(w, item->scope, item->path, item->id);
        break;
    case MR_DELTA_SHAPE_STAT:
        mr_delta_shape_stat(w, item->shape, item->window, item->shape_stats);
        break;
    case MR_DELTA_ENTRY_STAT:
        mr_delta_entry_stat(w, item->path, item->window, item->entry_stats);
        break;
    case MR_DELTA_LEDGER:
        mr_delta_ledger(w, item->source, item->stream, item->ledger);
        break;
    case MR_DELTA_OPEN:
        mr_delta_open(w, item->path, item->stack, item->open);
        break;
    case MR_DELTA_COUNTER:
        mr_delta_counter(w, item->name, item->value);
        break;
    case MR_DELTA_SPAN_COUNTER:
        (void)mr_delta_span_counter(w, item->id);
        break;
    case MR_DELTA_PATH_COUNTER:
        mr_delta_path_counter(w, item->path, item->window, item->counter,
                              item->counter_stats);
        break;
    case MR_DELTA_PART:
        mr_delta_part(w, item->part);
        break;
    case MR_DELTA_JOINED:
        (void)mr_delta_joined(w, item->id, item->nodes, item->node_count);
        break;
    case MR_DELTA_JOINED_STAT:
        mr_delta_joined_stat(w, item->joined, item->window, item->joined_stats);
        break;
    case MR_DELTA_JOINED_EDGE:
        mr_delta_joined_edge(w, item->joined, item->window, item->place,
                             item->edge_stats);
        break;
    case MR_DELTA_EXEMPLAR:
        mr_delta_exemplar(w, item->path, item->shape, item->source, item->exemplar);
        break;
    case MR_DELTA_ASKED:
        mr_delta_asked(w, item->id, item->wanted, item->path, item->shape, item->source,
                       item->exemplar);
        break;
    case MR_DELTA_SHAPE_PATH:
        mr_delta_shape_path(w, item->shape, item->path, item->shape_path_stats);
        break;
    }
}

/* Writes the items of `payload` to `out`, as far as they can be read. */
static void copy(struct mr_span payload, struct mr_buffer *out)
{
    struct mr_delta_reader reader;
    struct mr_delta_writer writer;
    struct mr_delta_item item;

    mr_delta_reader_init(&reader, payload);
    mr_delta_begin(&writer, out);
    while (mr_delta_next(&reader, &item) == MR_OK) {
        merge(&item);
        write_item(&writer, &item);
    }
    MR_ASSERT(mr_delta_status(&writer) == MR_OK);
    mr_delta_reader_fini(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_buffer one, two;

    mr_buffer_init(&one, 16u << 20);
    mr_buffer_init(&two, 16u << 20);
    copy(mr_span_of(data, size), &one);
    copy(mr_buffer_span(&one), &two);
    MR_ASSERT(mr_span_equal(mr_buffer_span(&one), mr_buffer_span(&two)));
    mr_buffer_fini(&one);
    mr_buffer_fini(&two);
    return 0;
}
