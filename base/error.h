/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cause of a failure in words, kept beside its status: the place (option, file,
 * connection, offset) and what the user can do. The caller owns the struct, usually on
 * its stack; the first error is kept and later ones are ignored, so the root cause
 * survives the unwinding. Not shared between threads.
 *
 * Use:
 *     struct mr_error error = MR_ERROR_NONE;
 *     if (load(path, &error) != MR_OK)
 *         mr_log_error("%s", error.text);
 *     ...
 *     return mr_error_set(error, MR_EFORMAT, "%s:%zu: bad version", path, line);
 */
#ifndef MR_BASE_ERROR_H
#define MR_BASE_ERROR_H

#include "base/compiler.h"
#include "base/status.h"

#define MR_ERROR_TEXT_SIZE 240 /* one log line; longer causes are cut */

struct mr_error {
    enum mr_status status; /* MR_OK while nothing failed */
    char text[MR_ERROR_TEXT_SIZE];
};

#define MR_ERROR_NONE                                                                    \
    {                                                                                    \
        .status = MR_OK, .text = ""                                                      \
    }

/*
 * Keeps status and the formatted text unless `error` already holds an earlier failure.
 * Returns `status` always, so that it can end a function. `error` may be NULL (nobody
 * wants the words). `status` is not MR_OK. The text is made plain (base/text.h), as it
 * quotes arguments, paths and names of hosts.
 */
MR_PRINTF(3, 4)
enum mr_status mr_error_set(struct mr_error *error, enum mr_status status,
                            const char *format, ...);

/*
 * As mr_error_set(), with ": " and the text of `system_errno` (an errno value) at the
 * end, which a text that is too long leaves room for.
 */
MR_PRINTF(4, 5)
enum mr_status mr_error_set_errno(struct mr_error *error, enum mr_status status,
                                  int system_errno, const char *format, ...);

/* Forgets the failure, so that the struct can be used again. */
void mr_error_clear(struct mr_error *error);

#endif
