/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small files a server leaves for others: written whole or not at all (a temporary name beside
 * it, then rename), so that a reader never sees half of one. And the token file. Any thread, blocking.
 *
 *     status = mr_file_replace("/run/millrace/worker.ready", text, size, &error);
 */
#ifndef MR_WORKER_FILE_H
#define MR_WORKER_FILE_H

#include "base/error.h"

#include <stddef.h>

#define MR_TOKEN_MAX 1024 /* bytes of a shared secret */

/* MR_EIO with the path and the cause; also where something other than a regular file has the name. */
enum mr_status mr_file_replace(const char *path, const void *data, size_t size,
                               struct mr_error *error);

/*
 * Reads the first line of `path` (1 to MR_TOKEN_MAX - 1 bytes, white space at its end dropped) into
 * `token`; MR_EUSAGE when it cannot be read or has no such line.
 */
enum mr_status mr_token_read(const char *path, char token[MR_TOKEN_MAX],
                             struct mr_error *error);

#endif
