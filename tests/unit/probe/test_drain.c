/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/futex.h"
#include "rig.h"

#include <pthread.h>
#include <sched.h>

#define SITE MR_SITE_FIRST_MODULE
#define WORDS MR_RING_WORDS_MIN

static void a_thread_that_ended_gets_a_last_chunk_with_its_losses(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    struct mr_event event = {.bits = mr_event_enter(SITE), .words = 1};

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    mr_ring_drop(&rig->thread, &event, MR_LOSS_RING_FULL);
    mr_ring_drop(&rig->thread, &event, MR_LOSS_NESTED);
    mr_ring_detach(&rig->thread);
    rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, false, RIG_TICKS);
    assert_false(rig->chunk.flags & MR_CHUNK_LAST);
    rig_expect_loss(rig, 1, MR_LOSS_RING_FULL, 0, 2);
    rig_expect_loss(rig, 1, MR_LOSS_NESTED, 0, 0);
    assert_false(rig_next(rig));
    assert_true(rig->chunk.flags & MR_CHUNK_LAST);
    assert_true(rig->chunk.events == 2);
    assert_int_equal(mr_load_relaxed(&rig->ring->state), MR_RING_FREE);
    rig_free(rig);
}

static void the_next_thread_of_a_ring_begins_anew(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    struct mr_ring *ring = rig->ring;

    (void)state;
    for (uint32_t i = 0; i < 700; i++) { /* ends in an odd lap */
        rig_enter(rig, SITE + i, RIG_TICKS);
        rig_drain(rig, RIG_FRAME_SIZE);
    }
    mr_ring_detach(&rig->thread);
    rig_drain(rig, RIG_FRAME_SIZE);
    assert_ptr_equal(mr_pool_take(&rig->pool), ring);
    assert_int_equal(ring->stream, 2);
    ring->start_ticks = RIG_TICKS;
    mr_ring_attach(&rig->thread, ring);
    mr_pool_publish(ring);
    assert_int_equal(rig_drain(rig, RIG_FRAME_SIZE), 0);
    rig_exit(rig, SITE + 5, RIG_TICKS + 5);
    rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE + 5, true, RIG_TICKS + 5);
    assert_true(rig->chunk.first_event == 0);
    assert_int_equal(rig->chunk.stream, 2);
    assert_int_equal(rig->chunk.flags, MR_CHUNK_FIRST);
    rig_free(rig);
}

static void a_given_up_word_is_one_lost_event(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    (void)mr_arch_reserve(&rig->thread.cursor); /* its handler left by longjmp */
    rig_enter(rig, SITE + 2, RIG_TICKS + 2);
    mr_ring_detach(&rig->thread);
    rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, false, RIG_TICKS);
    rig_expect_loss(rig, 1, MR_LOSS_NESTED, 0, 0);
    rig_expect_event(rig, SITE + 2, false, RIG_TICKS + 2);
    assert_true(rig->chunk.first_event == 2);
    assert_true(rig->chunk.lost == 1);
    rig_free(rig);
}

static void a_word_of_a_running_thread_is_given_up_after_a_while(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    uint64_t now_ns = MR_SECOND_NS;
    int polls = 0;

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    rig_drain(rig, RIG_FRAME_SIZE);
    (void)mr_arch_reserve(&rig->thread.cursor);
    rig_enter(rig, SITE + 2, RIG_TICKS + 2);
    do {
        mr_drain_begin(&rig->frame, rig->out, RIG_FRAME_SIZE);
        (void)mr_drain_ring(&rig->frame, rig->ring, 1, now_ns);
        mr_drain_commit(&rig->frame, &rig->pool);
        now_ns += MR_MILLISECOND_NS;
        polls++;
    } while (rig->frame.size == 0);
    assert_true(polls > 100);
    assert_true(rig->frame.totals.lost[MR_LOSS_NESTED] == 1);
    rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_event(rig, SITE + 2, false, RIG_TICKS + 2);
    rig_free(rig);
}

static void a_given_up_word_is_not_found_again_a_lap_later(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    uint64_t made = 0, now_ns = MR_SECOND_NS;

    (void)state;
    for (; rig->thread.cursor < 2 * WORDS + 100; made++) { /* words of two laps before */
        rig_enter(rig, SITE, RIG_TICKS);
        rig_drain(rig, RIG_FRAME_SIZE);
    }
    rig_enter(rig, SITE, RIG_TICKS);
    while (rig->thread.cursor >= rig->thread.limit)
        rig_enter(rig, SITE, RIG_TICKS);
    rig_drain(rig, RIG_FRAME_SIZE);
    (void)mr_arch_reserve(&rig->thread.cursor);
    rig_enter(rig, SITE + 1, RIG_TICKS);
    do {
        mr_drain_begin(&rig->frame, rig->out, RIG_FRAME_SIZE);
        (void)mr_drain_ring(&rig->frame, rig->ring, 1, now_ns);
        mr_drain_commit(&rig->frame, &rig->pool);
        now_ns += MR_SECOND_NS;
    } while (rig->frame.size == 0);
    rig_drain(rig, RIG_FRAME_SIZE);
    for (uint64_t end = rig->thread.cursor + WORDS - 2; rig->thread.cursor < end;) {
        rig_enter(rig, SITE + 2, RIG_TICKS);
        rig_drain(rig, RIG_FRAME_SIZE);
    }
    /* Nothing was read but what was written. */
    assert_true(rig->ring->done.tail == rig->thread.cursor);
    rig_free(rig);
}

static void what_was_given_up_comes_again(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    mr_drain_begin(&rig->frame, rig->out, RIG_FRAME_SIZE);
    assert_true(mr_drain_ring(&rig->frame, rig->ring, 1, 0));
    assert_false(mr_drain_ring(&rig->frame, rig->ring, 1, 0)); /* once per frame */
    mr_drain_abort(&rig->frame);
    rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, false, RIG_TICKS);
    assert_int_equal(rig->chunk.flags, MR_CHUNK_FIRST);
    rig_free(rig);
}

static void a_running_stream_ends_with_its_source(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    struct mr_event event = {.bits = mr_event_exit(SITE), .words = 1};

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    rig_drain(rig, RIG_FRAME_SIZE);
    mr_ring_drop(&rig->thread, &event, MR_LOSS_RING_FULL);
    mr_drain_begin(&rig->frame, rig->out, RIG_FRAME_SIZE);
    assert_true(mr_drain_source_end(&rig->frame, rig->ring, 1));
    mr_drain_commit(&rig->frame, &rig->pool);
    rig->payload = mr_span_of(rig->out, rig->frame.size);
    rig->reader.left = 0;
    rig_expect_loss(rig, 1, MR_LOSS_RING_FULL, 1, 0);
    assert_int_equal(rig->chunk.flags, MR_CHUNK_SOURCE_END);
    rig_free(rig);
}

static void *wait_for_room(void *argument)
{
    struct mr_ring *ring = argument;

    mr_store_seq_cst(&ring->is_waiting, 1);
    mr_futex_wait(&ring->is_waiting, 1, 600 * MR_SECOND_NS);
    return NULL;
}

/* Else it would look again after some time, as it does where the wake came too early. */
static void who_waits_for_room_is_woken(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_BLOCK);
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_room, rig->ring), 0);
    while (!mr_load_seq_cst(&rig->ring->is_waiting))
        (void)sched_yield();
    rig_enter(rig, SITE, RIG_TICKS);
    assert_true(rig_drain(rig, RIG_FRAME_SIZE) > 0);
    assert_int_equal(mr_load_relaxed(&rig->ring->is_waiting), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    rig_free(rig);
}

/* Any mix of events, drains into frames of any size, and drops: nothing is unaccounted. */
static void every_event_is_written_or_lost(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    uint64_t made = 0, next = 0, ticks = RIG_TICKS, lost = 0, counted = 0;

    (void)state;
    for (int step = 0; step < 20000; step++) {
        uint64_t count = mr_test_random_below(&random, 40);

        for (uint64_t i = 0; i < count; i++, made++) {
            ticks += mr_test_random_below(&random, 1000) == 0
                         ? mr_test_random_below(&random, UINT64_C(1) << 36)
                         : mr_test_random_below(&random, 100);
            if (mr_test_random_below(&random, 10) == 0)
                mr_ring_event_slow(
                    &rig->thread,
                    &(struct mr_event){.bits = mr_word_record(MR_RECORD_WIDE, 1, 0, 0),
                                       .payload = made & MR_WORD_PAYLOAD_MASK,
                                       .words = 2},
                    ticks, MR_INDEX_NONE);
            else if (mr_test_random_below(&random, 10) == 0)
                mr_ring_event_record(
                    &rig->thread,
                    &(struct mr_event){.bits = mr_word_record(MR_RECORD_SEND, 4, 0, 0),
                                       .rest = (const uint64_t[]){made, 1, 2, 3},
                                       .words = 5},
                    ticks);
            else if (mr_test_random_below(&random, 4) == 0)
                mr_ring_event_counted(&rig->thread,
                                      mr_event_enter(SITE + (uint32_t)(made & 0xffffff)),
                                      ticks, (const uint64_t[]){made, 1, 2, 3},
                                      1 + (uint32_t)mr_test_random_below(&random, 4));
            else
                rig_enter(rig, SITE + (uint32_t)(made & 0xffffff), ticks);
        }
        if (mr_test_random_below(&random, 8))
            continue;
        rig_drain(rig, MR_DRAIN_ROOM_MIN + mr_test_random_below(&random, 6000));
        while (rig_next(rig)) {
            if (rig->record.site >= SITE)
                assert_true(rig->record.site == SITE + (uint32_t)(next++ & 0xffffff));
            else if (rig->record.kind == MR_RECORD_WIDE ||
                     rig->record.kind == MR_RECORD_SEND)
                assert_true(rig->record.payload[0] == next++);
            else if (rig->record.kind == MR_RECORD_COUNTER) {
                assert_true(rig->record.payload[0] == next - 1); /* of the event before */
                counted++;
            } else if (rig->record.kind == MR_RECORD_LOSS) {
                next += rig->record.payload[0] & 0xffffffff;
                lost += rig->record.payload[0] & 0xffffffff;
            }
            assert_true(rig->record.ticks <= ticks);
        }
        if (rig->frame.size) {
            assert_true(rig->chunk.first_event + rig->chunk.events == next);
            assert_true(rig->ring->done.lost == lost);
        }
    }
    mr_ring_detach(&rig->thread);
    while (rig_drain(rig, RIG_FRAME_SIZE))
        while (rig_next(rig))
            if (rig->record.site >= SITE || rig->record.kind == MR_RECORD_WIDE ||
                rig->record.kind == MR_RECORD_SEND)
                next++;
            else if (rig->record.kind == MR_RECORD_LOSS)
                next += rig->record.payload[0] & 0xffffffff;
    assert_true(next == made);
    assert_true(lost > 0 && counted > 0);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_ended_gets_a_last_chunk_with_its_losses),
        cmocka_unit_test(the_next_thread_of_a_ring_begins_anew),
        cmocka_unit_test(a_given_up_word_is_one_lost_event),
        cmocka_unit_test(a_word_of_a_running_thread_is_given_up_after_a_while),
        cmocka_unit_test(a_given_up_word_is_not_found_again_a_lap_later),
        cmocka_unit_test(what_was_given_up_comes_again),
        cmocka_unit_test(a_running_stream_ends_with_its_source),
        cmocka_unit_test(who_waits_for_room_is_woken),
        cmocka_unit_test(every_event_is_written_or_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
