/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes DICT items into batches and emits each when it is full. Owns the batch that is being filled. One thread.
 *
 *     struct mr_dict_batch dict = {0};
 *     status = mr_dict_batch_put(&dict, filter, &item);     // emits full batches
 *     status = mr_dict_batch_emit(&dict, filter);           // the rest
 *     mr_dict_batch_fini(&dict);                            // in close(): drops what was not emitted
 */
#ifndef MR_PIPELINE_DICT_BATCH_H
#define MR_PIPELINE_DICT_BATCH_H

#include "base/status.h"
#include "net/control.h"
#include "pipeline/filter.h"

#define MR_DICT_BATCH_BYTES (64u << 10)
#define MR_DICT_ITEM_BYTES_MAX (2u << 20) /* fits a frame of the default size */

struct mr_dict_batch {
    struct mr_batch *batch;
    struct mr_dict_writer writer;
};

/* MR_ENOMEM, MR_ELIMIT for an item larger than MR_DICT_ITEM_BYTES_MAX, or what emitting returns. */
enum mr_status mr_dict_batch_put(struct mr_dict_batch *dict, struct mr_filter *filter,
                                 const struct mr_dict_item *item);
enum mr_status mr_dict_batch_emit(struct mr_dict_batch *dict, struct mr_filter *filter);
void mr_dict_batch_fini(struct mr_dict_batch *dict);

#endif
