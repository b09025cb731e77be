/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The master: takes the deltas of workers, holds the model, keeps it in a store, answers
 * HTTP. Threads: ingest (connections, model), commit (store), HTTP; this one waits for a
 * signal.
 *
 * Use (cli/main.c):
 *     return mr_master_command(argc - 1, argv + 1);     // argv[0] is "master"
 */
#ifndef MR_MASTER_MASTER_H
#define MR_MASTER_MASTER_H

/*
 * Runs `millrace master` until SIGTERM or SIGINT. The process' exit status: 0 after a
 * signal, 1 when it could not go on, 2 for what was wrong at the start (options, port,
 * store), after one line on stderr.
 */
int mr_master_command(int argc, char **argv);

#endif
