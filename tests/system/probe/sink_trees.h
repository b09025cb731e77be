/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sink's second look at what probes send: what the worker makes of it. Frames go through the worker's own filters
 * decode and reconstruct, and what comes out is written as text, a line per event in the order of each stream, for
 * tests/system/lib/calls.py:
 *
 *     source 0 1234                 number, pid
 *     stream 0 1 main-thread        source, stream, name
 *     o 0 1 17                      source, stream, site: a call opens
 *     c 0 1 17 16                   ... is closed; flags of enum mr_event_flag
 *     b 0 1                         the open call tree lost events
 *     n 0 1 12 3                    12 events that are no calls, lost for reason 3 (0: not lost)
 *     e 0 1                         the stream has ended
 *     end 0 1                       source, 1 finished or 2 died
 *     site 17 leaf                  at the end
 *
 * One thread.
 */
#ifndef MR_TESTS_SYSTEM_PROBE_SINK_TREES_H
#define MR_TESTS_SYSTEM_PROBE_SINK_TREES_H

#include "net/control.h"
#include "net/frame.h"

#include <stdint.h>

struct mr_source;

/* Ends the process when it cannot: it is a test's. */
void sink_trees_open(const char *path);
/* `number` is the sink's own, of the source. */
struct mr_source *sink_trees_source(const struct mr_hello *hello, uint32_t number);
void sink_trees_frame(struct mr_source *source, const struct mr_frame *frame);
void sink_trees_end(struct mr_source *source, bool is_finished);
void sink_trees_close(void);

#endif
