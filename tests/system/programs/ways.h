/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What else random programs are made of (parts.h): ways for calls to come into being, and to end, that are not those of
 * one call in another. Threads, processes, stacks of the program's own, plugins; before main(), and after it.
 */
#ifndef MR_TESTS_SYSTEM_WAYS_H
#define MR_TESTS_SYSTEM_WAYS_H

#include "parts.h"

#include <sys/mman.h>

#define STACK_BYTES (16u << 20)
#define BATCH 8

extern char **environ;
static bool is_child; /* started by this program */
static __thread bool
    must_not_end; /* the thread: frames are below that are not its own, or another process's */

/* --- threads -------------------------------------------------------------------------- */

static pthread_key_t key;

/* Called when a thread ends that has set the key. */
TRACED static void on_key(void *value)
{
    ENTER;
    (void)value;
    (void)leaf(1);
    KEEP;
}

TRACED static void *thread_start(void *seed)
{
    const int depth = 0;

    ENTER_OUTER;
    is_thread = true;
    truth_seed((uintptr_t)seed, program.thread_calls);
    if (CHANCE(2))
        MUST(pthread_setspecific(key, &key) == 0);
    TIMES(8)
    CALL(ANY);
    return seed;
}

TRACED static void *short_start(void *seed)
{
    ENTER_OUTER;
    (void)leaf(1);
    return seed;
}

NEVER static void run_threads(unsigned count, void *(*start)(void *))
{
    pthread_t threads[BATCH];

    for (unsigned done = 0; done < count; done += BATCH) {
        const unsigned batch = count - done < BATCH ? count - done : BATCH;

        for (unsigned i = 0; i < batch; i++)
            MUST(pthread_create(&threads[i], NULL, start,
                                (void *)(uintptr_t)truth_random(1000)) == 0);
        for (unsigned i = 0; i < batch; i++)
            MUST(pthread_join(threads[i], NULL) == 0);
    }
}

#define THREAD                                                                           \
    do {                                                                                 \
        if (once_of(&threads_left))                                                      \
            run_threads(1 + truth_random(3), thread_start);                              \
    } while (0)

/* Many that begin and end. */
#define CROWD                                                                            \
    do {                                                                                 \
        if (once_of(&crowds_left))                                                       \
            run_threads(1500, short_start);                                              \
    } while (0)

#define END_THREAD                                                                       \
    do {                                                                                 \
        if (is_thread && !must_not_end && !is_in_handler && CHANCE(30)) {                \
            is_ending = true;                                                            \
            pthread_exit(NULL);                                                          \
        }                                                                                \
    } while (0)

/* --- processes ------------------------------------------------------------------------ */

NEVER static void reap(pid_t pid)
{
    int status;

    MUST(pid > 0);
    while (waitpid(pid, &status, 0) != pid)
        MUST(errno == EINTR);
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The child may go on where its parent was: it leaves calls that it has not entered. */
NEVER static void fork_one(int depth)
{
    const uint32_t seed = truth_random(1000);
    const pid_t pid = fork();

    if (pid != 0) {
        reap(pid);
        return;
    }
    has_ticks = false;
    must_not_end = true;
    processes_left = 0;
    for (unsigned i = 0; i < LANDINGS_MAX; i++)
        jumps.landings[i].depth = 0;
    truth_seed(seed, program.child_calls);
    TIMES(5)
    CALL(ANY);
    if (is_thread || CHANCE(2))
        exit(0);
}

NEVER static void exec_child(char **arguments)
{
    (void)execv("/proc/self/exe", arguments);
    _exit(127);
}

/* The same program, by each of the ways to start it. */
NEVER static void start_one(void)
{
    char name[] = "program", seed[16], *arguments[] = {name, seed, NULL};
    const uint32_t way = truth_random(3);
    pid_t pid;

    (void)snprintf(seed, sizeof(seed), "%u", (unsigned)truth_random(1000));
    if (way == 0) {
        pid = fork();
        if (pid == 0)
            exec_child(arguments);
    } else if (way == 1) {
        pid = vfork();
        if (pid == 0) {
            (void)leaf(1); /* it has its parent's memory, and so its parent's calls */
            exec_child(arguments);
        }
    } else {
        MUST(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ) == 0);
    }
    reap(pid);
}

#define FORK                                                                             \
    do {                                                                                 \
        if (once_of(&processes_left))                                                    \
            fork_one(depth);                                                             \
    } while (0)
#define START                                                                            \
    do {                                                                                 \
        if (!is_child && once_of(&processes_left))                                       \
            start_one();                                                                 \
    } while (0)
#define END_PROCESS                                                                      \
    do {                                                                                 \
        if (!is_thread && CHANCE(400))                                                   \
            exit(0);                                                                     \
    } while (0)

/* --- stacks of its own ---------------------------------------------------------------- */

NEVER static void make_context(ucontext_t *context, void (*start)(void), int argument,
                               ucontext_t *next)
{
    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    MUST(stack != MAP_FAILED && getcontext(context) == 0);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = STACK_BYTES;
    context->uc_link = next;
    makecontext(context, start, 1, argument);
}

NEVER static void free_context(const ucontext_t *context)
{
    MUST(munmap(context->uc_stack.ss_sp, STACK_BYTES) == 0);
}

TRACED static void in_context(int depth)
{
    ENTER;
    CALL(ANY);
    CALL(leaf);
    KEEP;
}

/* Runs to its end, as a call does. Nothing is thrown, and nobody jumps, from one stack to another. */
NEVER static void run_context(int depth)
{
    const unsigned first = jumps.first;
    const int was_catching = catching;
    const bool could_not_end = must_not_end;
    ucontext_t here, there;

    jumps.first = jumps.count;
    catching = 0;
    must_not_end = true;
    make_context(&there, (void (*)(void))in_context, depth + 1, &here);
    MUST(swapcontext(&here, &there) == 0);
    free_context(&there);
    jumps.first = first;
    catching = was_catching;
    must_not_end = could_not_end;
}

static __thread ucontext_t turns[2];

TRACED static void in_turn(int self)
{
    ENTER;
    for (unsigned turn = 0; turn < 4; turn++) {
        (void)leaf(1);
        MUST(swapcontext(&turns[self], &turns[1 - self]) == 0);
    }
    KEEP;
}

/* Two that take turns in the middle of calls. */
NEVER static void run_turns(void)
{
    ucontext_t here;

    make_context(&turns[0], (void (*)(void))in_turn, 0, &turns[1]);
    make_context(&turns[1], (void (*)(void))in_turn, 1, &here);
    void *first = turns[0].uc_stack.ss_sp, *second = turns[1].uc_stack.ss_sp;
    MUST(swapcontext(&here, &turns[0]) == 0);
    MUST(munmap(first, STACK_BYTES) == 0 && munmap(second, STACK_BYTES) == 0);
}

#define CONTEXT                                                                          \
    do {                                                                                 \
        if (once_of(&contexts_left))                                                     \
            run_context(depth);                                                          \
    } while (0)
#define TURNS                                                                            \
    do {                                                                                 \
        if (once_of(&contexts_left))                                                     \
            run_turns();                                                                 \
    } while (0)

/* --- plugins -------------------------------------------------------------------------- */

NEVER static void open_plugin(void)
{
    void *plugin = dlopen(getenv("PLUGIN"), RTLD_NOW), *symbol;
    function plug;

    MUST(plugin != NULL);
    symbol = dlsym(plugin, "plug");
    MUST(symbol != NULL);
    memcpy(&plug, &symbol, sizeof(plug));
    TIMES(7)
    (void)plug((int)index_);
    MUST(dlclose(plugin) == 0);
}

#define OPEN                                                                             \
    do {                                                                                 \
        if (once_of(&plugins_left))                                                      \
            open_plugin();                                                               \
    } while (0)

/* --- the program ---------------------------------------------------------------------- */

TRACED __attribute__((constructor)) static void before_main(void)
{
    ENTER;
    (void)leaf(1);
    KEEP;
}

TRACED __attribute__((destructor)) static void after_main(void)
{
    ENTER;
    (void)leaf(1);
    KEEP;
}

TRACED static void at_exit(void)
{
    ENTER;
    (void)leaf(1);
    KEEP;
}

NEVER static void begin(int argc, char **argv)
{
    is_child = argc > 1;
    if (is_child)
        truth_seed((uint64_t)atoi(argv[1]), program.child_calls);
    else
        truth_seed(program.seed, program.calls);
    MUST(signal(SIGUSR1, on_signal) != SIG_ERR);
    MUST(pthread_key_create(&key, on_key) == 0);
    MUST(atexit(at_exit) == 0);
    if (program.ticks)
        start_ticks();
}

/* What main() does again and again. */
NEVER void main_round(int depth);

/* `program`; or `program SEED`, which it starts itself. */
int main(int argc, char **argv)
{
    const int depth = 0;

    ENTER_OUTER;
    begin(argc, argv);
    for (unsigned round = 0; round < 200 && truth_has_calls(); round++)
        main_round(depth);
    return 0;
}

#endif
