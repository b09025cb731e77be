/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `millrace report [DIR]`: prints what a recording, or a master's store, holds. It only reads, also
 * while a master writes.
 *
 *     return mr_report_command(argc - 1, argv + 1);       // argv[0] is "report"
 */
#ifndef MR_CLI_REPORT_H
#define MR_CLI_REPORT_H

#include "base/error.h"
#include "cli/summary_text.h"

#include <stdbool.h>
#include <stdio.h>

#define MR_DATA_DIRECTORY "./millrace.data" /* where record leaves what it found */

/* The exit status: 0; 1 when it could not be read or printed; 2 for a mistake in options. */
int mr_report_command(int argc, char **argv);

/* Loads the store and prints it to `out`; for record, too. MR_ENOTFOUND, MR_EFORMAT, MR_EIO. */
enum mr_status mr_report_print(const char *directory, const struct mr_view *view,
                               bool json, FILE *out, struct mr_error *error);

#endif
