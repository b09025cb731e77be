/* SPDX-License-Identifier: Apache-2.0 */
#include "support_model.h"

#include "../unit_test.h"

#include <string.h>

#include "base/hash.h"
#include "base/table.h"
#include "net/delta.h"
#include "net/ids.h"

#define TEXT_MAX 65536

enum row_kind {
    ROW_PATH,
    ROW_SHAPE,
    ROW_ENTRY,
    ROW_LEDGER,
    ROW_COUNTER,
    ROW_COUNT,
    ROW_EXEMPLAR,
    ROW_SHAPE_PATH
};

struct row {
    enum row_kind kind;
    char *key;
    struct mr_path_stats path;
    struct mr_shape_stats shape;
    struct mr_entry_stats entry;
    struct mr_ledger_entry ledger;
    uint64_t value;
    struct mr_counter_stats count;
    struct mr_shape_path_stats shape_path;
    struct mr_exemplar exemplar;
    struct mr_exemplar_call *calls; /* sites are functions */
};

struct node {
    char *text;
};

struct model {
    struct row *rows;
    uint32_t row_count, row_capacity;
    struct mr_table row_keys, sites, told_sites, nodes, scopes;
    struct mr_dict_span_counter told_counters[8];
    char counter_names[8][32];
    uint32_t told_counter_count;
    struct node *node_items;
    uint32_t node_count, node_capacity;
    enum mr_exactness exactness;
    struct test_text *text;
    /* Of the payload being read: names of sites and paths. */
    uint32_t *site_functions;
    char **paths;
    struct mr_id *shape_nodes;
    uint32_t *shape_paths;
    struct mr_id counters[8];
    uint32_t counter_count;
    uint32_t site_count, path_count, shape_count;
};

static struct row *row_of(struct model *model, enum row_kind kind, const char *key)
{
    uint32_t index;
    struct mr_id id = mr_hash128_seed(mr_span_of_text(key), kind);

    assert_int_equal(mr_table_find_or_add(&model->row_keys, id, model->row_count, &index),
                     MR_OK);
    if (index < model->row_count)
        return &model->rows[index];
    if (model->row_count == model->row_capacity) {
        model->row_capacity = model->row_capacity ? 2 * model->row_capacity : 256;
        model->rows = realloc(model->rows, model->row_capacity * sizeof(*model->rows));
        assert_non_null(model->rows);
    }
    model->rows[model->row_count] = (struct row){.kind = kind, .key = strdup(key)};
    model->rows[model->row_count].path.histogram = MR_HISTOGRAM_EMPTY;
    model->rows[model->row_count].shape.histogram = MR_HISTOGRAM_EMPTY;
    return &model->rows[model->row_count++];
}

static uint32_t function_of(const struct model *model, struct mr_id id)
{
    uint32_t function = mr_table_find(&model->sites, id);

    assert_int_not_equal(function, MR_TABLE_NONE);
    return function;
}

/* DICT items. */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *node_text(struct model *model, const struct mr_dict_node *item)
{
    char *text = malloc(TEXT_MAX), *parts[4096];
    size_t size = (size_t)snprintf(text, TEXT_MAX, "f%u", function_of(model, item->site)),
           count = 0;
    struct mr_span children = item->children;
    struct mr_node_child child;
    enum mr_status status;

    while ((status = mr_node_child_next(&children, &child)) == MR_OK) {
        uint32_t index = mr_table_find(&model->nodes, child.id);
        const char *below = index == MR_TABLE_NONE ? "?" : model->node_items[index].text;

        assert_true(count < 4096);
        parts[count] = malloc(TEXT_MAX);
        if (item->exactness == MR_EXACTNESS_EXACT)
            (void)snprintf(parts[count++], TEXT_MAX, "%sx%" PRIu64, below, child.repeat);
        else
            (void)snprintf(parts[count++], TEXT_MAX, "%s", below);
    }
    assert_int_equal(status, MR_END);
    if (item->exactness == MR_EXACTNESS_SET && count)
        qsort(parts, count, sizeof(char *), compare_texts);
    for (size_t i = 0; i < count; i++) {
        size += (size_t)snprintf(text + size, TEXT_MAX - size, "%s%s%s", i ? " " : "{",
                                 parts[i], i + 1 == count ? "}" : "");
        assert_true(size < TEXT_MAX);
        free(parts[i]);
    }
    return text;
}

/* Nodes come before those below them, so they are made into text from the last to the first. */
static void take_nodes(struct model *model, const struct mr_dict_node *items,
                       uint32_t count)
{
    for (uint32_t i = count; i-- > 0;) {
        uint32_t index;

        assert_int_equal(
            mr_table_find_or_add(&model->nodes, items[i].id, model->node_count, &index),
            MR_OK);
        if (index < model->node_count)
            continue; /* told again */
        if (model->node_count == model->node_capacity) {
            model->node_capacity = model->node_capacity ? 2 * model->node_capacity : 256;
            model->node_items = realloc(
                model->node_items, model->node_capacity * sizeof(*model->node_items));
        }
        model->node_items[model->node_count++].text = NULL;
    }
    /* A node of several parents may stand anywhere: repeat until nothing is missing. */
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = count; i-- > 0;) {
            uint32_t index = mr_table_find(&model->nodes, items[i].id);
            struct mr_span children = items[i].children;
            struct mr_node_child child;
            bool is_ready = model->node_items[index].text == NULL;

            while (is_ready && mr_node_child_next(&children, &child) == MR_OK) {
                uint32_t below = mr_table_find(&model->nodes, child.id);

                assert_int_not_equal(below, MR_TABLE_NONE);
                is_ready = model->node_items[below].text != NULL;
            }
            if (is_ready) {
                model->node_items[index].text = node_text(model, &items[i]);
                again = true;
            }
        }
    }
}

static void take_counter(struct model *model, const struct mr_dict_span_counter *item)
{
    assert_int_equal(mr_table_find(&model->scopes, item->scope), 1);
    test_text_add(model->text, "told counter %s unit=%s absent=%s", item->name,
                  item->unit, item->absent);
    assert_true(model->told_counter_count < 8);
    (void)snprintf(model->counter_names[model->told_counter_count], 32, "%s", item->name);
    model->told_counters[model->told_counter_count++] = *item;
}

static const char *counter_name(const struct model *model, struct mr_id id)
{
    for (uint32_t i = 0; i < model->told_counter_count; i++)
        if (mr_id_equal(model->told_counters[i].id, id))
            return model->counter_names[i];
    fail_msg("a counter that was not told");
    return "";
}

static void take_dict_item(struct model *model, const struct mr_dict_item *item)
{
    uint32_t index;

    switch (item->kind) {
    case MR_DICT_SITE:
        assert_int_equal(mr_table_put(&model->told_sites, item->site.id, 1), MR_OK);
        break;
    case MR_DICT_SCOPE:
        assert_int_equal(mr_table_find_or_add(&model->scopes, item->scope.id, 1, &index),
                         MR_OK);
        break;
    case MR_DICT_OUTER:
        assert_int_equal(mr_table_find(&model->scopes, item->outer.scope), 1);
        test_text_add(model->text, "outer f%u %u", function_of(model, item->outer.site),
                      item->outer.why);
        break;
    case MR_DICT_SOURCE:
        test_text_add(model->text, "source state=%d", (int)item->source.state);
        break;
    case MR_DICT_NODE:
        assert_int_equal(mr_table_find(&model->told_sites, item->node.site), 1);
        break;
    case MR_DICT_NOTE: /* of clocks: tests/unit/pipeline/test_clock_notes.c */
        break;
    case MR_DICT_SPAN_COUNTER:
        take_counter(model, &item->span_counter);
        break;
    default:
        fail_msg("item %d", (int)item->kind);
    }
}

/* All DICT batches that stand in a row: reduce may split one telling over several. */
static const struct mr_batch *take_dicts(struct model *model,
                                         const struct mr_batch *batch)
{
    struct mr_dict_reader readers[256];
    struct mr_dict_node *nodes = NULL;
    uint32_t count = 0, capacity = 0, open = 0;
    struct mr_error error = MR_ERROR_NONE;
    struct mr_dict_item item;

    for (; batch && batch->kind == MR_BATCH_DICT; batch = batch->next) {
        assert_true(open < 256);
        assert_int_equal(
            mr_dict_open(&readers[open], mr_buffer_span(&batch->bytes), &error), MR_OK);
        while (mr_dict_next(&readers[open], &item, &error) == MR_OK) {
            take_dict_item(model, &item);
            if (item.kind != MR_DICT_NODE)
                continue;
            if (count == capacity) {
                capacity = capacity ? 2 * capacity : 64;
                nodes = realloc(nodes, capacity * sizeof(*nodes));
                assert_non_null(nodes);
            }
            nodes[count++] = item.node;
        }
        assert_int_equal(error.status, MR_OK);
        open++;
    }
    if (count)
        take_nodes(model, nodes, count);
    for (uint32_t i = 0; i < open; i++)
        mr_dict_close(&readers[i]);
    free(nodes);
    return batch;
}

/* DELTA items. */

static void forget_payload(struct model *model)
{
    for (uint32_t i = 0; i < model->path_count; i++)
        free(model->paths[i]);
    model->path_count = 0;
    model->site_count = 0;
    model->shape_count = 0;
    model->counter_count = 0;
}

static void take_path(struct model *model, const struct mr_delta_item *item)
{
    const char *parent = item->parent == MR_DELTA_NONE ? "" : model->paths[item->parent];
    bool is_outer = item->flags & MR_DELTA_PATH_OUTER;
    char *text = NULL;

    assert_int_equal(item->index, model->path_count);
    assert_true(asprintf(&text, "%s%s%sf%u%s", parent, *parent ? "/" : "",
                         is_outer ? "(" : "", model->site_functions[item->site],
                         is_outer ? ")" : "") > 0);
    model->paths = realloc(model->paths, (model->path_count + 1) * sizeof(char *));
    model->paths[model->path_count++] = text;
}

static void take_site(struct model *model, const struct mr_delta_item *item)
{
    assert_int_equal(mr_table_find(&model->told_sites, item->id),
                     1); /* told before it is used */
    model->site_functions =
        realloc(model->site_functions, (model->site_count + 1) * sizeof(uint32_t));
    model->site_functions[model->site_count++] = function_of(model, item->id);
}

static void take_shape(struct model *model, const struct mr_delta_item *item)
{
    uint32_t node = mr_table_find(&model->nodes, item->id);

    assert_int_not_equal(node, MR_TABLE_NONE); /* told before it is used */
    assert_non_null(model->node_items[node].text);
    model->shape_nodes =
        realloc(model->shape_nodes, (model->shape_count + 1) * sizeof(struct mr_id));
    model->shape_paths =
        realloc(model->shape_paths, (model->shape_count + 1) * sizeof(uint32_t));
    model->shape_nodes[model->shape_count] = item->id;
    model->shape_paths[model->shape_count++] = item->path;
}

static struct row *stat_row(struct model *model, enum row_kind kind,
                            const struct mr_delta_item *item)
{
    char *key = malloc(TEXT_MAX);
    uint64_t window = item->window - TEST_START_S;
    uint32_t path = kind == ROW_SHAPE ? model->shape_paths[item->shape] : item->path;
    struct row *row;

    if (kind == ROW_SHAPE)
        (void)snprintf(key, TEXT_MAX, "%s @%" PRIu64 " %s", model->paths[path], window,
                       model
                           ->node_items[mr_table_find(&model->nodes,
                                                      model->shape_nodes[item->shape])]
                           .text);
    else
        (void)snprintf(key, TEXT_MAX, "%s @%" PRIu64, model->paths[path], window);
    row = row_of(model, kind, key);
    free(key);
    return row;
}

static void take_ledger(struct model *model, const struct mr_delta_item *item)
{
    char key[32];

    (void)snprintf(key, sizeof(key), "%u", item->stream);
    mr_ledger_entry_merge(&row_of(model, ROW_LEDGER, key)->ledger, item->ledger);
}

static void take_path_counter(struct model *model, const struct mr_delta_item *item)
{
    char *key = malloc(TEXT_MAX);

    (void)snprintf(key, TEXT_MAX, "%s @%" PRIu64 " %s", model->paths[item->path],
                   item->window - TEST_START_S,
                   counter_name(model, model->counters[item->counter]));
    mr_counter_stats_merge(&row_of(model, ROW_COUNT, key)->count, item->counter_stats);
    free(key);
}

static const char *shape_text(const struct model *model, uint32_t shape)
{
    if (shape == MR_DELTA_NONE)
        return "-";
    return model->node_items[mr_table_find(&model->nodes, model->shape_nodes[shape])]
        .text;
}

static void keep_exemplar(const struct model *model, struct row *row,
                          const struct mr_exemplar *exemplar)
{
    size_t size = exemplar->call_count * sizeof(*exemplar->items);

    free(row->calls);
    row->calls = malloc(size);
    assert_non_null(row->calls);
    memcpy(row->calls, exemplar->items, size);
    for (uint32_t i = 0; i < exemplar->call_count; i++)
        row->calls[i].site = model->site_functions[row->calls[i].site];
    row->exemplar = *exemplar;
    row->exemplar.items = row->calls;
}

/* The best for one reason. */
static void take_exemplar(struct model *model, const struct mr_delta_item *item,
                          enum mr_exemplar_why why)
{
    const struct mr_exemplar *exemplar = item->exemplar;
    bool is_incomplete = exemplar->status == MR_EXEMPLAR_INCOMPLETE;
    char *key = malloc(TEXT_MAX);
    struct row *row;

    assert_true(item->shape == MR_DELTA_NONE || !is_incomplete);
    (void)snprintf(key, TEXT_MAX, "%s %d%s %s", model->paths[item->path], (int)why,
                   is_incomplete ? "i" : "", shape_text(model, item->shape));
    row = row_of(model, ROW_EXEMPLAR, key);
    free(key);
    if (!row->calls || mr_exemplar_is_before(exemplar, &row->exemplar, why))
        keep_exemplar(model, row, exemplar);
}

/* Every answer to a request, none twice. */
static void take_asked(struct model *model, const struct mr_delta_item *item)
{
    char *key = malloc(TEXT_MAX);
    struct row *row;

    (void)snprintf(key, TEXT_MAX, "asked %" PRIu64 "/%u at %" PRIu64 " %s %s",
                   item->id.lo, item->wanted, item->exemplar->before,
                   model->paths[item->path], shape_text(model, item->shape));
    row = row_of(model, ROW_EXEMPLAR, key);
    free(key);
    assert_null(row->calls);
    keep_exemplar(model, row, item->exemplar);
}

static void take_shape_path(struct model *model, const struct mr_delta_item *item)
{
    char *key = malloc(TEXT_MAX);

    (void)snprintf(key, TEXT_MAX, "%s %s", shape_text(model, item->shape),
                   model->paths[item->path]);
    mr_shape_path_stats_merge(&row_of(model, ROW_SHAPE_PATH, key)->shape_path,
                              item->shape_path_stats);
    free(key);
}

static void take_delta_item(struct model *model, const struct mr_delta_item *item)
{
    switch (item->tag) {
    case MR_DELTA_SITE:
        take_site(model, item);
        break;
    case MR_DELTA_SCOPE:
        assert_int_equal(mr_table_find(&model->scopes, item->id), 1);
        break;
    case MR_DELTA_PATH:
        take_path(model, item);
        break;
    case MR_DELTA_SHAPE:
        take_shape(model, item);
        break;
    case MR_DELTA_PATH_STAT:
        assert_int_equal(
            mr_path_stats_merge(&stat_row(model, ROW_PATH, item)->path, item->path_stats),
            MR_OK);
        break;
    case MR_DELTA_SHAPE_STAT:
        assert_int_equal(mr_shape_stats_merge(&stat_row(model, ROW_SHAPE, item)->shape,
                                              item->shape_stats),
                         MR_OK);
        break;
    case MR_DELTA_ENTRY_STAT:
        mr_entry_stats_merge(&stat_row(model, ROW_ENTRY, item)->entry, item->entry_stats);
        break;
    case MR_DELTA_LEDGER:
        take_ledger(model, item);
        break;
    case MR_DELTA_COUNTER:
        row_of(model, ROW_COUNTER, item->name)->value += item->value;
        break;
    case MR_DELTA_OPEN:
        test_text_add(model->text, "open %s = %" PRIu64, model->paths[item->path],
                      item->open->count);
        break;
    case MR_DELTA_HEAD:
        assert_int_equal(item->level, 1);
        break;
    case MR_DELTA_SOURCE:
    case MR_DELTA_PART: /* their own tests: test_joiner, test_links */
    case MR_DELTA_JOINED:
    case MR_DELTA_JOINED_STAT:
    case MR_DELTA_JOINED_EDGE:
        break;
    case MR_DELTA_SPAN_COUNTER:
        assert_true(model->counter_count < 8);
        model->counters[model->counter_count++] = item->id;
        break;
    case MR_DELTA_PATH_COUNTER:
        take_path_counter(model, item);
        break;
    case MR_DELTA_EXEMPLAR:
        for (uint32_t why = 1; why < MR_EXEMPLAR_ALL; why <<= 1)
            if (item->exemplar->why & why)
                take_exemplar(model, item, (enum mr_exemplar_why)why);
        break;
    case MR_DELTA_ASKED:
        take_asked(model, item);
        break;
    case MR_DELTA_SHAPE_PATH:
        take_shape_path(model, item);
        break;
    }
}

static void take_delta(struct model *model, const struct mr_batch *batch)
{
    struct mr_delta_reader reader;
    struct mr_delta_item item;
    enum mr_status status;

    mr_delta_reader_init(&reader, mr_buffer_span(&batch->bytes));
    while ((status = mr_delta_next(&reader, &item)) == MR_OK)
        take_delta_item(model, &item);
    assert_int_equal(status, MR_END);
    mr_delta_reader_fini(&reader);
    forget_payload(model);
}

/* Text. */

static void times_text(char *out, size_t size, const struct mr_times *times)
{
    (void)snprintf(out, size, "%" PRIu64 ",%" PRIu64 ",%" PRIu64, times->sum, times->min,
                   times->max);
}

static char *histogram_text(const struct mr_histogram *histogram)
{
    char *text = malloc(TEXT_MAX);
    size_t size = (size_t)snprintf(text, TEXT_MAX, "%" PRIu64, histogram->zero);

    if (histogram->count)
        size += (size_t)snprintf(text + size, TEXT_MAX - size, ";%d;%d", histogram->scale,
                                 histogram->first);
    for (uint32_t i = 0; i < histogram->count; i++)
        size += (size_t)snprintf(text + size, TEXT_MAX - size, "%c%" PRIu64,
                                 i ? ',' : ';', histogram->counts[i]);
    assert_true(size < TEXT_MAX);
    return text;
}

static void add_path(struct test_text *text, const struct row *row)
{
    char self[80], total[80], *histogram = histogram_text(&row->path.histogram);

    times_text(self, sizeof(self), &row->path.self);
    times_text(total, sizeof(total), &row->path.total);
    test_text_add(
        text, "path %s = %" PRIu64 " %" PRIu64 " %" PRIu64 " self=%s total=%s hist=%s",
        row->key, row->path.ok, row->path.failed, row->path.incomplete, self, total,
        histogram);
    free(histogram);
}

static void add_shape(struct test_text *text, const struct row *row)
{
    const struct mr_shape_stats *shape = &row->shape;
    char time[80], *histogram = histogram_text(&shape->histogram);

    times_text(time, sizeof(time), &shape->time);
    test_text_add(text,
                  "shape %s = %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                  " %" PRIu64 " time=%s hist=%s",
                  row->key, shape->ok, shape->failed, shape->calls, shape->folded,
                  shape->first_ns - TEST_START_S * MR_SECOND_NS,
                  shape->last_ns - TEST_START_S * MR_SECOND_NS, time, histogram);
    free(histogram);
}

static void add_entry(struct test_text *text, const struct row *row)
{
    const struct mr_entry_stats *entry = &row->entry;
    char line[512];
    size_t size = 0;

    for (int i = 0; i < MR_COVERAGE_COUNT; i++)
        size += (size_t)snprintf(line + size, sizeof(line) - size,
                                 " %" PRIu64 ",%" PRIu64 ",%" PRIu64, entry->traces[i],
                                 entry->calls[i], entry->time_ns[i]);
    test_text_add(text, "entry %s =%s", row->key, line);
}

static void add_ledger(struct test_text *text, const struct row *row)
{
    const struct mr_ledger_entry *ledger = &row->ledger;
    char line[512] = "";
    size_t size = 0;

    for (int i = 0; i < MR_LOSS_REASON_COUNT; i++)
        if (ledger->lost[i])
            size += (size_t)snprintf(line + size, sizeof(line) - size, " %d:%" PRIu64, i,
                                     ledger->lost[i]);
    test_text_add(text, "ledger %s = %" PRIu64 " %" PRIu64 " %" PRId64 "%s", row->key,
                  ledger->last, ledger->reduced, ledger->held, line);
}

static void add_count(struct test_text *text, const struct row *row)
{
    char self[80], total[80];

    times_text(self, sizeof(self), &row->count.self);
    times_text(total, sizeof(total), &row->count.total);
    test_text_add(text, "count %s = %" PRIu64 " back=%" PRIu64 " self=%s total=%s",
                  row->key, row->count.calls, row->count.backward, self, total);
}

static void add_exemplar(struct test_text *text, const struct row *row)
{
    const struct mr_exemplar *exemplar = &row->exemplar;
    char *line = malloc(TEXT_MAX);
    size_t size = 0;

    *line = '\0';
    for (uint32_t i = 0; i < exemplar->call_count && size < TEXT_MAX - 200; i++) {
        const struct mr_exemplar_call *call = &exemplar->items[i];

        size += (size_t)snprintf(
            line + size, TEXT_MAX - size,
            "%s%u f%u %" PRIu64 "+%" PRIu64 " %u-%" PRIu64 ",%" PRIu64, i ? "; " : "",
            call->depth, call->site, call->start_ns, call->total_ns, call->flags,
            call->elided_calls, call->elided_ns);
    }
    test_text_add(text, "exemplar %s = %d %u %" PRIu64 " %" PRIu64 " %" PRIu64 ": %s",
                  row->key, (int)exemplar->status, exemplar->stream, exemplar->before,
                  exemplar->start_ns - TEST_START_S * MR_SECOND_NS, exemplar->calls,
                  line);
    free(line);
}

static void add_shape_path(struct test_text *text, const struct row *row)
{
    char self[80], total[80];

    times_text(self, sizeof(self), &row->shape_path.self);
    times_text(total, sizeof(total), &row->shape_path.total);
    test_text_add(text, "shape path %s = %" PRIu64 " %" PRIu64 " self=%s total=%s",
                  row->key, row->shape_path.ok, row->shape_path.failed, self, total);
}

static void add_rows(struct model *model)
{
    for (uint32_t i = 0; i < model->row_count; i++) {
        struct row *row = &model->rows[i];

        switch (row->kind) {
        case ROW_PATH:
            add_path(model->text, row);
            break;
        case ROW_SHAPE:
            add_shape(model->text, row);
            break;
        case ROW_ENTRY:
            add_entry(model->text, row);
            break;
        case ROW_LEDGER:
            add_ledger(model->text, row);
            break;
        case ROW_COUNT:
            add_count(model->text, row);
            break;
        case ROW_EXEMPLAR:
            add_exemplar(model->text, row);
            break;
        case ROW_SHAPE_PATH:
            add_shape_path(model->text, row);
            break;
        case ROW_COUNTER:
            test_text_add(model->text, "counter %s = %" PRIu64, row->key, row->value);
            break;
        }
        mr_histogram_fini(&row->path.histogram);
        mr_histogram_fini(&row->shape.histogram);
        free(row->calls);
        free(row->key);
    }
}

static void fini(struct model *model)
{
    for (uint32_t i = 0; i < model->node_count; i++)
        free(model->node_items[i].text);
    free(model->node_items);
    free(model->rows);
    free(model->paths);
    free(model->site_functions);
    free(model->shape_nodes);
    free(model->shape_paths);
    mr_table_fini(&model->row_keys);
    mr_table_fini(&model->sites);
    mr_table_fini(&model->told_sites);
    mr_table_fini(&model->nodes);
    mr_table_fini(&model->scopes);
}

void test_model(const struct test_lane *lane, struct test_text *text)
{
    struct model model = {.text = text};
    const struct mr_batch *batch = lane->out->first;

    mr_table_init(&model.row_keys, 1u << 24);
    mr_table_init(&model.sites, 1u << 16);
    mr_table_init(&model.told_sites, 1u << 24);
    mr_table_init(&model.nodes, 1u << 24);
    mr_table_init(&model.scopes, 1u << 16);
    for (uint32_t i = 0; i < TEST_SITES; i++)
        assert_int_equal(mr_table_put(&model.sites, test_site_id(i), i), MR_OK);
    while (batch) {
        if (batch->kind == MR_BATCH_DICT) {
            batch = take_dicts(&model, batch);
            continue;
        }
        assert_int_equal(batch->kind, MR_BATCH_DELTA);
        take_delta(&model, batch);
        batch = batch->next;
    }
    add_rows(&model);
    fini(&model);
    test_text_sort(text);
}
