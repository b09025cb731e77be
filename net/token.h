/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file with the secret that a sender shows and a listener asks for (`token` of HELLO): one rule for
 * probe, worker and master, who read the same file. No malloc, no stdio. Any thread, blocking.
 *
 *     status = mr_token_read("--token-file", path, options->token, &error);
 */
#ifndef MR_NET_TOKEN_H
#define MR_NET_TOKEN_H

#include "base/error.h"

#define MR_TOKEN_SIZE 1024 /* of a shared secret, with the zero byte behind it */

/*
 * The first line of `path` without white space at its end: 1 to MR_TOKEN_SIZE - 1 bytes. MR_EUSAGE,
 * with `option` and the path but never a part of the secret, when it cannot be read or has no such line.
 */
enum mr_status mr_token_read(const char *option, const char *path,
                             char token[MR_TOKEN_SIZE], struct mr_error *error);

#endif
