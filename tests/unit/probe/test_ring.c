/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <errno.h>
#include <unistd.h>

#define SITE MR_SITE_FIRST_MODULE
#define WORDS MR_RING_WORDS_MIN

static void the_first_event_is_preceded_by_a_sync(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS + 5);
    rig_exit(rig, SITE, RIG_TICKS + 9);
    rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    assert_true(rig->record.payload[0] == RIG_TICKS + 5);
    rig_expect_event(rig, SITE, false, RIG_TICKS + 5);
    rig_expect_event(rig, SITE, true, RIG_TICKS + 9);
    assert_false(rig_next(rig));
    assert_true(rig->chunk.events == 2);
    assert_int_equal(rig->chunk.flags, MR_CHUNK_FIRST);
    rig_free(rig);
}

static void a_gap_of_any_length_keeps_its_time(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    uint64_t late = RIG_TICKS + (UINT64_C(1) << 40) + 3;

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    rig_exit(rig, SITE, late);
    rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, false, RIG_TICKS);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, true, late);
    rig_enter(rig, SITE, late + 1);
    rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_event(rig, SITE, false, late + 1);
    assert_true(rig->chunk.ticks == late);
    rig_free(rig);
}

static void events_go_round_the_ring_many_times(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    uint32_t sent = 0, seen = 0;

    (void)state;
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 300; i++, sent++)
            rig_enter(rig, SITE + sent, RIG_TICKS + sent);
        rig_drain(rig, RIG_FRAME_SIZE);
        while (rig_next(rig))
            if (rig->record.site >= SITE) {
                assert_true(rig->record.site == SITE + seen);
                assert_true(rig->record.ticks == RIG_TICKS + seen);
                seen++;
            }
    }
    assert_int_equal(seen, sent);
    rig_free(rig);
}

/* Fills the ring; the events that fit behind its sync record. */
static uint32_t fill(struct rig *rig)
{
    uint32_t events = 0;

    while (!(rig->thread.flags & MR_THREAD_DROPPING)) {
        rig_enter(rig, SITE + events, RIG_TICKS + events);
        events++;
    }
    return events - 1;
}

static void a_full_ring_drops_the_newest_and_tells_their_nesting(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    uint32_t fit = fill(rig);

    (void)state;
    assert_true(fit >= WORDS - 4);
    /* Lost so far: one enter. Its exit, two exits of before, one enter that stays. */
    rig_exit(rig, SITE + fit, RIG_TICKS + 1000);
    rig_exit(rig, SITE + fit - 1, RIG_TICKS + 1001);
    rig_exit(rig, SITE + fit - 2, RIG_TICKS + 1002);
    rig_enter(rig, SITE + 77, RIG_TICKS + 1003);
    rig_drain(rig, RIG_FRAME_SIZE);
    while (rig_next(rig))
        assert_true(rig->record.site >= SITE || rig->record.kind == MR_RECORD_SYNC);
    assert_true(rig->chunk.first_event + rig->chunk.events == fit);
    rig_exit(rig, SITE + 77, RIG_TICKS + 1004);
    rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_loss(rig, 5, MR_LOSS_RING_FULL, 2, 1);
    rig_expect_event(rig, SITE + 77, true, RIG_TICKS + 1004);
    assert_true(rig->chunk.first_event == fit);
    assert_true(rig->chunk.events == 6);
    assert_true(rig->chunk.lost == 0);
    assert_true(rig->frame.totals.lost[MR_LOSS_RING_FULL] == 5);
    rig_enter(rig, SITE, RIG_TICKS + 1005);
    rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_event(rig, SITE, false, RIG_TICKS + 1005);
    assert_true(rig->chunk.lost == 5);
    rig_free(rig);
}

static void dropping_ends_only_when_an_eighth_is_free(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    uint64_t tail;

    (void)state;
    (void)fill(rig);
    tail = WORDS / 8 - 1;
    mr_store_release(&rig->ring->tail, tail);
    rig_enter(rig, SITE, RIG_TICKS + 2000);
    assert_true(rig->thread.flags & MR_THREAD_DROPPING);
    mr_store_release(&rig->ring->tail, tail + 4);
    rig_enter(rig, SITE, RIG_TICKS + 2001);
    assert_false(rig->thread.flags & MR_THREAD_DROPPING);
    rig_free(rig);
}

static void block_without_a_writer_drops_at_once(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_BLOCK);

    (void)state;
    rig->pool.shared.block_timeout_ns = 60 * MR_SECOND_NS;
    (void)fill(rig);
    assert_true(mr_load_relaxed(&rig->ring->pending[MR_LOSS_BLOCK_TIMEOUT]) == 1);
    rig_free(rig);
}

static void block_waits_for_the_time_out_once_and_then_drops(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_BLOCK);
    uint64_t start_ns = mr_clock_monotonic_ns();

    (void)state;
    rig->pool.shared.block_timeout_ns = 20 * MR_MILLISECOND_NS;
    mr_store_relaxed(&rig->pool.shared.draining, 1);
    mr_store_relaxed(&rig->pool.shared.pid, (uint32_t)getpid());
    errno = 4711;
    (void)fill(rig);
    assert_int_equal(errno, 4711);
    assert_true(mr_clock_monotonic_ns() - start_ns >= 20 * MR_MILLISECOND_NS);
    for (int i = 0; i < 100000; i++) /* 2000 s if each waited */
        rig_enter(rig, SITE, RIG_TICKS);
    assert_true(mr_load_relaxed(&rig->ring->pending[MR_LOSS_BLOCK_TIMEOUT]) == 100001);
    rig_free(rig);
}

static uint64_t lost(const struct rig *rig)
{
    return mr_load_relaxed(&rig->ring->pending[MR_LOSS_BLOCK_TIMEOUT]);
}

/* A slow writer: whatever it takes ends the dropping, not an eighth of the ring. */
static void block_waits_anew_when_the_writer_has_taken_something(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_BLOCK);
    uint64_t start_ns;

    (void)state;
    rig->pool.shared.block_timeout_ns = 20 * MR_MILLISECOND_NS;
    mr_store_relaxed(&rig->pool.shared.draining, 1);
    mr_store_relaxed(&rig->pool.shared.pid, (uint32_t)getpid());
    (void)fill(rig);
    assert_true(lost(rig) == 1);
    mr_store_release(&rig->ring->tail, 4); /* less than the loss record needs */
    start_ns = mr_clock_monotonic_ns();
    rig_enter(rig, SITE, RIG_TICKS);
    assert_true(mr_clock_monotonic_ns() - start_ns >= 20 * MR_MILLISECOND_NS);
    for (int i = 0; i < 100000; i++) /* 2000 s if each waited */
        rig_enter(rig, SITE, RIG_TICKS);
    assert_true(lost(rig) == 100002);
    mr_store_release(&rig->ring->tail, 16);
    rig_enter(rig, SITE, RIG_TICKS);
    assert_true(lost(rig) == 0); /* told in the ring */
    start_ns = mr_clock_monotonic_ns();
    (void)fill(rig);
    assert_true(mr_clock_monotonic_ns() - start_ns >= 20 * MR_MILLISECOND_NS);
    assert_true(lost(rig) == 1);
    rig_free(rig);
}

static void an_event_of_a_handler_inside_a_wait_is_nested(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_BLOCK);

    (void)state;
    (void)fill(rig);
    mr_store_relaxed(&rig->pool.shared.draining, 1);
    mr_store_relaxed(&rig->pool.shared.pid, (uint32_t)getpid());
    rig->thread.flags = 0; /* as while it waits, before anything was lost */
    rig->thread.blocked_until_ns = UINT64_MAX;
    rig_enter(rig, SITE, RIG_TICKS);
    assert_true(mr_load_relaxed(&rig->ring->pending[MR_LOSS_NESTED]) == 1);
    rig_free(rig);
}

/* A handler comes between the number and the word of an event; both orders of its end. */
static void a_handler_takes_later_numbers(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    uint64_t index;

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    index = mr_arch_reserve(&rig->thread.cursor);
    rig_enter(rig, SITE + 2, RIG_TICKS + 2);
    rig_exit(rig, SITE + 2, RIG_TICKS + 3);
    rig_drain(rig, RIG_FRAME_SIZE); /* stops in front of the unwritten word */
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, false, RIG_TICKS);
    assert_false(rig_next(rig));
    mr_ring_store(&rig->thread, index,
                  mr_event_enter(SITE + 1) | (uint32_t)(RIG_TICKS + 1));
    rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_event(rig, SITE + 1, false, RIG_TICKS + 1);
    rig_expect_event(rig, SITE + 2, false, RIG_TICKS + 2);
    rig_expect_event(rig, SITE + 2, true, RIG_TICKS + 3);
    rig_free(rig);
}

static void a_number_granted_meanwhile_is_used(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    struct mr_event event = {.bits = mr_event_enter(SITE + 1), .words = 1};
    uint64_t index;

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    while (rig->thread.cursor < rig->thread.limit)
        rig_enter(rig, SITE, RIG_TICKS);
    index = mr_arch_reserve(&rig->thread.cursor); /* not granted: slow path, but first */
    rig_enter(rig, SITE + 2, RIG_TICKS);          /* a handler, which is granted more */
    assert_true(rig->thread.limit > index);
    mr_ring_event_slow(&rig->thread, &event, RIG_TICKS, index);
    rig_enter(rig, SITE + 3, RIG_TICKS);
    rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    do
        assert_true(rig_next(rig));
    while (rig->record.site == SITE);
    assert_true(rig->record.site == SITE + 1);
    rig_expect_event(rig, SITE + 2, false, RIG_TICKS);
    rig_expect_event(rig, SITE + 3, false, RIG_TICKS);
    assert_false(rig_next(rig));
    rig_free(rig);
}

static void a_number_that_is_refused_goes_back(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    uint64_t cursor;

    (void)state;
    (void)fill(rig);
    cursor = rig->thread.cursor;
    assert_true(cursor <= WORDS);
    for (int i = 0; i < 100; i++)
        rig_event(rig, mr_event_enter(SITE), RIG_TICKS);
    assert_true(rig->thread.cursor == cursor);
    rig_free(rig);
}

static void a_wide_event_carries_its_address(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);

    (void)state;
    mr_ring_wide(&rig->thread, MR_WORD_EXIT, UINT64_C(0x7fff12345678), mr_clock_ticks());
    rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_kind(rig, MR_RECORD_WIDE);
    assert_true(rig->record.is_exit);
    assert_true(rig->record.payload[0] == UINT64_C(0x7fff12345678));
    assert_true(rig->chunk.events == 1);
    rig_free(rig);
}

/* What an interrupted event does after the handler: its time was read before. */
static void finish(struct rig *rig, uint32_t site, uint64_t ticks, uint64_t index)
{
    struct mr_thread *thread = &rig->thread;

    if (index >= thread->limit || ticks >> 31 != thread->period)
        mr_ring_event_one_slow(thread, mr_event_enter(site), ticks, index);
    else
        mr_ring_store(thread, index, mr_event_enter(site) | (uint32_t)ticks);
}

/* Longer than a low half that is read as a step forward. */
#define LONG (UINT64_C(5) << 30)

static void a_long_handler_before_the_number_turns_no_time_forward(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    uint64_t index;

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    rig_enter(rig, SITE + 1, RIG_TICKS + LONG); /* the handler's: with a sync */
    index = mr_arch_reserve(&rig->thread.cursor);
    finish(rig, SITE + 2, RIG_TICKS + 1, index);
    rig_enter(rig, SITE + 3, RIG_TICKS + LONG + 7);
    rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, false, RIG_TICKS);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE + 1, false, RIG_TICKS + LONG);
    rig_expect_event(rig, SITE + 2, false, RIG_TICKS + LONG); /* clamped */
    rig_expect_event(rig, SITE + 3, false, RIG_TICKS + LONG + 7);
    assert_false(rig_next(rig));
    rig_free(rig);
}

static void a_long_handler_after_the_number_leaves_it_its_time(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    uint64_t index;

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    index = mr_arch_reserve(&rig->thread.cursor);
    rig_enter(rig, SITE + 1, RIG_TICKS + LONG);
    finish(rig, SITE + 2, RIG_TICKS + 1, index);
    rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, false, RIG_TICKS);
    rig_expect_event(rig, SITE + 2, false, RIG_TICKS + 1);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE + 1, false, RIG_TICKS + LONG);
    assert_false(rig_next(rig));
    rig_free(rig);
}

/* Nobody can say any more under which sync the number stands: it is lost, and counted. */
static void long_handlers_on_both_sides_cost_the_event(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    uint64_t index;

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    rig_enter(rig, SITE + 1, RIG_TICKS + LONG);
    index = mr_arch_reserve(&rig->thread.cursor);
    rig_enter(rig, SITE + 3, RIG_TICKS + 2 * LONG);
    finish(rig, SITE + 2, RIG_TICKS + 1, index);
    mr_ring_detach(&rig->thread); /* so that the hole is not waited for */
    rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, false, RIG_TICKS);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE + 1, false, RIG_TICKS + LONG);
    rig_expect_loss(rig, 1, MR_LOSS_NESTED, 0, 0);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE + 3, false, RIG_TICKS + 2 * LONG);
    assert_false(rig_next(rig));
    rig_free(rig);
}

/*
 * A clock that jumps, either way and as far as can be: what is read never runs back. (A chunk may begin before the last record of
 * the one before, where that was followed by inversions alone; decode goes on from the record then.)
 */
static void a_clock_that_jumps_is_followed_and_never_back(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    struct mr_test_random random = mr_test_random_new();
    uint64_t now = RIG_TICKS, highest = 0, last = 0, in_chunk = 0;

    (void)state;
    for (uint32_t i = 0; i < 20000; i++) {
        uint64_t step = mr_test_random_next(&random) >> mr_test_random_below(&random, 64);

        step &= (UINT64_C(1) << 40) - 1;
        now = mr_test_random_below(&random, 4) && now + step < UINT64_C(1) << 61
                  ? now + step
                  : (step < now ? now - step : now);
        rig_enter(rig, SITE + i, now);
        highest = now > highest ? now : highest;
        if (i % 100 < 99)
            continue;
        rig_drain(rig, RIG_FRAME_SIZE);
        while (rig_next(rig)) {
            if (rig->reader.left + 1 + rig->record.words == rig->chunk.records)
                in_chunk = rig->chunk.ticks;
            assert_true(rig->record.ticks >= in_chunk && rig->record.ticks <= highest);
            in_chunk = rig->record.ticks;
            last = in_chunk > last ? in_chunk : last;
        }
        assert_true(last == highest);
    }
    rig_free(rig);
}

static void a_counted_event_has_its_bytes(void **state)
{
    static const uint64_t values[] = {UINT64_C(0x0102030405060708), UINT64_MAX};
    static const uint8_t golden[] = {
        /* exit of the site, then kind 14 with 2 words, both at the low half of the ticks */
        0x34, 0x12, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc1, 0x34, 0x12, 0x00,
        0x00, 0x0e, 0x02, 0x00, 0x80, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03,
        0x02, 0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    uint64_t ticks = (((RIG_TICKS >> 32) + 1) << 32) + 0x1234;

    (void)state;
    mr_ring_event_counted(&rig->thread, mr_event_exit(SITE), ticks, values, 2);
    rig_drain(rig, RIG_FRAME_SIZE);
    /* Behind the chunk's header and a sync. */
    assert_int_equal(rig->frame.size, MR_CHUNK_HEADER_SIZE + 16 + sizeof(golden));
    assert_memory_equal(rig->out + MR_CHUNK_HEADER_SIZE + 16, golden, sizeof(golden));
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, true, ticks);
    rig_expect_kind(rig, MR_RECORD_COUNTER);
    assert_int_equal(rig->record.words, 2);
    assert_true(rig->record.payload[0] == values[0]);
    assert_true(rig->record.payload[1] == MR_WORD_PAYLOAD_MASK);
    assert_true(rig->chunk.events == 1);
    assert_false(rig_next(rig));
    rig_free(rig);
}

static void put_landing(struct rig *rig, const uint64_t *payload, uint32_t words,
                        uint64_t ticks)
{
    struct mr_event event = {.bits = mr_word_record(MR_RECORD_LANDING, words, 0, 0),
                             .rest = payload,
                             .words = 1 + words};

    mr_ring_event_record(&rig->thread, &event, ticks);
}

static void a_landing_is_no_event_and_has_its_bytes(void **state)
{
    static const uint64_t payload[] = {1, UINT64_C(0x0102030405060708), 9};
    static const uint8_t golden[] = {
        /* kind 18 with 3 words at the low half of the ticks, and the words */
        0x34, 0x12, 0x00, 0x00, 0x12, 0x03, 0x00, 0x80, 0x01, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x80, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03,
        0x02, 0x81, 0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80};
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    uint64_t ticks = (((RIG_TICKS >> 32) + 1) << 32) + 0x1234;

    (void)state;
    put_landing(rig, payload, 3, ticks);
    rig_drain(rig, RIG_FRAME_SIZE);
    assert_int_equal(rig->frame.size, MR_CHUNK_HEADER_SIZE + 16 + sizeof(golden));
    assert_memory_equal(rig->out + MR_CHUNK_HEADER_SIZE + 16, golden, sizeof(golden));
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_kind(rig, MR_RECORD_LANDING);
    assert_true(rig->chunk.events == 0);
    assert_false(rig_next(rig));
    rig_free(rig);
}

/* One that finds no room is told as one event lost, so that nobody takes the tree for whole. */
static void a_landing_is_whole_or_counted_as_lost(void **state)
{
    uint64_t payload[MR_LANDING_WORDS_MAX] = {0}, made = 0, seen = 0, lost = 0;
    struct mr_test_random random = mr_test_random_new();
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);

    (void)state;
    for (int round = 0; round < 200; round++) {
        for (uint64_t i = mr_test_random_below(&random, 100); i > 0; i--, made++) {
            uint32_t words =
                2 + (uint32_t)mr_test_random_below(&random, MR_LANDING_WORDS_MAX - 1);

            payload[words - 1] = words;
            put_landing(rig, payload, words, RIG_TICKS + made);
            payload[words - 1] = 0;
        }
        rig_drain(rig, RIG_FRAME_SIZE);
        while (rig_next(rig))
            if (rig->record.kind == MR_RECORD_LANDING) {
                assert_true(rig->record.payload[rig->record.words - 1] ==
                            rig->record.words);
                seen++;
            } else if (rig->record.kind == MR_RECORD_LOSS) {
                lost += rig->record.payload[0] & 0xffffffff;
            }
    }
    /* What is lost is told with the next record that finds room. */
    while (rig_drain(rig, RIG_FRAME_SIZE))
        ;
    put_landing(rig, payload, 2, RIG_TICKS + made);
    rig_drain(rig, RIG_FRAME_SIZE);
    while (rig_next(rig))
        if (rig->record.kind == MR_RECORD_LOSS)
            lost += rig->record.payload[0] & 0xffffffff;
    assert_true(seen + lost == made);
    assert_true(seen > 100 && lost > 100);
    rig_free(rig);
}

static void a_record_of_many_words_has_its_bytes(void **state)
{
    static const uint64_t payload[] = {UINT64_C(0x0102030405060708), UINT64_MAX, 1, 2};
    static const uint8_t golden[] = {
        /* kind 4 with 4 words, at the low half of the ticks; payload of 63 bits each */
        0x34, 0x12, 0x00, 0x00, 0x04, 0x04, 0x00, 0x80, 0x08, 0x07,
        0x06, 0x05, 0x04, 0x03, 0x02, 0x81, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x80, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80};
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    uint64_t ticks = (((RIG_TICKS >> 32) + 1) << 32) + 0x1234;
    struct mr_event event = {
        .bits = mr_word_record(MR_RECORD_SEND, 4, 0, 0), .rest = payload, .words = 5};

    (void)state;
    mr_ring_event_record(&rig->thread, &event, ticks);
    rig_drain(rig, RIG_FRAME_SIZE);
    assert_int_equal(rig->frame.size, MR_CHUNK_HEADER_SIZE + 16 + sizeof(golden));
    assert_memory_equal(rig->out + MR_CHUNK_HEADER_SIZE + 16, golden, sizeof(golden));
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_kind(rig, MR_RECORD_SEND);
    assert_int_equal(rig->record.words, 4);
    assert_true(rig->record.payload[1] == MR_WORD_PAYLOAD_MASK);
    assert_true(rig->chunk.events == 1);
    /* Both ways into the ring: the second finds its numbers granted. */
    mr_ring_event_record(&rig->thread, &event, ticks + 1);
    rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_kind(rig, MR_RECORD_SEND);
    assert_true(rig->record.payload[0] == payload[0]);
    assert_true(rig->record.payload[3] == 2);
    assert_false(rig_next(rig));
    rig_free(rig);
}

/* Whatever room is left: event and counters are both there, or the event is lost. */
static void a_counted_event_is_whole_or_lost(void **state)
{
    static const uint64_t values[] = {1, 2, 3, 4};

    (void)state;
    for (uint32_t before = 0; before < 8; before++) {
        struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
        uint64_t made = 0, events = 0, counters = 0;

        for (uint32_t i = 0; i < before; i++, made++)
            rig_enter(rig, SITE, RIG_TICKS);
        for (; made < WORDS; made++)
            mr_ring_event_counted(&rig->thread, mr_event_enter(SITE), RIG_TICKS + made,
                                  values, 4);
        rig_drain(rig, RIG_FRAME_SIZE);
        while (rig_next(rig)) {
            events += rig->record.site == SITE;
            counters += rig->record.kind == MR_RECORD_COUNTER;
        }
        assert_true(events == counters + before);
        assert_true(counters >= (WORDS - 8 - before) / 6);
        rig_enter(rig, SITE, RIG_TICKS + 5000);
        rig_drain(rig, RIG_FRAME_SIZE);
        rig_expect_kind(rig, MR_RECORD_SYNC);
        rig_expect_loss(rig, made - events, MR_LOSS_RING_FULL, 0, made - events);
        rig_free(rig);
    }
}

static void a_handler_inside_a_counted_event_takes_later_numbers(void **state)
{
    static const uint64_t values[] = {7};
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    struct mr_event event = {
        .bits = mr_event_enter(SITE + 1), .words = 3, .values = values};
    uint64_t index;

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    index = mr_arch_reserve_run(&rig->thread.cursor, 3);
    rig_enter(rig, SITE + 2, RIG_TICKS + 5); /* the handler's */
    rig_drain(rig, RIG_FRAME_SIZE);          /* what is there of ours is nothing yet */
    mr_ring_event_slow(&rig->thread, &event, RIG_TICKS + 3, index);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, false, RIG_TICKS);
    assert_false(rig_next(rig));
    rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_event(rig, SITE + 1, false, RIG_TICKS + 3);
    rig_expect_kind(rig, MR_RECORD_COUNTER);
    rig_expect_event(rig, SITE + 2, false, RIG_TICKS + 5);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_handler_before_the_number_turns_no_time_forward),
        cmocka_unit_test(a_long_handler_after_the_number_leaves_it_its_time),
        cmocka_unit_test(long_handlers_on_both_sides_cost_the_event),
        cmocka_unit_test(a_clock_that_jumps_is_followed_and_never_back),
        cmocka_unit_test(the_first_event_is_preceded_by_a_sync),
        cmocka_unit_test(a_gap_of_any_length_keeps_its_time),
        cmocka_unit_test(events_go_round_the_ring_many_times),
        cmocka_unit_test(a_full_ring_drops_the_newest_and_tells_their_nesting),
        cmocka_unit_test(dropping_ends_only_when_an_eighth_is_free),
        cmocka_unit_test(block_without_a_writer_drops_at_once),
        cmocka_unit_test(block_waits_for_the_time_out_once_and_then_drops),
        cmocka_unit_test(block_waits_anew_when_the_writer_has_taken_something),
        cmocka_unit_test(an_event_of_a_handler_inside_a_wait_is_nested),
        cmocka_unit_test(a_handler_takes_later_numbers),
        cmocka_unit_test(a_number_granted_meanwhile_is_used),
        cmocka_unit_test(a_number_that_is_refused_goes_back),
        cmocka_unit_test(a_wide_event_carries_its_address),
        cmocka_unit_test(a_counted_event_has_its_bytes),
        cmocka_unit_test(a_record_of_many_words_has_its_bytes),
        cmocka_unit_test(a_landing_is_no_event_and_has_its_bytes),
        cmocka_unit_test(a_landing_is_whole_or_counted_as_lost),
        cmocka_unit_test(a_counted_event_is_whole_or_lost),
        cmocka_unit_test(a_handler_inside_a_counted_event_takes_later_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
