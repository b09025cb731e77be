/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiving end of a hop: one accepted connection. Reads frames, checks order and version, answers WELCOME, ACK,
 * ERROR. Owns its descriptor and a read buffer bounded by max_frame. Non-blocking; one thread at a time (the object may
 * be handed from the accepting thread to a lane between calls).
 *
 *     status = mr_conn_read(&conn);                       // on readiness; MR_AGAIN, MR_END (peer closed), MR_EIO
 *     while ((status = mr_conn_next(&conn, &frame)) == MR_OK) {
 *         if (frame.type == MR_FRAME_HELLO) ...           // mr_hello_get() in net/control.h, then mr_conn_welcome()
 *         else take(&frame);                              // a data frame, numbered conn.next_sequence - 1
 *     }
 *     if (status == MR_END) ...                           // BYE: acknowledge all there is, then mr_conn_fini()
 *     if (status is an error) mr_conn_refuse(&conn, mr_conn_wire_code(status), conn.error.text);  // then mr_conn_fini()
 */
#ifndef MR_NET_CONN_H
#define MR_NET_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "net/frame.h"
#include "net/frame_expand.h"

struct mr_conn_stats {
    uint64_t frames, bytes, duplicates;
};

struct mr_conn {
    int fd;
    char peer[64]; /* address:port, for messages */
    uint32_t max_frame;
    uint8_t *input; /* owned */
    size_t input_capacity, input_start, input_end;
    size_t input_held; /* what lies before input_start from here on is not released */
    size_t input_older, input_older_end; /* held longer than that; 0: nothing is */
    size_t hold_max;   /* 0: frames are released as they are handed out */
    size_t input_need; /* bytes of the frame at input_start, as far as known */
    struct mr_frame_expander expander;
    struct mr_buffer output; /* control frames that the socket did not take yet */
    bool has_hello;          /* HELLO was handed out */
    bool
        wants_dictionary; /* set before WELCOME, which asks for it: a sender that is new to us */
    bool takes_resume;      /* as well: towards a sender that says it keeps RESUME */
    bool greeted;           /* and WELCOME sent */
    bool has_numbered;      /* a numbered frame came: RESUME comes too late */
    bool finished;          /* BYE seen */
    bool has_offered;       /* OFFER (made) was sent: its answer may come behind BYE */
    uint8_t bye_reason;     /* enum mr_bye_reason */
    uint64_t next_sequence; /* of the next data frame */
    uint64_t held_sequence; /* of the oldest held; next_sequence: none is */
    uint64_t
        settled; /* the last SETTLE: the peer knows that all up to it is acknowledged */
    uint64_t acked;  /* the last sequence acknowledged to the peer */
    uint64_t credit; /* the last one told */
    uint64_t heard_ns, said_ns;
    struct mr_conn_stats stats;
    struct mr_error error; /* why mr_conn_next() failed */
};

/* Makes `fd` non-blocking and owns it from now on, also when it fails. MR_EUSAGE for max_frame, MR_ENOMEM. */
enum mr_status mr_conn_init(struct mr_conn *conn, int fd, const char *peer,
                            uint32_t max_frame);
void mr_conn_fini(struct mr_conn *conn); /* closes */

/*
 * Reads what is there, up to the room in the buffer. MR_OK when bytes came, MR_AGAIN, MR_END, MR_EIO, MR_ENOMEM; MR_ELIMIT when
 * more came without SETTLE than may be held.
 */
enum mr_status mr_conn_read(struct mr_conn *conn);
/*
 * The next HELLO, ASK, RESUME, OFFER (accepted) or data frame, expanded; it is borrowed until the next mr_conn_read() or, as one that came compressed, the
 * next mr_conn_next(). HEARTBEAT, SETTLE and BYE are dealt with here. Data frames that we have already (sequence < next_sequence)
 * are dropped and counted as duplicates; DICT frames of sequence 0 are handed out whenever they come.
 * MR_AGAIN when more bytes are needed. MR_END after BYE. MR_EREFUSED: the peer sent ERROR, its text is in `error`.
 * MR_EFORMAT also for a sequence that skips ahead, MR_ESTATE for a frame that may not come now, and what mr_frame_take()
 * and mr_frame_expand() say. After an error only refuse and fini.
 */
enum mr_status mr_conn_next(struct mr_conn *conn, struct mr_frame *frame);
/*
 * From now on, before WELCOME, numbered frames are held: mr_conn_next() hands them out as they came, compressed perhaps,
 * only to be counted, and mr_conn_next_settled() again when they may be used. `size` bytes at most are held: as many as the
 * peer may have on its way.
 */
void mr_conn_hold(struct mr_conn *conn, size_t size);
/* The oldest frame held, if its sequence is at most `sequence`: expanded, released, and borrowed as of mr_conn_next(). */
enum mr_status mr_conn_next_settled(struct mr_conn *conn, uint64_t sequence,
                                    struct mr_frame *frame);
/*
 * Appends all frames that are held, and control frames between them, as they came: for who keeps them longer than the
 * connection. MR_ENOMEM, MR_ELIMIT: nothing is appended.
 */
enum mr_status mr_conn_copy_held(const struct mr_conn *conn, struct mr_buffer *out);
/*
 * Answers HELLO: data frames from `next_sequence` on are expected. A receiver that knows fewer frames than the sender still
 * has passes the `oldest` of the HELLO.
 */
enum mr_status mr_conn_welcome(struct mr_conn *conn, uint64_t next_sequence,
                               uint64_t credit);
/* The same, and of which epoch it is `self` who is the custodian. */
enum mr_status mr_conn_welcome_epoch(struct mr_conn *conn, uint64_t next_sequence,
                                     uint64_t credit, uint64_t epoch, struct mr_id self);
/* The register's answer to an ASK of the peer. */
enum mr_status mr_conn_answer(struct mr_conn *conn, const struct mr_custody_ask *answer);
/* WANTED, as mr_wanted_put() wrote it; to a peer whose HELLO takes it. */
enum mr_status mr_conn_wanted(struct mr_conn *conn, struct mr_span payload);
/*
 * Acknowledges up to `sequence`; nothing is sent when neither that nor the credit is news. MR_OK also when the socket is
 * full (see flush); MR_ELIMIT when the peer does not read our answers, MR_EIO.
 */
enum mr_status mr_conn_ack(struct mr_conn *conn, uint64_t sequence, uint64_t credit);
enum mr_status mr_conn_move(struct mr_conn *conn, uint32_t jitter_ms);
/*
 * What the next receiver must know, behind BYE (moving), with mr_conn_offer() behind it: 1 to MR_RESUME_BYTES_MAX bytes
 * (FORMAT.md section 10), with the sequence of the last frame that we have. To a peer whose HELLO says that it keeps some, and of
 * all payloads no more than it says. MR_ELIMIT when they do not fit the output, MR_EIO.
 */
enum mr_status mr_conn_resume(struct mr_conn *conn, uint64_t sequence,
                              struct mr_span bytes);
/* That was all, and who it is for is to say whether it is taken; or, behind that answer: it is its own (step). */
enum mr_status mr_conn_offer(struct mr_conn *conn, enum mr_offer_step step);
/* One ERROR frame (best effort), then shutdown; the caller closes with fini. */
void mr_conn_refuse(struct mr_conn *conn, enum mr_wire_error code, const char *text);
/* Heartbeat when due; MR_ETIMEOUT when the peer was silent for MR_WIRE_SILENCE_NS. Call about once a second. */
enum mr_status mr_conn_tick(struct mr_conn *conn, uint64_t now_ns);
/* The heartbeat alone: of who cannot listen for now, and lives. */
enum mr_status mr_conn_beat(struct mr_conn *conn, uint64_t now_ns);
/* Sends what is left in `output`; MR_OK when empty, MR_AGAIN when the socket is full, MR_EIO. */
enum mr_status mr_conn_flush(struct mr_conn *conn);
/* The wire code that fits a status of mr_conn_next(). */
enum mr_wire_error mr_conn_wire_code(enum mr_status status);

#endif
