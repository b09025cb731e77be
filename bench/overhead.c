/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/overhead.h"

#include "bench/bench.h"
#include "bench/interrupt.h"
#include "bench/machine.h"
#include "bench/self_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Every phase has a verdict of its own; one that could not be measured is told as left out. */
static int judge_self_check(const struct mr_overhead_bench *bench)
{
    size_t passed = 0, judged = 0;

    for (size_t i = 0; i < bench->results.count; i++) {
        const struct mr_result *result = &bench->results.items[i];
        char what[MR_RESULT_NAME_SIZE + 32];

        if (strcmp(result->metric, "added_ns") != 0)
            continue;
        (void)snprintf(what, sizeof(what), "each root call of %s", result->name);
        passed += mr_self_check_tell(table.command, what, &result->value);
        judged++;
    }
    if (judged == 0)
        return mr_bench_say(table.command, EXIT_FAILURE, "nothing was measured");
    return passed == judged && bench->report.skipped.size == 0 ? EXIT_SUCCESS
                                                               : EXIT_FAILURE;
}

static enum mr_status prepare(struct mr_overhead_bench *bench, struct mr_error *error)
{
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
    status = mr_bench_report_build(&bench->report, &bench->build, error);
    if (status == MR_OK)
        status = mr_bench_report_scratch(&bench->report, "scratch", bench->rivals.folder,
                                         error);
    return status == MR_OK
               ? mr_bench_report_samples(&bench->report, &bench->samples, error)
               : status;
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
    int exit_status = EXIT_SUCCESS, ended;

    bench->rounds =
        (struct mr_rounds){.loops = (uint32_t)bench->options.loops,
                           .steal_percent = (uint32_t)bench->options.steal_max,
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
        exit_status = mr_bench_say(table.command, EXIT_FAILURE, "nothing was measured");
    if (status == MR_OK)
        status = mr_overhead_write(bench, error);
    if (bench->write_error.status != MR_OK)
        return mr_bench_fail(table.command, MR_EIO, &bench->write_error);
    ended = mr_bench_report_ended(&bench->report, status, error, &bench->rounds);
    if (ended >= 0)
        return ended;
    if (bench->has_other_clock)
        exit_status = mr_bench_say(table.command, EXIT_FAILURE, MR_PROBE_CLOCK_OTHER);
    if (bench->options.self_check && exit_status == EXIT_SUCCESS)
        exit_status = judge_self_check(bench);
    return bench->rounds.is_partial ? MR_BENCH_EXIT_INTERRUPTED : exit_status;
}

static int run(struct mr_overhead_bench *bench)
{
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = prepare(bench, &error);
    int exit_status;

    if (status == MR_OK)
        status = mr_overhead_add_all(bench, &error);
    exit_status =
        mr_bench_report_ready(&bench->report, status, &error, bench->case_count);
    return exit_status < 0 ? measure(bench, &error) : exit_status;
}

int mr_bench_overhead_command(int argc, char **argv)
{
    struct mr_overhead_bench *bench = calloc(1, sizeof(*bench));
    struct mr_error error = MR_ERROR_NONE;
    int first = 0, exit_status;

    if (!bench)
        return mr_bench_say(table.command, EXIT_FAILURE, mr_status_text(MR_ENOMEM));
    exit_status = mr_options_start(&table, &bench->options, argc, argv, &first);
    if (exit_status < 0 && *bench->options.compare)
        exit_status = mr_overhead_compare(table.command, bench->options.compare);
    if (exit_status < 0 && mr_overhead_check(&bench->options, &error) != MR_OK)
        exit_status = mr_bench_say(table.command, MR_BENCH_EXIT_USAGE, error.text);
    if (exit_status >= 0) {
        free(bench);
        return exit_status;
    }
    mr_interrupt_catch();
    exit_status = run(bench);
    finish(bench);
    return exit_status;
}
