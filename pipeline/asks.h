/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the register at the master (net/custody.h), on their way up, and its answers, on their way back. Lanes put
 * questions, of their own or passed on for a worker below; forward sends them to the next level, again at each new
 * connection until they are answered; lanes take what was answered. Any thread; a lock, held for moments: what asks is a
 * connection that broke, no hot path. Bounded: MR_ASKS_MAX under way, of one worker below MR_ASKS_OF_ONE_MAX; on the wire
 * MR_ASKS_SENT_MAX, so that no worker is refused above for what it asks at once.
 *
 *     mr_asks_init(&asks, wake, context);
 *     if (mr_asks_put(&asks, &ask) == MR_ELIMIT) ...        // lane: ask again later
 *     while (mr_asks_next(&asks, &ask) && mr_sender_ask(...)) mr_asks_mark_sent(&asks, &ask);    // forward
 *     mr_asks_answer(&asks, &answer);                       // forward; wakes each lane that asked
 *     while (mr_asks_take(&asks, lane, &answered)) ...      // lane
 */
#ifndef MR_PIPELINE_ASKS_H
#define MR_PIPELINE_ASKS_H

#include "base/status.h"
#include "net/frame.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define MR_ASKS_MAX 1024u
#define MR_ASKS_OF_ONE_MAX                                                               \
    256u /* so that one that asks without end leaves room for others */
#define MR_ASKS_SENT_MAX 64u

struct mr_ask {
    struct mr_custody_ask body; /* once answered, body.position is the register's */
    struct mr_id
        asker; /* the worker below for which it is passed on; zero: the lane's own */
    uint32_t lane;
};

struct mr_asks {
    pthread_mutex_t lock; /* of all below */
    void (*wake)(void *context, uint32_t lane);
    void *context;
    uint32_t count;
    struct mr_asks_entry {
        struct mr_ask ask;
        enum { MR_ASK_WAITS, MR_ASK_SENT, MR_ASK_ANSWERED } state;
    } entries[MR_ASKS_MAX];
};

/* `wake` is called in mr_asks_answer() and must not wait; may be NULL. */
void mr_asks_init(struct mr_asks *asks, void (*wake)(void *context, uint32_t lane),
                  void *context);
void mr_asks_fini(struct mr_asks *asks);
/* From its return on nobody is woken: the lanes end. */
void mr_asks_mute(struct mr_asks *asks);
/* MR_ELIMIT: too many are under way, in all or of its asker. The same question of the same asker twice is one. */
enum mr_status mr_asks_put(struct mr_asks *asks, const struct mr_ask *ask);
/* What this asker has asked and was not sent yet: it is cut off, and asks again at its next connection. */
void mr_asks_forget(struct mr_asks *asks, struct mr_id asker);
/* A question that was not sent on this connection; false: none, or as many as may be wait for their answer. */
bool mr_asks_next(struct mr_asks *asks, struct mr_custody_ask *body);
void mr_asks_mark_sent(struct mr_asks *asks, const struct mr_custody_ask *body);
/* A new connection: all that is not answered waits to be sent again. */
void mr_asks_mark_unsent(struct mr_asks *asks);
/* Of every asker of this subject and epoch. */
void mr_asks_answer(struct mr_asks *asks, const struct mr_custody_ask *answer);
/* An answer for a lane, which it owns from now on; false: none. */
bool mr_asks_take(struct mr_asks *asks, uint32_t lane, struct mr_ask *answered);

#endif
