/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker and a master, as a user runs them, on free ports of loopback; their store and
 * log in a folder. One thread.
 *
 *     status = mr_server_start(&server, "./millrace.bench/chain", &error);
 *     setenv("MILLRACE_ENDPOINT", server.endpoint, 1);
 *     mr_server_stop(&server);
 */
#ifndef MR_BENCH_SERVER_H
#define MR_BENCH_SERVER_H

#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

struct mr_server {
    pid_t master, worker; /* 0: does not run */
    char endpoint[128];   /* of the worker */
};

/* MR_EIO when one does not come up; FOLDER/worker.log or master.log says why. */
enum mr_status mr_server_start(struct mr_server *server, const char *folder,
                               struct mr_error *error);
/* Ends the worker, then the master; killed after 30 s each. Allowed on all zeros. */
void mr_server_stop(struct mr_server *server);

#endif
