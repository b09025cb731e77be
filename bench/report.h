/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a command of `millrace bench` begins and ends: its place in a folder, what it says, what it leaves behind, what was left
 * out and why. One thread.
 *
 *     mr_bench_report_init(&report, "millrace bench probe", options.out);
 *     status = mr_bench_report_scratch(&report, "scratch", folder, &error);
 *     mr_bench_report_skip(&report, "%s: not installed here", name);
 *     status = mr_bench_report_write(&report, &output, &error);      // files, then stdout
 *     mr_bench_report_fini(&report);
 */
#ifndef MR_BENCH_REPORT_H
#define MR_BENCH_REPORT_H

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/error.h"
#include "bench/build.h"
#include "bench/result.h"
#include "bench/rounds.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

/* Exit status beside EXIT_SUCCESS and EXIT_FAILURE. */
#define MR_BENCH_EXIT_USAGE 2
#define MR_BENCH_EXIT_INTERRUPTED 130

/* What a report of a run that Ctrl-C ended says first. */
#define MR_BENCH_INTERRUPTED "INTERRUPTED: this is what was measured until then.\n"

struct mr_bench_report {
    const char *command;      /* borrowed: begins what is told on stderr */
    const char *out;          /* borrowed: the folder */
    struct mr_buffer skipped; /* lines "  what: why" */
};

void mr_bench_report_init(struct mr_bench_report *report, const char *command,
                          const char *out);
void mr_bench_report_fini(struct mr_bench_report *report);

/* One line on stderr; returns the status. */
int mr_bench_say(const char *command, int exit_status, const char *text);
/* Says the error, or where it is not set what `status` is; returns EXIT_FAILURE. */
int mr_bench_fail(const char *command, enum mr_status status,
                  const struct mr_error *error);
/* After all cases were added: -1 to go on, or the exit status of a run with nothing to measure, which is told. */
int mr_bench_report_ready(const struct mr_bench_report *report, enum mr_status status,
                          const struct mr_error *error, size_t case_count);
/* After the results were written (`status`): -1 when there are loops to believe, or Ctrl-C ended them; else as above. */
int mr_bench_report_ended(const struct mr_bench_report *report, enum mr_status status,
                          const struct mr_error *error, const struct mr_rounds *rounds);

/* Makes OUT/NAME.PID, and tells its whole path. MR_EIO. */
enum mr_status mr_bench_report_scratch(const struct mr_bench_report *report,
                                       const char *name, char path[PATH_MAX],
                                       struct mr_error *error);
/* mr_build_init() in OUT/programs. */
enum mr_status mr_bench_report_build(const struct mr_bench_report *report,
                                     struct mr_build *build, struct mr_error *error);
/* OUT/samples.jsonl, anew: every run as it was measured, for who doubts what was made of it. The caller closes it. MR_EIO. */
enum mr_status mr_bench_report_samples(const struct mr_bench_report *report, FILE **file,
                                       struct mr_error *error);

/* Says, at once and again in the report, that something asked for is left out. */
MR_PRINTF(2, 3)
void mr_bench_report_skip(struct mr_bench_report *report, const char *format, ...);
/* Appends "Left out:" and the lines; nothing where there are none. The buffer's failures. */
enum mr_status mr_bench_report_put_skipped(const struct mr_bench_report *report,
                                           struct mr_buffer *out);
/*
 * environment.json begins with what every run has: the members `machine` and `millrace`; the caller appends its own, each with
 * a comma before it; the end is what was left out. The buffer's failures.
 */
enum mr_status mr_bench_report_begin_environment(struct mr_buffer *out);
enum mr_status mr_bench_report_end_environment(struct mr_bench_report *report,
                                               struct mr_buffer *out);

/* A file beside the usual ones. `bench` is mr_bench_output's. */
struct mr_bench_file {
    const char *name; /* "probe.svg" */
    enum mr_status (*put)(void *bench, struct mr_buffer *out);
};

/* What a command leaves; all borrowed. */
struct mr_bench_output {
    const struct mr_results *results;
    enum mr_status (*tables)(void *bench, enum mr_table_form form, struct mr_buffer *out);
    const struct mr_bench_file *files;
    size_t file_count;
    void *bench;  /* handed to what puts */
    bool is_json; /* printed are the JSON lines, not the tables */
};

/*
 * Writes OUT/BENCH.jsonl, BENCH.md (BENCH is the results' name) and the files; then prints. MR_EIO names the file, and what
 * was written before stays; the buffer's failures.
 */
enum mr_status mr_bench_report_write(const struct mr_bench_report *report,
                                     const struct mr_bench_output *output,
                                     struct mr_error *error);

#endif
