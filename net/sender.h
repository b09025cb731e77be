/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sending end of a hop: connects, says hello, sends data frames, and keeps each until the receiver has it in custody
 * (docs/FORMAT.md section 1; DESIGN section 5, custody). Used by the probe's writer thread and by a worker's forward filter.
 *
 * No malloc, no stdio, no name resolution, no locks: the caller gives memory and addresses. One thread at a time. Frames
 * are numbered in the order of commit. When the connection breaks, it is opened again (next address, with back-off 10 ms
 * to 1 s and jitter) and everything not acknowledged is sent again.
 *
 *     outbox (a ring of bytes, frames contiguous):
 *
 *        freed | acked .. sent .. committed | reserved | free
 *
 *     uint8_t *payload = mr_sender_reserve(&sender, size);  // NULL: outbox full, call mr_sender_poll() first
 *     memcpy(payload, ...);
 *     mr_sender_commit(&sender, MR_FRAME_CHUNKS, used);
 *     mr_sender_poll(&sender, timeout_ns);                  // all I/O happens here
 */
#ifndef MR_NET_SENDER_H
#define MR_NET_SENDER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/id.h"
#include "base/status.h"
#include "net/custody.h"
#include "net/frame.h"

#define MR_SENDER_ADDRESSES_MAX 16
#define MR_SENDER_INPUT_SIZE (128u << 10)
/* Of control frames that are sent: the largest, HELLO or RESUME, and a SETTLE and BYE find room behind it. */
#define MR_SENDER_CONTROL_SIZE (MR_WIRE_HEADER_SIZE + MR_WIRE_MAX_CONTROL + 256u)
/* Of a payload of the dictionary's repetition: a heartbeat and BYE find room behind it. */
#define MR_SENDER_ANNOUNCE_SIZE (MR_WIRE_MAX_CONTROL - 256u)
/* What comes over a connection that was left: OFFER and heartbeats. */
#define MR_SENDER_PARTING_SIZE 64u
#define MR_SENDER_BACKOFF_MIN_NS UINT64_C(10000000)
#define MR_SENDER_BACKOFF_MAX_NS UINT64_C(1000000000)

struct mr_sender_address {
    struct sockaddr_storage address;
    socklen_t size;
};

struct mr_sender_config {
    struct mr_sender_address addresses[MR_SENDER_ADDRESSES_MAX];
    uint32_t address_count;
    struct mr_id incarnation;
    uint8_t *outbox;    /* borrowed until fini; power of two not required */
    size_t outbox_size; /* >= 2 * max_frame */
    uint32_t max_frame; /* of payload; the receiver's smaller one is taken over */
    /*
     * Borrowed until fini: keeps what the receiver that moves us away has to say to the next one (RESUME). `hello` tells the
     * size as resume_max. NULL and 0: nothing is kept. With it the sender may have two descriptors for a while: fd, and parting.fd.
     */
    uint8_t *resume;
    size_t resume_size;
    uint64_t now_ns_seed; /* seeds the jitter */
    /* 0: as FORMAT.md section 1 and the two above have it. Others are for tests. */
    uint64_t heartbeat_ns, silence_ns, backoff_min_ns, backoff_max_ns;
    /*
     * Writes the HELLO payload to out; its size, or 0 on failure. The oldest frame held is custody->acked + 1.
     * Called in mr_sender_poll() at every connection.
     */
    size_t (*hello)(void *context, const struct mr_custody_hello *custody, uint8_t *out,
                    size_t capacity);
    /*
     * Writes the next payload of a repetition of the dictionary to out; its size, or 0 when all is told. Called in
     * mr_sender_poll() once a receiver has welcomed us that lacks what was acknowledged, and again as the payloads go out,
     * each as a DICT frame out of custody, all before the first numbered frame. `*cursor` is the caller's, 0 at the
     * start; it is 0 again when the connection broke meanwhile. `capacity` is MR_SENDER_ANNOUNCE_SIZE. (May be NULL.)
     */
    size_t (*announce)(void *context, uint64_t *cursor, uint8_t *out, size_t capacity);
    /*
     * Called before the receiver may learn that we know what it has, and before anything is sent in a new epoch: what a
     * process that goes on in our place must know. False: it cannot be kept, and the connection is closed (may be NULL).
     */
    bool (*keep)(void *context, const struct mr_custody_hello *custody, uint64_t acked);
    /* A new connection was welcomed by a receiver that knows `next_sequence - 1` frames of us (may be NULL). */
    void (*welcomed)(void *context, uint64_t next_sequence);
    /* An ACK came (may be NULL). */
    void (*acked)(void *context, const struct mr_ack *ack);
    /* The register's answer to mr_sender_ask() came (may be NULL). */
    void (*answered)(void *context, const struct mr_custody_ask *answer);
    /* WANTED came, `payload` unread and borrowed during the call; false: it is malformed (may be NULL: it is passed over). */
    bool (*wanted)(void *context, struct mr_span payload);
    void *context;
};

enum mr_sender_state {
    MR_SENDER_IDLE, /* waits for the back-off to end */
    MR_SENDER_CONNECTING,
    MR_SENDER_GREETING, /* HELLO sent, waits for WELCOME */
    MR_SENDER_OPEN,
    MR_SENDER_REFUSED /* told by an ERROR frame; tried again with the longest back-off */
};

/* Of what a receiver that we leave has to say to the next one (RESUME): sender_resume.c. */
enum mr_sender_resume_state {
    MR_SENDER_RESUME_NONE,
    MR_SENDER_RESUME_COMING, /* over the connection that is about to be left */
    MR_SENDER_RESUME_OFFERED, /* all is here, but not ours: who offers it waits for a word */
    MR_SENDER_RESUME_ACCEPTED, /* that was said: a receiver takes it, or none is there */
    MR_SENDER_RESUME_GRANTED,  /* ours, for the next one */
    MR_SENDER_RESUME_GIVEN     /* to the receiver of now, a part at least */
};

/* The connection that was left, while OFFERED or ACCEPTED. */
struct mr_sender_parting {
    int fd;            /* -1: none */
    uint32_t failures; /* of connections since */
    uint64_t due_ns;   /* OFFERED: accepted then, whoever is there; ACCEPTED: given up */
    uint32_t input_size;
    uint8_t input[MR_SENDER_PARTING_SIZE];
};

struct mr_sender_stats {
    uint64_t frames_committed, frames_acked, bytes_sent, connects, failures, resends,
        moves, announced, /* DICT frames out of custody */
        discarded,        /* frames */
        resumes_dropped;  /* RESUME frames that no receiver got */
};

struct mr_sender {
    struct mr_sender_config config;
    enum mr_sender_state state;
    int fd; /* -1: none */

    /* The outbox, see sender_outbox.c. */
    uint64_t oldest_sequence; /* of the oldest frame held (not acknowledged) */
    uint64_t next_sequence;   /* the next to be committed */
    uint64_t send_sequence;   /* of the frame that is being sent, or the next to be */
    uint64_t sent_sequence;   /* one more than any that was sent in this epoch */
    size_t head, tail, wrap;
    /* Set by the owner, who will hardly hold more: past so many bytes the beginning is used again. 0: at the end. */
    size_t window;
    size_t send_frame, send_at;
    size_t reserve_at, reserved; /* reserved: bytes with the header, 0: nothing is */
    bool is_wrapped;
    uint64_t unacked_bytes; /* on this connection, headers included */
    uint64_t credit; /* bytes that may be unacknowledged, told by the receiver; 0: any */
    struct mr_custody_hello custody; /* but for acked and sent, which the above tell */
    uint64_t
        settled; /* the last SETTLE told on this connection; what it knew before: 0 */

    /* The connection, see sender.c. */
    uint64_t retry_at_ns, backoff_ns, heard_ns, said_ns;
    uint64_t look_at_ns; /* whether the peer's host still answers, not before */
    uint64_t move_at_ns; /* when to leave, after MOVE; 0: stay */
    bool is_leaving;     /* BYE was queued: no data follows */
    bool is_moving;      /* it says that we go elsewhere: RESUME may come */
    bool
        is_resuming; /* giving RESUME, or about to: nothing else but control frames goes yet */
    bool is_announcing; /* repeating the dictionary: no numbered frame goes yet */
    uint64_t announce_cursor;
    /* What is held of RESUME, whatever the connection, see sender_resume.c. */
    enum mr_sender_resume_state resume_state;
    struct mr_sender_parting parting;
    uint64_t resume_sequence;
    size_t resume_at, resume_end;
    uint32_t resume_count; /* payloads */
    uint32_t address_index;
    uint64_t random;
    uint32_t control_size, control_at; /* control frames, sent between data frames */
    uint8_t control[MR_SENDER_CONTROL_SIZE];
    uint32_t input_size;
    uint8_t input[MR_SENDER_INPUT_SIZE];
    struct mr_sender_stats stats;
    struct mr_error last_error; /* why the last connection failed, for the one who logs */
};

/*
 * MR_EUSAGE when the configuration cannot work (no address, no hello, outbox too small, resume_size without memory). Connects
 * in mr_sender_poll().
 */
enum mr_status mr_sender_init(struct mr_sender *sender,
                              const struct mr_sender_config *config);
/*
 * Other addresses, 1 to MR_SENDER_ADDRESSES_MAX, copied: for the connections to come. The present one stays; the next is to the
 * one behind the address that was tried last, or the first where that is not among them.
 */
void mr_sender_set_addresses(struct mr_sender *sender,
                             const struct mr_sender_address *addresses, uint32_t count);
/*
 * Before anything else: goes on in the place of another process. Frames are numbered from custody->acked + 1 on, and all
 * that is committed before the first poll counts as sent.
 */
void mr_sender_resume(struct mr_sender *sender, const struct mr_custody_hello *custody);
/* parting.fd is not that connection any more: it is forgotten, not closed, and what it was kept for is given up. */
void mr_sender_lose_parting(struct mr_sender *sender);
/* Closes the sockets; what is held is given up. */
void mr_sender_fini(struct mr_sender *sender);
/* In a forked child: closes the copied descriptors without a word to the peer. Async-signal-safe. */
void mr_sender_abandon(struct mr_sender *sender);

/* Bytes of the outbox that frames take: those not acknowledged, and not sent yet. */
size_t mr_sender_held(const struct mr_sender *sender);
/* Room for a payload of up to `size` bytes, contiguous, at any alignment; NULL when the outbox is full or size is above
 * max_frame. Reserving again replaces it. Polling between reserve and commit is allowed. */
uint8_t *mr_sender_reserve(struct mr_sender *sender, size_t size);
/* Makes the first `size` reserved bytes a frame and numbers it; its sequence. */
uint64_t mr_sender_commit(struct mr_sender *sender, enum mr_frame_type type,
                          uint16_t flags, size_t size);
/* Bytes of payload that could be reserved right now. */
size_t mr_sender_room(const struct mr_sender *sender);

/*
 * Does what I/O can be done, waiting up to timeout_ns for some (0: none). MR_OK when something moved, MR_AGAIN when not,
 * MR_EREFUSED while refused. Never fails for good: errors are in last_error and stats, and the next address is tried.
 */
enum mr_status mr_sender_poll(struct mr_sender *sender, uint64_t timeout_ns);
/* Frames wait for the socket: the link is full, or the receiver does not read. Not for want of credit. */
bool mr_sender_is_stalled(const struct mr_sender *sender);
/* The connection of now does not leave this host; false where there is none. One through a tunnel looks so, too. */
bool mr_sender_is_same_host(const struct mr_sender *sender);
bool mr_sender_address_is_loopback(const struct mr_sender_address *address);
/* Asks the register at the master, over this connection; false: not open, or no room now. No answer after a new connection. */
bool mr_sender_ask(struct mr_sender *sender, const struct mr_custody_ask *ask);
/*
 * Gives up all that was committed, as if it had been acknowledged: for who has no receiver and never connects. How many
 * frames; 0: none were held. Not on a connection.
 */
uint64_t mr_sender_discard(struct mr_sender *sender);
bool mr_sender_is_drained(
    const struct mr_sender *sender); /* everything committed is acknowledged */
/* Sends BYE when drained or at deadline (CLOCK_MONOTONIC ns), polling meanwhile; MR_OK or MR_ETIMEOUT. */
enum mr_status mr_sender_finish(struct mr_sender *sender, enum mr_bye_reason reason,
                                uint64_t deadline_ns);

#endif
