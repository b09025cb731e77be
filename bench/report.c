/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report.h"

#include "base/assert.h"
#include "bench/interrupt.h"
#include "bench/machine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#define SKIPPED_MAX ((size_t)1 << 20)
#define TEXT_MAX ((size_t)64 << 20) /* of one file */

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

int mr_bench_say(const char *command, int exit_status, const char *text)
{
    (void)fprintf(stderr, "%s: %s\n", command, text);
    return exit_status;
}

int mr_bench_fail(const char *command, enum mr_status status,
                  const struct mr_error *error)
{
    return mr_bench_say(command, EXIT_FAILURE,
                        error->status == MR_OK ? mr_status_text(status) : error->text);
}

int mr_bench_report_ready(const struct mr_bench_report *report, enum mr_status status,
                          const struct mr_error *error, size_t case_count)
{
    if (status == MR_END || mr_interrupt_seen())
        return mr_bench_say(report->command, MR_BENCH_EXIT_INTERRUPTED,
                            "interrupted before anything was measured");
    if (status != MR_OK)
        return mr_bench_fail(report->command, status, error);
    if (case_count == 0)
        return mr_bench_say(report->command, EXIT_FAILURE, "nothing is left to measure");
    return -1;
}

int mr_bench_report_ended(const struct mr_bench_report *report, enum mr_status status,
                          const struct mr_error *error, const struct mr_rounds *rounds)
{
    if (status != MR_OK)
        return mr_bench_fail(report->command, status, error);
    if (rounds->kept == 0 && !rounds->is_partial)
        return mr_bench_say(report->command, EXIT_FAILURE,
                            "every loop was discarded, as the hypervisor took too much "
                            "of it: wait for a quieter hour, or raise --steal-max");
    return -1;
}

static void path_of(const struct mr_bench_report *report, const char *name,
                    char path[PATH_MAX])
{
    (void)snprintf(path, PATH_MAX, "%.*s/%s", PATH_MAX - 64, report->out, name);
}

static enum mr_status make_in_out(const char *path, struct mr_error *error)
{
    struct mr_error why = MR_ERROR_NONE;

    if (mr_folder_make(path, &why) == MR_OK)
        return MR_OK;
    return mr_error_set(error, why.status, "--out: %s", why.text);
}

enum mr_status mr_bench_report_scratch(const struct mr_bench_report *report,
                                       const char *name, char path[PATH_MAX],
                                       struct mr_error *error)
{
    char made[PATH_MAX];
    enum mr_status status;

    (void)snprintf(made, sizeof(made), "%.*s/%s.%ld", PATH_MAX - 64, report->out, name,
                   (long)getpid());
    status = make_in_out(made, error);
    if (status == MR_OK && !realpath(made, path))
        status = mr_error_set(error, MR_EIO, "%.100s: no usable path", made);
    return status;
}

enum mr_status mr_bench_report_build(const struct mr_bench_report *report,
                                     struct mr_build *build, struct mr_error *error)
{
    char path[PATH_MAX];
    enum mr_status status;

    path_of(report, "programs", path);
    status = make_in_out(path, error);
    return status == MR_OK ? mr_build_init(build, path, error) : status;
}

enum mr_status mr_bench_report_samples(const struct mr_bench_report *report, FILE **file,
                                       struct mr_error *error)
{
    char path[PATH_MAX];

    path_of(report, "samples.jsonl", path);
    *file = fopen(path, "we");
    if (!*file)
        return mr_error_set_errno(error, MR_EIO, errno, "cannot write %.100s", path);
    return MR_OK;
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

enum mr_status mr_bench_report_begin_environment(struct mr_buffer *out)
{
    enum mr_status status = mr_buffer_append_text(out, "{\"machine\": {");

    if (status == MR_OK)
        status = mr_machine_describe(out);
    return status == MR_OK
               ? mr_buffer_append_format(out, "}, \"millrace\": \"%s\"", MR_VERSION)
               : status;
}

enum mr_status mr_bench_report_end_environment(struct mr_bench_report *report,
                                               struct mr_buffer *out)
{
    enum mr_status status = mr_buffer_append_text(out, ", \"skipped\": ");

    if (status == MR_OK)
        status = mr_bench_json_text(
            out, report->skipped.size > 0 ? mr_command_text(&report->skipped) : NULL);
    return status == MR_OK ? mr_buffer_append_text(out, "}\n") : status;
}

/* Writes OUT/NAME and empties `text`, which `status` is of. */
static enum mr_status write_file(const struct mr_bench_report *report, const char *name,
                                 enum mr_status status, struct mr_buffer *text,
                                 struct mr_error *error)
{
    char path[PATH_MAX];

    path_of(report, name, path);
    if (status == MR_OK)
        status = mr_file_write(path, mr_buffer_span(text), error);
    mr_buffer_clear(text);
    return status;
}

static enum mr_status write_files(const struct mr_bench_report *report,
                                  const struct mr_bench_output *output,
                                  struct mr_buffer *text, struct mr_error *error)
{
    char name[48];
    enum mr_status status;

    (void)snprintf(name, sizeof(name), "%s.jsonl", output->results->bench);
    status =
        write_file(report, name, mr_results_json(output->results, text), text, error);
    (void)snprintf(name, sizeof(name), "%s.md", output->results->bench);
    if (status == MR_OK)
        status = write_file(report, name,
                            output->tables(output->bench, MR_TABLE_MARKDOWN, text), text,
                            error);
    for (size_t i = 0; i < output->file_count && status == MR_OK; i++)
        status = write_file(report, output->files[i].name,
                            output->files[i].put(output->bench, text), text, error);
    return status;
}

enum mr_status mr_bench_report_write(const struct mr_bench_report *report,
                                     const struct mr_bench_output *output,
                                     struct mr_error *error)
{
    struct mr_buffer text;
    enum mr_status status;

    MR_ASSERT(output->results->bench && output->tables);
    mr_buffer_init(&text, TEXT_MAX);
    status = write_files(report, output, &text, error);
    if (status == MR_OK)
        status = output->is_json ? mr_results_json(output->results, &text)
                                 : output->tables(output->bench, MR_TABLE_TEXT, &text);
    if (status == MR_OK &&
        (fwrite(text.data, 1, text.size, stdout) != text.size || fflush(stdout) != 0))
        status = mr_error_set(error, MR_EIO, "cannot print the results");
    mr_buffer_fini(&text);
    return status;
}
