/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands in front of the unwinder's and libc's functions (probe/interpose_unwind.c), and
 * the landings that it tells, under many threads that leave functions at once: by an unwinding
 * that runs the clean-ups of each frame, and a longjmp() at its end. The unwinder is looked up
 * anew in each round, as one that came with a plugin is. Recording goes on meanwhile, so that
 * the writer takes what the landings put into the rings.
 */
/* It is the program's own here, as its lists are to be emptied. NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "probe/interpose_unwind.c"

#include "base/clock.h"
#include "probe/include/millrace/probe.h"
#include "tests/unit/unit_test.h"

#include <pthread.h>
#include <unistd.h>
#include <unwind.h>

#define THREAD_COUNT 4
#define ROUNDS 100
#define LEAVES 5
#define DEPTH 3
#define FLUSH_MS 60000

/* Of the shared library's part that this test does without. */
void mr_interpose_after_fork(void);
void mr_interpose_after_fork(void)
{
}

struct leaver {
    pthread_barrier_t *start;
    jmp_buf home;
    uint64_t entered; /* the frame below home's */
    uint32_t begun, passed;
    struct _Unwind_Exception exception;
};

static _Unwind_Reason_Code stop(int version, _Unwind_Action actions,
                                _Unwind_Exception_Class class,
                                struct _Unwind_Exception *exception,
                                struct _Unwind_Context *context, void *argument)
{
    struct leaver *leaver = argument;

    MR_UNUSED(version);
    MR_UNUSED(class);
    MR_UNUSED(exception);
    assert_false(actions & _UA_END_OF_STACK);
    if (_Unwind_GetCFA(context) > leaver->entered)
        longjmp(leaver->home, 1);
    return _URC_NO_REASON;
}

/* Its span ends by a clean-up: the unwinder goes on in it, by _Unwind_SetIP(). */
MR_NOINLINE static uint32_t descend(struct leaver *leaver, uint32_t depth)
{
    MR_SPAN("descend");

    leaver->begun++;
    if (depth == 0)
        (void)_Unwind_ForcedUnwind(&leaver->exception, stop, leaver);
    else
        leaver->passed += descend(leaver, depth - 1);
    leaver->passed++; /* nothing comes by here */
    return depth;
}

MR_NOINLINE static uint32_t enter(struct leaver *leaver)
{
    leaver->entered = MR_FRAME_ADDRESS();
    return descend(leaver, DEPTH) + 1;
}

static void leave(struct leaver *leaver)
{
    if (setjmp(leaver->home) == 0)
        leaver->passed += enter(leaver);
}

static void *run(void *argument)
{
    struct leaver *leaver = argument;

    (void)pthread_barrier_wait(leaver->start);
    for (int i = 0; i < LEAVES; i++)
        leave(leaver);
    return NULL;
}

/* The unwinder was found by all, and stands in the list once. */
static void check_others(void)
{
    uint32_t count = mr_load_acquire(&other_count);

    assert_int_equal(count, 1);
    assert_true((uintptr_t)others[0].set_address - others[0].address < others[0].size);
    assert_true(others[0].set_address != _Unwind_SetIP);
}

static uint64_t run_round(void)
{
    static struct leaver leavers[THREAD_COUNT];
    pthread_t threads[THREAD_COUNT];
    pthread_barrier_t start;
    uint64_t begun = 0;

    mr_store_release(&unwinder, NULL);
    mr_store_release(&other_count, 0);
    assert_int_equal(pthread_barrier_init(&start, NULL, THREAD_COUNT), 0);
    for (uint32_t i = 0; i < THREAD_COUNT; i++) {
        leavers[i] = (struct leaver){.start = &start};
        assert_int_equal(pthread_create(&threads[i], NULL, run, &leavers[i]), 0);
    }
    for (uint32_t i = 0; i < THREAD_COUNT; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(leavers[i].passed, 0);
        begun += leavers[i].begun;
    }
    assert_int_equal(pthread_barrier_destroy(&start), 0);
    return begun;
}

static void all_leave_and_nothing_is_lost(void **state)
{
    struct mr_probe_counts counts;
    uint64_t begun = 0;

    (void)state;
    assert_true(mr_probe_enabled());
    for (int i = 0; i < ROUNDS; i++) {
        begun += run_round();
        check_others();
    }
    assert_true(begun == UINT64_C(1) * ROUNDS * THREAD_COUNT * LEAVES * (DEPTH + 1));
    assert_int_equal(mr_probe_flush(FLUSH_MS), 0);
    assert_int_equal(mr_probe_stats(&counts), 0);
    assert_true(counts.events_written == 2 * begun); /* each ended, by its clean-up */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_leave_and_nothing_is_lost),
    };

    MR_UNUSED(argc);
    if (!getenv("MILLRACE_ENDPOINT")) { /* the probe looks at it before main() */
        (void)setenv("MILLRACE_ENDPOINT", "discard", 1);
        (void)setenv("MILLRACE_POLICY", "block", 1);
        (void)setenv("MILLRACE_BLOCK_TIMEOUT", "60s", 1);
        (void)execv("/proc/self/exe", argv);
        return EXIT_FAILURE;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
