/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of single traces: exemplars, of which the best of each shape and reason stays, and paths of a shape. */
#include "base/assert.h"
#include "base/hash.h"
#include "pipeline/accumulate_private.h"

#include <stdlib.h>

static struct mr_id exemplar_key(const struct mr_acc_exemplar *row, uint32_t why)
{
    uint64_t shape = row->shape == MR_ACC_NONE ? 0 : (uint64_t)row->shape + 1;
    bool is_incomplete = row->exemplar.status == MR_EXEMPLAR_INCOMPLETE;

    return (struct mr_id){(uint64_t)row->path << 32 | (uint64_t)why << 1 |
                              (shape == 0 && is_incomplete),
                          shape};
}

static size_t bytes_of(uint32_t call_count)
{
    return call_count * sizeof(struct mr_exemplar_call);
}

void mr_acc_forget_calls(struct mr_accumulator *acc, struct mr_acc_exemplar *row)
{
    acc->exemplar_bytes -= bytes_of(row->exemplar.call_count);
    free(row->calls);
    row->calls = NULL;
    row->exemplar.call_count = 0;
}

void mr_acc_hold_calls(struct mr_accumulator *acc, struct mr_acc_exemplar *row,
                       struct mr_exemplar_call *calls)
{
    row->exemplar.items = row->calls = calls;
    acc->exemplar_bytes += bytes_of(row->exemplar.call_count);
}

void mr_acc_forget_exemplars(struct mr_accumulator *acc)
{
    struct mr_acc_set *set = &acc->sets[MR_ACC_EXEMPLAR];

    for (uint32_t i = 0; i < set->count; i++)
        mr_acc_forget_calls(acc, mr_acc_at(set, i));
    mr_acc_forget_asked(acc);
    MR_ASSERT(acc->exemplar_bytes == 0);
}

enum mr_status mr_acc_copy_calls(struct mr_accumulator *acc,
                                 const struct mr_exemplar *exemplar,
                                 struct mr_exemplar_call **calls)
{
    size_t size = bytes_of(exemplar->call_count);
    enum mr_status status = MR_OK;

    if (size > MR_ACCUMULATOR_EXEMPLAR_BYTES_MAX - acc->exemplar_bytes)
        return MR_ELIMIT;
    *calls = malloc(size);
    if (!*calls)
        return MR_ENOMEM;
    for (uint32_t i = 0; i < exemplar->call_count && status == MR_OK; i++) {
        (*calls)[i] = exemplar->items[i];
        status = mr_acc_intern_name(acc, MR_ACC_SITE, exemplar->items[i].site,
                                    &(*calls)[i].site);
    }
    if (status != MR_OK)
        free(*calls);
    return status;
}

/* The place for one reason, in which the better one stays. */
static enum mr_status take_place(struct mr_accumulator *acc,
                                 const struct mr_acc_exemplar *given,
                                 enum mr_exemplar_why why)
{
    struct mr_acc_set *set = &acc->sets[MR_ACC_EXEMPLAR];
    struct mr_id key = exemplar_key(given, why);
    struct mr_acc_exemplar *row;
    struct mr_exemplar_call *calls;
    uint32_t index;
    bool is_new;
    enum mr_status status = mr_acc_set_take(set, key, &index, &is_new);

    if (status != MR_OK)
        return status;
    row = mr_acc_at(set, index);
    if (!is_new && !mr_exemplar_is_before(&given->exemplar, &row->exemplar, why))
        return MR_OK;
    status = mr_acc_copy_calls(acc, &given->exemplar, &calls);
    if (status != MR_OK && is_new) { /* as if it had not been taken */
        (void)mr_table_remove(&set->table, key);
        set->count--;
    }
    if (status != MR_OK)
        return status;
    if (!is_new)
        mr_acc_forget_calls(acc, row);
    *row = *given;
    row->exemplar.why = why;
    mr_acc_hold_calls(acc, row, calls);
    return MR_OK;
}

enum mr_status mr_acc_exemplar_names(struct mr_accumulator *acc,
                                     const struct mr_delta_item *item,
                                     struct mr_acc_exemplar *row)
{
    const struct mr_acc_name *source;
    enum mr_status status;

    *row = (struct mr_acc_exemplar){.shape = MR_ACC_NONE, .exemplar = *item->exemplar};
    status = mr_acc_intern_path(acc, item->path, &row->path);
    if (status == MR_OK && item->shape != MR_DELTA_NONE)
        status = mr_acc_intern_shape(acc, item->shape, &row->shape);
    if (status == MR_OK)
        status = mr_acc_intern_name(acc, MR_ACC_SOURCE, item->source, &row->source);
    if (status != MR_OK)
        return status;
    source = mr_acc_at(&acc->sets[MR_ACC_SOURCE], row->source);
    row->exemplar.source = source->id;
    return MR_OK;
}

enum mr_status mr_acc_merge_exemplar(struct mr_accumulator *acc,
                                     const struct mr_delta_item *item)
{
    struct mr_acc_exemplar given;
    enum mr_status status = mr_acc_exemplar_names(acc, item, &given);

    for (uint32_t why = 1; why < MR_EXEMPLAR_ALL && status == MR_OK; why <<= 1)
        if (item->exemplar->why & why)
            status = take_place(acc, &given, (enum mr_exemplar_why)why);
    return status;
}

uint32_t mr_acc_exemplar_reasons(const struct mr_accumulator *acc,
                                 const struct mr_acc_exemplar *row)
{
    const struct mr_acc_set *set = &acc->sets[MR_ACC_EXEMPLAR];
    uint32_t why = row->exemplar.why;
    uint32_t other =
        mr_table_find(&set->table, exemplar_key(row, MR_EXEMPLAR_ALL & ~why));
    const struct mr_acc_exemplar *twin =
        other == MR_TABLE_NONE ? NULL : mr_acc_at(set, other);

    if (!twin || !mr_exemplar_is_same(&twin->exemplar, &row->exemplar))
        return why;
    return why == MR_EXEMPLAR_FIRST ? MR_EXEMPLAR_ALL : 0;
}

struct mr_id mr_acc_exemplar_id(const struct mr_accumulator *acc,
                                const struct mr_acc_exemplar *row)
{
    const struct mr_acc_path *path = mr_acc_at(&acc->sets[MR_ACC_PATH], row->path);
    const struct mr_id none = {0, row->exemplar.status == MR_EXEMPLAR_INCOMPLETE};
    const struct mr_id ids[] = {
        path->id, row->shape == MR_ACC_NONE ? none
                                            : ((const struct mr_acc_shape *)mr_acc_at(
                                                   &acc->sets[MR_ACC_SHAPE], row->shape))
                                                  ->key};

    return mr_hash128(mr_span_of(ids, sizeof(ids)));
}

enum mr_status mr_acc_merge_shape_path(struct mr_accumulator *acc,
                                       const struct mr_delta_item *item)
{
    struct mr_acc_shape_path_row *row;
    uint32_t shape, path, index;
    bool is_new;
    enum mr_status status = mr_acc_intern_shape(acc, item->shape, &shape);

    if (status == MR_OK)
        status = mr_acc_intern_path(acc, item->path, &path);
    if (status == MR_OK)
        status = mr_acc_set_take(&acc->sets[MR_ACC_SHAPE_PATH_ROW],
                                 (struct mr_id){shape, path}, &index, &is_new);
    if (status != MR_OK)
        return status;
    row = mr_acc_at(&acc->sets[MR_ACC_SHAPE_PATH_ROW], index);
    if (is_new)
        *row = (struct mr_acc_shape_path_row){.shape = shape, .path = path};
    mr_shape_path_stats_merge(&row->stats, item->shape_path_stats);
    return MR_OK;
}
