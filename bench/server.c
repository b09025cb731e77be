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

static bool has_ended(pid_t *pid, struct mr_usage *usage)
{
    if (mr_usage_wait(*pid, WNOHANG, NULL, usage) != *pid)
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

/* The log goes with its folder, so its last line is told; of a full disk it may be empty. */
static enum mr_status tell_not_started(const char *name, const char *log,
                                       struct mr_error *error)
{
    char line[160], last[160] = "nothing: is there room for its files?";
    FILE *file = fopen(log, "re");

    while (file && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line)
            (void)snprintf(last, sizeof(last), "%s", line);
    }
    if (file)
        (void)fclose(file);
    return mr_error_set(error, MR_EIO, "the %s did not start; it said %s", name, last);
}

enum mr_status mr_server_run(const char *folder, const char *name, struct mr_words *argv,
                             pid_t *pid, char *endpoint, size_t size,
                             struct mr_error *error)
{
    uint64_t deadline_ns = mr_clock_monotonic_ns() + READY_NS;
    char ready[PATH_MAX], log[PATH_MAX];
    struct mr_usage usage;
    pid_t parent = getpid();

    (void)snprintf(ready, sizeof(ready), "%s/%s.ready", folder, name);
    (void)snprintf(log, sizeof(log), "%s/%s.log", folder, name);
    (void)unlink(ready);
    mr_words_add(argv, "--ready-file");
    mr_words_add(argv, "%s", ready);
    if (argv->failed)
        return mr_error_set(error, MR_ENOMEM, "the %s's command line is too long", name);
    *pid = fork();
    if (*pid == 0)
        become(argv->items, log, parent);
    if (*pid < 0) {
        *pid = 0;
        return mr_error_set_errno(error, MR_EIO, errno, "cannot start the %s", name);
    }
    while (!read_ready(ready, endpoint, size)) {
        if (has_ended(pid, &usage) || mr_clock_monotonic_ns() > deadline_ns)
            return tell_not_started(name, log, error);
        pause_2ms();
    }
    return MR_OK;
}

void mr_server_end(pid_t *pid, struct mr_usage *usage)
{
    uint64_t deadline_ns = mr_clock_monotonic_ns() + STOP_NS;

    if (*pid <= 0)
        return;
    usage->peak_kib = mr_usage_peak_kib(*pid);
    (void)kill(*pid, SIGTERM);
    while (!has_ended(pid, usage)) {
        if (mr_clock_monotonic_ns() > deadline_ns)
            (void)kill(*pid, SIGKILL);
        pause_2ms();
    }
}

static void add_listen(const struct mr_server_config *config, struct mr_words *argv)
{
    mr_words_add(argv, "--listen");
    mr_words_add(argv, "tcp://%s:0", config->host ? config->host : "127.0.0.1");
    if (config->host)
        mr_words_add(argv, "--insecure");
}

static enum mr_status start_master(struct mr_server *server,
                                   const struct mr_server_config *config, char *endpoint,
                                   size_t size, struct mr_error *error)
{
    struct mr_words argv = {0};
    enum mr_status status;

    mr_words_split(&argv, "millrace master --listen tcp://127.0.0.1:0 --http 127.0.0.1:0 "
                          "--store");
    mr_words_add(&argv, "%s/store", config->folder);
    status = mr_server_run(config->folder, "master", &argv, &server->master, endpoint,
                           size, error);
    mr_words_fini(&argv);
    return status;
}

static enum mr_status start_worker(struct mr_server *server,
                                   const struct mr_server_config *config,
                                   const char *master, struct mr_error *error)
{
    struct mr_words argv = {0};
    enum mr_status status;

    mr_words_split(&argv, "millrace worker --forward");
    mr_words_add(&argv, "%s", master);
    add_listen(config, &argv);
    if (config->worker)
        mr_words_add_all(&argv, config->worker);
    status = mr_server_run(config->folder, "worker", &argv, &server->worker,
                           server->endpoint, sizeof(server->endpoint), error);
    mr_words_fini(&argv);
    return status;
}

enum mr_status mr_server_start(struct mr_server *server,
                               const struct mr_server_config *config,
                               struct mr_error *error)
{
    char master[128];
    enum mr_status status;

    *server = (struct mr_server){0};
    status = start_master(server, config, master, sizeof(master), error);
    if (status == MR_OK)
        status = start_worker(server, config, master, error);
    if (status != MR_OK)
        mr_server_stop(server);
    return status;
}

void mr_server_stop(struct mr_server *server)
{
    mr_server_end(&server->worker, &server->worker_usage);
    mr_server_end(&server->master, &server->master_usage);
}
