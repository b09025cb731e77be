/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward: DICT and DELTA batches -> the next level, over TCP. The end of a worker's trunk.
 *
 * It copies each batch into the outbox of an mr_sender (net/sender.h), which keeps it until the
 * receiver above has it in custody. All I/O happens on the thread that runs the filter, in process()
 * and tick().
 *
 * Back pressure: forward is placed on a thread of its own (MR_PLACE_THREAD). While the outbox is full,
 * process() polls the sender until the batch fits: this one filter may wait, because nothing but its
 * own bounded pipe stands behind it. The pipe fills, mr_filter_can_emit() says no to merge, and merge
 * merges longer. Before the stop it waits without end; once `link->stopping` is set it gives up when
 * nothing was acknowledged for `give_up_ns`, of a receiver that was heard of lately, if by heartbeats alone,
 * for MR_FORWARD_PATIENCE times as long; what was not acknowledged then is counted.
 *
 * A receiver that lacks something an earlier receiver acknowledged (it was restarted, or it is another
 * one behind the same address) needs the dictionary again: forward raises `link->reannounce`, and
 * merge, who keeps the dictionary, marks everything unsent. Items may so come after a delta that
 * names them; late names change the display, never the identity.
 *
 *     static struct mr_forward_link link;                    // zeroed; outlives the graph
 *     struct mr_forward_config config = {.link = &link, .incarnation = id, .level = 1, ...};
 *     {&mr_forward_filter, &config, MR_PLACE_THREAD}
 *     ...
 *     mr_store_release(&link.stopping, true);                // then the lanes end, mr_graph_drain(trunk)
 *     lost = mr_load_relaxed(&link.frames_given_up);
 */
#ifndef MR_PIPELINE_FILTERS_FORWARD_H
#define MR_PIPELINE_FILTERS_FORWARD_H

#include "base/id.h"
#include "net/endpoint.h"
#include "net/resolver.h"
#include "net/sender.h"
#include "pipeline/asks.h"
#include "pipeline/filter.h"
#include "pipeline/spool.h"
#include "pipeline/wanted.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_FORWARD_OUTBOX_DEFAULT (UINT64_C(64) << 20)
#define MR_FORWARD_GIVE_UP_DEFAULT_NS UINT64_C(5000000000)
/* A master that is short of processors or disk takes several times 5 s for one large commit. */
#define MR_FORWARD_PATIENCE 10

/* What forward shares with the rest of the process. The owner zeroes it; any thread reads. */
struct mr_forward_link {
    _Atomic bool stopping; /* written by the owner, before what emits into it ends */
    _Atomic bool is_open;  /* the receiver has welcomed us */
    _Atomic uint64_t reannounce; /* how often the dictionary must have been sent again */
    _Atomic uint64_t frames_acked;     /* in custody above */
    _Atomic uint64_t frames_held;      /* in the outbox, not acknowledged */
    _Atomic uint64_t frames_given_up;  /* never acknowledged; final after the drain */
    _Atomic uint64_t frames_too_large; /* of these, larger than the receiver takes */
    _Atomic uint32_t max_frame; /* that the receiver takes, as far as known; 0: not yet */
    _Atomic uint64_t
        frames_kept; /* not acknowledged, but in the spool; final after the drain */
};

struct mr_forward_config {
    struct mr_sender_address addresses[MR_SENDER_ADDRESSES_MAX];
    uint32_t address_count;
    const char *target; /* the addresses in words, for messages */
    struct mr_id incarnation;
    uint32_t level;        /* of this worker */
    const char *token;     /* "" for none */
    uint64_t outbox_bytes; /* at least twice max_frame */
    uint32_t max_frame;
    uint64_t give_up_ns; /* without progress or sign of life, while stopping */
    struct mr_forward_link *link;
    struct mr_resolver *resolver; /* borrowed: renews the addresses; NULL: they stay */
    struct mr_asks *asks; /* questions to the register that go out with it; may be NULL */
    /* Where requests for exemplars that come from above are put; NULL: this worker takes none. Borrowed. */
    struct mr_wanted_board *wanted;
    struct mr_spool
        *spool; /* may be NULL; else batches wait for a MARK, and are kept with it */
};

extern const struct mr_filter_kind mr_forward_filter;

#endif
