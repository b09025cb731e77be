/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `millrace record PROGRAM ARGS...`: runs a program that has a probe in it, and tells where its time
 * went. Without --endpoint, a private worker and master take what the probe sends:
 *
 *     record --fork--> master   (port 0, store in DIR)
 *            --fork--> worker   (port 0, forwards to the master)
 *            --fork--> PROGRAM  (MILLRACE_ENDPOINT = the worker; its own stdin, stdout, stderr)
 *
 * and are stopped when it has ended, the worker first, so that everything reaches the store.
 *
 *     return mr_record_command(argc - 1, argv + 1);       // argv[0] is "record"
 */
#ifndef MR_CLI_RECORD_H
#define MR_CLI_RECORD_H

/*
 * The program's exit status, or 128 + the signal that ended it. Else, as shells have it: 127 where
 * the program was not found, 126 where it cannot be executed; 2 for a mistake in options and for a
 * program without a probe; 1 where the recording could not be made.
 */
int mr_record_command(int argc, char **argv);

#endif
