/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests for exemplars that a process knows (net/wanted.h), between its threads: forward, or the master's API, puts
 * the list that holds from now on; reduce looks for what answers it, lanes and ingest tell it to senders. Each of those
 * compares the revision with the one that it has, which costs a load, and takes the list when it is another.
 *
 *     mr_wanted_board_init(&board);
 *     mr_wanted_board_put(&board, &list, now_ns);                     // the API; forward: ..._ask_again()
 *     if (mr_wanted_board_revision(&board) != mine)                   // reduce, lanes
 *         mine = mr_wanted_board_take(&board, now_ns, &list);
 *
 * Any thread; a lock, held for a copy of the list. `now_ns` is CLOCK_MONOTONIC: requests end by it, even when nobody
 * above is there to say so.
 */
#ifndef MR_PIPELINE_WANTED_H
#define MR_PIPELINE_WANTED_H

#include "base/atomics.h"
#include "net/wanted.h"

#include <pthread.h>

struct mr_wanted_board {
    _Atomic uint32_t revision; /* of the list; 0: nobody has told one yet */
    pthread_mutex_t lock;      /* of all below */
    struct mr_wanted_list list;
    uint64_t until_ns[MR_WANTED_MAX]; /* of each */
};

void mr_wanted_board_init(struct mr_wanted_board *board);
void mr_wanted_board_fini(struct mr_wanted_board *board);
/* The list is copied. It gets a new revision if it asks for anything else than the one before. */
void mr_wanted_board_put(struct mr_wanted_board *board, const struct mr_wanted_list *list,
                         uint64_t now_ns);
/*
 * The same of a list that was told from above, which is news whatever it asks for: it comes again over a new connection, here or
 * further up, and what had been sent to answer it may have been lost with a receiver.
 */
void mr_wanted_board_ask_again(struct mr_wanted_board *board,
                               const struct mr_wanted_list *list, uint64_t now_ns);
/* What has time left of the list, with it; the revision that it is of. */
uint32_t mr_wanted_board_take(struct mr_wanted_board *board, uint64_t now_ns,
                              struct mr_wanted_list *list);
static inline uint32_t mr_wanted_board_revision(const struct mr_wanted_board *board)
{
    return mr_load_relaxed(&board->revision); /* the list is read under the lock */
}

#endif
