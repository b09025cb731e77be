/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is open now, by entry point, the oldest trace first: as the newest delta of each sender told it. Between
 * mr_model_read_lock() and unlock, any thread.
 *
 * Use:
 *     struct mr_open_row *rows = mr_open_rows_new(root, mr_clock_realtime_ns(), &count);
 *     ... rows[i].stack ...
 *     free(rows);
 */
#ifndef MR_MASTER_OPEN_ROWS_H
#define MR_MASTER_OPEN_ROWS_H

#include "master/model.h"

struct mr_open_row {
    uint32_t path,
        stack; /* of the entry point; of the oldest's innermost call, MR_MODEL_NONE */
    uint64_t told_ns; /* when the oldest was: Unix, by its worker */
    struct mr_open_stats stats;
};

/* The caller frees them. NULL without memory. */
struct mr_open_row *mr_open_rows_new(const struct mr_model_root *root, uint64_t now_ns,
                                     size_t *count);

#endif
