/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/agent.h"

#include "base/assert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWERS_PER_TURN 64

static const struct {
    const char *word, *answer;
} states[MR_WORKER_STATES] = {
#define MR_WORKER_STATE(name, word, answer, meaning) {word, answer},
#include "worker/state.def"
#undef MR_WORKER_STATE
};

const char *mr_worker_state_word(enum mr_worker_state state)
{
    MR_ASSERT(state < MR_WORKER_STATES);
    return states[state].word;
}

static unsigned weight_of(double utilisation)
{
    double left = 100.0 - 100.0 * utilisation;

    if (left < 1)
        return 1;
    return left > 100 ? 100 : (unsigned)(left + 0.5);
}

size_t mr_agent_put(const struct mr_agent_view *view, char out[MR_AGENT_LINE_MAX])
{
    char weight[16] = "";
    int size;

    MR_ASSERT(view->state < MR_WORKER_STATES);
    if (view->state == MR_WORKER_UP)
        (void)snprintf(weight, sizeof(weight), " %u%%", weight_of(view->utilisation));
    size = snprintf(out, MR_AGENT_LINE_MAX, "%s%s #level=%u senders=%u\n",
                    states[view->state].answer, weight, view->level, view->senders);
    MR_ASSERT(size > 0 && size < MR_AGENT_LINE_MAX);
    return (size_t)size;
}

/* Behind `key`, which must be there. */
static bool take_number(const char *text, const char *key, uint32_t limit, uint32_t *out)
{
    const char *at = strstr(text, key);
    unsigned long value;
    char *end;

    if (!at || at[strlen(key)] < '0' || at[strlen(key)] > '9')
        return false;
    value = strtoul(at + strlen(key), &end, 10);
    *out = (uint32_t)value;
    return value <= limit;
}

static bool take_state(const char *text, struct mr_agent_view *view)
{
    for (uint32_t i = 0; i < MR_WORKER_STATES; i++) {
        size_t size = strlen(states[i].answer);

        if (strncmp(text, states[i].answer, size) != 0 || text[size] != ' ')
            continue;
        view->state = (enum mr_worker_state)i;
        return true;
    }
    return false;
}

enum mr_status mr_agent_get(struct mr_span line, struct mr_agent_view *view)
{
    char text[MR_AGENT_LINE_MAX];
    uint32_t weight = 100;

    if (line.size == 0 || line.size >= sizeof(text) || line.data[line.size - 1] != '\n' ||
        memchr(line.data, 0, line.size))
        return MR_EFORMAT;
    memcpy(text, line.data, line.size);
    text[line.size - 1] = '\0';
    memset(view, 0, sizeof(*view));
    if (!take_state(text, view) || !take_number(text, " #level=", 64, &view->level) ||
        !take_number(text, " senders=", UINT32_MAX, &view->senders))
        return MR_EFORMAT;
    if (view->state == MR_WORKER_UP && !take_number(text, "up ready ", 100, &weight))
        return MR_EFORMAT;
    view->utilisation = (100 - weight) / 100.0;
    return MR_OK;
}

enum mr_status mr_agent_open(struct mr_agent *agent, int listen_fd, int epoll_fd,
                             struct mr_error *error)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = agent}};

    agent->listen_fd = listen_fd;
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &event) == 0)
        return MR_OK;
    return mr_error_set_errno(error, MR_EIO, errno, "--agent: epoll");
}

/* Whoever asked with words of its own (agent-send) has them read: bytes left unread would cut off the answer. */
static void answer_one(int fd, const char *line, size_t size)
{
    char ignored[512];

    while (recv(fd, ignored, sizeof(ignored), MSG_DONTWAIT) > 0)
        continue;
    (void)!send(fd, line, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
    (void)close(fd);
}

void mr_agent_answer(struct mr_agent *agent, const struct mr_agent_view *view)
{
    char line[MR_AGENT_LINE_MAX];
    size_t size = mr_agent_put(view, line);

    for (int i = 0; i < ANSWERS_PER_TURN; i++) {
        int fd = accept4(agent->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0)
            return;
        answer_one(fd, line, size);
    }
}

void mr_agent_close(struct mr_agent *agent)
{
    if (agent->listen_fd >= 0)
        (void)close(agent->listen_fd);
    agent->listen_fd = -1;
}
