/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `millrace attach PID`: asks the probe of a running program what it does, and switches
 * recording on and off. The program was started with MILLRACE_CONTROL=1.
 *
 *     return mr_attach_command(argc - 1, argv + 1);       // argv[0] is "attach"
 */
#ifndef MR_CLI_ATTACH_H
#define MR_CLI_ATTACH_H

/* 0; 1 where the program could not be reached or does not answer; 2 for everything that the user can set right. */
int mr_attach_command(int argc, char **argv);

#endif
