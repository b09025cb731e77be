/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands of `millrace bench` leave behind: files in a folder, what is printed, what was left out and why. One thread.
 *
 *     mr_bench_report_init(&report, "millrace bench probe", options.out);
 *     mr_bench_report_skip(&report, "%s: not installed here", name);
 *     status = mr_bench_report_file(&report, "probe.jsonl", &text, &error);   // and text is empty again
 *     status = mr_bench_report_print(&text, &error);
 *     mr_bench_report_fini(&report);
 */
#ifndef MR_BENCH_REPORT_H
#define MR_BENCH_REPORT_H

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/error.h"

struct mr_bench_report {
    const char *command;      /* borrowed: begins what is told on stderr */
    const char *out;          /* borrowed: the folder */
    struct mr_buffer skipped; /* lines "  what: why" */
};

void mr_bench_report_init(struct mr_bench_report *report, const char *command,
                          const char *out);
void mr_bench_report_fini(struct mr_bench_report *report);

/* Says, at once and again in the report, that something asked for is left out. */
MR_PRINTF(2, 3)
void mr_bench_report_skip(struct mr_bench_report *report, const char *format, ...);
/* Appends "Left out:" and the lines; nothing where there are none. The buffer's failures. */
enum mr_status mr_bench_report_put_skipped(const struct mr_bench_report *report,
                                           struct mr_buffer *out);
/* Appends the lines as one JSON string, or null. */
enum mr_status mr_bench_report_json_skipped(struct mr_bench_report *report,
                                            struct mr_buffer *out);

/* Writes OUT/NAME and empties `text`. MR_EIO names the file. */
enum mr_status mr_bench_report_file(const struct mr_bench_report *report,
                                    const char *name, struct mr_buffer *text,
                                    struct mr_error *error);
/* To stdout. MR_EIO. */
enum mr_status mr_bench_report_print(const struct mr_buffer *text,
                                     struct mr_error *error);

#endif
