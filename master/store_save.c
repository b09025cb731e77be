/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checkpoint: every record that a generation after the last checkpoint made goes
 * into its row, whole. Records name their generation, so what did not change is not
 * even visited (master/cow.h).
 */
#include "base/compiler.h"
#include "master/store_private.h"
#include "net/ids.h"

struct save {
    const struct mr_model_root *root;
    struct mr_sql sql;
    struct mr_buffer bytes; /* scratch: histograms, children */
    uint64_t window, since, rows;
    mr_cow_each *each_point;
    struct mr_error *error;
};

static enum mr_status run(struct save *save)
{
    save->rows++;
    return mr_sql_run(&save->sql, save->error);
}

static void put_times(struct mr_sql *sql, const struct mr_times *times)
{
    mr_sql_u64(sql, times->sum);
    mr_sql_u64(sql, times->min);
    mr_sql_u64(sql, times->max);
}

/* Binds the histogram; its bytes lie in the scratch buffer until the statement ran. */
static enum mr_status put_histogram(struct save *save, const struct mr_histogram *h)
{
    mr_buffer_clear(&save->bytes);
    enum mr_status status = mr_histogram_put(h, &save->bytes);
    if (status == MR_OK)
        mr_sql_blob(&save->sql, mr_buffer_span(&save->bytes));
    return status;
}

static enum mr_status save_site(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_site *site = record;

    mr_sql_u64(&save->sql, index);
    mr_sql_id(&save->sql, site->id);
    mr_sql_u64(&save->sql, site->known);
    mr_sql_u64(&save->sql, site->type);
    mr_sql_u64(&save->sql, site->quality);
    mr_sql_text(&save->sql, site->module);
    mr_sql_blob(&save->sql, mr_span_of(site->build_id, site->build_id_size));
    mr_sql_u64(&save->sql, site->offset);
    mr_sql_text(&save->sql, site->name);
    mr_sql_text(&save->sql, site->file);
    mr_sql_u64(&save->sql, site->line);
    return run(save);
}

static enum mr_status save_scope(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_scope *scope = record;

    mr_sql_u64(&save->sql, index);
    mr_sql_id(&save->sql, scope->id);
    mr_sql_u64(&save->sql, scope->known);
    mr_sql_text(&save->sql, scope->app);
    mr_sql_text(&save->sql, scope->version);
    mr_sql_text(&save->sql, scope->host);
    return run(save);
}

static enum mr_status save_source(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_source *source = record;

    mr_sql_u64(&save->sql, index);
    mr_sql_id(&save->sql, source->id);
    mr_sql_u64(&save->sql, source->known);
    mr_sql_index(&save->sql, source->scope);
    mr_sql_id(&save->sql, source->worker);
    mr_sql_text(&save->sql, source->host);
    mr_sql_u64(&save->sql, source->pid);
    mr_sql_text(&save->sql, source->app);
    mr_sql_text(&save->sql, source->version);
    mr_sql_text(&save->sql, source->exe);
    mr_sql_u64(&save->sql, source->start_ns);
    mr_sql_u64(&save->sql, source->end_ns);
    mr_sql_u64(&save->sql, source->clock);
    mr_sql_u64(&save->sql, source->state);
    mr_sql_u64(&save->sql, source->policy);
    return run(save);
}

static enum mr_status save_stream(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_stream *stream = record;

    mr_sql_u64(&save->sql, index);
    mr_sql_u64(&save->sql, stream->source);
    mr_sql_u64(&save->sql, stream->stream);
    mr_sql_u64(&save->sql, stream->entry.last);
    mr_sql_u64(&save->sql, stream->entry.reduced);
    mr_sql_u64(&save->sql, (uint64_t)stream->entry.held);
    for (uint32_t reason = 1; reason < MR_LOSS_REASON_COUNT; reason++)
        mr_sql_u64(&save->sql, stream->entry.lost[reason]);
    return run(save);
}

static enum mr_status save_path(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_path *path = record;

    mr_sql_u64(&save->sql, index);
    mr_sql_id(&save->sql, path->id);
    mr_sql_index(&save->sql, path->parent);
    mr_sql_u64(&save->sql, path->scope);
    mr_sql_u64(&save->sql, path->site);
    mr_sql_u64(&save->sql, path->flags & MR_DELTA_PATH_OUTER);
    return run(save);
}

static enum mr_status save_path_stats(struct save *save,
                                      const struct mr_path_stats *stats)
{
    mr_sql_u64(&save->sql, stats->ok);
    mr_sql_u64(&save->sql, stats->failed);
    mr_sql_u64(&save->sql, stats->incomplete);
    put_times(&save->sql, &stats->self);
    put_times(&save->sql, &stats->total);
    enum mr_status status = put_histogram(save, &stats->histogram);
    return status == MR_OK ? run(save) : status;
}

static enum mr_status save_path_total(void *context, uint32_t index, const void *record)
{
    struct save *save = context;

    mr_sql_u64(&save->sql, index);
    return save_path_stats(save, &((const struct mr_model_path_stat *)record)->stats);
}

static enum mr_status save_path_point(void *context, uint32_t index, const void *record)
{
    struct save *save = context;

    mr_sql_u64(&save->sql, save->window);
    return save_path_total(context, index, record);
}

static enum mr_status save_entry_stats(struct save *save,
                                       const struct mr_entry_stats *stats)
{
    for (uint32_t i = 0; i < MR_COVERAGE_COUNT; i++) {
        mr_sql_u64(&save->sql, stats->traces[i]);
        mr_sql_u64(&save->sql, stats->calls[i]);
        mr_sql_u64(&save->sql, stats->time_ns[i]);
    }
    return run(save);
}

static enum mr_status save_entry(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_entry *entry = record;

    mr_sql_u64(&save->sql, index);
    mr_sql_u64(&save->sql, entry->path);
    return save_entry_stats(save, &entry->stats);
}

static enum mr_status save_entry_point(void *context, uint32_t index, const void *record)
{
    struct save *save = context;

    mr_sql_u64(&save->sql, save->window);
    mr_sql_u64(&save->sql, index);
    return save_entry_stats(save, &((const struct mr_model_entry_point *)record)->stats);
}

static enum mr_status save_node(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_node *node = record;
    enum mr_status status = MR_OK;

    mr_buffer_clear(&save->bytes);
    for (uint32_t i = 0; i < node->child_count && status == MR_OK; i++) {
        const struct mr_node_child child = {.id = node->children[i].id,
                                            .repeat = node->children[i].repeat};

        status = mr_node_child_put(&save->bytes, &child);
    }
    mr_sql_u64(&save->sql, index);
    mr_sql_id(&save->sql, node->id);
    mr_sql_u64(&save->sql, node->site);
    mr_sql_u64(&save->sql, node->exactness);
    mr_sql_blob(&save->sql, mr_buffer_span(&save->bytes));
    return status == MR_OK ? run(save) : status;
}

static enum mr_status save_shape(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_shape *shape = record;

    mr_sql_u64(&save->sql, index);
    mr_sql_id(&save->sql, shape->id);
    mr_sql_u64(&save->sql, shape->entry);
    return run(save);
}

static enum mr_status save_shape_total(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_shape_stats *stats =
        &((const struct mr_model_shape_stat *)record)->stats;

    mr_sql_u64(&save->sql, index);
    mr_sql_u64(&save->sql, stats->ok);
    mr_sql_u64(&save->sql, stats->failed);
    mr_sql_u64(&save->sql, stats->calls);
    mr_sql_u64(&save->sql, stats->folded);
    mr_sql_u64(&save->sql, stats->first_ns);
    mr_sql_u64(&save->sql, stats->last_ns);
    put_times(&save->sql, &stats->time);
    enum mr_status status = put_histogram(save, &stats->histogram);
    return status == MR_OK ? run(save) : status;
}

static enum mr_status save_shape_point(void *context, uint32_t index, const void *record)
{
    struct save *save = context;

    mr_sql_u64(&save->sql, save->window);
    return save_shape_total(context, index, record);
}

static enum mr_status save_outer(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_outer *outer = record;

    mr_sql_u64(&save->sql, index);
    mr_sql_u64(&save->sql, outer->scope);
    mr_sql_u64(&save->sql, outer->site);
    mr_sql_u64(&save->sql, outer->why);
    return run(save);
}

static enum mr_status save_counter(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_counter *counter = record;

    mr_sql_u64(&save->sql, index);
    mr_sql_text(&save->sql, counter->name);
    mr_sql_u64(&save->sql, counter->value);
    return run(save);
}

static enum mr_status save_span_counter(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_span_counter *counter = record;

    mr_sql_u64(&save->sql, index);
    mr_sql_id(&save->sql, counter->id);
    mr_sql_u64(&save->sql, counter->known);
    mr_sql_text(&save->sql, counter->name);
    mr_sql_text(&save->sql, counter->unit);
    return run(save);
}

static enum mr_status save_counter_note(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_counter_note *note = record;

    mr_sql_u64(&save->sql, index);
    mr_sql_u64(&save->sql, note->scope);
    mr_sql_u64(&save->sql, note->counter);
    mr_sql_text(&save->sql, note->absent);
    return run(save);
}

static enum mr_status save_note(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_note *note = record;

    mr_sql_u64(&save->sql, index);
    mr_sql_id(&save->sql, note->about);
    mr_sql_id(&save->sql, note->site);
    mr_sql_text(&save->sql, note->key);
    mr_sql_text(&save->sql, note->value);
    mr_sql_u64(&save->sql, note->version);
    return run(save);
}

static enum mr_status save_path_counter(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_path_counter *row = record;

    mr_sql_u64(&save->sql, index);
    mr_sql_u64(&save->sql, row->path);
    mr_sql_u64(&save->sql, row->counter);
    mr_sql_u64(&save->sql, row->stats.calls);
    mr_sql_u64(&save->sql, row->stats.backward);
    put_times(&save->sql, &row->stats.self);
    put_times(&save->sql, &row->stats.total);
    return run(save);
}

static enum mr_status save_joined(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_joined *joined = record;
    uint8_t *at;

    mr_buffer_clear(&save->bytes);
    enum mr_status status = mr_buffer_reserve(&save->bytes, MR_JOINED_SIZE_MAX, &at);
    if (status != MR_OK)
        return status;
    mr_buffer_commit(
        &save->bytes,
        (size_t)(mr_joined_put(joined->id, joined->nodes, joined->node_count, at) - at));
    mr_sql_u64(&save->sql, index);
    mr_sql_blob(&save->sql, mr_buffer_span(&save->bytes));
    return run(save);
}

static enum mr_status save_joined_total(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_joined_stats *stats =
        &((const struct mr_model_joined_stat *)record)->stats;

    mr_sql_u64(&save->sql, index);
    mr_sql_u64(&save->sql, stats->ok);
    mr_sql_u64(&save->sql, stats->failed);
    mr_sql_u64(&save->sql, stats->incomplete);
    mr_sql_u64(&save->sql, stats->first_ns);
    mr_sql_u64(&save->sql, stats->last_ns);
    put_times(&save->sql, &stats->time);
    mr_sql_id(&save->sql, stats->slowest);
    enum mr_status status = put_histogram(save, &stats->histogram);
    return status == MR_OK ? run(save) : status;
}

static enum mr_status save_joined_edge(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_joined_edge *edge = record;

    mr_sql_u64(&save->sql, index);
    mr_sql_u64(&save->sql, edge->joined);
    mr_sql_u64(&save->sql, edge->place);
    mr_sql_u64(&save->sql, edge->stats.count);
    mr_sql_u64(&save->sql, edge->stats.clamped);
    put_times(&save->sql, &edge->stats.time);
    enum mr_status status = put_histogram(save, &edge->stats.histogram);
    return status == MR_OK ? run(save) : status;
}

static enum mr_status save_part(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_part *part = record;

    mr_sql_u64(&save->sql, index);
    mr_sql_blob(&save->sql, mr_span_of(part->bytes, part->size));
    return run(save);
}

static enum mr_status save_exemplar(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_exemplar *row = record;
    uint8_t *bytes;
    enum mr_status status;

    mr_buffer_clear(&save->bytes);
    status = mr_buffer_reserve(&save->bytes,
                               MR_EXEMPLAR_BYTES_MAX(row->exemplar.call_count), &bytes);
    if (status != MR_OK)
        return status;
    mr_sql_u64(&save->sql, index);
    mr_sql_u64(&save->sql, row->entry);
    mr_sql_index(&save->sql, row->shape);
    mr_sql_u64(&save->sql, row->exemplar.why);
    mr_sql_u64(&save->sql, row->exemplar.status);
    mr_sql_u64(&save->sql, row->source);
    mr_sql_u64(&save->sql, row->exemplar.stream);
    mr_sql_u64(&save->sql, row->exemplar.before);
    mr_sql_u64(&save->sql, row->exemplar.start_ns);
    mr_sql_u64(&save->sql, mr_exemplar_ns(&row->exemplar));
    mr_sql_u64(&save->sql, row->exemplar.calls);
    mr_sql_blob(&save->sql,
                mr_span_of(bytes, (size_t)(mr_exemplar_put_calls(&row->exemplar, bytes) -
                                           bytes)));
    return run(save);
}

static enum mr_status save_shape_path(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_shape_path *row = record;

    mr_sql_u64(&save->sql, index);
    mr_sql_u64(&save->sql, row->shape);
    mr_sql_u64(&save->sql, row->path);
    mr_sql_u64(&save->sql, row->stats.ok);
    mr_sql_u64(&save->sql, row->stats.failed);
    put_times(&save->sql, &row->stats.self);
    put_times(&save->sql, &row->stats.total);
    return run(save);
}

static enum mr_status save_window(void *context, uint32_t index, const void *record)
{
    struct save *save = context;
    const struct mr_model_window *window = record;

    MR_UNUSED(index);
    save->window = window->window;
    return mr_cow_walk(&window->points, save->since, save->each_point, save);
}

#define VALUES_6 "(?, ?, ?, ?, ?, ?)"
#define VALUES_11 "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
#define VALUES_12 "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
#define VALUES_14 "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
#define VALUES_15 "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

static const struct {
    enum mr_model_table table;
    const char *text;
    mr_cow_each *each;
} tables[] = {
    {MR_MODEL_SITE, "REPLACE INTO site VALUES" VALUES_11, save_site},
    {MR_MODEL_SCOPE, "REPLACE INTO scope VALUES" VALUES_6, save_scope},
    {MR_MODEL_SOURCE, "REPLACE INTO source VALUES" VALUES_15, save_source},
    {MR_MODEL_STREAM, "REPLACE INTO stream VALUES" VALUES_15, save_stream},
    {MR_MODEL_PATH, "REPLACE INTO path VALUES" VALUES_6, save_path},
    {MR_MODEL_PATH_STAT, "REPLACE INTO path_total VALUES" VALUES_11, save_path_total},
    {MR_MODEL_ENTRY, "REPLACE INTO entry VALUES" VALUES_14, save_entry},
    {MR_MODEL_NODE, "REPLACE INTO node VALUES(?, ?, ?, ?, ?)", save_node},
    {MR_MODEL_SHAPE, "REPLACE INTO shape VALUES(?, ?, ?)", save_shape},
    {MR_MODEL_SHAPE_STAT, "REPLACE INTO shape_total VALUES" VALUES_11, save_shape_total},
    {MR_MODEL_OUTER, "REPLACE INTO outer_frame VALUES(?, ?, ?, ?)", save_outer},
    {MR_MODEL_COUNTER, "REPLACE INTO counter VALUES(?, ?, ?)", save_counter},
    {MR_MODEL_SPAN_COUNTER, "REPLACE INTO span_counter VALUES(?, ?, ?, ?, ?)",
     save_span_counter},
    {MR_MODEL_COUNTER_NOTE, "REPLACE INTO counter_note VALUES(?, ?, ?, ?)",
     save_counter_note},
    {MR_MODEL_PATH_COUNTER, "REPLACE INTO path_counter VALUES" VALUES_11,
     save_path_counter},
    {MR_MODEL_NOTE, "REPLACE INTO note VALUES(?, ?, ?, ?, ?, ?)", save_note},
    {MR_MODEL_JOINED, "REPLACE INTO joined VALUES(?, ?)", save_joined},
    {MR_MODEL_JOINED_STAT, "REPLACE INTO joined_total VALUES" VALUES_11,
     save_joined_total},
    {MR_MODEL_JOINED_EDGE, "REPLACE INTO joined_edge VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
     save_joined_edge},
    {MR_MODEL_PART, "REPLACE INTO part VALUES(?, ?)", save_part},
    {MR_MODEL_EXEMPLAR, "REPLACE INTO exemplar VALUES" VALUES_12, save_exemplar},
    {MR_MODEL_SHAPE_PATH, "REPLACE INTO shape_path VALUES" VALUES_11, save_shape_path},
};

static const struct {
    enum mr_model_series series;
    const char *text;
    mr_cow_each *each;
} series[] = {
    {MR_SERIES_ENTRY, "REPLACE INTO entry_stat VALUES" VALUES_14, save_entry_point},
    {MR_SERIES_SHAPE, "REPLACE INTO shape_stat VALUES" VALUES_12, save_shape_point},
    {MR_SERIES_PATH, "REPLACE INTO path_stat VALUES" VALUES_12, save_path_point},
};

static enum mr_status save_array(struct save *save, sqlite3 *db, const char *text,
                                 const struct mr_cow_array *array, mr_cow_each *each)
{
    enum mr_status status = mr_sql_prepare(db, text, &save->sql, save->error);

    if (status == MR_OK)
        status = mr_cow_walk(array, save->since, each, save);
    mr_sql_finish(&save->sql);
    return status;
}

#define SCRATCH_MAX                                                                      \
    ((size_t)64 << 20) /* a node's children: bounded by the frame's size */

enum mr_status mr_store_save(sqlite3 *db, const struct mr_model_root *root,
                             uint64_t since, uint64_t *rows, struct mr_error *error)
{
    struct save save = {.root = root, .since = since, .error = error};
    enum mr_status status = MR_OK;

    mr_buffer_init(&save.bytes, SCRATCH_MAX);
    for (size_t i = 0; i < MR_ARRAY_COUNT(tables) && status == MR_OK; i++)
        status = save_array(&save, db, tables[i].text, &root->tables[tables[i].table],
                            tables[i].each);
    for (size_t i = 0; i < MR_ARRAY_COUNT(series) && status == MR_OK; i++) {
        save.each_point = series[i].each;
        status = save_array(&save, db, series[i].text, &root->series[series[i].series],
                            save_window);
    }
    mr_buffer_fini(&save.bytes);
    *rows += save.rows;
    return status == MR_OK
               ? status
               : mr_error_set(error, status, "the checkpoint could not be written");
}
