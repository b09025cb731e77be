/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Condensing: the events of one call tree -> the calls that took longest, as many as there is room for, each with what was
 * left out in it (net/exemplar.h). Whatever is kept has all its callers kept, as they took longer or began earlier. Which calls
 * are kept depends on the tree alone, not on how its events were cut into batches:
 *
 *     longer before shorter, of equally long ones the one that was opened first; the first `limit` of that order
 *
 * so it works in bounded memory: twice the limit of closed calls, from which the shorter half goes when they are full, and
 * after that only calls which are longer than the shortest of those are looked at. Of calls deeper than
 * MR_CONDENSE_DEPTH_MAX only the number is kept.
 *
 *     mr_condense_init(&c, &budget, 512);
 *     mr_condense_later(&c, &piece);                 // OPEN of the root ..
 *     mr_condense_feed(&c, &piece);                  // .. its CLOSE, in any pieces; others are passed over
 *     if (c.is_given_up) ...                         // no memory, or past the budget
 *     count = mr_condense_finish(&c, calls);         // once the root is closed; sites are the lane's
 *     mr_condense_reset(&c);                         // for the next tree; keeps small memory
 *
 * What is fed later is only copied while it is little: most traces turn out not to be wanted, and a copy costs a tenth. How
 * much is little, MR_CONDENSE_LOG_MIN to _MAX events, goes by what became of the copies before: twice as much where one was
 * never looked at, half where a trace was longer. What outgrows its copy is looked at by a guess of how
 * long a call takes at least that stays (condense_log.c).
 *
 * Of calls that opened and ended in one piece it is known where they end. No call takes longer than what it is called by, so
 * where such a one is too short to be kept, all of it is passed over at once: what is looked at are the calls that are kept,
 * and those that they call themselves.
 *
 * Whoever follows the calls itself need not have them looked at a second time. Once as many calls are kept as may be, most that
 * end are too short: it notes the few others, and feeds these.
 *
 *     least_ns = mr_condense_least_ns(&c);           // UINT64_MAX: events must be fed; asked before each piece
 *     ended[n++] = (struct mr_condense_noted){...};  // each call that ends in the piece after least_ns or more
 *     mr_condense_feed_noted(&c, &noted);            // in the place of the piece
 *
 * Trees of forced roots inside it (an OPEN with MR_EVENT_ROOT) are passed over: they are traces of their own. One thread.
 */
#ifndef MR_PIPELINE_CONDENSE_H
#define MR_PIPELINE_CONDENSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/exemplar.h"
#include "pipeline/batch.h"

#define MR_CONDENSE_DEPTH_MAX 4096u
/* Events: 256 KiB, a quarter of a usual second-level cache, and 1 MiB. */
#define MR_CONDENSE_LOG_MIN 16384u
#define MR_CONDENSE_LOG_MAX 65536u

struct mr_condense_budget { /* of all that share it */
    size_t used, limit;     /* bytes */
    uint32_t log_most;      /* events that are only copied; 0: as at first, LOG_MIN */
    uint64_t
        guess_ns; /* of calls that stay in the next trace that outgrows its copy; 0: none */
};

/* Events of a stream, in order. */
struct mr_condense_piece {
    const struct mr_event *events;
    /*
     * Of each event: of how many calls the call is made that opens there, itself counted, if the next events are these calls and
     * nothing else; 0: not known.
     */
    const uint16_t *whole;
    uint32_t count;
};

/* A call of a piece that is open at its end, or has ended in it. */
#define MR_CONDENSE_BEFORE UINT32_MAX
struct mr_condense_noted {
    uint64_t child_ns; /* of the calls that it called itself, so far */
    uint32_t opened;   /* its event, or BEFORE the piece */
    uint32_t closed;   /* the same, of one that has ended */
    uint32_t depth;    /* calls of the tree around it */
};

/* What is to be known of a piece all of whose events open or close calls of the tree, in order and without flags. */
struct mr_condense_notes {
    const struct mr_event *events;
    uint32_t count;
    uint32_t ended_count, open_count;      /* open: at most MR_CONDENSE_NOTED_DEPTH */
    const struct mr_condense_noted *ended; /* that took least_ns, by their ends */
    const struct mr_condense_noted *open;  /* all, by depth */
};
#define MR_CONDENSE_NOTED_DEPTH 128u

struct mr_condense_open {
    uint64_t start_ns, child_ns;
    uint64_t number; /* in the order of opening: less its depth, calls closed before it */
    uint32_t site;
};

struct mr_condense_call {
    uint64_t start_ns, total_ns, child_ns;
    uint64_t number;
    uint64_t inside; /* calls below it */
    uint32_t site, depth, flags;
};

struct mr_condense_rank { /* what decides which calls stay */
    uint64_t total_ns, number;
};

struct mr_condense {
    struct mr_condense_budget *budget;
    struct mr_condense_open *open;
    struct mr_condense_call *kept;
    struct mr_condense_rank *ranks; /* scratch of twice the limit, once more are kept */
    /* Events that are still to be looked at; behind log_capacity of them `whole` of each. */
    struct mr_event *log;
    uint32_t log_count, log_capacity;
    uint32_t depth, open_capacity;
    uint32_t below; /* open calls past MR_CONDENSE_DEPTH_MAX */
    uint32_t apart; /* open calls of a tree that is not this one */
    uint32_t kept_count, kept_capacity, limit;
    uint64_t below_ns; /* when the first of `below` began */
    uint64_t last_ns;  /* of the events so far: times do not go back */
    uint64_t opened, closed;
    uint64_t shortest_ns, shortest_number; /* of the `limit` longest so far, if is_full */
    bool is_full, is_given_up;
    bool is_odd; /* child_ns may differ from what others sum up: a loss, another tree */
};

/* Allocates nothing yet. `limit` is 1 .. MR_EXEMPLAR_CALLS_MAX; the budget is borrowed. */
void mr_condense_init(struct mr_condense *condense, struct mr_condense_budget *budget,
                      uint32_t limit);
void mr_condense_fini(struct mr_condense *condense);
void mr_condense_reset(struct mr_condense *condense);
void mr_condense_feed(struct mr_condense *condense,
                      const struct mr_condense_piece *piece);
/* The same, but it may wait until the next mr_condense_feed(), which may be of no events. */
void mr_condense_later(struct mr_condense *condense,
                       const struct mr_condense_piece *piece);
/* How long a call takes at least that is to be noted, if the next piece may be noted; UINT64_MAX if it may not. */
uint64_t mr_condense_least_ns(const struct mr_condense *condense);
/* As mr_condense_feed() of the events, after a mr_condense_least_ns() that allowed it. */
void mr_condense_feed_noted(struct mr_condense *condense,
                            const struct mr_condense_notes *notes);
/* Into `calls`, which has room for `limit`; how many. The root is closed and nothing was given up. */
uint32_t mr_condense_finish(struct mr_condense *condense, struct mr_exemplar_call *calls);

#endif
