/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands and addresses with places to fill in: {n}, {n+NUMBER}, {n-NUMBER}, {count}, {level}. Only numbers are ever filled in, so
 * that nothing of what a worker says reaches a shell.
 *
 *     mr_template_check("--start", text, &error);                  // once, at the start
 *     mr_template_fill(text, &(struct mr_template_values){.n = 3, .count = 3, .level = 1}, out, sizeof(out));
 *     status = mr_template_run(text, &values, timeout_ns, &error);
 */
#ifndef MR_SCALE_TEMPLATE_H
#define MR_SCALE_TEMPLATE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_TEMPLATE_MAX 4096

struct mr_template_values {
    uint32_t n, count, level;
};

/* MR_EUSAGE, naming the option and the place that nobody knows. */
enum mr_status mr_template_check(const char *option, const char *text,
                                 struct mr_error *error);
/* Of a text that was checked; false: longer than `size`. */
bool mr_template_fill(const char *text, const struct mr_template_values *values,
                      char *out, size_t size);
/* By /bin/sh. MR_EIO when it failed, with the last line of its stderr; MR_ETIMEOUT: it was killed, with all it started. */
enum mr_status mr_template_run(const char *text, const struct mr_template_values *values,
                               uint64_t timeout_ns, struct mr_error *error);

#endif
