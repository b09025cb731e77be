/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks of the probe: how one is asked for, and whether a program that ran really had it. A probe that cannot have a clock
 * takes another and says one line, which nobody reads in a benchmark; so the programs tell what they see of it
 * (bench/programs/program.h), and every run is checked. One thread.
 *
 *     status = mr_probe_clocks_choose("tsc,hybrid", &mask, &error);
 *     mr_probe_clocks_leave_out(&mask, mr_machine_cpus(), &report);
 *     ... run a program with mr_probe_clocks[i].env in its environment ...
 *     status = mr_probe_clock_check(&mr_probe_clocks[i], output, errors, &error);
 *
 * To add a clock: a line in probe_clock.c.
 */
#ifndef MR_BENCH_PROBE_CLOCK_H
#define MR_BENCH_PROBE_CLOCK_H

#include "base/error.h"
#include "bench/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a probe reads time from; `env` chooses it, NULL: the default. */
struct mr_probe_clock {
    const char *name, *env;
    bool is_ticks;  /* recorded times are the processor's counter */
    bool needs_two; /* processors: one of them for a thread of its own */
};
/* A fixed table. */
extern const struct mr_probe_clock mr_probe_clocks[];
extern const size_t mr_probe_clock_count;

/* A bit of *mask for each that was chosen by name; see names.h. MR_EUSAGE. */
enum mr_status mr_probe_clocks_choose(const char *text, uint32_t *mask,
                                      struct mr_error *error);
/* Takes those out of *mask that so few processors cannot have, each with a word in the report. */
void mr_probe_clocks_leave_out(uint32_t *mask, uint32_t cpus,
                               struct mr_bench_report *report);
/*
 * `output` and `errors` are what a program printed that ran with this clock, to its end. MR_EIO: its probe used another
 * clock, which the error names with the probe's own words; or it did not tell.
 */
enum mr_status mr_probe_clock_check(const struct mr_probe_clock *clock,
                                    const char *output, const char *errors,
                                    struct mr_error *error);

/* What a command says that fails for it. */
#define MR_PROBE_CLOCK_OTHER                                                             \
    "a probe used another clock than was asked for: its cases are left out, with why"

#endif
