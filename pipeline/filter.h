/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A filter takes batches and emits batches. Kind (constant, shared), instance (one filter's state) and graph (how
 * instances are joined and on which threads, pipeline/graph.h) are three things.
 *
 * The contract, for everyone who writes a filter:
 *
 *  - All callbacks of one instance are called from one thread at a time; which thread is not the filter's business.
 *  - open() is called first, before any thread runs. When it fails, close() is not called.
 *  - process() takes the batch: it emits it, keeps it, or frees it, also when it fails.
 *  - tick() is called about every 10 ms (100 in a lane of a worker that has no senders), whether batches come or not, with CLOCK_MONOTONIC ns.
 *  - drain() is called once, when no more batches will come: emit what is held.
 *  - A status other than MR_OK is latched: from then on only close() is called, the runner frees what still comes and counts
 *    it, and the graph reports the first error. So a filter returns an error only where it cannot go on at all; bad input is
 *    counted (mr_filter_count) and skipped.
 *  - A filter never blocks, sleeps, or counts its own batches. Where it may choose when to emit (reduce, merge), it asks
 *    mr_filter_can_emit() first and merges longer when the answer is no.
 *  - It may call mr_filter_emit() any number of times from process(), tick() and drain(), never from open() or close().
 *    Emitting gives the batch away; what reconstruct has reduce follow comes back (pipeline/nesting.h). When the next filter
 *    runs in another thread and the pipe is full, emit waits: that is back pressure, and the runner's business.
 *
 * A filter is one file in pipeline/filters/ (or worker/, master/ for their ends), and one line in its header:
 *
 *     extern const struct mr_filter_kind mr_reconstruct_filter;
 */
#ifndef MR_PIPELINE_FILTER_H
#define MR_PIPELINE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/status.h"
#include "pipeline/batch.h"

/*
 * Without work for so long, who holds memory that only bursts need gives it back. Sooner would be dear where one burst follows the
 * other: pages that the system gives anew have to be cleared first (docs/why/2026-11-27-carries.md).
 */
#define MR_FILTER_QUIET_NS (5 * MR_SECOND_NS)

struct mr_filter;

struct mr_filter_kind {
    const char *name;
    size_t state_size; /* bytes of state, zeroed before open(); aligned to a cache line */
    enum mr_status (*open)(struct mr_filter *filter, const void *config,
                           struct mr_error *error);
    enum mr_status (*process)(struct mr_filter *filter, struct mr_batch *batch);
    enum mr_status (*tick)(struct mr_filter *filter,
                           uint64_t now_ns); /* may be NULL, as the two below */
    enum mr_status (*drain)(struct mr_filter *filter);
    void (*close)(struct mr_filter *filter);
    bool (*can_take)(const struct mr_filter
                         *filter); /* may be NULL: always. See mr_filter_can_emit() */
};

/* State of this instance, `state_size` bytes. */
void *mr_filter_state(struct mr_filter *filter);
const void *mr_filter_state_const(const struct mr_filter *filter);

/* Gives the batch to the next filter. At the end of a graph the batch is freed. */
enum mr_status mr_filter_emit(struct mr_filter *filter, struct mr_batch *batch);
/* From process(): so many events were taken besides those that the batch has told (pipeline/nesting.h). */
void mr_filter_took(struct mr_filter *filter, uint64_t events);
/*
 * From process(), tick() or drain(), by who waits there: its time so far is told as busy, or its share of a second would be 0 as long as it
 * waits. Not from inside a filter that it emits into.
 */
void mr_filter_goes_on(struct mr_filter *filter);
/*
 * Whether an emit would go through without waiting: every filter behind it on this thread says can_take(), and the pipe at
 * the end of them has room. A filter that holds batches for the outside (forward) answers can_take() from its own queue; where
 * its thread has a pipe in front, the runner leaves batches in there until it says yes (or the graph drains). process() may
 * come all the same, from a filter that does not ask.
 */
bool mr_filter_can_emit(const struct mr_filter *filter);

/*
 * Named counters of an instance, shown in metrics and sent upward as delta counters: what was clamped, skipped, unknown.
 * `slot` is 0 .. MR_FILTER_COUNTERS - 1; names are set once in open().
 */
#define MR_FILTER_COUNTERS 24
void mr_filter_name_counter(struct mr_filter *filter, uint32_t slot, const char *name);
void mr_filter_count(struct mr_filter *filter, uint32_t slot, uint64_t add);

#endif
