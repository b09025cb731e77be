/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's standing in its level: its state (worker/state.def), how much of it is in use, what its agent tells of that,
 * and how many of its senders should go elsewhere. The main thread's.
 *
 *     up --SIGUSR1--> drain --no sender left--> maint --SIGUSR2--> up          (from drain, too)
 *      \------------------ SIGTERM --------------------------------> down
 *
 * A worker that drains stays: it still takes who comes all the same, for there may be no other, and asks again after a while.
 *
 *     mr_standing_open(&standing, ...);
 *     move = mr_standing_turn(&standing, graphs, count, senders, now_ns);   // each turn
 *     mr_standing_answer(&standing);                                        // the agent's descriptor is readable
 *     mr_standing_close(&standing);
 */
#ifndef MR_WORKER_STANDING_H
#define MR_WORKER_STANDING_H

#include "worker/agent.h"
#include "worker/load.h"
#include "worker/peers.h"

#define MR_STANDING_ALL UINT32_MAX

struct mr_standing {
    struct mr_agent_view view; /* of us */
    struct mr_worker_load load;
    struct mr_agent agent;
    struct mr_peers *peers;  /* NULL: not asked for */
    uint32_t rounds_above;   /* rounds of questions in a row with an excess */
    uint64_t quiet_until_ns; /* until then what was moved settles */
    uint64_t ask_again_ns;   /* while draining */
};

/* `agent_fd` and `peers` are taken; -1 and NULL for none. */
enum mr_status mr_standing_open(struct mr_standing *standing, uint32_t level,
                                int agent_fd, struct mr_peers *peers, int epoll_fd,
                                struct mr_error *error);
/* Logged once; says nothing of one that ends. */
void mr_standing_drain(struct mr_standing *standing);
void mr_standing_make_ready(struct mr_standing *standing);
void mr_standing_end(struct mr_standing *standing);
/* How many of our `senders` are to be asked now to go elsewhere: mostly 0, MR_STANDING_ALL when draining. */
uint32_t mr_standing_turn(struct mr_standing *standing, struct mr_graph *const *graphs,
                          uint32_t graph_count, uint32_t senders, uint64_t now_ns);
void mr_standing_answer(struct mr_standing *standing);
void mr_standing_close(struct mr_standing *standing);

#endif
