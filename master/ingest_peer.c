/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/atomics.h"
#include "base/clock.h"
#include "base/log.h"
#include "master/ingest_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINGER_NS                                                                        \
    MR_SECOND_NS        /* closing with unread bytes would destroy the ERROR frame */
#define LINGER_READS 16 /* at a time: a peer that sends on has others beside it */

struct mr_peer *mr_peer_new(struct mr_ingest *ingest, int fd, const char *name)
{
    struct mr_peer *peer = calloc(1, sizeof(*peer));
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = peer}};

    if (!peer) {
        close(fd);
        return NULL;
    }
    if (mr_conn_init(&peer->conn, fd, name, ingest->config.max_frame) != MR_OK ||
        epoll_ctl(ingest->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        mr_conn_fini(&peer->conn);
        free(peer);
        return NULL;
    }
    peer->sender = MR_TABLE_NONE;
    peer->opened_ns = mr_clock_monotonic_ns();
    peer->next = ingest->peers;
    if (peer->next)
        peer->next->previous = peer;
    ingest->peers = peer;
    mr_count_single_writer(&ingest->counters.accepted, 1);
    mr_count_single_writer(&ingest->counters.connections, 1);
    return peer;
}

void mr_peer_close(struct mr_ingest *ingest, struct mr_peer *peer)
{
    if (peer->sender != MR_TABLE_NONE && ingest->senders[peer->sender].peer == peer)
        ingest->senders[peer->sender].peer = NULL;
    if (peer->previous)
        peer->previous->next = peer->next;
    else
        ingest->peers = peer->next;
    if (peer->next)
        peer->next->previous = peer->previous;
    mr_count_single_writer(&ingest->counters.connections, UINT64_MAX);
    mr_count_single_writer(&ingest->counters.bytes,
                           peer->conn.stats.bytes - peer->bytes_counted);
    mr_count_single_writer(&ingest->counters.duplicates, peer->conn.stats.duplicates);
    mr_conn_fini(&peer->conn); /* which takes it out of the epoll set */
    peer->is_gone = true;
    peer->next = ingest->gone;
    ingest->gone = peer;
}

void mr_peer_free_gone(struct mr_ingest *ingest)
{
    while (ingest->gone) {
        struct mr_peer *peer = ingest->gone;

        ingest->gone = peer->next;
        MR_ASSERT(peer->is_gone && !peer->is_waiting);
        free(peer);
    }
}

void mr_peer_note(struct mr_ingest *ingest, struct mr_peer *peer)
{
    if (peer->is_waiting || peer->is_gone ||
        (peer->conn.output.size == 0 && !peer->is_ending))
        return;
    peer->is_waiting = true;
    peer->waiting_next = ingest->waiting;
    ingest->waiting = peer;
}

void mr_peer_refuse(struct mr_ingest *ingest, struct mr_peer *peer,
                    enum mr_wire_error code, const char *text)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(MR_SECOND_NS);

    if (peer->linger_until_ns)
        return;
    mr_log_limited(&limit, MR_LOG_WARN, "%s refused: %s", peer->conn.peer, text);
    mr_count_single_writer(&ingest->counters.refused, 1);
    mr_conn_refuse(&peer->conn, code, text);
    peer->linger_until_ns = mr_clock_monotonic_ns() + LINGER_NS;
}

bool mr_peer_linger(struct mr_peer *peer, uint64_t now_ns)
{
    uint8_t ignored[16384];

    for (int reads = 0; reads < LINGER_READS && now_ns < peer->linger_until_ns; reads++) {
        ssize_t size = recv(peer->conn.fd, ignored, sizeof(ignored), MSG_DONTWAIT);

        if (size == 0)
            return false;
        if (size < 0)
            return errno == EAGAIN || errno == EINTR;
    }
    return now_ns < peer->linger_until_ns;
}

/* Looks at every byte, so that the time does not tell where the first wrong one is. */
static bool is_token_right(const char *expected, const char *given)
{
    size_t size = strlen(expected);
    unsigned difference = 0;

    if (strlen(given) != size)
        return false;
    for (size_t i = 0; i < size; i++)
        difference |= (unsigned)(unsigned char)(expected[i] ^ given[i]);
    return difference == 0;
}

/* NULL when it may come in; else why not, in *code. */
static const char *check(const struct mr_ingest *ingest, const struct mr_hello *hello,
                         enum mr_wire_error *code)
{
    *code = MR_WIRE_ERROR_STATE;
    if (hello->role != MR_ROLE_WORKER)
        return "probes connect to a worker, this is a master: point the program's "
               "endpoint "
               "at a worker (millrace worker --forward to this address)";
    *code = MR_WIRE_ERROR_FORMAT;
    if (hello->level == 0)
        return "a worker's level is at least 1";
    *code = MR_WIRE_ERROR_TOKEN;
    if (*ingest->config.token && !is_token_right(ingest->config.token, hello->token))
        return "wrong or missing token: give the worker the master's --token-file";
    return NULL;
}

/* The sender's index; MR_TABLE_NONE without room or memory. */
static uint32_t find_sender(struct mr_ingest *ingest, struct mr_id id)
{
    uint32_t count = ingest->sender_ids.count, index;

    if (count == ingest->sender_capacity) {
        uint32_t capacity = count ? 2 * count : 64;
        struct mr_ingest_sender *senders =
            realloc(ingest->senders, capacity * sizeof(*senders));

        if (!senders)
            return MR_TABLE_NONE;
        ingest->senders = senders;
        ingest->sender_capacity = capacity;
    }
    if (mr_table_find_or_add(&ingest->sender_ids, id, count, &index) != MR_OK)
        return MR_TABLE_NONE;
    if (index == count)
        ingest->senders[index] = (struct mr_ingest_sender){
            .applied = mr_store_position(ingest->config.store, id)};
    return index;
}

/*
 * WELCOME tells what is durable, not what is applied: the sender forgets what lies below
 * it. A sender that holds less than that asks for (its earlier frames were acknowledged
 * by another store, or by one that is gone) goes on from its oldest.
 */
static void welcome(struct mr_ingest *ingest, struct mr_peer *peer,
                    const struct mr_hello *hello)
{
    uint64_t next = mr_store_position(ingest->config.store, hello->sender) + 1;

    if (hello->oldest > next) {
        mr_count_single_writer(&ingest->counters.gaps, 1);
        mr_log_warn(
            "%s: the worker's frames %llu to %llu were never seen here: they were "
            "acknowledged by another store",
            peer->conn.peer, (unsigned long long)next,
            (unsigned long long)hello->oldest - 1);
        next = hello->oldest;
        peer->conn.wants_dictionary = true;
    }
    if (mr_conn_welcome(&peer->conn, next, ingest->config.credit) != MR_OK)
        mr_peer_refuse(ingest, peer, MR_WIRE_ERROR_INTERNAL, peer->conn.error.text);
}

static void admit(struct mr_ingest *ingest, struct mr_peer *peer,
                  const struct mr_hello *hello)
{
    uint32_t index = find_sender(ingest, hello->sender);

    if (index == MR_TABLE_NONE) {
        mr_peer_refuse(ingest, peer, MR_WIRE_ERROR_BUSY,
                       "too many senders were seen by this master");
        return;
    }
    struct mr_peer *old = ingest->senders[index].peer;
    if (old && old != peer) { /* its old connection is dead, we just do not know it yet */
        old->sender = MR_TABLE_NONE;
        mr_peer_refuse(ingest, old, MR_WIRE_ERROR_STATE,
                       "the same sender connected again");
    }
    peer->id = hello->sender;
    peer->sender = index;
    peer->takes_wanted = hello->takes_wanted;
    ingest->is_untold |= peer->takes_wanted;
    ingest->senders[index].peer = peer;
    welcome(ingest, peer, hello);
}

void mr_peer_greet(struct mr_ingest *ingest, struct mr_peer *peer,
                   const struct mr_frame *frame)
{
    struct mr_hello_message message;
    struct mr_error error = MR_ERROR_NONE;
    enum mr_wire_error code;
    enum mr_status status = mr_hello_get(frame->payload, &message, &error);

    if (status != MR_OK) {
        mr_peer_refuse(ingest, peer, mr_conn_wire_code(status), error.text);
        return;
    }
    const char *reason = check(ingest, &message.hello, &code);
    if (reason)
        mr_peer_refuse(ingest, peer, code, reason);
    else
        admit(ingest, peer, &message.hello);
    mr_hello_free(&message);
}
