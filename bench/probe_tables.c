/* SPDX-License-Identifier: Apache-2.0 */
/* What `millrace bench probe` can measure. */
#include "bench/probe.h"

const char *const mr_workload_names[MR_WORKLOAD_COUNT] = {"tiny",   "rec10", "body",
                                                          "sqlite", "start", "stamps"};
const char *const mr_sink_names[MR_SINK_COUNT] = {"off", "control", "recorder",
                                                  "tcp", "compact", "worker"};

const struct mr_probe_clock mr_probe_clocks[] = {
    {"tsc", NULL, true},
    {"hybrid", "MILLRACE_CLOCK=hybrid", true},
    {"monotonic", "MILLRACE_CLOCK=monotonic", false},
};
const size_t mr_probe_clock_count = MR_ARRAY_COUNT(mr_probe_clocks);

/* As in docs/OPERATIONS.md: the flags that pkg-config gives, and no others. */
const struct mr_variant mr_variants[] = {
    {.name = "plain", .kind = MR_VARIANT_PLAIN},
    {.name = "plain-clang", .kind = MR_VARIANT_PLAIN, .compiler = "clang"},
    {.name = "nops",
     .kind = MR_VARIANT_NOPS,
     .cflags = "-pg -mfentry -minstrument-return=call"},
    {.name = "manual",
     .kind = MR_VARIANT_DOOR,
     .package = "millrace-manual",
     .cflags = "-DWORKLOAD_SPANS",
     .spans_only = true},
    {.name = "hooks", .kind = MR_VARIANT_DOOR, .package = "millrace"},
    {.name = "patchable", .kind = MR_VARIANT_DOOR, .package = "millrace-patchable"},
    {.name = "patchable-clang",
     .kind = MR_VARIANT_DOOR,
     .package = "millrace-patchable",
     .cflags_what = "--variable=clang_cflags",
     .compiler = "clang",
     .libs = "-fxray-instrument -fnoxray-link-deps",
     .tool = "clang"},
    {.name = "uftrace",
     .kind = MR_VARIANT_RIVAL,
     .cflags = "-pg",
     .libs = "-pg",
     .tool = "uftrace",
     .clock = "monotonic",
     .sink = "file",
     .begin = mr_rival_uftrace_begin,
     .end = mr_rival_uftrace_end},
    {.name = "lttng",
     .kind = MR_VARIANT_RIVAL,
     .cflags = "-finstrument-functions",
     .tool = "lttng",
     .clock = "monotonic",
     .sink = "file",
     .begin = mr_rival_lttng_begin,
     .end = mr_rival_lttng_end},
    {.name = "xray-fdr",
     .kind = MR_VARIANT_RIVAL,
     .compiler = "clang",
     .cflags = "-fxray-instrument -fxray-instruction-threshold=1",
     .libs = "-fxray-instrument",
     .tool = "clang",
     .clock = "tsc",
     .sink = "memory",
     .begin = mr_rival_xray_begin,
     .end = mr_rival_xray_end},
};
const size_t mr_variant_count = MR_ARRAY_COUNT(mr_variants);
