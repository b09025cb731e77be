/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/sqlite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void mr_sqlite_find(const char *told, char folder[PATH_MAX])
{
    char exe[PATH_MAX], path[PATH_MAX + 64] = "";
    ssize_t size = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

    exe[size > 0 ? size : 0] = '\0';
    if (*told)
        (void)snprintf(path, sizeof(path), "%s", told);
    else if (strrchr(exe, '/'))
        (void)snprintf(path, sizeof(path), "%.*s/../../cache/sqlite3/amalgamation",
                       (int)(strrchr(exe, '/') - exe), exe);
    if (!realpath(path, folder))
        folder[0] = '\0';
    (void)snprintf(path, sizeof(path), "%s/sqlite3.c", folder);
    if (access(path, R_OK) != 0)
        folder[0] = '\0';
}
