/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/pace.h"

#include "tests/unit/unit_test.h"

/* Threads that fill their rings evenly, and a writer that takes all of it in no time but for what each frame takes. */
#define RING_BYTES (UINT64_C(256) << 10) /* if nothing else is said */
#define FRAME_BYTES 65536u
#define FRAME_NS (20 * MR_MICROSECOND_NS)
#define RINGS_MAX 32u

struct world {
    struct mr_pace pace;
    bool is_hybrid;
    uint32_t rings;
    uint64_t ring_bytes;
    uint64_t rate,
        first_rate; /* of each ring but the first, and of that; bytes a millisecond */
    uint64_t held[RINGS_MAX];
    uint64_t now_ns, frames, chunks, bytes;
    uint64_t held_max, nap_max; /* what a ring held when it was looked at; ns */
    uint64_t wakes;             /* naps that a ring had to end */
};

static struct world world_new(uint32_t rings, uint64_t rate)
{
    return (struct world){
        .rings = rings, .ring_bytes = RING_BYTES, .rate = rate, .first_rate = rate};
}

static void fill(struct world *world, uint64_t ns)
{
    world->now_ns += ns;
    for (uint32_t i = 0; i < world->rings; i++)
        world->held[i] += (i ? world->rate : world->first_rate) * ns / MR_MILLISECOND_NS;
}

/* A frame of each ring once, as far as it has room. */
static void take_frame(struct world *world, struct mr_pass *pass)
{
    uint32_t chunks = 0;
    uint64_t size = 0;

    for (uint32_t i = 0; i < world->rings && size < FRAME_BYTES; i++) {
        uint64_t most = FRAME_BYTES - size;
        uint64_t taken = world->held[i] < most ? world->held[i] : most;

        if (world->held[i] > world->held_max)
            world->held_max = world->held[i];
        pass->fills_soon |= taken >= world->ring_bytes / MR_PACE_RING_SHARE;
        world->held[i] -= taken;
        size += taken;
        chunks += taken > 0;
    }
    world->frames++;
    world->chunks += chunks;
    world->bytes += size;
    pass->bytes += size;
    pass->rings = chunks > pass->rings ? chunks : pass->rings;
    pass->has_more = size == FRAME_BYTES;
    fill(world, FRAME_NS);
}

static struct mr_pass take_pass(struct world *world)
{
    struct mr_pass pass = {0};

    do
        take_frame(world, &pass);
    while (pass.has_more);
    return pass;
}

/* A nap that is long enough for that ends when a ring has been filled by a quarter. */
static void run(struct world *world, uint64_t ms)
{
    const uint64_t until_ns = world->now_ns + ms * MR_MILLISECOND_NS;

    while (world->now_ns < until_ns) {
        struct mr_pass pass = take_pass(world);
        uint64_t ns = mr_pace_after(&world->pace, &pass, world->is_hybrid);
        uint64_t quarter_ns =
            world->ring_bytes / 4 * MR_MILLISECOND_NS / world->first_rate;

        world->nap_max = ns > world->nap_max ? ns : world->nap_max;
        if (ns >= MR_PACE_WAKEABLE_NS && ns > quarter_ns) {
            world->wakes++;
            ns = quarter_ns;
        }
        fill(world, ns);
    }
}

static void a_few_busy_threads_are_sent_in_large_chunks(void **state)
{
    struct world world = world_new(4, 24u << 10);

    (void)state;
    run(&world, 1000);
    assert_true(world.bytes / world.chunks >= MR_PACE_BYTES / 2);
    assert_true(world.held_max <= RING_BYTES / 2);
}

static void many_threads_that_do_little_are_looked_at_seldom(void **state)
{
    struct world world = world_new(32, 256);

    (void)state;
    run(&world, 1000);
    assert_int_equal(world.nap_max, MR_PACE_MAX_NS);
    assert_true(world.bytes / world.chunks >= 900);
}

static void a_ring_that_fills_at_once_is_not_waited_for(void **state)
{
    struct world one = world_new(1, 800u << 10), two = world_new(2, 800u << 10);

    (void)state;
    run(&one, 1000);
    assert_true(one.held_max <= RING_BYTES * 3 / 4);
    assert_true(one.nap_max <= MR_PACE_MIN_NS);
    run(&two, 1000);
    assert_true(two.held_max <= RING_BYTES * 3 / 4);
    assert_true(two.nap_max <= 2 * MR_PACE_MIN_NS);
}

/* It need not wake the writer, which is a system call, for each quarter of its ring. */
static void one_that_fills_at_once_among_many_that_do_little_is_none_of_them(void **state)
{
    struct world world = world_new(16, 256);

    (void)state;
    world.first_rate = 800u << 10;
    run(&world, 1000);
    assert_true(world.held_max <= RING_BYTES * 3 / 4);
    assert_true(world.wakes <= 10);
}

static void small_rings_that_fill_at_once_are_not_waited_for(void **state)
{
    struct world world = world_new(4, 48u << 10);

    (void)state;
    world.ring_bytes = 16u << 10;
    run(&world, 1000);
    assert_true(world.held_max <= world.ring_bytes * 3 / 4);
    assert_true(world.wakes <= 10);
}

static void naps_grow_and_shrink_within_their_limits(void **state)
{
    const struct mr_pass little = {.bytes = 100, .rings = 1};
    const struct mr_pass enough = {.bytes = 3 * MR_PACE_BYTES, .rings = 3};
    struct mr_pace pace = {0};
    uint64_t ns = 0;

    (void)state;
    assert_int_equal(mr_pace_after(&pace, &little, false), MR_PACE_MIN_NS);
    assert_int_equal(mr_pace_after(&pace, &little, false), 2 * MR_PACE_MIN_NS);
    for (int i = 0; i < 20; i++)
        ns = mr_pace_after(&pace, &little, false);
    assert_int_equal(ns, MR_PACE_MAX_NS);
    assert_int_equal(mr_pace_after(&pace, &enough, false), MR_PACE_MAX_NS / 2);
    for (int i = 0; i < 20; i++)
        ns = mr_pace_after(&pace, &enough, false);
    assert_int_equal(ns, MR_PACE_MIN_NS);
}

/* What is left in the rings is taken at once, whatever a pass brought. */
static void rings_that_have_more_are_not_waited_for(void **state)
{
    const struct mr_pass full = {.bytes = FRAME_BYTES, .rings = 16, .has_more = true};
    struct mr_pace pace = {0};

    (void)state;
    assert_int_equal(mr_pace_after(&pace, &full, false), 0);
    assert_int_equal(mr_pace_after(&pace, &full, true), 0);
}

static void with_clock_hybrid_every_pass_is_followed_by_a_nap(void **state)
{
    const struct mr_pass enough = {.bytes = MR_PACE_BYTES, .rings = 1};
    const struct mr_pass little = {.bytes = 100, .rings = 1};
    struct mr_pace pace = {0};

    (void)state;
    assert_int_equal(mr_pace_after(&pace, &enough, true), MR_PACE_MIN_HYBRID_NS);
    assert_int_equal(mr_pace_after(&pace, &little, true), 2 * MR_PACE_MIN_HYBRID_NS);
    assert_int_equal(mr_pace_after(&pace, &enough, true), MR_PACE_MIN_HYBRID_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_few_busy_threads_are_sent_in_large_chunks),
        cmocka_unit_test(many_threads_that_do_little_are_looked_at_seldom),
        cmocka_unit_test(a_ring_that_fills_at_once_is_not_waited_for),
        cmocka_unit_test(
            one_that_fills_at_once_among_many_that_do_little_is_none_of_them),
        cmocka_unit_test(small_rings_that_fill_at_once_are_not_waited_for),
        cmocka_unit_test(naps_grow_and_shrink_within_their_limits),
        cmocka_unit_test(rings_that_have_more_are_not_waited_for),
        cmocka_unit_test(with_clock_hybrid_every_pass_is_followed_by_a_nap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
