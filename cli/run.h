/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a recorded run besides its calls: command line, time, exit status. Kept as
 * DIR/record.json beside the store, so that report prints what record printed. One thread.
 *
 *     mr_run_save(&run, "./millrace.data", &error);
 *     if (mr_run_load(&run, "./millrace.data") == MR_OK) ...
 *     mr_run_fini(&run);
 */
#ifndef MR_CLI_RUN_H
#define MR_CLI_RUN_H

#include "base/error.h"

#include <stdint.h>

#define MR_RUN_FILE "record.json"

struct mr_run {
    char *command;       /* as a shell would take it; owned */
    uint64_t started_ns; /* Unix time */
    uint64_t wall_ns;
    uint64_t plain_ns; /* without tracing (--compare); 0: not measured */
    int exit_status;   /* 128 + signal where one ended it */
};

enum mr_status mr_run_save(const struct mr_run *run, const char *directory,
                           struct mr_error *error);
/* MR_ENOTFOUND where there is none (the data of a master), MR_EFORMAT. */
enum mr_status mr_run_load(struct mr_run *run, const char *directory);
void mr_run_fini(struct mr_run *run);

/* argv as one line, quoted where a shell needs it, what is no UTF-8 as '?'; NULL without memory. Owned by the caller. */
char *mr_run_command_line(char *const argv[]);

#endif
