/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pipeline/batch.h"

#include <string.h>

static void events_batches_come_with_room(void **state)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_EVENTS);

    (void)state;
    assert_non_null(batch);
    assert_int_equal(batch->kind, MR_BATCH_EVENTS);
    assert_int_equal(batch->event_capacity, MR_BATCH_EVENTS_MAX);
    assert_int_equal(batch->event_count, 0);
    memset(batch->events, 0xff, MR_BATCH_EVENTS_MAX * sizeof(*batch->events));
    mr_batch_free(batch);
}

static void a_recycled_batch_is_as_good_as_new(void **state)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_EVENTS);
    struct mr_event *events;

    (void)state;
    assert_non_null(batch);
    events = batch->events;
    batch->event_count = 7;
    batch->loss_count = 0;
    batch->source = (struct mr_source *)(void *)batch;
    batch->stream = (struct mr_stream *)(void *)batch;
    batch->end_state = 2;
    assert_int_equal(mr_buffer_append_text(&batch->bytes, "left over"), MR_OK);
    mr_batch_free(batch);
    batch = mr_batch_new(MR_BATCH_EVENTS);
    assert_non_null(batch);
    assert_ptr_equal(batch->events, events); /* no malloc in the steady state */
    assert_int_equal(batch->event_count, 0);
    assert_null(batch->source);
    assert_null(batch->stream);
    assert_int_equal(batch->end_state, 0);
    assert_int_equal(batch->bytes.size, 0);
    assert_null(batch->next);
    mr_batch_free(batch);
}

static void other_kinds_have_no_events(void **state)
{
    static const enum mr_batch_kind kinds[] = {MR_BATCH_FRAME, MR_BATCH_DICT,
                                               MR_BATCH_DELTA, MR_BATCH_END};

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct mr_batch *batch = mr_batch_new(kinds[i]);

        assert_non_null(batch);
        assert_int_equal(batch->kind, kinds[i]);
        assert_null(batch->events);
        assert_int_equal(batch->bytes.limit, MR_BATCH_BYTES_MAX);
        mr_batch_free(batch);
    }
    mr_batch_free(NULL);
}

static void owning_a_frame_copies_its_payload(void **state)
{
    char payload[] = "borrowed";
    struct mr_batch *batch = mr_batch_new(MR_BATCH_FRAME);

    (void)state;
    assert_non_null(batch);
    batch->frame.payload = mr_span_of(payload, sizeof(payload));
    assert_int_equal(mr_batch_own(batch), MR_OK);
    memset(payload, 0, sizeof(payload));
    assert_true(batch->is_owned);
    assert_int_equal(batch->frame.payload.size, sizeof(payload));
    assert_string_equal((const char *)batch->frame.payload.data, "borrowed");
    assert_int_equal(mr_batch_own(batch), MR_OK); /* once is enough */
    assert_int_equal(batch->bytes.size, sizeof(payload));
    mr_batch_free(batch);
}

static void owning_an_empty_frame_works(void **state)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_FRAME);

    (void)state;
    assert_non_null(batch);
    assert_int_equal(mr_batch_own(batch), MR_OK);
    assert_true(batch->is_owned);
    assert_int_equal(batch->frame.payload.size, 0);
    mr_batch_free(batch);
}

static void owning_other_kinds_changes_nothing(void **state)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_DELTA);

    (void)state;
    assert_non_null(batch);
    assert_int_equal(mr_buffer_append_text(&batch->bytes, "delta"), MR_OK);
    assert_int_equal(mr_batch_own(batch), MR_OK);
    assert_false(batch->is_owned);
    assert_int_equal(batch->bytes.size, 5);
    mr_batch_free(batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_batches_come_with_room),
        cmocka_unit_test(a_recycled_batch_is_as_good_as_new),
        cmocka_unit_test(other_kinds_have_no_events),
        cmocka_unit_test(owning_a_frame_copies_its_payload),
        cmocka_unit_test(owning_an_empty_frame_works),
        cmocka_unit_test(owning_other_kinds_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
