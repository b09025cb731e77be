/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void *spin(void *wanted)
{
    const uint64_t end_ns = mr_process_cpu_ns() + *(uint64_t *)wanted;

    while (mr_process_cpu_ns() < end_ns) {
    }
    return NULL;
}

static void cpu_time_of_threads_that_have_ended_stays(void **state)
{
    uint64_t wanted_ns = 2000000, before_ns = mr_process_cpu_ns();
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, spin, &wanted_ns), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(mr_process_cpu_ns() >= before_ns + wanted_ns);
}

static void processors_are_those_of_the_affinity(void **state)
{
    cpu_set_t before, one;
    size_t first = 0;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    assert_int_equal(mr_process_processors(), CPU_COUNT(&before));
    while (!CPU_ISSET(first, &before))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(mr_process_processors(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_time_of_threads_that_have_ended_stays),
        cmocka_unit_test(processors_are_those_of_the_affinity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
