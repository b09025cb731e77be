/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nesting, checked by who follows the calls anyway. reconstruct and reduce both keep the open calls of a stream. Where they run on
 * one thread, one behind the other, reconstruct gives events on as decode made them, and reduce checks, by one comparison
 * that it needs in any case, that each is an enter or an exit in order, or what reconstruct would give on (a message, a capture):
 *
 *     reconstruct                                              reduce
 *     batch->nesting = how the stream's calls nest; emit  ->   takes the batch's events, which are well nested, then
 *                                                              those of `nesting`, up to the first one that is anything else
 *     takes that one itself, and goes on                  <-   `left` = batch, `calls` and `depth` as they are now
 *
 * It decides nothing: what is in order for one is for the other, and comes to the same. Calls that decode made have no flags; those
 * that were taken have the flags of roots and outer frames.
 *
 * One thread. All is reconstruct's, and borrowed until the batch is back. A batch that does not come back (reduce has failed, the
 * runner freed it) is not touched again: its graph ends.
 */
#ifndef MR_PIPELINE_NESTING_H
#define MR_PIPELINE_NESTING_H

#include <stdbool.h>
#include <stdint.h>

struct mr_batch;
struct mr_event;
struct mr_reconstruct;
struct mr_reconstruct_config;
struct mr_reconstruct_stream;
struct mr_reconstruct_watch;

/* An open call of reconstruct: site in the low half, enum mr_event_flag in the high one. */
#define MR_CALL(site, flags) ((uint64_t)(flags) << 32 | (site))

struct mr_nesting {
    struct mr_event *events; /* of the batch, behind those that are well nested */
    uint32_t count;
    const struct mr_reconstruct_config *config;
    struct mr_reconstruct_watch
        *watch;           /* is told of calls that end (reconstruct_watch.h) */
    uint64_t *calls;      /* open ones, outermost first */
    uint32_t depth, room; /* how many there are, and may be */
    uint32_t outer_depth; /* how many of them are outer frames, below the call trees */
    bool
        has_base; /* call trees and outer frames may begin and end; else that is given back */
    bool
        is_unsure; /* what the outer frames are; then links are given back, to be flagged */
    /* What a call of `site` is that opens on the outer frames: MR_EVENT_ROOT, which is then noted, OUTER, or 0: to be given back. */
    uint16_t (*open_base)(const struct mr_nesting *nesting, uint32_t site, uint64_t ns);
    struct mr_reconstruct *rebuild; /* for open_base() */
    struct mr_reconstruct_stream *stream;
    /* Of reduce. */
    struct mr_batch *left; /* the batch, always given back; NULL: it never came there */
    uint32_t taken;        /* of the events */
    bool
        has_child_ended; /* with the last of them, and mr_reconstruct_child_ended() has to see it */
};

#endif
