/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other tracers, each as its manual has it for recording every call of a program:
 *
 *     uftrace   gcc -pg; uftrace record -d DIR PROGRAM
 *     lttng     gcc -finstrument-functions; a session in its default mode (discard), written to
 *               disk; liblttng-ust-cyg-profile-fast preloaded, by the name that it has without its headers
 *     xray-fdr  clang -fxray-instrument; flight recorder in memory, threshold 0: every call
 */
#include "bench/rivals.h"

#include "bench/machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UFTRACE_RECORD 16 /* bytes; one per event */
#define LTTNG_SESSION "millrace-bench"
#define LTTNG_NS (60 * MR_SECOND_NS)
#define DAEMON_NS (10 * MR_SECOND_NS)

/* Sum of the sizes of files below `folder` whose names end so, and, maybe, removes all. */
static double walk(const char *folder, const char *end, bool remove_all)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    double bytes = 0;

    while (dir && (entry = readdir(dir)) != NULL) {
        char path[PATH_MAX];
        size_t size = strlen(entry->d_name);
        struct stat status;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >=
                (int)sizeof(path) ||
            lstat(path, &status) != 0)
            continue;
        if (S_ISDIR(status.st_mode))
            bytes += walk(path, end, remove_all);
        else if (size >= strlen(end) &&
                 strcmp(entry->d_name + size - strlen(end), end) == 0)
            bytes += (double)status.st_size;
        if (remove_all && remove(path) != 0)
            break;
    }
    if (dir)
        (void)closedir(dir);
    return bytes;
}

enum mr_status mr_rival_uftrace_begin(struct mr_rivals *rivals, struct mr_words *argv,
                                      struct mr_words *env, struct mr_error *error)
{
    MR_UNUSED(env);
    MR_UNUSED(error);
    mr_words_split(argv, MR_RIVAL_UFTRACE);
    mr_words_add(argv, "%s", rivals->folder);
    return MR_OK;
}

/* TID.dat holds a thread's records; what the kernel told lies in perf-cpuN.dat. */
void mr_rival_uftrace_end(struct mr_rivals *rivals, double *events, double *bytes)
{
    char path[PATH_MAX];
    double perf = 0;

    for (int cpu = 0; cpu < 1024; cpu++) {
        struct stat status;

        (void)snprintf(path, sizeof(path), "%.*s/perf-cpu%d.dat", PATH_MAX - 32,
                       rivals->folder, cpu);
        if (stat(path, &status) != 0)
            break;
        perf += (double)status.st_size;
    }
    *bytes = walk(rivals->folder, ".dat", true) - perf;
    *events = *bytes / UFTRACE_RECORD;
}

static enum mr_status lttng(const struct mr_rivals *rivals, const char *words,
                            const char *last, struct mr_error *error)
{
    struct mr_words line = {0};
    enum mr_status status;

    mr_words_split(&line, words);
    if (last)
        mr_words_add(&line, "%s", last);
    status = mr_build_run(rivals->build, &line, LTTNG_NS, error);
    mr_words_fini(&line);
    return status;
}

MR_NORETURN static void become_daemon(pid_t parent)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    char *const argv[] = {(char[]){"lttng-sessiond"}, (char[]){"--no-kernel"}, NULL};

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)setpgid(0, 0);
    if (getppid() != parent || null < 0)
        _exit(127);
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(null, STDOUT_FILENO);
    (void)dup2(null, STDERR_FILENO);
    (void)execvp(argv[0], argv);
    _exit(127);
}

/* One that runs is used; else ours. */
static enum mr_status need_session_daemon(struct mr_rivals *rivals,
                                          struct mr_error *error)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    uint64_t deadline_ns = mr_clock_monotonic_ns() + DAEMON_NS;
    pid_t parent = getpid();

    if (rivals->session_daemon > 0 ||
        lttng(rivals, "lttng --no-sessiond list", NULL, NULL) == MR_OK)
        return MR_OK;
    rivals->session_daemon = fork();
    if (rivals->session_daemon == 0)
        become_daemon(parent);
    while (rivals->session_daemon > 0 && mr_clock_monotonic_ns() < deadline_ns) {
        if (lttng(rivals, "lttng --no-sessiond list", NULL, NULL) == MR_OK)
            return MR_OK;
        (void)nanosleep(&pause, NULL);
    }
    return mr_error_set(error, MR_EIO, "lttng-sessiond does not start");
}

enum mr_status mr_rival_lttng_begin(struct mr_rivals *rivals, struct mr_words *argv,
                                    struct mr_words *env, struct mr_error *error)
{
    static const char *const create = "lttng --no-sessiond create " LTTNG_SESSION;
    char output[PATH_MAX + 16];
    enum mr_status status = need_session_daemon(rivals, error);

    MR_UNUSED(argv);
    (void)snprintf(output, sizeof(output), "--output=%s", rivals->folder);
    if (status == MR_OK && lttng(rivals, create, output, NULL) != MR_OK) {
        /* One that an interrupted run left in a daemon that is not ours. */
        (void)lttng(rivals, "lttng --no-sessiond destroy " LTTNG_SESSION, NULL, NULL);
        status = lttng(rivals, create, output, error);
    }
    if (status == MR_OK)
        status = lttng(rivals,
                       "lttng --no-sessiond enable-event --session " LTTNG_SESSION " -u",
                       MR_RIVAL_LTTNG_EVENTS, error);
    if (status == MR_OK)
        status = lttng(rivals, "lttng --no-sessiond start " LTTNG_SESSION, NULL, error);
    mr_words_add(env, MR_RIVAL_LTTNG_ENV);
    return status;
}

double mr_rival_lttng_discarded(const char *text)
{
    const char *at = strstr(text, " discarded");

    while (at && at > text && !(at[0] >= '0' && at[0] <= '9'))
        at--;
    while (at && at > text && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at ? strtod(at, NULL) : 0;
}

/* It tells what it discarded, so *events is how many are missing, negative. */
void mr_rival_lttng_end(struct mr_rivals *rivals, double *events, double *bytes)
{
    struct mr_words line = {0};
    struct mr_command stop = {.argv = &line, .timeout_ns = LTTNG_NS};

    mr_words_split(&line, "lttng --no-sessiond stop " LTTNG_SESSION);
    *events = (double)NAN;
    if (mr_command_run(&stop, NULL) == MR_OK)
        *events = -mr_rival_lttng_discarded(mr_command_text(&stop.errors)) -
                  mr_rival_lttng_discarded(mr_command_text(&stop.output));
    mr_command_fini(&stop);
    mr_words_fini(&line);
    (void)lttng(rivals, "lttng --no-sessiond destroy " LTTNG_SESSION, NULL, NULL);
    *bytes = walk(rivals->folder, "", true);
}

enum mr_status mr_rival_xray_begin(struct mr_rivals *rivals, struct mr_words *argv,
                                   struct mr_words *env, struct mr_error *error)
{
    MR_UNUSED(argv);
    MR_UNUSED(error);
    mr_words_add(env, "XRAY_OPTIONS=" MR_RIVAL_XRAY " xray_logfile_base=%s/xray.",
                 rivals->folder);
    mr_words_add(env, MR_RIVAL_XRAY_FDR);
    return MR_OK;
}

/* Its buffers stay in memory, the oldest overwritten: no account. */
void mr_rival_xray_end(struct mr_rivals *rivals, double *events, double *bytes)
{
    *events = *bytes = (double)NAN;
    (void)walk(rivals->folder, "", true);
}

enum mr_status mr_rival_check_loaded(struct mr_command *command, struct mr_error *error)
{
    const char *text = strstr(mr_command_text(&command->errors), "object '");

    if (!text || !strstr(text, "cannot be preloaded"))
        return MR_OK;
    return mr_error_set(error, MR_ENOTFOUND, "%.*s", (int)strcspn(text, "\n"), text);
}

void mr_rivals_stop(struct mr_rivals *rivals)
{
    if (rivals->session_daemon <= 0)
        return;
    (void)kill(rivals->session_daemon, SIGTERM);
    while (waitpid(rivals->session_daemon, NULL, 0) < 0 && errno == EINTR)
        continue;
    rivals->session_daemon = 0;
}

static enum mr_status describe(const struct mr_rivals *rivals,
                               const struct mr_variant *variant, struct mr_buffer *out)
{
    char version[128];
    enum mr_status status;

    mr_build_version(rivals->build, variant->tool, version, sizeof(version));
    status = mr_buffer_append_text(out, "{\"version\": ");
    if (status == MR_OK)
        status = mr_bench_json_text(out, *version ? version : NULL);
    if (status == MR_OK)
        status = mr_buffer_append_text(out, ", \"cflags\": ");
    if (status == MR_OK)
        status = mr_bench_json_text(out, variant->cflags);
    if (status == MR_OK)
        status = mr_buffer_append_text(out, ", \"words\": ");
    if (status == MR_OK)
        status = mr_bench_json_text(out, variant->words);
    return status == MR_OK ? mr_buffer_append_text(out, "}") : status;
}

enum mr_status mr_rivals_describe(const struct mr_rivals *rivals, uint32_t used,
                                  struct mr_buffer *out)
{
    enum mr_status status = MR_OK;
    bool is_first = true;

    for (size_t i = 0; i < mr_variant_count && status == MR_OK; i++) {
        if (!(used >> i & 1) || mr_variants[i].kind != MR_VARIANT_RIVAL)
            continue;
        status = mr_buffer_append_format(out, "%s\"%s\": ", is_first ? "" : ", ",
                                         mr_variants[i].name);
        is_first = false;
        if (status == MR_OK)
            status = describe(rivals, &mr_variants[i], out);
    }
    return status;
}
