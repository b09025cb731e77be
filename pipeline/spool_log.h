/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of a spool (pipeline/spool.h) that are not covered yet, as they came: files of records, one behind the other.
 *
 *     file:    "MRSPOOL1", generation u64
 *     record:  generation u64, size u32 of the frame, 0 u32, sender 16 bytes, epoch u64, hash u64 of what is before; the frame
 *
 * A file is written from its start again, in a new generation, when none of its frames is needed: what is behind the last record
 * of its generation is old. A log is of one lane; it writes with pwritev(), so that its pages are no part of the process.
 *
 *     if (mr_spool_log_reserve(log, size) != MR_OK) ...      // no room: stop reading
 *     status = mr_spool_log_append(log, sender, epoch, frame);
 *     mr_spool_log_tidy(log);                                // now and then
 *
 * One thread.
 */
#ifndef MR_PIPELINE_SPOOL_LOG_H
#define MR_PIPELINE_SPOOL_LOG_H

#include "pipeline/spool.h"

struct mr_spool_log;

/* NULL: no memory. Closed with the spool. */
struct mr_spool_log *mr_spool_log_new(struct mr_spool *spool);
/* Room for a frame of so many bytes, header included, on the disk: MR_OK, or MR_ELIMIT: the spool is full, or the disk. */
enum mr_status mr_spool_log_reserve(struct mr_spool_log *log, size_t size);
/* After reserve() of as much. MR_EIO, MR_ENOMEM: the frame is not kept. */
enum mr_status mr_spool_log_append(struct mr_spool_log *log,
                                   struct mr_spool_sender *sender, uint64_t epoch,
                                   uint64_t sequence, struct mr_span frame);
/* For every 10 ms or so. Gives back files that were not needed for a second of it; meanwhile they are written over. */
void mr_spool_log_tidy(struct mr_spool_log *log);

#endif
