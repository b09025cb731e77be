/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters that a benchmark asks probes for. A probe says a line of a name that is none, and tells its receiver what the machine
 * does not count; in a benchmark nobody reads either, and what was measured would be called counted. One thread.
 *
 *     status = mr_probe_counters_check("--counters", "page-faults,cycles", &error);
 *     mr_probe_counters_leave_out("page-faults,cycles", &report);
 */
#ifndef MR_BENCH_PROBE_COUNTERS_H
#define MR_BENCH_PROBE_COUNTERS_H

#include "base/error.h"
#include "bench/report.h"

/* MR_EUSAGE names the first that is no counter, and which may be meant. */
enum mr_status mr_probe_counters_check(const char *option, const char *names,
                                       struct mr_error *error);
/* A word in the report for each that the kernel refuses here, with its reason. */
void mr_probe_counters_leave_out(const char *names, struct mr_bench_report *report);

#endif
