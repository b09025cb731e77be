/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/probe.h"

#include "base/options.h"
#include "bench/bench.h"
#include "bench/interrupt.h"
#include "bench/machine.h"
#include "bench/names.h"
#include "bench/self_check.h"
#include "bench/sqlite.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUICK_SLICES 5
#define QUICK_SLICE_NS (4 * MR_MILLISECOND_NS) /* clock hybrid ticks after 10 ms */
#define THREADS_MAX 64
#define THREADS_DEFAULT "1,2,4,8"
#define THREAD_LIST_MAX 16

static const struct mr_option_spec specs[] = {
#define MR_OPTION(...) MR_OPTION_SPEC(struct mr_probe_options, __VA_ARGS__)
#include "bench/probe_options.def"
#undef MR_OPTION
};

static const struct mr_option_table table = {
    .command = "millrace bench probe",
    .summary =
        "what a traced call costs on this machine, by each door, beside the floor, the "
        "untraced program and other tracers",
    .specs = specs,
    .spec_count = MR_ARRAY_COUNT(specs)};

/* What was chosen. Variants: a bit for each of mr_variants. */
struct choice {
    uint32_t variants, workloads, sinks, clocks;
    uint32_t threads[THREAD_LIST_MAX];
    size_t thread_count;
    bool rivals_everywhere; /* else only in workload tiny */
    bool clocks_everywhere; /* else, but for the first, only with MR_SINK_BARE() */
};

static enum mr_status choose(struct mr_probe_options *options, struct choice *choice,
                             struct mr_error *error)
{
    bool is_quick = options->quick;
    const char *workloads = options->workloads, *sinks = options->sinks;
    const char *clocks = options->clocks, *threads = options->threads;
    enum mr_status status;

    *choice =
        (struct choice){.rivals_everywhere = !is_quick || strcmp(workloads, "all") != 0,
                        .clocks_everywhere = strcmp(clocks, "all") != 0};
    if (is_quick && strcmp(workloads, "all") == 0)
        workloads = "tiny,rec10,body";
    if (is_quick && strcmp(threads, THREADS_DEFAULT) == 0)
        threads = "1";
    if (is_quick && strcmp(sinks, "all") == 0)
        sinks = "off,tcp";
    if (is_quick && strcmp(clocks, "all") == 0)
        clocks = "tsc,hybrid";
    status = mr_variants_choose("--door", options->doors, MR_VARIANT_DOOR,
                                &choice->variants, error);
    if (status == MR_OK)
        status = mr_variants_choose("--rival", options->rivals, MR_VARIANT_RIVAL,
                                    &choice->variants, error);
    if (status == MR_OK)
        status = mr_names_choose("--workload", workloads, mr_workload_names,
                                 MR_WORKLOAD_COUNT, &choice->workloads, error);
    if (status == MR_OK)
        status = mr_names_choose("--sink", sinks, mr_sink_names, MR_SINK_COUNT,
                                 &choice->sinks, error);
    if (status == MR_OK)
        status = mr_probe_clocks_choose(clocks, &choice->clocks, error);
    if (status == MR_OK)
        status = mr_names_numbers("--threads", threads, THREADS_MAX, choice->threads,
                                  THREAD_LIST_MAX, &choice->thread_count, error);
    if (status == MR_OK && choice->workloads == 0)
        status = mr_error_set(error, MR_EUSAGE, "--workload: choose at least one");
    if (is_quick && options->slices > QUICK_SLICES)
        options->slices = QUICK_SLICES;
    if (is_quick && options->slice_ns > QUICK_SLICE_NS)
        options->slice_ns = QUICK_SLICE_NS;
    return status;
}

static enum mr_status name_case(struct mr_probe_case *which)
{
    const struct mr_variant *variant = which->variant;
    const char *clock = which->clock ? which->clock->name : "none";
    char threads[16] = "";

    if (variant->kind == MR_VARIANT_RIVAL)
        clock = variant->clock;
    if (which->threads > 1)
        (void)snprintf(threads, sizeof(threads), "-t%u", (unsigned)which->threads);
    (void)snprintf(which->name, sizeof(which->name), "%s/%s/%s%s/%s",
                   which->added_ns > 0 ? "self-check" : variant->name, clock,
                   mr_workload_names[which->workload], threads,
                   variant->kind == MR_VARIANT_RIVAL ? variant->sink
                                                     : mr_sink_names[which->sink]);
    return MR_OK;
}

static enum mr_status add_case(struct mr_probe_bench *bench,
                               const struct mr_probe_case *which)
{
    struct mr_probe_case *added = &bench->cases[bench->case_count];

    if (bench->case_count == MR_PROBE_CASES_MAX)
        return MR_ELIMIT;
    *added = *which;
    for (int i = 0; i < MR_MEASURE_COUNT; i++) {
        added->values[i] = malloc(bench->options.loops * sizeof(double));
        if (!added->values[i])
            return MR_ENOMEM; /* freed with the bench */
        for (uint64_t loop = 0; loop < bench->options.loops; loop++)
            added->values[i][loop] = (double)NAN;
    }
    bench->case_count++;
    return name_case(added);
}

/* Where it can be seen what was recorded, and is in the processor's ticks. */
static enum mr_status add_stamps(struct mr_probe_bench *bench,
                                 const struct choice *choice, struct mr_probe_case which)
{
    enum mr_status status = MR_OK;

    which.sink = MR_SINK_TCP;
    for (size_t i = 0; i < mr_probe_clock_count && status == MR_OK; i++) {
        which.clock = &mr_probe_clocks[i];
        if (choice->sinks & UINT32_C(1) << MR_SINK_TCP && choice->clocks >> i & 1 &&
            which.clock->is_ticks)
            status = add_case(bench, &which);
    }
    return status;
}

/* A door: quiet once, on with each sink and clock. Threads beyond one only where events go. */
static enum mr_status add_door(struct mr_probe_bench *bench, const struct choice *choice,
                               struct mr_probe_case which)
{
    enum mr_status status = MR_OK;

    which.clock = &mr_probe_clocks[0];
    if (which.workload == MR_WORKLOAD_STAMPS)
        return add_stamps(bench, choice, which);
    for (int sink = MR_SINK_OFF; sink < MR_SINK_DISCARD && status == MR_OK; sink++) {
        which.sink = (enum mr_sink)sink;
        if (choice->sinks >> sink & 1 && which.threads == 1)
            status = add_case(bench, &which);
    }
    for (int sink = MR_SINK_DISCARD; sink < MR_SINK_COUNT; sink++)
        for (size_t i = 0; i < mr_probe_clock_count && status == MR_OK; i++) {
            which.sink = (enum mr_sink)sink;
            which.clock = &mr_probe_clocks[i];
            if (choice->sinks >> sink & 1 && choice->clocks >> i & 1 &&
                (which.threads == 1 || sink == MR_SINK_TCP) &&
                (i == 0 || MR_SINK_BARE(sink) || choice->clocks_everywhere))
                status = add_case(bench, &which);
        }
    return status;
}

/* Whether any door was chosen. */
static bool has_doors(const struct choice *choice)
{
    for (size_t i = 0; i < mr_variant_count; i++)
        if (choice->variants >> i & 1 && mr_variants[i].kind == MR_VARIANT_DOOR)
            return true;
    return false;
}

/* All that are compiled by this one. */
static uint32_t variants_of(const char *compiler)
{
    uint32_t mask = 0;

    for (size_t i = 0; i < mr_variant_count; i++)
        if (mr_variants[i].compiler && strcmp(mr_variants[i].compiler, compiler) == 0)
            mask |= UINT32_C(1) << i;
    return mask;
}

static bool is_wanted(const struct choice *choice, size_t variant,
                      enum mr_workload workload, uint32_t threads)
{
    const struct mr_variant *which = &mr_variants[variant];
    bool is_chosen = choice->variants >> variant & 1;

    switch (which->kind) {
    case MR_VARIANT_PLAIN:
        return workload != MR_WORKLOAD_STAMPS &&
               (!which->compiler ||
                (choice->variants & variants_of(which->compiler)) != 0);
    case MR_VARIANT_NOPS:
        return MR_WORKLOAD_SMALL(workload) && threads == 1 &&
               choice->sinks & UINT32_C(1) << MR_SINK_OFF && has_doors(choice);
    case MR_VARIANT_DOOR:
        return is_chosen && (!which->spans_only || MR_WORKLOAD_SMALL(workload) ||
                             workload == MR_WORKLOAD_STAMPS);
    case MR_VARIANT_RIVAL:
        return is_chosen && threads == 1 && workload != MR_WORKLOAD_START &&
               workload != MR_WORKLOAD_STAMPS &&
               (choice->rivals_everywhere || workload == MR_WORKLOAD_TINY);
    }
    return false;
}

/* Builds what is wanted of a variant and adds its cases; what cannot be built is left out. */
static enum mr_status add_variant(struct mr_probe_bench *bench,
                                  const struct choice *choice, size_t variant,
                                  enum mr_workload workload, size_t thread_count)
{
    struct mr_probe_case which = {.variant = &mr_variants[variant], .workload = workload};
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = mr_probe_build(bench, which.variant, workload, &error);

    if (status == MR_END)
        return MR_END;
    if (status != MR_OK) {
        mr_bench_report_skip(&bench->report, "%s/%s: %s", which.variant->name,
                             mr_workload_names[workload], error.text);
        return MR_OK;
    }
    for (size_t i = 0; i < thread_count && status == MR_OK; i++) {
        which.threads = choice->threads[i];
        if (!is_wanted(choice, variant, workload, which.threads))
            continue;
        status = which.variant->kind == MR_VARIANT_DOOR ? add_door(bench, choice, which)
                                                        : add_case(bench, &which);
    }
    return status;
}

/* A door or rival that is not here at all is told once, not for each workload. */
static void leave_out_absent(struct mr_probe_bench *bench, struct choice *choice)
{
    for (size_t i = 0; i < mr_variant_count; i++) {
        struct mr_error error = MR_ERROR_NONE;

        if (!(choice->variants >> i & 1) ||
            mr_variant_find(&bench->build, &mr_variants[i], &error) == MR_OK)
            continue;
        mr_bench_report_skip(&bench->report, "%s", error.text);
        choice->variants &= ~(UINT32_C(1) << i);
    }
}

/* Compiles the programs of a workload, and tells, for SQLite takes a minute. */
static enum mr_status compile_all(struct mr_probe_bench *bench,
                                  const struct choice *choice, enum mr_workload workload)
{
    uint64_t started_ns = mr_clock_monotonic_ns();
    struct mr_error error = MR_ERROR_NONE;
    uint32_t variants = 0, count = 0;
    enum mr_status status;

    for (size_t i = 0; i < mr_variant_count; i++)
        if (is_wanted(choice, i, workload, choice->threads[0])) {
            variants |= UINT32_C(1) << i;
            count++;
        }
    (void)fprintf(stderr, "%s: %s: compiling %" PRIu32 " programs ... ", table.command,
                  mr_workload_names[workload], count);
    status = mr_probe_compile(bench, variants, workload, &error);
    (void)fprintf(stderr, "%.1f s\n",
                  (double)(mr_clock_monotonic_ns() - started_ns) / 1e9);
    if (status != MR_OK && status != MR_END)
        mr_bench_report_skip(&bench->report, "%s: %s", mr_workload_names[workload],
                             error.text);
    return status == MR_END ? MR_END : MR_OK;
}

static enum mr_status add_workload(struct mr_probe_bench *bench,
                                   const struct choice *choice, enum mr_workload workload)
{
    /* More threads than one only for tiny. */
    size_t threads = workload == MR_WORKLOAD_TINY ? choice->thread_count : 1;
    enum mr_status status = compile_all(bench, choice, workload);

    for (size_t i = 0; i < mr_variant_count && status == MR_OK; i++)
        if (is_wanted(choice, i, workload, choice->threads[0]))
            status = add_variant(bench, choice, i, workload, threads);
    return status;
}

static enum mr_status add_all(struct mr_probe_bench *bench, const struct choice *choice)
{
    enum mr_status status = MR_OK;

    for (int workload = 0; workload < MR_WORKLOAD_COUNT && status == MR_OK; workload++)
        if (choice->workloads >> workload & 1)
            status = add_workload(bench, choice, (enum mr_workload)workload);
    return status;
}

static enum mr_status add_self_check(struct mr_probe_bench *bench)
{
    struct mr_probe_case which = {.variant = &mr_variants[0], .threads = 1};
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = mr_probe_build(bench, which.variant, which.workload, &error);

    if (status != MR_OK && status != MR_END)
        (void)mr_bench_say(table.command, 0, error.text);
    if (status == MR_OK)
        status = add_case(bench, &which);
    which.added_ns = MR_SELF_CHECK_NS;
    return status == MR_OK ? add_case(bench, &which) : status;
}

/* Only in the self-check: was it measured? */
static int judge_self_check(const struct mr_probe_bench *bench)
{
    const struct mr_result *added = mr_results_find(
        &bench->results, "self-check/none/tiny/off", "added_ns_per_call", NULL);

    if (!added)
        return mr_bench_say(table.command, EXIT_FAILURE, "nothing was measured");
    return mr_self_check_tell(table.command, "each call", &added->value) ? EXIT_SUCCESS
                                                                         : EXIT_FAILURE;
}

static enum mr_status prepare(struct mr_probe_bench *bench, struct mr_error *error)
{
    uint32_t cpus = mr_machine_cpus();
    enum mr_status status;

    mr_bench_report_init(&bench->report, table.command, bench->options.out);
    bench->cpu = cpus > 1 ? (int)cpus - 1 : -1;
    mr_sqlite_find(bench->options.sqlite, bench->sqlite);
    bench->rivals.build = &bench->build;
    status = mr_bench_report_build(&bench->report, &bench->build, error);
    if (status == MR_OK)
        status = mr_bench_report_scratch(&bench->report, "scratch", bench->rivals.folder,
                                         error);
    return status == MR_OK
               ? mr_bench_report_samples(&bench->report, &bench->samples, error)
               : status;
}

static bool uses(const struct mr_probe_bench *bench, enum mr_sink sink)
{
    for (size_t i = 0; i < bench->case_count; i++)
        if (bench->cases[i].sink == sink)
            return true;
    return false;
}

static enum mr_status start_servers(struct mr_probe_bench *bench, struct mr_error *error)
{
    char path[PATH_MAX];
    enum mr_status status = MR_OK;

    if (uses(bench, MR_SINK_TCP) || uses(bench, MR_SINK_COMPACT))
        status = mr_receiver_start(&bench->receiver, NULL, bench->cpu, error);
    if (status != MR_OK || !uses(bench, MR_SINK_WORKER))
        return status;
    (void)snprintf(path, sizeof(path), "%.*s.chain", PATH_MAX - 16, bench->rivals.folder);
    status = mr_folder_make(path, error);
    return status == MR_OK
               ? mr_server_start(&bench->server,
                                 &(struct mr_server_config){.folder = path}, error)
               : status;
}

static void finish(struct mr_probe_bench *bench)
{
    char path[PATH_MAX];

    mr_server_stop(&bench->server);
    mr_receiver_stop(&bench->receiver);
    mr_rivals_stop(&bench->rivals);
    if (*bench->rivals.folder) {
        (void)snprintf(path, sizeof(path), "%.*s.chain", PATH_MAX - 16,
                       bench->rivals.folder);
        mr_folder_remove(path);
        mr_folder_remove(bench->rivals.folder);
    }
    for (size_t i = 0; i < bench->case_count; i++)
        for (int j = 0; j < MR_MEASURE_COUNT; j++)
            free(bench->cases[i].values[j]);
    if (bench->samples)
        (void)fclose(bench->samples);
    mr_results_fini(&bench->results);
    mr_bench_report_fini(&bench->report);
    mr_build_fini(&bench->build);
    free(bench);
}

static int measure(struct mr_probe_bench *bench, struct mr_error *error)
{
    enum mr_status status = start_servers(bench, error);
    int exit_status;

    if (status != MR_OK)
        return mr_bench_fail(table.command, status, error);
    bench->rounds =
        (struct mr_rounds){.loops = (uint32_t)bench->options.loops,
                           .steal_percent = (uint32_t)bench->options.steal_max,
                           .case_count = bench->case_count,
                           .measure = mr_probe_measure,
                           .context = bench,
                           .progress = table.command};
    mr_rounds_run(&bench->rounds);
    status = mr_probe_results(bench);
    if (status == MR_OK)
        status = mr_probe_write(bench, error);
    exit_status = mr_bench_report_ended(&bench->report, status, error, &bench->rounds);
    if (exit_status >= 0)
        return exit_status;
    exit_status = bench->options.self_check ? judge_self_check(bench) : EXIT_SUCCESS;
    if (bench->has_other_clock)
        exit_status = mr_bench_say(table.command, EXIT_FAILURE, MR_PROBE_CLOCK_OTHER);
    return bench->rounds.is_partial ? MR_BENCH_EXIT_INTERRUPTED : exit_status;
}

static int run(struct mr_probe_bench *bench, struct choice *choice)
{
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = prepare(bench, &error);
    int exit_status;

    if (status == MR_OK && bench->options.self_check) {
        status = add_self_check(bench);
    } else if (status == MR_OK) {
        leave_out_absent(bench, choice);
        mr_probe_clocks_leave_out(&choice->clocks, mr_machine_cpus(), &bench->report);
        status = add_all(bench, choice);
    }
    exit_status =
        mr_bench_report_ready(&bench->report, status, &error, bench->case_count);
    return exit_status < 0 ? measure(bench, &error) : exit_status;
}

int mr_bench_probe_command(int argc, char **argv)
{
    struct mr_probe_bench *bench = calloc(1, sizeof(*bench));
    struct mr_error error = MR_ERROR_NONE;
    struct choice choice;
    int first = 0, exit_status;

    if (!bench)
        return mr_bench_say(table.command, EXIT_FAILURE, mr_status_text(MR_ENOMEM));
    exit_status = mr_options_start(&table, &bench->options, argc, argv, &first);
    if (exit_status < 0 && choose(&bench->options, &choice, &error) != MR_OK)
        exit_status = mr_bench_say(table.command, MR_BENCH_EXIT_USAGE, error.text);
    if (exit_status >= 0) {
        free(bench);
        return exit_status;
    }
    mr_interrupt_catch();
    exit_status = run(bench, &choice);
    finish(bench);
    return exit_status;
}
