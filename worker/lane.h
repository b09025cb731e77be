/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: one graph (decode, reconstruct, reduce), and the senders that are at home in it (worker/homes.h), so that one who
 * returns meets its state. It reads their connections, pushes their frames into the graph, acknowledges what the graph
 * took, and ticks it. A driver (worker/driver.h) turns it, one at a time: "the lane's thread" is that of the driver that has it.
 *
 *     mr_lane_start(&lane, &config);             // the graph is started, joined to the trunk
 *     mr_lane_give(&lane, connection);           // any thread; after HELLO was checked
 *     mr_lane_stop(&lane, deadline_ns);          // any thread: senders are told to MOVE, and may until then
 *     mr_driver_stop(&driver);                   // waits for it: its graph is drained then
 *     mr_lane_join(&lane);
 *     mr_lane_fini(&lane);                       // when its graph was freed
 *
 * Custody (net/custody.h): a frame is acknowledged when it is here, and goes into the graph when its sender knows that it
 * was. What is in the spool counts as taken; without one, what is in this process' memory.
 */
#ifndef MR_WORKER_LANE_H
#define MR_WORKER_LANE_H

#include "net/frame_expand.h"
#include "pipeline/asks.h"
#include "pipeline/graph.h"
#include "pipeline/spool.h"
#include "pipeline/spool_log.h"
#include "pipeline/wanted.h"
#include "worker/connection.h"
#include "worker/counters.h"
#include "worker/driver.h"
#include "worker/senders.h"

#include <pthread.h>

#define MR_LANE_MOVE_ALL UINT32_MAX

struct mr_lane_config {
    struct mr_graph *graph;   /* borrowed; driven by the lane's thread alone */
    struct mr_driver *driver; /* the first one; borrowed until the lane has ended */
    const char *name;
    uint64_t credit;
    uint64_t source_grace_ns;
    bool hands_over; /* what is open goes along with senders that move */
    uint32_t max_senders;
    uint32_t max_frame;
    bool group_by_host;
    struct mr_worker_counters *counters;
    bool has_custody;     /* else every sender is trusted: what comes is used at once */
    struct mr_id self;    /* of the worker, as custodian */
    uint32_t index;       /* of the lane, for `asks` */
    struct mr_asks *asks; /* borrowed: the register at the master */
    struct mr_wanted_board *wanted; /* borrowed: what senders are told; NULL: nothing */
    /* Frames are kept there before they are acknowledged; NULL: memory is enough. Borrowed, as the log of this lane. */
    struct mr_spool *spool;
    struct mr_spool_log *log;
    /* Senders to begin with; taken, as there is room. */
    struct mr_lane_recovered *recovered;
};

/* A sender of an earlier process, with what the spool has of it; worker/lane_spool.c. */
struct mr_lane_recovered {
    struct mr_spool_sender *kept;
    struct mr_spool_position position;
    struct mr_hello_message hello;
    struct mr_buffer frames;
    struct mr_resume *resume;
    struct mr_buffer *dicts;
    uint32_t dict_count;
    struct mr_lane_recovered *next;
};
/* Takes what is given away of `found`. MR_ENOMEM, MR_EFORMAT (its HELLO is damaged). */
enum mr_status mr_lane_recovered_new(struct mr_spool_found *found,
                                     struct mr_lane_recovered **recovered);
void mr_lane_recovered_free(struct mr_lane_recovered *recovered);

struct mr_lane_ended;

struct mr_lane {
    struct mr_lane_config config;
    struct mr_driven driven;
    uint64_t next_tick_ns;
    int epoll_fd, wake_fd;
    struct mr_connection_list open;
    struct mr_connection_list parting; /* OFFERED or GRANTED: their senders have left */
    struct mr_senders senders;
    struct mr_lane_ended *ended;       /* sources whose END is on its way */
    struct mr_frame_expander expander; /* for frames whose connection is gone */
    /* Senders whose frames are in doubt, at the last tick, and connections lost since. */
    uint32_t doubts;
    uint64_t now_ns;
    bool is_moving;         /* the senders have been told to go elsewhere */
    bool is_behind;         /* with what is settled, of some connection */
    uint32_t move_left;     /* senders still to be asked, */
    uint64_t move_until_ns; /* until then */
    enum mr_status status;  /* of the graph; once bad, nothing is acknowledged any more */
    /* At its end, after mr_lane_join(): frames in doubt that were dropped, and that the spool has. */
    uint64_t left_in_doubt, left_kept;
    _Atomic bool has_ended;
    _Atomic uint32_t load;        /* connections given and not closed yet */
    _Atomic uint32_t move_wanted; /* senders to be asked to go elsewhere */
    _Atomic uint64_t stop_at_ns;  /* 0: not stopping */
    pthread_mutex_t given_lock;   /* protects `given` */
    struct mr_connection_list given;
};

enum mr_status mr_lane_start(struct mr_lane *lane, const struct mr_lane_config *config,
                             struct mr_error *error);
void mr_lane_give(struct mr_lane *lane, struct mr_connection *connection);
void mr_lane_stop(struct mr_lane *lane, uint64_t deadline_ns);
/* Asks `count` of its senders to go elsewhere, of those that have been here for a while; all: MR_LANE_MOVE_ALL. Any thread. */
void mr_lane_move(struct mr_lane *lane, uint32_t count);
/* Something waits for it, such as an answer of the register. Any thread. */
void mr_lane_wake(struct mr_lane *lane);
/* Connections that it has or is about to have. Any thread. */
uint32_t mr_lane_load(const struct mr_lane *lane);
/* Whether nothing drives it any more. Any thread, until join. */
bool mr_lane_has_ended(const struct mr_lane *lane);
/* After it has ended: frees what it has, but for the sources. */
void mr_lane_join(struct mr_lane *lane);
/* After its graph was freed: the sources, whose streams filters know until they are closed. */
void mr_lane_fini(struct mr_lane *lane);

#endif
