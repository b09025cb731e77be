/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/server.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "bench/command.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READY_NS (20 * MR_SECOND_NS)
#define STOP_NS (30 * MR_SECOND_NS)
#define SELF "/proc/self/exe"

static void pause_2ms(void)
{
    const struct timespec time = {.tv_nsec = 2000000};

    (void)nanosleep(&time, NULL);
}

MR_NORETURN static void become(char *const argv[], const char *log, pid_t parent)
{
    int out = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpgid(0, 0); /* the terminal's signals are not for it */
    if (getppid() != parent || out < 0)
        _exit(127);
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(out, STDERR_FILENO);
    mr_command_set_environment(NULL);
    (void)execv(SELF, argv);
    _exit(127);
}

static bool has_ended(pid_t *pid)
{
    if (waitpid(*pid, NULL, WNOHANG) != *pid)
        return false;
    *pid = 0;
    return true;
}

/* "listen" of the ready file, once it is there. */
static bool read_ready(const char *path, char *out, size_t size)
{
    json_t *json = json_load_file(path, 0, NULL);
    const char *listen = json_string_value(json_object_get(json, "listen"));

    if (listen)
        (void)snprintf(out, size, "tcp://%s", listen);
    json_decref(json);
    return listen != NULL;
}

static enum mr_status start(const char *folder, const char *name, char *const argv[],
                            pid_t *pid, char *endpoint, size_t size,
                            struct mr_error *error)
{
    uint64_t deadline_ns = mr_clock_monotonic_ns() + READY_NS;
    char ready[PATH_MAX], log[PATH_MAX];
    pid_t parent = getpid();

    (void)snprintf(ready, sizeof(ready), "%s/%s.ready", folder, name);
    (void)snprintf(log, sizeof(log), "%s/%s.log", folder, name);
    (void)unlink(ready);
    *pid = fork();
    if (*pid == 0)
        become(argv, log, parent);
    if (*pid < 0) {
        *pid = 0;
        return mr_error_set_errno(error, MR_EIO, errno, "cannot start the %s", name);
    }
    while (!read_ready(ready, endpoint, size)) {
        if (has_ended(pid) || mr_clock_monotonic_ns() > deadline_ns)
            return mr_error_set(error, MR_EIO, "the %s did not start; see %.100s", name,
                                log);
        pause_2ms();
    }
    return MR_OK;
}

static void stop(pid_t *pid)
{
    uint64_t deadline_ns = mr_clock_monotonic_ns() + STOP_NS;

    if (*pid <= 0)
        return;
    (void)kill(*pid, SIGTERM);
    while (!has_ended(pid)) {
        if (mr_clock_monotonic_ns() > deadline_ns)
            (void)kill(*pid, SIGKILL);
        pause_2ms();
    }
}

/* Words of a command line, which execv() wants to be writable. */
#define WORD(text) ((char *)(uintptr_t)(text))

enum mr_status mr_server_start(struct mr_server *server, const char *folder,
                               struct mr_error *error)
{
    char store[PATH_MAX], master_ready[PATH_MAX], worker_ready[PATH_MAX], master[128];
    char *const master_argv[] = {WORD("millrace"),
                                 WORD("master"),
                                 WORD("--listen"),
                                 WORD("tcp://127.0.0.1:0"),
                                 WORD("--http"),
                                 WORD("127.0.0.1:0"),
                                 WORD("--store"),
                                 store,
                                 WORD("--ready-file"),
                                 master_ready,
                                 NULL};
    char *const worker_argv[] = {
        WORD("millrace"),          WORD("worker"),    WORD("--listen"),
        WORD("tcp://127.0.0.1:0"), WORD("--forward"), master,
        WORD("--ready-file"),      worker_ready,      NULL};
    enum mr_status status;

    *server = (struct mr_server){0};
    (void)snprintf(store, sizeof(store), "%s/store", folder);
    (void)snprintf(master_ready, sizeof(master_ready), "%s/master.ready", folder);
    (void)snprintf(worker_ready, sizeof(worker_ready), "%s/worker.ready", folder);
    status = start(folder, "master", master_argv, &server->master, master, sizeof(master),
                   error);
    if (status == MR_OK)
        status = start(folder, "worker", worker_argv, &server->worker, server->endpoint,
                       sizeof(server->endpoint), error);
    if (status != MR_OK)
        mr_server_stop(server);
    return status;
}

void mr_server_stop(struct mr_server *server)
{
    stop(&server->worker);
    stop(&server->master);
}
