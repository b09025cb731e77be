/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/command.h"

#include "base/assert.h"
#include "base/clock.h"
#include "bench/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_MAX ((size_t)1 << 20)
#define POLL_MS 200
#define EXIT_EXEC 127

static bool is_dropped(const char *variable)
{
    static const char *const dropped[] = {"MILLRACE_", "LTTNG_", "XRAY_",
                                          "UFTRACE_",  "OTEL_",  "LD_PRELOAD="};

    for (size_t i = 0; i < MR_ARRAY_COUNT(dropped); i++)
        if (strncmp(variable, dropped[i], strlen(dropped[i])) == 0)
            return true;
    return false;
}

void mr_command_set_environment(const struct mr_words *env)
{
    size_t kept = 0;

    for (size_t i = 0; environ[i]; i++)
        if (!is_dropped(environ[i]))
            environ[kept++] = environ[i];
    environ[kept] = NULL;
    for (size_t i = 0; env && i < env->count; i++)
        (void)putenv(env->items[i]);
}

MR_NORETURN static void become(const struct mr_command *command, const int fds[4],
                               pid_t parent)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_EXEC);
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(fds[1], STDOUT_FILENO);
    (void)dup2(fds[3], STDERR_FILENO);
    mr_command_set_environment(command->env);
    if (!command->directory || chdir(command->directory) == 0)
        (void)execvp(command->argv->items[0], command->argv->items);
    (void)dprintf(STDERR_FILENO, "%s: %s\n", command->argv->items[0], strerror(errno));
    _exit(EXIT_EXEC);
}

/* What a pipe holds; past the limit it is read and forgotten. False at its end. */
static bool take(int fd, struct mr_buffer *buffer)
{
    uint8_t bytes[16384];
    ssize_t count = read(fd, bytes, sizeof(bytes));

    if (count < 0)
        return errno == EINTR || errno == EAGAIN;
    if (count > 0)
        (void)mr_buffer_append(buffer, bytes, (size_t)count);
    return count > 0;
}

/* Until both pipes are closed. MR_OK, MR_ETIMEOUT, MR_END. */
static enum mr_status listen_to(struct mr_command *command, int out, int err)
{
    struct pollfd fds[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
    struct mr_buffer *buffers[2] = {&command->output, &command->errors};

    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        if (mr_interrupt_seen())
            return MR_END;
        if (mr_clock_monotonic_ns() - command->started_ns > command->timeout_ns)
            return MR_ETIMEOUT;
        if (poll(fds, 2, POLL_MS) <= 0)
            continue;
        for (int i = 0; i < 2; i++)
            if (fds[i].revents && !take(fds[i].fd, buffers[i]))
                fds[i].fd = -1;
    }
    return MR_OK;
}

static uint64_t ns_of(struct timeval time)
{
    return (uint64_t)time.tv_sec * MR_SECOND_NS + (uint64_t)time.tv_usec * 1000;
}

pid_t mr_usage_wait(pid_t pid, int options, int *status, struct mr_usage *usage)
{
    struct rusage resources;
    pid_t ended = wait4(pid, status, options, &resources);

    if (ended == pid)
        usage->cpu_ns = ns_of(resources.ru_utime) + ns_of(resources.ru_stime);
    return ended;
}

uint64_t mr_usage_peak_kib(pid_t pid)
{
    char path[64], line[128];
    uint64_t peak_kib = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "VmHWM:", 6) == 0)
            peak_kib = strtoull(line + 6, NULL, 10);
    if (file)
        (void)fclose(file);
    return peak_kib;
}

static void reap(struct mr_command *command, pid_t pid)
{
    struct mr_usage usage = {0};
    int status = 0;

    while (mr_usage_wait(pid, 0, &status, &usage) < 0 && errno == EINTR)
        continue;
    command->wall_ns = mr_clock_monotonic_ns() - command->started_ns;
    command->cpu_ns = usage.cpu_ns;
    command->exit_status =
        WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

const char *mr_command_text(struct mr_buffer *output)
{
    if (output->size == 0 || output->data[output->size - 1] != '\0') {
        if (mr_buffer_append_byte(output, 0) != MR_OK)
            return "";
    }
    return (const char *)output->data;
}

void mr_command_last_line(struct mr_buffer *output, char *out, size_t size)
{
    const char *text = mr_command_text(output);
    const char *end = text + strlen(text), *start;

    while (end > text && (end[-1] == '\n' || end[-1] == ' '))
        end--;
    for (start = end; start > text && start[-1] != '\n'; start--)
        continue;
    (void)snprintf(out, size, "%.*s", (int)(end - start), start);
}

static enum mr_status judge(struct mr_command *command, enum mr_status status,
                            struct mr_error *error)
{
    const char *name = command->argv->items[0];
    char line[160];

    if (mr_interrupt_seen() || status == MR_END)
        return MR_END;
    if (status == MR_ETIMEOUT)
        return mr_error_set(error, status, "%s: not done within %.0f s", name,
                            (double)command->timeout_ns / 1e9);
    if (command->exit_status == 0)
        return MR_OK;
    mr_command_last_line(&command->errors, line, sizeof(line));
    if (command->exit_status == EXIT_EXEC && access(name, F_OK) != 0)
        return mr_error_set(error, MR_ENOTFOUND, "%s", line);
    return mr_error_set(error, MR_EIO, "%s ended with %d: %s", name, command->exit_status,
                        line);
}

static enum mr_status start(struct mr_command *command, int fds[4], pid_t *pid)
{
    pid_t parent = getpid();

    if (pipe2(fds, O_CLOEXEC) != 0)
        return MR_EIO;
    if (pipe2(fds + 2, O_CLOEXEC) != 0) {
        (void)close(fds[0]);
        (void)close(fds[1]);
        return MR_EIO;
    }
    command->started_ns = mr_clock_monotonic_ns();
    *pid = fork();
    if (*pid == 0)
        become(command, fds, parent);
    (void)close(fds[1]);
    (void)close(fds[3]);
    if (*pid > 0)
        return MR_OK;
    (void)close(fds[0]);
    (void)close(fds[2]);
    return MR_EIO;
}

enum mr_status mr_command_run(struct mr_command *command, struct mr_error *error)
{
    enum mr_status status;
    int fds[4];
    pid_t pid;

    MR_ASSERT(command->argv->count > 0 && command->timeout_ns > 0);
    mr_buffer_init(&command->output, OUTPUT_MAX);
    mr_buffer_init(&command->errors, OUTPUT_MAX);
    if (command->argv->failed || (command->env && command->env->failed))
        return mr_error_set(error, MR_ENOMEM, "the command line is too long");
    if (start(command, fds, &pid) != MR_OK)
        return mr_error_set_errno(error, MR_EIO, errno, "cannot start %s",
                                  command->argv->items[0]);
    status = listen_to(command, fds[0], fds[2]);
    if (status != MR_OK)
        (void)kill(pid, SIGKILL);
    reap(command, pid);
    (void)close(fds[0]);
    (void)close(fds[2]);
    return judge(command, status, error);
}

void mr_command_fini(struct mr_command *command)
{
    mr_buffer_fini(&command->output);
    mr_buffer_fini(&command->errors);
}
