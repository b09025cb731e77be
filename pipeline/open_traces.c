/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/open_traces.h"

#include <stdlib.h>

#include "net/delta.h"
#include "pipeline/accumulate.h"
#include "pipeline/batch.h"

/* Items that open traces need: themselves, and the names of their paths. */
static bool is_needed(uint64_t tag)
{
    return tag == MR_DELTA_HEAD || tag == MR_DELTA_SITE || tag == MR_DELTA_SCOPE ||
           tag == MR_DELTA_PATH || tag == MR_DELTA_OPEN;
}

/* Numbers are counted by kind, so that they stay what they were. */
static enum mr_status copy_needed(struct mr_span payload, struct mr_buffer *bytes)
{
    struct mr_span whole, fields;
    enum mr_status status = MR_OK;
    uint64_t tag;

    while (status == MR_OK && mr_delta_skip(&payload, &tag, &whole, &fields))
        if (is_needed(tag))
            status = mr_buffer_append(bytes, whole.data, whole.size);
    return status;
}

/* Item `at` is gone; the others stay in their order. */
static void drop(struct mr_open_traces *open, uint32_t at)
{
    open->bytes -= open->items[at].bytes.size;
    mr_buffer_fini(&open->items[at].bytes);
    open->count--;
    for (uint32_t i = at; i < open->count; i++)
        open->items[i] = open->items[i + 1];
}

void mr_open_traces_fini(struct mr_open_traces *open)
{
    while (open->count > 0)
        drop(open, open->count - 1);
    free(open->items);
    *open = (struct mr_open_traces){0};
}

static void drop_earlier(struct mr_open_traces *open, struct mr_id teller,
                         uint64_t telling)
{
    for (uint32_t i = open->count; i-- > 0;)
        if (mr_id_equal(open->items[i].teller, teller) &&
            open->items[i].telling != telling)
            drop(open, i);
}

static bool has_room(struct mr_open_traces *open)
{
    uint32_t capacity = open->capacity ? 2 * open->capacity : 16;
    struct mr_open_traces_payload *grown;

    if (open->count < open->capacity)
        return true;
    grown = realloc(open->items, capacity * sizeof(*grown));
    if (!grown)
        return false;
    open->items = grown;
    open->capacity = capacity;
    return true;
}

enum mr_status mr_open_traces_take(struct mr_open_traces *open,
                                   const struct mr_batch *batch, uint64_t now_ns)
{
    struct mr_open_traces_payload *added;
    enum mr_status status;

    drop_earlier(open, batch->teller, batch->telling);
    if (!batch->has_open)
        return MR_OK;
    if (open->count == MR_OPEN_TRACES_PAYLOADS_MAX)
        return MR_ELIMIT;
    if (!has_room(open))
        return MR_ENOMEM;
    added = &open->items[open->count];
    *added = (struct mr_open_traces_payload){
        .teller = batch->teller, .telling = batch->telling, .told_ns = now_ns};
    mr_buffer_init(&added->bytes, MR_OPEN_TRACES_BYTES_MAX - open->bytes);
    status = copy_needed(mr_buffer_span(&batch->bytes), &added->bytes);
    if (status != MR_OK) {
        mr_buffer_fini(&added->bytes);
        return status;
    }
    open->bytes += added->bytes.size;
    open->count++;
    return MR_OK;
}

bool mr_open_traces_has_others(const struct mr_open_traces *open, struct mr_id teller)
{
    for (uint32_t i = 0; i < open->count; i++)
        if (!mr_id_equal(open->items[i].teller, teller))
            return true;
    return false;
}

enum mr_status mr_open_traces_merge(const struct mr_open_traces *open,
                                    struct mr_accumulator *accumulator)
{
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; i < open->count && status == MR_OK; i++) {
        mr_accumulator_open(accumulator, mr_buffer_span(&open->items[i].bytes));
        mr_accumulator_choose(accumulator, MR_ACCUMULATE_OPEN);
        status = mr_accumulator_merge(accumulator, NULL);
        if (status == MR_EFORMAT) /* told when the payload itself was merged */
            status = MR_OK;
    }
    if (status == MR_AGAIN) { /* it waits for nothing */
        mr_accumulator_open(accumulator, (struct mr_span){0});
        (void)mr_accumulator_merge(accumulator, NULL);
    }
    return status;
}

void mr_open_traces_expire(struct mr_open_traces *open, uint64_t now_ns)
{
    for (uint32_t i = open->count; i-- > 0;)
        if (now_ns > open->items[i].told_ns + MR_OPEN_TOLD_FOR_NS)
            drop(open, i);
}
