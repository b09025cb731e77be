/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's agent (--agent ENDPOINT): whoever connects is told in one line what this worker is for its level, and cut
 * off. It is what HAProxy asks with `agent-check`, and what the workers of a level ask each other (worker/peers.h):
 *
 *     up ready 73% #level=1 senders=12\n      27 % of it is in use; behind '#' HAProxy does not read
 *     drain #...\n                            no new connections; maint: the same, and empty; down: it ends
 *
 * The main thread's. An answer fits the socket's buffer, so nobody is waited for.
 *
 *     mr_agent_open(&agent, listen_fd, epoll_fd, &error);
 *     if (event.data.ptr == &agent)
 *         mr_agent_answer(&agent, &view);
 *     mr_agent_close(&agent);
 */
#ifndef MR_WORKER_AGENT_H
#define MR_WORKER_AGENT_H

#include "base/error.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_AGENT_LINE_MAX 96

enum mr_worker_state {
#define MR_WORKER_STATE(name, word, answer, meaning) MR_WORKER_##name,
#include "worker/state.def"
#undef MR_WORKER_STATE
    MR_WORKER_STATES
};

const char *mr_worker_state_word(enum mr_worker_state state);

/* What one worker is for its level. */
struct mr_agent_view {
    enum mr_worker_state state;
    uint32_t level;
    double utilisation; /* 0 .. 1 */
    uint32_t senders;   /* connections */
};

/* The line, with its end; its size. The weight is max(1, 100 - utilisation in percent). */
size_t mr_agent_put(const struct mr_agent_view *view, char out[MR_AGENT_LINE_MAX]);
/* A line of another worker. MR_EFORMAT. */
enum mr_status mr_agent_get(struct mr_span line, struct mr_agent_view *view);

struct mr_agent {
    int listen_fd; /* -1: none */
};

/* Takes `listen_fd`, also when it fails; registers it with `agent` as data. MR_EIO. */
enum mr_status mr_agent_open(struct mr_agent *agent, int listen_fd, int epoll_fd,
                             struct mr_error *error);
void mr_agent_answer(struct mr_agent *agent, const struct mr_agent_view *view);
void mr_agent_close(struct mr_agent *agent);

#endif
