/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What flows between filters. A batch has one owner; emitting or processing gives it away, mr_batch_free() ends it.
 *
 *     FRAME   bytes of one data frame of one sender, as received      receive -> decode
 *     EVENTS  events of one stream, in order, in Unix ns              decode -> reconstruct -> reduce (and back: pipeline/nesting.h)
 *     REPEATS times of a call tree that one stream repeats (pipeline/repeat.h)  decode -> reconstruct -> reduce, on one thread
 *     DICT    a DICT payload that goes upward                         decode, reduce, names -> merge -> forward | repository
 *     DELTA   a DELTA payload                                         decode, reduce -> merge -> forward | repository
 *     END     a sender is done (BYE, or lost for good)                receive -> ... -> reduce, which closes its books
 *     MARK    what came before it is whole up to here (pipeline/mark.h)  decode -> reduce -> gather -> ... -> forward
 *
 * A filter that has no use for a kind of batch emits it unchanged.
 *
 * FRAME payloads are borrowed from the connection's read buffer while a batch stays on the thread that read it; the runner
 * calls mr_batch_own() before it crosses to another thread.
 */
#ifndef MR_PIPELINE_BATCH_H
#define MR_PIPELINE_BATCH_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buffer.h"
#include "base/span.h"
#include "base/status.h"
#include "net/frame.h"

struct mr_nesting; /* pipeline/nesting.h */
struct mr_repeat;  /* pipeline/repeat.h */
struct mr_source;  /* pipeline/source.h: a sender as its lane sees it */
struct mr_stream;  /* pipeline/source.h */

enum mr_batch_kind {
    MR_BATCH_FRAME,
    MR_BATCH_EVENTS,
    MR_BATCH_DICT,
    MR_BATCH_DELTA,
    MR_BATCH_END,
    MR_BATCH_MARK,
    MR_BATCH_REPEATS
};

/*
 * From decode: ENTER, EXIT and the others as they came; site is the lane's site number (pipeline/sites.h).
 * From reconstruct: a well-nested sequence of OPEN and CLOSE (every OPEN gets exactly one CLOSE, innermost first), with flags.
 */
enum mr_event_kind {
    MR_EVENT_ENTER = 0,
    MR_EVENT_EXIT = 1,
    MR_EVENT_LOSS = 2,       /* site: index into the batch's losses */
    MR_EVENT_STATUS = 3,     /* site: 0 ok, 1 failed; of the innermost open call */
    MR_EVENT_UNWIND = 4,     /* site: depth that remains */
    MR_EVENT_STREAM_END = 5, /* no more events of this stream; flags: enum mr_event_end */
    MR_EVENT_COUNTED =
        6, /* accounts for `ns` events that are no calls: flags 0: reduced at once, else lost, the reason */
    MR_EVENT_VALUE =
        7, /* site: place in the source's counters; ns: the counter's value at the call event before it */
    MR_EVENT_LEFT =
        8, /* a frame of the function was left without an exit; flags: its tag */
    MR_EVENT_LANDED =
        9, /* it goes on in a frame of the function, or in one that this called; flags: enum mr_landed_flag, tag */
    MR_EVENT_OPEN = MR_EVENT_ENTER, /* most stay as they came: nothing is written */
    MR_EVENT_CLOSE = MR_EVENT_EXIT,
    MR_EVENT_TRACE_BROKEN =
        10, /* the open call trees lost events here: incomplete from now on */
    MR_EVENT_LEARNED =
        11, /* the calls of the open call tree, the only one, are outer frames from now on */
    MR_EVENT_WORD =
        12, /* ns: word number `site` of the link that follows; see mr_link_kind */
    MR_EVENT_LINK = 13, /* site: enum mr_link_kind; joins call trees */
    MR_EVENT_PRUNE =
        14, /* site is recorded no more, or again; flags: enum mr_event_prune. From decode */
    MR_EVENT_TRACE_PRUNED =
        15, /* calls of a site end, or begin, within the open call trees: they have no shape */
    MR_EVENT_LANDED_IN =
        16, /* site: place on the stack of an open call that was landed in; flags: the tag of its frame. For marks alone */
};

/* What joins call trees, and the words before it: see docs/FORMAT.md section 6.1. */
enum mr_link_kind {
    MR_LINK_SEND,    /* trace id (high, low), span id */
    MR_LINK_RECEIVE, /* the same */
    MR_LINK_CAPTURE, /* hand-off id */
    MR_LINK_ATTACH,  /* the same */
    MR_LINK_DETACH,
    MR_LINK_DONE, /* a detach of hand-off id 0: what waits for a call tree is over */
    /* Of reconstruct, no events: what was attached ended without a detach; behind a loss nobody knows what was received last */
    MR_LINK_LOST,
    MR_LINK_LOST_RECEIVED,
};
#define MR_LINK_WORDS 3

enum mr_event_flag {
    MR_EVENT_OUTER = 1,      /* OPEN, CLOSE: an outer frame */
    MR_EVENT_ROOT = 2,       /* OPEN, CLOSE: the root of a call tree */
    MR_EVENT_FAILED = 4,     /* CLOSE: status failed */
    MR_EVENT_INCOMPLETE = 8, /* CLOSE: no exit was seen; not timed */
    MR_EVENT_UNWOUND =
        16, /* CLOSE: left without an exit of its own (exception, longjmp); timed to the catcher's next event */
    MR_EVENT_UNKNOWN = 32, /* OPEN: entered during a loss */
};

enum mr_event_end {
    MR_EVENT_END_HANDED_OVER = 1, /* they go to another receiver: what is open stays so */
};

/* FORMAT.md section 6.1, prune. */
enum mr_event_prune {
    MR_EVENT_PRUNE_ON_AGAIN = 1,
    MR_EVENT_PRUNE_SETTLED = 2,
};

/* Of LANDED; the other bits, and all of LEFT, are the tag of the frame (FORMAT.md section 6.1, landing). */
enum mr_landed_flag {
    MR_LANDED_ABOVE = 0x4000, /* functions open above it have been left */
    MR_LANDED_FIRST = 0x8000, /* the function landed in; others are its callers */
};

struct mr_event {
    uint64_t ns; /* Unix time */
    uint32_t site;
    uint16_t kind;  /* enum mr_event_kind */
    uint16_t flags; /* enum mr_event_flag, ored */
};

static_assert(sizeof(struct mr_event) == 16 && offsetof(struct mr_event, site) == 8,
              "mr_event_word() reads all but the time");

/* All of an event but its time: the site in the low half, then its kind, then its flags. */
static MR_ALWAYS_INLINE uint64_t mr_event_word(const struct mr_event *event)
{
    uint64_t word;

    memcpy(&word, (const uint8_t *)event + offsetof(struct mr_event, site), sizeof(word));
    return word;
}

/* Of what joins call trees: reconstruct gives it on as it is, and knows no more about it. */
static MR_ALWAYS_INLINE bool mr_event_is_passed_on(const struct mr_event *event)
{
    return event->kind == MR_EVENT_WORD ||
           (event->kind == MR_EVENT_LINK && event->site <= MR_LINK_CAPTURE);
}

#define MR_LOSS_NESTING_UNKNOWN                                                          \
    UINT32_MAX /* nobody followed the nesting: events missing between chunks */

struct mr_loss {
    uint64_t events;
    uint32_t pops,
        pushes; /* FORMAT.md section 6.1; both MR_LOSS_NESTING_UNKNOWN where nobody knows */
    uint8_t reason; /* enum mr_loss_reason */
};

struct mr_batch {
    enum mr_batch_kind kind;
    struct mr_source *
        source; /* FRAME, EVENTS, REPEATS, END, MARK of decode; borrowed (lane-owned), NULL otherwise */
    /* FRAME */
    struct mr_frame frame; /* payload borrowed, or in `bytes` after mr_batch_own() */
    bool is_owned;
    /* DICT, DELTA (and owned FRAME): the payload; MARK: its entries */
    struct mr_buffer bytes;
    /* DELTA: payloads of one group were gained in the same period, by one filter; 0: of none */
    uint64_t group;
    /* DELTA: who tells it, a lane or a worker below, and which of its tellings it belongs to (pipeline/open_traces.h); zero: nobody */
    struct mr_id teller;
    uint64_t telling;
    bool has_open; /* open traces, in this payload */
    /* EVENTS, REPEATS */
    struct mr_stream *stream;
    int64_t
        wall_shift_ns; /* to add to its times where a wall clock is meant, and nowhere else */
    struct mr_event *events; /* capacity event_capacity, owned */
    uint32_t event_count, event_capacity;
    struct mr_nesting *
        nesting; /* reduce is to follow it (pipeline/nesting.h); NULL: it is well nested */
    struct mr_loss *losses; /* owned */
    uint32_t loss_count, loss_capacity;
    /* REPEATS: times in the memory of events, at most MR_BATCH_EVENTS_MAX */
    const struct mr_repeat *repeat; /* the stream's; borrowed */
    uint64_t base_ns;               /* Unix time from which they count */
    uint32_t trace_count;
    /* END */
    uint32_t end_state; /* enum mr_source_state: finished or died */
    bool
        is_handed_over; /* another receiver goes on with its streams (pipeline/handover.h) */
    /* MARK of gather: the batches that it speaks of, the first of them; linked by `next`, owned */
    struct mr_batch *unit;
    struct mr_batch *next; /* link for whoever owns it (free lists, queues) */
};

#define MR_BATCH_EVENTS_MAX                                                              \
    4096 /* events per batch: 64 KiB, half of a usual L2 way set; measured in docs/why */
#define MR_BATCH_BYTES_MAX (8u << 20)

/* NULL when there is no memory. EVENTS and REPEATS batches come with room for MR_BATCH_EVENTS_MAX events. */
struct mr_batch *mr_batch_new(enum mr_batch_kind kind);
void mr_batch_free(struct mr_batch *batch); /* NULL allowed */
/* The number of a new group of DELTA batches, not 0; of this process. Any thread. */
uint64_t mr_batch_new_group(void);
enum mr_status mr_batch_own(struct mr_batch *batch);

#endif
