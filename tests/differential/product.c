/* SPDX-License-Identifier: Apache-2.0 */
#include "product.h"

#include "../unit/unit_test.h"

#include <string.h>

#include "net/control.h"
#include "net/ids.h"
#include "pipeline/filters/decode.h"
#include "pipeline/filters/join.h"
#include "pipeline/filters/merge.h"
#include "pipeline/source.h"

#define FAR_MS UINT64_C(100000)
#define NODES_MAX 4
#define REDUCE 2 /* among them */

struct product {
    struct product_config config;
    struct mr_sites *sites;
    struct mr_source *source;
    struct mr_graph *graph;
    struct mr_decode_config decode;
    struct mr_reconstruct_config reconstruct;
    struct mr_reduce_config reduce;
    struct product_batches *out; /* keep's config is its address */
    uint64_t now_ns;
    bool is_finished;
};

/* The last filter: keeps what leaves. */
static enum mr_status keep_open(struct mr_filter *filter, const void *config,
                                struct mr_error *error)
{
    struct product_batches **state = mr_filter_state(filter);

    (void)error;
    *state = *(struct product_batches *const *)config;
    return MR_OK;
}

static enum mr_status keep_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct product_batches *out = *(struct product_batches **)mr_filter_state(filter);

    batch->next = NULL;
    *out->end = batch;
    out->end = &batch->next;
    return MR_OK;
}

static const struct mr_filter_kind keep_filter = {.name = "keep",
                                                  .state_size =
                                                      sizeof(struct product_batches *),
                                                  .open = keep_open,
                                                  .process = keep_process};

static void make_source(struct product *product)
{
    const struct ref_options *model = &product->config.model;
    struct mr_hello hello = {
        .sender = {product->config.source + 1, 2},
        .role = MR_ROLE_PROBE,
        .oldest = 1,
        .token = "",
        .source = {.host = "host",
                   .app = model->app,
                   .version = model->version,
                   .exe = "/bin/app",
                   .pid = 7,
                   .start_ns = model->clock_realtime_ns,
                   .clock = {.kind = MR_CLOCK_MONOTONIC,
                             .mult = (uint32_t)model->clock_mult,
                             .shift = (uint8_t)model->clock_shift,
                             .ticks = model->clock_ticks,
                             .realtime_ns = model->clock_realtime_ns}}};

    assert_int_equal(mr_source_new(&hello, false, &product->source), MR_OK);
}

static void set_configs(struct product *product)
{
    const struct ref_options *model = &product->config.model;

    product->decode = (struct mr_decode_config){
        .sites = product->sites, .worker = {3, 4}, .level = 1, .streams_max = 1u << 20};
    product->reconstruct =
        (struct mr_reconstruct_config){.outer.sites = product->sites,
                                       .level = 1,
                                       .depth_max = model->depth_max,
                                       .learn_ns = model->learn_ns,
                                       .learn_children = model->learn_children,
                                       .learns_nothing = !model->learns};
    product->reduce = product->config.reduce;
    product->reduce.sites = product->sites;
    product->reduce.level = 1;
    product->reduce.has_repeats = product->config.place == MR_PLACE_FUSED;
    product->reconstruct.is_followed = product->config.place == MR_PLACE_FUSED;
    product->reduce.exemplar_calls = model->exemplar_calls;
    product->reduce.exactness = (enum mr_exactness)model->exactness;
    product->reduce.trace_children_max = model->trace_children_max;
    product->reduce.window_s = (uint32_t)model->window_s;
}

static struct product_batches *new_batches(void)
{
    struct product_batches *made = calloc(1, sizeof(*made));

    assert_non_null(made);
    made->end = &made->first;
    return made;
}

struct product *product_new(const struct product_config *config)
{
    struct product *product = calloc(1, sizeof(*product));
    struct mr_graph_node nodes[NODES_MAX] = {
        {&mr_decode_filter, &product->decode, MR_PLACE_FUSED},
        {&mr_reconstruct_filter, &product->reconstruct, config->place},
        {&mr_reduce_filter, &product->reduce, config->place},
        {&keep_filter, &product->out, MR_PLACE_FUSED}};
    struct mr_error error = MR_ERROR_NONE;

    assert_non_null(product);
    product->config = *config;
    product->out = new_batches();
    assert_int_equal(mr_sites_new(MR_SITES_LIMIT_DEFAULT, &product->sites), MR_OK);
    make_source(product);
    set_configs(product);
    assert_int_equal(
        mr_graph_new(nodes, NODES_MAX - config->forgets, "lane", &product->graph, &error),
        MR_OK);
    assert_int_equal(mr_graph_start(product->graph), MR_OK);
    product->now_ns = mr_clock_monotonic_ns();
    return product;
}

static void push(struct product *product, enum mr_frame_type type, const void *payload,
                 size_t size)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_FRAME);

    assert_non_null(batch);
    batch->source = product->source;
    batch->frame.type = (uint8_t)type;
    batch->frame.sequence = 1;
    batch->frame.payload = mr_span_of(payload, size);
    assert_int_equal(mr_graph_push(product->graph, batch), MR_OK);
}

static void push_item(struct product *product, const struct mr_dict_item *item)
{
    uint8_t payload[4096];
    struct mr_dict_writer writer;

    mr_dict_writer_init(&writer, payload, sizeof(payload));
    assert_int_equal(mr_dict_put(&writer, item), MR_OK);
    push(product, MR_FRAME_DICT, payload, mr_dict_writer_finish(&writer));
}

static void tell_module(struct product *product, uint32_t number)
{
    const struct script_module *module = &script_modules[number];
    struct mr_dict_item item = {
        .kind = MR_DICT_MODULE,
        .module = {.epoch = SCRIPT_EPOCH,
                   .module = number,
                   .site_base = module->site_base,
                   .address = module->address,
                   .size = SCRIPT_MODULE_SIZE,
                   .bias = module->bias,
                   .build_id = mr_span_of(module->build_id, strlen(module->build_id)),
                   .path = "/lib/test.so"}};

    push_item(product, &item);
}

static void tell_name(struct product *product, uint32_t wire, uint32_t flags)
{
    char name[24];
    struct mr_dict_item item = {
        .kind = MR_DICT_NAMED_SITE,
        .named_site = {
            .site = wire, .name = script_name(wire, name), .file = "", .flags = flags}};

    push_item(product, &item);
}

static void tell_stream(struct product *product, uint32_t stream, uint32_t start_site)
{
    struct mr_dict_item item = {
        .kind = MR_DICT_STREAM,
        .stream = {
            .stream = stream, .tid = stream, .name = "thread", .start_site = start_site}};

    push_item(product, &item);
}

static void tick(struct product *product, uint64_t ms)
{
    product->now_ns += ms * MR_MILLISECOND_NS;
    assert_int_equal(mr_graph_tick(product->graph, product->now_ns), MR_OK);
}

/* A delta is made now, and what it says of open traces is told. */
static void show_open(struct product *product, struct test_text *text)
{
    struct mr_batch **at = product->out->end;

    tick(product, FAR_MS);
    product_open_lines(*at, text);
}

void product_op(struct product *product, const struct op *op, struct test_text *text)
{
    switch (op->kind) {
    case OP_MODULE:
        tell_module(product, op->number);
        break;
    case OP_NAMED:
        tell_name(product, op->number, op->value);
        break;
    case OP_STREAM:
        tell_stream(product, op->number, op->value);
        break;
    case OP_CHUNKS:
        push(product, MR_FRAME_CHUNKS, op->bytes, op->size);
        break;
    case OP_TICK:
        tick(product, op->value);
        break;
    case OP_OPEN:
        show_open(product, text);
        break;
    }
}

uint64_t product_counter(const struct product *product, const char *name)
{
    struct mr_filter_stats stats[NODES_MAX];

    assert_true(mr_graph_stats(product->graph, stats, NODES_MAX) >= REDUCE);
    for (uint32_t i = 0; i < MR_FILTER_COUNTERS; i++)
        if (stats[REDUCE].counter_names[i] &&
            strcmp(stats[REDUCE].counter_names[i], name) == 0)
            return stats[REDUCE].counters[i];
    fail_msg("no counter %s", name);
    return 0;
}

uint64_t product_finish(struct product *product)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_END);
    struct mr_error error = MR_ERROR_NONE;

    assert_non_null(batch);
    product->is_finished = true;
    batch->source = product->source;
    batch->end_state = MR_SOURCE_FINISHED;
    assert_int_equal(mr_graph_push(product->graph, batch), MR_OK);
    assert_int_equal(mr_graph_drain(product->graph), MR_OK);
    assert_int_equal(mr_graph_status(product->graph, &error), MR_OK);
    if (mr_source_is_broken(product->source))
        fail_msg("broken: %s", mr_source_error(product->source));
    assert_true(mr_source_is_done(product->source));
    return product_counter(product, "held");
}

void product_end(struct product *product, struct product_batches *batches)
{
    if (!product->is_finished)
        (void)product_finish(product);
    mr_graph_free(product->graph);
    mr_source_free(product->source);
    mr_sites_free(product->sites);
    if (batches)
        *batches = *product->out;
    if (batches && !batches->first)
        batches->end = &batches->first;
    free(product->out);
    free(product);
}

void product_append(struct product_batches *to, struct product_batches *from)
{
    if (!to->end)
        to->end = &to->first;
    *to->end = from->first;
    if (from->first)
        to->end = from->end;
    *from = (struct product_batches){NULL, NULL};
}

void product_free(struct product_batches *batches)
{
    while (batches->first) {
        struct mr_batch *next = batches->first->next;

        mr_batch_free(batches->first);
        batches->first = next;
    }
    batches->end = &batches->first;
}

/* `join`: NULL: without. Drained, the graph is given to whoever wants to know more of it. */
static struct mr_graph *merge(struct product_batches *batches,
                              const struct mr_join_config *join,
                              const struct mr_merge_config *config, enum mr_place place)
{
    struct product_batches *out = new_batches();
    const struct mr_graph_node nodes[] = {{&mr_join_filter, join, MR_PLACE_FUSED},
                                          {&mr_merge_filter, config, MR_PLACE_FUSED},
                                          {&keep_filter, &out, place}};
    struct mr_batch *batch = batches->first, *next;
    struct mr_graph *graph;

    assert_int_equal(
        mr_graph_new(join ? nodes : nodes + 1, join ? 3 : 2, "trunk", &graph, NULL),
        MR_OK);
    assert_int_equal(mr_graph_start(graph), MR_OK);
    for (; batch; batch = next) {
        next = batch->next;
        batch->next = NULL;
        assert_int_equal(mr_graph_push(graph, batch), MR_OK);
    }
    assert_int_equal(mr_graph_drain(graph), MR_OK);
    *batches = *out;
    if (!batches->first)
        batches->end = &batches->first;
    free(out);
    return graph;
}

void product_merge(struct product_batches *batches, uint32_t level, enum mr_place place)
{
    const struct mr_merge_config config = {.level = level};

    mr_graph_free(merge(batches, NULL, &config, place));
}

void product_join(struct product_batches *batches, uint32_t level, uint32_t parts,
                  uint32_t window_s, enum mr_place place)
{
    const struct mr_merge_config config = {.level = level};
    const struct mr_join_config join = {.level = level,
                                        .period_ns = MR_SECOND_NS,
                                        .parts_max = parts,
                                        .delta_bytes_max = 65536,
                                        .window_s = window_s};

    mr_graph_free(merge(batches, &join, &config, place));
}

uint64_t product_merge_collisions(struct product_batches *batches)
{
    const struct mr_merge_config config = {.level = 1};
    struct mr_graph *graph = merge(batches, NULL, &config, MR_PLACE_FUSED);
    struct mr_filter_stats stats[2];

    assert_int_equal(mr_graph_stats(graph, stats, 2), 2);
    mr_graph_free(graph);
    assert_string_equal(stats[0].counter_names[MR_MERGE_COLLISIONS],
                        "merge_id_collisions");
    return stats[0].counters[MR_MERGE_COLLISIONS];
}
