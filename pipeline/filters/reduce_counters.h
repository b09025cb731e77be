/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters on spans: what each path gained of each (reduce_counters.c). Not for others than reduce.
 */
#ifndef MR_PIPELINE_FILTERS_REDUCE_COUNTERS_H
#define MR_PIPELINE_FILTERS_REDUCE_COUNTERS_H

#include "net/delta.h"
#include "pipeline/filters/reduce_stream.h"

struct mr_reduce;

/* What a path gained of a counter since the last delta. */
struct mr_count_row {
    uint32_t path, counter, window;
    struct mr_counter_stats stats;
};
struct mr_count_rows {
    struct mr_count_row *items;
    uint32_t count, capacity;
    uint32_t *slots; /* open addressing: index + 1, 0: free */
    uint32_t slot_mask;
};
struct mr_span_counter_index {
    struct mr_id id;
    uint32_t payload, index; /* its number in that payload */
};

/* reduce_counters.c; of streams with counts, but _value of any. */
enum mr_status mr_reduce_counts_new(struct mr_reduce_stream *stream);
void mr_reduce_counts_free(struct mr_reduce_stream *stream);
/* The innermost call has just been opened. */
enum mr_status mr_reduce_counts_open(struct mr_reduce_stream *stream);
/* The innermost call is about to be taken off the stack; `path`: MR_PATH_NONE if it has none. */
void mr_reduce_counts_close(const struct mr_reduce *reduce,
                            struct mr_reduce_stream *stream, uint32_t path);
/* What follows is no value of the last call event. */
void mr_reduce_counts_settle(struct mr_reduce_stream *stream);
enum mr_status mr_reduce_counts_value(struct mr_reduce *reduce,
                                      struct mr_reduce_stream *stream,
                                      const struct mr_event *event);
/* After the rows were written. */
void mr_reduce_counters_clear(struct mr_reduce *reduce);
void mr_reduce_counters_fini(struct mr_reduce *reduce);

#endif
