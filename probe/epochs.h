/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the table of modules changed: from each such moment on, a stream's events are of
 * the next epoch (docs/FORMAT.md section 5). Each ring has an epoch of its own, that of
 * its next word, so no ring is waited for and none need be empty.
 *
 *     if (mr_epochs_has_room(&epochs, oldest))          // of all rings
 *         mr_epochs_add(&epochs, ticks);
 *     frame.epochs = &epochs;
 *     mr_drain_ring(&frame, ring, ...);                 // probe/drain_epoch.c
 *
 * What changed and was not taken yet holds back the words after it: looked at when one has
 * them, so that none goes with the old epoch.
 *
 * After dlopen() words are held for as long as their site is in no module that is known,
 * so that what is loaded has names from its first event on, also where it has hooks and
 * so nothing that says it came. They wait for a look at the modules that began after they
 * were written (probe/changes.h), for HELD_NS at most, and not when the ring is half full.
 *
 * The writer's alone.
 */
#ifndef MR_PROBE_EPOCHS_H
#define MR_PROBE_EPOCHS_H

#include "base/atomics.h"
#include "net/wire.h"
#include "probe/changes.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_EPOCHS_KEPT 64

/* Of the window of libraries. */
#define MR_EPOCHS_PAGE_SHIFT 12
#define MR_EPOCHS_PAGES ((MR_SITE_LIMIT - MR_WINDOW_LIBRARIES) >> MR_EPOCHS_PAGE_SHIFT)

struct mr_epochs {
    uint32_t newest;                /* from 1 on */
    uint64_t ticks[MR_EPOCHS_KEPT]; /* when epoch % KEPT began */
    const struct mr_changes *changes;
    uint64_t opened_over_ns; /* no word is held for that dlopen() or an earlier one */
    bool is_held;            /* some words are, since this was last reset */
    bool is_look_wanted;     /* for such words */
    bool is_over;            /* the end of the program: nobody looks any more */
    uint32_t looks_done;     /* before `pages` was made */
    const struct mr_module_table *modules; /* for what lies outside the window */
    uint64_t pages[MR_EPOCHS_PAGES / 64];  /* 1: in a module */
};

static inline bool mr_epochs_has_room(const struct mr_epochs *epochs, uint32_t oldest)
{
    return epochs->newest - oldest < MR_EPOCHS_KEPT - 1;
}

static inline void mr_epochs_add(struct mr_epochs *epochs, uint64_t ticks)
{
    epochs->newest++;
    epochs->ticks[epochs->newest % MR_EPOCHS_KEPT] = ticks;
}

/* The epoch at that time, or the oldest that is kept. */
static inline uint32_t mr_epochs_at(const struct mr_epochs *epochs, uint64_t ticks)
{
    uint32_t epoch = epochs->newest;
    uint32_t oldest = epoch >= MR_EPOCHS_KEPT ? epoch - MR_EPOCHS_KEPT + 1 : 1;

    while (epoch > oldest && epochs->ticks[epoch % MR_EPOCHS_KEPT] > ticks)
        epoch--;
    return epoch;
}

/* `site` of the window of libraries. */
static inline bool mr_epochs_knows(const struct mr_epochs *epochs, uint32_t site)
{
    uint32_t page = (site - MR_WINDOW_LIBRARIES) >> MR_EPOCHS_PAGE_SHIFT;

    return epochs->pages[page / 64] >> page % 64 & 1;
}

static inline void mr_epochs_know(struct mr_epochs *epochs, uint32_t site)
{
    uint32_t page = (site - MR_WINDOW_LIBRARIES) >> MR_EPOCHS_PAGE_SHIFT;

    epochs->pages[page / 64] |= UINT64_C(1) << page % 64;
}

/*
 * Whether words may be of a module that is not known. To be asked when one has them: who
 * wrote them called dlopen() before, or knew from who did.
 */
static inline bool mr_epochs_is_checked(const struct mr_epochs *epochs)
{
    return !epochs->is_over &&
           mr_load_relaxed(&epochs->changes->opened_ns) != epochs->opened_over_ns;
}

/* Those of these modules alone are known; borrows them. */
void mr_epochs_learn(struct mr_epochs *epochs, const struct mr_module_table *modules);

#endif
