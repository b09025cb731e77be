/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joined traces, summed up by shape and window until they are told as rows of DELTA payloads (docs/FORMAT.md section 8, items 20
 * to 22): a service makes thousands of traces a second of a few shapes.
 *
 *     status = mr_joined_rows_add(&rows, &joined, window_s);      // MR_ELIMIT: tell what there is, then again
 *     for (uint32_t i = 0; i < rows.count; i++)
 *         mr_joined_rows_write(&rows, i, &writer);                // each whole: its definition, too
 *     mr_joined_rows_clear(&rows);
 *
 * What comes out of merging the rows is what one row for each trace would have come to. One thread.
 */
#ifndef MR_PIPELINE_JOINED_ROWS_H
#define MR_PIPELINE_JOINED_ROWS_H

#include "net/delta.h"
#include "pipeline/joiner.h"

#define MR_JOINED_ROWS_MAX 1024u
#define MR_JOINED_PLACES_MAX                                                             \
    8192u /* of all rows: 1.5 KiB each at most, mostly 0.3, with a histogram */

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

struct mr_joined_row {
    struct mr_id id;
    uint64_t window;
    struct mr_joined_node *nodes;
    struct mr_edge_stats *edges; /* of each node; count 0: none */
    uint32_t node_count, capacity;
    struct mr_joined_stats stats;
};

struct mr_joined_rows {
    struct mr_joined_row rows[MR_JOINED_ROWS_MAX]; /* `count` of them */
    uint32_t count, places;
    uint16_t slots[2 * MR_JOINED_ROWS_MAX]; /* by id and window: place + 1; 0: none */
};

void mr_joined_rows_init(struct mr_joined_rows *rows);
void mr_joined_rows_fini(struct mr_joined_rows *rows);
/* MR_ELIMIT, with nothing changed: there are as many as may be. MR_ENOMEM. Memory: of twice MR_JOINED_PLACES_MAX at most. */
enum mr_status mr_joined_rows_add(struct mr_joined_rows *rows,
                                  const struct mr_joined *joined, uint32_t window_s);
/* Row `number`: its definition, a stat row, an edge row for each place. The writer tells of failure. */
void mr_joined_rows_write(const struct mr_joined_rows *rows, uint32_t number,
                          struct mr_delta_writer *writer);
void mr_joined_rows_clear(struct mr_joined_rows *rows);

#endif
