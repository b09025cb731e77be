/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a flight recorder (probe/recorder_format.h) from outside, while its process
 * records, hangs or is dead; nothing is asked of the process, and nothing is trusted.
 *
 *     status = mr_recorder_view_open(&view, memory, size, &error);
 *     for (i = 0; i < mr_recorder_view_rings(&view); i++) {
 *         status = mr_recorder_copy_ring(&view, i, &copy);   // MR_AGAIN: try again
 *         while ((size = mr_recorder_chunk(&copy, out, capacity)) > 0)
 *             send(out, size);                               // FORMAT.md section 6
 *         mr_recorder_copy_fini(&copy);
 *     }
 *
 * What is read of a ring that is being written is what stood in it at one moment: of all
 * words that were overwritten meanwhile, none is handed on. See recorder_read.c.
 *
 * One thread for a view; it borrows the memory. Allocates only in mr_recorder_copy_ring().
 */
#ifndef MR_PROBE_RECORDER_READ_H
#define MR_PROBE_RECORDER_READ_H

#include "base/error.h"
#include "net/control.h"
#include "probe/recorder_format.h"

#include <stdbool.h>
#include <stddef.h>

#define MR_RECORDER_CHUNK_MIN 4096 /* least room for mr_recorder_chunk() */

struct mr_recorder_view {
    uint8_t *base;
    uint64_t size;
    struct mr_recorder_header *header;
    /* Checked: tables lie inside. */
    uint64_t modules_offset, named_offset, rings_offset;
    uint32_t module_count, named_max, ring_count;
};

struct mr_recorder_mark {
    uint64_t index, event, ticks, epoch;
};

/* A ring as it was, and the place of the next chunk. */
struct mr_recorder_copy {
    uint32_t stream, tid, start_site;
    uint64_t start_ticks;
    char name[MR_RECORDER_NAME_SIZE];
    bool is_ended;                          /* the thread came to its end */
    uint64_t streams_before, events_before; /* of earlier threads, overwritten */
    uint64_t overwritten;                   /* events of this one */
    uint64_t torn;                          /* words that were taken and not written */
    uint64_t events;                        /* of this one so far, lost ones too */
    uint64_t end_event;                     /* of an ended one: all its events */
    uint64_t first, end;                    /* indexes of words[] */
    uint64_t *words;                        /* without lap; 0: torn; owned */
    uint32_t mark_count, next_mark;
    struct mr_recorder_mark marks[MR_RECORDER_ANCHORS];
    uint32_t cut_count, next_cut, cut_number; /* the number of the first */
    uint64_t cuts[MR_CUTS_KEPT];              /* ticks */
    /* The place. */
    bool has_begun, has_finished;
    uint64_t at, event, lost, ticks, epoch;
};

/* MR_EFORMAT: not a recorder, of another version, or not whole. */
enum mr_status mr_recorder_view_open(struct mr_recorder_view *view, const void *memory,
                                     uint64_t size, struct mr_error *error);
uint32_t mr_recorder_view_rings(const struct mr_recorder_view *view);
/* Copies an element; false when there is none, or it is just being written. */
bool mr_recorder_view_module(const struct mr_recorder_view *view, uint32_t index,
                             struct mr_recorder_module *out);
bool mr_recorder_view_named(const struct mr_recorder_view *view, uint32_t index,
                            struct mr_named_entry *out);
/* Events lost before they had a stream. */
uint64_t mr_recorder_view_lost(const struct mr_recorder_view *view, uint32_t reason);
/* The depth limit, 0: none; *skipped: calls below it, as of some 100 ms before. */
uint32_t mr_recorder_view_depth(const struct mr_recorder_view *view, uint64_t *skipped);
/* Who it was, but for policy and clock. `info` points into the view and into `texts`. */
struct mr_recorder_texts {
    struct mr_recorder_header header;
};
void mr_recorder_view_source(const struct mr_recorder_view *view,
                             struct mr_recorder_texts *texts,
                             struct mr_source_info *info);
/*
 * What a tick is worth. Of a process that died in its first 100 ms it is measured here,
 * which takes 10 ms and is right on the same machine.
 */
void mr_recorder_view_clock(const struct mr_recorder_view *view,
                            struct mr_clock_info *clock);

/*
 * MR_OK; MR_ENOTFOUND: no thread had it, or none with an event; MR_AGAIN: it was
 * overwritten, or changed hands, while it was read; MR_EFORMAT; MR_ENOMEM. But for MR_OK
 * there is nothing to be freed.
 */
enum mr_status mr_recorder_copy_ring(const struct mr_recorder_view *view, uint32_t number,
                                     struct mr_recorder_copy *copy);
void mr_recorder_copy_fini(struct mr_recorder_copy *copy);
/*
 * The next chunk, its header included; 0 after the last. The first tells what was
 * overwritten; the last is flagged as the stream's, or the source's, end.
 */
size_t mr_recorder_chunk(struct mr_recorder_copy *copy, uint8_t *out, size_t capacity);

#endif
