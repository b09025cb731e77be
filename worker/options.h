/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `millrace worker` was told: parsed once (worker/options.def), checked, then const. Strings are
 * borrowed from argv and environment; what was made from them is owned. Before any thread starts.
 *
 *     struct mr_worker_options options;
 *     int exit_status = mr_worker_options_read(argc, argv, &options);
 *     if (exit_status >= 0)
 *         return exit_status;
 */
#ifndef MR_WORKER_OPTIONS_H
#define MR_WORKER_OPTIONS_H

#include "base/log.h"
#include "base/options.h"
#include "net/endpoint.h"
#include "net/token.h"
#include "worker/globs.h"

struct mr_worker_options {
#define MR_OPTION MR_OPTION_FIELD
#include "worker/options.def"
#undef MR_OPTION
    /* Made from the above. */
    struct mr_endpoint listen_at;
    struct mr_endpoint metrics_at; /* if `metrics` is not empty */
    struct mr_endpoint agent_at;   /* if `agent` is not empty */
    struct mr_endpoints peers_at;  /* if `peers` is not empty */
    struct mr_endpoints forward_at;
    struct mr_sender_address addresses[MR_SENDER_ADDRESSES_MAX];
    uint32_t address_count;
    char token[MR_TOKEN_SIZE]; /* "" for none */
    struct mr_globs outer_globs, root_globs;
};

enum mr_worker_until {
    MR_WORKER_UNTIL_REDUCE = 0,
    MR_WORKER_UNTIL_RECONSTRUCT = 1,
    MR_WORKER_UNTIL_DECODE = 2
};
enum mr_worker_placement { MR_WORKER_FUSED = 0, MR_WORKER_THREADS = 1 };

void mr_worker_options_fini(struct mr_worker_options *options);

/* -1 to go on, else the exit status: 0 after help, 2 after one line that says what is wrong. */
int mr_worker_options_read(int argc, char **argv, struct mr_worker_options *options);

#endif
