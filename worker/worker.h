/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `millrace worker`: takes events from probes (level 1) or deltas from workers (level n), reduces and
 * merges them, and sends the result to the next level.
 *
 *     main thread     signals, accept, HELLO (greeter), stats file
 *        | the sender's home, or the lane with the fewest connections
 *     lane 0..n-1     connections -> decode -> reconstruct -> reduce        (one thread each)
 *        | pipes
 *     trunk           names -> merge -> | forward ==> next level            (two threads)
 *
 *     int main(int argc, char **argv) { return mr_worker_command(argc, argv); }
 */
#ifndef MR_WORKER_WORKER_H
#define MR_WORKER_WORKER_H

/*
 * Runs until SIGTERM or SIGINT (a second one ends it at once). argv[0] is the name of the command.
 * The exit status: 0 when everything taken was acknowledged above; 1 when something had to be given
 * up (told in one line) or the worker could not go on; 2 for a mistake in options or addresses.
 */
int mr_worker_command(int argc, char **argv);

#endif
