/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of several parts, on the product's side: joined where a worker joins them, and ended as the master does. */
#include "product.h"

#include "../unit/unit_test.h"

#include "net/delta.h"
#include "pipeline/joined_rows.h"
#include "pipeline/joiner.h"

#define PARTS_MAX 65536u

struct ending {
    struct mr_joiner *joiner;
    struct mr_joined_rows rows;
    struct mr_batch *out;
    struct mr_delta_writer writer;
    uint32_t window_s;
};

static void write_rows(struct ending *ending)
{
    for (uint32_t i = 0; i < ending->rows.count; i++)
        mr_joined_rows_write(&ending->rows, i, &ending->writer);
    mr_joined_rows_clear(&ending->rows);
}

static void take_joined(struct ending *ending)
{
    struct mr_joined joined;
    enum mr_status status;

    while (mr_joiner_take(ending->joiner, &joined)) {
        status = mr_joined_rows_add(&ending->rows, &joined, ending->window_s);
        if (status == MR_ELIMIT) {
            write_rows(ending);
            status = mr_joined_rows_add(&ending->rows, &joined, ending->window_s);
        }
        assert_int_equal(status, MR_OK);
    }
}

static void add_parts(struct ending *ending, const struct mr_batch *batch)
{
    struct mr_delta_reader reader;
    struct mr_delta_item item;

    if (batch->kind != MR_BATCH_DELTA)
        return;
    mr_delta_reader_init(&reader, mr_buffer_span(&batch->bytes));
    while (mr_delta_next(&reader, &item) == MR_OK) {
        if (item.tag != MR_DELTA_PART)
            continue;
        assert_int_equal(mr_joiner_add(ending->joiner, item.part, 1, NULL), MR_OK);
        take_joined(ending);
    }
    mr_delta_reader_fini(&reader);
}

void product_end_traces(struct product_batches *batches, uint32_t window_s)
{
    struct ending ending = {.window_s = window_s, .out = mr_batch_new(MR_BATCH_DELTA)};
    struct product_batches made;

    assert_non_null(ending.out);
    assert_int_equal(mr_joiner_new(PARTS_MAX, &ending.joiner), MR_OK);
    mr_joined_rows_init(&ending.rows);
    mr_delta_begin(&ending.writer, &ending.out->bytes);
    mr_delta_head(&ending.writer, 1, 1);
    for (const struct mr_batch *batch = batches->first; batch; batch = batch->next)
        add_parts(&ending, batch);
    (void)mr_joiner_end(ending.joiner, UINT64_MAX);
    take_joined(&ending);
    write_rows(&ending);
    assert_int_equal(mr_delta_status(&ending.writer), MR_OK);
    mr_joiner_free(ending.joiner);
    mr_joined_rows_fini(&ending.rows);
    made = (struct product_batches){.first = ending.out, .end = &ending.out->next};
    ending.out->next = NULL;
    product_append(batches, &made);
}
