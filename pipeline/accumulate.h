/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An accumulator merges DELTA payloads (docs/FORMAT.md section 8) into one state and
 * writes that state as payloads again. Merging is exact: the state is the same for every
 * order and grouping of the inputs, and so is, byte for byte, what is written.
 *
 *     key                        what is kept            merged by
 *     (path, window)             path stats              sums, min, max, histogram
 *     (shape, window)            shape stats             the same; first, last seen
 *     (entry point, window)      entry stats             sums
 *     (source, stream)           ledger                  last: max; reduced, held, lost: sums
 *     path                       open traces             counts: sum, oldest: min (a gauge: pipeline/open_traces.h)
 *     name                       counters                sums
 *     (path, counter, window)    counter stats           sums, min, max
 *     (joined shape, window)     joined stats            as shape stats
 *     (joined shape, place, window)  edge stats          sums, min, max, histogram
 *     part                       the part                one of the same id is the same
 *     (shape, path)              shape path stats        sums, min, max
 *     (shape, reason)            exemplar                the one that comes first (net/exemplar.h)
 *     (request, trace)           answer                  the first of each request, as many as it asks for
 *
 * Paths, shapes, sources are known by their 128-bit ids (FORMAT.md section 7) and kept
 * only while a row names them. All is bounded by the limits; a payload that does not fit
 * makes mr_accumulator_merge() say MR_AGAIN, so that the caller writes, resets and goes
 * on: nothing is lost at a limit unless one item alone passes it, which is counted.
 *
 *     mr_accumulator_open(acc, payload);
 *     while ((status = mr_accumulator_merge(acc, &error)) == MR_AGAIN) {
 *         send_all(acc);                                 // the loop below, then
 *         mr_accumulator_reset(acc);
 *     }
 *     mr_accumulator_write_begin(acc);
 *     while (mr_accumulator_write(acc, level, created_ns, &buffer) == MR_OK)
 *         send(&buffer);                                 // a payload of about part_bytes, which decodes alone
 *     mr_accumulator_reset(acc);                         // or not, for a cumulative state
 *
 * One thread at a time. Owns its memory; payloads are borrowed between open and the MR_OK
 * or error of merge.
 */
#ifndef MR_PIPELINE_ACCUMULATE_H
#define MR_PIPELINE_ACCUMULATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/span.h"
#include "base/status.h"

struct mr_accumulator_limits {
    uint32_t rows_max;  /* of each of: path, shape, entry, ledger rows; 0: the default */
    uint32_t paths_max; /* and sites, shapes, sources, scopes */
    uint32_t windows_max; /* labels open at once */
    uint32_t part_bytes;  /* a payload is ended when it has got this big */
};
#define MR_ACCUMULATOR_ROWS_MAX (1u << 20)
#define MR_ACCUMULATOR_PATHS_MAX (1u << 20)
#define MR_ACCUMULATOR_WINDOWS_MAX 64u /* DESIGN section 6 */
#define MR_ACCUMULATOR_PART_BYTES (1u << 20)
#define MR_ACCUMULATOR_DEPTH_MAX                                                         \
    65536u /* of a path; such a chain takes 2 MiB of a payload */
#define MR_ACCUMULATOR_COUNTERS_MAX 1024u
#define MR_ACCUMULATOR_PART_BYTES_MAX (64u << 20) /* of parts */
#define MR_ACCUMULATOR_NODES_MAX (1u << 20)       /* of joined shapes */
#define MR_ACCUMULATOR_EXEMPLARS_MAX 4096u
#define MR_ACCUMULATOR_EXEMPLAR_BYTES_MAX ((size_t)64 << 20) /* of their calls */

struct mr_accumulator_stats {
    uint64_t payloads, items;      /* merged */
    uint64_t over_limit;           /* items that alone pass a limit: left out */
    uint64_t unknown;              /* items of unknown tags: left out */
    uint64_t unwritten;            /* rows that no payload could hold: left out */
    uint32_t rows, paths, windows; /* held now */
};

struct mr_accumulator;

/* NULL limits: the defaults. MR_ENOMEM. */
enum mr_status mr_accumulator_new(const struct mr_accumulator_limits *limits,
                                  struct mr_accumulator **accumulator);
void mr_accumulator_free(struct mr_accumulator *accumulator); /* NULL allowed */

/* Begins a payload; what was left of one before it is forgotten. */
void mr_accumulator_open(struct mr_accumulator *accumulator, struct mr_span payload);
/* Which of its rows are merged; all where nothing is said. Open traces: pipeline/open_traces.h. */
enum mr_accumulator_choice {
    MR_ACCUMULATE_ALL,
    MR_ACCUMULATE_OPEN,
    MR_ACCUMULATE_NOT_OPEN
};
void mr_accumulator_choose(struct mr_accumulator *accumulator,
                           enum mr_accumulator_choice choice);
/*
 * MR_OK: all of the payload is merged. MR_AGAIN: full; write, reset, call again.
 * MR_EFORMAT: broken from some item on, the reason in `error`; the items before it count.
 * MR_ENOMEM: as MR_EFORMAT.
 */
enum mr_status mr_accumulator_merge(struct mr_accumulator *accumulator,
                                    struct mr_error *error);

/* Whether there is nothing to write. */
bool mr_accumulator_is_empty(const struct mr_accumulator *accumulator);
/* Begins to write the state; no merge until the last part is written. MR_ENOMEM. */
enum mr_status mr_accumulator_write_begin(struct mr_accumulator *accumulator);
/*
 * Appends the next payload to `out`, which is empty and should have a limit of part_bytes
 * + 4 MiB or more. MR_OK; MR_END when everything is written (nothing is appended);
 * MR_ENOMEM.
 */
enum mr_status mr_accumulator_write(struct mr_accumulator *accumulator, uint32_t level,
                                    uint64_t created_ns, struct mr_buffer *out);

/* Forgets the state, keeps memory for the next one. An open payload goes on. */
void mr_accumulator_reset(struct mr_accumulator *accumulator);
/* Gives the memory back that reset keeps. The state is empty and no payload is open. */
void mr_accumulator_release(struct mr_accumulator *accumulator);
void mr_accumulator_stats(const struct mr_accumulator *accumulator,
                          struct mr_accumulator_stats *stats);

#endif
