/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MR_BENCH_SQLITE_H
#define MR_BENCH_SQLITE_H

#include <limits.h>

/*
 * The folder of sqlite3.c, sqlite3.h and speedtest1.c: `told`, or, if that is "", where a build tree keeps them
 * (scripts/sqlite-fetch.sh). "" when they are not there.
 */
void mr_sqlite_find(const char *told, char folder[PATH_MAX]);

#endif
