/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `millrace bench probe`, inside: the tables of what can be measured, the cases made from
 * them, and a run of one. Structure:
 *
 *     probe.c         the command: options, order of work
 *     probe_tables.c  workloads, sinks: a line each
 *     probe_build.c   variant x workload -> program
 *     probe_nops.c    the reference of patchable when it is off
 *     probe_stamps.c  how far recorded times are off
 *     probe_run.c     one run of one case -> numbers
 *     probe_report.c  numbers of all loops -> results, tables, files
 *
 * Doors and rivals are those of variants.h, clocks those of probe_clock.h. To add a workload: a line in probe_tables.c. One thread.
 */
#ifndef MR_BENCH_PROBE_H
#define MR_BENCH_PROBE_H

#include "base/buffer.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/options.h"
#include "bench/build.h"
#include "bench/probe_clock.h"
#include "bench/receiver.h"
#include "bench/report.h"
#include "bench/result.h"
#include "bench/rivals.h"
#include "bench/rounds.h"
#include "bench/server.h"
#include "bench/variants.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct mr_probe_options {
#define MR_OPTION MR_OPTION_FIELD
#include "bench/probe_options.def"
#undef MR_OPTION
};

enum mr_workload {
    MR_WORKLOAD_TINY,
    MR_WORKLOAD_REC10,
    MR_WORKLOAD_BODY,
    MR_WORKLOAD_SQLITE,
    MR_WORKLOAD_START,
    MR_WORKLOAD_STAMPS,
    MR_WORKLOAD_COUNT
};
/* These are one program, subject.c. */
#define MR_WORKLOAD_SMALL(workload) ((workload) <= MR_WORKLOAD_BODY)

enum mr_sink {
    MR_SINK_OFF,
    MR_SINK_CONTROL,
    MR_SINK_RECORDER,
    MR_SINK_DISCARD,
    MR_SINK_TCP,
    MR_SINK_COMPACT,
    MR_SINK_WORKER,
    MR_SINK_COUNT
};
/* Events go to our own receiver. */
#define MR_SINK_RECEIVED(sink) ((sink) == MR_SINK_TCP || (sink) == MR_SINK_COMPACT)
/* Nobody else than the program is needed, and every clock is worth a case. */
#define MR_SINK_BARE(sink) ((sink) == MR_SINK_DISCARD || (sink) == MR_SINK_TCP)
/* Nothing is recorded. */
#define MR_SINK_QUIET(sink) ((sink) <= MR_SINK_CONTROL)

/* Fixed tables; the counts are of their entries. */
extern const char *const mr_workload_names[MR_WORKLOAD_COUNT];
extern const char *const mr_sink_names[MR_SINK_COUNT];

/* The numbers of one run. */
enum mr_measure {
    MR_MEASURE_FLOOR, /* ns */
    MR_MEASURE_NS,    /* per call */
    MR_MEASURE_TIMER, /* ns per call that timing batches costs */
    MR_MEASURE_P50,
    MR_MEASURE_P90,
    MR_MEASURE_P99,
    MR_MEASURE_P999,
    MR_MEASURE_P9999,
    MR_MEASURE_MAX,
    MR_MEASURE_BYTES,   /* per event, as sent or stored */
    MR_MEASURE_SECONDS, /* of a whole program */
    MR_MEASURE_CPU,
    MR_MEASURE_START_MS,
    MR_MEASURE_PRIVATE_KIB,
    MR_MEASURE_ERROR_P50, /* ns that a recorded time is early */
    MR_MEASURE_ERROR_P99,
    MR_MEASURE_ERROR_P9999,
    MR_MEASURE_ERROR_MAX,
    MR_MEASURE_COUNT
};

#define MR_PROBE_CASES_MAX MR_ROUNDS_CASES_MAX
#define MR_PROBE_LOOPS_MAX 1000

struct mr_probe_case {
    char name[MR_RESULT_NAME_SIZE];
    const struct mr_variant *variant;
    const struct mr_probe_clock *clock; /* of a door */
    enum mr_workload workload;
    enum mr_sink sink;
    uint32_t threads;
    double added_ns;                  /* of the self-check */
    double *values[MR_MEASURE_COUNT]; /* per loop; NAN: none */
    bool has_lost;
    uint64_t lost;   /* of all loops */
    uint64_t events; /* of all loops */
    bool has_failed; /* and is run no more; `failure` says why */
    char failure[MR_ERROR_TEXT_SIZE];
};

struct mr_probe_bench {
    struct mr_probe_options options;
    struct mr_build build;
    struct mr_receiver receiver;
    struct mr_server server;
    struct mr_rivals rivals;
    char sqlite[PATH_MAX]; /* folder of its sources; "": none */
    int cpu;               /* where single threads stay; -1: anywhere */
    struct mr_probe_case cases[MR_PROBE_CASES_MAX];
    size_t case_count;
    struct mr_rounds rounds;
    bool has_other_clock; /* a probe used another one than its case says */
    struct mr_results results;
    struct mr_bench_report report;
    FILE *samples; /* OUT/samples.jsonl */
};

/*
 * probe_build.c. The objects of a workload's programs, a bit of `variants` for each of
 * mr_variants, compiled at once on all processors. What cannot be compiled is told by
 * mr_probe_build(). MR_EIO; MR_END: Ctrl-C came.
 */
enum mr_status mr_probe_compile(struct mr_probe_bench *bench, uint32_t variants,
                                enum mr_workload workload, struct mr_error *error);
/* The programs of a variant and workload. MR_ENOTFOUND: it cannot be had here. */
enum mr_status mr_probe_build(struct mr_probe_bench *bench,
                              const struct mr_variant *variant, enum mr_workload workload,
                              struct mr_error *error);
/* Its path. */
const char *mr_probe_program(const struct mr_probe_bench *bench,
                             const struct mr_variant *variant, enum mr_workload workload,
                             char path[PATH_MAX]);
/* Bytes that the loader maps of a program; 0 where it cannot be read. */
uint64_t mr_probe_loaded_bytes(const char *path);

/* probe_nops.c: assembly of what door patchable compiles, its calls made nops. */
enum mr_status mr_probe_nops(const char *from, const char *to, struct mr_error *error);

/* probe_run.c: runs a case once and keeps its numbers as loop `loop`; as mr_rounds wants it. */
enum mr_status mr_probe_measure(void *context, size_t index, uint32_t loop);

/* probe_stamps.c: workload stamps, before and after its run. */
#define MR_PROBE_STAMPS_FILE "stamps.bin"
void mr_probe_stamps_ask(struct mr_probe_bench *bench);
void mr_probe_stamps_compare(struct mr_probe_bench *bench, const char *output,
                             double values[MR_MEASURE_COUNT]);

/* probe_results.c */
enum mr_status mr_probe_results(struct mr_probe_bench *bench);
/* probe_report.c: files, then the table or JSON to stdout. */
enum mr_status mr_probe_write(struct mr_probe_bench *bench, struct mr_error *error);

#endif
