/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chain.h"

#include "base/assert.h"
#include "base/clock.h"
#include "cli/run.h"
#include "master/store.h"
#include "pipeline/filters/forward.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STOP_SLACK_NS (10 * MR_SECOND_NS) /* beyond the drain time-outs, before SIGKILL */
#define STORE_PATIENCE "10s" /* a full disk: who waits at a terminal is told */
#define ANY_PORT "tcp://127.0.0.1:0"

/* What a recording's directory may hold: the store, its side files, and the run. */
static bool is_ours(const char *name)
{
    return strcmp(name, MR_STORE_LOCK) == 0 || strcmp(name, MR_RUN_FILE) == 0 ||
           strncmp(name, MR_STORE_FILE, strlen(MR_STORE_FILE)) == 0;
}

/* Calls unlink for each entry if `remove`, else looks whether all are ours. */
static enum mr_status walk(const char *directory, bool remove, struct mr_error *error)
{
    DIR *dir = opendir(directory);
    struct dirent *entry;
    enum mr_status status = MR_OK;

    if (!dir)
        return mr_error_set_errno(error, MR_EREFUSED, errno, "--output: %s", directory);
    while (status == MR_OK && (entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (!is_ours(entry->d_name))
            status =
                mr_error_set(error, MR_EREFUSED,
                             "--output: %s holds '%.80s', which is no recording: name "
                             "another directory",
                             directory, entry->d_name);
        else if (remove && unlinkat(dirfd(dir), entry->d_name, 0) != 0)
            status = mr_error_set_errno(error, MR_EREFUSED, errno,
                                        "--output: %s: cannot "
                                        "remove %.80s",
                                        directory, entry->d_name);
    }
    (void)closedir(dir);
    return status;
}

enum mr_status mr_recording_clear(const char *directory, struct mr_error *error)
{
    enum mr_status status;

    if (mkdir(directory, 0755) != 0 && errno != EEXIST)
        return mr_error_set_errno(error, MR_EREFUSED, errno, "--output: %s", directory);
    status = walk(directory, false, error);
    if (status == MR_OK && access(directory, R_OK | W_OK | X_OK) != 0)
        status = mr_error_set_errno(error, MR_EREFUSED, errno, "--output: %s", directory);
    return status == MR_OK ? walk(directory, true, error) : status;
}

void mr_recording_remove(const char *directory)
{
    struct mr_error error = MR_ERROR_NONE;

    if (mr_recording_clear(directory, &error) == MR_OK)
        (void)rmdir(directory);
}

static enum mr_status start_master(struct mr_chain *chain, char *listen, size_t size,
                                   struct mr_error *error)
{
    char ready[MR_CHAIN_PATH_MAX + 8];
    char *const argv[] = {(char[]){"millrace"},
                          (char[]){"master"},
                          (char[]){"--listen"},
                          (char[]){ANY_PORT},
                          (char[]){"--http"},
                          (char[]){ANY_PORT},
                          (char[]){"--store"},
                          strdup(chain->options.store),
                          (char[]){"--ready-file"},
                          ready,
                          (char[]){"--log-level"},
                          (char[]){"warn"},
                          (char[]){"--store-patience=" STORE_PATIENCE},
                          NULL};
    enum mr_status status;

    (void)snprintf(ready, sizeof(ready), "%s/master", chain->directory);
    if (!argv[7])
        return mr_error_set(error, MR_ENOMEM, "no memory");
    status = mr_child_start_server("master", argv, &chain->master, error);
    free(argv[7]);
    if (status == MR_OK)
        status = mr_child_wait_ready(&chain->master, ready, listen, size, error);
    return status;
}

/* Behind those that are there; there is room. */
static void add_argument(char **argv, char *argument)
{
    while (*argv)
        argv++;
    *argv = argument;
}

static enum mr_status start_worker(struct mr_chain *chain, const char *forward,
                                   struct mr_error *error)
{
    const struct mr_chain_options *options = &chain->options;
    char ready[MR_CHAIN_PATH_MAX + 8], listen[280], to[300], shapes[64], drain[64];
    char outer[MR_CHAIN_GLOBS_MAX + 16], root[MR_CHAIN_GLOBS_MAX + 16];
    char any_time[] = "--clock-limit=0";
    char *argv[16] = {(char[]){"millrace"},
                      (char[]){"worker"},
                      (char[]){"--listen"},
                      (char[]){ANY_PORT},
                      (char[]){"--ready-file"},
                      ready,
                      (char[]){"--log-level"},
                      (char[]){"warn"},
                      to,
                      shapes,
                      drain};
    enum mr_status status;

    (void)snprintf(ready, sizeof(ready), "%s/worker", chain->directory);
    (void)snprintf(to, sizeof(to), "--forward=tcp://%s", forward);
    (void)snprintf(shapes, sizeof(shapes), "--shapes=%s", options->shapes);
    (void)snprintf(drain, sizeof(drain), "--drain-timeout=%" PRIu64 "ns",
                   options->drain_timeout_ns);
    (void)snprintf(outer, sizeof(outer), "--outer=%s", options->outer);
    (void)snprintf(root, sizeof(root), "--root=%s", options->root);
    if (*options->outer)
        add_argument(argv, outer);
    if (*options->root)
        add_argument(argv, root);
    if (options->is_of_any_time)
        add_argument(argv, any_time);
    status = mr_child_start_server("worker", argv, &chain->worker, error);
    if (status == MR_OK)
        status =
            mr_child_wait_ready(&chain->worker, ready, listen, sizeof(listen), error);
    if (status == MR_OK)
        (void)snprintf(chain->endpoint, sizeof(chain->endpoint), "tcp://%s", listen);
    return status;
}

static void remove_directory(const struct mr_chain *chain)
{
    char path[MR_CHAIN_PATH_MAX + 8];

    (void)snprintf(path, sizeof(path), "%s/master", chain->directory);
    (void)unlink(path);
    (void)snprintf(path, sizeof(path), "%s/worker", chain->directory);
    (void)unlink(path);
    (void)rmdir(chain->directory);
}

/* Of the ready files. */
static enum mr_status make_directory(struct mr_chain *chain, struct mr_error *error)
{
    const char *place = getenv("TMPDIR");

    if (!place || !*place)
        place = "/tmp";
    if (snprintf(chain->directory, sizeof(chain->directory), "%s/millrace-record-XXXXXX",
                 place) >= (int)sizeof(chain->directory))
        return mr_error_set(error, MR_EIO, "TMPDIR: longer than %zu bytes",
                            sizeof(chain->directory));
    if (!mkdtemp(chain->directory))
        return mr_error_set_errno(error, MR_EIO, errno,
                                  "no small files can be kept in %.100s (TMPDIR names "
                                  "another place)",
                                  place);
    return MR_OK;
}

enum mr_status mr_chain_start(const struct mr_chain_options *options,
                              struct mr_chain *chain, struct mr_error *error)
{
    char listen[280];
    enum mr_status status;

    *chain = (struct mr_chain){.options = *options};
    MR_ASSERT(strlen(options->outer) <= MR_CHAIN_GLOBS_MAX);
    MR_ASSERT(strlen(options->root) <= MR_CHAIN_GLOBS_MAX);
    status = make_directory(chain, error);
    if (status != MR_OK)
        return status;
    status = start_master(chain, listen, sizeof(listen), error);
    if (status == MR_OK)
        status = start_worker(chain, listen, error);
    if (status != MR_OK)
        (void)mr_chain_stop(chain);
    return status;
}

bool mr_chain_stop(struct mr_chain *chain)
{
    uint64_t wait_ns =
        (1 + MR_FORWARD_PATIENCE) * chain->options.drain_timeout_ns + STOP_SLACK_NS;
    int worker = mr_child_stop(&chain->worker, &chain->master, wait_ns);
    int master = mr_child_stop(&chain->master, NULL, wait_ns);

    remove_directory(chain);
    return worker == 0 && master == 0;
}
