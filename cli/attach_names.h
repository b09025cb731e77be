/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions near a glob that matched none, for people who mistyped: from the
 * symbol tables of what a process has mapped as code. Reads files, allocates; one thread.
 *
 *     char names[256];
 *     if (mr_attach_nearest(pid, "prase_*", names, sizeof(names)))
 *         printf("did you mean '%s'?", names);
 */
#ifndef MR_CLI_ATTACH_NAMES_H
#define MR_CLI_ATTACH_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Up to three names, the nearest first, "a, b, c". False: none is near. */
bool mr_attach_nearest(pid_t pid, const char *glob, char *names, size_t size);

#endif
