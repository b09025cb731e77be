/* SPDX-License-Identifier: Apache-2.0 */
/* bench/report.h: what a command leaves, prints, says and leaves out. */
#include "bench/report.h"

#include "base/compiler.h"
#include "tests/unit/base/capture.h"

#include <jansson.h>
#include <stdlib.h>

struct sample {
    struct mr_bench_report report;
    struct mr_results results;
    char folder[64];
    bool is_json, fails;
};

static void open_sample(struct sample *sample)
{
    const double values[] = {1, 2, 3}, bottom[] = {2, 4, 6};

    *sample = (struct sample){.results = {.bench = "sample"},
                              .folder = "/tmp/millrace-report-XXXXXX"};
    assert_non_null(mkdtemp(sample->folder));
    mr_bench_report_init(&sample->report, "millrace bench sample", sample->folder);
    assert_int_equal(mr_results_add_values(&sample->results, "a/b", "seconds", "s",
                                           values, 3, "other", bottom),
                     MR_OK);
}

static void close_sample(struct sample *sample)
{
    mr_results_fini(&sample->results);
    mr_bench_report_fini(&sample->report);
    mr_folder_remove(sample->folder);
}

static enum mr_status put_tables(void *bench, enum mr_table_form form,
                                 struct mr_buffer *out)
{
    MR_UNUSED(bench);
    return mr_buffer_append_text(out,
                                 form == MR_TABLE_MARKDOWN ? "| table\n" : "table\n");
}

static enum mr_status put_chart(void *bench, struct mr_buffer *out)
{
    const struct sample *sample = bench;

    return sample->fails ? MR_ELIMIT : mr_buffer_append_text(out, "<svg/>\n");
}

static enum mr_status put_environment(void *bench, struct mr_buffer *out)
{
    struct sample *sample = bench;
    enum mr_status status = mr_bench_report_begin_environment(out);

    if (status == MR_OK)
        status = mr_buffer_append_text(out, ", \"loops\": 3");
    return status == MR_OK ? mr_bench_report_end_environment(&sample->report, out)
                           : status;
}

static int write_sample(void *argument)
{
    static const struct mr_bench_file files[] = {{"sample.svg", put_chart},
                                                 {"environment.json", put_environment}};
    struct sample *sample = argument;
    const struct mr_bench_output output = {.results = &sample->results,
                                           .tables = put_tables,
                                           .files = files,
                                           .file_count = MR_ARRAY_COUNT(files),
                                           .bench = sample,
                                           .is_json = sample->is_json};
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = mr_bench_report_write(&sample->report, &output, &error);

    return status == MR_OK ? 0 : mr_bench_fail("sample", status, &error);
}

/* The text of a file in the folder; "" where there is none. */
static const char *text_of(const struct sample *sample, const char *name)
{
    static char text[4096];
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", sample->folder, name);
    file = fopen(path, "re");
    text[file ? fread(text, 1, sizeof(text) - 1, file) : 0] = '\0';
    if (file)
        (void)fclose(file);
    return text;
}

static void the_table_is_printed_and_all_files_are_left(void **state)
{
    struct sample sample;
    struct capture result;

    MR_UNUSED(state);
    open_sample(&sample);
    result = capture_run(STDOUT_FILENO, write_sample, &sample);
    assert_int_equal(WEXITSTATUS(result.wait_status), 0);
    assert_string_equal(result.text, "table\n");
    assert_string_equal(text_of(&sample, "sample.md"), "| table\n");
    assert_string_equal(text_of(&sample, "sample.svg"), "<svg/>\n");
    assert_non_null(strstr(text_of(&sample, "sample.jsonl"), "\"ratio_to\":\"other\""));
    assert_non_null(strstr(text_of(&sample, "sample.jsonl"), "\"ratio\":0.5,"));
    close_sample(&sample);
}

static void json_lines_are_printed_as_they_are_left(void **state)
{
    struct sample sample;
    struct capture result;

    MR_UNUSED(state);
    open_sample(&sample);
    sample.is_json = true;
    result = capture_run(STDOUT_FILENO, write_sample, &sample);
    assert_int_equal(WEXITSTATUS(result.wait_status), 0);
    assert_string_equal(result.text, text_of(&sample, "sample.jsonl"));
    close_sample(&sample);
}

static void what_cannot_be_made_or_written_is_told_and_nothing_is_printed(void **state)
{
    struct sample sample;
    struct capture result;

    MR_UNUSED(state);
    open_sample(&sample);
    sample.fails = true;
    result = capture_run(STDOUT_FILENO, write_sample, &sample);
    assert_int_equal(WEXITSTATUS(result.wait_status), EXIT_FAILURE);
    assert_int_equal(result.size, 0);
    assert_string_equal(text_of(&sample, "sample.svg"), "");
    sample.fails = false;
    sample.report.out = "/proc/nowhere";
    result = capture_run(STDERR_FILENO, write_sample, &sample);
    assert_int_equal(WEXITSTATUS(result.wait_status), EXIT_FAILURE);
    assert_non_null(strstr(result.text, "/proc/nowhere/sample.jsonl"));
    close_sample(&sample);
}

static void what_is_left_out_is_in_the_text_and_in_the_environment(void **state)
{
    struct sample sample;
    struct mr_buffer out;
    json_t *json;

    MR_UNUSED(state);
    open_sample(&sample);
    mr_buffer_init(&out, 1 << 16);
    assert_int_equal(mr_bench_report_put_skipped(&sample.report, &out), MR_OK);
    assert_int_equal(out.size, 0);
    mr_bench_report_skip(&sample.report, "%s: not installed here", "uftrace");
    assert_int_equal(put_environment(&sample, &out), MR_OK);
    json = json_loadb((const char *)out.data, out.size, 0, NULL);
    assert_non_null(json_object_get(json, "machine"));
    assert_int_equal(json_integer_value(json_object_get(json, "loops")), 3);
    assert_string_equal(json_string_value(json_object_get(json, "skipped")),
                        "  uftrace: not installed here\n");
    json_decref(json);
    mr_buffer_clear(&out); /* once read as JSON, it is the same */
    assert_int_equal(mr_bench_report_put_skipped(&sample.report, &out), MR_OK);
    assert_int_equal(mr_buffer_append_byte(&out, 0), MR_OK);
    assert_string_equal((const char *)out.data,
                        "Left out:\n  uftrace: not installed here\n");
    mr_buffer_fini(&out);
    close_sample(&sample);
}

static void a_run_without_cases_or_loops_has_an_exit_status_and_a_word(void **state)
{
    const struct mr_error error = {.status = MR_EIO, .text = "cannot"};
    const struct mr_error none = MR_ERROR_NONE;
    const struct mr_rounds kept = {.kept = 1}, cut = {.is_partial = true};
    const struct mr_rounds stolen = {.discarded = 2};
    struct sample sample;

    MR_UNUSED(state);
    open_sample(&sample);
    assert_int_equal(mr_bench_report_ready(&sample.report, MR_OK, &none, 1), -1);
    assert_int_equal(mr_bench_report_ready(&sample.report, MR_OK, &none, 0),
                     EXIT_FAILURE);
    assert_int_equal(mr_bench_report_ready(&sample.report, MR_EIO, &error, 1),
                     EXIT_FAILURE);
    assert_int_equal(mr_bench_report_ready(&sample.report, MR_END, &none, 1),
                     MR_BENCH_EXIT_INTERRUPTED);
    assert_int_equal(mr_bench_report_ended(&sample.report, MR_OK, &none, &kept), -1);
    assert_int_equal(mr_bench_report_ended(&sample.report, MR_OK, &none, &cut), -1);
    assert_int_equal(mr_bench_report_ended(&sample.report, MR_OK, &none, &stolen),
                     EXIT_FAILURE);
    assert_int_equal(mr_bench_report_ended(&sample.report, MR_EIO, &error, &kept),
                     EXIT_FAILURE);
    close_sample(&sample);
}

static void scratch_and_samples_lie_in_the_folder(void **state)
{
    struct sample sample;
    struct mr_error error = MR_ERROR_NONE;
    char path[PATH_MAX];
    FILE *file = NULL;

    MR_UNUSED(state);
    open_sample(&sample);
    assert_int_equal(mr_bench_report_scratch(&sample.report, "scratch", path, &error),
                     MR_OK);
    assert_non_null(strstr(path, "/scratch."));
    assert_int_equal(access(path, W_OK), 0);
    assert_int_equal(mr_bench_report_samples(&sample.report, &file, &error), MR_OK);
    assert_int_equal(fclose(file), 0);
    sample.report.out = "/proc/nowhere";
    assert_int_equal(mr_bench_report_scratch(&sample.report, "scratch", path, &error),
                     MR_EIO);
    assert_int_equal(mr_bench_report_samples(&sample.report, &file, &error), MR_EIO);
    assert_non_null(strstr(error.text, "/proc/nowhere"));
    close_sample(&sample);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_printed_and_all_files_are_left),
        cmocka_unit_test(json_lines_are_printed_as_they_are_left),
        cmocka_unit_test(what_cannot_be_made_or_written_is_told_and_nothing_is_printed),
        cmocka_unit_test(what_is_left_out_is_in_the_text_and_in_the_environment),
        cmocka_unit_test(a_run_without_cases_or_loops_has_an_exit_status_and_a_word),
        cmocka_unit_test(scratch_and_samples_lie_in_the_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
