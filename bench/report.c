/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report.h"

#include "bench/build.h"
#include "bench/machine.h"

#include <stdarg.h>
#include <stdio.h>

#define SKIPPED_MAX ((size_t)1 << 20)

void mr_bench_report_init(struct mr_bench_report *report, const char *command,
                          const char *out)
{
    *report = (struct mr_bench_report){.command = command, .out = out};
    mr_buffer_init(&report->skipped, SKIPPED_MAX);
}

void mr_bench_report_fini(struct mr_bench_report *report)
{
    mr_buffer_fini(&report->skipped);
}

void mr_bench_report_skip(struct mr_bench_report *report, const char *format, ...)
{
    char line[400];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "%s: left out: %s\n", report->command, line);
    (void)mr_buffer_append_format(&report->skipped, "  %s\n", line);
}

enum mr_status mr_bench_report_put_skipped(const struct mr_bench_report *report,
                                           struct mr_buffer *out)
{
    enum mr_status status;
    size_t size = report->skipped.size;

    if (size == 0)
        return MR_OK;
    size -= report->skipped.data[size - 1] == '\0'; /* once it was read as text */
    status = mr_buffer_append_text(out, "Left out:\n");
    return status == MR_OK ? mr_buffer_append(out, report->skipped.data, size) : status;
}

enum mr_status mr_bench_report_json_skipped(struct mr_bench_report *report,
                                            struct mr_buffer *out)
{
    return mr_bench_json_text(
        out, report->skipped.size > 0 ? mr_command_text(&report->skipped) : NULL);
}

enum mr_status mr_bench_report_file(const struct mr_bench_report *report,
                                    const char *name, struct mr_buffer *text,
                                    struct mr_error *error)
{
    char path[PATH_MAX];
    enum mr_status status;

    (void)snprintf(path, sizeof(path), "%.*s/%s", PATH_MAX - 64, report->out, name);
    status = mr_file_write(path, mr_buffer_span(text), error);
    mr_buffer_clear(text);
    return status;
}

enum mr_status mr_bench_report_print(const struct mr_buffer *text, struct mr_error *error)
{
    if (fwrite(text->data, 1, text->size, stdout) != text->size || fflush(stdout) != 0)
        return mr_error_set(error, MR_EIO, "cannot print the results");
    return MR_OK;
}
