/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small files a server leaves for others: written whole or not at all (a temporary name beside
 * it, then rename), so that a reader never sees half of one. Any thread, blocking.
 *
 *     status = mr_file_replace("/run/millrace/worker.ready", text, size, &error);
 */
#ifndef MR_NET_FILE_H
#define MR_NET_FILE_H

#include "base/error.h"

#include <stddef.h>

/* MR_EIO with the path and the cause; also where something other than a regular file has the name. */
enum mr_status mr_file_replace(const char *path, const void *data, size_t size,
                               struct mr_error *error);

#endif
