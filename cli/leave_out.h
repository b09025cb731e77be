/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How functions are left out whose tracing costs more than they do: for whoever names
 * them, the report and `millrace attach`.
 *
 *     status = mr_leave_out_put(names, count, out);
 */
#ifndef MR_CLI_LEAVE_OUT_H
#define MR_CLI_LEAVE_OUT_H

#include "base/buffer.h"
#include "base/status.h"

#include <stddef.h>

/* `names` of the program's symbols; of none it is said that there are none. MR_ENOMEM. */
enum mr_status mr_leave_out_put(const char *const *names, size_t count,
                                struct mr_buffer *out);

#endif
