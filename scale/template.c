/* SPDX-License-Identifier: Apache-2.0 */
#include "scale/template.h"

#include "base/clock.h"
#include "base/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ERROR_MAX 1024
#define PIPE_BYTES 65536
#define TURN_MS 20

/* The value of a place, such as "n+7480"; false: there is no such place. */
static bool value_of(const char *place, size_t size,
                     const struct mr_template_values *values, int64_t *out)
{
    char *end;
    long add;

    if (size == 5 && strncmp(place, "count", size) == 0)
        *out = values->count;
    else if (size == 5 && strncmp(place, "level", size) == 0)
        *out = values->level;
    else if (size >= 1 && place[0] == 'n')
        *out = values->n;
    else
        return false;
    if (place[0] != 'n' || size == 1)
        return true;
    if ((place[1] != '+' && place[1] != '-') || size < 3 || size > 8 || place[2] < '0' ||
        place[2] > '9')
        return false;
    add = strtol(place + 1, &end, 10);
    *out += add;
    return end == place + size;
}

/* True for `{word`: what is no place stays as it is, such as the braces of a shell. */
static bool begins_place(const char *at)
{
    return at[0] == '{' && at[1] >= 'a' && at[1] <= 'z';
}

enum mr_status mr_template_check(const char *option, const char *text,
                                 struct mr_error *error)
{
    const struct mr_template_values none = {0};
    int64_t ignored;

    for (const char *at = text; *at; at++) {
        size_t size = begins_place(at) ? strcspn(at + 1, "}") : 0;

        if (!begins_place(at))
            continue;
        if (at[1 + size] != '}' || !value_of(at + 1, size, &none, &ignored))
            return mr_error_set(error, MR_EUSAGE,
                                "%s: '%.40s': there are {n}, {n+NUMBER}, {n-NUMBER}, "
                                "{count} and {level}",
                                option, at);
    }
    if (strlen(text) >= MR_TEMPLATE_MAX / 2)
        return mr_error_set(error, MR_EUSAGE, "%s: longer than %d bytes", option,
                            MR_TEMPLATE_MAX / 2);
    return MR_OK;
}

bool mr_template_fill(const char *text, const struct mr_template_values *values,
                      char *out, size_t size)
{
    size_t used = 0;

    for (const char *at = text; *at; at++) {
        size_t place = begins_place(at) ? strcspn(at + 1, "}") : 0;
        int64_t value;
        int written;

        if (begins_place(at) && value_of(at + 1, place, values, &value)) {
            written = snprintf(out + used, size - used, "%lld", (long long)value);
            at += place + 1;
        } else {
            written = snprintf(out + used, size - used, "%c", *at);
        }
        used += (size_t)written;
        if (used >= size)
            return false;
    }
    out[used] = '\0';
    return true;
}

MR_NORETURN static void become(const char *command, int error_fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t none;

    (void)setpgid(0, 0); /* so that a time-out ends all of it */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (null >= 0) {
        (void)dup2(null, STDIN_FILENO);
        (void)dup2(null, STDOUT_FILENO);
    }
    (void)dup2(error_fd, STDERR_FILENO);
    (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

/* What a command writes to stderr: the end of it is kept. */
struct words {
    char text[ERROR_MAX];
    size_t size;
};

static void keep(struct words *words, const char *bytes, size_t size)
{
    size_t room = sizeof(words->text) - 1;

    if (size > room) {
        bytes += size - room;
        size = room;
    }
    if (words->size + size > room) {
        size_t drop = words->size + size - room;

        memmove(words->text, words->text + drop, words->size - drop);
        words->size -= drop;
    }
    memcpy(words->text + words->size, bytes, size);
    words->size += size;
}

/* Whether something was said. */
static bool listen_to(struct words *words, int fd, int wait_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    char bytes[ERROR_MAX];
    ssize_t size;

    if (poll(&poll_fd, 1, wait_ms) <= 0)
        return false;
    size = read(fd, bytes, sizeof(bytes));
    if (size > 0)
        keep(words, bytes, (size_t)size);
    else if (wait_ms > 0) /* it is closed, and would wake us all the time */
        (void)poll(NULL, 0, wait_ms);
    return size > 0;
}

static const char *last_line(struct words *words)
{
    char *at;

    while (words->size > 0 && words->text[words->size - 1] == '\n')
        words->size--;
    words->text[words->size] = '\0';
    at = strrchr(words->text, '\n');
    return at ? at + 1 : words->text;
}

/* False: it did not end in time, and was killed. */
static bool wait_for(pid_t pid, int error_fd, uint64_t deadline_ns, struct words *words,
                     int *status)
{
    for (;;) {
        pid_t ended = waitpid(pid, status, WNOHANG);

        if (ended == pid || (ended < 0 && errno != EINTR))
            break;
        if (mr_clock_monotonic_ns() >= deadline_ns) {
            (void)kill(-pid, SIGKILL);
            (void)waitpid(pid, status, 0);
            return false;
        }
        (void)listen_to(words, error_fd, TURN_MS);
    }
    /* What it left in the pipe; no more than a pipe holds, as a child of it may go on. */
    for (size_t i = 0; i < PIPE_BYTES / ERROR_MAX && listen_to(words, error_fd, 0); i++)
        continue;
    return true;
}

enum mr_status mr_template_run(const char *text, const struct mr_template_values *values,
                               uint64_t timeout_ns, struct mr_error *error)
{
    char command[MR_TEMPLATE_MAX];
    struct words words = {.size = 0};
    int fds[2], status = 0;
    bool has_ended;
    pid_t pid;

    if (!mr_template_fill(text, values, command, sizeof(command)))
        return mr_error_set(error, MR_ELIMIT, "the command is too long: %.60s", text);
    if (pipe2(fds, O_CLOEXEC) != 0)
        return mr_error_set_errno(error, MR_EIO, errno, "no pipe");
    pid = fork();
    if (pid == 0)
        become(command, fds[1]);
    (void)close(fds[1]);
    if (pid < 0) {
        (void)close(fds[0]);
        return mr_error_set_errno(error, MR_EIO, errno, "cannot start /bin/sh");
    }
    has_ended =
        wait_for(pid, fds[0], mr_clock_monotonic_ns() + timeout_ns, &words, &status);
    (void)close(fds[0]);
    if (!has_ended)
        return mr_error_set(error, MR_ETIMEOUT,
                            "'%.200s' did not end within --command-timeout", command);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return MR_OK;
    return mr_error_set(error, MR_EIO, "'%.200s' ended with %d: %.200s", command,
                        WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                        last_line(&words));
}
