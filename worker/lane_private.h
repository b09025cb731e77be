/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a lane share: lane.c (connections, the thread), and each lane_*.c. Inside worker/ only; the lane's thread. */
#ifndef MR_WORKER_LANE_PRIVATE_H
#define MR_WORKER_LANE_PRIVATE_H

#include "worker/lane.h"

/* How long a sender whose connection broke may take to return before its frames in doubt are claimed. */
#define MR_LANE_RETURN_NS (200 * MR_MILLISECOND_NS)
/* The same where it was the worker that was gone: its senders are waiting for their back-off to end. */
#define MR_LANE_RECOVERED_RETURN_NS (3 * MR_SECOND_NS)

/* lane.c */
static inline void mr_lane_count(_Atomic uint64_t *counter, uint64_t add)
{
    mr_add_relaxed(counter, add); /* a number for people */
}
/* Its sender has left; the connection stays, without it. */
void mr_lane_part(struct mr_lane *lane, struct mr_connection *connection);
void mr_lane_close(struct mr_lane *lane, struct mr_connection *connection);
void mr_lane_refuse(struct mr_lane *lane, struct mr_connection *connection,
                    enum mr_wire_error code, const char *text);

/* lane_sources.c */
/* Gives a data frame to the graph. */
void mr_lane_push_frame(struct mr_lane *lane, struct mr_lane_sender *sender,
                        const struct mr_frame *frame);
/* The source ends as `state` behind all that was pushed. The sender has one. */
void mr_lane_end_source(struct mr_lane *lane, struct mr_lane_sender *sender,
                        enum mr_source_state state);
/*
 * The source is no sender's any more; filters know its streams until it is done. `again` (NULL: none) ends behind it, with what it
 * would have handed over.
 */
void mr_lane_let_source(struct mr_lane *lane, struct mr_source *source,
                        struct mr_source *again);
/* The same of a source whose streams another receiver goes on with. It is the caller's, once it is done. */
struct mr_source *mr_lane_hand_source_over(struct mr_lane *lane,
                                           struct mr_lane_sender *sender);
/* Those whose END has passed. `all`: the graph is gone, nobody uses them any more. */
void mr_lane_free_ended(struct mr_lane *lane, bool all);

/* lane_move.c */
/* Asks as many as the main thread wants. */
void mr_lane_move_some(struct mr_lane *lane);

/* lane_handover.c */
/*
 * All that a sender sent is settled, and it said BYE: where it moves, it is given what it takes along. True: that is under
 * way, to be called again; false: nothing is left to do.
 */
bool mr_lane_hand_over(struct mr_lane *lane, struct mr_connection *connection);
/* A connection that was parted with; false: it is over. */
bool mr_lane_tend_parting(struct mr_lane *lane, struct mr_connection *connection);
/* Its connection is over: where nobody goes on with its streams, they end here. */
void mr_lane_give_up_handover(struct mr_lane *lane, struct mr_connection *connection);
/* What `source`, which is done, would have handed over goes to `again`. False: that cannot be. */
bool mr_lane_take_back(const struct mr_source *source, struct mr_source *again);
/* RESUME of a sender that moved here. */
void mr_lane_take_resume(struct mr_lane *lane, struct mr_connection *connection,
                         const struct mr_frame *frame);

/* lane_wanted.c */
/* Tells each sender what it has not been told of the requests for exemplars. */
void mr_lane_tell_wanted(struct mr_lane *lane);

/* lane_spool.c; without a spool nothing happens, and all is well. */
/* The senders of an earlier process, as far as there is room: their frames wait for them, or for the register. */
void mr_lane_adopt(struct mr_lane *lane);
/* Those for which there was none; said and counted, once. */
void mr_lane_count_left(struct mr_lane *lane);
/* It is one of them: begun anew now, it would take the place of what it has in the spool. */
bool mr_lane_is_left(const struct mr_lane *lane, struct mr_id id);
/* At the end: what they have stays in the spool. */
void mr_lane_free_left(struct mr_lane *lane);
/* Before a sender is told where it stands. False: it cannot be kept now. */
bool mr_lane_keep_sender(struct mr_lane *lane, struct mr_lane_sender *sender,
                         const struct mr_connection *connection, bool begins);
/* Its state has changed. What is not kept of that is decided again by who comes after us. */
void mr_lane_keep_state(struct mr_lane *lane, const struct mr_lane_sender *sender);
/* The spool has the end of its last source, or it has not ended: one that begins before would take its place there. */
bool mr_lane_has_kept_end(const struct mr_lane_sender *sender);
/* All that was taken of it is covered, and the end of its source is kept where it has ended: another epoch may begin. */
bool mr_lane_is_covered(const struct mr_lane_sender *sender);
/* Nothing of it is needed: forgets it. False: later. */
bool mr_lane_forgets(struct mr_lane *lane, struct mr_lane_sender *sender);
/* Whether the next frame that has come on a connection finds room. */
bool mr_lane_has_room(struct mr_lane *lane, const struct mr_connection *connection);
/* A frame as it came, before it is acknowledged. */
enum mr_status mr_lane_keep_frame(struct mr_lane *lane, struct mr_lane_sender *sender,
                                  const struct mr_frame *frame);
/* A DICT frame that goes into the graph. */
void mr_lane_keep_dict(struct mr_lane *lane, const struct mr_lane_sender *sender,
                       const struct mr_frame *frame);

/* lane_credit.c: of senders that settle; connection->credit is what is told next */
void mr_lane_credit_begin(const struct mr_lane *lane, struct mr_connection *connection);
/* Behind each ACK. */
void mr_lane_credit_acked(const struct mr_lane *lane, struct mr_connection *connection);
/* SETTLE of something came. */
void mr_lane_credit_settled(const struct mr_lane *lane, struct mr_connection *connection);
/* A slice of it went into the graph. */
void mr_lane_credit_used(const struct mr_lane *lane, struct mr_connection *connection);

/* lane_custody.c */
/* Goes on with what waits, or with all that is settled. What fails is the connection's error. */
enum mr_status mr_lane_push_settled(struct mr_lane *lane, struct mr_lane_sender *sender);
/* Answers the HELLO of a new connection, or lets it wait for the register, or refuses it. */
void mr_lane_greet(struct mr_lane *lane, struct mr_connection *connection);
/*
 * SETTLE came, perhaps: what the sender knows to be ours goes into the graph, a slice of it at a time. What fails is the
 * connection's error.
 */
enum mr_status mr_lane_settle(struct mr_lane *lane, struct mr_connection *connection);
/* More of it is to go there: nothing is read of the connection before. */
bool mr_lane_is_behind(const struct mr_connection *connection);
/* A question of a worker below. */
void mr_lane_pass_on(struct mr_lane *lane, struct mr_connection *connection,
                     const struct mr_frame *frame);
/* The sender's connection is about to be closed: what it holds stays with the sender. */
void mr_lane_lose(struct mr_lane *lane, struct mr_lane_sender *sender,
                  const struct mr_connection *connection);
/* It was cut off: what it holds is dropped and counted, as nobody could make sense of it. */
void mr_lane_give_up(struct mr_lane *lane, struct mr_lane_sender *sender);
/* Claims what is due. True while frames of the sender are in doubt. */
bool mr_lane_tend_doubt(struct mr_lane *lane, struct mr_lane_sender *sender);
/* The answers of the register that have come. */
void mr_lane_take_answers(struct mr_lane *lane);
/* Every frame that the sender sent on its last connection is settled, or it knows no custody. */
bool mr_lane_is_settled(const struct mr_lane_sender *sender);

#endif
