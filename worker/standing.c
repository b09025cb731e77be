/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/standing.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "worker/share.h"

/* Two rounds of questions, a second apart: what was seen twice is no moment's noise. */
#define ROUNDS_ABOVE 2
/* The senders need up to a second and a half to be elsewhere, utilisation two to show it. */
#define SETTLE_NS (4 * MR_SECOND_NS)
#define ASK_AGAIN_NS MR_SECOND_NS

enum mr_status mr_standing_open(struct mr_standing *standing, uint32_t level,
                                int agent_fd, struct mr_peers *peers, int epoll_fd,
                                struct mr_error *error)
{
    *standing = (struct mr_standing){.view = {.state = MR_WORKER_UP, .level = level},
                                     .agent = {.listen_fd = -1},
                                     .peers = peers};
    if (agent_fd < 0)
        return MR_OK;
    return mr_agent_open(&standing->agent, agent_fd, epoll_fd, error);
}

void mr_standing_drain(struct mr_standing *standing)
{
    if (standing->view.state != MR_WORKER_UP)
        return;
    standing->view.state = MR_WORKER_DRAIN;
    standing->ask_again_ns = 0;
    mr_log_info("draining: senders are asked to go elsewhere; SIGUSR2 ends it");
}

void mr_standing_make_ready(struct mr_standing *standing)
{
    if (standing->view.state != MR_WORKER_DRAIN &&
        standing->view.state != MR_WORKER_MAINT)
        return;
    standing->view.state = MR_WORKER_UP;
    mr_log_info("ready again");
}

void mr_standing_end(struct mr_standing *standing)
{
    standing->view.state = MR_WORKER_DOWN;
}

static uint32_t turn_draining(struct mr_standing *standing, uint64_t now_ns)
{
    bool is_empty = standing->view.senders == 0;

    if (is_empty && standing->view.state == MR_WORKER_DRAIN)
        mr_log_info("drained: no sender is left");
    standing->view.state = is_empty ? MR_WORKER_MAINT : MR_WORKER_DRAIN;
    if (is_empty || now_ns < standing->ask_again_ns)
        return 0;
    standing->ask_again_ns = now_ns + ASK_AGAIN_NS;
    return MR_STANDING_ALL;
}

static uint32_t turn_up(struct mr_standing *standing, uint64_t now_ns)
{
    struct mr_agent_view views[MR_PEERS_MAX];
    uint32_t count, excess;

    if (!standing->peers || !mr_peers_take(standing->peers, views, &count))
        return 0;
    excess = mr_share_excess(&standing->view, views, count);
    standing->rounds_above = excess ? standing->rounds_above + 1 : 0;
    if (standing->rounds_above < ROUNDS_ABOVE || now_ns < standing->quiet_until_ns)
        return 0;
    standing->rounds_above = 0;
    standing->quiet_until_ns = now_ns + SETTLE_NS;
    mr_log_info(
        "above our share of the level: %u of %u senders are asked to go elsewhere "
        "(%.0f %% in use)",
        excess, standing->view.senders, 100 * standing->view.utilisation);
    return excess;
}

uint32_t mr_standing_turn(struct mr_standing *standing, struct mr_graph *const *graphs,
                          uint32_t graph_count, uint32_t senders, uint64_t now_ns)
{
    (void)mr_worker_load_sample(&standing->load, graphs, graph_count, now_ns);
    standing->view.utilisation = standing->load.utilisation;
    standing->view.senders = senders;
    switch (standing->view.state) {
    case MR_WORKER_UP:
        return turn_up(standing, now_ns);
    case MR_WORKER_DRAIN:
    case MR_WORKER_MAINT:
        return turn_draining(standing, now_ns);
    case MR_WORKER_DOWN:
    case MR_WORKER_STATES:
        break;
    }
    return 0;
}

void mr_standing_answer(struct mr_standing *standing)
{
    mr_agent_answer(&standing->agent, &standing->view);
}

void mr_standing_close(struct mr_standing *standing)
{
    mr_peers_stop(standing->peers);
    standing->peers = NULL;
    mr_agent_close(&standing->agent);
}
