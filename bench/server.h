/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker and a master, as a user runs them, on free ports; their store and log in a folder. One thread.
 *
 *     const struct mr_server_config config = {.folder = "./millrace.bench/chain"};
 *     status = mr_server_start(&server, &config, &error);
 *     setenv("MILLRACE_ENDPOINT", server.endpoint, 1);
 *     mr_server_stop(&server);
 */
#ifndef MR_BENCH_SERVER_H
#define MR_BENCH_SERVER_H

#include "base/error.h"

#include "bench/command.h"

#include <stdint.h>
#include <sys/types.h>

struct mr_server_config {
    const char *folder;
    const char *host;              /* an address of this machine; NULL: loopback */
    const struct mr_words *worker; /* more options of the worker; NULL: none */
};

struct mr_server {
    pid_t master, worker;                       /* 0: does not run */
    char endpoint[128];                         /* of the worker */
    struct mr_usage master_usage, worker_usage; /* once it was stopped */
};

/*
 * Any command of ours that writes a ready file: `argv`, with what it needs behind it, in a process that dies with us; its
 * endpoint. MR_EIO: it did not come up, with the last line that it wrote to FOLDER/NAME.log.
 */
enum mr_status mr_server_run(const char *folder, const char *name, struct mr_words *argv,
                             pid_t *pid, char *endpoint, size_t size,
                             struct mr_error *error);
/* SIGTERM, and SIGKILL after 30 s; what it took. Nothing for a pid of 0, which it is behind it. */
void mr_server_end(pid_t *pid, struct mr_usage *usage);

/* MR_EIO when one does not come up, with its last words. */
enum mr_status mr_server_start(struct mr_server *server,
                               const struct mr_server_config *config,
                               struct mr_error *error);
/* Ends the worker, then the master; killed after 30 s each. Allowed on all zeros. */
void mr_server_stop(struct mr_server *server);

#endif
