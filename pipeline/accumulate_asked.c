/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers to requests for exemplars: of each request the earliest traces stay, as many as it asks for, whichever payload
 * brought them and however often. A trace that answers two requests is two answers.
 */
#include "base/assert.h"
#include "base/hash.h"
#include "pipeline/accumulate_private.h"

#include <stdlib.h>

static struct mr_acc_asked *row_at(const struct mr_accumulator *acc, uint32_t index)
{
    return mr_acc_at(&acc->sets[MR_ACC_ASKED], index);
}

struct mr_id mr_acc_asked_id(const struct mr_acc_asked *row)
{
    const struct mr_exemplar *exemplar = &row->trace.exemplar;
    const struct mr_id ids[] = {row->request,
                                exemplar->source,
                                {exemplar->stream, exemplar->before},
                                {exemplar->start_ns, 0}};

    return mr_hash128(mr_span_of(ids, sizeof(ids)));
}

/* How many answers of the request there are, and the last of them. */
static uint32_t count_of(const struct mr_accumulator *acc, struct mr_id request,
                         uint32_t *last)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < acc->sets[MR_ACC_ASKED].count; i++) {
        const struct mr_acc_asked *row = row_at(acc, i);

        if (!mr_id_equal(row->request, request))
            continue;
        if (count == 0 || mr_exemplar_is_before(&row_at(acc, *last)->trace.exemplar,
                                                &row->trace.exemplar, MR_EXEMPLAR_ASKED))
            *last = i;
        count++;
    }
    return count;
}

/* A new row of this key, or the one at `last`, which loses its place. */
static enum mr_status make_place(struct mr_accumulator *acc, struct mr_id key,
                                 bool is_full, uint32_t *index)
{
    struct mr_acc_set *set = &acc->sets[MR_ACC_ASKED];
    bool is_new;
    enum mr_status status;

    if (!is_full) {
        status = mr_acc_set_take(set, key, index, &is_new);
        MR_ASSERT(status != MR_OK || is_new);
        return status;
    }
    (void)mr_table_remove(&set->table, mr_acc_asked_id(row_at(acc, *index)));
    mr_acc_forget_calls(acc, &row_at(acc, *index)->trace);
    return mr_table_put(&set->table, key, *index); /* there is room: one went */
}

static enum mr_status take_answer(struct mr_accumulator *acc,
                                  const struct mr_acc_asked *given)
{
    struct mr_id key = mr_acc_asked_id(given);
    uint32_t index = 0, count = count_of(acc, given->request, &index);
    bool is_full = count >= given->wanted;
    struct mr_exemplar_call *calls;
    enum mr_status status;

    if (mr_table_find(&acc->sets[MR_ACC_ASKED].table, key) != MR_TABLE_NONE ||
        (is_full &&
         !mr_exemplar_is_before(&given->trace.exemplar,
                                &row_at(acc, index)->trace.exemplar, MR_EXEMPLAR_ASKED)))
        return MR_OK;
    status = mr_acc_copy_calls(acc, &given->trace.exemplar, &calls);
    if (status != MR_OK)
        return status;
    status = make_place(acc, key, is_full, &index);
    if (status != MR_OK) {
        free(calls);
        return status;
    }
    *row_at(acc, index) = *given;
    mr_acc_hold_calls(acc, &row_at(acc, index)->trace, calls);
    return MR_OK;
}

enum mr_status mr_acc_merge_asked(struct mr_accumulator *acc,
                                  const struct mr_delta_item *item)
{
    struct mr_acc_asked given = {.request = item->id, .wanted = item->wanted};
    enum mr_status status = mr_acc_exemplar_names(acc, item, &given.trace);

    return status == MR_OK ? take_answer(acc, &given) : status;
}

void mr_acc_forget_asked(struct mr_accumulator *acc)
{
    for (uint32_t i = 0; i < acc->sets[MR_ACC_ASKED].count; i++)
        mr_acc_forget_calls(acc, &row_at(acc, i)->trace);
}
