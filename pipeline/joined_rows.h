/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joined traces as rows of a DELTA payload (docs/FORMAT.md section 8, items 20 to 22). The
 * definition of a shape stands once in a payload, as long as the shapes that come between
 * are not too many.
 *
 *     mr_joined_rows_begin(&rows);                     // at the begin of each payload
 *     status = mr_joined_rows_put(&rows, &writer, &joined, window_s);
 */
#ifndef MR_PIPELINE_JOINED_ROWS_H
#define MR_PIPELINE_JOINED_ROWS_H

#include "net/delta.h"
#include "pipeline/joiner.h"

#define MR_JOINED_ROWS_KNOWN 64u

/* What one trace adds to its joined shape: of each place, all its edges. */
struct mr_joined_sums {
    struct mr_joined_stats stats;
    struct mr_edge_stats edges[MR_JOINED_NODES_MAX]; /* count 0: none */
};

void mr_joined_sums_init(struct mr_joined_sums *sums);
void mr_joined_sums_fini(struct mr_joined_sums *sums);
/* MR_ENOMEM. */
enum mr_status mr_joined_sums_set(struct mr_joined_sums *sums,
                                  const struct mr_joined *joined);

struct mr_joined_rows {
    struct {
        struct mr_id id;
        uint32_t index; /* in the payload */
    } known[MR_JOINED_ROWS_KNOWN];
    struct mr_joined_sums sums; /* scratch */
};

void mr_joined_rows_init(struct mr_joined_rows *rows);
void mr_joined_rows_fini(struct mr_joined_rows *rows);
void mr_joined_rows_begin(struct mr_joined_rows *rows);
/* One trace: its definition where needed, a stat row, an edge row for each place. */
enum mr_status mr_joined_rows_put(struct mr_joined_rows *rows,
                                  struct mr_delta_writer *writer,
                                  const struct mr_joined *joined, uint32_t window_s);

#endif
