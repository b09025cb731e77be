/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal after the first, second, third ... instruction of a traced call, under stepper.c:
 *
 *     subject WHERE WHAT [FIRST [STRIDE [LAST]]]
 *
 *     WHERE   warm    a call of a thread that has had others
 *             first   the first one of a thread
 *             full    one that finds the ring full
 *             shared  of clock hybrid, just after many others
 *     WHAT    jump    the handler leaves by siglongjmp()
 *             throw   the same, to where an exception is thrown then
 *             calls   it makes calls, and returns
 *             switch  it makes them on another stack
 *             exit    it ends the thread
 *             pause   none: the thread stands still for a while
 *
 * Each call is made with all registers filled: where it comes back they are as they were. What is made later is recorded. Prints
 * how many events were made, and how many more there may be, of calls that were left.
 */
#include "../safety/safety.h"
#include "state.h"
#include "steps.h"

#include <millrace/probe.h>

#include <cinttypes>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <ucontext.h>

#define FLUSH_MS 20000
#define CALLS_BETWEEN 3
#define CALLS_TO_FILL 300 /* a ring of 4 KiB has room for 256 */
#define LANDINGS_MAX 3 /* of one exception: one more for each frame with a landing pad */
#define FLAGS_KEPT 0x400u /* the direction flag; the rest is free at a call */

struct state state_in, state_out;

static uint64_t made, open_events; /* that there must be; that there may be */
static uint64_t signals;
static const char *where, *what;
static sigjmp_buf back;
static ucontext_t here, there;
static char there_stack[262144];

PLAIN static bool is(const char *word, const char *wanted)
{
    return strcmp(word, wanted) == 0;
}

PLAIN static void ask(uint64_t question)
{
    __asm__ volatile("int3" : "+a"(question) : : "memory", "cc");
}

/* --- traced functions --------------------------------------------------------------------- */

/* Leaves every register alone. */
TRACED static void nothing(void)
{
    KEEP;
}

TRACED static int leaf(int x)
{
    KEEP;
    return x + 1;
}

TRACED static int outer(int x)
{
    x = leaf(x);
    KEEP;
    return x + 1;
}

PLAIN static void call(int count)
{
    int value = 0;

    for (int i = 0; i < count; i++)
        value = outer(value);
    MUST(value == 2 * count);
    made += 4 * (uint64_t)count;
}

/* What tells of a jump or an exception is no event; in a full ring it is lost as one. */
PLAIN static uint64_t lost_landings(void)
{
    return is(where, "full") ? LANDINGS_MAX : 0;
}

TRACED static void thrower(int depth)
{
    if (depth == 0)
        throw 4711;
    thrower(depth - 1);
    KEEP;
}

/* How many exits there are depends on the door. */
PLAIN static void throw_and_catch(void)
{
    int caught = 0;

    made += 3;
    open_events += 3 + lost_landings();
    try {
        thrower(2);
    } catch (int number) {
        caught = number;
    }
    MUST(caught == 4711);
}

/* --- the handler -------------------------------------------------------------------------- */

PLAIN static void on_other_stack(void)
{
    for (;;) {
        call(CALLS_BETWEEN);
        MUST(swapcontext(&there, &here) == 0);
    }
}

PLAIN static void on_signal(int number)
{
    (void)number;
    signals++;
    if (is(what, "calls"))
        call(CALLS_BETWEEN);
    else if (is(what, "switch"))
        MUST(swapcontext(&here, &there) == 0);
    else if (is(what, "exit"))
        pthread_exit(NULL);
    else
        siglongjmp(back, 1);
}

PLAIN static void prepare(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    MUST(sigaction(SIGUSR1, &action, NULL) == 0);
    MUST(getcontext(&there) == 0);
    there.uc_stack.ss_sp = there_stack;
    there.uc_stack.ss_size = sizeof(there_stack);
    makecontext(&there, on_other_stack, 0);
}

/* --- registers ---------------------------------------------------------------------------- */

static bool has_avx512;

PLAIN static void fill_state(void)
{
    memset(&state_in, 0, sizeof(state_in));
    memset(&state_out, 0, sizeof(state_out));
    for (size_t i = 0; i < 32; i++)
        for (size_t j = 0; j < (has_avx512 ? 64 : i < 16 ? 16 : 0); j++)
            state_in.vectors[i][j] = (uint8_t)(17 * i + 3 * j + 1);
    for (size_t i = 0; i < 8; i++) {
        long double value = 1.25L * (long double)(i + 1);

        state_in.masks[i] = has_avx512 ? 0x5a00u + i : 0;
        memcpy(state_in.x87[i], &value, 10);
    }
    state_in.mxcsr = 0xff80;  /* towards zero, denormals to zero */
    state_in.control = 0x87f; /* 24 bits, upwards */
}

#ifndef PATCHABLE
/* What a function with hooks may use as it likes: %rax, %rcx, %rdx, %rsi, %rdi, %r8 to %r10. */
PLAIN static void forget_scratch(struct state *state)
{
    static const int scratch[] = {0, 2, 3, 4, 5, 7, 8, 9};

    for (int i : scratch)
        state->general[i] = 0;
}
#endif

PLAIN static void check_state(uint64_t step)
{
    const uint8_t *in = (const uint8_t *)&state_in, *out = (const uint8_t *)&state_out;

    state_out.flags &= FLAGS_KEPT;
#ifndef PATCHABLE
    forget_scratch(&state_in);
    forget_scratch(&state_out);
#endif
    for (size_t i = 0; i < sizeof(state_in); i++)
        if (in[i] != out[i]) {
            printf("fault: step %" PRIu64 ": byte %zu of the registers has changed\n",
                   step, i);
            return;
        }
}

PLAIN static void reset_units(void)
{
    const uint32_t usual = 0x1f80;

    __asm__ volatile("fninit\n\tldmxcsr %0\n\tcld" : : "m"(usual));
}

/* --- a step ------------------------------------------------------------------------------- */

/* Whether the signal came before the call had ended. */
PLAIN static bool step_through(uint64_t step)
{
    const uint64_t question = is(what, "pause") ? ASK_PAUSE : ASK_STEP;
    bool was_reached;

    fill_state();
    if (is(where, "shared"))
        call(20);
    was_reached = has_avx512 ? state_call_avx512(nothing, question, step)
                             : state_call_sse(nothing, question, step);
    check_state(step);
    made += 2;
    return was_reached;
}

/* The same where the call may be left. */
PLAIN static bool step_and_land(uint64_t step)
{
    const uint64_t before = signals;
    volatile bool was_reached = true;

    if (sigsetjmp(back, 1) == 0) {
        was_reached = step_through(step);
        if (signals == before)
            return was_reached;
    } else {
        reset_units();
        open_events += 2 + lost_landings();
    }
    if (is(what, "throw"))
        throw_and_catch();
    return was_reached;
}

struct job {
    uint64_t step;
    bool was_reached;
};

PLAIN static void *in_thread(void *argument)
{
    struct job *job = (struct job *)argument;

    if (is(where, "warm"))
        call(1);
    job->was_reached = true; /* of one that ends here */
    job->was_reached = step_and_land(job->step);
    call(CALLS_BETWEEN);
    return NULL;
}

PLAIN static bool step_in_thread(uint64_t step)
{
    struct job job = {step, false};
    const uint64_t before = signals;
    pthread_t thread;

    MUST(pthread_create(&thread, NULL, in_thread, &job) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    if (is(what, "exit") && signals != before)
        open_events += 2;
    return job.was_reached;
}

/* Until they are let go there is nobody to empty it. */
PLAIN static bool step_in_full_ring(uint64_t step)
{
    bool was_reached;

    ask(ASK_HOLD);
    call(CALLS_TO_FILL / 4);
    call(CALLS_TO_FILL / 4);
    was_reached = step_and_land(step);
    ask(ASK_LET_GO);
    return was_reached;
}

PLAIN static void check_account(uint64_t step)
{
    struct mr_probe_counts counts;
    uint64_t lost, told;

    if (mr_probe_flush(FLUSH_MS) != 0)
        printf("fault: step %" PRIu64 ": not flushed\n", step);
    (void)mr_probe_stats(&counts);
    lost = counts.lost_ring_full + counts.lost_block_timeout + counts.lost_nested +
           counts.lost_budget + counts.lost_exit;
    told = counts.events_acked + lost;
    if (told < made || told > made + open_events)
        printf("fault: step %" PRIu64 ": %" PRIu64 " events are told, %" PRIu64
               " to %" PRIu64 " were made\n",
               step, told, made, made + open_events);
    /* Where all is written that is begun, what is told is all there is. */
    made = told;
    open_events = 0;
}

int main(int argc, char **argv)
{
    const uint64_t stride = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
    const uint64_t last = argc > 5 ? strtoull(argv[5], NULL, 10) : UINT64_MAX;
    uint64_t step = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    bool was_reached = true;

    MUST(argc > 2);
    where = argv[1];
    what = argv[2];
    has_avx512 = __builtin_cpu_supports("avx512f");
    made = 1; /* our own enter */
    prepare();
    for (; was_reached && step <= last; step += stride) {
        if (is(where, "first") || is(what, "exit"))
            was_reached = step_in_thread(step);
        else if (is(where, "full"))
            was_reached = step_in_full_ring(step);
        else
            was_reached = step_and_land(step);
        call(CALLS_BETWEEN);
        check_account(step);
    }
    printf("steps until=%" PRIu64 " signals=%" PRIu64 " made=%" PRIu64 "\n", step,
           signals, made);
    return 0;
}
