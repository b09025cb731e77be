/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "net/delta.h"
#include "net/ids.h"
#include "net/varint.h"

/*
 * An item is written behind a gap for its tag and a size of one byte; a longer size moves it. A small one has at most
 * 12 numbers and a window and an index (entry stat), or 2 per loss reason and 5 (ledger).
 */
enum { TAG_SIZE = 1, GAP = 2, ID_SIZE = 16, SMALL_MAX = 256 };

/* Where the item's fields go, with room for `max` bytes of them; NULL when the writer has failed. */
static uint8_t *begin_item(struct mr_delta_writer *w, size_t max)
{
    uint8_t *at = NULL;

    if (w->status == MR_OK)
        w->status = mr_buffer_reserve(w->out, TAG_SIZE + MR_VARINT_MAX + max, &at);
    return w->status == MR_OK ? at + GAP : NULL;
}

static void end_item(struct mr_delta_writer *w, enum mr_delta_tag tag, uint8_t *fields,
                     const uint8_t *end)
{
    size_t size = (size_t)(end - fields), header = TAG_SIZE + mr_varint_size(size);
    uint8_t *start = fields - GAP;

    if (header != GAP)
        memmove(start + header, fields, size);
    *start = (uint8_t)tag;
    (void)mr_varint_put(start + TAG_SIZE, size);
    mr_buffer_commit(w->out, header + size);
}

static void put_id_item(struct mr_delta_writer *w, enum mr_delta_tag tag, struct mr_id id)
{
    uint8_t *fields = begin_item(w, SMALL_MAX);

    if (!fields)
        return;
    mr_id_put(id, fields);
    end_item(w, tag, fields, fields + ID_SIZE);
}

void mr_delta_begin(struct mr_delta_writer *w, struct mr_buffer *out)
{
    *w = (struct mr_delta_writer){.out = out, .status = MR_OK};
}

enum mr_status mr_delta_status(const struct mr_delta_writer *w)
{
    return w->status;
}

void mr_delta_head(struct mr_delta_writer *w, uint32_t level, uint64_t created_ns)
{
    uint8_t *fields = begin_item(w, SMALL_MAX);

    if (fields)
        end_item(w, MR_DELTA_HEAD, fields,
                 mr_varint_put(mr_varint_put(fields, level), created_ns));
}

bool mr_delta_restamp(uint8_t *payload, size_t size, uint64_t created_ns)
{
    struct mr_span rest = mr_span_of(payload, size), whole, fields;
    uint64_t tag, level, before;

    if (!mr_delta_skip(&rest, &tag, &whole, &fields) || tag != MR_DELTA_HEAD ||
        !mr_varint_get(&fields, &level))
        return false;
    rest = fields;
    if (!mr_varint_get(&rest, &before) ||
        mr_varint_size(before) != mr_varint_size(created_ns))
        return false;
    (void)mr_varint_put(payload + ((const uint8_t *)fields.data - payload), created_ns);
    return true;
}

uint32_t mr_delta_site(struct mr_delta_writer *w, struct mr_id id)
{
    put_id_item(w, MR_DELTA_SITE, id);
    return w->sites++;
}

uint32_t mr_delta_scope(struct mr_delta_writer *w, struct mr_id id)
{
    put_id_item(w, MR_DELTA_SCOPE, id);
    return w->scopes++;
}

uint32_t mr_delta_source(struct mr_delta_writer *w, struct mr_id id)
{
    put_id_item(w, MR_DELTA_SOURCE, id);
    return w->sources++;
}

uint32_t mr_delta_path(struct mr_delta_writer *w, uint32_t parent, uint32_t scope,
                       uint32_t site, uint32_t flags)
{
    uint8_t *fields = begin_item(w, SMALL_MAX), *at = fields;
    bool is_top = parent == MR_DELTA_NONE;

    MR_ASSERT((is_top || parent < w->paths) && (!is_top || scope < w->scopes) &&
              site < w->sites);
    if (fields) {
        at = mr_varint_put(at, is_top ? 0 : (uint64_t)parent + 1);
        at = mr_varint_put(at, is_top ? scope : 0);
        at = mr_varint_put(at, site);
        at = mr_varint_put(at, flags);
        end_item(w, MR_DELTA_PATH, fields, at);
    }
    return w->paths++;
}

uint32_t mr_delta_shape(struct mr_delta_writer *w, uint32_t scope, uint32_t path,
                        struct mr_id node)
{
    uint8_t *fields = begin_item(w, SMALL_MAX), *at = fields;

    MR_ASSERT(scope < w->scopes && path < w->paths);
    if (fields) {
        at = mr_varint_put(mr_varint_put(at, scope), path);
        mr_id_put(node, at);
        end_item(w, MR_DELTA_SHAPE, fields, at + ID_SIZE);
    }
    return w->shapes++;
}

static uint8_t *put_times(uint8_t *at, const struct mr_times *times)
{
    at = mr_varint_put(at, times->sum);
    at = mr_varint_put(at, times->min);
    return mr_varint_put(at, times->max);
}

void mr_delta_path_stat(struct mr_delta_writer *w, uint32_t path, uint64_t window,
                        const struct mr_path_stats *stats)
{
    size_t max = SMALL_MAX + MR_HISTOGRAM_SIZE_MAX(stats->histogram.count);
    uint8_t *fields = begin_item(w, max), *at = fields;

    MR_ASSERT(path < w->paths);
    if (!fields)
        return;
    at = mr_varint_put(mr_varint_put(at, path), window);
    at = mr_varint_put(at, stats->ok);
    at = mr_varint_put(at, stats->failed);
    at = mr_varint_put(at, stats->incomplete);
    at = put_times(at, &stats->self);
    at = put_times(at, &stats->total);
    end_item(w, MR_DELTA_PATH_STAT, fields, mr_histogram_put_raw(&stats->histogram, at));
}

void mr_delta_shape_stat(struct mr_delta_writer *w, uint32_t shape, uint64_t window,
                         const struct mr_shape_stats *stats)
{
    size_t max = SMALL_MAX + MR_HISTOGRAM_SIZE_MAX(stats->histogram.count);
    uint8_t *fields = begin_item(w, max), *at = fields;

    MR_ASSERT(shape < w->shapes);
    if (!fields)
        return;
    at = mr_varint_put(mr_varint_put(at, shape), window);
    at = mr_varint_put(at, stats->ok);
    at = mr_varint_put(at, stats->failed);
    at = mr_varint_put(at, stats->calls);
    at = mr_varint_put(at, stats->folded);
    at = mr_varint_put(at, stats->first_ns);
    at = mr_varint_put(at, stats->last_ns);
    at = put_times(at, &stats->time);
    end_item(w, MR_DELTA_SHAPE_STAT, fields, mr_histogram_put_raw(&stats->histogram, at));
}

void mr_delta_entry_stat(struct mr_delta_writer *w, uint32_t path, uint64_t window,
                         const struct mr_entry_stats *stats)
{
    uint8_t *fields = begin_item(w, SMALL_MAX), *at = fields;

    MR_ASSERT(path < w->paths);
    if (!fields)
        return;
    at = mr_varint_put(mr_varint_put(at, path), window);
    for (int i = 0; i < MR_COVERAGE_COUNT; i++) {
        at = mr_varint_put(at, stats->traces[i]);
        at = mr_varint_put(at, stats->calls[i]);
        at = mr_varint_put(at, stats->time_ns[i]);
    }
    end_item(w, MR_DELTA_ENTRY_STAT, fields, at);
}

/* Reasons of which nothing was lost are left out. */
static uint8_t *put_losses(uint8_t *at, const uint64_t lost[MR_LOSS_REASON_COUNT])
{
    uint32_t count = 0;

    for (uint32_t i = 1; i < MR_LOSS_REASON_COUNT; i++)
        count += lost[i] != 0;
    at = mr_varint_put(at, count);
    for (uint32_t i = 1; i < MR_LOSS_REASON_COUNT; i++) {
        if (lost[i])
            at = mr_varint_put(mr_varint_put(at, i), lost[i]);
    }
    return at;
}

void mr_delta_ledger(struct mr_delta_writer *w, uint32_t source, uint32_t stream,
                     const struct mr_ledger_entry *entry)
{
    uint8_t *fields = begin_item(w, SMALL_MAX), *at = fields;

    MR_ASSERT(source < w->sources);
    if (!fields)
        return;
    at = mr_varint_put(mr_varint_put(at, source), stream);
    at = mr_varint_put(at, entry->last);
    at = mr_varint_put(at, entry->reduced);
    at = mr_zigzag_put(at, entry->held);
    end_item(w, MR_DELTA_LEDGER, fields, put_losses(at, entry->lost));
}

void mr_delta_open(struct mr_delta_writer *w, uint32_t path, uint32_t stack,
                   const struct mr_open_stats *stats)
{
    uint8_t *fields = begin_item(w, SMALL_MAX), *at = fields;

    MR_ASSERT(path < w->paths && (stack == MR_DELTA_NONE || stack < w->paths));
    if (!fields)
        return;
    at = mr_varint_put(mr_varint_put(at, path), stats->oldest_ns);
    at = mr_varint_put(at, stats->count);
    at = mr_varint_put(at, stack == MR_DELTA_NONE ? 0 : (uint64_t)stack + 1);
    at = mr_varint_put(mr_varint_put(at, stats->since_ns), MR_OPEN_AGES);
    for (size_t i = 0; i < MR_OPEN_AGES; i++)
        at = mr_varint_put(at, stats->ages[i]);
    end_item(w, MR_DELTA_OPEN, fields, at);
}

void mr_delta_counter(struct mr_delta_writer *w, const char *name, uint64_t value)
{
    uint8_t *fields = begin_item(w, SMALL_MAX), *at = fields;
    struct mr_span text = mr_span_of_text(name);

    MR_ASSERT(text.size < MR_DELTA_COUNTER_NAME_MAX);
    if (!fields)
        return;
    at = mr_varint_put(at, text.size);
    memcpy(at, text.data, text.size);
    end_item(w, MR_DELTA_COUNTER, fields, mr_varint_put(at + text.size, value));
}

uint32_t mr_delta_span_counter(struct mr_delta_writer *w, struct mr_id id)
{
    put_id_item(w, MR_DELTA_SPAN_COUNTER, id);
    return w->span_counters++;
}

void mr_delta_path_counter(struct mr_delta_writer *w, uint32_t path, uint64_t window,
                           uint32_t counter, const struct mr_counter_stats *stats)
{
    uint8_t *fields = begin_item(w, SMALL_MAX), *at = fields;

    MR_ASSERT(path < w->paths && counter < w->span_counters);
    if (!fields)
        return;
    at = mr_varint_put(mr_varint_put(at, path), window);
    at = mr_varint_put(at, counter);
    at = mr_varint_put(mr_varint_put(at, stats->calls), stats->backward);
    at = put_times(at, &stats->self);
    end_item(w, MR_DELTA_PATH_COUNTER, fields, put_times(at, &stats->total));
}

void mr_delta_part(struct mr_delta_writer *w, const struct mr_part *part)
{
    uint8_t *fields = begin_item(w, MR_PART_SIZE_MAX);

    if (fields)
        end_item(w, MR_DELTA_PART, fields, mr_part_put(part, fields));
}

uint32_t mr_delta_joined(struct mr_delta_writer *w, struct mr_id id,
                         const struct mr_joined_node *nodes, uint32_t count)
{
    uint8_t *fields = begin_item(w, MR_JOINED_SIZE_MAX);

    if (fields)
        end_item(w, MR_DELTA_JOINED, fields, mr_joined_put(id, nodes, count, fields));
    return w->joined++;
}

void mr_delta_joined_stat(struct mr_delta_writer *w, uint32_t joined, uint64_t window,
                          const struct mr_joined_stats *stats)
{
    size_t max = SMALL_MAX + MR_HISTOGRAM_SIZE_MAX(stats->histogram.count);
    uint8_t *fields = begin_item(w, max), *at = fields;

    MR_ASSERT(joined < w->joined);
    if (!fields)
        return;
    at = mr_varint_put(mr_varint_put(at, joined), window);
    at = mr_varint_put(mr_varint_put(at, stats->ok), stats->failed);
    at = mr_varint_put(at, stats->incomplete);
    at = mr_varint_put(mr_varint_put(at, stats->first_ns), stats->last_ns);
    at = put_times(at, &stats->time);
    mr_id_put(stats->slowest, at);
    end_item(w, MR_DELTA_JOINED_STAT, fields,
             mr_histogram_put_raw(&stats->histogram, at + ID_SIZE));
}

void mr_delta_joined_edge(struct mr_delta_writer *w, uint32_t joined, uint64_t window,
                          uint32_t place, const struct mr_edge_stats *stats)
{
    size_t max = SMALL_MAX + MR_HISTOGRAM_SIZE_MAX(stats->histogram.count);
    uint8_t *fields = begin_item(w, max), *at = fields;

    MR_ASSERT(joined < w->joined && place > 0 && place < MR_JOINED_NODES_MAX);
    if (!fields)
        return;
    at = mr_varint_put(mr_varint_put(at, joined), window);
    at = mr_varint_put(at, place);
    at = mr_varint_put(mr_varint_put(at, stats->count), stats->clamped);
    at = put_times(at, &stats->time);
    end_item(w, MR_DELTA_JOINED_EDGE, fields,
             mr_histogram_put_raw(&stats->histogram, at));
}

/* Whose it is; the byte behind it. */
static uint8_t *put_exemplar_of(const struct mr_delta_writer *w, uint8_t *at,
                                uint32_t path, uint32_t shape)
{
    MR_ASSERT(path < w->paths && (shape == MR_DELTA_NONE || shape < w->shapes));
    at = mr_varint_put(at, path);
    return mr_varint_put(at, shape == MR_DELTA_NONE ? 0 : (uint64_t)shape + 1);
}

/* What stands behind its reasons. */
static uint8_t *put_exemplar_body(const struct mr_delta_writer *w, uint8_t *at,
                                  uint32_t source, const struct mr_exemplar *exemplar)
{
    MR_ASSERT(source < w->sources && exemplar->call_count > 0);
    at = mr_varint_put(at, exemplar->status);
    at = mr_varint_put(mr_varint_put(at, source), exemplar->stream);
    at = mr_varint_put(mr_varint_put(at, exemplar->before), exemplar->start_ns);
    return mr_exemplar_put_calls(exemplar, mr_varint_put(at, exemplar->calls));
}

void mr_delta_exemplar(struct mr_delta_writer *w, uint32_t path, uint32_t shape,
                       uint32_t source, const struct mr_exemplar *exemplar)
{
    size_t max = SMALL_MAX + MR_EXEMPLAR_BYTES_MAX(exemplar->call_count);
    uint8_t *fields = begin_item(w, max), *at = fields;

    if (!fields)
        return;
    at = mr_varint_put(put_exemplar_of(w, at, path, shape), exemplar->why);
    end_item(w, MR_DELTA_EXEMPLAR, fields, put_exemplar_body(w, at, source, exemplar));
}

void mr_delta_asked(struct mr_delta_writer *w, struct mr_id request, uint32_t wanted,
                    uint32_t path, uint32_t shape, uint32_t source,
                    const struct mr_exemplar *exemplar)
{
    size_t max = SMALL_MAX + MR_EXEMPLAR_BYTES_MAX(exemplar->call_count);
    uint8_t *fields = begin_item(w, max), *at = fields;

    MR_ASSERT(!mr_id_is_zero(request) && wanted > 0);
    if (!fields)
        return;
    mr_id_put(request, at);
    at = put_exemplar_of(w, mr_varint_put(at + ID_SIZE, wanted), path, shape);
    end_item(w, MR_DELTA_ASKED, fields, put_exemplar_body(w, at, source, exemplar));
}

void mr_delta_shape_path(struct mr_delta_writer *w, uint32_t shape, uint32_t path,
                         const struct mr_shape_path_stats *stats)
{
    uint8_t *fields = begin_item(w, SMALL_MAX), *at = fields;

    MR_ASSERT(shape < w->shapes && path < w->paths);
    if (!fields)
        return;
    at = mr_varint_put(mr_varint_put(at, shape), path);
    at = mr_varint_put(mr_varint_put(at, stats->ok), stats->failed);
    at = put_times(at, &stats->self);
    end_item(w, MR_DELTA_SHAPE_PATH, fields, put_times(at, &stats->total));
}
