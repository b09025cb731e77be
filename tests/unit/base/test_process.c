/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process.h"

#include "base/log.h"
#include "tests/unit/base/capture.h"

#include <pthread.h>
#include <sched.h>

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

/* The child's exit status is whether it has all that it may have. */
static int take_files(void *connections)
{
    struct rlimit limit = {.rlim_cur = 300, .rlim_max = 600};

    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || mr_process_files_max() != 300)
        return 2;
    mr_log_init("test", MR_LOG_INFO);
    mr_process_take_files();
    mr_process_tell_files(*(uint64_t *)connections, 100);
    return mr_process_files_max() == 600 ? 0 : 1;
}

static void files_are_as_many_as_the_hard_limit_allows(void **state)
{
    uint64_t connections = 500;
    struct capture result = capture_run(STDERR_FILENO, take_files, &connections);

    (void)state;
    assert_int_equal(result.wait_status, 0);
    assert_non_null(strstr(result.text, "600 files"));
    assert_null(strstr(result.text, "--max-connections"));
}

static void fewer_files_than_are_asked_for_are_told(void **state)
{
    uint64_t connections = 501;
    struct capture result = capture_run(STDERR_FILENO, take_files, &connections);

    (void)state;
    assert_int_equal(result.wait_status, 0);
    assert_non_null(strstr(
        result.text, "--max-connections 501 wants 601 open files, and there may be 600"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_time_of_threads_that_have_ended_stays),
        cmocka_unit_test(processors_are_those_of_the_affinity),
        cmocka_unit_test(files_are_as_many_as_the_hard_limit_allows),
        cmocka_unit_test(fewer_files_than_are_asked_for_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
