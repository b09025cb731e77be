/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void mr_assert_fail(const char *condition, const char *file, int line,
                    const char *function)
{
    char text[512];
    int size =
        snprintf(text, sizeof(text), "millrace: assertion failed: %s (%s, %s:%d)\n",
                 condition, function, file, line);

    /* write() and not stdio: the failing thread may hold stdio's locks. */
    if (size > 0) {
        size_t count = (size_t)size < sizeof(text) ? (size_t)size : sizeof(text) - 1;
        ssize_t ignored = write(STDERR_FILENO, text, count);

        MR_UNUSED(ignored);
    }
    abort();
}
