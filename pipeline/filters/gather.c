/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/filters/gather.h"

struct gather {
    struct mr_batch *first, **last;
};

static enum mr_status gather_open(struct mr_filter *filter, const void *config,
                                  struct mr_error *error)
{
    struct gather *gather = mr_filter_state(filter);

    (void)config;
    (void)error;
    gather->last = &gather->first;
    return MR_OK;
}

static enum mr_status gather_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct gather *gather = mr_filter_state(filter);

    if (batch->kind != MR_BATCH_MARK) {
        batch->next = NULL;
        *gather->last = batch;
        gather->last = &batch->next;
        return MR_OK;
    }
    if (!gather->first && batch->bytes.size == 0) {
        mr_batch_free(batch); /* of nothing */
        return MR_OK;
    }
    batch->unit = gather->first;
    gather->first = NULL;
    gather->last = &gather->first;
    return mr_filter_emit(filter, batch);
}

/* What came behind the last mark: numbers alone, which nothing covers. */
static enum mr_status gather_drain(struct mr_filter *filter)
{
    struct gather *gather = mr_filter_state(filter);
    enum mr_status status = MR_OK;

    while (status == MR_OK && gather->first) {
        struct mr_batch *batch = gather->first;

        gather->first = batch->next;
        status = mr_filter_emit(filter, batch);
    }
    return status;
}

static void gather_close(struct mr_filter *filter)
{
    struct gather *gather = mr_filter_state(filter);

    while (gather->first) {
        struct mr_batch *batch = gather->first;

        gather->first = batch->next;
        mr_batch_free(batch);
    }
}

static enum mr_status scatter_process(struct mr_filter *filter, struct mr_batch *batch)
{
    enum mr_status status = MR_OK;

    while (status == MR_OK && batch->unit) {
        struct mr_batch *first = batch->unit;

        batch->unit = first->next;
        status = mr_filter_emit(filter, first);
    }
    if (status == MR_OK)
        return mr_filter_emit(filter, batch);
    mr_batch_free(batch);
    return status;
}

const struct mr_filter_kind mr_gather_filter = {.name = "gather",
                                                .state_size = sizeof(struct gather),
                                                .open = gather_open,
                                                .process = gather_process,
                                                .drain = gather_drain,
                                                .close = gather_close};

const struct mr_filter_kind mr_scatter_filter = {
    .name = "scatter", .state_size = 1, .process = scatter_process};
