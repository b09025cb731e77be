/* SPDX-License-Identifier: Apache-2.0 */
/* worker/lanes_even.h: what it tells of drivers, from what lanes say of their turns. No lane runs. */
#include "worker/lanes_even.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#define LANES 3u
#define DRIVERS 2u

static enum mr_status idle_process(struct mr_filter *filter, struct mr_batch *batch)
{
    MR_UNUSED(filter);
    mr_batch_free(batch);
    return MR_OK;
}

static const struct mr_filter_kind idle_filter = {.name = "idle",
                                                  .process = idle_process};

/* Lanes 0 and 2 have the first driver, lane 1 the other. */
struct rig {
    struct mr_lane lanes[LANES];
    struct mr_driver drivers[DRIVERS];
    struct mr_lanes_even even;
};

static struct rig *begin(void)
{
    const struct mr_graph_node node = {.kind = &idle_filter};
    struct rig *rig = calloc(1, sizeof(*rig));
    struct mr_error error = MR_ERROR_NONE;

    assert_non_null(rig);
    for (uint32_t i = 0; i < LANES; i++) {
        struct mr_lane *lane = &rig->lanes[i];

        assert_int_equal(mr_graph_new(&node, 1, "lane", &lane->config.graph, &error),
                         MR_OK);
        mr_store_relaxed(&lane->driven.driver, &rig->drivers[i % DRIVERS]);
    }
    mr_lanes_even_open(
        &rig->even,
        &(struct mr_lanes_even_parts){rig->lanes, LANES, rig->drivers, DRIVERS}, 0);
    return rig;
}

static void end(struct rig *rig)
{
    for (uint32_t i = 0; i < LANES; i++)
        mr_graph_free(rig->lanes[i].config.graph);
    free(rig);
}

/* A second goes by, in which turns of the lane ended that took so long. */
static void turn(struct rig *rig, const uint64_t busy_ms[LANES])
{
    for (uint32_t i = 0; i < LANES; i++)
        mr_add_relaxed(&rig->lanes[i].driven.busy_ns, busy_ms[i] * MR_MILLISECOND_NS);
    mr_lanes_even_turn(&rig->even, rig->even.sampled_ns + MR_SECOND_NS);
}

static void a_driver_is_as_busy_as_its_lanes_together(void **state)
{
    struct rig *rig = begin();

    MR_UNUSED(state);
    turn(rig, (const uint64_t[LANES]){300, 250, 400});
    assert_true(rig->even.drivers[0] > 0.699 && rig->even.drivers[0] < 0.701);
    assert_true(rig->even.drivers[1] > 0.249 && rig->even.drivers[1] < 0.251);
    turn(rig, (const uint64_t[LANES]){0, 0, 0});
    assert_true(rig->even.drivers[0] == 0);
    end(rig);
}

/* A turn that began in the second before counts where it ends. */
static void turns_that_began_before_make_it_no_busier_than_all_the_time(void **state)
{
    struct rig *rig = begin();

    MR_UNUSED(state);
    turn(rig, (const uint64_t[LANES]){600, 1500, 401});
    assert_true(rig->even.drivers[0] == 1);
    assert_true(rig->even.drivers[1] == 1);
    end(rig);
}

static void a_lane_brings_along_what_it_did_at_another_driver_up_to_all_the_time(
    void **state)
{
    struct rig *rig = begin();

    MR_UNUSED(state);
    mr_store_relaxed(&rig->lanes[2].driven.driver, &rig->drivers[1]);
    turn(rig, (const uint64_t[LANES]){200, 700, 700});
    assert_true(rig->even.drivers[0] > 0.199 && rig->even.drivers[0] < 0.201);
    assert_true(rig->even.drivers[1] == 1);
    end(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_driver_is_as_busy_as_its_lanes_together),
        cmocka_unit_test(turns_that_began_before_make_it_no_busier_than_all_the_time),
        cmocka_unit_test(
            a_lane_brings_along_what_it_did_at_another_driver_up_to_all_the_time)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
