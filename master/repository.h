/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the master's graph: applies DICT and DELTA batches to the model. It runs
 * fused, on the thread that pushes, which tells whose batch it is and reads what became
 * of it: bad bytes are one sender's fault and stop nobody else, so they are an outcome
 * here and no error of the filter.
 *
 * Use:
 *     struct mr_repository repository = {.model = model};
 *     const struct mr_graph_node node = {&mr_repository_filter, &repository,
 *                                        MR_PLACE_FUSED};
 *     repository.sender = sender;
 *     status = mr_graph_push(graph, batch);        // error: the model cannot go on
 *     if (repository.outcome != MR_OK) cut_off(repository.error.text);
 */
#ifndef MR_MASTER_REPOSITORY_H
#define MR_MASTER_REPOSITORY_H

#include "master/model.h"
#include "pipeline/filter.h"

struct mr_repository {
    struct mr_model *model;
    struct mr_id sender;    /* of the next batch; set before each push */
    enum mr_status outcome; /* of the last batch */
    struct mr_error error;
};

/* Its config is the struct mr_repository, which it writes to. */
extern const struct mr_filter_kind mr_repository_filter;

#endif
