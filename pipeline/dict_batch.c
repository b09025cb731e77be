/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/dict_batch.h"

static enum mr_status begin(struct mr_dict_batch *dict, size_t size)
{
    uint8_t *at;
    enum mr_status status;

    dict->batch = mr_batch_new(MR_BATCH_DICT);
    if (!dict->batch)
        return MR_ENOMEM;
    status = mr_buffer_reserve(&dict->batch->bytes, size, &at);
    if (status != MR_OK) {
        mr_dict_batch_fini(dict);
        return status;
    }
    mr_dict_writer_init(&dict->writer, at, size);
    return MR_OK;
}

enum mr_status mr_dict_batch_put(struct mr_dict_batch *dict, struct mr_filter *filter,
                                 const struct mr_dict_item *item)
{
    size_t size = MR_DICT_BATCH_BYTES;

    for (;;) {
        enum mr_status status = dict->batch ? MR_OK : begin(dict, size);

        if (status != MR_OK)
            return status;
        if (mr_dict_put(&dict->writer, item) == MR_OK)
            return size > MR_DICT_BATCH_BYTES
                       ? mr_dict_batch_emit(
                             dict, filter) /* alone: a frame may have no room for more */
                       : MR_OK;
        if (dict->writer.count == 0)
            size *= 2; /* one that does not fit alone */
        status = mr_dict_batch_emit(dict, filter);
        if (size > MR_DICT_ITEM_BYTES_MAX)
            return MR_ELIMIT;
        if (status != MR_OK)
            return status;
    }
}

enum mr_status mr_dict_batch_emit(struct mr_dict_batch *dict, struct mr_filter *filter)
{
    struct mr_batch *batch = dict->batch;
    size_t size;

    if (!batch)
        return MR_OK;
    size = mr_dict_writer_finish(&dict->writer);
    if (size == 0) {
        mr_dict_batch_fini(dict);
        return MR_OK;
    }
    mr_buffer_commit(&batch->bytes, size);
    dict->batch = NULL;
    return mr_filter_emit(filter, batch);
}

void mr_dict_batch_fini(struct mr_dict_batch *dict)
{
    mr_batch_free(dict->batch);
    dict->batch = NULL;
}
