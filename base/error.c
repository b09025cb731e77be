/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include "base/assert.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool is_taken(const struct mr_error *error)
{
    return !error || error->status != MR_OK;
}

static void make_plain(struct mr_error *error)
{
    error->text[mr_text_make_plain(error->text, strlen(error->text))] = '\0';
}

enum mr_status mr_error_set(struct mr_error *error, enum mr_status status,
                            const char *format, ...)
{
    va_list values;

    MR_ASSERT(status != MR_OK);
    if (is_taken(error))
        return status;
    error->status = status;
    va_start(values, format);
    (void)vsnprintf(error->text, sizeof(error->text), format, values);
    va_end(values);
    make_plain(error);
    return status;
}

enum mr_status mr_error_set_errno(struct mr_error *error, enum mr_status status,
                                  int system_errno, const char *format, ...)
{
    char reason[96];
    const char *words;
    size_t used;
    va_list values;

    MR_ASSERT(status != MR_OK);
    if (is_taken(error))
        return status;
    error->status = status;
    va_start(values, format);
    (void)vsnprintf(error->text, sizeof(error->text), format, values);
    va_end(values);
    /* The GNU strerror_r: thread-safe, and returns the text wherever it keeps it. */
    words = strerror_r(system_errno, reason, sizeof(reason));
    used = strnlen(error->text, sizeof(error->text) - sizeof(": ") - strlen(words));
    (void)snprintf(error->text + used, sizeof(error->text) - used, ": %s", words);
    make_plain(error);
    return status;
}

void mr_error_clear(struct mr_error *error)
{
    MR_ASSERT(error);
    error->status = MR_OK;
    error->text[0] = '\0';
}
