/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: one thread, one graph (decode, reconstruct, reduce), and the senders that are at home in
 * it (worker/homes.h), so that one who returns meets its state. It reads their connections, pushes their frames into the
 * graph, acknowledges what the graph took, and ticks it.
 *
 *     mr_lane_start(&lane, &config);             // the graph is started, joined to the trunk
 *     mr_lane_give(&lane, connection);           // any thread; after HELLO was checked
 *     mr_lane_stop(&lane, deadline_ns);          // any thread: senders are told to MOVE, and may until then
 *     mr_lane_join(&lane);                       // its graph is drained when this returns
 *
 * Custody: a frame is acknowledged when the graph has taken it, so what is in this process' memory
 * counts as taken. A frame whose push failed is not acknowledged.
 */
#ifndef MR_WORKER_LANE_H
#define MR_WORKER_LANE_H

#include "pipeline/graph.h"
#include "worker/connection.h"
#include "worker/counters.h"
#include "worker/senders.h"

#include <pthread.h>

struct mr_lane_config {
    struct mr_graph *graph; /* borrowed; driven by the lane's thread alone */
    const char *name;
    uint64_t credit;
    uint64_t source_grace_ns;
    uint32_t max_senders;
    bool group_by_host;
    struct mr_worker_counters *counters;
};

struct mr_lane_ended;

struct mr_lane {
    struct mr_lane_config config;
    pthread_t thread;
    int epoll_fd, wake_fd;
    struct mr_connection_list open;
    struct mr_senders senders;
    struct mr_lane_ended *ended; /* sources whose END is on its way */
    uint64_t now_ns;
    bool is_moving;        /* the senders have been told to go elsewhere */
    enum mr_status status; /* of the graph; once bad, nothing is acknowledged any more */
    _Atomic bool has_ended;
    _Atomic uint32_t load;       /* connections given and not closed yet */
    _Atomic uint64_t stop_at_ns; /* 0: not stopping */
    pthread_mutex_t given_lock;  /* protects `given` */
    struct mr_connection_list given;
};

enum mr_status mr_lane_start(struct mr_lane *lane, const struct mr_lane_config *config,
                             struct mr_error *error);
void mr_lane_give(struct mr_lane *lane, struct mr_connection *connection);
void mr_lane_stop(struct mr_lane *lane, uint64_t deadline_ns);
/* Connections that it has or is about to have. Any thread. */
uint32_t mr_lane_load(const struct mr_lane *lane);
/* Whether join would return at once. Any thread, until join. */
bool mr_lane_has_ended(const struct mr_lane *lane);
void mr_lane_join(struct mr_lane *lane);

#endif
