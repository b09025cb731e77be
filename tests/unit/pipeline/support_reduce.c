/* SPDX-License-Identifier: Apache-2.0 */
#include "support_reduce.h"

#include "../unit_test.h"

#include <string.h>

void test_reduce_write(struct test_lane *lane, const char *text)
{
    unsigned a, b, c;

    for (; *text; text += strcspn(text, " "), text += *text == ' ') {
        uint64_t ns = lane->streams[1].time;

        if (sscanf(text, "+%u", &a) == 1)
            test_lane_enter(lane, 1, a, ns);
        else if (sscanf(text, "-%u", &a) == 1)
            test_lane_exit(lane, 1, a, ns);
        else if (sscanf(text, "s%u", &a) == 1)
            test_lane_status(lane, 1, ns, a);
        else if (sscanf(text, "l%u,%u,%u", &a, &b, &c) == 3)
            test_lane_loss(lane, 1, ns, a, MR_LOSS_RING_FULL, b, c);
        else if (sscanf(text, "p%u", &a) == 1)
            test_lane_prune(lane, 1, a, ns, 0);
        else if (sscanf(text, "t%u", &a) == 1)
            lane->streams[1].time = ns + a;
        else if (*text == 'w')
            lane->streams[1].time = (ns / MR_SECOND_NS + 1) * MR_SECOND_NS;
        else
            fail_msg("what is %s", text);
    }
}

void test_reduce_run_with(const struct test_options *options, uint32_t start,
                          const char *events, struct test_reduced *result)
{
    struct test_lane lane;

    test_lane_init(&lane, options);
    test_lane_announce(&lane, 1, start);
    test_reduce_write(&lane, events);
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    result->text = (struct test_text){0};
    test_model(&lane, &result->text);
    test_lane_fini(&lane);
}

void test_reduce_run(const char *events, struct test_reduced *result)
{
    test_reduce_run_with(NULL, 0, events, result);
}

void test_reduce_expect(struct test_reduced *result, const char *prefix, const char *rest)
{
    assert_string_equal(test_text_find(&result->text, prefix), rest);
}

void test_reduce_done(struct test_reduced *result)
{
    test_text_fini(&result->text);
}

void test_reduce_write_times(struct test_lane *lane, uint32_t count, const char *text)
{
    while (count-- > 0)
        test_reduce_write(lane, text);
}

void test_reduce_add_up(const struct test_lane *lane, uint64_t *ok, uint64_t *whole,
                        struct mr_ledger_entry *ledger)
{
    *ok = *whole = 0;
    *ledger = (struct mr_ledger_entry){0};
    for (const struct mr_batch *batch = lane->out->first; batch; batch = batch->next) {
        struct mr_delta_reader reader;
        struct mr_delta_item item;

        if (batch->kind != MR_BATCH_DELTA)
            continue;
        mr_delta_reader_init(&reader, mr_buffer_span(&batch->bytes));
        while (mr_delta_next(&reader, &item) == MR_OK) {
            if (item.tag == MR_DELTA_PATH_STAT)
                *ok += item.path_stats->ok;
            else if (item.tag == MR_DELTA_ENTRY_STAT)
                *whole += item.entry_stats->traces[MR_COVERAGE_WHOLE];
            else if (item.tag == MR_DELTA_LEDGER)
                mr_ledger_entry_merge(ledger, item.ledger);
        }
        mr_delta_reader_fini(&reader);
    }
}
