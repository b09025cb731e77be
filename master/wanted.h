/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The master's book of requests for exemplars (net/wanted.h): who asked for what, how many came, and what is to be told to
 * senders. A request is open until as many traces came as it asks for, or its time is over; ended ones stay in the book for
 * a while, so that who asked sees what came.
 *
 *     mr_wanted_book_init(&book);
 *     mr_wanted_book_add(&book, &request, now_ns);                  // HTTP's thread; MR_ELIMIT: too many are open
 *     mr_wanted_book_came(&book, id, &exemplar);                    // ingest's thread, from the model
 *     mr_wanted_book_tick(&book, now_ns);                           // the same: what is over ends
 *     if (mr_wanted_board_revision(&book.board) != told) ...        // the same: senders are told
 *
 * Any thread; a lock, held for moments. In memory alone: a master that starts again has forgotten the requests, and the first
 * list that it tells, which is empty, ends them below. The traces that came are exemplars, and are kept in the store as others.
 * Limits: MR_WANTED_MAX open ones, MR_WANTED_BOOK_MAX in all.
 */
#ifndef MR_MASTER_WANTED_H
#define MR_MASTER_WANTED_H

#include "net/exemplar.h"
#include "pipeline/wanted.h"

#define MR_WANTED_BOOK_MAX                                                               \
    128u /* open and ended: the oldest ended one gives its place up */

enum mr_wanted_state {
    MR_WANTED_OPEN,
    MR_WANTED_DONE,   /* all came */
    MR_WANTED_EXPIRED /* its time was over before */
};
const char *mr_wanted_state_name(enum mr_wanted_state state);

struct mr_wanted_request {
    struct mr_wanted wanted;       /* left_ms: of all its time, as it was asked for */
    struct mr_id path, shape;      /* as they were named; zero: not */
    uint64_t created_ns, ended_ns; /* Unix; ended 0: open */
    uint64_t until_ns;             /* CLOCK_MONOTONIC */
    enum mr_wanted_state state;
    uint64_t beyond; /* traces that came past its count */
    uint32_t came;
    struct mr_exemplar
        got[MR_WANTED_COUNT_MAX]; /* the first `came` in their order; without calls */
};

struct mr_wanted_book {
    pthread_mutex_t lock; /* of all but the board, which has its own */
    uint32_t count, open;
    struct mr_wanted_request requests[MR_WANTED_BOOK_MAX]; /* oldest first */
    uint64_t strangers;           /* answers to requests that are not in the book */
    struct mr_wanted_list list;   /* scratch */
    struct mr_wanted_board board; /* what senders are told */
};

void mr_wanted_book_init(struct mr_wanted_book *book);
void mr_wanted_book_fini(struct mr_wanted_book *book);
/* Adds a copy of an open request, of which `wanted`, `path` and `shape` are set. MR_ELIMIT: MR_WANTED_MAX are open. */
enum mr_status mr_wanted_book_add(struct mr_wanted_book *book,
                                  const struct mr_wanted_request *request,
                                  uint64_t now_ns);
/* Takes it out, whatever its state. False: there is none of that id. */
bool mr_wanted_book_remove(struct mr_wanted_book *book, struct mr_id id, uint64_t now_ns);
/*
 * A trace came for a request. One that is there already, or comes behind those that are enough, changes nothing. Whether it is
 * to be kept: it is one of the answers now, or nobody knows of what. `gone`: the one that is none any more, to no request,
 * as it came before; without calls, zero: none.
 */
bool mr_wanted_book_came(struct mr_wanted_book *book, struct mr_id id,
                         const struct mr_exemplar *exemplar, struct mr_exemplar *gone);
/* Ends what is over. `now_ns`: CLOCK_MONOTONIC. */
void mr_wanted_book_tick(struct mr_wanted_book *book, uint64_t now_ns);
/* A copy of request `index`, the newest first; false: there are fewer. Ones that begin meanwhile may hide or repeat one. */
bool mr_wanted_book_at(struct mr_wanted_book *book, uint32_t index,
                       struct mr_wanted_request *request);

#endif
