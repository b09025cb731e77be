/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sender's connection on its way through the worker: opened by the greeter (main thread), which
 * reads its HELLO, then given to a lane, which owns it until it is closed. One thread at a time.
 *
 *     accepted -> greeting -> (given to a lane) -> open -> closed
 *                    \------------ refused ----------/
 *
 * A refused connection lingers: what still comes is read and thrown away for up to a second, because
 * closing a socket with unread bytes resets it, and the peer would never see the ERROR frame.
 */
#ifndef MR_WORKER_CONNECTION_H
#define MR_WORKER_CONNECTION_H

#include "base/clock.h"
#include "net/conn.h"
#include "net/control.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_CONNECTION_LINGER_NS MR_SECOND_NS

struct mr_lane_sender; /* worker/senders.h */
struct mr_source;

/* From an ACK to the SETTLE of what it acknowledged: worker/lane_credit.c. */
struct mr_round_trip {
    uint64_t sequence; /* of the ACK; 0: none is measured */
    uint64_t bytes;    /* that had come before what the ACK is of */
    uint64_t start_ns, waited_ns;
};

/* What a sender that moves takes along. */
enum mr_handing {
    MR_HANDING_NOT,
    MR_HANDING_ENDING, /* what it sent is on its way through the filters, and to the spool */
    MR_HANDING_OFFERED, /* it is told what that is, and is to say that it goes on elsewhere */
    MR_HANDING_GRANTED /* it is the sender's; the socket has not taken that word yet */
};

struct mr_connection {
    struct mr_conn conn;
    struct mr_hello_message hello; /* owned; empty until HELLO came */
    struct mr_lane_sender *sender; /* borrowed from the lane's table; NULL before */
    uint64_t opened_ns;
    uint64_t credit; /* that it is told: worker/lane_credit.c */
    /* What it was told last to be here, and the bytes that had come then. */
    uint64_t acked_sequence, acked_bytes;
    struct mr_round_trip trip;
    uint64_t asked_ns;        /* when it was asked to go elsewhere; 0: never */
    uint64_t linger_until_ns; /* 0: not refused */
    /* worker/lane_handover.c */
    enum mr_handing handing;
    struct mr_source *leaving; /* ENDING, OFFERED: owned */
    uint64_t offered_ns;
    size_t resume_bytes; /* that it brought */
    bool
        is_stalled; /* the spool is full: nothing is read, and the lane's epoll does not watch it */
    uint64_t stalled_ns; /* since when */
    uint32_t
        wanted_revision; /* of the requests for exemplars that it was told; 0: none */
    struct mr_connection *next, *previous;
};

struct mr_connection_list {
    struct mr_connection *first;
    uint32_t count;
};

/* Takes `fd`, also when it fails: NULL without memory. */
struct mr_connection *mr_connection_new(int fd, const char *peer, uint32_t max_frame,
                                        uint64_t now_ns);
/* Closes and frees; not in a list any more. */
void mr_connection_free(struct mr_connection *connection);

/* The log: who is cut off, and why. Within a budget, as peers that nobody can make sense of may be many. Any thread. */
void mr_connection_tell_cut(const struct mr_connection *connection, const char *text);
/* Tells the peer and the log why, once; it lingers from here on. */
void mr_connection_refuse(struct mr_connection *connection, enum mr_wire_error code,
                          const char *text, uint64_t now_ns);
/* Throws away what came. False when it is over: the peer closed, or the time is up. */
bool mr_connection_linger(struct mr_connection *connection, uint64_t now_ns);

void mr_connection_list_add(struct mr_connection_list *list,
                            struct mr_connection *connection);
void mr_connection_list_remove(struct mr_connection_list *list,
                               struct mr_connection *connection);

#endif
