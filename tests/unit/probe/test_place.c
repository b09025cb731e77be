/* SPDX-License-Identifier: Apache-2.0 */
/* Processors are those of this thread; what the system refuses or filters is not tried. */
#include "tests/unit/unit_test.h"

#include "base/atomics.h"
#include "base/clock.h"
#include "probe/place.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

struct sleeper {
    _Atomic int32_t tid;
    _Atomic uint32_t is_over;
};

static cpu_set_t given;
static struct mr_place place;
static uint64_t now_ns;

static cpu_set_t mask_now(void)
{
    cpu_set_t mask;

    CPU_ZERO(&mask);
    assert_int_equal(sched_getaffinity(0, sizeof(mask), &mask), 0);
    return mask;
}

static void bind(const cpu_set_t *mask)
{
    assert_int_equal(sched_setaffinity(0, sizeof(*mask), mask), 0);
}

static int set_up(void **state)
{
    (void)state;
    given = mask_now();
    place = (struct mr_place){.cpu = -1};
    now_ns = MR_SECOND_NS;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    bind(&given);
    return 0;
}

static void skip_unless_movable(void)
{
    if (CPU_COUNT(&given) < 2 || prctl(PR_GET_SECCOMP) > 0)
        skip();
}

/* A pass that drained a thread, which ran on `cpu`, or beside us. */
#define BESIDE INT32_MAX

static int pass(int cpu)
{
    mr_place_begin(&place);
    cpu = cpu == BESIDE ? place.cpu : cpu;
    mr_place_meet(&place, cpu);
    mr_place_settle(&place, now_ns);
    return cpu;
}

static void who_is_beside_a_thread_leaves_its_processor(void **state)
{
    cpu_set_t left, now;
    int cpu;

    (void)state;
    skip_unless_movable();
    cpu = pass(BESIDE);
    left = mask_now();
    assert_int_equal(CPU_COUNT(&left), CPU_COUNT(&given) - 1);
    assert_false(CPU_ISSET((unsigned)cpu, &left));
    (void)pass(cpu); /* not beside it any more */
    now = mask_now();
    assert_true(CPU_EQUAL(&now, &left));
    now_ns += 2 * MR_SECOND_NS;
    (void)pass(cpu);
    now = mask_now();
    assert_true(CPU_EQUAL(&now, &given));
}

static void who_is_not_stays(void **state)
{
    cpu_set_t now;

    (void)state;
    (void)pass(-1);
    (void)pass(MR_PLACE_CPUS - 1);
    now = mask_now();
    assert_true(CPU_EQUAL(&now, &given));
}

static void where_threads_are_everywhere_it_stays(void **state)
{
    cpu_set_t now;

    (void)state;
    mr_place_begin(&place);
    for (int cpu = 0; cpu < MR_PLACE_CPUS + 1; cpu++)
        mr_place_meet(&place, cpu);
    mr_place_settle(&place, now_ns);
    now = mask_now();
    assert_true(CPU_EQUAL(&now, &given));
}

/* It had moved before: then it has all of them again, and not what was chosen, for good. */
static void where_threads_come_to_be_everywhere_it_moves_back(void **state)
{
    cpu_set_t now;

    (void)state;
    skip_unless_movable();
    (void)pass(BESIDE);
    now = mask_now();
    assert_false(CPU_EQUAL(&now, &given));
    now_ns += 20 * MR_MILLISECOND_NS;
    mr_place_begin(&place);
    for (int cpu = 0; cpu < MR_PLACE_CPUS; cpu++)
        mr_place_meet(&place, cpu);
    mr_place_settle(&place, now_ns);
    now = mask_now();
    assert_true(CPU_EQUAL(&now, &given));
}

static void it_moves_once_in_a_while(void **state)
{
    cpu_set_t left, now;

    (void)state;
    skip_unless_movable();
    (void)pass(BESIDE);
    left = mask_now();
    now_ns += MR_MILLISECOND_NS;
    (void)pass(BESIDE);
    now = mask_now();
    assert_true(CPU_EQUAL(&now, &left));
}

static void who_else_binds_it_is_obeyed(void **state)
{
    cpu_set_t other, now;
    int cpu;

    (void)state;
    skip_unless_movable();
    cpu = pass(BESIDE);
    CPU_ZERO(&other);
    CPU_SET((unsigned)cpu, &other);
    bind(&other);
    now_ns += 2 * MR_SECOND_NS;
    (void)pass(-1); /* would move back */
    now = mask_now();
    assert_true(CPU_EQUAL(&now, &other));
    (void)pass(BESIDE); /* has nowhere to go */
    now = mask_now();
    assert_true(CPU_EQUAL(&now, &other));
}

/* A thread that does nothing: what it would do to leave, it never gets to. */
static void *sleep_until_told(void *argument)
{
    struct sleeper *sleeper = argument;

    mr_store_release(&sleeper->tid, (int32_t)gettid());
    while (!mr_load_acquire(&sleeper->is_over))
        (void)usleep(1000);
    return NULL;
}

static cpu_set_t mask_of(int32_t tid)
{
    cpu_set_t mask;

    CPU_ZERO(&mask);
    assert_int_equal(sched_getaffinity(tid, sizeof(mask), &mask), 0);
    return mask;
}

static int first_of(const cpu_set_t *mask, unsigned cpu)
{
    while (!CPU_ISSET(cpu, mask))
        cpu++;
    return (int)cpu;
}

static void pass_of(int32_t tid, int cpu)
{
    mr_place_begin_of(&place, tid);
    mr_place_meet(&place, cpu);
    mr_place_settle(&place, now_ns);
}

static void another_thread_is_kept_off(void **state)
{
    struct sleeper sleeper = {0};
    pthread_t thread;
    cpu_set_t now;
    int first, second;

    (void)state;
    skip_unless_movable();
    first = first_of(&given, 0);
    second = first_of(&given, (unsigned)first + 1);
    assert_int_equal(pthread_create(&thread, NULL, sleep_until_told, &sleeper), 0);
    while (mr_load_acquire(&sleeper.tid) == 0)
        (void)usleep(1000);
    pass_of(sleeper.tid, first);
    now = mask_of(sleeper.tid);
    assert_false(CPU_ISSET((unsigned)first, &now));
    assert_int_equal(CPU_COUNT(&now), CPU_COUNT(&given) - 1);
    now_ns += 20 * MR_MILLISECOND_NS;
    pass_of(sleeper.tid, second); /* those with events changed places */
    now = mask_of(sleeper.tid);
    assert_true(CPU_ISSET((unsigned)first, &now));
    assert_false(CPU_ISSET((unsigned)second, &now));
    now_ns += 2 * MR_SECOND_NS;
    pass_of(sleeper.tid, -1);
    now = mask_of(sleeper.tid);
    assert_true(CPU_EQUAL(&now, &given));
    now = mask_now();
    assert_true(CPU_EQUAL(&now, &given)); /* ours was never touched */
    mr_store_release(&sleeper.is_over, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void short_slices_leave_the_priority_as_it_is(void **state)
{
    int policy = sched_getscheduler(0);

    (void)state;
    mr_place_shorten_slices();
    assert_int_equal(sched_getscheduler(0), policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_is_beside_a_thread_leaves_its_processor,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_is_not_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(where_threads_are_everywhere_it_stays, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(where_threads_come_to_be_everywhere_it_moves_back,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_moves_once_in_a_while, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_else_binds_it_is_obeyed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_thread_is_kept_off, set_up, tear_down),
        cmocka_unit_test(short_slices_leave_the_priority_as_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
