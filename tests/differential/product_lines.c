/* SPDX-License-Identifier: Apache-2.0 */
/* What DICT and DELTA batches say, as lines. */
#include "product.h"

#include "../unit/unit_test.h"

#include <string.h>

#include "base/table.h"
#include "net/control.h"
#include "net/delta.h"
#include "net/ids.h"
#include "pipeline/accumulate.h"

#define PART_BYTES (4u << 20)
#define TEXT_SIZE 16384

/* What the numbers of a payload mean. */
struct names {
    struct ref_id *sites, *paths, *shapes, *joined, scope;
    uint32_t *shape_paths;
    uint32_t site_capacity, path_capacity, shape_capacity, joined_capacity;
};

/* What was told. */
struct told {
    struct mr_table sites, nodes;
};

static struct ref_id id_of(struct mr_id id)
{
    struct ref_id made;

    mr_id_put(id, made.bytes);
    return made;
}

static struct ref_id *place(struct ref_id **items, uint32_t *capacity, uint32_t index)
{
    if (index >= *capacity) {
        *capacity = 2 * index + 64;
        *items = realloc(*items, *capacity * sizeof(**items));
        assert_non_null(*items);
    }
    return &(*items)[index];
}

static void take_shape(struct names *names, const struct mr_delta_item *item)
{
    uint32_t capacity = names->shape_capacity;

    *place(&names->shapes, &names->shape_capacity, item->index) = id_of(item->id);
    if (capacity != names->shape_capacity) {
        names->shape_paths =
            realloc(names->shape_paths, names->shape_capacity * sizeof(uint32_t));
        assert_non_null(names->shape_paths);
    }
    names->shape_paths[item->index] = item->path;
}

/* False when the item names nothing. */
static bool take_name(struct names *names, const struct mr_delta_item *item)
{
    struct ref_id parent;

    switch (item->tag) {
    case MR_DELTA_SITE:
        *place(&names->sites, &names->site_capacity, item->index) = id_of(item->id);
        return true;
    case MR_DELTA_SCOPE:
        names->scope = id_of(item->id); /* there is one */
        return true;
    case MR_DELTA_PATH:
        parent =
            item->parent == MR_DELTA_NONE ? names->scope : names->paths[item->parent];
        *place(&names->paths, &names->path_capacity, item->index) = ref_id_path(
            parent, names->sites[item->site], (item->flags & MR_DELTA_PATH_OUTER) != 0);
        return true;
    case MR_DELTA_SHAPE:
        take_shape(names, item);
        return true;
    case MR_DELTA_JOINED:
        *place(&names->joined, &names->joined_capacity, item->index) = id_of(item->id);
        return true;
    default:
        return false;
    }
}

static void forget_names(struct names *names)
{
    free(names->sites);
    free(names->paths);
    free(names->shapes);
    free(names->shape_paths);
    free(names->joined);
    *names = (struct names){0};
}

void product_open_lines(const struct mr_batch *batch, struct test_text *text)
{
    for (; batch; batch = batch->next) {
        struct names names = {0};
        struct mr_delta_reader reader;
        struct mr_delta_item item;
        char id[REF_ID_TEXT];

        if (batch->kind != MR_BATCH_DELTA)
            continue;
        mr_delta_reader_init(&reader, mr_buffer_span(&batch->bytes));
        while (mr_delta_next(&reader, &item) == MR_OK)
            if (!take_name(&names, &item) && item.tag == MR_DELTA_OPEN)
                test_text_add(text, "open %s = %" PRIu64 " %" PRIu64 " %" PRIu64,
                              ref_id_text(names.paths[item.path], id), item.open->count,
                              item.open->oldest_ns, item.open->since_ns);
        mr_delta_reader_fini(&reader);
        forget_names(&names);
    }
}

/* Dictionaries. */

/* The id of a node is that of what it says. */
static void check_node(const struct mr_dict_node *node)
{
    struct ref_child *children = NULL;
    struct mr_span rest = node->children;
    struct mr_node_child child;
    struct ref_id id, told = id_of(node->id);
    size_t count = 0;

    while (mr_node_child_next(&rest, &child) == MR_OK) {
        children = realloc(children, (count + 1) * sizeof(*children));
        assert_non_null(children);
        children[count++] =
            (struct ref_child){.id = id_of(child.id), .repeat = child.repeat};
    }
    id = ref_id_node((uint8_t)node->exactness, id_of(node->site), children, count);
    free(children);
    assert_int_equal(ref_id_compare(&id, &told), 0);
}

static void take_item(struct told *told, const struct mr_dict_item *item,
                      struct test_text *text)
{
    char id[REF_ID_TEXT];
    uint32_t known;

    switch (item->kind) {
    case MR_DICT_SITE:
        assert_int_equal(mr_table_find_or_add(&told->sites, item->site.id, 1, &known),
                         MR_OK);
        break;
    case MR_DICT_NODE:
        assert_int_equal(mr_table_find(&told->sites, item->node.site), 1);
        assert_int_equal(mr_table_find_or_add(&told->nodes, item->node.id, 1, &known),
                         MR_OK);
        check_node(&item->node);
        break;
    case MR_DICT_OUTER:
        test_text_add(text, "outer %s %" PRIu32, ref_id_text(id_of(item->outer.site), id),
                      item->outer.why);
        break;
    default:
        break;
    }
}

static void take_dict(struct told *told, const struct mr_batch *batch,
                      struct test_text *text)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_dict_reader reader;
    struct mr_dict_item item;
    enum mr_status status;

    assert_int_equal(mr_dict_open(&reader, mr_buffer_span(&batch->bytes), &error), MR_OK);
    while ((status = mr_dict_next(&reader, &item, &error)) == MR_OK)
        take_item(told, &item, text);
    assert_int_equal(status, MR_END);
    mr_dict_close(&reader);
}

/* Sites and shapes of a delta were told before it came. */
static void check_told(const struct told *told, const struct mr_batch *batch)
{
    struct mr_delta_reader reader;
    struct mr_delta_item item;
    enum mr_status status;

    mr_delta_reader_init(&reader, mr_buffer_span(&batch->bytes));
    while ((status = mr_delta_next(&reader, &item)) == MR_OK) {
        if (item.tag == MR_DELTA_SITE)
            assert_int_equal(mr_table_find(&told->sites, item.id), 1);
        if (item.tag == MR_DELTA_SHAPE)
            assert_int_equal(mr_table_find(&told->nodes, item.id), 1);
    }
    assert_int_equal(status, MR_END);
    mr_delta_reader_fini(&reader);
}

/* Rows. */

static void times_text(char out[80], const struct mr_times *times)
{
    (void)snprintf(out, 80, "%" PRIu64 ",%" PRIu64 ",%" PRIu64, times->sum, times->min,
                   times->max);
}

static void histogram_text(char out[TEXT_SIZE], const struct mr_histogram *histogram)
{
    size_t size = (size_t)snprintf(out, TEXT_SIZE, "%" PRIu64, histogram->zero);

    if (histogram->count)
        size += (size_t)snprintf(out + size, TEXT_SIZE - size, ";%d;%d", histogram->scale,
                                 histogram->first);
    for (uint32_t i = 0; i < histogram->count; i++)
        size += (size_t)snprintf(out + size, TEXT_SIZE - size, "%c%" PRIu64,
                                 i ? ',' : ';', histogram->counts[i]);
    assert_true(size < TEXT_SIZE);
}

static void add_path(const struct names *names, const struct mr_delta_item *item,
                     struct test_text *text)
{
    const struct mr_path_stats *stats = item->path_stats;
    char id[REF_ID_TEXT], self[80], total[80], histogram[TEXT_SIZE];

    times_text(self, &stats->self);
    times_text(total, &stats->total);
    histogram_text(histogram, &stats->histogram);
    test_text_add(text,
                  "path %s @%" PRIu64 " = %" PRIu64 " %" PRIu64 " %" PRIu64
                  " self=%s total=%s hist=%s",
                  ref_id_text(names->paths[item->path], id), item->window, stats->ok,
                  stats->failed, stats->incomplete, self, total, histogram);
}

static void add_shape(const struct names *names, const struct mr_delta_item *item,
                      struct test_text *text)
{
    const struct mr_shape_stats *stats = item->shape_stats;
    char path[REF_ID_TEXT], id[REF_ID_TEXT], time[80], histogram[TEXT_SIZE];

    times_text(time, &stats->time);
    histogram_text(histogram, &stats->histogram);
    test_text_add(text,
                  "shape %s %s @%" PRIu64 " = %" PRIu64 " %" PRIu64 " %" PRIu64
                  " %" PRIu64 " %" PRIu64 " %" PRIu64 " time=%s hist=%s",
                  ref_id_text(names->paths[names->shape_paths[item->shape]], path),
                  ref_id_text(names->shapes[item->shape], id), item->window, stats->ok,
                  stats->failed, stats->calls, stats->folded, stats->first_ns,
                  stats->last_ns, time, histogram);
}

static void add_entry(const struct names *names, const struct mr_delta_item *item,
                      struct test_text *text)
{
    const struct mr_entry_stats *stats = item->entry_stats;
    char id[REF_ID_TEXT], line[512];
    size_t size = 0;

    for (int i = 0; i < MR_COVERAGE_COUNT; i++)
        size += (size_t)snprintf(line + size, sizeof(line) - size,
                                 " %" PRIu64 ",%" PRIu64 ",%" PRIu64, stats->traces[i],
                                 stats->calls[i], stats->time_ns[i]);
    test_text_add(text, "entry %s @%" PRIu64 " =%s",
                  ref_id_text(names->paths[item->path], id), item->window, line);
}

static void add_ledger(const struct mr_delta_item *item, struct test_text *text)
{
    const struct mr_ledger_entry *ledger = item->ledger;
    char line[512] = "";
    size_t size = 0;

    for (int i = 0; i < MR_LOSS_REASON_COUNT; i++)
        if (ledger->lost[i])
            size += (size_t)snprintf(line + size, sizeof(line) - size, " %d:%" PRIu64, i,
                                     ledger->lost[i]);
    test_text_add(text, "ledger %" PRIu32 " = %" PRIu64 " %" PRIu64 " %" PRId64 "%s",
                  item->stream, ledger->last, ledger->reduced, ledger->held, line);
}

static void add_exemplar(const struct names *names, const struct mr_delta_item *item,
                         struct test_text *text)
{
    const struct mr_exemplar *exemplar = item->exemplar;
    size_t size = 0, room = 200 + 150 * (size_t)exemplar->call_count;
    char path[REF_ID_TEXT], id[REF_ID_TEXT] = "-", *line = malloc(room);

    *line = '\0';
    if (item->shape != MR_DELTA_NONE)
        (void)ref_id_text(names->shapes[item->shape], id);
    for (uint32_t i = 0; i < exemplar->call_count; i++) {
        const struct mr_exemplar_call *call = &exemplar->items[i];
        char site[REF_ID_TEXT];

        size += (size_t)snprintf(
            line + size, room - size,
            "; %u %.8s %" PRIu64 "+%" PRIu64 " %u-%" PRIu64 ",%" PRIu64, call->depth,
            ref_id_text(names->sites[call->site], site), call->start_ns, call->total_ns,
            call->flags, call->elided_calls, call->elided_ns);
    }
    test_text_add(text,
                  "exemplar %s %s why=%u %d %u %" PRIu64 " %" PRIu64 " %" PRIu64 "%s",
                  ref_id_text(names->paths[item->path], path), id, exemplar->why,
                  (int)exemplar->status, exemplar->stream, exemplar->before,
                  exemplar->start_ns, exemplar->calls, line);
    free(line);
}

static size_t edge_text(char *out, size_t size, const struct mr_part *part,
                        const struct mr_part_edge *edge)
{
    char id[REF_ID_TEXT];

    return (size_t)snprintf(out, size, " %" PRIu32 ":%.12s+%" PRId64, edge->kind,
                            ref_id_text(id_of(edge->key), id),
                            (int64_t)(edge->ns - part->start_ns));
}

static void add_part(const struct mr_part *part, struct test_text *text)
{
    char id[REF_ID_TEXT], trace[REF_ID_TEXT], path[REF_ID_TEXT], node[REF_ID_TEXT];
    char line[64 * (MR_PART_EDGES_MAX + 2)] = "";
    size_t size = 0;

    if (part->in.kind)
        size = edge_text(line, sizeof(line), part, &part->in);
    size += (size_t)snprintf(line + size, sizeof(line) - size, " ->");
    for (uint32_t i = 0; i < part->out_count; i++)
        size += edge_text(line + size, sizeof(line) - size, part, &part->out[i]);
    test_text_add(
        text, "part %s = %s %s %s %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 "%s",
        ref_id_text(id_of(part->id), id), ref_id_text(id_of(part->trace), trace),
        ref_id_text(id_of(part->path), path), ref_id_text(id_of(part->node), node),
        part->status, part->flags, part->start_ns, part->end_ns, line);
}

static void add_joined(const struct names *names, const struct mr_delta_item *item,
                       struct test_text *text)
{
    const struct mr_joined_stats *stats = item->joined_stats;
    char id[REF_ID_TEXT], slowest[REF_ID_TEXT], time[80], histogram[TEXT_SIZE];

    times_text(time, &stats->time);
    histogram_text(histogram, &stats->histogram);
    test_text_add(text,
                  "joined %s @%" PRIu64 " = %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                  " %" PRIu64 " slowest=%s time=%s hist=%s",
                  ref_id_text(names->joined[item->joined], id), item->window, stats->ok,
                  stats->failed, stats->incomplete, stats->first_ns, stats->last_ns,
                  ref_id_text(id_of(stats->slowest), slowest), time, histogram);
}

static void add_edge(const struct names *names, const struct mr_delta_item *item,
                     struct test_text *text)
{
    const struct mr_edge_stats *stats = item->edge_stats;
    char id[REF_ID_TEXT], time[80], histogram[TEXT_SIZE];

    times_text(time, &stats->time);
    histogram_text(histogram, &stats->histogram);
    test_text_add(text,
                  "edge %s @%" PRIu64 " %" PRIu32 " = %" PRIu64 " %" PRIu64
                  " time=%s hist=%s",
                  ref_id_text(names->joined[item->joined], id), item->window, item->place,
                  stats->count, stats->clamped, time, histogram);
}

static void add_rows(struct mr_span payload, struct test_text *text)
{
    struct names names = {0};
    struct mr_delta_reader reader;
    struct mr_delta_item item;
    enum mr_status status;

    mr_delta_reader_init(&reader, payload);
    while ((status = mr_delta_next(&reader, &item)) == MR_OK) {
        if (take_name(&names, &item))
            continue;
        if (item.tag == MR_DELTA_PATH_STAT)
            add_path(&names, &item, text);
        if (item.tag == MR_DELTA_SHAPE_STAT)
            add_shape(&names, &item, text);
        if (item.tag == MR_DELTA_ENTRY_STAT)
            add_entry(&names, &item, text);
        if (item.tag == MR_DELTA_LEDGER)
            add_ledger(&item, text);
        if (item.tag == MR_DELTA_EXEMPLAR)
            add_exemplar(&names, &item, text);
        if (item.tag == MR_DELTA_PART)
            add_part(item.part, text);
        if (item.tag == MR_DELTA_JOINED_STAT)
            add_joined(&names, &item, text);
        if (item.tag == MR_DELTA_JOINED_EDGE)
            add_edge(&names, &item, text);
    }
    assert_int_equal(status, MR_END);
    mr_delta_reader_fini(&reader);
    forget_names(&names);
}

static void write_rows(struct mr_accumulator *merged, struct test_text *text)
{
    struct mr_buffer payload;

    mr_buffer_init(&payload, (size_t)PART_BYTES + (8u << 20));
    assert_int_equal(mr_accumulator_write_begin(merged), MR_OK);
    while (mr_accumulator_write(merged, 1, 1, &payload) == MR_OK) {
        add_rows(mr_buffer_span(&payload), text);
        mr_buffer_clear(&payload);
    }
    mr_buffer_fini(&payload);
}

void product_rows(const struct product_batches *batches, struct test_text *text)
{
    const struct mr_accumulator_limits limits = {.windows_max = 1u << 16,
                                                 .part_bytes = PART_BYTES};
    struct mr_accumulator *merged;
    struct mr_error error = MR_ERROR_NONE;

    assert_int_equal(mr_accumulator_new(&limits, &merged), MR_OK);
    for (const struct mr_batch *batch = batches->first; batch; batch = batch->next) {
        if (batch->kind != MR_BATCH_DELTA)
            continue;
        mr_accumulator_open(merged, mr_buffer_span(&batch->bytes));
        assert_int_equal(mr_accumulator_merge(merged, &error), MR_OK);
    }
    write_rows(merged, text);
    mr_accumulator_free(merged);
}

void product_lines(const struct product_batches *batches, struct test_text *text)
{
    struct told told;

    mr_table_init(&told.sites, 1u << 20);
    mr_table_init(&told.nodes, 1u << 24);
    for (const struct mr_batch *batch = batches->first; batch; batch = batch->next) {
        if (batch->kind == MR_BATCH_DICT)
            take_dict(&told, batch, text);
        else
            check_told(&told, batch);
    }
    mr_table_fini(&told.sites);
    mr_table_fini(&told.nodes);
    product_rows(batches, text);
}
