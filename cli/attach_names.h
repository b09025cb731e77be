/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions for people: C++ as they write it; and near a glob that matched none,
 * for who mistyped, from the symbol tables of what a process has mapped as code. Reads
 * files, allocates; one thread.
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

/*
 * `text` with each word that is a mangled C++ name as people write it: "31 % _Z3foov" is
 * "31 % foo()". Cut to `size`.
 */
void mr_attach_plain(const char *text, char *plain, size_t size);
/* Up to three names, the nearest first, "a, b, c". False: none is near. */
bool mr_attach_nearest(pid_t pid, const char *glob, char *names, size_t size);

#endif
