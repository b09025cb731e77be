/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/probe_clock.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "bench/names.h"

#include <stdio.h>
#include <string.h>

#define NAMES_MAX 8
#define LINE "clock "                             /* of bench/programs/program.h */
#define FELL_BACK "are read from CLOCK_MONOTONIC" /* in the probe's word about it */

const struct mr_probe_clock mr_probe_clocks[] = {
    {"tsc", NULL, true, false},
    {"hybrid", "MILLRACE_CLOCK=hybrid", true, true},
    {"monotonic", "MILLRACE_CLOCK=monotonic", false, false},
};
const size_t mr_probe_clock_count = MR_ARRAY_COUNT(mr_probe_clocks);

enum mr_status mr_probe_clocks_choose(const char *text, uint32_t *mask,
                                      struct mr_error *error)
{
    const char *names[NAMES_MAX] = {NULL};

    MR_ASSERT(mr_probe_clock_count <= NAMES_MAX);
    for (size_t i = 0; i < mr_probe_clock_count; i++)
        names[i] = mr_probe_clocks[i].name;
    return mr_names_choose("--clock", text, names, mr_probe_clock_count, mask, error);
}

void mr_probe_clocks_leave_out(uint32_t *mask, uint32_t cpus,
                               struct mr_bench_report *report)
{
    for (size_t i = 0; i < mr_probe_clock_count; i++) {
        if (!(*mask >> i & 1) || !mr_probe_clocks[i].needs_two || cpus >= 2)
            continue;
        mr_bench_report_skip(report,
                             "clock %s: it needs two processors, one of them for its "
                             "ticker, and this process may run on one",
                             mr_probe_clocks[i].name);
        *mask &= ~(UINT32_C(1) << i);
    }
}

/* The line of a text that begins with `start`, or NULL. */
static const char *line_with(const char *text, const char *start)
{
    while (text && strncmp(text, start, strlen(start)) != 0) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return text;
}

/* What the probe said first, up to the end of that line; "" where it said nothing. */
static const char *probe_said(const char *errors, int *size)
{
    const char *line = line_with(errors, "millrace: ");

    *size = line ? (int)strcspn(line, "\n") : 0;
    return line ? line : "";
}

enum mr_status mr_probe_clock_check(const struct mr_probe_clock *clock,
                                    const char *output, const char *errors,
                                    struct mr_error *error)
{
    const char *used = line_with(output, LINE), *said;
    int size, said_size;

    if (!used)
        return mr_error_set(error, MR_EIO,
                            "the program did not tell which clock its probe used");
    used += strlen(LINE);
    size = (int)strcspn(used, "\n");
    if (strstr(errors, FELL_BACK)) {
        used = "monotonic";
        size = (int)strlen(used);
    }
    if (strlen(clock->name) == (size_t)size &&
        memcmp(clock->name, used, (size_t)size) == 0)
        return MR_OK;
    said = probe_said(errors, &said_size);
    return mr_error_set(error, MR_EIO,
                        "clock %s was asked for, and the probe used %.*s%s%.*s",
                        clock->name, size, used, said_size > 0 ? ": " : "",
                        said_size < 160 ? said_size : 160, said);
}
