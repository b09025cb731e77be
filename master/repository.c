/* SPDX-License-Identifier: Apache-2.0 */
#include "master/repository.h"

#include "base/assert.h"

enum { COUNTER_DELTAS, COUNTER_DICTS, COUNTER_REFUSED };

static enum mr_status open(struct mr_filter *filter, const void *config,
                           struct mr_error *error)
{
    struct mr_repository **state = mr_filter_state(filter);

    (void)error;
    MR_ASSERT(config);
    *state = (struct mr_repository *)(uintptr_t)config;
    mr_filter_name_counter(filter, COUNTER_DELTAS, "deltas");
    mr_filter_name_counter(filter, COUNTER_DICTS, "dicts");
    mr_filter_name_counter(filter, COUNTER_REFUSED, "refused");
    return MR_OK;
}

static enum mr_status apply(struct mr_filter *filter, struct mr_repository *repository,
                            const struct mr_batch *batch)
{
    struct mr_span payload = mr_buffer_span(&batch->bytes);
    bool is_delta = batch->kind == MR_BATCH_DELTA;

    mr_error_clear(&repository->error);
    if (is_delta)
        repository->outcome = mr_model_apply_delta(repository->model, repository->sender,
                                                   payload, &repository->error);
    else
        repository->outcome =
            mr_model_apply_dict(repository->model, payload, &repository->error);
    if (repository->outcome == MR_OK)
        mr_filter_count(filter, is_delta ? COUNTER_DELTAS : COUNTER_DICTS, 1);
    else
        mr_filter_count(filter, COUNTER_REFUSED, 1);
    return repository->outcome == MR_ENOMEM ? MR_ENOMEM : MR_OK;
}

static enum mr_status process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct mr_repository *repository = *(struct mr_repository **)mr_filter_state(filter);

    if (batch->kind != MR_BATCH_DELTA && batch->kind != MR_BATCH_DICT)
        return mr_filter_emit(filter, batch);
    enum mr_status status = apply(filter, repository, batch);
    mr_batch_free(batch);
    return status;
}

static void close(struct mr_filter *filter)
{
    (void)filter; /* the model belongs to the master */
}

const struct mr_filter_kind mr_repository_filter = {
    .name = "repository",
    .state_size = sizeof(struct mr_repository *),
    .open = open,
    .process = process,
    .close = close,
};
