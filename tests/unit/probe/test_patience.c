/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/patience.h"
#include "tests/unit/probe/rig.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#define SITE MR_SITE_FIRST_MODULE
#define WORDS 256
#define LIMIT_NS (400 * MR_MILLISECOND_NS)
#define PAUSE_NS (600 * MR_MILLISECOND_NS)
#define MARGIN_NS (20 * MR_MILLISECOND_NS)

static void sleep_ns(uint64_t ns)
{
    struct timespec time = {.tv_nsec = (long)ns};

    (void)nanosleep(&time, NULL);
}

/* `act` in a process that is stopped for PAUSE_NS when it wants that; its result. */
static int in_a_process(int (*act)(void))
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(act());
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    if (WIFSTOPPED(status)) {
        sleep_ns(PAUSE_NS);
        assert_int_equal(kill(pid, SIGCONT), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
    }
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void be_stopped(void)
{
    (void)kill(getpid(), SIGSTOP);
}

static void a_limit_of_nothing_is_over_at_once(void **state)
{
    struct mr_patience patience = mr_patience_begin();

    (void)state;
    assert_true(mr_patience_left(&patience, 0) == 0);
}

static void who_looks_all_the_time_waits_as_long_as_it_says(void **state)
{
    struct mr_patience patience = mr_patience_begin();
    uint64_t left_ns, before_ns = LIMIT_NS;

    (void)state;
    while ((left_ns = mr_patience_left(&patience, LIMIT_NS)) > 0) {
        assert_true(left_ns <= before_ns);
        before_ns = left_ns;
    }
    assert_true(patience.seen_ns - patience.began_ns >= LIMIT_NS);
}

static void a_time_without_a_look_counts_little(void **state)
{
    struct mr_patience patience = mr_patience_begin();

    (void)state;
    sleep_ns(2 * MR_PATIENCE_LOOK_NS);
    assert_true(mr_patience_left(&patience, LIMIT_NS) == LIMIT_NS - MR_PATIENCE_LOOK_NS);
    /* One that is short is looked at no less often. */
    patience = mr_patience_begin();
    for (uint64_t looks = 1; looks < MR_PATIENCE_LOOKS; looks++) {
        sleep_ns(MR_MILLISECOND_NS);
        assert_true(mr_patience_left(&patience, 400) == 400 - looks * 100);
    }
    sleep_ns(MR_MILLISECOND_NS);
    assert_true(mr_patience_left(&patience, 400) == 0);
}

static int waits_and_is_stopped(void)
{
    struct mr_patience patience = mr_patience_begin();
    uint64_t left_ns;

    be_stopped();
    left_ns = mr_patience_left(&patience, LIMIT_NS);
    return left_ns < LIMIT_NS - MR_PATIENCE_LOOK_NS;
}

static void a_stopped_process_does_not_wait(void **state)
{
    (void)state;
    assert_int_equal(in_a_process(waits_and_is_stopped), 0);
}

/* The writer, which is stopped as its program is, and takes up its work a while after that. */
static void *drain_after_a_stop(void *given)
{
    struct rig *rig = given;

    sleep_ns(MARGIN_NS);
    be_stopped();
    sleep_ns(MARGIN_NS);
    (void)rig_drain(rig, RIG_FRAME_SIZE);
    return NULL;
}

static int blocks_and_is_stopped(void)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_BLOCK);
    pthread_t writer;
    uint64_t lost;

    rig->pool.shared.block_timeout_ns = LIMIT_NS;
    mr_store_relaxed(&rig->pool.shared.draining, 1);
    mr_store_relaxed(&rig->pool.shared.pid, (uint32_t)getpid());
    if (pthread_create(&writer, NULL, drain_after_a_stop, rig) != 0)
        return 1;
    for (uint32_t event = 0; event <= WORDS; event++)
        rig_enter(rig, SITE + event, RIG_TICKS + event);
    (void)pthread_join(writer, NULL);
    lost = mr_load_relaxed(&rig->ring->pending[MR_LOSS_BLOCK_TIMEOUT]);
    rig_free(rig);
    return lost > 0;
}

static void a_blocked_program_that_was_stopped_loses_nothing(void **state)
{
    (void)state;
    assert_int_equal(in_a_process(blocks_and_is_stopped), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_of_nothing_is_over_at_once),
        cmocka_unit_test(who_looks_all_the_time_waits_as_long_as_it_says),
        cmocka_unit_test(a_time_without_a_look_counts_little),
        cmocka_unit_test(a_stopped_process_does_not_wait),
        cmocka_unit_test(a_blocked_program_that_was_stopped_loses_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
