/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/standing.h"

#include "tests/unit/unit_test.h"

/* A program, an outbox and a receiver, in steps. */
#define STEP_NS (100 * MR_MICROSECOND_NS)
#define OUTBOX (UINT64_C(16) << 20)
#define START_NS (5 * MR_SECOND_NS)

struct world {
    struct mr_standing standing;
    struct mr_standing_look look;
    uint64_t made, refused; /* bytes; refused: for want of room, not because rings wait */
    uint64_t waited_ns;
    uint64_t held_max;
};

static struct world world_new(uint64_t patience_ns)
{
    return (struct world){.look = {.now_ns = START_NS, .patience_ns = patience_ns}};
}

/* Bytes that `mib` a second are in a step. */
static uint64_t in_step(uint64_t mib)
{
    return (mib << 20) / (MR_SECOND_NS / STEP_NS);
}

/* The program makes `made` MiB/s, the receiver takes `taken` at most. */
static void pass(struct world *world, uint64_t ms, uint64_t made, uint64_t taken)
{
    struct mr_standing_look *look = &world->look;

    world->held_max = 0;
    for (uint64_t i = 0; i < ms * MR_MILLISECOND_NS / STEP_NS; i++) {
        uint64_t out = in_step(taken) < look->held ? in_step(taken) : look->held;
        uint64_t room, in;

        look->held -= out;
        look->acked += out;
        look->now_ns += STEP_NS;
        if (mr_standing_step(&world->standing, look)) {
            look->is_long = false;
            world->waited_ns += STEP_NS;
            continue;
        }
        room = OUTBOX - look->held;
        in = in_step(made) < room ? in_step(made) : room;
        look->is_long = in < in_step(made);
        world->refused += in_step(made) - in;
        world->made += in;
        look->held += in;
        world->held_max = look->held > world->held_max ? look->held : world->held_max;
    }
}

static void a_fast_receiver_that_is_overrun_has_little_under_way(void **state)
{
    struct world world = world_new(MR_STANDING_PERIOD_NS);

    (void)state;
    pass(&world, 100, 1600, 800); /* full after 20 ms; stands after 25 */
    assert_true(world.standing.stands);
    assert_true(world.held_max > OUTBOX - in_step(1600));
    pass(&world, 1000, 1600, 800);
    assert_true(world.standing.stands);
    assert_true(world.held_max < MR_STANDING_WINDOW + in_step(1600));
    pass(&world, 100, 10, 800); /* it is fast enough again */
    assert_false(world.standing.stands);
}

static void patience_is_longer_where_events_would_be_lost(void **state)
{
    struct world world = world_new(100 * MR_MILLISECOND_NS);

    (void)state;
    pass(&world, 70, 1600, 800);
    assert_false(world.standing.stands);
    pass(&world, 100, 100, 800); /* a burst is over */
    pass(&world, 70, 1600, 800);
    assert_false(world.standing.stands);
    assert_true(world.waited_ns == 0);
    pass(&world, 100, 1600, 800);
    assert_true(world.standing.stands);
}

static void a_slow_receiver_has_all_of_the_queue(void **state)
{
    struct world world = world_new(MR_STANDING_PERIOD_NS);

    (void)state;
    pass(&world, 5000, 1600, 10);
    assert_true(world.waited_ns == 0);
    assert_true(world.look.held > OUTBOX - 2 * in_step(1600));
}

static void a_queue_that_was_never_full_is_never_short(void **state)
{
    struct world world = world_new(MR_STANDING_PERIOD_NS);

    (void)state;
    pass(&world, 200, 10, 800);
    pass(&world, 1000, 10, 0); /* the receiver pauses */
    pass(&world, 200, 10, 800);
    pass(&world, 60, 1000, 800); /* a burst that finds room */
    assert_true(world.waited_ns == 0 && world.refused == 0);
    assert_true(world.held_max > 10 << 20);
}

static void a_receiver_that_pauses_while_it_stands_is_sent_all_there_is_room_for(
    void **state)
{
    struct world world = world_new(MR_STANDING_PERIOD_NS);
    uint64_t made;

    (void)state;
    pass(&world, 200, 1600, 800);
    assert_true(world.standing.stands);
    made = world.made;
    pass(&world, 2 * MR_STANDING_PERIOD_NS / MR_MILLISECOND_NS + 100, 100, 0);
    assert_false(world.standing.stands);
    assert_true(world.made - made > 9 << 20);
}

static void another_connection_begins_anew(void **state)
{
    struct world world = world_new(MR_STANDING_PERIOD_NS);

    (void)state;
    pass(&world, 200, 1600, 800);
    assert_true(world.standing.stands);
    mr_standing_reset(&world.standing);
    assert_false(world.standing.stands);
    world.look.acked = 0;
    assert_false(mr_standing_step(&world.standing, &world.look));
    pass(&world, 200, 1600, 800);
    assert_true(world.standing.stands);
}

/* The writer sleeps while nothing comes. */
static void looks_may_be_far_apart(void **state)
{
    struct world world = world_new(MR_STANDING_PERIOD_NS);

    (void)state;
    pass(&world, 200, 1600, 800);
    world.look.now_ns += 1000000 * MR_SECOND_NS;
    assert_false(mr_standing_step(&world.standing, &world.look));
    assert_false(world.standing.stands);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fast_receiver_that_is_overrun_has_little_under_way),
        cmocka_unit_test(patience_is_longer_where_events_would_be_lost),
        cmocka_unit_test(a_slow_receiver_has_all_of_the_queue),
        cmocka_unit_test(a_queue_that_was_never_full_is_never_short),
        cmocka_unit_test(
            a_receiver_that_pauses_while_it_stands_is_sent_all_there_is_room_for),
        cmocka_unit_test(another_connection_begins_anew),
        cmocka_unit_test(looks_may_be_far_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
