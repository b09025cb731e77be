/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/graphs.h"

#include "base/assert.h"
#include "base/atomics.h"
#include "net/delta.h"
#include "pipeline/dict_batch.h"
#include "pipeline/filters/account.h"
#include "pipeline/filters/decode.h"
#include "pipeline/filters/gather.h"
#include "pipeline/filters/join.h"
#include "pipeline/filters/merge.h"
#include "pipeline/filters/names.h"
#include "pipeline/filters/reconstruct.h"
#include "pipeline/filters/reduce.h"
#include "pipeline/sites.h"
#include "pipeline/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lane_parts {
    struct mr_sites *sites;
    struct mr_symbols *symbols; /* for --outer and --root alone; used by reconstruct */
    struct mr_decode_config decode;
    struct mr_reconstruct_config reconstruct;
    struct mr_reduce_config reduce;
};

#define PART_BYTES_MAX                                                                   \
    (UINT32_C(1) << 20) /* of a delta: what merge and reduce have by default */

#define SITE_BYTES 18u                /* of a call's site in a delta */
#define PATH_BYTES (SITE_BYTES + 10u) /* of a path, beside those above it */
/* Of a row, beside its path. */
#define ROW_BYTES ((uint32_t)MR_HISTOGRAM_SIZE_MAX(MR_HISTOGRAM_BUCKETS_MAX) + 256u)

/* Of a node in a dictionary: all but its children; one of these, an id and a repeat of up to 2^32 - 1 (pipeline/shapes.h). */
#define NODE_BYTES 1024u
#define CHILD_BYTES (16u + 5u)

/* Of worker/counters.def, what the ledger of the master shows by level. */
#define TOLD_COUNTERS(X)                                                                 \
    X(frames)                                                                            \
    X(duplicates)                                                                        \
    X(claims)                                                                            \
    X(takeovers)                                                                         \
    X(frames_handed_over)                                                                \
    X(frames_in_doubt)
enum {
#define X(name) TOLD_##name,
    TOLD_COUNTERS(X)
#undef X
        TOLD_FRAMES_TOO_LARGE, /* forward's */
    TOLD_COUNT
};

struct account_parts {
    char texts[TOLD_COUNT][MR_DELTA_COUNTER_NAME_MAX];
    const char *names[TOLD_COUNT];
    const _Atomic uint64_t *values[TOLD_COUNT];
    struct mr_account_config config;
};

struct mr_worker_graphs {
    struct lane_parts lanes[MR_WORKER_LANES_MAX];
    struct mr_names_config names; /* zero: its defaults */
    struct account_parts account;
    struct mr_join_config join;
    struct mr_merge_config merge;
    struct mr_forward_config forward;
    struct mr_forward_link link;
    struct mr_resolver *resolver;   /* of --forward; NULL: its hosts are numeric */
    struct mr_asks *asks;           /* borrowed */
    struct mr_wanted_board *wanted; /* borrowed */
    struct mr_spool *spool;         /* borrowed; NULL: none */
    struct mr_graph *graphs[MR_WORKER_LANES_MAX + 1]; /* the lanes', then the trunk */
    uint32_t lane_count;
    uint32_t graph_count; /* made so far */
};

static enum mr_status new_trunk(struct mr_worker_graphs *graphs, struct mr_error *error)
{
    const struct mr_graph_node nodes[] = {
        {&mr_scatter_filter, NULL, MR_PLACE_THREAD}, /* where there are marks */
        {&mr_names_filter, &graphs->names,
         graphs->spool ? MR_PLACE_FUSED : MR_PLACE_THREAD},
        {&mr_account_filter, &graphs->account.config, MR_PLACE_FUSED},
        {&mr_join_filter, &graphs->join, MR_PLACE_FUSED},
        {&mr_merge_filter, &graphs->merge, MR_PLACE_FUSED},
        {&mr_forward_filter, &graphs->forward, MR_PLACE_THREAD},
    };
    uint32_t skipped = !graphs->spool;

    return mr_graph_new(nodes + skipped, (uint32_t)MR_ARRAY_COUNT(nodes) - skipped,
                        "trunk", &graphs->graphs[graphs->lane_count], error);
}

/* A part of a delta may grow past this by its last item: it must still fit a frame. */
static uint32_t part_bytes(const struct mr_worker_options *options)
{
    uint32_t quarter = (uint32_t)options->max_frame / 4;

    return quarter < PART_BYTES_MAX ? quarter : PART_BYTES_MAX;
}

/* A row behind a part of a delta that is almost full, with all that its path names, must still fit a frame. */
static uint32_t path_depth(const struct mr_worker_options *options)
{
    uint64_t depth = (options->max_frame - part_bytes(options) - ROW_BYTES) / PATH_BYTES;

    return depth < MR_PATHS_DEPTH_MAX ? (uint32_t)depth : MR_PATHS_DEPTH_MAX;
}

/* Of an exemplar, asked for or not: behind a part of a delta that is almost full it must still fit a frame. */
static uint32_t exemplar_calls_max(const struct mr_worker_options *options)
{
    uint64_t calls = (options->max_frame - part_bytes(options)) /
                     (MR_EXEMPLAR_BYTES_MAX(1) + SITE_BYTES);

    return calls < MR_EXEMPLAR_CALLS_MAX ? (uint32_t)calls : MR_EXEMPLAR_CALLS_MAX;
}

/* Of the exemplars that nobody asked for. */
static uint32_t exemplar_calls(const struct mr_worker_options *options)
{
    uint64_t calls = options->exemplar_bytes / sizeof(struct mr_exemplar_call);
    uint32_t most = exemplar_calls_max(options);

    return calls < most ? (uint32_t)calls : most;
}

/* What it has at most may be the children of one node: its definition must be an item of a dictionary, in a frame. */
static uint32_t trace_children(const struct mr_worker_options *options)
{
    uint64_t bytes = options->max_frame < MR_DICT_ITEM_BYTES_MAX ? options->max_frame
                                                                 : MR_DICT_ITEM_BYTES_MAX;
    uint64_t children = (bytes - NODE_BYTES) / CHILD_BYTES;

    return options->max_trace < children ? (uint32_t)options->max_trace
                                         : (uint32_t)children;
}

/* For globs over names. The first function of a module makes the lane read its symbols. */
static const char *resolve(void *context, const struct mr_site *site)
{
    struct mr_symbols *symbols = context;
    struct mr_symbol symbol;

    if (!site->module ||
        mr_symbols_lookup(symbols, site->module->build_id, site->module->path,
                          site->offset, &symbol) != MR_OK)
        return NULL;
    return *symbol.name ? symbol.name : NULL;
}

/* Of what a driver may spend in a second, so that more lanes do not cost more; 0 stays 0. */
static uint64_t lane_part(const struct mr_worker_options *options, uint64_t of_driver)
{
    uint64_t part = of_driver * options->drivers / options->lanes;

    return of_driver > 0 && part == 0 ? 1 : part;
}

static void configure_lane(struct lane_parts *lane,
                           const struct mr_worker_options *options,
                           struct mr_id incarnation)
{
    lane->decode = (struct mr_decode_config){
        .sites = lane->sites,
        .worker = incarnation,
        .level = (uint32_t)options->level,
        .streams_max = (uint32_t)options->max_streams,
        .clock_limit_ns = options->clock_limit_ns,
    };
    lane->reconstruct = (struct mr_reconstruct_config){
        .outer = {.sites = lane->sites,
                  .outer_globs = options->outer_globs.items,
                  .root_globs = options->root_globs.items,
                  .outer_glob_count = options->outer_globs.count,
                  .root_glob_count = options->root_globs.count,
                  .resolve = lane->symbols ? resolve : NULL,
                  .context = lane->symbols},
        .level = (uint32_t)options->level,
        .depth_max = MR_RECONSTRUCT_DEPTH_DEFAULT,
        .learn_ns = MR_RECONSTRUCT_LEARN_NS_DEFAULT,
        .learn_children = MR_RECONSTRUCT_LEARN_CHILDREN_DEFAULT,
    };
    lane->reduce = MR_REDUCE_CONFIG_DEFAULT;
    lane->reduce.sites = lane->sites;
    lane->reduce.level = (uint32_t)options->level;
    lane->reduce.exactness = (enum mr_exactness)options->shapes; /* in that order */
    lane->reduce.delta_period_ns = options->delta_interval_ns;
    lane->reduce.delta_bytes_max = part_bytes(options);
    lane->reduce.paths_max = (uint32_t)options->max_paths;
    lane->reduce.path_depth_max = path_depth(options);
    lane->reduce.nodes_max = (uint32_t)options->max_nodes;
    lane->reduce.new_nodes_s = lane_part(options, options->new_nodes);
    lane->reduce.shapes_max = (uint32_t)options->max_shapes;
    lane->reduce.trace_children_max = trace_children(options);
    lane->reduce.exemplar_calls = exemplar_calls(options);
    lane->reduce.exemplars_max = (uint32_t)options->exemplars;
    lane->reduce.exemplar_open_bytes = options->exemplar_memory;
    lane->reduce.shape_calls_s = lane_part(options, options->shape_calls);
    lane->reduce.asked_calls = exemplar_calls_max(options);
    lane->reduce.asked_bytes = options->asked_memory;
}

static enum mr_status new_lane(struct mr_worker_graphs *graphs,
                               const struct mr_worker_options *options,
                               struct mr_id incarnation, uint32_t index,
                               struct mr_error *error)
{
    enum mr_place place =
        options->placement == MR_WORKER_THREADS ? MR_PLACE_THREAD : MR_PLACE_FUSED;
    struct lane_parts *lane = &graphs->lanes[index];
    const struct mr_graph_node nodes[] = {
        {&mr_decode_filter, &lane->decode, MR_PLACE_FUSED},
        {&mr_reconstruct_filter, &lane->reconstruct, place},
        {&mr_reduce_filter, &lane->reduce, place},
        {&mr_gather_filter, NULL, MR_PLACE_FUSED}, /* where there are marks */
    };
    uint32_t node_count = (uint32_t)MR_ARRAY_COUNT(nodes) - !graphs->spool;
    char name[16];
    enum mr_status status = mr_sites_new(MR_SITES_LIMIT_DEFAULT, &lane->sites);

    if (status == MR_OK && options->outer_globs.count + options->root_globs.count > 0)
        status = mr_symbols_new(NULL, &lane->symbols);
    if (status != MR_OK)
        return mr_error_set(error, status, "no memory for a lane's sites");
    configure_lane(lane, options, incarnation);
    lane->reduce.wanted = graphs->wanted;
    lane->reduce.has_repeats = place == MR_PLACE_FUSED;
    lane->reconstruct.is_followed =
        place == MR_PLACE_FUSED && options->until == MR_WORKER_UNTIL_REDUCE;
    lane->decode.has_marks = lane->reduce.has_marks = graphs->spool != NULL;
    (void)snprintf(name, sizeof(name), "lane%u", index);
    return mr_graph_new(nodes, node_count - options->until, name, &graphs->graphs[index],
                        error);
}

static void tell(struct account_parts *account, uint32_t at, uint32_t level,
                 const char *name, const _Atomic uint64_t *value)
{
    (void)snprintf(account->texts[at], MR_DELTA_COUNTER_NAME_MAX, "level%u_%s", level,
                   name);
    account->names[at] = account->texts[at];
    account->values[at] = value;
}

static void configure_account(struct account_parts *account, uint32_t level,
                              const struct mr_worker_counters *counters,
                              const struct mr_forward_link *link)
{
#define X(name) tell(account, TOLD_##name, level, #name, &counters->name);
    TOLD_COUNTERS(X)
#undef X
    tell(account, TOLD_FRAMES_TOO_LARGE, level, "frames_too_large",
         &link->frames_too_large);
    account->config =
        (struct mr_account_config){account->names, account->values, TOLD_COUNT, level};
}

static void configure_trunk(struct mr_worker_graphs *graphs,
                            const struct mr_worker_options *options,
                            struct mr_id incarnation)
{
    graphs->join = (struct mr_join_config){
        .level = (uint32_t)options->level,
        .period_ns = options->delta_interval_ns,
        .parts_max = (uint32_t)options->max_parts,
        .delta_bytes_max = part_bytes(options),
        .window_s = MR_REDUCE_CONFIG_DEFAULT.window_s,
    };
    graphs->merge = (struct mr_merge_config){
        .level = (uint32_t)options->level,
        .period_ns = options->delta_interval_ns,
        .accumulator = {.part_bytes = part_bytes(options)},
        .reannounce = &graphs->link.reannounce,
        .max_frame = &graphs->link.max_frame,
        .by_marks = graphs->spool != NULL,
    };
    graphs->forward = (struct mr_forward_config){
        .address_count = options->address_count,
        .target = options->forward,
        .incarnation = incarnation,
        .level = (uint32_t)options->level,
        .token = options->token,
        .outbox_bytes = options->outbox,
        .max_frame = (uint32_t)options->max_frame,
        .give_up_ns = options->drain_timeout_ns,
        .link = &graphs->link,
        .resolver = graphs->resolver,
        .asks = graphs->asks,
        .wanted = graphs->wanted,
        .spool = graphs->spool,
    };
    memcpy(graphs->forward.addresses, options->addresses, sizeof(options->addresses));
}

/* Joined before any thread starts; the trunk starts first, so that lanes have where to emit. */
static enum mr_status join_and_start(struct mr_worker_graphs *graphs, bool makes_deltas)
{
    struct mr_graph *trunk = graphs->graphs[graphs->lane_count];
    enum mr_status status = MR_OK;

    /* What is no delta ends with its lane, where the runner throws it away. */
    for (uint32_t i = 0; status == MR_OK && i < graphs->lane_count && makes_deltas; i++)
        status = mr_graph_join(graphs->graphs[i], trunk);
    for (uint32_t i = graphs->lane_count + 1; status == MR_OK && i-- > 0;)
        status = mr_graph_start(graphs->graphs[i]);
    return status;
}

enum mr_status mr_worker_graphs_new(const struct mr_worker_options *options,
                                    struct mr_id incarnation, struct mr_asks *asks,
                                    struct mr_wanted_board *wanted,
                                    struct mr_spool *spool,
                                    const struct mr_worker_counters *counters,
                                    struct mr_worker_graphs **out, struct mr_error *error)
{
    struct mr_worker_graphs *graphs = calloc(1, sizeof(*graphs));
    enum mr_status status;

    *out = graphs;
    if (!graphs)
        return mr_error_set(error, MR_ENOMEM, "no memory");
    MR_ASSERT(options->lanes > 0 && options->lanes <= MR_WORKER_LANES_MAX);
    graphs->lane_count = (uint32_t)options->lanes;
    graphs->asks = asks;
    graphs->wanted = wanted;
    graphs->spool = spool;
    status = mr_resolver_start(&options->forward_at, &graphs->resolver, error);
    configure_account(&graphs->account, (uint32_t)options->level, counters,
                      &graphs->link);
    configure_trunk(graphs, options, incarnation);
    if (status == MR_OK)
        status = new_trunk(graphs, error);
    for (uint32_t i = 0; status == MR_OK && i < graphs->lane_count; i++)
        status = new_lane(graphs, options, incarnation, i, error);
    if (status == MR_OK) {
        status = join_and_start(graphs, options->until == MR_WORKER_UNTIL_REDUCE);
        if (status != MR_OK)
            mr_error_set(error, status, "cannot start: %s", mr_status_text(status));
    }
    graphs->graph_count = graphs->lane_count + 1;
    return status;
}

void mr_worker_graphs_stop(struct mr_worker_graphs *graphs)
{
    mr_store_release(&graphs->link.stopping, true); /* [S] in forward.c */
}

void mr_worker_graphs_drain(struct mr_worker_graphs *graphs)
{
    struct mr_graph *trunk = graphs->graphs[graphs->lane_count];

    if (trunk)
        (void)mr_graph_drain(trunk); /* its failure is the graph's status */
}

void mr_worker_graphs_free(struct mr_worker_graphs *graphs)
{
    if (!graphs)
        return;
    for (uint32_t i = 0; i <= graphs->lane_count; i++) {
        if (graphs->graphs[i])
            mr_graph_free(graphs->graphs[i]);
    }
    mr_resolver_stop(graphs->resolver);
    for (uint32_t i = 0; i < graphs->lane_count; i++) {
        mr_symbols_free(graphs->lanes[i].symbols);
        mr_sites_free(graphs->lanes[i].sites);
    }
    free(graphs);
}

struct mr_graph *mr_worker_graphs_lane(struct mr_worker_graphs *graphs, uint32_t lane)
{
    MR_ASSERT(lane < graphs->lane_count);
    return graphs->graphs[lane];
}

struct mr_graph *const *mr_worker_graphs_all(const struct mr_worker_graphs *graphs,
                                             uint32_t *count)
{
    *count = graphs->graph_count;
    return graphs->graphs;
}

const struct mr_forward_link *mr_worker_graphs_link(const struct mr_worker_graphs *graphs)
{
    return &graphs->link;
}

enum mr_status mr_worker_graphs_status(const struct mr_worker_graphs *graphs,
                                       struct mr_error *error)
{
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; status == MR_OK && i < graphs->graph_count; i++)
        status = mr_graph_status(graphs->graphs[i], error);
    return status;
}
