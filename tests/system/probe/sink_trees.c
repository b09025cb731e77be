/* SPDX-License-Identifier: Apache-2.0 */
#include "sink_trees.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "pipeline/filters/decode.h"
#include "pipeline/filters/reconstruct.h"
#include "pipeline/graph.h"
#include "pipeline/source.h"
#include "pipeline/symbols.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOURCES_MAX 4096

static struct {
    FILE *file;
    struct mr_sites *sites;
    struct mr_graph *graph;
    struct mr_decode_config decode;
    struct mr_reconstruct_config reconstruct;
    struct mr_source *sources[SOURCES_MAX];
    uint32_t numbers[SOURCES_MAX];
    uint32_t count;
} trees;

static void die(const char *what)
{
    fprintf(stderr, "sink: %s\n", what);
    exit(2);
}

static uint32_t number_of(const struct mr_source *source)
{
    for (uint32_t i = 0; i < trees.count; i++)
        if (trees.sources[i] == source)
            return trees.numbers[i];
    die("a source that nobody knows");
    return 0;
}

static void print_event(uint32_t source, uint32_t stream, const struct mr_event *event)
{
    FILE *file = trees.file;

    if (event->kind == MR_EVENT_OPEN)
        fprintf(file, "o %u %u %u\n", source, stream, event->site);
    else if (event->kind == MR_EVENT_CLOSE)
        fprintf(file, "c %u %u %u %u\n", source, stream, event->site, event->flags);
    else if (event->kind == MR_EVENT_TRACE_BROKEN)
        fprintf(file, "b %u %u\n", source, stream);
    else if (event->kind == MR_EVENT_COUNTED)
        fprintf(file, "n %u %u %" PRIu64 " %u\n", source, stream, event->ns,
                event->flags);
    else if (event->kind == MR_EVENT_STATUS) /* one event, which is no call */
        fprintf(file, "n %u %u 1 0\n", source, stream);
    else if (event->kind == MR_EVENT_STREAM_END)
        fprintf(file, "e %u %u\n", source, stream);
}

/* The last filter: writes what reconstruct says. */
static enum mr_status print_open(struct mr_filter *filter, const void *config,
                                 struct mr_error *error)
{
    MR_UNUSED(filter);
    MR_UNUSED(config);
    MR_UNUSED(error);
    return MR_OK;
}

static enum mr_status print_process(struct mr_filter *filter, struct mr_batch *batch)
{
    MR_UNUSED(filter);
    if (batch->kind == MR_BATCH_EVENTS) {
        uint32_t source = number_of(batch->source);

        for (uint32_t i = 0; i < batch->event_count; i++)
            print_event(source, batch->stream->id, &batch->events[i]);
    } else if (batch->kind == MR_BATCH_END) {
        fprintf(trees.file, "end %u %u\n", number_of(batch->source), batch->end_state);
    }
    mr_batch_free(batch);
    return MR_OK;
}

static const struct mr_filter_kind print_filter = {
    .name = "print", .state_size = 1, .open = print_open, .process = print_process};

void sink_trees_open(const char *path)
{
    const struct mr_graph_node nodes[] = {
        {&mr_decode_filter, &trees.decode, MR_PLACE_FUSED},
        {&mr_reconstruct_filter, &trees.reconstruct, MR_PLACE_FUSED},
        {&print_filter, NULL, MR_PLACE_FUSED},
    };
    struct mr_error error = MR_ERROR_NONE;

    trees.file = fopen(path, "w");
    if (!trees.file || mr_sites_new(MR_SITES_LIMIT_DEFAULT, &trees.sites) != MR_OK)
        die(path);
    trees.decode = (struct mr_decode_config){
        .sites = trees.sites, .level = 1, .streams_max = MR_SOURCE_STREAMS_DEFAULT};
    trees.reconstruct = (struct mr_reconstruct_config){
        .outer = {.sites = trees.sites},
        .level = 1,
        .depth_max = MR_RECONSTRUCT_DEPTH_DEFAULT,
        .learn_ns = MR_RECONSTRUCT_LEARN_NS_DEFAULT,
        .learn_children = MR_RECONSTRUCT_LEARN_CHILDREN_DEFAULT};
    if (mr_graph_new(nodes, MR_ARRAY_COUNT(nodes), "trees", &trees.graph, &error) !=
            MR_OK ||
        mr_graph_start(trees.graph) != MR_OK)
        die(error.text);
}

struct mr_source *sink_trees_source(const struct mr_hello *hello, uint32_t number)
{
    struct mr_source *source = NULL; /* clang does not see that die() ends */

    if (trees.count == SOURCES_MAX || mr_source_new(hello, false, &source) != MR_OK)
        die("too many sources");
    trees.sources[trees.count] = source;
    trees.numbers[trees.count++] = number;
    fprintf(trees.file, "source %u %u\n", number, hello->source.pid);
    return source;
}

static void push(struct mr_batch *batch)
{
    if (!batch || mr_graph_push(trees.graph, batch) != MR_OK)
        die("the graph takes no batch");
}

static void print_streams(const struct mr_source *source, struct mr_span payload)
{
    struct mr_dict_reader reader;
    struct mr_dict_item item;
    struct mr_error error = MR_ERROR_NONE;

    if (mr_dict_open(&reader, payload, &error) != MR_OK)
        return;
    while (mr_dict_next(&reader, &item, &error) == MR_OK)
        if (item.kind == MR_DICT_STREAM)
            fprintf(trees.file, "stream %u %u %s\n", number_of(source),
                    item.stream.stream, item.stream.name);
    mr_dict_close(&reader);
}

void sink_trees_frame(struct mr_source *source, const struct mr_frame *frame)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_FRAME);

    if (!batch)
        die("no memory");
    if (frame->type == MR_FRAME_DICT)
        print_streams(source, frame->payload);
    batch->source = source;
    batch->frame = *frame;
    push(batch);
    if (mr_source_is_broken(source)) {
        printf("fault: %s\n", mr_source_error(source));
        die(mr_source_error(source));
    }
}

void sink_trees_end(struct mr_source *source, bool is_finished)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_END);

    if (!batch)
        die("no memory");
    batch->source = source;
    batch->end_state = is_finished ? MR_SOURCE_FINISHED : MR_SOURCE_DIED;
    push(batch);
}

static void print_sites(void)
{
    struct mr_symbols *symbols;

    if (mr_symbols_new(NULL, &symbols) != MR_OK)
        die("no memory");
    for (uint32_t i = 0; i < trees.sites->count; i++) {
        const struct mr_site *site = mr_sites_at(trees.sites, i);
        struct mr_symbol symbol = {.name = ""};

        if (site->module)
            (void)mr_symbols_lookup(symbols, site->module->build_id, site->module->path,
                                    site->offset, &symbol);
        else
            symbol.name = site->name;
        fprintf(trees.file, "site %u %s\n", i,
                symbol.name && *symbol.name ? symbol.name : "?");
    }
    mr_symbols_free(symbols);
}

void sink_trees_close(void)
{
    struct mr_error error = MR_ERROR_NONE;

    if (mr_graph_drain(trees.graph) != MR_OK ||
        mr_graph_status(trees.graph, &error) != MR_OK)
        die(error.text);
    print_sites();
    mr_graph_free(trees.graph);
    for (uint32_t i = 0; i < trees.count; i++)
        mr_source_free(trees.sources[i]);
    mr_sites_free(trees.sites);
    if (fclose(trees.file) != 0)
        die("the file of the trees");
}
