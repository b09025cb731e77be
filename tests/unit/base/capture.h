/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a function in a child process and gives what it wrote to a descriptor, and how it
 * ended: for code that prints or aborts.
 *
 * Use:
 *     struct capture result = capture_run(STDERR_FILENO, fails, NULL);
 *     assert_true(WIFSIGNALED(result.wait_status));
 *     assert_non_null(strstr(result.text, "assertion failed"));
 */
#ifndef MR_TESTS_UNIT_BASE_CAPTURE_H
#define MR_TESTS_UNIT_BASE_CAPTURE_H

#include "tests/unit/unit_test.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct capture {
    int wait_status; /* of waitpid() */
    size_t size;
    char text[16384]; /* ends with a zero */
};

/* The child: `body`'s result is its exit status. */
static inline void capture_child(int descriptor, int pipe_end, int (*body)(void *),
                                 void *argument)
{
    const struct rlimit no_core = {0, 0};

    (void)setrlimit(RLIMIT_CORE, &no_core);
    if (dup2(pipe_end, descriptor) < 0)
        _exit(99);
    (void)close(pipe_end);
    _exit(body(argument));
}

static inline struct capture capture_run(int descriptor, int (*body)(void *),
                                         void *argument)
{
    struct capture result = {0};
    int ends[2];
    ssize_t size;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    (void)fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(ends[0]);
        capture_child(descriptor, ends[1], body, argument);
    }
    (void)close(ends[1]);
    while ((size = read(ends[0], result.text + result.size,
                        sizeof(result.text) - 1 - result.size)) > 0)
        result.size += (size_t)size;
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, &result.wait_status, 0), child);
    return result;
}

#endif
