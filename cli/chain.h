/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The private chain of `millrace record`: one master with its store in a directory, one worker, both
 * on loopback ports of the kernel's choice. One thread.
 *
 *     status = mr_chain_start(&options, &chain, &error);
 *     setenv("MILLRACE_ENDPOINT", chain.endpoint, 1);
 *     ...
 *     complete = mr_chain_stop(&chain);
 */
#ifndef MR_CLI_CHAIN_H
#define MR_CLI_CHAIN_H

#include "base/error.h"
#include "cli/child.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define MR_CHAIN_GLOBS_MAX 8000 /* bytes of --outer and of --root: one argument each */
#define MR_CHAIN_PATH_MAX 1024

struct mr_chain_options {
    const char *store; /* a directory that is empty */
    const char *outer, *root, *shapes;
    uint64_t drain_timeout_ns;
    bool is_of_any_time; /* what is recorded may be older than a day */
};

struct mr_chain {
    struct mr_chain_options options;
    struct mr_child master, worker;
    char directory[MR_CHAIN_PATH_MAX]; /* of the ready files; removed at the end */
    char endpoint[300];                /* tcp://HOST:PORT of the worker */
};

/*
 * MR_EIO when a server does not come up; its own line on stderr says why. MR_END: a signal came (cli/signals.h, which are taken
 * before). No process and no ready file is left then.
 */
enum mr_status mr_chain_start(const struct mr_chain_options *options,
                              struct mr_chain *chain, struct mr_error *error);

/*
 * Ends the worker, which a signal cuts short, then the master. True if both say that nothing was given up.
 */
bool mr_chain_stop(struct mr_chain *chain);

/*
 * Makes `directory`, or frees it, for a new recording: what a recording left there is removed. MR_EREFUSED
 * when something else is in it, which is left alone, or it cannot be written.
 */
enum mr_status mr_recording_clear(const char *directory, struct mr_error *error);
/* What could not be made whole is not left for somebody to take for it. */
void mr_recording_remove(const char *directory);

#endif
