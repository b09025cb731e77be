/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sender as its lane sees it: who it is, its clock, its module table and named sites, and its streams. The worker makes a
 * source when a connection says HELLO, pushes its frames with it, and pushes one END batch when the sender is done (BYE,
 * or lost for good). A source is of one lane; all of one sender's frames go through the lane of its source.
 *
 *     mr_source_new(&message.hello, group_by_host, &source);
 *     batch->kind = MR_BATCH_FRAME; batch->source = source; mr_graph_push(lane, batch);
 *     if (mr_source_is_broken(source))
 *         mr_conn_refuse(conn, MR_WIRE_ERROR_FORMAT, mr_source_error(source));   // cut it off, then push END (died)
 *     ...
 *     if (mr_source_is_done(source))      // END has passed the lane; or the graph is drained and freed
 *         mr_source_free(source);
 *
 * field                    written by             read by      access
 * is_broken, error         decode, error first    worker       release store [B], acquire load [W]
 * is_done                  reduce, last           worker       release store [D], acquire load [W]
 * stream.start_site        decode                 reconstruct  relaxed: a hint that comes when it comes
 * stream.is_base_unsure    reconstruct            reduce       relaxed: for marks; on two threads it may be of some events later
 * stream.is_closed         reduce, last           decode       release store [C], acquire load [F]
 * stream.base_event,       decode, once           reduce       plain: set before the stream's first batch is emitted
 *  has_counters
 * counter_ids[i]           decode, once           reduce       plain: set before the first batch with a value of it
 * handover                 reduce                 lane      plain: from the source's making to [D] reduce's, then the lane's
 * handover.promised        reconstruct            it alone  plain
 * stream.repeat            reduce, then decode    decode    plain: there is none unless both run on one thread
 * everything else          decode (but streams' `reconstruct` and `reduce`: these filters)
 * Pairs: [B]-[W] the text before the flag; [D]-[W], [C]-[F] the filters' last use before the free.
 */
#ifndef MR_PIPELINE_SOURCE_H
#define MR_PIPELINE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomics.h"
#include "base/error.h"
#include "net/chunk.h"
#include "net/control.h"
#include "pipeline/handover.h"
#include "pipeline/modules.h"
#include "pipeline/site_map.h"
#include "pipeline/sites.h"
#include "pipeline/ticks.h"

#define MR_SOURCE_MODULES_MAX                                                            \
    65536u /* entries over all epochs; a module past it is unknown sites */
#define MR_SOURCE_SITES_MAX (1u << 20)   /* distinct wire sites remembered */
#define MR_SOURCE_STREAMS_DEFAULT 65536u /* open at a time */
#define MR_SOURCE_COUNTERS_MAX 4u /* on spans; more than that are counted, not kept */
#define MR_STREAM_NONE                                                                   \
    0u /* number of the stream that stands for events that never had one */

struct mr_reconstruct_stream;
struct mr_reduce_stream;
struct mr_resume;
struct mr_repeat;
struct mr_resume_stream;

struct mr_stream {
    uint32_t id;
    struct mr_source *source;
    bool is_started, is_ended;
    bool has_counters;   /* its source had told of counters when it began */
    uint32_t start_wire; /* announced start site, 0: none */
    uint64_t next_event; /* number of the next event expected */
    uint64_t base_event; /* number of the first event of which this lane accounts */
    uint64_t ticks;      /* of the last event */
    _Atomic uint32_t start_site; /* lane site; MR_SITE_UNKNOWN until it is known */
    _Atomic bool is_base_unsure; /* nobody knows which calls are open below */
    _Atomic bool is_closed;
    /* Where it goes on from (pipeline/resume.h), or NULL; set before its first batch is emitted. */
    const struct mr_resume_stream *resume;
    struct mr_reconstruct_stream *reconstruct;
    struct mr_reduce_stream *reduce;
    struct mr_repeat *repeat; /* pipeline/repeat.h: of reduce, then decode's; or NULL */
};

/* How the wall clock went against a source's own (FORMAT.md section 3): of its sync items. */
struct mr_drift {
    bool is_synced;
    uint64_t first_ns, last_ns; /* wall times of the first and last sync */
    int64_t now_ns, max_ns;     /* wall clock less ours: last, and furthest from 0 */
    int64_t shift_ns;           /* of batches; follows now_ns in steps */
    uint64_t told_at_ns;
    uint64_t note_version;
    uint64_t clamped, clamped_told; /* inversions */
};

struct mr_source {
    struct mr_id id, scope;
    enum mr_role role;
    uint32_t level;
    bool
        is_continuation; /* an earlier receiver has acknowledged frames of this incarnation */
    bool has_refused; /* decode has lost chunks for which their streams had no room */
    bool is_announced, is_ended;
    uint32_t serial; /* among the sources of its sender, 1, 2, ...; for the spool */
    bool is_resumed; /* decode has made the streams of `resume` */
    struct mr_resume *resume; /* owned; NULL: it began here. Set before its first batch */
    struct mr_handover
        handover; /* reduce's until [D]: what it takes along when it moves */
    struct mr_source_info info; /* strings owned */
    char *text;
    const char *scope_host; /* "" unless grouped by host */
    struct mr_ticks ticks;
    struct mr_drift drift;
    uint64_t last_ns;
    struct mr_modules modules;
    struct mr_site_map named; /* named wire sites, for ever */
    struct mr_site_map map;   /* all wire sites met, under map_epoch where that matters */
    uint32_t map_epoch;
    uint32_t
        map_version; /* from 1 on; a site that was met stands for the same while it does not change */
    bool map_has_unknown;
    uint32_t counter_count;
    struct mr_id
        counter_ids[MR_SOURCE_COUNTERS_MAX];  /* by their place in counter records */
    uint64_t loss_told[MR_LOSS_REASON_COUNT]; /* cumulative, of the source's loss items */
    uint32_t link_encoding,
        link_reason;          /* as it told at last; words, same host: nothing yet */
    struct mr_stream **slots; /* open addressing by stream number */
    uint32_t stream_count, slot_count;
    uint64_t slot_key; /* of slots: mr_hash_key() */
    struct mr_stream *last_stream;
    _Atomic bool is_broken, is_done;
    struct mr_error error;
};

/* Copies what it needs of `hello`. MR_ENOMEM. */
enum mr_status mr_source_new(const struct mr_hello *hello, bool group_by_host,
                             struct mr_source **source);
/* When is_done, or when the graph it went through is freed. NULL allowed. */
void mr_source_free(struct mr_source *source);

/* The sender broke the format: cut it off. Any thread. */
static inline bool mr_source_is_broken(const struct mr_source *source)
{
    return mr_load_acquire(&source->is_broken); /* [W] */
}
/* Why; valid once it is broken. */
static inline const char *mr_source_error(const struct mr_source *source)
{
    return source->error.text;
}
/* END has passed all filters: nobody in the lane uses the source any more. Any thread. */
static inline bool mr_source_is_done(const struct mr_source *source)
{
    return mr_load_acquire(&source->is_done); /* [W] */
}

/* What follows is for decode. */

/* Keeps the first cause and sets is_broken. */
MR_PRINTF(2, 3) void mr_source_break(struct mr_source *source, const char *format, ...);

/* The stream of this number, made when new. MR_ELIMIT when `limit` streams are open, MR_ENOMEM. */
enum mr_status mr_source_stream(struct mr_source *source, uint32_t id, uint32_t limit,
                                struct mr_stream **stream);

/* Looks a wire site up that the map does not know, adds it to the lane's table and the map; MR_SITE_UNKNOWN. */
uint32_t mr_source_resolve(struct mr_source *source, struct mr_sites *sites,
                           uint32_t epoch, uint32_t wire);
/* The same, where the map is of another epoch: it is neither asked nor told. */
uint32_t mr_source_look_up(const struct mr_source *source, struct mr_sites *sites,
                           uint32_t epoch, uint32_t wire);
uint32_t mr_source_resolve_address(struct mr_source *source, struct mr_sites *sites,
                                   uint32_t epoch, uint64_t address);
/* The same of a function that may be no site at all: one that is not met yet stays MR_SITE_UNKNOWN. */
uint32_t mr_source_find_address(const struct mr_source *source,
                                const struct mr_sites *sites, uint32_t epoch,
                                uint64_t address);
/* To be called before a chunk of another epoch: forgets what the map knows where it depends on the epoch. */
void mr_source_enter_epoch(struct mr_source *source, uint32_t epoch);
/* Items of a probe: MODULE, MODULE_GONE, NAMED_SITE. MR_ELIMIT, MR_ENOMEM when there is no room for it. */
enum mr_status mr_source_add_site_item(struct mr_source *source, struct mr_sites *sites,
                                       const struct mr_dict_item *item);

#endif
