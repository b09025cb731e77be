/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `millrace bench probe`, inside: the tables of what can be measured, the cases made from
 * them, and a run of one. Structure:
 *
 *     probe.c         the command: options, order of work
 *     probe_tables.c  doors, rivals, workloads, sinks, clocks: a line each
 *     probe_build.c   variant x workload -> program
 *     probe_nops.c    the reference of patchable when it is off
 *     probe_rivals.c  how a rival is run, what it recorded
 *     probe_stamps.c  how far recorded times are off
 *     probe_run.c     one run of one case -> numbers
 *     probe_report.c  numbers of all loops -> results, tables, files
 *
 * To add a door, clock, workload or rival: a line in probe_tables.c. One thread.
 */
#ifndef MR_BENCH_PROBE_H
#define MR_BENCH_PROBE_H

#include "base/buffer.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/options.h"
#include "bench/build.h"
#include "bench/receiver.h"
#include "bench/result.h"
#include "bench/rounds.h"
#include "bench/server.h"

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
    MR_SINK_TCP,
    MR_SINK_COMPACT,
    MR_SINK_WORKER,
    MR_SINK_COUNT
};
/* Events go to our own receiver. */
#define MR_SINK_RECEIVED(sink) ((sink) == MR_SINK_TCP || (sink) == MR_SINK_COMPACT)
/* Nothing is recorded. */
#define MR_SINK_QUIET(sink) ((sink) <= MR_SINK_CONTROL)

enum mr_variant_kind {
    MR_VARIANT_PLAIN, /* nothing is compiled in */
    MR_VARIANT_NOPS,  /* what door patchable compiles in, as hand-written nops */
    MR_VARIANT_DOOR,
    MR_VARIANT_RIVAL
};

struct mr_probe_bench;
struct mr_probe_case;

/* A way to make a program and to run it. */
struct mr_variant {
    const char *name;
    enum mr_variant_kind kind;
    const char *package;      /* of pkg-config; NULL: none */
    const char *cflags_what;  /* what pkg-config is asked for; NULL: --cflags */
    const char *compiler;     /* NULL: the build's */
    const char *cflags;       /* more, for what is traced */
    const char *libs;         /* more, for linking */
    const char *tool;         /* the rival's program, which must be there; NULL */
    const char *clock, *sink; /* of a rival, for the case's name */
    bool spans_only;          /* has no way into code that nobody changed */
    /* Of a rival; words come before the program and its arguments. MR_EIO ... */
    enum mr_status (*begin)(struct mr_probe_bench *bench, struct mr_words *argv,
                            struct mr_words *env, struct mr_error *error);
    /* Fills recorded events and bytes, NAN where it has no account, and cleans up. */
    void (*end)(struct mr_probe_bench *bench, double *events, double *bytes);
};

/* Fixed tables; the counts are of their entries. */
extern const struct mr_variant mr_variants[];
extern const size_t mr_variant_count;
extern const char *const mr_workload_names[MR_WORKLOAD_COUNT];
extern const char *const mr_sink_names[MR_SINK_COUNT];

/* What a probe reads time from; `env` chooses it, NULL: the default. */
struct mr_probe_clock {
    const char *name, *env;
    bool is_ticks; /* recorded times are the processor's counter */
};
extern const struct mr_probe_clock mr_probe_clocks[];
extern const size_t mr_probe_clock_count;

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

#define MR_PROBE_TOOL_NS (60 * MR_SECOND_NS)
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
    pid_t session_daemon; /* LTTng's, if we had to start one */
    char rival_folder[PATH_MAX];
    char sqlite[PATH_MAX]; /* folder of its sources; "": none */
    int cpu;               /* where single threads stay; -1: anywhere */
    struct mr_probe_case cases[MR_PROBE_CASES_MAX];
    size_t case_count;
    struct mr_rounds rounds;
    struct mr_results results;
    struct mr_buffer skipped; /* lines "what: why" */
    FILE *samples;            /* OUT/samples.jsonl */
};

/* Says that something asked for is left out, once. */
MR_PRINTF(2, 3)
void mr_probe_skip(struct mr_probe_bench *bench, const char *format, ...);

/* probe_build.c: the programs of a variant and workload. MR_ENOTFOUND: it cannot be had here. */
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

/* probe_rivals.c */
enum mr_status mr_rival_uftrace_begin(struct mr_probe_bench *bench, struct mr_words *argv,
                                      struct mr_words *env, struct mr_error *error);
void mr_rival_uftrace_end(struct mr_probe_bench *bench, double *events, double *bytes);
enum mr_status mr_rival_lttng_begin(struct mr_probe_bench *bench, struct mr_words *argv,
                                    struct mr_words *env, struct mr_error *error);
void mr_rival_lttng_end(struct mr_probe_bench *bench, double *events, double *bytes);
enum mr_status mr_rival_xray_begin(struct mr_probe_bench *bench, struct mr_words *argv,
                                   struct mr_words *env, struct mr_error *error);
void mr_rival_xray_end(struct mr_probe_bench *bench, double *events, double *bytes);
/* Appends "name": "version" and the like for the record. */
enum mr_status mr_rivals_describe(const struct mr_probe_bench *bench,
                                  struct mr_buffer *out);
void mr_rivals_stop(struct mr_probe_bench *bench);

/* probe_run.c: runs a case once and keeps its numbers as loop `loop`; as mr_rounds wants it. */
enum mr_status mr_probe_measure(void *context, size_t index, uint32_t loop);

/* probe_stamps.c: workload stamps, before and after its run. */
#define MR_PROBE_STAMPS_FILE "stamps.bin"
void mr_probe_stamps_ask(struct mr_probe_bench *bench);
void mr_probe_stamps_compare(struct mr_probe_bench *bench, const char *output,
                             double values[MR_MEASURE_COUNT]);

/* probe_report.c */
enum mr_status mr_probe_results(struct mr_probe_bench *bench);
enum mr_status mr_probe_write(struct mr_probe_bench *bench, struct mr_error *error);

#endif
