/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `millrace bench overhead`, inside: MooBench's experiment with six phases, from an untraced program to one whose every
 * call is analysed. Structure:
 *
 *     overhead.c          the command: options, order of work
 *     overhead_cases.c    what is measured: phases x doors x clocks, peers, sweeps
 *     overhead_build.c    the programs
 *     overhead_chain.c    where events go in a phase: receiver, worker, master; what they took
 *     overhead_run.c      one run of one case -> numbers, raw file
 *     overhead_results.c  numbers of all loops -> results
 *     overhead_tables.c   results -> tables
 *     overhead_report.c   results -> files
 *     overhead_compare.c  whether two runs agree
 *     peers_java.c        the same program in Java, and who monitors it
 *     link.c              a slow link between two network namespaces
 *
 * Phases, doors and clocks are tables: a line each. One thread.
 */
#ifndef MR_BENCH_OVERHEAD_H
#define MR_BENCH_OVERHEAD_H

#include "base/buffer.h"
#include "base/options.h"
#include "bench/build.h"
#include "bench/link.h"
#include "bench/peers_java.h"
#include "bench/probe_clock.h"
#include "bench/receiver.h"
#include "bench/report.h"
#include "bench/result.h"
#include "bench/rivals.h"
#include "bench/rounds.h"
#include "bench/server.h"
#include "bench/spread.h"
#include "bench/variants.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct mr_overhead_options {
#define MR_OPTION MR_OPTION_FIELD
#include "bench/overhead_options.def"
#undef MR_OPTION
};

enum mr_phase {
    MR_PHASE_NONE,
    MR_PHASE_INACTIVE,
    MR_PHASE_COLLECTING,
    MR_PHASE_WRITING,
    MR_PHASE_RECONSTRUCTION,
    MR_PHASE_REDUCTION,
    MR_PHASE_COUNT
};
extern const char *const mr_phase_names[MR_PHASE_COUNT];

enum mr_overhead_measure {
#define MR_OVERHEAD_MEASURE(name, metric, unit) MR_OVERHEAD_##name,
#include "bench/overhead_measures.def"
#undef MR_OVERHEAD_MEASURE
    MR_OVERHEAD_MEASURES
};
struct mr_overhead_metric {
    const char *name, *unit;
};
extern const struct mr_overhead_metric mr_overhead_metrics[MR_OVERHEAD_MEASURES];

#define MR_OVERHEAD_CASES_MAX 256
#define MR_OVERHEAD_OTHERS_MAX 0.05 /* above, a machine is too noisy */
#define MR_OVERHEAD_RUN_NS (20 * MR_MINUTE_NS)
#define MR_OVERHEAD_BLOCK                                                                \
    1000 /* root calls whose mean is one value of response_ns_block */

/* Where in the space of sweeps a case lies. */
struct mr_overhead_point {
    uint64_t depth, threads, method_ns, ring_bytes;
    uint64_t calls;    /* of each thread */
    bool is_slow_link; /* through bench->link */
};

struct mr_overhead_case {
    char name[MR_RESULT_NAME_SIZE]; /* PHASE/SYSTEM/CLOCK/POLICY/POINT */
    enum mr_phase phase;
    const struct mr_variant *variant;   /* NULL: in Java */
    const struct mr_java_system *java;  /* NULL: in C */
    const struct mr_probe_clock *clock; /* of a door */
    struct mr_overhead_point point;
    bool is_swept;                        /* not the point that the options give */
    double added_ns;                      /* of the self-check */
    double *values[MR_OVERHEAD_MEASURES]; /* per loop; NAN: none */
    struct mr_spread *spread;             /* of all loops, second halves */
    bool has_lost;
    uint64_t lost;   /* events of all loops, discarded ones among them */
    bool has_failed; /* and is run no more */
};

struct mr_overhead_bench {
    struct mr_overhead_options options;
    struct mr_build build;
    struct mr_rivals rivals; /* its folder is the scratch of all */
    struct mr_java java;
    struct mr_link link;
    int cpu;            /* where single callers stay; -1: anywhere */
    cpu_set_t affinity; /* of this process before it left that one */
    struct mr_overhead_case cases[MR_OVERHEAD_CASES_MAX];
    size_t case_count;
    struct mr_rounds rounds;
    double others; /* share of the processors' time that others took during the rounds */
    bool has_other_clock; /* a probe used another one than its case says */
    struct mr_results results;
    struct mr_bench_report report;
    FILE *samples;             /* OUT/samples.jsonl */
    struct mr_spread *scratch; /* of one run */
    struct mr_error
        write_error; /* the first; ends the run, as all that follows would be lost, too */
};

/* overhead_cases.c: chosen by the options, built, added. What cannot be had is told and left out. MR_EUSAGE, MR_END. */
enum mr_status mr_overhead_check(struct mr_overhead_options *options,
                                 struct mr_error *error);
enum mr_status mr_overhead_add_all(struct mr_overhead_bench *bench,
                                   struct mr_error *error);
void mr_overhead_free_cases(struct mr_overhead_bench *bench);

/* overhead_build.c: the program of a variant; MR_ENOTFOUND: it cannot be had here. */
enum mr_status mr_overhead_build(struct mr_overhead_bench *bench,
                                 const struct mr_variant *variant,
                                 struct mr_error *error);
const char *mr_overhead_program(const struct mr_overhead_bench *bench,
                                const struct mr_variant *variant, char path[PATH_MAX]);

/* overhead_chain.c: what stands behind the probe in a phase, of one run. */
struct mr_overhead_chain {
    struct mr_receiver receiver;
    struct mr_server server;
    char folder[PATH_MAX], stats[PATH_MAX];
};
enum mr_status mr_overhead_chain_start(struct mr_overhead_bench *bench,
                                       const struct mr_overhead_case *which,
                                       struct mr_overhead_chain *chain,
                                       struct mr_error *error);
/* MILLRACE_ENDPOINT's value; NULL: none is set. */
const char *mr_overhead_chain_endpoint(const struct mr_overhead_chain *chain,
                                       const struct mr_overhead_case *which);
/*
 * Ends all. *arrived: events that came through to the end of the chain, NAN where nobody counts; *bytes: that were sent.
 */
void mr_overhead_chain_stop(const struct mr_overhead_case *which,
                            struct mr_overhead_chain *chain,
                            double values[MR_OVERHEAD_MEASURES], double *arrived,
                            double *bytes);

/* overhead_run.c: runs a case once; as mr_rounds wants it. */
enum mr_status mr_overhead_measure(void *context, size_t index, uint32_t loop);

/* overhead_results.c */
enum mr_status mr_overhead_results(struct mr_overhead_bench *bench);
/* The case of this phase at the same point that `which` is compared with; NULL. */
const struct mr_overhead_case *mr_overhead_other(const struct mr_overhead_bench *bench,
                                                 const struct mr_overhead_case *which,
                                                 enum mr_phase phase);

/* overhead_tables.c: as mr_bench_output wants it; `bench` is a struct mr_overhead_bench. */
enum mr_status mr_overhead_tables(void *bench, enum mr_table_form form,
                                  struct mr_buffer *out);
/* overhead_report.c: files, then the table or JSON to stdout. */
enum mr_status mr_overhead_write(struct mr_overhead_bench *bench, struct mr_error *error);

/* overhead_compare.c: exit status: 0 they agree, 1 they do not or the machine was too noisy, 2 for what is no run. */
int mr_overhead_compare(const char *command, const char *folders);

#endif
