/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/asks.h"

#include "tests/unit/unit_test.h"

static const struct mr_id subject = {1, 2}, below = {3, 4}, own = {0, 0};
static uint32_t woken[4];

static void wake(void *context, uint32_t lane)
{
    assert_null(context);
    woken[lane]++;
}

static struct mr_ask ask_of(uint32_t lane, struct mr_id asker, uint64_t epoch,
                            bool is_claim)
{
    return (struct mr_ask){
        .body = {.subject = subject, .epoch = epoch, .position = 7, .is_claim = is_claim},
        .asker = asker,
        .lane = lane};
}

static void an_answer_reaches_everybody_who_asked(void **state)
{
    static struct mr_asks asks;
    struct mr_ask claim = ask_of(1, own, 5, true), passed = ask_of(2, below, 5, false),
                  got;
    struct mr_custody_ask body, answer = {.subject = subject, .epoch = 5, .position = 4};

    (void)state;
    mr_asks_init(&asks, wake, NULL);
    assert_int_equal(mr_asks_put(&asks, &claim), MR_OK);
    assert_int_equal(mr_asks_put(&asks, &claim), MR_OK); /* the same */
    assert_int_equal(mr_asks_put(&asks, &passed), MR_OK);
    for (int i = 0; i < 2; i++) {
        assert_true(mr_asks_next(&asks, &body));
        assert_int_equal(body.position, 7);
        mr_asks_mark_sent(&asks, &body);
    }
    assert_false(mr_asks_next(&asks, &body));
    assert_false(mr_asks_take(&asks, 1, &got));
    mr_asks_answer(&asks, &answer);
    assert_int_equal(woken[1], 1);
    assert_int_equal(woken[2], 1);
    assert_false(mr_asks_take(&asks, 0, &got));
    assert_true(mr_asks_take(&asks, 1, &got));
    assert_int_equal(got.body.position, 4);
    assert_true(got.body.is_claim);
    assert_true(mr_asks_take(&asks, 2, &got));
    assert_true(mr_id_equal(got.asker, below));
    assert_false(mr_asks_take(&asks, 2, &got));
    mr_asks_fini(&asks);
}

static void what_was_not_answered_is_sent_again(void **state)
{
    static struct mr_asks asks;
    struct mr_ask one = ask_of(0, own, 1, true);
    struct mr_custody_ask body, other = {.subject = subject, .epoch = 2};

    (void)state;
    mr_asks_init(&asks, wake, NULL);
    assert_int_equal(mr_asks_put(&asks, &one), MR_OK);
    assert_true(mr_asks_next(&asks, &body));
    mr_asks_mark_sent(&asks, &body);
    mr_asks_answer(&asks, &other); /* of another epoch */
    mr_asks_mark_unsent(&asks);
    assert_true(mr_asks_next(&asks, &body));
    assert_int_equal(body.epoch, 1);
    mr_asks_fini(&asks);
}

static void too_many_are_refused(void **state)
{
    static struct mr_asks asks;
    struct mr_custody_ask answer = {.subject = subject, .epoch = 9};
    struct mr_ask ask = ask_of(3, own, 0, false), got;

    (void)state;
    mr_asks_init(&asks, wake, NULL);
    for (uint32_t i = 0; i < MR_ASKS_MAX; i++) {
        ask.body.epoch = i;
        assert_int_equal(mr_asks_put(&asks, &ask), MR_OK);
    }
    ask.body.epoch = MR_ASKS_MAX;
    assert_int_equal(mr_asks_put(&asks, &ask), MR_ELIMIT);
    woken[3] = 0;
    mr_asks_mute(&asks);
    mr_asks_answer(&asks, &answer);
    assert_int_equal(woken[3], 0);
    assert_true(mr_asks_take(&asks, 3, &got));
    assert_int_equal(mr_asks_put(&asks, &ask), MR_OK);
    mr_asks_fini(&asks);
}

/* It may be that it does so to keep the others from being answered. */
static void who_asks_without_end_leaves_room_for_others(void **state)
{
    static struct mr_asks asks;
    struct mr_ask ask = ask_of(0, below, 0, false), other = ask_of(0, subject, 0, false),
                  claim = ask_of(0, own, 0, true);

    (void)state;
    mr_asks_init(&asks, wake, NULL);
    for (uint32_t i = 0; i < MR_ASKS_OF_ONE_MAX; i++) {
        ask.body.epoch = i;
        assert_int_equal(mr_asks_put(&asks, &ask), MR_OK);
    }
    assert_int_equal(mr_asks_put(&asks, &ask), MR_OK); /* the same */
    ask.body.epoch = MR_ASKS_OF_ONE_MAX;
    assert_int_equal(mr_asks_put(&asks, &ask), MR_ELIMIT);
    assert_int_equal(mr_asks_put(&asks, &other), MR_OK);
    assert_int_equal(mr_asks_put(&asks, &claim), MR_OK);
    mr_asks_forget(&asks, below);
    assert_int_equal(asks.count, 2);
    mr_asks_fini(&asks);
}

static void the_next_waits_for_an_answer_when_many_are_sent(void **state)
{
    static struct mr_asks asks;
    struct mr_ask ask = ask_of(0, own, 0, true);
    struct mr_custody_ask body, answer = {.subject = subject, .epoch = 3};

    (void)state;
    mr_asks_init(&asks, wake, NULL);
    for (uint32_t i = 0; i <= MR_ASKS_SENT_MAX; i++) {
        ask.body.epoch = i;
        assert_int_equal(mr_asks_put(&asks, &ask), MR_OK);
    }
    for (uint32_t i = 0; i < MR_ASKS_SENT_MAX; i++) {
        assert_true(mr_asks_next(&asks, &body));
        mr_asks_mark_sent(&asks, &body);
    }
    assert_false(mr_asks_next(&asks, &body));
    mr_asks_answer(&asks, &answer);
    assert_true(mr_asks_next(&asks, &body));
    assert_int_equal(body.epoch, MR_ASKS_SENT_MAX);
    mr_asks_fini(&asks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_reaches_everybody_who_asked),
        cmocka_unit_test(what_was_not_answered_is_sent_again),
        cmocka_unit_test(too_many_are_refused),
        cmocka_unit_test(who_asks_without_end_leaves_room_for_others),
        cmocka_unit_test(the_next_waits_for_an_answer_when_many_are_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
