/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/accumulate.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/sum.h"
#include "pipeline/accumulate_private.h"

#include <stdlib.h>
#include <string.h>

/*
 * A row gives back the memory of a histogram wider than this when it is reset: the next
 * row there may be a narrow one.
 */
#define KEPT_BUCKETS 16u

/*
 * After so many resets in a row that found less than 1 / SPARE_RATIO of the rows in use,
 * the memory of the rows goes back: it was that of a burst, and what stays would only grow,
 * to the largest delta that ever was.
 */
#define SPARE_RESETS 10
#define SPARE_RATIO 8

static const size_t item_sizes[MR_ACC_SET_COUNT] = {
    [MR_ACC_SITE] = sizeof(struct mr_acc_name),
    [MR_ACC_SCOPE] = sizeof(struct mr_acc_name),
    [MR_ACC_SOURCE] = sizeof(struct mr_acc_name),
    [MR_ACC_SPAN_COUNTER] = sizeof(struct mr_acc_name),
    [MR_ACC_PATH] = sizeof(struct mr_acc_path),
    [MR_ACC_SHAPE] = sizeof(struct mr_acc_shape),
    [MR_ACC_PATH_ROW] = sizeof(struct mr_acc_path_row),
    [MR_ACC_SHAPE_ROW] = sizeof(struct mr_acc_shape_row),
    [MR_ACC_ENTRY_ROW] = sizeof(struct mr_acc_entry_row),
    [MR_ACC_LEDGER_ROW] = sizeof(struct mr_acc_ledger_row),
    [MR_ACC_OPEN] = sizeof(struct mr_acc_open),
    [MR_ACC_COUNTER] = sizeof(struct mr_acc_counter),
    [MR_ACC_PATH_COUNTER_ROW] = sizeof(struct mr_acc_path_counter_row),
    [MR_ACC_JOINED] = sizeof(struct mr_acc_joined),
    [MR_ACC_JOINED_ROW] = sizeof(struct mr_acc_joined_row),
    [MR_ACC_JOINED_EDGE_ROW] = sizeof(struct mr_acc_joined_edge_row),
    [MR_ACC_PART] = sizeof(struct mr_acc_part),
    [MR_ACC_SHAPE_PATH_ROW] = sizeof(struct mr_acc_shape_path_row),
    [MR_ACC_EXEMPLAR] = sizeof(struct mr_acc_exemplar),
    [MR_ACC_ASKED] = sizeof(struct mr_acc_asked),
};

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
    return value ? value : fallback;
}

static struct mr_accumulator_limits whole_limits(
    const struct mr_accumulator_limits *limits)
{
    struct mr_accumulator_limits given =
        limits ? *limits : (struct mr_accumulator_limits){0};

    return (struct mr_accumulator_limits){
        .rows_max = or_default(given.rows_max, MR_ACCUMULATOR_ROWS_MAX),
        .paths_max = or_default(given.paths_max, MR_ACCUMULATOR_PATHS_MAX),
        .windows_max = or_default(given.windows_max, MR_ACCUMULATOR_WINDOWS_MAX),
        .part_bytes = or_default(given.part_bytes, MR_ACCUMULATOR_PART_BYTES),
    };
}

static uint32_t set_limit(const struct mr_accumulator *acc, int kind)
{
    if (kind == MR_ACC_COUNTER)
        return MR_ACCUMULATOR_COUNTERS_MAX;
    if (kind == MR_ACC_EXEMPLAR || kind == MR_ACC_ASKED)
        return MR_ACCUMULATOR_EXEMPLARS_MAX;
    return kind < MR_ACC_ROWS ? acc->limits.paths_max : acc->limits.rows_max;
}

enum mr_status mr_accumulator_new(const struct mr_accumulator_limits *limits,
                                  struct mr_accumulator **accumulator)
{
    struct mr_accumulator *acc = calloc(1, sizeof(*acc));

    if (!acc)
        return MR_ENOMEM;
    acc->limits = whole_limits(limits);
    acc->epoch = 1;
    acc->windows = calloc(acc->limits.windows_max, sizeof(*acc->windows));
    if (!acc->windows) {
        free(acc);
        return MR_ENOMEM;
    }
    for (int kind = 0; kind < MR_ACC_SET_COUNT; kind++)
        (void)mr_acc_set_init(&acc->sets[kind], item_sizes[kind], set_limit(acc, kind));
    mr_buffer_init(&acc->part_bytes, MR_ACCUMULATOR_PART_BYTES_MAX);
    *accumulator = acc;
    return MR_OK;
}

static void close_payload(struct mr_accumulator *acc)
{
    if (acc->is_open)
        mr_delta_reader_fini(&acc->reader);
    acc->is_open = acc->has_item = false;
}

/* Histograms live in row memory beyond `count` too: rows of an earlier, larger state. */
static void free_histograms(struct mr_accumulator *acc)
{
    struct mr_acc_set *paths = &acc->sets[MR_ACC_PATH_ROW],
                      *shapes = &acc->sets[MR_ACC_SHAPE_ROW];

    for (uint32_t i = 0; i < paths->capacity; i++)
        mr_histogram_fini(
            &((struct mr_acc_path_row *)mr_acc_at(paths, i))->stats.histogram);
    for (uint32_t i = 0; i < shapes->capacity; i++)
        mr_histogram_fini(
            &((struct mr_acc_shape_row *)mr_acc_at(shapes, i))->stats.histogram);
    mr_acc_free_joined_histograms(acc);
}

void mr_accumulator_free(struct mr_accumulator *acc)
{
    if (!acc)
        return;
    close_payload(acc);
    free_histograms(acc);
    mr_acc_forget_exemplars(acc);
    for (int kind = 0; kind < MR_ACC_SET_COUNT; kind++)
        mr_acc_set_fini(&acc->sets[kind]);
    for (int kind = 0; kind < MR_ACC_ROWS; kind++)
        free(acc->locals[kind].items);
    mr_acc_free_joined(acc);
    free(acc->windows);
    free(acc->chain);
    free(acc->order);
    free(acc->calls);
    free(acc);
}

/* Zero but for the histogram's memory, where that is worth keeping. */
struct mr_histogram mr_acc_cleared(struct mr_histogram *histogram)
{
    if (histogram->capacity > KEPT_BUCKETS || histogram->capacity == 0) {
        mr_histogram_fini(histogram);
        *histogram = MR_HISTOGRAM_EMPTY;
    }
    mr_histogram_clear(histogram);
    return *histogram;
}

static void give_rows_back(struct mr_accumulator *acc)
{
    static const int kinds[] = {MR_ACC_PATH_ROW, MR_ACC_SHAPE_ROW, MR_ACC_JOINED_ROW,
                                MR_ACC_JOINED_EDGE_ROW};

    free_histograms(acc);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        mr_acc_set_fini(&acc->sets[kinds[i]]);
        (void)mr_acc_set_init(&acc->sets[kinds[i]], item_sizes[kinds[i]],
                              set_limit(acc, kinds[i]));
    }
}

static void watch_spare_rows(struct mr_accumulator *acc)
{
    const struct mr_acc_set *rows = &acc->sets[MR_ACC_PATH_ROW];

    acc->spare_resets =
        rows->count < rows->capacity / SPARE_RATIO ? acc->spare_resets + 1 : 0;
    if (acc->spare_resets < SPARE_RESETS)
        return;
    give_rows_back(acc);
    acc->spare_resets = 0;
}

void mr_accumulator_reset(struct mr_accumulator *acc)
{
    watch_spare_rows(acc);
    mr_acc_forget_exemplars(acc);
    for (int kind = 0; kind < MR_ACC_SET_COUNT; kind++)
        mr_acc_set_clear(&acc->sets[kind]);
    acc->nodes.count = 0;
    mr_buffer_clear(&acc->part_bytes);
    acc->window_count = 0;
    acc->epoch = acc->epoch == UINT32_MAX ? 1 : acc->epoch + 1;
    acc->order_count = acc->order_next = 0;
}

void mr_accumulator_release(struct mr_accumulator *acc)
{
    MR_ASSERT(mr_accumulator_is_empty(acc));
    MR_ASSERT(!acc->is_open);
    free_histograms(acc);
    for (int kind = 0; kind < MR_ACC_SET_COUNT; kind++) {
        mr_acc_set_fini(&acc->sets[kind]);
        (void)mr_acc_set_init(&acc->sets[kind], item_sizes[kind], set_limit(acc, kind));
    }
    for (int kind = 0; kind < MR_ACC_ROWS; kind++) {
        free(acc->locals[kind].items);
        acc->locals[kind] = (struct mr_acc_locals){0};
    }
    mr_acc_free_joined(acc);
    free(acc->chain);
    acc->chain = NULL;
    acc->chain_capacity = 0;
    free(acc->calls);
    acc->calls = NULL;
    acc->call_capacity = 0;
    free(acc->order);
    acc->order = NULL;
    acc->order_count = acc->order_next = acc->order_capacity = 0;
    acc->spare_resets = 0;
}

bool mr_accumulator_is_empty(const struct mr_accumulator *acc)
{
    for (int kind = MR_ACC_ROWS; kind < MR_ACC_SET_COUNT; kind++) {
        if (acc->sets[kind].count)
            return false;
    }
    return true;
}

/* Rows. */

enum mr_status mr_acc_admit_window(struct mr_accumulator *acc, uint64_t window)
{
    for (uint32_t i = acc->window_count; i-- > 0;) {
        if (acc->windows[i] == window)
            return MR_OK;
    }
    if (acc->window_count == acc->limits.windows_max)
        return MR_ELIMIT;
    acc->windows[acc->window_count++] = window;
    return MR_OK;
}

static enum mr_status take_row(struct mr_accumulator *acc, enum mr_acc_set_kind kind,
                               uint32_t owner, uint64_t label, void **row, bool *is_new)
{
    uint32_t index;
    enum mr_status status =
        mr_acc_set_take(&acc->sets[kind], (struct mr_id){owner, label}, &index, is_new);

    if (status == MR_OK)
        *row = mr_acc_at(&acc->sets[kind], index);
    return status;
}

static enum mr_status merge_path_stat(struct mr_accumulator *acc,
                                      const struct mr_delta_item *item)
{
    uint32_t path;
    void *at;
    bool is_new;
    struct mr_acc_path_row *row;
    enum mr_status status = mr_acc_intern_path(acc, item->path, &path);

    if (status == MR_OK)
        status = mr_acc_admit_window(acc, item->window);
    if (status == MR_OK)
        status = take_row(acc, MR_ACC_PATH_ROW, path, item->window, &at, &is_new);
    if (status != MR_OK)
        return status;
    row = at;
    if (is_new)
        *row = (struct mr_acc_path_row){.window = item->window,
                                        .path = path,
                                        .stats.histogram =
                                            mr_acc_cleared(&row->stats.histogram)};
    return mr_path_stats_merge(&row->stats, item->path_stats);
}

static enum mr_status merge_shape_stat(struct mr_accumulator *acc,
                                       const struct mr_delta_item *item)
{
    uint32_t shape;
    void *at;
    bool is_new;
    struct mr_acc_shape_row *row;
    enum mr_status status = mr_acc_intern_shape(acc, item->shape, &shape);

    if (status == MR_OK)
        status = mr_acc_admit_window(acc, item->window);
    if (status == MR_OK)
        status = take_row(acc, MR_ACC_SHAPE_ROW, shape, item->window, &at, &is_new);
    if (status != MR_OK)
        return status;
    row = at;
    if (is_new)
        *row = (struct mr_acc_shape_row){.window = item->window,
                                         .shape = shape,
                                         .stats.histogram =
                                             mr_acc_cleared(&row->stats.histogram)};
    return mr_shape_stats_merge(&row->stats, item->shape_stats);
}

static enum mr_status merge_entry_stat(struct mr_accumulator *acc,
                                       const struct mr_delta_item *item)
{
    uint32_t path;
    void *at;
    bool is_new;
    struct mr_acc_entry_row *row;
    enum mr_status status = mr_acc_intern_path(acc, item->path, &path);

    if (status == MR_OK)
        status = mr_acc_admit_window(acc, item->window);
    if (status == MR_OK)
        status = take_row(acc, MR_ACC_ENTRY_ROW, path, item->window, &at, &is_new);
    if (status != MR_OK)
        return status;
    row = at;
    if (is_new)
        *row = (struct mr_acc_entry_row){.window = item->window, .path = path};
    mr_entry_stats_merge(&row->stats, item->entry_stats);
    return MR_OK;
}

static enum mr_status merge_path_counter(struct mr_accumulator *acc,
                                         const struct mr_delta_item *item)
{
    struct mr_acc_path_counter_row *row;
    uint32_t path, counter, index;
    struct mr_id key;
    bool is_new;
    enum mr_status status = mr_acc_intern_path(acc, item->path, &path);

    if (status == MR_OK)
        status = mr_acc_intern_name(acc, MR_ACC_SPAN_COUNTER, item->counter, &counter);
    if (status == MR_OK)
        status = mr_acc_admit_window(acc, item->window);
    if (status != MR_OK)
        return status;
    key = (struct mr_id){(uint64_t)counter << 32 | path, item->window};
    status = mr_acc_set_take(&acc->sets[MR_ACC_PATH_COUNTER_ROW], key, &index, &is_new);
    if (status != MR_OK)
        return status;
    row = mr_acc_at(&acc->sets[MR_ACC_PATH_COUNTER_ROW], index);
    if (is_new)
        *row = (struct mr_acc_path_counter_row){
            .window = item->window, .path = path, .counter = counter};
    mr_counter_stats_merge(&row->stats, item->counter_stats);
    return MR_OK;
}

static enum mr_status merge_ledger(struct mr_accumulator *acc,
                                   const struct mr_delta_item *item)
{
    uint32_t source;
    void *at;
    bool is_new;
    struct mr_acc_ledger_row *row;
    enum mr_status status = mr_acc_intern_name(acc, MR_ACC_SOURCE, item->source, &source);

    if (status == MR_OK)
        status = take_row(acc, MR_ACC_LEDGER_ROW, source, item->stream, &at, &is_new);
    if (status != MR_OK)
        return status;
    row = at;
    if (is_new)
        *row = (struct mr_acc_ledger_row){.source = source, .stream = item->stream};
    mr_ledger_entry_merge(&row->entry, item->ledger);
    return MR_OK;
}

/* An order of paths that does not depend on their numbers: no order of merging matters. */
static bool is_before(struct mr_accumulator *acc, uint32_t a, uint32_t b)
{
    const struct mr_acc_path *left, *right;

    if (a == MR_ACC_NONE || b == MR_ACC_NONE)
        return a != MR_ACC_NONE;
    left = mr_acc_at(&acc->sets[MR_ACC_PATH], a);
    right = mr_acc_at(&acc->sets[MR_ACC_PATH], b);
    return mr_id_compare(left->id, right->id) < 0;
}

static enum mr_status merge_open(struct mr_accumulator *acc,
                                 const struct mr_delta_item *item)
{
    uint32_t path, stack = MR_ACC_NONE;
    void *at;
    bool is_new, is_same;
    struct mr_acc_open *row;
    enum mr_status status = mr_acc_intern_path(acc, item->path, &path);

    if (status == MR_OK && item->stack != MR_DELTA_NONE)
        status = mr_acc_intern_path(acc, item->stack, &stack);
    if (status == MR_OK)
        status = take_row(acc, MR_ACC_OPEN, path, 0, &at, &is_new);
    if (status != MR_OK)
        return status;
    row = at;
    if (is_new)
        *row = (struct mr_acc_open){.path = path, .stack = MR_ACC_NONE};
    is_same = row->stats.count > 0 && item->open->count > 0 &&
              row->stats.oldest_ns == item->open->oldest_ns &&
              row->stats.since_ns == item->open->since_ns;
    if (mr_open_stats_merge(&row->stats, item->open) ||
        (is_same && is_before(acc, stack, row->stack)))
        row->stack = stack;
    return MR_OK;
}

static enum mr_status merge_counter(struct mr_accumulator *acc,
                                    const struct mr_delta_item *item)
{
    struct mr_id key = mr_hash128(mr_span_of_text(item->name));
    struct mr_acc_counter *counter;
    uint32_t index;
    bool is_new;
    enum mr_status status =
        mr_acc_set_take(&acc->sets[MR_ACC_COUNTER], key, &index, &is_new);

    if (status != MR_OK)
        return status;
    counter = mr_acc_at(&acc->sets[MR_ACC_COUNTER], index);
    if (is_new) {
        *counter = (struct mr_acc_counter){.key = key};
        memcpy(counter->name, item->name, sizeof(counter->name));
    }
    counter->value = mr_sum(counter->value, item->value);
    return MR_OK;
}

/* Names are taken in any case: rows that are chosen count them. */
static bool is_chosen(enum mr_accumulator_choice choice, enum mr_delta_tag tag)
{
    switch (choice) {
    case MR_ACCUMULATE_OPEN:
        return tag <= MR_DELTA_PATH || tag == MR_DELTA_OPEN;
    case MR_ACCUMULATE_NOT_OPEN:
        return tag != MR_DELTA_OPEN;
    case MR_ACCUMULATE_ALL:
        break;
    }
    return true;
}

static enum mr_status merge_item(struct mr_accumulator *acc,
                                 const struct mr_delta_item *item)
{
    if (!is_chosen(acc->choice, item->tag))
        return MR_OK;
    switch (item->tag) {
    case MR_DELTA_HEAD: /* the next one's is written by who writes */
        return MR_OK;
    case MR_DELTA_SITE:
        return mr_acc_add_local(acc, MR_ACC_SITE, (struct mr_acc_local){.id = item->id});
    case MR_DELTA_SCOPE:
        return mr_acc_add_local(acc, MR_ACC_SCOPE, (struct mr_acc_local){.id = item->id});
    case MR_DELTA_SOURCE:
        return mr_acc_add_local(acc, MR_ACC_SOURCE,
                                (struct mr_acc_local){.id = item->id});
    case MR_DELTA_SPAN_COUNTER:
        return mr_acc_add_local(acc, MR_ACC_SPAN_COUNTER,
                                (struct mr_acc_local){.id = item->id});
    case MR_DELTA_PATH:
        return mr_acc_add_path(acc, item);
    case MR_DELTA_SHAPE:
        return mr_acc_add_local(acc, MR_ACC_SHAPE,
                                (struct mr_acc_local){.scope = item->scope,
                                                      .path = item->path,
                                                      .id = item->id});
    case MR_DELTA_PATH_STAT:
        return merge_path_stat(acc, item);
    case MR_DELTA_SHAPE_STAT:
        return merge_shape_stat(acc, item);
    case MR_DELTA_ENTRY_STAT:
        return merge_entry_stat(acc, item);
    case MR_DELTA_LEDGER:
        return merge_ledger(acc, item);
    case MR_DELTA_OPEN:
        return merge_open(acc, item);
    case MR_DELTA_COUNTER:
        return merge_counter(acc, item);
    case MR_DELTA_PATH_COUNTER:
        return merge_path_counter(acc, item);
    case MR_DELTA_PART:
        return mr_acc_merge_part(acc, item);
    case MR_DELTA_JOINED:
        return mr_acc_add_joined(acc, item);
    case MR_DELTA_JOINED_STAT:
        return mr_acc_merge_joined_stat(acc, item);
    case MR_DELTA_JOINED_EDGE:
        return mr_acc_merge_joined_edge(acc, item);
    case MR_DELTA_EXEMPLAR:
        return mr_acc_merge_exemplar(acc, item);
    case MR_DELTA_ASKED:
        return mr_acc_merge_asked(acc, item);
    case MR_DELTA_SHAPE_PATH:
        return mr_acc_merge_shape_path(acc, item);
    }
    return MR_OK;
}

void mr_accumulator_open(struct mr_accumulator *acc, struct mr_span payload)
{
    close_payload(acc);
    mr_delta_reader_init(&acc->reader, payload);
    acc->is_open = true;
    acc->choice = MR_ACCUMULATE_ALL;
    for (int kind = 0; kind < MR_ACC_ROWS; kind++)
        acc->locals[kind].count = 0;
    acc->local_nodes.count = 0;
}

void mr_accumulator_choose(struct mr_accumulator *acc, enum mr_accumulator_choice choice)
{
    MR_ASSERT(acc->is_open);
    acc->choice = choice;
}

/* The item that waits. MR_AGAIN: it would fit if the state were written. */
static enum mr_status settle_item(struct mr_accumulator *acc)
{
    enum mr_status status = merge_item(acc, &acc->item);
    bool is_beyond = status == MR_ELIMIT || status == MR_EUSAGE;

    if (status == MR_ELIMIT && !mr_accumulator_is_empty(acc))
        return MR_AGAIN;
    if (status == MR_ELIMIT)
        mr_accumulator_reset(acc); /* of names that this item alone brought */
    acc->stats.over_limit += is_beyond;
    acc->has_item = false;
    if (is_beyond)
        status = MR_OK;
    acc->stats.items += status == MR_OK;
    return status;
}

enum mr_status mr_accumulator_merge(struct mr_accumulator *acc, struct mr_error *error)
{
    enum mr_status status = MR_OK;

    MR_ASSERT(acc->is_open);
    while (status == MR_OK) {
        if (acc->has_item)
            status = settle_item(acc);
        if (status == MR_OK) {
            status = mr_delta_next(&acc->reader, &acc->item);
            acc->has_item = status == MR_OK;
        }
    }
    if (status == MR_AGAIN)
        return status;
    acc->stats.unknown += acc->reader.unknown;
    acc->stats.payloads += status == MR_END;
    if (status != MR_END)
        (void)mr_error_set(error, status, "%s",
                           acc->reader.error.status != MR_OK ? acc->reader.error.text
                                                             : mr_status_text(status));
    close_payload(acc);
    return status == MR_END ? MR_OK : status;
}

void mr_accumulator_stats(const struct mr_accumulator *acc,
                          struct mr_accumulator_stats *stats)
{
    *stats = acc->stats;
    stats->windows = acc->window_count;
    stats->paths = acc->sets[MR_ACC_PATH].count;
    for (int kind = MR_ACC_ROWS; kind < MR_ACC_SET_COUNT; kind++)
        stats->rows += acc->sets[kind].count;
}
