/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <millrace/probe.h>

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *log_prefix;
static atomic_uint log_count;
static _Thread_local FILE *own;

MR_NEVER_TRACE void log_begin(const char *prefix)
{
    log_prefix = prefix;
}

MR_NEVER_TRACE static FILE *make_own(void)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s.%u", log_prefix, atomic_fetch_add(&log_count, 1));
    file = fopen(path, "w");
    if (!file) {
        perror(path);
        abort();
    }
    return file;
}

MR_NEVER_TRACE void log_line(const char *format, ...)
{
    va_list values;

    if (!own)
        own = make_own();
    va_start(values, format);
    vfprintf(own, format, values);
    va_end(values);
    putc('\n', own);
}

MR_NEVER_TRACE void log_end(void)
{
    if (own)
        fclose(own);
    own = NULL;
}

MR_NEVER_TRACE int64_t log_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}
