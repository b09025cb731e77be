/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a graph: making, joining, starting, draining, freeing. The table of shared
 * fields is in graph_private.h.
 */
#include "pipeline/graph_private.h"

#include "base/assert.h"
#include "base/atomics.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *take_zeroed_lines(size_t size)
{
    size_t bytes = (size + MR_CACHE_LINE - 1) & ~(size_t)(MR_CACHE_LINE - 1);
    void *memory = aligned_alloc(MR_CACHE_LINE, bytes ? bytes : MR_CACHE_LINE);

    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

static uint32_t count_sections(const struct mr_graph_node *nodes, uint32_t count)
{
    uint32_t sections = 1;

    for (uint32_t i = 1; i < count; i++)
        sections += nodes[i].place == MR_PLACE_THREAD;
    return sections;
}

static void init_section(struct mr_graph *graph, struct mr_section *section,
                         struct mr_filter *first, bool has_thread)
{
    section->graph = graph;
    section->first = first;
    section->has_thread = has_thread;
    mr_waker_init(&section->waker);
    atomic_init(&section->stop, false);
    atomic_init(&section->abandoned, false);
}

/* Fields of filters and sections; no memory of theirs yet. */
static void lay_out(struct mr_graph *graph, const struct mr_graph_node *nodes)
{
    struct mr_section *section = graph->sections;

    for (uint32_t i = 0; i < graph->filter_count; i++) {
        struct mr_filter *filter = &graph->filters[i];
        bool is_threaded = nodes[i].place == MR_PLACE_THREAD;

        if (i == 0) {
            init_section(graph, section, filter, is_threaded);
        } else if (is_threaded) {
            init_section(graph, ++section, filter, true);
        } else {
            graph->filters[i - 1].next = filter;
        }
        filter->kind = nodes[i].kind;
        filter->section = section;
        section->filter_count++;
    }
}

static struct mr_graph *new_graph(const struct mr_graph_node *nodes, uint32_t count,
                                  const char *name)
{
    struct mr_graph *graph = take_zeroed_lines(sizeof(*graph));

    if (!graph)
        return NULL;
    (void)snprintf(graph->name, sizeof(graph->name), "%s", name);
    (void)pthread_mutex_init(&graph->error_mutex, NULL);
    atomic_init(&graph->status, MR_OK);
    graph->filter_count = count;
    graph->section_count = count_sections(nodes, count);
    graph->filters = take_zeroed_lines(count * sizeof(*graph->filters));
    graph->sections = take_zeroed_lines(graph->section_count * sizeof(*graph->sections));
    if (!graph->filters || !graph->sections) {
        free(graph->filters);
        free(graph->sections);
        free(graph);
        return NULL;
    }
    lay_out(graph, nodes);
    return graph;
}

static enum mr_status add_input(struct mr_section *section, struct mr_inlet **inlet)
{
    enum mr_status status;

    if (section->input_count >= MR_GRAPH_INPUTS_MAX)
        return MR_ELIMIT;
    *inlet = &section->inputs[section->input_count];
    status = mr_pipe_new(MR_GRAPH_PIPE_BATCHES, &section->waker, &(*inlet)->pipe);
    if (status == MR_OK)
        section->input_count++;
    return status;
}

static enum mr_status make_pipes(struct mr_graph *graph)
{
    for (uint32_t i = 1; i < graph->section_count; i++) {
        struct mr_inlet *inlet;
        enum mr_status status = add_input(&graph->sections[i], &inlet);

        if (status != MR_OK)
            return status;
        graph->sections[i - 1].out = inlet->pipe;
    }
    return MR_OK;
}

static enum mr_status open_filter(struct mr_filter *filter, const void *config,
                                  struct mr_error *error)
{
    enum mr_status status = MR_OK;

    filter->state = take_zeroed_lines(filter->kind->state_size);
    if (!filter->state)
        return mr_error_set(error, MR_ENOMEM, "filter %s: out of memory",
                            filter->kind->name);
    filter->phase = MR_PHASE_OPENING;
    if (filter->kind->open)
        status = filter->kind->open(filter, config, error);
    filter->phase = status == MR_OK ? MR_PHASE_RUNNING : MR_PHASE_CLOSED;
    if (status != MR_OK)
        (void)mr_error_set(error, status, "filter %s: %s", filter->kind->name,
                           mr_status_text(status));
    return status;
}

static enum mr_status open_filters(struct mr_graph *graph,
                                   const struct mr_graph_node *nodes,
                                   struct mr_error *error)
{
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; i < graph->filter_count && status == MR_OK; i++)
        status = open_filter(&graph->filters[i], nodes[i].config, error);
    return status;
}

enum mr_status mr_graph_new(const struct mr_graph_node *nodes, uint32_t count,
                            const char *name, struct mr_graph **graph,
                            struct mr_error *error)
{
    struct mr_graph *made;
    enum mr_status status;

    MR_ASSERT(nodes && count >= 1 && count <= MR_GRAPH_NODES_MAX);
    MR_ASSERT(name && graph);
    made = new_graph(nodes, count, name);
    if (!made)
        return mr_error_set(error, MR_ENOMEM, "graph %s: out of memory", name);
    status = make_pipes(made);
    if (status != MR_OK)
        (void)mr_error_set(error, status, "graph %s: no pipe: %s", name,
                           mr_status_text(status));
    else
        status = open_filters(made, nodes, error);
    if (status != MR_OK) {
        mr_graph_free(made);
        return status;
    }
    *graph = made;
    return MR_OK;
}

enum mr_status mr_graph_inlet(struct mr_graph *graph, struct mr_inlet **inlet)
{
    MR_ASSERT(graph && inlet);
    if (graph->is_started || !graph->sections[0].has_thread)
        return MR_ESTATE;
    return add_input(&graph->sections[0], inlet);
}

enum mr_status mr_graph_join(struct mr_graph *from, struct mr_graph *to)
{
    struct mr_section *last = &from->sections[from->section_count - 1];
    struct mr_inlet *inlet;
    enum mr_status status;

    MR_ASSERT(from != to);
    if (from->is_started || last->out)
        return MR_ESTATE;
    status = mr_graph_inlet(to, &inlet);
    if (status == MR_OK)
        last->out = inlet->pipe;
    return status;
}

enum mr_status mr_inlet_push(struct mr_inlet *inlet, struct mr_batch *batch)
{
    enum mr_status status = mr_batch_own(batch);

    if (status != MR_OK) {
        mr_batch_free(batch);
        return status;
    }
    (void)mr_pipe_push(inlet->pipe, batch, NULL);
    return MR_OK;
}

bool mr_inlet_has_room(const struct mr_inlet *inlet)
{
    return mr_pipe_has_room(inlet->pipe);
}

void mr_inlet_close(struct mr_inlet *inlet)
{
    mr_pipe_close(inlet->pipe);
}

/*
 * Signals belong to the thread that main() chose, so the sections' threads block them
 * all.
 */
static enum mr_status start_section(struct mr_section *section)
{
    char name[2 * MR_GRAPH_NAME_SIZE];
    sigset_t all, before;
    int failure;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    failure = pthread_create(&section->thread, NULL, mr_section_run, section);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure)
        return MR_ENOMEM;
    section->is_running = true;
    (void)snprintf(name, sizeof(name), "%s/%s", section->graph->name,
                   section->first->kind->name);
    name[15] = '\0'; /* the kernel's limit */
    (void)pthread_setname_np(section->thread, name);
    return MR_OK;
}

enum mr_status mr_graph_start(struct mr_graph *graph)
{
    if (graph->is_started)
        return MR_ESTATE;
    /* From the end, so that nobody feeds a section that does not run. */
    for (uint32_t i = graph->section_count; i-- > 0;) {
        struct mr_section *section = &graph->sections[i];

        if (section->has_thread && start_section(section) != MR_OK) {
            mr_graph_latch(graph, MR_ENOMEM, section->first->kind->name,
                           "starting its thread");
            return MR_ENOMEM; /* what runs already is ended by mr_graph_free() */
        }
    }
    graph->is_started = true;
    return MR_OK;
}

void mr_graph_on_wait(struct mr_graph *graph, void (*on_wait)(void *context),
                      void *context)
{
    MR_ASSERT(!graph->sections[0].has_thread);
    graph->on_wait = on_wait;
    graph->wait_context = context;
}

enum mr_status mr_graph_push(struct mr_graph *graph, struct mr_batch *batch)
{
    MR_ASSERT(!graph->sections[0].has_thread);
    MR_ASSERT(batch);
    if (!graph->is_started || graph->is_drained) {
        mr_batch_free(batch);
        return MR_ESTATE;
    }
    mr_section_feed(&graph->sections[0], batch);
    return mr_graph_status(graph, NULL);
}

enum mr_status mr_graph_tick(struct mr_graph *graph, uint64_t now_ns)
{
    if (!graph->is_started || graph->is_drained)
        return MR_ESTATE;
    if (!graph->sections[0].has_thread)
        mr_section_tick(&graph->sections[0], now_ns);
    return mr_graph_status(graph, NULL);
}

static void finish_section(struct mr_section *section)
{
    if (section->is_running) {
        mr_store_release(&section->stop, true); /* [G] pairs with [H] in is_stopping() */
        mr_waker_wake(&section->waker);
        (void)pthread_join(section->thread, NULL);
        section->is_running = false;
    } else {
        mr_section_drain(section);
    }
}

static void finish(struct mr_graph *graph)
{
    graph->is_drained = true;
    for (uint32_t i = 0; i < graph->section_count; i++)
        finish_section(&graph->sections[i]);
}

enum mr_status mr_graph_drain(struct mr_graph *graph)
{
    if (!graph->is_started || graph->is_drained)
        return MR_ESTATE;
    finish(graph);
    return mr_graph_status(graph, NULL);
}

/* What feeds the graph is gone already, or has no right to feed it any more. */
static void abandon(struct mr_graph *graph)
{
    for (uint32_t i = 0; i < graph->section_count; i++)
        mr_store_release(&graph->sections[i].abandoned,
                         true); /* [G] pairs with [H] in is_dead() */
    for (uint32_t i = 0; i < graph->sections[0].input_count; i++)
        mr_pipe_close(graph->sections[0].inputs[i].pipe);
    finish(graph);
}

static void free_filter(struct mr_filter *filter)
{
    if (filter->phase == MR_PHASE_RUNNING) {
        filter->phase = MR_PHASE_CLOSING;
        if (filter->kind->close)
            filter->kind->close(filter);
    }
    free(filter->state);
}

void mr_graph_free(struct mr_graph *graph)
{
    if (!graph)
        return;
    if (!graph->is_drained)
        abandon(graph);
    for (uint32_t i = 0; i < graph->filter_count; i++)
        free_filter(&graph->filters[i]);
    for (uint32_t i = 0; i < graph->section_count; i++) {
        for (uint32_t n = 0; n < graph->sections[i].input_count; n++)
            mr_pipe_free(graph->sections[i].inputs[n].pipe);
    }
    (void)pthread_mutex_destroy(&graph->error_mutex);
    free(graph->filters);
    free(graph->sections);
    free(graph);
}
