/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of an operation that can fail for reasons outside the program. Programmer
 * errors assert instead (base/assert.h). MR_OK is 0; MR_AGAIN and MR_END are outcomes,
 * not errors. A cause in words travels beside it in a struct mr_error (base/error.h). All
 * functions: any thread, no memory.
 *
 * Use:
 *     enum mr_status status = mr_buffer_append(&buffer, data, size);
 *     if (status != MR_OK)
 *         return status;
 */
#ifndef MR_BASE_STATUS_H
#define MR_BASE_STATUS_H

#include <stdbool.h>

enum mr_status {
#define MR_STATUS(constant, name, text) constant,
#include "base/status.def"
#undef MR_STATUS
    MR_STATUS_COUNT /* not a status: how many there are */
};

/*
 * The short name, such as "format", for counters, labels and JSON; "unknown" for a value
 * out of range.
 */
const char *mr_status_name(enum mr_status status);

/* The meaning in words, such as "the bytes break the format", for people. */
const char *mr_status_text(enum mr_status status);

/* True for everything but MR_OK, MR_AGAIN and MR_END. */
static inline bool mr_status_is_error(enum mr_status status)
{
    return status > MR_END;
}

#endif
