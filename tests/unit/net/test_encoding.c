/* SPDX-License-Identifier: Apache-2.0 */
#include "net/encoding.h"

#include <string.h>

#include "tests/unit/net/net_test.h"

/*
 * A link, a receiver, a writer and a program, in steps of a millisecond: the program makes `rate` events per ns, of which the
 * writer encodes what it has time for into a bounded outbox; the link carries bytes, the receiver takes events.
 */
#define STEP_NS UINT64_C(1000000)
#define OUTBOX 16e6
#define FRAME_EVENTS 8000.0

struct world {
    double rate;     /* events per ns that the program makes */
    double link;     /* bytes per ns */
    double receiver; /* events per ns, for words; compact ones take twice the time */
    double size[MR_ENCODING_COUNT]; /* bytes per event */
    double cost[MR_ENCODING_COUNT]; /* ns per event of the writer */
    struct mr_encoding_choice choice;
    struct mr_encoding_sample sums;
    /* Fractions of what `sums` holds. */
    double events, bytes, stalled, busy, lost;
    /* The outbox: events of up to two levels, oldest first. */
    double waiting[2];
    enum mr_encoding level[2];
};

static struct world world_new(double rate, double link, double receiver,
                              enum mr_encoding base)
{
    struct world world = {.rate = rate,
                          .link = link,
                          .receiver = receiver,
                          .size = {8, 1.85, 1.47},
                          .cost = {0.5, 3, 5.5}};

    mr_encoding_init(&world.choice, base, MR_ENCODING_COMPACT_ZSTD, MR_ENCODING_NETWORK);
    world.level[0] = world.level[1] = base;
    return world;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static void make(struct world *world)
{
    double wanted = world->rate * STEP_NS, held = 0, can;

    for (int i = 0; i < 2; i++)
        held += world->waiting[i] * world->size[world->level[i]];
    can = (OUTBOX - held) / world->size[world->choice.level];
    can = least(can, STEP_NS / world->cost[world->choice.level]);
    can = can < 0 ? 0 : least(can, wanted);
    world->waiting[1] += can;
    world->busy += can * world->cost[world->choice.level];
    world->lost += wanted - can;
}

static void carry(struct world *world)
{
    double ns = STEP_NS;

    for (int i = 0; i < 2 && ns > 0; i++) {
        double size = world->size[world->level[i]];
        double slow = world->level[i] == MR_ENCODING_WORDS ? 1 : 2;
        double per_ns = least(world->link / size, world->receiver / slow);
        double events = least(world->waiting[i], per_ns * ns);

        world->waiting[i] -= events;
        world->events += events;
        world->bytes += events * size;
        ns -= events / per_ns;
    }
    if (world->waiting[0] + world->waiting[1] > FRAME_EVENTS)
        world->stalled += STEP_NS;
}

static void number_frames(struct world *world)
{
    struct mr_encoding_sample *sums = &world->sums;

    sums->now_ns += STEP_NS;
    sums->events = (uint64_t)world->events;
    sums->bytes = (uint64_t)world->bytes;
    sums->stalled_ns = (uint64_t)world->stalled;
    sums->busy_ns = (uint64_t)world->busy;
    sums->lost = (uint64_t)world->lost;
    sums->acked = (uint64_t)(world->events / FRAME_EVENTS);
    sums->made = (uint64_t)((world->events + world->waiting[0] + world->waiting[1]) /
                            FRAME_EVENTS);
}

/* What waits before a change is of the level before. */
static void turn(struct world *world)
{
    world->waiting[0] += world->waiting[1];
    world->level[0] = world->level[1];
    world->waiting[1] = 0;
    world->level[1] = world->choice.level;
}

static void run(struct world *world, double seconds)
{
    for (int i = 0; i < seconds * 1000; i++) {
        make(world);
        carry(world);
        number_frames(world);
        if (mr_encoding_step(&world->choice, &world->sums))
            turn(world);
    }
}

static void a_link_with_room_stays_at_its_base(void **state)
{
    struct world world = world_new(0.05, 1.2, 1, MR_ENCODING_COMPACT);

    (void)state;
    run(&world, 60);
    assert_int_equal(world.choice.level, MR_ENCODING_COMPACT);
    assert_int_equal(world.choice.changes, 0);
    assert_int_equal(world.choice.reason, MR_ENCODING_NETWORK);
}

/* 100 Mbit/s: even compressed, more is made than goes. */
static void a_full_link_gets_the_smallest(void **state)
{
    struct world world = world_new(0.05, 0.0125, 1, MR_ENCODING_COMPACT);

    (void)state;
    run(&world, 60);
    assert_int_equal(world.choice.level, MR_ENCODING_COMPACT_ZSTD);
    assert_int_equal(world.choice.changes, 1);
    assert_int_equal(world.choice.reason, MR_ENCODING_LINK_FULL);
}

/* A tunnel on this host: words first, then what fits. */
static void a_full_tunnel_goes_all_the_way(void **state)
{
    struct world world = world_new(0.05, 0.01, 1, MR_ENCODING_WORDS);

    (void)state;
    run(&world, 60);
    assert_int_equal(world.choice.level, MR_ENCODING_COMPACT_ZSTD);
    assert_int_equal(world.choice.changes, 2);
}

/* 1 Gbit/s and 40 M events/s: words do not fit, compact ones do. */
static void no_more_is_done_than_the_link_needs(void **state)
{
    struct world world = world_new(0.04, 0.125, 1, MR_ENCODING_WORDS);

    (void)state;
    run(&world, 60);
    assert_int_equal(world.choice.level, MR_ENCODING_COMPACT);
    assert_true(world.choice.changes <= 3);
}

/* The receiver takes longer for what is smaller: tries are taken back, and become rare. */
static void a_slow_receiver_is_no_full_link(void **state)
{
    struct world world = world_new(0.1, 5, 0.02, MR_ENCODING_WORDS);
    uint64_t changes;

    (void)state;
    run(&world, 120);
    changes = world.choice.changes;
    assert_true(changes >= 2 && changes <= 16);
    assert_int_equal(world.choice.level, MR_ENCODING_WORDS);
    assert_int_equal(world.choice.reason, MR_ENCODING_NO_GAIN);
    run(&world, 640);
    assert_true(world.choice.changes - changes <= 24);
}

/*
 * Writer and receiver share a processor: what the one does for smaller frames, the other has not. The link is full no more
 * then, and fewer events arrive.
 */
static void a_writer_that_has_no_time_left_is_no_gain(void **state)
{
    struct world world = world_new(0.2, 5, 0.08, MR_ENCODING_WORDS);

    (void)state;
    world.cost[MR_ENCODING_COMPACT] = 30;
    run(&world, 60);
    assert_true(world.choice.changes >= 2);
    assert_int_equal(world.choice.level, MR_ENCODING_WORDS);
    assert_int_equal(world.choice.reason, MR_ENCODING_NO_GAIN);
}

static void what_is_left_of_a_busy_hour_goes_back(void **state)
{
    struct world world = world_new(0.05, 0.0125, 1, MR_ENCODING_COMPACT);

    (void)state;
    run(&world, 20);
    assert_int_equal(world.choice.level, MR_ENCODING_COMPACT_ZSTD);
    world.rate = 0.001;
    run(&world, 30);
    assert_int_equal(world.choice.level, MR_ENCODING_COMPACT);
    assert_int_equal(world.choice.reason, MR_ENCODING_LINK_FREE);
}

/* It has room now, and would be full again below. */
static void a_link_that_is_nearly_full_does_not_swing(void **state)
{
    struct world world = world_new(0.05, 0.0125, 1, MR_ENCODING_COMPACT);

    (void)state;
    run(&world, 20);
    world.rate = 0.9 * 0.0125 / 1.47;
    run(&world, 120);
    assert_int_equal(world.choice.level, MR_ENCODING_COMPACT_ZSTD);
    assert_int_equal(world.choice.changes, 1);
}

/* 300 M events/s over 100 Gbit/s: only words can be written that fast. */
static void a_writer_that_cannot_keep_up_writes_words(void **state)
{
    struct world world = world_new(0.5, 12.5, 10, MR_ENCODING_COMPACT);

    (void)state;
    run(&world, 5);
    assert_int_equal(world.choice.level, MR_ENCODING_WORDS);
    assert_int_equal(world.choice.reason, MR_ENCODING_WRITER_BUSY);
}

static void what_was_asked_for_stays(void **state)
{
    struct world world = world_new(0.5, 0.001, 10, MR_ENCODING_WORDS);

    (void)state;
    for (uint32_t level = 0; level < MR_ENCODING_COUNT; level++) {
        mr_encoding_init(&world.choice, (enum mr_encoding)level, (enum mr_encoding)level,
                         MR_ENCODING_ASKED);
        run(&world, 10);
        world.link = 100;
        run(&world, 10);
        assert_int_equal(world.choice.level, level);
        assert_int_equal(world.choice.changes, 0);
    }
}

static void a_receiver_that_takes_nothing_changes_nothing(void **state)
{
    struct world world = world_new(0.05, 1e-12, 1, MR_ENCODING_COMPACT);

    (void)state;
    run(&world, 30);
    assert_true(world.choice.changes <= 1);
}

static void every_level_and_reason_has_a_text(void **state)
{
    (void)state;
    assert_string_equal(mr_encoding_name(MR_ENCODING_COMPACT_ZSTD), "compact+zstd");
    assert_string_equal(mr_encoding_name(99), "?");
    for (uint32_t i = 0; i <= MR_ENCODING_WRITER_BUSY; i++)
        assert_true(strlen(mr_encoding_reason_text(i)) > 5);
    assert_string_equal(mr_encoding_reason_text(99), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_with_room_stays_at_its_base),
        cmocka_unit_test(a_full_link_gets_the_smallest),
        cmocka_unit_test(a_full_tunnel_goes_all_the_way),
        cmocka_unit_test(no_more_is_done_than_the_link_needs),
        cmocka_unit_test(a_slow_receiver_is_no_full_link),
        cmocka_unit_test(a_writer_that_has_no_time_left_is_no_gain),
        cmocka_unit_test(what_is_left_of_a_busy_hour_goes_back),
        cmocka_unit_test(a_link_that_is_nearly_full_does_not_swing),
        cmocka_unit_test(a_writer_that_cannot_keep_up_writes_words),
        cmocka_unit_test(what_was_asked_for_stays),
        cmocka_unit_test(a_receiver_that_takes_nothing_changes_nothing),
        cmocka_unit_test(every_level_and_reason_has_a_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
