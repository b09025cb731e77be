/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field         written by      read by        access
 * counters      ingest thread   any            relaxed: single numbers, no order needed
 * is_alive      ingest thread   any            release [E], acquire [S]
 * all others    ingest thread   ingest thread  before the thread starts and after its
 *                                              join also by the owner
 *
 * Pairs: [E]-[S] what ingest did before it gave up.
 * Progress: one slow or hostile peer holds up nobody: sockets are non-blocking and each
 * turn reads a bounded amount. A store that is behind holds up all (back pressure).
 */
#include "master/ingest.h"

#include "base/assert.h"
#include "base/atomics.h"
#include "base/clock.h"
#include "base/log.h"
#include "master/ingest_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX 64
#define TURN_MS 50
#define TICK_NS (500 * MR_MILLISECOND_NS)
#define GREETING_NS (5 * MR_SECOND_NS)
#define EXPANDED_ROWS 2 /* room that a turn asks of the store, in frames */

static void cut_off(struct mr_ingest *ingest, struct mr_peer *peer, enum mr_status status,
                    const char *text)
{
    mr_peer_refuse(ingest, peer, mr_conn_wire_code(status), text);
}

/* Gives the payload to the graph. What became of it is in the repository. */
static enum mr_status push(struct mr_ingest *ingest, const struct mr_peer *peer,
                           const struct mr_frame *frame)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_FRAME);

    if (!batch)
        return MR_ENOMEM;
    batch->frame = *frame;
    enum mr_status status = mr_batch_own(batch);
    if (status != MR_OK) {
        mr_batch_free(batch);
        return status;
    }
    batch->kind = frame->type == MR_FRAME_DELTA ? MR_BATCH_DELTA : MR_BATCH_DICT;
    ingest->repository.sender = peer->id;
    return mr_graph_push(ingest->graph, batch);
}

static enum mr_status keep(struct mr_ingest *ingest, struct mr_peer *peer,
                           const struct mr_frame *frame)
{
    uint64_t number;
    enum mr_status status =
        mr_store_append(ingest->config.store, peer->id, frame->sequence, frame->type,
                        frame->payload, &number);

    if (status != MR_OK)
        return status;
    mr_model_set_journal(ingest->config.model, number);
    ingest->senders[peer->sender].applied = frame->sequence;
    ingest->is_dirty = true;
    mr_count_single_writer(&ingest->counters.frames, 1);
    return MR_OK;
}

/*
 * Acknowledges what is durable, as far as this connection brought it: a sender that came again while its frames were being
 * committed was welcomed to what was durable then, and has yet to send the others once more.
 */
static void tell_durable(struct mr_ingest *ingest, struct mr_peer *peer)
{
    uint64_t durable = mr_store_position(ingest->config.store, peer->id),
             brought = peer->conn.next_sequence - 1;
    enum mr_status status = mr_conn_ack(
        &peer->conn, durable < brought ? durable : brought, ingest->config.credit);

    if (mr_status_is_error(status))
        cut_off(ingest, peer, status, "acknowledgements are not read");
    mr_peer_note(ingest, peer);
}

/* An error ends the master: model or queue cannot go on. */
static enum mr_status take_data(struct mr_ingest *ingest, struct mr_peer *peer,
                                const struct mr_frame *frame)
{
    if (frame->type != MR_FRAME_DICT && frame->type != MR_FRAME_DELTA) {
        mr_count_single_writer(&ingest->counters.bad_frames, 1);
        cut_off(ingest, peer, MR_ESTATE, "a worker sends DICT and DELTA frames only");
        return MR_OK;
    }
    if (frame->sequence <= ingest->senders[peer->sender].applied) {
        mr_count_single_writer(&ingest->counters.duplicates, 1);
        tell_durable(ingest, peer); /* no commit of it will come */
        return MR_OK;
    }
    enum mr_status status = push(ingest, peer, frame);
    if (status != MR_OK)
        return status;
    if (ingest->repository.outcome == MR_OK)
        return keep(ingest, peer, frame);
    mr_count_single_writer(&ingest->counters.bad_frames, 1);
    cut_off(ingest, peer, ingest->repository.outcome, ingest->repository.error.text);
    return MR_OK;
}

/* True once all that the peer sent is durable and acknowledged. */
static bool is_settled(const struct mr_ingest *ingest, const struct mr_peer *peer)
{
    return peer->sender == MR_TABLE_NONE ||
           mr_store_position(ingest->config.store, peer->id) >=
               ingest->senders[peer->sender].applied;
}

static bool has_room(struct mr_ingest *ingest)
{
    bool has = mr_store_has_room(ingest->config.store,
                                 EXPANDED_ROWS * (uint64_t)ingest->config.max_frame);

    if (!has && !ingest->is_paused)
        mr_count_single_writer(&ingest->counters.pauses, 1);
    ingest->is_paused = !has;
    return has;
}

/* Takes the frames that are in the peer's buffer. An error ends the master. */
static enum mr_status take_frames(struct mr_ingest *ingest, struct mr_peer *peer)
{
    struct mr_frame frame;
    enum mr_status status = MR_OK;

    while (!peer->linger_until_ns && has_room(ingest)) {
        status = mr_conn_next(&peer->conn, &frame);
        if (status != MR_OK)
            break;
        if (frame.type == MR_FRAME_HELLO)
            mr_peer_greet(ingest, peer, &frame);
        else if (frame.type == MR_FRAME_ASK)
            mr_ingest_ask(ingest, peer, &frame);
        else if ((status = take_data(ingest, peer, &frame)) != MR_OK)
            return status;
    }
    if (status == MR_END)
        peer->is_ending = true;
    else if (mr_status_is_error(status))
        cut_off(ingest, peer, status, peer->conn.error.text);
    mr_peer_note(ingest, peer);
    return MR_OK;
}

static enum mr_status read_peer(struct mr_ingest *ingest, struct mr_peer *peer)
{
    if (peer->linger_until_ns) {
        if (!mr_peer_linger(peer, mr_clock_monotonic_ns()))
            mr_peer_close(ingest, peer);
        return MR_OK;
    }
    enum mr_status status = mr_conn_read(&peer->conn);
    mr_count_single_writer(&ingest->counters.bytes,
                           peer->conn.stats.bytes - peer->bytes_counted);
    peer->bytes_counted = peer->conn.stats.bytes;
    if (status == MR_END || mr_status_is_error(status)) {
        enum mr_status taken = take_frames(ingest, peer);

        if (!ingest->is_paused) /* else there is more in its buffer, and it comes again */
            mr_peer_close(ingest, peer);
        return taken;
    }
    return take_frames(ingest, peer);
}

static enum mr_status watch(struct mr_ingest *ingest, int fd, void *what)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = what}};

    return epoll_ctl(ingest->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? MR_OK : MR_EIO;
}

static enum mr_status listen_for_peers(struct mr_ingest *ingest)
{
    return watch(ingest, ingest->config.listen_fd, &ingest->config.listen_fd);
}

/* No descriptors, say. Whoever waits goes on waiting, and would be told of at every turn: not before the next tick. */
static void cannot_accept(struct mr_ingest *ingest, int system_errno)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(10 * MR_SECOND_NS);

    (void)mr_log_limited(&limit, MR_LOG_ERROR, "cannot accept: %s",
                         strerror(system_errno));
    (void)epoll_ctl(ingest->epoll_fd, EPOLL_CTL_DEL, ingest->config.listen_fd, NULL);
    ingest->is_deaf = true;
}

static void accept_peer(struct mr_ingest *ingest)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);
    char host[46] = "?", port[8] = "?", name[64];
    int fd = accept4(ingest->config.listen_fd, (struct sockaddr *)&address, &size,
                     SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
        cannot_accept(ingest, errno);
    if (fd < 0)
        return;
    (void)getnameinfo((struct sockaddr *)&address, size, host, sizeof(host), port,
                      sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(name, sizeof(name), "%s:%s", host, port);
    struct mr_peer *peer = mr_peer_new(ingest, fd, name);
    if (peer &&
        mr_load_relaxed(&ingest->counters.connections) > ingest->config.max_connections)
        mr_peer_refuse(ingest, peer, MR_WIRE_ERROR_BUSY,
                       "too many connections (--max-connections)");
}

static enum mr_status publish(struct mr_ingest *ingest, uint64_t now_ns)
{
    if (!ingest->is_dirty)
        return MR_OK;
    enum mr_status status = mr_model_publish(ingest->config.model);
    mr_count_single_writer(&ingest->counters.publishes, 1);
    mr_count_single_writer(&ingest->counters.publish_ns,
                           mr_clock_monotonic_ns() - now_ns);
    ingest->is_dirty = false;
    return status;
}

/* Tells senders what became durable, and shows it to readers first: what is acknowledged is seen. */
static enum mr_status acknowledge(struct mr_ingest *ingest)
{
    struct mr_store_position position;
    enum mr_status published = MR_OK;

    while (published == MR_OK && mr_store_committed(ingest->config.store, &position)) {
        published = publish(ingest, mr_clock_monotonic_ns());
        uint32_t index = mr_table_find(&ingest->sender_ids, position.sender);
        struct mr_peer *peer =
            index == MR_TABLE_NONE ? NULL : ingest->senders[index].peer;

        if (!peer || peer->linger_until_ns)
            continue;
        tell_durable(ingest, peer);
    }
    mr_ingest_tell_answers(ingest);
    return published;
}

static void tick_peer(struct mr_ingest *ingest, struct mr_peer *peer, uint64_t now_ns)
{
    if (peer->linger_until_ns) {
        if (!mr_peer_linger(peer, now_ns))
            mr_peer_close(ingest, peer);
        return;
    }
    if (!peer->conn.greeted && now_ns - peer->opened_ns > GREETING_NS) {
        mr_peer_refuse(ingest, peer, MR_WIRE_ERROR_STATE, "no HELLO came");
        return;
    }
    if (ingest->is_paused) /* it may well have talked: we did not listen */
        peer->conn.heard_ns = now_ns;
    enum mr_status status = mr_conn_tick(&peer->conn, now_ns);
    if (mr_status_is_error(status)) /* silent or broken: it will connect again */
        mr_peer_close(ingest, peer);
    else
        mr_peer_note(ingest, peer);
}

/* Sends what is queued; a peer that said BYE goes when it has been told all. */
static void flush_peers(struct mr_ingest *ingest)
{
    struct mr_peer *peer = ingest->waiting, *next;

    ingest->waiting = NULL;
    for (; peer; peer = next) {
        enum mr_status status = MR_OK;

        next = peer->waiting_next;
        peer->is_waiting = false;
        mr_count_single_writer(&ingest->counters.looks, 1);
        if (peer->is_gone)
            continue;
        if (!peer->linger_until_ns)
            status = mr_conn_flush(&peer->conn);
        if (mr_status_is_error(status) ||
            (peer->is_ending && status == MR_OK && is_settled(ingest, peer)))
            mr_peer_close(ingest, peer);
        else
            mr_peer_note(ingest, peer);
    }
}

/* Nobody speaks of them any more: not an event, and not those that wait. */
static void free_gone(struct mr_ingest *ingest)
{
    if (!ingest->gone)
        return;
    for (struct mr_peer **at = &ingest->waiting; *at;) {
        struct mr_peer *peer = *at;

        if (peer->is_gone) {
            peer->is_waiting = false;
            *at = peer->waiting_next;
        } else {
            at = &peer->waiting_next;
        }
    }
    mr_peer_free_gone(ingest);
}

/* What frames the peers' buffers still hold after a pause. */
static enum mr_status resume(struct mr_ingest *ingest)
{
    enum mr_status status = MR_OK;

    for (struct mr_peer *peer = ingest->peers;
         peer && status == MR_OK && has_room(ingest); peer = peer->next)
        status = take_frames(ingest, peer);
    return status;
}

/* Traces to which no further part has come for the time-out are what they are. */
static enum mr_status end_traces(struct mr_ingest *ingest, uint64_t now_ns)
{
    uint64_t timeout_ns = ingest->config.join_timeout_ns;
    uint32_t ended = 0;
    enum mr_status status = MR_OK;

    if (!ingest->is_paused && now_ns > timeout_ns) /* else parts may wait in sockets */
        status = mr_model_end_traces(ingest->config.model, now_ns - timeout_ns, &ended);
    ingest->is_dirty |= ended > 0;
    return status;
}

static enum mr_status tick(struct mr_ingest *ingest)
{
    uint64_t now_ns = mr_clock_monotonic_ns();
    enum mr_status status = mr_graph_tick(ingest->graph, now_ns);

    if (status == MR_OK)
        status = acknowledge(ingest);
    if (ingest->is_paused && status == MR_OK)
        status = resume(ingest);
    mr_ingest_tell_wanted(ingest, now_ns);
    flush_peers(ingest);
    if (now_ns - ingest->ticked_ns >= TICK_NS) {
        ingest->ticked_ns = now_ns;
        if (ingest->is_deaf)
            ingest->is_deaf = listen_for_peers(ingest) != MR_OK;
        for (struct mr_peer *peer = ingest->peers, *next; peer; peer = next) {
            next = peer->next;
            tick_peer(ingest, peer, now_ns);
        }
        if (status == MR_OK)
            status = end_traces(ingest, now_ns);
    }
    if (status == MR_OK && now_ns - ingest->published_ns >= MR_INGEST_PUBLISH_NS) {
        ingest->published_ns = now_ns;
        status = publish(ingest, now_ns);
    }
    mr_store_relaxed(&ingest->counters.progress_ns, now_ns); /* a number for readers */
    return status;
}

/* One event; false: stop. *status: an error ends the master. */
static bool handle(struct mr_ingest *ingest, void *what, enum mr_status *status)
{
    if (what == &ingest->stop_fd)
        return false;
    if (what == &ingest->config.listen_fd)
        accept_peer(ingest);
    else if (what == &ingest->config.store)
        *status = acknowledge(ingest);
    else if (!((struct mr_peer *)what)->is_gone)
        *status = read_peer(ingest, what);
    return *status == MR_OK;
}

/* While the store is behind, sockets are left alone: only it can say when to go on. */
static void wait_for_store(struct mr_ingest *ingest)
{
    struct pollfd fds[] = {
        {.fd = mr_store_event_fd(ingest->config.store), .events = POLLIN},
        {.fd = ingest->stop_fd, .events = POLLIN},
    };

    (void)poll(fds, 2, TURN_MS);
}

static enum mr_status turn(struct mr_ingest *ingest, bool *is_stopping)
{
    struct epoll_event events[EVENTS_MAX];
    enum mr_status status = MR_OK;

    if (ingest->is_paused)
        wait_for_store(ingest);
    int count =
        epoll_wait(ingest->epoll_fd, events, EVENTS_MAX, ingest->is_paused ? 0 : TURN_MS);
    for (int i = 0; i < count && status == MR_OK; i++) {
        bool is_peer = events[i].data.ptr != &ingest->stop_fd &&
                       events[i].data.ptr != &ingest->config.store &&
                       events[i].data.ptr != &ingest->config.listen_fd;

        if (is_peer && ingest->is_paused)
            continue;
        if (!handle(ingest, events[i].data.ptr, &status) && status == MR_OK)
            *is_stopping = true;
    }
    if (status == MR_OK)
        status = tick(ingest);
    free_gone(ingest);
    return status;
}

static void *run(void *context)
{
    struct mr_ingest *ingest = context;
    bool is_stopping = false;
    enum mr_status status = MR_OK;
    uint64_t one = 1;

    while (status == MR_OK && !is_stopping)
        status = turn(ingest, &is_stopping);
    if (status == MR_OK)
        status = publish(ingest, mr_clock_monotonic_ns());
    if (status == MR_OK)
        return NULL;
    mr_log_error("ingest cannot go on: %s", mr_status_text(status));
    mr_store_release(&ingest->is_alive, false); /* [E] pairs with [S] in is_alive() */
    if (write(ingest->end_fd, &one, sizeof(one)) < 0)
        mr_log_error("eventfd: %s", strerror(errno));
    return NULL;
}

static enum mr_status open_events(struct mr_ingest *ingest, struct mr_error *error)
{
    ingest->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    ingest->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ingest->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ingest->epoll_fd < 0 || ingest->stop_fd < 0 || ingest->end_fd < 0 ||
        watch(ingest, ingest->stop_fd, &ingest->stop_fd) != MR_OK ||
        listen_for_peers(ingest) != MR_OK ||
        watch(ingest, mr_store_event_fd(ingest->config.store), &ingest->config.store) !=
            MR_OK)
        return mr_error_set_errno(error, MR_EIO, errno, "ingest");
    return MR_OK;
}

static enum mr_status open_graph(struct mr_ingest *ingest, struct mr_error *error)
{
    const struct mr_graph_node node = {&mr_repository_filter, &ingest->repository,
                                       MR_PLACE_FUSED};

    ingest->repository.model = ingest->config.model;
    enum mr_status status = mr_graph_new(&node, 1, "master", &ingest->graph, error);
    return status == MR_OK ? mr_graph_start(ingest->graph) : status;
}

enum mr_status mr_ingest_start(const struct mr_ingest_config *config,
                               struct mr_ingest **out, struct mr_error *error)
{
    struct mr_ingest *ingest = calloc(1, sizeof(*ingest));

    if (!ingest)
        return mr_error_set(error, MR_ENOMEM, "ingest: out of memory");
    ingest->config = *config;
    mr_table_init(&ingest->sender_ids, MR_INGEST_SENDERS_MAX);
    ingest->answers = calloc(MR_INGEST_ANSWERS_MAX, sizeof(*ingest->answers));
    mr_store_relaxed(&ingest->is_alive, true);
    mr_store_relaxed(&ingest->counters.progress_ns, mr_clock_monotonic_ns());
    enum mr_status status = ingest->answers
                                ? open_events(ingest, error)
                                : mr_error_set(error, MR_ENOMEM, "ingest: out of memory");
    if (status == MR_OK)
        status = open_graph(ingest, error);
    int failure =
        status == MR_OK ? pthread_create(&ingest->thread, NULL, run, ingest) : 0;
    if (failure)
        status = mr_error_set_errno(error, MR_ENOMEM, failure, "ingest thread");
    ingest->is_started = status == MR_OK;
    if (status != MR_OK) {
        mr_ingest_free(ingest);
        return status;
    }
    *out = ingest;
    return MR_OK;
}

void mr_ingest_stop(struct mr_ingest *ingest)
{
    uint64_t one = 1;

    if (!ingest->is_started)
        return;
    if (write(ingest->stop_fd, &one, sizeof(one)) < 0)
        MR_ASSERT(errno == EAGAIN);
    pthread_join(ingest->thread, NULL);
    ingest->is_started = false;
}

void mr_ingest_free(struct mr_ingest *ingest)
{
    if (!ingest)
        return;
    if (ingest->graph) {
        (void)acknowledge(ingest); /* without memory to publish, nobody is left to read */
        flush_peers(ingest);
        mr_graph_drain(ingest->graph);
        mr_graph_free(ingest->graph);
    }
    while (ingest->peers)
        mr_peer_close(ingest, ingest->peers);
    free_gone(ingest);
    mr_table_fini(&ingest->sender_ids);
    free(ingest->answers);
    free(ingest->senders);
    close(ingest->config.listen_fd);
    close(ingest->epoll_fd);
    close(ingest->stop_fd);
    close(ingest->end_fd);
    free(ingest);
}

const struct mr_ingest_counters *mr_ingest_counters(const struct mr_ingest *ingest)
{
    return &ingest->counters;
}

const struct mr_graph *mr_ingest_graph(const struct mr_ingest *ingest)
{
    return ingest->graph;
}

bool mr_ingest_is_alive(struct mr_ingest *ingest)
{
    return mr_load_acquire(&ingest->is_alive); /* [S] pairs with [E] in run() */
}

int mr_ingest_end_fd(const struct mr_ingest *ingest)
{
    return ingest->end_fd;
}
