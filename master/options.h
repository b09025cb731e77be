/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `millrace master` was told: parsed once (master/options.def), checked, then const.
 * Strings are borrowed from argv and environment. Before any thread starts.
 *
 * Use:
 *     struct mr_master_options options;
 *     int exit_status = mr_master_options_read(argc, argv, &options);
 *     if (exit_status >= 0)
 *         return exit_status;
 */
#ifndef MR_MASTER_OPTIONS_H
#define MR_MASTER_OPTIONS_H

#include "base/log.h"
#include "base/options.h"
#include "net/endpoint.h"
#include "net/token.h"

#define MR_MASTER_STORE_MAX_MIN (UINT64_C(16) << 20) /* some thousand names and paths */

struct mr_master_options {
#define MR_OPTION MR_OPTION_FIELD
#include "master/options.def"
#undef MR_OPTION
    /* Made from the above. */
    struct mr_endpoint listen_at, http_at;
    char token[MR_TOKEN_SIZE]; /* "" for none */
};

/*
 * -1 to go on, else the exit status: 0 after help, 2 after one line that says what is
 * wrong.
 */
int mr_master_options_read(int argc, char **argv, struct mr_master_options *options);

#endif
