/* SPDX-License-Identifier: Apache-2.0 */
/* worker/share.h: who sheds how many; and that a level settles. */
#include "worker/share.h"

#include "tests/unit/unit_test.h"

#define LEVEL_MAX 16

static struct mr_agent_view up(double utilisation, uint32_t senders)
{
    return (struct mr_agent_view){MR_WORKER_UP, 1, utilisation, senders};
}

static uint32_t excess(struct mr_agent_view own, struct mr_agent_view other)
{
    return mr_share_excess(&own, &other, 1);
}

static void a_worker_alone_keeps_what_it_has(void **state)
{
    struct mr_agent_view own = up(1, 100);

    MR_UNUSED(state);
    assert_int_equal(mr_share_excess(&own, NULL, 0), 0);
}

static void what_is_above_the_mean_goes_in_proportion(void **state)
{
    MR_UNUSED(state);
    assert_int_equal(excess(up(0.8, 8), up(0, 0)), 4);
    assert_int_equal(excess(up(0.8, 8), up(0.4, 8)), 2);
    assert_int_equal(excess(up(0, 0), up(0.8, 8)), 0);
    assert_int_equal(excess(up(0.5, 8), up(0.3, 8)), 0); /* 0.1 above the mean: noise */
}

static void equally_busy_workers_even_out_by_number(void **state)
{
    MR_UNUSED(state);
    assert_int_equal(excess(up(0, 8), up(0, 0)), 4);
    assert_int_equal(excess(up(1, 9), up(1, 1)), 4);
    assert_int_equal(excess(up(0, 5), up(0, 2)), 0);    /* 1.5 above */
    assert_int_equal(excess(up(0, 100), up(0, 80)), 0); /* not an eighth */
    assert_int_equal(excess(up(0, 120), up(0, 80)), 20);
}

static void many_quiet_senders_are_no_reason_beside_a_hot_worker(void **state)
{
    MR_UNUSED(state);
    assert_int_equal(excess(up(0.1, 20), up(0.9, 2)), 0);
    assert_int_equal(excess(up(0.9, 1), up(0.1, 20)), 0); /* the only one stays */
}

static void only_those_that_take_senders_count(void **state)
{
    struct mr_agent_view others[] = {up(0, 0), up(0, 0), up(0, 0), up(0, 0)};
    struct mr_agent_view own = up(1, 8);

    MR_UNUSED(state);
    others[0].state = MR_WORKER_DRAIN;
    others[1].state = MR_WORKER_MAINT;
    others[2].state = MR_WORKER_DOWN;
    others[3].level = 2;
    assert_int_equal(mr_share_excess(&own, others, 4), 0);
    others[3].level = 1;
    assert_int_equal(mr_share_excess(&own, others, 4), 4);
    own.state = MR_WORKER_DRAIN; /* it sends all away, by another rule */
    assert_int_equal(mr_share_excess(&own, others, 4), 0);
}

/* Each sender of a load; moved ones go where a balancer by weight sends them: to the idlest. */
struct level {
    double loads[LEVEL_MAX][256];
    uint32_t counts[LEVEL_MAX], size;
};

static struct mr_agent_view view_of(const struct level *level, uint32_t at)
{
    double sum = 0;

    for (uint32_t i = 0; i < level->counts[at]; i++)
        sum += level->loads[at][i];
    return up(sum > 1 ? 1 : sum, level->counts[at]);
}

static uint32_t idlest(const struct level *level)
{
    uint32_t best = 0;

    for (uint32_t at = 1; at < level->size; at++) {
        struct mr_agent_view view = view_of(level, at), least = view_of(level, best);

        if (view.utilisation < least.utilisation ||
            (view.utilisation <= least.utilisation && view.senders < least.senders))
            best = at;
    }
    return best;
}

static uint32_t settle_once(struct level *level)
{
    struct mr_agent_view views[LEVEL_MAX], others[LEVEL_MAX];
    uint32_t moved = 0, wanted[LEVEL_MAX];

    for (uint32_t at = 0; at < level->size; at++)
        views[at] = view_of(level, at);
    for (uint32_t at = 0; at < level->size; at++) {
        uint32_t count = 0;

        for (uint32_t other = 0; other < level->size; other++)
            if (other != at)
                others[count++] = views[other];
        wanted[at] = mr_share_excess(&views[at], others, count);
        assert_true(wanted[at] <= views[at].senders / 2);
    }
    for (uint32_t at = 0; at < level->size; at++) {
        for (; wanted[at]; wanted[at]--, moved++) {
            double load = level->loads[at][--level->counts[at]];
            uint32_t to = idlest(level);

            assert_true(level->counts[to] < 256);
            level->loads[to][level->counts[to]++] = load;
        }
    }
    return moved;
}

static void a_level_of_like_senders_settles_and_stays(void **state)
{
    static struct level level;

    MR_UNUSED(state);
    for (uint32_t size = 2; size <= LEVEL_MAX; size++) {
        uint32_t rounds = 0, least = UINT32_MAX, most = 0;

        level = (struct level){.size = size};
        level.counts[0] = 10 * size;
        for (uint32_t i = 0; i < level.counts[0]; i++)
            level.loads[0][i] = 0.05;
        while (settle_once(&level) && rounds < 20)
            rounds++;
        assert_true(rounds <= 8);
        for (uint32_t at = 0; at < size; at++) {
            least = level.counts[at] < least ? level.counts[at] : least;
            most = level.counts[at] > most ? level.counts[at] : most;
        }
        assert_true(most - least <= 6);
        assert_int_equal(settle_once(&level), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_alone_keeps_what_it_has),
        cmocka_unit_test(what_is_above_the_mean_goes_in_proportion),
        cmocka_unit_test(equally_busy_workers_even_out_by_number),
        cmocka_unit_test(many_quiet_senders_are_no_reason_beside_a_hot_worker),
        cmocka_unit_test(only_those_that_take_senders_count),
        cmocka_unit_test(a_level_of_like_senders_settles_and_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
