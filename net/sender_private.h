/* SPDX-License-Identifier: Apache-2.0 */
/* What sender.c and the other sender_*.c share. Inside net/ only. */
#ifndef MR_NET_SENDER_PRIVATE_H
#define MR_NET_SENDER_PRIVATE_H

#include "base/span.h"
#include "net/sender.h"

/* sender_outbox.c */
/* Frees every frame up to `sequence`, which was committed. */
void mr_outbox_ack(struct mr_sender *s, uint64_t sequence);
/* Begins to send at the oldest frame held: for a new connection. */
void mr_outbox_rewind(struct mr_sender *s);
/* What may be sent next, in one piece, as far as credit goes; only the rest of a frame that was begun if `only_rest`. */
struct mr_span mr_outbox_sendable(const struct mr_sender *s, bool only_rest);
/* `size` bytes of that were sent. */
void mr_outbox_sent(struct mr_sender *s, size_t size);
/* The largest payload of the frames held, expanded. */
uint32_t mr_outbox_largest(const struct mr_sender *s);
static inline bool mr_outbox_is_between_frames(const struct mr_sender *s)
{
    return s->send_at == s->send_frame;
}

/* sender_io.c: true when something moved. What goes wrong ends in mr_sender_break(). */
bool mr_sender_receive(struct mr_sender *s, uint64_t now_ns);
bool mr_sender_transmit(struct mr_sender *s, uint64_t now_ns);
bool mr_sender_has_output(const struct mr_sender *s);
void mr_sender_queue_control(struct mr_sender *s, enum mr_frame_type type,
                             struct mr_span payload);

/* sender_resume.c */
/* On a connection that we leave: holds it for the next receiver, or counts it where it has no room. False: it is wrong. */
bool mr_sender_keep_resume(struct mr_sender *s, struct mr_span payload);
/* That was all. False: it is wrong. */
bool mr_sender_take_offer(struct mr_sender *s, struct mr_span payload);
/* Such an offer was taken, and the connection over which it came is to be left. */
bool mr_sender_is_to_part(const struct mr_sender *s);
/* Leaves it, and keeps it until it is decided who gets what was offered. */
void mr_sender_part(struct mr_sender *s, uint64_t now_ns);
/* The connection of now is closed. */
void mr_sender_end_resume(struct mr_sender *s);
/* It did not come to a WELCOME. */
void mr_sender_miss_receiver(struct mr_sender *s, uint64_t now_ns);
/* A receiver welcomed us that takes RESUME, or takes none: whether it gets what is held, which is given up otherwise. */
void mr_sender_begin_resume(struct mr_sender *s, uint64_t now_ns, bool is_taken);
/* What comes over the connection that was left, and what is due there. True when something moved. */
bool mr_sender_tend_parting(struct mr_sender *s, uint64_t now_ns);
/* is_resuming, and nothing can be given yet. */
bool mr_sender_waits_for_grant(const struct mr_sender *s);
/*
 * While is_resuming, with no control frame waiting: puts the next payload where control frames go out. From then on it counts
 * as given: no other receiver gets it, nor what is behind it.
 */
void mr_sender_give_resume(struct mr_sender *s);
/* What is still held is counted, and the connection that was left is closed. */
void mr_sender_forget_resumes(struct mr_sender *s);

/* sender_link.c */
/* The peer's kernel has not answered what was sent: its host is dead or cut off. Asks our kernel, at most each 100 ms. */
bool mr_sender_peer_is_gone(struct mr_sender *s, uint64_t now_ns);
/* When to ask that next; UINT64_MAX: there is nothing to be answered. */
uint64_t mr_sender_look_at_ns(const struct mr_sender *s);

/* sender.c */
/* Closes the connection and tries again later. `what` went wrong; `system_errno` 0: without one. */
void mr_sender_break(struct mr_sender *s, uint64_t now_ns, const char *what,
                     int system_errno);
/* As it, for what the receiver said in an ERROR frame. */
void mr_sender_refuse(struct mr_sender *s, uint64_t now_ns,
                      const struct mr_wire_error_text *error);
/* Closes a connection that ended well, and opens the next one at once. */
void mr_sender_leave(struct mr_sender *s, uint64_t now_ns);
uint64_t mr_sender_random(struct mr_sender *s, uint64_t limit); /* 0 .. limit */

#endif
