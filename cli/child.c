/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/child.h"

#include "base/assert.h"
#include "base/clock.h"
#include "cli/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READY_WAIT_NS (10 * MR_SECOND_NS)
#define POLL_NS (2 * MR_MILLISECOND_NS)
#define SELF "/proc/self/exe"

static void drop_variables(void)
{
    size_t kept = 0;

    for (size_t i = 0; environ[i]; i++) {
        if (strncmp(environ[i], "MILLRACE_", 9) != 0)
            environ[kept++] = environ[i];
    }
    environ[kept] = NULL;
}

static void pause_ns(uint64_t ns)
{
    struct timespec time = {.tv_sec = 0, .tv_nsec = (long)ns};

    (void)nanosleep(&time, NULL);
}

/* In the child, up to its exec. */
MR_NORETURN static void become_server(char *const argv[], pid_t parent)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_FAILURE); /* it died before the line above */
    (void)setpgid(0, 0);
    if (null >= 0) {
        (void)dup2(null, STDIN_FILENO);
        (void)dup2(null, STDOUT_FILENO);
    }
    drop_variables();
    (void)execv(SELF, argv);
    _exit(127);
}

enum mr_status mr_child_start_server(const char *name, char *const argv[],
                                     struct mr_child *child, struct mr_error *error)
{
    pid_t parent = getpid();
    pid_t pid;

    MR_ASSERT(argv[0] && argv[1]);
    *child = (struct mr_child){.name = name};
    mr_signals_hold();
    pid = fork();
    if (pid == 0) {
        mr_signals_give_back(); /* it may be stopped before it is a server */
        become_server(argv, parent);
    }
    mr_signals_release();
    if (pid < 0)
        return mr_error_set_errno(error, MR_EIO, errno, "cannot start the %s", name);
    child->pid = pid;
    return MR_OK;
}

/* True when the child has ended; its status is kept. */
static bool has_ended(struct mr_child *child, int flags)
{
    pid_t pid;

    if (child->pid == 0)
        return true;
    do
        pid = waitpid(child->pid, &child->status, flags);
    while (pid < 0 && errno == EINTR);
    if (pid == 0)
        return false;
    child->pid = 0;
    return true;
}

static bool read_listen(const char *path, char *listen, size_t size)
{
    json_t *root = json_load_file(path, 0, NULL);
    const char *text = json_string_value(json_object_get(root, "listen"));
    bool is_there = text && (size_t)snprintf(listen, size, "%s", text) < size;

    json_decref(root);
    return is_there;
}

enum mr_status mr_child_wait_ready(struct mr_child *child, const char *path, char *listen,
                                   size_t size, struct mr_error *error)
{
    uint64_t start_ns = mr_clock_monotonic_ns();

    while (!read_listen(path, listen, size)) {
        if (mr_signals_taken())
            return mr_error_set(error, MR_END,
                                "interrupted: the program was not started");
        if (has_ended(child, WNOHANG))
            return mr_error_set(error, MR_EIO,
                                "the %s ended before it was ready (status %d)",
                                child->name, mr_child_exit_status(child->status));
        if (mr_clock_monotonic_ns() - start_ns > READY_WAIT_NS)
            return mr_error_set(error, MR_ETIMEOUT, "the %s was not ready within 10 s",
                                child->name);
        pause_ns(POLL_NS);
    }
    return MR_OK;
}

int mr_child_stop(struct mr_child *child, struct mr_child *needed, uint64_t wait_ns)
{
    const int signals_max = needed ? 0 : 1;
    uint64_t start_ns = mr_clock_monotonic_ns();

    if (child->pid != 0)
        (void)kill(child->pid, SIGTERM);
    while (!has_ended(child, WNOHANG)) {
        if (mr_clock_monotonic_ns() - start_ns > wait_ns ||
            mr_signals_count() > signals_max || (needed && has_ended(needed, WNOHANG))) {
            (void)kill(child->pid, SIGKILL);
            (void)has_ended(child, 0);
            break;
        }
        pause_ns(POLL_NS);
    }
    return mr_child_exit_status(child->status);
}

int mr_child_exit_status(int wait_status)
{
    if (WIFSIGNALED(wait_status))
        return 128 + WTERMSIG(wait_status);
    return WEXITSTATUS(wait_status);
}
