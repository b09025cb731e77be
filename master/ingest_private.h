/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by ingest.c (thread, events, frames) and ingest_peer.c (connections and their
 * greeting).
 *
 * Use:
 *     struct mr_peer *peer = mr_peer_new(ingest, fd, "127.0.0.1:4000");
 *     mr_peer_greet(ingest, peer, &frame);
 *     mr_peer_refuse(ingest, peer, MR_WIRE_ERROR_STATE, "...");
 */
#ifndef MR_MASTER_INGEST_PRIVATE_H
#define MR_MASTER_INGEST_PRIVATE_H

#include "base/table.h"
#include "master/ingest.h"
#include "master/repository.h"
#include "net/conn.h"
#include "net/control.h"

#include <pthread.h>

struct mr_peer {
    struct mr_conn conn;
    struct mr_id id; /* of the sender, once greeted */
    uint32_t sender; /* index, once greeted */
    uint64_t opened_ns;
    uint64_t linger_until_ns; /* 0: not refused; what still comes is thrown away */
    uint64_t bytes_counted;
    bool takes_wanted;        /* it passes requests for exemplars on */
    uint32_t wanted_revision; /* of those that it was told; 0: none */
    bool is_ending; /* BYE came, or the peer closed: goes when all is acknowledged */
    bool
        is_waiting; /* it is among those to look at each turn: it has something to be told, or ends */
    bool is_gone; /* closed; events of this turn may speak of it still */
    struct mr_peer *next, *previous;
    struct mr_peer *waiting_next;
};

struct mr_ingest_sender {
    uint64_t applied;     /* sequence of the last frame in the model */
    struct mr_peer *peer; /* NULL: away */
};

/* A question to the register whose answer is not durable yet. */
struct mr_ingest_answer {
    struct mr_custody_ask body;
    struct mr_id asker;
    uint64_t ticket;
};

struct mr_ingest {
    struct mr_ingest_config config;
    struct mr_ingest_counters counters;
    struct mr_repository repository;
    struct mr_graph *graph;
    int epoll_fd, stop_fd, end_fd;
    pthread_t thread;
    bool is_started, is_dirty, is_paused;
    bool is_deaf; /* it could not accept, and listens again from the next tick on */
    _Atomic bool is_alive;
    bool is_untold;           /* somebody may not know what exemplars are asked for */
    uint32_t wanted_revision; /* that all others know */
    struct mr_peer *peers;
    struct mr_peer *waiting; /* by waiting_next */
    struct mr_peer *gone;    /* by next; freed behind the turn */
    struct mr_table sender_ids;
    struct mr_ingest_sender *senders;
    uint32_t sender_capacity;
    struct mr_ingest_answer *answers; /* room for MR_INGEST_ANSWERS_MAX */
    uint32_t answer_count;
    uint64_t published_ns, ticked_ns;
};

/* Takes `fd`. NULL without memory. */
struct mr_peer *mr_peer_new(struct mr_ingest *ingest, int fd, const char *name);
/* Closes it. Its memory is there until the end of the turn. */
void mr_peer_close(struct mr_ingest *ingest, struct mr_peer *peer);
void mr_peer_free_gone(struct mr_ingest *ingest);
/* Behind whatever may have queued something for it, or ended it: it is looked at each turn while that is so. */
void mr_peer_note(struct mr_ingest *ingest, struct mr_peer *peer);
/* One ERROR frame, one line in the log; the peer lingers so that it can read it. */
void mr_peer_refuse(struct mr_ingest *ingest, struct mr_peer *peer,
                    enum mr_wire_error code, const char *text);
/* A HELLO: checks it and answers. */
void mr_peer_greet(struct mr_ingest *ingest, struct mr_peer *peer,
                   const struct mr_frame *frame);
/* ingest_register.c */
/* An ASK: the peer is answered when the register is durable; refused when it cannot be asked. */
void mr_ingest_ask(struct mr_ingest *ingest, struct mr_peer *peer,
                   const struct mr_frame *frame);
/* Tells what has become durable. */
void mr_ingest_tell_answers(struct mr_ingest *ingest);

/* ingest_wanted.c */
/* Tells peers the requests for exemplars that are open, where that is news to them. */
void mr_ingest_tell_wanted(struct mr_ingest *ingest, uint64_t now_ns);

/* Throws away what came of a refused one. False when it is over. */
bool mr_peer_linger(struct mr_peer *peer, uint64_t now_ns);

#endif
