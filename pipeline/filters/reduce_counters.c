/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters on spans: what each path gained of each counter, as totals and as what its own code gained.
 *
 * A value belongs to the call event before it on its stream, so a call is settled when the next event comes: what has no
 * value at its enter or its exit is transparent, and hands what its children gained to its caller.
 *
 *     OPEN a    VALUE 10               a entered at 10
 *     OPEN b                           (not counted)
 *     OPEN c    VALUE 12
 *     CLOSE c   VALUE 15               c: total 3, self 3;   b's children: 3
 *     CLOSE b                          nothing;              a's children: 3
 *     CLOSE a   VALUE 20               a: total 10, self 7
 *
 * A value below the one at the enter, or children that gained more than their caller, are a counter that ran backwards: the
 * call is counted as that and nothing is added. Rows live from one delta to the next, at most as many as there may be paths.
 */
#include <string.h>

#include "base/assert.h"
#include "pipeline/filters/reduce_private.h"

#define SLOTS_FIRST 256u
#define ALL_COUNTERS ((1u << MR_SOURCE_COUNTERS_MAX) - 1)

static uint32_t hash_of(uint32_t path, uint32_t counter, uint32_t window)
{
    uint64_t mix = ((uint64_t)path << 32 | window) * UINT64_C(0x9e3779b97f4a7c15);

    mix = (mix ^ mix >> 29 ^ counter) * UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(mix >> 32);
}

static uint32_t *slot_of(const struct mr_count_rows *rows, uint32_t path,
                         uint32_t counter, uint32_t window)
{
    uint32_t at = hash_of(path, counter, window) & rows->slot_mask;

    for (; rows->slots[at]; at = (at + 1) & rows->slot_mask) {
        const struct mr_count_row *row = &rows->items[rows->slots[at] - 1];

        if (row->path == path && row->counter == counter && row->window == window)
            break;
    }
    return &rows->slots[at];
}

static bool grow(struct mr_count_rows *rows)
{
    uint32_t slot_count = rows->slots ? 2 * (rows->slot_mask + 1) : SLOTS_FIRST;
    struct mr_count_row *items = realloc(rows->items, slot_count / 2 * sizeof(*items));
    uint32_t *slots;

    if (!items)
        return false;
    rows->items = items;
    slots = calloc(slot_count, sizeof(*slots));
    if (!slots)
        return false;
    free(rows->slots);
    rows->slots = slots;
    rows->slot_mask = slot_count - 1;
    rows->capacity = slot_count / 2;
    for (uint32_t i = 0; i < rows->count; i++)
        *slot_of(rows, items[i].path, items[i].counter, items[i].window) = i + 1;
    return true;
}

/* The row of a path in the window in which its call ended; NULL without memory. */
static struct mr_count_row *row_of(struct mr_count_rows *rows, uint32_t path,
                                   uint32_t counter, uint32_t window)
{
    uint32_t *slot;

    if (rows->count == rows->capacity && !grow(rows))
        return NULL;
    slot = slot_of(rows, path, counter, window);
    if (*slot == 0) {
        rows->items[rows->count++] =
            (struct mr_count_row){.path = path, .counter = counter, .window = window};
        *slot = rows->count;
    }
    return &rows->items[*slot - 1];
}

void mr_reduce_counters_clear(struct mr_reduce *reduce)
{
    struct mr_count_rows *rows = &reduce->count_rows;

    if (rows->count)
        memset(rows->slots, 0, ((size_t)rows->slot_mask + 1) * sizeof(*rows->slots));
    rows->count = 0;
}

void mr_reduce_counters_fini(struct mr_reduce *reduce)
{
    free(reduce->count_rows.items);
    free(reduce->count_rows.slots);
}

enum mr_status mr_reduce_counts_new(struct mr_reduce_stream *stream)
{
    stream->counts = calloc(1, sizeof(*stream->counts));
    if (!stream->counts)
        return MR_ENOMEM;
    for (uint32_t i = 0; i < MR_SOURCE_COUNTERS_MAX; i++)
        stream->counts->counter[i] = MR_REDUCE_COUNTER_NONE;
    return MR_OK;
}

void mr_reduce_counts_free(struct mr_reduce_stream *stream)
{
    if (stream->counts)
        free(stream->counts->calls);
    free(stream->counts);
    stream->counts = NULL;
}

/* The lane's number of the source's counter `place`; NONE past the limit. */
static uint32_t counter_of(struct mr_reduce *reduce,
                           const struct mr_reduce_stream *stream, uint32_t place)
{
    struct mr_id id = stream->stream->source->counter_ids[place];
    uint32_t at;

    for (at = 0; at < reduce->span_counter_count; at++)
        if (mr_id_equal(reduce->span_counters[at].id, id))
            return at;
    if (at == MR_REDUCE_SPAN_COUNTERS_MAX)
        return MR_REDUCE_COUNTER_NONE;
    reduce->span_counters[reduce->span_counter_count++] =
        (struct mr_span_counter_index){.id = id};
    return at;
}

static void add_to_caller(struct mr_reduce_stream *stream, uint32_t place, uint64_t gain)
{
    if (stream->depth > 0)
        stream->counts->calls[stream->depth - 1].children[place] += gain;
}

void mr_reduce_counts_settle(struct mr_reduce_stream *stream)
{
    struct mr_reduce_counts *counts = stream->counts;

    if (counts->last == MR_COUNTS_CLOSED)
        for (uint32_t i = 0; i < MR_SOURCE_COUNTERS_MAX; i++)
            if (counts->missing & 1u << i)
                add_to_caller(stream, i, counts->calls[stream->depth].children[i]);
    counts->last = MR_COUNTS_NONE;
}

enum mr_status mr_reduce_counts_open(struct mr_reduce_stream *stream)
{
    struct mr_reduce_counts *counts = stream->counts;

    MR_ASSERT(stream->depth > 0);
    if (counts->capacity < stream->capacity) {
        struct mr_open_counts *grown =
            realloc(counts->calls, stream->capacity * sizeof(*grown));

        if (!grown)
            return MR_ENOMEM;
        counts->calls = grown;
        counts->capacity = stream->capacity;
    }
    counts->calls[stream->depth - 1] = (struct mr_open_counts){.entered = 0};
    counts->last = MR_COUNTS_OPENED;
    return MR_OK;
}

void mr_reduce_counts_close(const struct mr_reduce *reduce,
                            struct mr_reduce_stream *stream, uint32_t path)
{
    struct mr_reduce_counts *counts = stream->counts;

    counts->last = MR_COUNTS_CLOSED;
    counts->missing = ALL_COUNTERS;
    counts->path = path;
    counts->window = reduce->window;
}

/* `total` is what the call that closed gained, if `is_sound`. */
static enum mr_status count_call(struct mr_reduce *reduce,
                                 struct mr_reduce_stream *stream, uint32_t place,
                                 uint64_t total, bool is_sound)
{
    struct mr_reduce_counts *counts = stream->counts;
    uint64_t children = counts->calls[stream->depth].children[place];
    struct mr_count_row *row;

    is_sound = is_sound && children <= total;
    add_to_caller(stream, place, is_sound ? total : children);
    if (counts->path == MR_PATH_NONE)
        return MR_OK;
    if (reduce->count_rows.count >= reduce->config->paths_max) {
        enum mr_status status = mr_reduce_flush(reduce);

        mr_counters_add(&reduce->counters, MR_REDUCE_EARLY, 1);
        if (status != MR_OK)
            return status;
    }
    row =
        row_of(&reduce->count_rows, counts->path, counts->counter[place], counts->window);
    if (!row)
        return MR_ENOMEM;
    if (!is_sound) {
        row->stats.backward++;
        return MR_OK;
    }
    mr_times_add(&row->stats.total, total, row->stats.calls == 0);
    mr_times_add(&row->stats.self, total - children, row->stats.calls == 0);
    row->stats.calls++;
    return MR_OK;
}

static enum mr_status close_value(struct mr_reduce *reduce,
                                  struct mr_reduce_stream *stream, uint32_t place,
                                  uint64_t value)
{
    struct mr_reduce_counts *counts = stream->counts;
    const struct mr_open_counts *call = &counts->calls[stream->depth];

    if (!(call->entered & 1u << place) || !(counts->missing & 1u << place))
        return MR_OK; /* settled as transparent with the next event */
    counts->missing &= ~(1u << place);
    return count_call(reduce, stream, place, value - call->enter[place],
                      value >= call->enter[place]);
}

enum mr_status mr_reduce_counts_value(struct mr_reduce *reduce,
                                      struct mr_reduce_stream *stream,
                                      const struct mr_event *event)
{
    struct mr_reduce_counts *counts = stream->counts;
    uint32_t place = event->site;

    MR_ASSERT(place < MR_SOURCE_COUNTERS_MAX);
    if (counts && counts->counter[place] == MR_REDUCE_COUNTER_NONE)
        counts->counter[place] = counter_of(reduce, stream, place);
    if (!counts || counts->last == MR_COUNTS_NONE ||
        counts->counter[place] == MR_REDUCE_COUNTER_NONE) {
        mr_counters_add(&reduce->counters, MR_REDUCE_VALUES_ALONE, 1);
        return MR_OK;
    }
    if (counts->last == MR_COUNTS_CLOSED)
        return close_value(reduce, stream, place, event->ns);
    counts->calls[stream->depth - 1].enter[place] = event->ns;
    counts->calls[stream->depth - 1].entered |= 1u << place;
    return MR_OK;
}
