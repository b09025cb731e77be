/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The senders that a lane knows: those connected, those whose connection broke and who may return
 * within the grace time, and those that finished a moment ago (kept as long, so that frames they send
 * again because an acknowledgement was lost are known as duplicates). Bounded. The lane's thread only.
 *
 *     struct mr_lane_sender *sender = mr_senders_find(&senders, id);
 *     if (!sender)
 *         sender = mr_senders_add(&senders, id);       // NULL: full, or no memory
 */
#ifndef MR_WORKER_SENDERS_H
#define MR_WORKER_SENDERS_H

#include "base/buffer.h"
#include "base/id.h"
#include "net/custody.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_connection;
struct mr_source;
struct mr_spool_sender;

#define MR_SENDERS_BUCKETS                                                               \
    1024 /* chains: senders come and go, and base/table.h does not forget */

struct mr_lane_sender {
    struct mr_id id;
    struct mr_source *source;         /* owned by the lane; NULL once it ended */
    struct mr_connection *connection; /* NULL: away */
    uint64_t next_sequence;           /* every frame below it is taken; kept while away */
    uint64_t away_ns;                 /* since when there is no connection */
    /* Of one that knows custody (net/custody.h): */
    struct mr_custody custody;
    struct mr_connection *waiting; /* its HELLO waits for the register */
    struct mr_buffer held;  /* frames of connections that are gone, not settled yet */
    uint64_t held_sequence; /* of the oldest in it */
    bool has_asked;         /* the register, for the claim or for `waiting` */
    bool has_left;          /* it said BYE on its last connection, */
    uint8_t bye_reason;     /* for this */
    /* With a spool (worker/lane_spool.c): */
    struct mr_spool_sender *kept; /* NULL: none of its frames are */
    uint64_t
        begin_after; /* the epoch of `waiting` begins behind it, once all before is covered, */
    bool has_begin;    /* if this is set */
    bool is_recovered; /* an earlier process knew it: it may take its time to return */
    bool
        lacks_dictionary; /* asked to repeat it, until a frame behind the repetition is here */
    struct mr_lane_sender *next;   /* in its bucket */
    struct mr_lane_sender *behind; /* of all */
};

struct mr_senders {
    struct mr_lane_sender *buckets[MR_SENDERS_BUCKETS];
    struct mr_lane_sender *first; /* of all: a sweep does not look into empty buckets */
    uint32_t count, limit;
    uint64_t key; /* of the hash: mr_hash_key() */
};

void mr_senders_init(struct mr_senders *senders, uint32_t limit);
/* Frees the entries with the frames they hold, not what else they point to. */
void mr_senders_fini(struct mr_senders *senders);

struct mr_lane_sender *mr_senders_find(const struct mr_senders *senders, struct mr_id id);
/* A new entry, zeroed but for id and next_sequence = 1; NULL when full or without memory. */
struct mr_lane_sender *mr_senders_add(struct mr_senders *senders, struct mr_id id);

/*
 * Calls `visit` for each; where it says false, the entry is forgotten (what it points to has been
 * dealt with by then).
 */
void mr_senders_sweep(struct mr_senders *senders,
                      bool (*visit)(void *context, struct mr_lane_sender *sender),
                      void *context);

#endif
