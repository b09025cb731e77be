/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/overhead.h"

#include "bench/bench.h"
#include "bench/interrupt.h"
#include "bench/machine.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define EXIT_INTERRUPTED 130
#define SELF_CHECK_NS 100.0
#define SELF_CHECK_SHARE 0.05

static const struct mr_option_spec specs[] = {
#define MR_OPTION(...) MR_OPTION_SPEC(struct mr_overhead_options, __VA_ARGS__)
#include "bench/overhead_options.def"
#undef MR_OPTION
};

static const struct mr_option_table table = {
    .command = "millrace bench overhead",
    .summary = "what tracing costs a program, from compiled in but off to everything "
               "analysed, after MooBench, beside other monitoring systems",
    .specs = specs,
    .spec_count = MR_ARRAY_COUNT(specs)};

static int say(int exit_status, const char *text)
{
    (void)fprintf(stderr, "%s: %s\n", table.command, text);
    return exit_status;
}

/* Three answers: a harness on a noisy machine cannot tell, and says so. */
static int judge_self_check(const struct mr_overhead_bench *bench)
{
    const struct mr_result *added = NULL;
    double least = SELF_CHECK_NS * (1 - SELF_CHECK_SHARE);
    double most = SELF_CHECK_NS * (1 + SELF_CHECK_SHARE);
    const char *verdict;

    for (size_t i = 0; i < bench->results.count; i++)
        if (strcmp(bench->results.items[i].metric, "added_ns") == 0)
            added = &bench->results.items[i];
    if (!added)
        return say(EXIT_FAILURE, "nothing was measured");
    if (added->value.low >= least && added->value.high <= most)
        verdict = "pass: within 5 %";
    else if (added->value.high < least || added->value.low > most)
        verdict = "FAIL: more than 5 % off";
    else
        verdict = "too noisy: the interval is wider than 5 %; more loops, or a quieter "
                  "machine";
    (void)fprintf(stderr,
                  "%s: %.0f ns added to each root call are measured as %.2f ns (%.2f .. "
                  "%.2f): %s\n",
                  table.command, SELF_CHECK_NS, added->value.median, added->value.low,
                  added->value.high, verdict);
    return *verdict == 'p' ? EXIT_SUCCESS : EXIT_FAILURE;
}

static enum mr_status make_scratch(struct mr_overhead_bench *bench,
                                   struct mr_error *error)
{
    char path[PATH_MAX];
    enum mr_status status;

    (void)snprintf(path, sizeof(path), "%.*s/scratch.%ld", PATH_MAX - 64,
                   bench->options.out, (long)getpid());
    status = mr_folder_make(path, error);
    if (status == MR_OK && !realpath(path, bench->rivals.folder))
        status = mr_error_set(error, MR_EIO, "%.100s: no usable path", path);
    return status;
}

static enum mr_status open_samples(struct mr_overhead_bench *bench,
                                   struct mr_error *error)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%.*s/samples.jsonl", PATH_MAX - 64,
                   bench->options.out);
    bench->samples = fopen(path, "we");
    if (!bench->samples)
        return mr_error_set_errno(error, MR_EIO, errno, "cannot write %.100s", path);
    return MR_OK;
}

static enum mr_status prepare(struct mr_overhead_bench *bench, struct mr_error *error)
{
    char path[PATH_MAX];
    uint32_t cpus = mr_machine_cpus();
    enum mr_status status;

    mr_bench_report_init(&bench->report, table.command, bench->options.out);
    bench->cpu = cpus > 1 && bench->options.pin ? (int)cpus - 1 : -1;
    (void)sched_getaffinity(0, sizeof(bench->affinity), &bench->affinity);
    bench->rivals.build = &bench->build;
    bench->java.build = &bench->build;
    bench->scratch = mr_spread_new();
    if (!bench->scratch)
        return mr_error_set(error, MR_ENOMEM, "no memory");
    (void)snprintf(path, sizeof(path), "%.*s/programs", PATH_MAX - 64,
                   bench->options.out);
    status = mr_build_init(&bench->build, path, error);
    if (status == MR_OK)
        status = make_scratch(bench, error);
    return status == MR_OK ? open_samples(bench, error) : status;
}

/* And what lies beside it: a run that was cut off leaves its times. */
static void remove_scratch(const char *folder)
{
    static const char *const ends[] = {"", ".chain", ".durations"};
    char path[PATH_MAX];

    for (size_t i = 0; i < MR_ARRAY_COUNT(ends); i++) {
        (void)snprintf(path, sizeof(path), "%.*s%s", PATH_MAX - 32, folder, ends[i]);
        mr_folder_remove(path);
    }
}

static void finish(struct mr_overhead_bench *bench)
{
    mr_rivals_stop(&bench->rivals);
    mr_java_stop(&bench->java);
    mr_link_down(&bench->link);
    if (*bench->rivals.folder)
        remove_scratch(bench->rivals.folder);
    mr_overhead_free_cases(bench);
    if (bench->samples)
        (void)fclose(bench->samples);
    mr_spread_free(bench->scratch);
    mr_results_fini(&bench->results);
    mr_bench_report_fini(&bench->report);
    mr_build_fini(&bench->build);
    free(bench);
}

static int measure(struct mr_overhead_bench *bench, struct mr_error *error)
{
    struct mr_machine_ticks before, after;
    double own_s;
    enum mr_status status;
    int exit_status = EXIT_SUCCESS;

    bench->rounds = (struct mr_rounds){.loops = (uint32_t)bench->options.loops,
                                       .case_count = bench->case_count,
                                       .measure = mr_overhead_measure,
                                       .context = bench,
                                       .progress = table.command};
    mr_machine_ticks(&before);
    own_s = mr_machine_own_s();
    mr_rounds_run(&bench->rounds);
    mr_machine_ticks(&after);
    bench->others = mr_machine_others(&before, &after, mr_machine_own_s() - own_s);
    (void)sched_setaffinity(0, sizeof(bench->affinity), &bench->affinity);
    status = mr_overhead_results(bench);
    if (status == MR_OK && bench->results.count == 0)
        exit_status = say(EXIT_FAILURE, "nothing was measured");
    if (status == MR_OK)
        status = mr_overhead_write(bench, error);
    if (bench->write_error.status != MR_OK)
        return say(EXIT_FAILURE, bench->write_error.text);
    if (status != MR_OK)
        return say(EXIT_FAILURE,
                   error->status == MR_OK ? mr_status_text(status) : error->text);
    if (bench->rounds.kept == 0 && !bench->rounds.is_partial)
        return say(EXIT_FAILURE, "the hypervisor took more than 1 % of every loop");
    if (bench->options.self_check && exit_status == EXIT_SUCCESS)
        exit_status = judge_self_check(bench);
    return bench->rounds.is_partial ? EXIT_INTERRUPTED : exit_status;
}

static int run(struct mr_overhead_bench *bench)
{
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = prepare(bench, &error);

    if (status == MR_OK)
        status = mr_overhead_add_all(bench, &error);
    if (status == MR_END || mr_interrupt_seen())
        return say(EXIT_INTERRUPTED, "interrupted before anything was measured");
    if (status != MR_OK)
        return say(EXIT_FAILURE,
                   error.status == MR_OK ? mr_status_text(status) : error.text);
    if (bench->case_count == 0)
        return say(EXIT_FAILURE, "nothing is left to measure");
    return measure(bench, &error);
}

int mr_bench_overhead_command(int argc, char **argv)
{
    struct mr_overhead_bench *bench = calloc(1, sizeof(*bench));
    struct mr_error error = MR_ERROR_NONE;
    int first = 0, exit_status;

    if (!bench)
        return say(EXIT_FAILURE, mr_status_text(MR_ENOMEM));
    exit_status = mr_options_start(&table, &bench->options, argc, argv, &first);
    if (exit_status < 0 && *bench->options.compare)
        exit_status = mr_overhead_compare(table.command, bench->options.compare);
    if (exit_status < 0 && mr_overhead_check(&bench->options, &error) != MR_OK)
        exit_status = say(EXIT_USAGE, error.text);
    if (exit_status >= 0) {
        free(bench);
        return exit_status;
    }
    mr_interrupt_catch();
    exit_status = run(bench);
    finish(bench);
    return exit_status;
}
