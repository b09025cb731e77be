/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock hybrid, an event that shares a time (probe/ring.h): a signal handler comes between each two of its instructions, in single
 * steps, and takes the thread into the ring's next lap. Wherever it comes, the event's word goes into the ring, or nowhere.
 */
#include "../unit_test.h"

#if defined(__x86_64__)
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "probe/ring.h"

#define CAPACITY 64u
#define INDEX (CAPACITY - 8) /* of the event: the last words of the first lap */
#define TRAP_FLAG 0x100
#define STEPS_MAX 100000u
#define STAMP 1000u

static struct mr_thread thread;
static uint64_t words[3 * CAPACITY]; /* a ring, and what lies before and behind it */
static volatile uint32_t step, handler_at;
static volatile uint64_t again_index;

/* What a handler does whose events begin the next lap, and read the clock anew. */
static void begin_next_lap(void)
{
    thread.cursor = CAPACITY + 1;
    thread.tick.base -= CAPACITY * sizeof(uint64_t);
    thread.tick.until = 2 * (uint64_t)CAPACITY;
    thread.tick.stamp = STAMP + 1;
}

static void on_step(int signal, siginfo_t *info, void *context)
{
    ucontext_t *interrupted = context;

    (void)signal;
    (void)info;
    if (++step == handler_at)
        begin_next_lap();
    if (step >= handler_at)
        interrupted->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

/* In the place of probe/ring.c: what the event calls that must not use its number. */
void mr_ring_event_again(struct mr_thread *given, uint64_t bits, uint64_t index)
{
    (void)given;
    (void)bits;
    again_index = index;
}

static __attribute__((noinline)) void one_event(void)
{
    mr_ring_event_shared(&thread, 0);
}

static void single_step(void (*call)(void))
{
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    call();
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

static void begin(uint32_t at)
{
    memset(words, 0, sizeof(words));
    thread =
        (struct mr_thread){.cursor = INDEX,
                           .tick = {.number = 1,
                                    .until = CAPACITY,
                                    .stamp = STAMP,
                                    .base = (uint64_t)(uintptr_t)(words + CAPACITY)}};
    step = 0;
    handler_at = at;
    again_index = UINT64_MAX;
}

/* Where the word is that is not 0, as a place in `words`; UINT32_MAX: there is none. */
static uint32_t written_at(void)
{
    uint32_t at = UINT32_MAX;

    for (uint32_t i = 0; i < 3 * CAPACITY; i++)
        if (words[i]) {
            assert_int_equal(at, UINT32_MAX);
            at = i;
        }
    return at;
}

static void a_handler_may_come_anywhere(void **state)
{
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO}, before;
    uint32_t again = 0, at = 0;

    (void)state;
    assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
    do {
        uint32_t place;

        begin(++at);
        single_step(one_event);
        place = written_at();
        if (again_index == UINT64_MAX) { /* of the lap that its number is of */
            assert_true(place == CAPACITY + INDEX || place == CAPACITY + 1);
            assert_int_equal(words[place] % (STAMP + 2),
                             place < CAPACITY + INDEX ? STAMP + 1 : STAMP);
        } else {
            assert_int_equal(place, UINT32_MAX);
            again++;
        }
    } while (step >= handler_at && at < STEPS_MAX);
    assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
    assert_true(at > 10 && at < STEPS_MAX);
    assert_true(again > 0);
}
#else
static void a_handler_may_come_anywhere(void **state)
{
    (void)state;
    skip(); /* there are no single steps from within */
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handler_may_come_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
