/* SPDX-License-Identifier: Apache-2.0 */
/* Calls and threads of a graph. The table of shared fields is in graph_private.h. */
#include "pipeline/graph_private.h"

#include "base/assert.h"
#include "base/atomics.h"
#include "base/clock.h"
#include "pipeline/repeat.h"

/* Batches taken from one input before the next has its turn. */
#define TURN_BATCHES 8
/*
 * Looks at empty inputs before sleeping: about 2 us, less than the futex call that it may
 * save.
 */
#define IDLE_SPINS 20

static void add(struct mr_filter *filter, enum mr_filter_stat stat, uint64_t value)
{
    mr_count_single_writer(&filter->stats[stat],
                           value); /* relaxed: see graph_private.h */
}

void mr_graph_latch(struct mr_graph *graph, enum mr_status status, const char *filter,
                    const char *where)
{
    (void)pthread_mutex_lock(&graph->error_mutex);
    if (graph->error.status == MR_OK) {
        (void)mr_error_set(&graph->error, status, "graph %s: filter %s: %s failed: %s",
                           graph->name, filter, where, mr_status_text(status));
        mr_store_release(&graph->status,
                         (int)status); /* [E] pairs with [F] in mr_graph_status() */
    }
    (void)pthread_mutex_unlock(&graph->error_mutex);
}

static void settle(struct mr_filter *filter, enum mr_status status, const char *where)
{
    if (MR_LIKELY(status == MR_OK) || filter->status != MR_OK)
        return;
    filter->status = status;
    mr_graph_latch(filter->section->graph, status, filter->kind->name, where);
}

/* Gives the call around it. */
static struct mr_call begin_call(struct mr_section *section)
{
    struct mr_call outer = section->call;

    section->call = (struct mr_call){.start_ns = mr_clock_monotonic_ns()};
    return outer;
}

/* Its own time up to now, as far as it was not told. */
static uint64_t tell_busy(struct mr_filter *filter)
{
    struct mr_call *call = &filter->section->call;
    uint64_t now_ns = mr_clock_monotonic_ns();
    uint64_t own_ns = now_ns - call->start_ns - call->inner_ns;

    add(filter, MR_STAT_BUSY_NS, own_ns - call->told_ns);
    call->told_ns = own_ns;
    return now_ns;
}

void mr_filter_goes_on(struct mr_filter *filter)
{
    (void)tell_busy(filter);
}

static void end_call(struct mr_filter *filter, struct mr_call outer)
{
    struct mr_section *section = filter->section;
    uint64_t now_ns = tell_busy(filter);

    mr_store_relaxed(&filter->stats[MR_STAT_PROGRESS_NS], now_ns);
    outer.inner_ns += now_ns - section->call.start_ns;
    section->call = outer;
}

static uint64_t bytes_of(const struct mr_batch *batch)
{
    return batch->kind == MR_BATCH_FRAME ? batch->frame.payload.size : batch->bytes.size;
}

static void discard(struct mr_filter *filter, struct mr_batch *batch)
{
    add(filter, MR_STAT_DISCARDED, 1);
    mr_batch_free(batch);
}

static bool is_dead(const struct mr_filter *filter)
{
    /* [H] pairs with [G] in mr_graph_free() */
    return filter->status != MR_OK || mr_load_acquire(&filter->section->abandoned);
}

static void call_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct mr_call outer;

    add(filter, MR_STAT_BATCHES_IN, 1);
    if (MR_UNLIKELY(is_dead(filter))) {
        discard(filter, batch);
        return;
    }
    add(filter, MR_STAT_EVENTS_IN, mr_batch_events(batch));
    add(filter, MR_STAT_BYTES_IN, bytes_of(batch));
    outer = begin_call(filter->section);
    settle(filter, filter->kind->process(filter, batch), "process");
    end_call(filter, outer);
}

/*
 * The batch leaves the section: its payload must not point into this thread's buffers any
 * more.
 */
static enum mr_status leave(struct mr_filter *filter, struct mr_batch *batch)
{
    struct mr_section *section = filter->section;
    const struct mr_graph *graph = section->graph;
    enum mr_status status;

    if (!section->out) {
        mr_batch_free(batch);
        return MR_OK;
    }
    status = mr_batch_own(batch);
    if (status != MR_OK) {
        discard(filter, batch);
        return status;
    }
    section->call.inner_ns += mr_pipe_push_telling(
        section->out, batch, &filter->stats[MR_STAT_EMIT_WAIT_NS],
        section->has_thread ? NULL : graph->on_wait, graph->wait_context);
    return MR_OK;
}

enum mr_status mr_filter_emit(struct mr_filter *filter, struct mr_batch *batch)
{
    MR_ASSERT(filter->phase == MR_PHASE_RUNNING);
    MR_ASSERT(batch);
    add(filter, MR_STAT_BATCHES_OUT, 1);
    if (!filter->next)
        return leave(filter, batch);
    call_process(filter->next, batch);
    return MR_OK; /* a failure downstream is the graph's, as it would be behind a pipe */
}

void mr_filter_took(struct mr_filter *filter, uint64_t events)
{
    add(filter, MR_STAT_EVENTS_IN, events);
}

bool mr_filter_can_emit(const struct mr_filter *filter)
{
    for (const struct mr_filter *next = filter->next; next; next = next->next) {
        if (next->status == MR_OK && next->kind->can_take && !next->kind->can_take(next))
            return false;
    }
    return !filter->section->out || mr_pipe_has_room(filter->section->out);
}

void mr_section_feed(struct mr_section *section, struct mr_batch *batch)
{
    call_process(section->first, batch);
}

void mr_section_tick(struct mr_section *section, uint64_t now_ns)
{
    for (struct mr_filter *filter = section->first; filter; filter = filter->next) {
        struct mr_call outer;

        if (is_dead(filter))
            continue;
        outer = begin_call(section);
        if (filter->kind->tick)
            settle(filter, filter->kind->tick(filter, now_ns), "tick");
        end_call(filter, outer);
    }
}

void mr_section_drain(struct mr_section *section)
{
    for (struct mr_filter *filter = section->first; filter; filter = filter->next) {
        struct mr_call outer;

        if (is_dead(filter) || !filter->kind->drain)
            continue;
        outer = begin_call(section);
        settle(filter, filter->kind->drain(filter), "drain");
        end_call(filter, outer);
    }
    if (section->out)
        mr_pipe_close(section->out);
}

static bool is_stopping(const struct mr_section *section)
{
    return mr_load_acquire(&section->stop); /* [H] pairs with [G] in mr_graph_drain() */
}

/* While draining a filter takes what comes: nothing else will make room for it. */
static bool can_take(const struct mr_section *section)
{
    const struct mr_filter *filter = section->first;

    return !filter->kind->can_take || filter->status != MR_OK || is_stopping(section) ||
           filter->kind->can_take(filter);
}

/* True if a batch was taken. */
static bool take_turns(struct mr_section *section)
{
    bool has_taken = false;

    for (uint32_t i = 0; i < section->input_count; i++) {
        for (uint32_t n = 0; n < TURN_BATCHES && can_take(section); n++) {
            struct mr_batch *batch = mr_pipe_pop(section->inputs[i].pipe);

            if (!batch)
                break;
            mr_section_feed(section, batch);
            has_taken = true;
        }
    }
    return has_taken;
}

static bool is_idle(const struct mr_section *section)
{
    if (!can_take(section))
        return true; /* the tick makes room */
    for (uint32_t i = 0; i < section->input_count; i++) {
        if (mr_pipe_fill(section->inputs[i].pipe) > 0)
            return false;
    }
    return true;
}

static bool is_finished(const struct mr_section *section)
{
    if (!is_stopping(section))
        return false;
    for (uint32_t i = 0; i < section->input_count; i++) {
        if (!mr_pipe_is_finished(section->inputs[i].pipe))
            return false;
    }
    return true;
}

static void rest(struct mr_section *section, uint64_t until_ns)
{
    uint64_t now_ns;

    for (uint32_t i = 0; i < IDLE_SPINS; i++) {
        if (!is_idle(section))
            return;
        mr_cpu_relax();
    }
    mr_waker_arm(&section->waker);
    now_ns = mr_clock_monotonic_ns();
    if (now_ns < until_ns && is_idle(section) && !is_finished(section))
        mr_waker_sleep(&section->waker, until_ns - now_ns);
    else
        mr_waker_disarm(&section->waker);
}

void *mr_section_run(void *argument)
{
    struct mr_section *section = argument;
    uint64_t next_tick_ns = 0;

    while (!is_finished(section)) {
        uint64_t now_ns = mr_clock_monotonic_ns();

        if (now_ns >= next_tick_ns) {
            mr_section_tick(section, now_ns);
            next_tick_ns = now_ns + MR_GRAPH_TICK_NS;
        }
        if (!take_turns(section))
            rest(section, next_tick_ns);
    }
    mr_section_drain(section);
    return NULL;
}
