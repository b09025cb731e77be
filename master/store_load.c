/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a store: tables in the order in which they refer to each other, each row
 * through the same functions that a delta goes through, so indices come out as they were
 * and sums that are kept beside (per site, totals) come out by themselves. What the file
 * says is not trusted: an index that is not there is damage, with the table's name.
 */
#include "base/compiler.h"
#include "master/store_private.h"
#include "net/varint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct load {
    struct mr_model *model;
    struct mr_sql sql;
    struct mr_error *error;
    struct mr_path_stats path_stats; /* scratch with a histogram, as the one below */
    struct mr_shape_stats shape_stats;
    uint64_t from[MR_SERIES_COUNT]; /* first window that is still in the ring */
};

static uint32_t count_of(const struct load *load, enum mr_model_table table)
{
    return mr_model_count(load->model->working, table);
}

/* The text of `text` if the row's index came out as `index`; else the store is damaged. */
static enum mr_status expect_index(enum mr_status status, uint32_t index, uint32_t got)
{
    if (status == MR_OK && index != got)
        return MR_EFORMAT;
    return status;
}

static enum mr_status load_site(struct load *load)
{
    struct mr_sql *sql = &load->sql;
    uint32_t index = mr_sql_get_index(sql), got = count_of(load, MR_MODEL_SITE);
    struct mr_dict_site site = {.id = mr_sql_get_id(sql)};
    bool known = mr_sql_get_u64(sql);

    site.type = mr_sql_get_u64(sql) ? MR_SITE_SPAN : MR_SITE_FUNCTION;
    site.quality = (enum mr_site_quality)mr_sql_get_index(sql);
    site.module = mr_sql_get_text(sql);
    site.build_id = mr_sql_get_blob(sql);
    site.offset = mr_sql_get_u64(sql);
    site.name = mr_sql_get_text(sql);
    site.file = mr_sql_get_text(sql);
    site.line = mr_sql_get_index(sql);
    enum mr_status status = known ? mr_model_put_site(load->model, &site)
                                  : mr_model_add_site(load->model, site.id, &got);
    return expect_index(status, index, got);
}

static enum mr_status load_scope(struct load *load)
{
    struct mr_sql *sql = &load->sql;
    uint32_t index = mr_sql_get_index(sql), got = count_of(load, MR_MODEL_SCOPE);
    struct mr_dict_scope scope = {.id = mr_sql_get_id(sql)};
    bool known = mr_sql_get_u64(sql);

    scope.app = mr_sql_get_text(sql);
    scope.version = mr_sql_get_text(sql);
    scope.host = mr_sql_get_text(sql);
    enum mr_status status = known ? mr_model_put_scope(load->model, &scope)
                                  : mr_model_add_scope(load->model, scope.id, &got);
    return expect_index(status, index, got);
}

static enum mr_status load_source(struct load *load)
{
    struct mr_sql *sql = &load->sql;
    uint32_t index = mr_sql_get_index(sql), got = count_of(load, MR_MODEL_SOURCE);
    struct mr_dict_source source = {.id = mr_sql_get_id(sql)};
    bool known = mr_sql_get_u64(sql);
    const struct mr_model_scope *scope =
        mr_model_scope(load->model->working, mr_sql_get_index(sql));

    if (scope)
        source.scope = scope->id;
    source.worker = mr_sql_get_id(sql);
    source.host = mr_sql_get_text(sql);
    source.pid = (uint32_t)mr_sql_get_u64(sql);
    source.app = mr_sql_get_text(sql);
    source.version = mr_sql_get_text(sql);
    source.exe = mr_sql_get_text(sql);
    source.start_ns = mr_sql_get_u64(sql);
    source.end_ns = mr_sql_get_u64(sql);
    source.clock = (enum mr_clock_kind)mr_sql_get_index(sql);
    source.state = (enum mr_source_state)mr_sql_get_index(sql);
    source.policy = (enum mr_policy)mr_sql_get_index(sql);
    if (source.clock > MR_CLOCK_MONOTONIC || source.state > MR_SOURCE_DIED ||
        source.policy > MR_POLICY_OVERWRITE)
        return MR_EFORMAT;
    enum mr_status status = known ? mr_model_put_source(load->model, &source)
                                  : mr_model_add_source(load->model, source.id, &got);
    return expect_index(status, index, got);
}

static enum mr_status load_stream(struct load *load)
{
    struct mr_sql *sql = &load->sql;
    uint32_t index = mr_sql_get_index(sql), source = mr_sql_get_index(sql);
    uint32_t stream = (uint32_t)mr_sql_get_u64(sql);
    struct mr_ledger_entry entry = {.last = mr_sql_get_u64(sql)};

    entry.reduced = mr_sql_get_u64(sql);
    entry.held = (int64_t)mr_sql_get_u64(sql);
    for (uint32_t reason = 1; reason < MR_LOSS_REASON_COUNT; reason++)
        entry.lost[reason] = mr_sql_get_u64(sql);
    uint32_t got = count_of(load, MR_MODEL_STREAM);
    if (source >= count_of(load, MR_MODEL_SOURCE))
        return MR_EFORMAT;
    return expect_index(mr_model_add_stream(load->model, source, stream, &entry), index,
                        got);
}

static enum mr_status load_path(struct load *load)
{
    struct mr_sql *sql = &load->sql;
    uint32_t index = mr_sql_get_index(sql), got;

    mr_sql_get_id(sql); /* made again from the ids above it */
    uint32_t parent = mr_sql_get_index(sql), scope = mr_sql_get_index(sql);
    uint32_t site = mr_sql_get_index(sql), flags = (uint32_t)mr_sql_get_u64(sql);
    if ((parent != MR_MODEL_NONE && parent >= count_of(load, MR_MODEL_PATH)) ||
        scope >= count_of(load, MR_MODEL_SCOPE) || site >= count_of(load, MR_MODEL_SITE))
        return MR_EFORMAT;
    enum mr_status status =
        mr_model_add_path(load->model, parent, scope, site, flags, &got);
    return expect_index(status, index, got);
}

static void get_times(struct mr_sql *sql, struct mr_times *times)
{
    times->sum = mr_sql_get_u64(sql);
    times->min = mr_sql_get_u64(sql);
    times->max = mr_sql_get_u64(sql);
}

static enum mr_status get_histogram(struct mr_sql *sql, struct mr_histogram *h)
{
    struct mr_span bytes = mr_sql_get_blob(sql);

    return mr_histogram_get(h, &bytes);
}

static enum mr_status get_path_stats(struct load *load)
{
    struct mr_path_stats *stats = &load->path_stats;

    stats->ok = mr_sql_get_u64(&load->sql);
    stats->failed = mr_sql_get_u64(&load->sql);
    stats->incomplete = mr_sql_get_u64(&load->sql);
    get_times(&load->sql, &stats->self);
    get_times(&load->sql, &stats->total);
    return get_histogram(&load->sql, &stats->histogram);
}

static enum mr_status load_path_total(struct load *load)
{
    uint32_t path = mr_sql_get_index(&load->sql);
    enum mr_status status = get_path_stats(load);

    if (status != MR_OK || path >= count_of(load, MR_MODEL_PATH))
        return MR_EFORMAT;
    return mr_model_add_path_stats(load->model, path, &load->path_stats);
}

static enum mr_status load_path_point(struct load *load)
{
    uint64_t window = mr_sql_get_u64(&load->sql);
    uint32_t path = mr_sql_get_index(&load->sql);
    enum mr_status status = get_path_stats(load);

    if (status != MR_OK || path >= count_of(load, MR_MODEL_PATH))
        return MR_EFORMAT;
    return mr_model_add_point(load->model, MR_SERIES_PATH, window, 0, path,
                              &load->path_stats);
}

static void get_entry_stats(struct mr_sql *sql, struct mr_entry_stats *stats)
{
    for (uint32_t i = 0; i < MR_COVERAGE_COUNT; i++) {
        stats->traces[i] = mr_sql_get_u64(sql);
        stats->calls[i] = mr_sql_get_u64(sql);
        stats->time_ns[i] = mr_sql_get_u64(sql);
    }
}

static enum mr_status load_entry(struct load *load)
{
    uint32_t index = mr_sql_get_index(&load->sql), path = mr_sql_get_index(&load->sql);
    const struct mr_model_entry *entry = mr_model_entry(load->model->working, index);
    struct mr_entry_stats stats;

    if (!entry || entry->path != path)
        return MR_EFORMAT;
    get_entry_stats(&load->sql, &stats);
    return mr_model_add_entry_stats(load->model, index, &stats);
}

static enum mr_status load_entry_point(struct load *load)
{
    uint64_t window = mr_sql_get_u64(&load->sql);
    uint32_t entry = mr_sql_get_index(&load->sql);
    struct mr_entry_stats stats;

    if (entry >= count_of(load, MR_MODEL_ENTRY))
        return MR_EFORMAT;
    get_entry_stats(&load->sql, &stats);
    return mr_model_add_point(load->model, MR_SERIES_ENTRY, window, 0, entry, &stats);
}

static enum mr_status load_node(struct load *load)
{
    struct mr_sql *sql = &load->sql;
    uint32_t index = mr_sql_get_index(sql), got = count_of(load, MR_MODEL_NODE);
    struct mr_dict_node node = {.id = mr_sql_get_id(sql)};
    const struct mr_model_site *site =
        mr_model_site(load->model->working, mr_sql_get_index(sql));

    node.exactness = (enum mr_exactness)mr_sql_get_index(sql);
    node.children = mr_sql_get_blob(sql);
    if (!site || node.exactness > MR_EXACTNESS_SET)
        return MR_EFORMAT;
    node.site = site->id;
    return expect_index(mr_model_put_node(load->model, &node), index, got);
}

static enum mr_status load_shape(struct load *load)
{
    uint32_t index = mr_sql_get_index(&load->sql), got;
    struct mr_id node = mr_sql_get_id(&load->sql);
    const struct mr_model_entry *entry;
    uint32_t at = mr_sql_get_index(&load->sql);

    entry = mr_model_entry(load->model->working, at);
    if (!entry)
        return MR_EFORMAT;
    uint32_t scope = mr_model_path(load->model->working, entry->path)->scope;
    enum mr_status status = mr_model_add_shape(load->model, scope, at, node, &got);
    return expect_index(status, index, got);
}

static enum mr_status get_shape_stats(struct load *load)
{
    struct mr_shape_stats *stats = &load->shape_stats;

    stats->ok = mr_sql_get_u64(&load->sql);
    stats->failed = mr_sql_get_u64(&load->sql);
    stats->calls = mr_sql_get_u64(&load->sql);
    stats->folded = mr_sql_get_u64(&load->sql);
    stats->first_ns = mr_sql_get_u64(&load->sql);
    stats->last_ns = mr_sql_get_u64(&load->sql);
    get_times(&load->sql, &stats->time);
    return get_histogram(&load->sql, &stats->histogram);
}

static enum mr_status load_shape_total(struct load *load)
{
    uint32_t shape = mr_sql_get_index(&load->sql);
    enum mr_status status = get_shape_stats(load);

    if (status != MR_OK || shape >= count_of(load, MR_MODEL_SHAPE))
        return MR_EFORMAT;
    return mr_model_add_shape_stats(load->model, shape, &load->shape_stats);
}

static enum mr_status load_shape_point(struct load *load)
{
    uint64_t window = mr_sql_get_u64(&load->sql);
    uint32_t shape = mr_sql_get_index(&load->sql);
    enum mr_status status = get_shape_stats(load);

    if (status != MR_OK || shape >= count_of(load, MR_MODEL_SHAPE))
        return MR_EFORMAT;
    return mr_model_add_point(load->model, MR_SERIES_SHAPE, window, 0, shape,
                              &load->shape_stats);
}

static enum mr_status load_outer(struct load *load)
{
    const struct mr_model_root *root = load->model->working;
    uint32_t index = mr_sql_get_index(&load->sql), got = count_of(load, MR_MODEL_OUTER);
    const struct mr_model_scope *scope =
        mr_model_scope(root, mr_sql_get_index(&load->sql));
    const struct mr_model_site *site = mr_model_site(root, mr_sql_get_index(&load->sql));

    if (!scope || !site)
        return MR_EFORMAT;
    const struct mr_dict_outer outer = {.scope = scope->id,
                                        .site = site->id,
                                        .why = (uint32_t)mr_sql_get_u64(&load->sql)};
    return expect_index(mr_model_put_outer(load->model, &outer), index, got);
}

static enum mr_status load_counter(struct load *load)
{
    mr_sql_get_index(&load->sql);
    const char *name = mr_sql_get_text(&load->sql);
    if (!name[0] || strlen(name) >= MR_DELTA_COUNTER_NAME_MAX)
        return MR_EFORMAT;
    return mr_model_add_counter(load->model, name, mr_sql_get_u64(&load->sql));
}

static enum mr_status load_span_counter(struct load *load)
{
    struct mr_sql *sql = &load->sql;
    uint32_t index = mr_sql_get_index(sql), got;
    struct mr_id id = mr_sql_get_id(sql);
    bool known = mr_sql_get_u64(sql);
    const char *name = mr_sql_get_text(sql), *unit = mr_sql_get_text(sql);
    enum mr_status status = mr_model_add_span_counter(load->model, id, &got);

    if (status == MR_OK && known)
        status = mr_model_name_span_counter(load->model, got, name, unit);
    return expect_index(status, index, got);
}

static enum mr_status load_counter_note(struct load *load)
{
    const struct mr_model_root *root = load->model->working;
    struct mr_sql *sql = &load->sql;
    uint32_t index = mr_sql_get_index(sql), got = count_of(load, MR_MODEL_COUNTER_NOTE);
    const struct mr_model_scope *scope = mr_model_scope(root, mr_sql_get_index(sql));
    const struct mr_model_span_counter *counter =
        mr_model_span_counter(root, mr_sql_get_index(sql));

    if (!scope || !counter)
        return MR_EFORMAT;
    const struct mr_dict_span_counter note = {.scope = scope->id,
                                              .id = counter->id,
                                              .name = counter->name,
                                              .unit = counter->unit,
                                              .absent = mr_sql_get_text(sql)};
    return expect_index(mr_model_put_span_counter(load->model, &note), index, got);
}

static enum mr_status load_note(struct load *load)
{
    struct mr_sql *sql = &load->sql;
    uint32_t index = mr_sql_get_index(sql), got = count_of(load, MR_MODEL_NOTE);
    struct mr_dict_note note = {.about = mr_sql_get_id(sql)};

    note.site = mr_sql_get_id(sql);
    note.key = mr_sql_get_text(sql);
    note.value = mr_sql_get_text(sql);
    note.version = mr_sql_get_u64(sql);
    return expect_index(mr_model_put_note(load->model, &note), index, got);
}

static enum mr_status load_path_counter(struct load *load)
{
    struct mr_sql *sql = &load->sql;
    uint32_t index = mr_sql_get_index(sql), got = count_of(load, MR_MODEL_PATH_COUNTER);
    uint32_t path = mr_sql_get_index(sql), counter = mr_sql_get_index(sql);
    struct mr_counter_stats stats = {.calls = mr_sql_get_u64(sql)};

    stats.backward = mr_sql_get_u64(sql);
    get_times(sql, &stats.self);
    get_times(sql, &stats.total);
    if (path >= count_of(load, MR_MODEL_PATH) ||
        counter >= count_of(load, MR_MODEL_SPAN_COUNTER))
        return MR_EFORMAT;
    return expect_index(mr_model_add_path_counter(load->model, path, counter, &stats),
                        index, got);
}

static enum mr_status load_joined(struct load *load)
{
    uint32_t index = mr_sql_get_index(&load->sql), count, got;
    struct mr_span bytes = mr_sql_get_blob(&load->sql);
    struct mr_joined_node nodes[MR_JOINED_NODES_MAX];
    struct mr_id id;

    if (!mr_joined_get(&bytes, &id, nodes, &count))
        return MR_EFORMAT;
    enum mr_status status = mr_model_add_joined(load->model, id, nodes, count, &got);
    return expect_index(status, index, got);
}

static enum mr_status load_joined_total(struct load *load)
{
    struct mr_sql *sql = &load->sql;
    struct mr_joined_stats stats = {.histogram = MR_HISTOGRAM_EMPTY};
    uint32_t joined = mr_sql_get_index(sql);

    stats.ok = mr_sql_get_u64(sql);
    stats.failed = mr_sql_get_u64(sql);
    stats.incomplete = mr_sql_get_u64(sql);
    stats.first_ns = mr_sql_get_u64(sql);
    stats.last_ns = mr_sql_get_u64(sql);
    get_times(sql, &stats.time);
    stats.slowest = mr_sql_get_id(sql);
    enum mr_status status = get_histogram(sql, &stats.histogram);
    if (joined >= count_of(load, MR_MODEL_JOINED))
        status = MR_EFORMAT;
    if (status == MR_OK)
        status = mr_model_add_joined_stats(load->model, joined, &stats);
    mr_histogram_fini(&stats.histogram);
    return status;
}

static enum mr_status load_joined_edge(struct load *load)
{
    struct mr_sql *sql = &load->sql;
    struct mr_edge_stats stats = {.histogram = MR_HISTOGRAM_EMPTY};
    uint32_t index = mr_sql_get_index(sql), count = count_of(load, MR_MODEL_JOINED_EDGE);
    uint32_t joined = mr_sql_get_index(sql), place = mr_sql_get_index(sql);

    stats.count = mr_sql_get_u64(sql);
    stats.clamped = mr_sql_get_u64(sql);
    get_times(sql, &stats.time);
    enum mr_status status = get_histogram(sql, &stats.histogram);
    if (joined >= count_of(load, MR_MODEL_JOINED) || index != count)
        status = MR_EFORMAT;
    if (status == MR_OK)
        status = mr_model_add_edge_stats(load->model, joined, place, &stats);
    mr_histogram_fini(&stats.histogram);
    return status;
}

static enum mr_status load_part(struct load *load)
{
    uint32_t index = mr_sql_get_index(&load->sql);

    if (index != count_of(load, MR_MODEL_PART))
        return MR_EFORMAT;
    return mr_model_load_part(load->model, mr_sql_get_blob(&load->sql));
}

/* Its record may get another index: a master with fewer places keeps the best, and nothing names them by index. */
static enum mr_status load_exemplar(struct load *load)
{
    struct mr_sql *sql = &load->sql;

    (void)mr_sql_get_index(sql);
    uint32_t entry = mr_sql_get_index(sql), shape = mr_sql_get_index(sql);
    struct mr_exemplar exemplar = {.why = mr_sql_get_index(sql)};
    uint32_t status = mr_sql_get_index(sql), source = mr_sql_get_index(sql);

    exemplar.stream = mr_sql_get_index(sql);
    exemplar.before = mr_sql_get_u64(sql);
    exemplar.start_ns = mr_sql_get_u64(sql);
    (void)mr_sql_get_u64(sql); /* the root's time is in the tree */
    exemplar.calls = mr_sql_get_u64(sql);
    struct mr_span tree = mr_sql_get_blob(sql);
    if (entry >= count_of(load, MR_MODEL_ENTRY) ||
        source >= count_of(load, MR_MODEL_SOURCE) ||
        (shape != MR_MODEL_NONE && shape >= count_of(load, MR_MODEL_SHAPE)) ||
        (exemplar.why != MR_EXEMPLAR_FIRST && exemplar.why != MR_EXEMPLAR_SLOWEST &&
         exemplar.why != MR_EXEMPLAR_ASKED) ||
        status >= MR_EXEMPLAR_STATUS_COUNT ||
        !mr_varint_get_u32(&tree, &exemplar.call_count) || exemplar.call_count == 0 ||
        exemplar.call_count > MR_EXEMPLAR_CALLS_MAX)
        return MR_EFORMAT;
    exemplar.status = (enum mr_exemplar_status)status;
    exemplar.source = mr_model_source(load->model->working, source)->id;
    struct mr_exemplar_call *calls = calloc(exemplar.call_count, sizeof(*calls));
    if (!calls)
        return MR_ENOMEM;
    exemplar.items = calls;
    enum mr_status result = MR_EFORMAT;
    if (mr_exemplar_get_calls(&tree, count_of(load, MR_MODEL_SITE), exemplar.calls, calls,
                              exemplar.call_count))
        result = mr_model_put_exemplar(load->model, entry, shape, source, &exemplar);
    free(calls);
    return result;
}

static enum mr_status load_shape_path(struct load *load)
{
    struct mr_sql *sql = &load->sql;
    uint32_t index = mr_sql_get_index(sql), got = count_of(load, MR_MODEL_SHAPE_PATH);
    uint32_t shape = mr_sql_get_index(sql), path = mr_sql_get_index(sql);
    struct mr_shape_path_stats stats = {.ok = mr_sql_get_u64(sql)};

    stats.failed = mr_sql_get_u64(sql);
    get_times(sql, &stats.self);
    get_times(sql, &stats.total);
    if (shape >= count_of(load, MR_MODEL_SHAPE) || path >= count_of(load, MR_MODEL_PATH))
        return MR_EFORMAT;
    return expect_index(mr_model_add_shape_path(load->model, shape, path, &stats), index,
                        got);
}

/* Of one of its tables. */
struct rows {
    const char *name;
    enum mr_status (*row)(struct load *load);
    const char *option; /* that bounds them; NULL: a constant does */
};

static const struct {
    struct rows rows;
    const char *key;  /* NULL: idx */
    bool is_addition; /* a store made before it has none */
} tables[] = {
    {{"scope", load_scope, "--max-scopes"}, NULL, false},
    {{"site", load_site, "--max-sites"}, NULL, false},
    {{"source", load_source, "--max-sources"}, NULL, false},
    {{"stream", load_stream, "--max-streams"}, NULL, false},
    {{"path", load_path, "--max-paths"}, NULL, false},
    {{"path_total", load_path_total, "--max-paths"}, "path", false},
    {{"entry", load_entry, "--max-paths"}, NULL, false},
    {{"node", load_node, "--max-nodes"}, NULL, false},
    {{"shape", load_shape, "--max-shapes"}, NULL, false},
    {{"shape_total", load_shape_total, "--max-shapes"}, "shape", false},
    {{"outer_frame", load_outer, "--max-paths"}, NULL, false},
    {{"counter", load_counter, NULL}, NULL, false},
    {{"span_counter", load_span_counter, NULL}, NULL, true},
    {{"counter_note", load_counter_note, NULL}, NULL, true},
    {{"path_counter", load_path_counter, NULL}, NULL, true},
    {{"note", load_note, "--max-notes"}, NULL, true},
    {{"joined", load_joined, "--max-joined"}, NULL, true},
    {{"joined_total", load_joined_total, "--max-joined"}, "joined", true},
    {{"joined_edge", load_joined_edge, NULL}, NULL, true},
    {{"part", load_part, "--max-parts"}, NULL, true},
    {{"exemplar", load_exemplar, "--max-exemplars or --max-exemplar-bytes"}, NULL, true},
    {{"shape_path", load_shape_path, "--max-shape-paths"}, NULL, true},
};

static const struct {
    struct rows rows;
    enum mr_model_series series;
} windows[] = {
    {{"entry_stat", load_entry_point, "--max-points"}, MR_SERIES_ENTRY},
    {{"shape_stat", load_shape_point, "--max-points"}, MR_SERIES_SHAPE},
    {{"path_stat", load_path_point, "--max-points"}, MR_SERIES_PATH},
};

static enum mr_status load_rows(struct load *load, sqlite3 *db, const char *query,
                                const struct rows *rows)
{
    uint64_t count = 0;
    enum mr_status status = mr_sql_prepare(db, query, &load->sql, load->error);

    while (status == MR_OK && (status = mr_sql_row(&load->sql, load->error)) == MR_OK) {
        status = rows->row(load);
        count++;
    }
    mr_sql_finish(&load->sql);
    if (status == MR_END)
        return MR_OK;
    if (status == MR_ELIMIT)
        return mr_error_set(load->error, status,
                            "table %s: the store holds more than this master's limits "
                            "allow%s%s",
                            rows->name, rows->option ? ": raise " : "",
                            rows->option ? rows->option : "");
    return mr_error_set(load->error, status,
                        "table %s, row %" PRIu64
                        ": the store is damaged: move its folder away, or give another "
                        "one",
                        rows->name, count);
}

/* Only windows that the ring still has are read: the newest one and those before it. */
static enum mr_status load_series(struct load *load, sqlite3 *db, size_t at)
{
    char query[256];
    enum mr_model_series series = windows[at].series;
    uint64_t span_s =
        (uint64_t)mr_model_series_seconds(series) * mr_model_series_windows(series);

    snprintf(query, sizeof(query),
             "SELECT * FROM %s WHERE window > (SELECT coalesce(max(window), 0) FROM %s)"
             " - %" PRIu64 " ORDER BY window, 2",
             windows[at].rows.name, windows[at].rows.name, span_s);
    return load_rows(load, db, query, &windows[at].rows);
}

static enum mr_status has_table(struct load *load, sqlite3 *db, const char *name,
                                bool *is_there)
{
    enum mr_status status = mr_sql_prepare(
        db, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", &load->sql,
        load->error);

    if (status == MR_OK) {
        mr_sql_text(&load->sql, name);
        status = mr_sql_row(&load->sql, load->error);
    }
    mr_sql_finish(&load->sql);
    *is_there = status == MR_OK;
    return status == MR_END ? MR_OK : status;
}

static enum mr_status load_table(struct load *load, sqlite3 *db, size_t at)
{
    char query[96];
    bool is_there = true;
    enum mr_status status = MR_OK;

    if (tables[at].is_addition)
        status = has_table(load, db, tables[at].rows.name, &is_there);
    if (status != MR_OK || !is_there)
        return status;
    snprintf(query, sizeof(query), "SELECT * FROM %s ORDER BY %s", tables[at].rows.name,
             tables[at].key ? tables[at].key : "idx");
    return load_rows(load, db, query, &tables[at].rows);
}

enum mr_status mr_store_load_tables(sqlite3 *db, struct mr_model *model,
                                    struct mr_error *error)
{
    struct load load = {.model = model, .error = error};
    enum mr_status status = MR_OK;

    load.path_stats.histogram = MR_HISTOGRAM_EMPTY;
    load.shape_stats.histogram = MR_HISTOGRAM_EMPTY;
    for (size_t i = 0; i < MR_ARRAY_COUNT(tables) && status == MR_OK; i++)
        status = load_table(&load, db, i);
    for (size_t i = 0; i < MR_ARRAY_COUNT(windows) && status == MR_OK; i++)
        status = load_series(&load, db, i);
    mr_histogram_fini(&load.path_stats.histogram);
    mr_histogram_fini(&load.shape_stats.histogram);
    return status;
}

enum mr_status mr_store_load_journal(sqlite3 *db, struct mr_model *model, uint64_t *last,
                                     uint64_t *bytes, struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status = mr_sql_prepare(
        db, "SELECT number, sender, type, bytes FROM journal ORDER BY number", &sql,
        error);

    while (status == MR_OK && (status = mr_sql_row(&sql, error)) == MR_OK) {
        uint64_t number = mr_sql_get_u64(&sql);
        struct mr_id sender = mr_sql_get_id(&sql);
        uint64_t type = mr_sql_get_u64(&sql);
        struct mr_span payload = mr_sql_get_blob(&sql);

        status = mr_model_apply(model, sender, (uint8_t)type, payload, error);
        if (status != MR_OK)
            mr_error_set(error, status, "journal row %" PRIu64 " is damaged", number);
        *last = number;
        *bytes += payload.size;
        mr_model_set_journal(model, number);
    }
    mr_sql_finish(&sql);
    return status == MR_END ? MR_OK : status;
}
