/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sink knows of a source: an account of its own, kept from the wire format
 * alone, that must agree with the probe's. sink.c reads connections, sink_account.c
 * checks and counts.
 */
#ifndef MR_TESTS_SYSTEM_PROBE_SINK_H
#define MR_TESTS_SYSTEM_PROBE_SINK_H

#include "base/id.h"
#include "net/chunk.h"
#include "net/control.h"

struct sink_stream {
    bool is_announced, is_last, is_source_end, has_chunk;
    char name[64];
    uint32_t tid, start_site;
    uint64_t next_event, events, enters, exits, wides, syncs, inversions, chunks;
    uint64_t lost, records_lost[MR_LOSS_REASON_COUNT];
    uint64_t ticks, pops, pushes;
    int64_t depth;       /* enters - exits, losses' nesting followed */
    uint64_t underflows; /* exits with nothing open */
};

struct sink_source {
    struct mr_id id;
    char app[64];
    uint32_t pid;
    uint64_t next_sequence; /* of its frames */
    uint32_t epoch, modules, named_sites;
    bool is_finished;
    uint64_t lost[MR_LOSS_REASON_COUNT]; /* without a stream */
    uint64_t site_limit;                 /* named sites below are known */
    uint32_t stream_count;
    struct sink_stream *streams; /* by number; owned */
    uint64_t faults;
    struct mr_source *trees; /* of sink_trees.h; NULL without --trees */
};

/* Each prints a line "fault: ..." and counts it, where the probe breaks its promises. */
void sink_take_dict(struct sink_source *source, struct mr_span payload);
void sink_take_chunks(struct sink_source *source, struct mr_span payload);
/* The account, as lines of key=value. */
void sink_print(const struct sink_source *source);

#endif
