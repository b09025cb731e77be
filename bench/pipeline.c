/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/pipeline.h"

#include "base/log.h"
#include "bench/bench.h"
#include "bench/interrupt.h"
#include "bench/names.h"
#include "bench/sqlite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUICK_LOOPS 5
#define QUICK_EVENTS 500000
#define NAMES_MAX 32

static const struct mr_option_spec specs[] = {
#define MR_OPTION(...) MR_OPTION_SPEC(struct mr_pipeline_options, __VA_ARGS__)
#include "bench/pipeline_options.def"
#undef MR_OPTION
};

static const struct mr_option_table table = {
    .command = "millrace bench pipeline",
    .summary =
        "what a worker costs on this machine: each part of it, on recorded and made "
        "streams, beside memcpy and a plain loop",
    .specs = specs,
    .spec_count = MR_ARRAY_COUNT(specs)};

enum sweep {
    SWEEP_SHAPES,
    SWEEP_DEPTH,
    SWEEP_STREAMS,
    SWEEP_LANES,
    SWEEP_RUNNER,
    SWEEP_END,
    SWEEPS
};
static const char *const sweep_names[SWEEPS] = {"shapes", "depth",  "streams",
                                                "lanes",  "runner", "end"};
static const uint32_t sweep_groups[SWEEPS] = {
    [SWEEP_SHAPES] = MR_STREAMS_SHAPES,
    [SWEEP_DEPTH] = MR_STREAMS_DEPTH,
    [SWEEP_STREAMS] = MR_STREAMS_COUNT,
};

enum parts { PARTS_LANE, PARTS_WORKER, PARTS };
static const char *const part_names[PARTS] = {"lane", "worker"};

/* Streams by their place in the table, sweeps by enum sweep. */
struct choice {
    bool streams[NAMES_MAX];
    uint32_t sweeps, parts;
};

static bool is_main(const struct mr_stream_kind *kind)
{
    return (kind->in & (MR_STREAMS_MAIN | MR_STREAMS_RECORDED)) != 0;
}

static enum mr_status choose_streams(const struct mr_pipeline_options *options,
                                     struct choice *choice, struct mr_error *error)
{
    const char *names[NAMES_MAX] = {NULL};
    size_t at[NAMES_MAX], count = 0;
    uint32_t mask;
    enum mr_status status;

    for (size_t i = 0; i < mr_stream_kind_count; i++)
        if (is_main(&mr_stream_kinds[i])) {
            names[count] = mr_stream_kinds[i].name;
            at[count++] = i;
        }
    status = mr_names_choose("--stream", options->streams, names, count, &mask, error);
    for (size_t i = 0; i < count && status == MR_OK; i++)
        choice->streams[at[i]] =
            mask >> i & 1 && !(options->quick && strcmp(options->streams, "all") == 0 &&
                               mr_stream_kinds[at[i]].in & MR_STREAMS_RECORDED);
    return status;
}

static enum mr_status choose(struct mr_pipeline_options *options, struct choice *choice,
                             struct mr_error *error)
{
    bool wants_none = options->quick && strcmp(options->sweeps, "all") == 0;
    enum mr_status status;

    *choice = (struct choice){.sweeps = 0};
    status = choose_streams(options, choice, error);
    if (status == MR_OK)
        status = mr_names_choose("--sweep", wants_none ? "none" : options->sweeps,
                                 sweep_names, SWEEPS, &choice->sweeps, error);
    if (status == MR_OK)
        status = mr_names_choose("--part",
                                 options->quick && strcmp(options->parts, "all") == 0
                                     ? "lane"
                                     : options->parts,
                                 part_names, PARTS, &choice->parts, error);
    for (size_t i = 0; i < mr_stream_kind_count && status == MR_OK; i++)
        for (int sweep = 0; sweep < SWEEPS; sweep++)
            if (choice->sweeps >> sweep & 1)
                choice->streams[i] |= (mr_stream_kinds[i].in & sweep_groups[sweep]) != 0;
    if (options->quick && options->loops > QUICK_LOOPS)
        options->loops = QUICK_LOOPS;
    if (options->quick)
        options->delta_ms = 0;
    if (options->quick && options->events > QUICK_EVENTS)
        options->events = QUICK_EVENTS;
    return status;
}

/* Where nothing can be compiled, made streams are left. */
static enum mr_status prepare(struct mr_pipeline_bench *bench, struct mr_error *error)
{
    struct mr_error no_build = MR_ERROR_NONE;
    enum mr_status status;

    mr_bench_report_init(&bench->report, table.command, bench->options.out);
    mr_sqlite_find(bench->options.sqlite, bench->sqlite);
    status = mr_bench_report_scratch(&bench->report, "scratch", bench->scratch, error);
    if (status != MR_OK)
        return status;
    bench->has_build =
        mr_bench_report_build(&bench->report, &bench->build, &no_build) == MR_OK;
    if (!bench->has_build)
        (void)mr_bench_say(table.command, 0, no_build.text);
    return MR_OK;
}

/* Goes on to the next one where this one cannot be had here. */
static enum mr_status judge(struct mr_pipeline_bench *bench, const char *name,
                            enum mr_status status, const struct mr_error *error)
{
    if (mr_interrupt_seen())
        return MR_END;
    if (status == MR_OK || status == MR_ENOMEM)
        return status;
    mr_bench_report_skip(&bench->report, "%s: %s", name,
                         error->status == MR_OK ? mr_status_text(status) : error->text);
    return MR_OK;
}

static enum mr_status measure(struct mr_pipeline_bench *bench,
                              const struct choice *choice)
{
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = MR_OK;

    for (size_t i = 0; i < mr_stream_kind_count && status == MR_OK; i++)
        if (choice->streams[i]) {
            const struct mr_stream_kind *kind = &mr_stream_kinds[i];

            status = judge(bench, kind->name, mr_pipeline_measure(bench, kind, &error),
                           &error);
            error = (struct mr_error)MR_ERROR_NONE;
        }
    if (status == MR_OK && choice->sweeps >> SWEEP_LANES & 1)
        status = judge(bench, "lanes", mr_pipeline_threads(bench, &error), &error);
    if (status == MR_OK && choice->sweeps >> SWEEP_RUNNER & 1)
        status = judge(bench, "runner", mr_pipeline_runner(bench, &error), &error);
    if (status == MR_OK && choice->sweeps >> SWEEP_END & 1)
        status = judge(bench, "end", mr_pipeline_end(bench, &error), &error);
    return status;
}

static int run(struct mr_pipeline_bench *bench, const struct choice *choice)
{
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = prepare(bench, &error);

    if (status == MR_OK)
        status = measure(bench, choice);
    bench->is_partial |= status == MR_END;
    if (status == MR_OK || status == MR_END)
        status = bench->results.count > 0
                     ? mr_pipeline_write(bench, &error)
                     : mr_error_set(&error, MR_EUSAGE, "nothing was measured");
    if (status != MR_OK && !bench->is_partial)
        return mr_bench_fail(table.command, status, &error);
    return bench->is_partial ? MR_BENCH_EXIT_INTERRUPTED : EXIT_SUCCESS;
}

static void finish(struct mr_pipeline_bench *bench)
{
    if (*bench->scratch)
        mr_folder_remove(bench->scratch);
    mr_results_fini(&bench->results);
    mr_bench_report_fini(&bench->report);
    mr_build_fini(&bench->build);
    free(bench);
}

int mr_bench_pipeline_command(int argc, char **argv)
{
    struct mr_pipeline_bench *bench = calloc(1, sizeof(*bench));
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
    bench->has_worker = (choice.parts >> PARTS_WORKER & 1) != 0;
    mr_log_init(table.command, MR_LOG_WARN);
    mr_interrupt_catch();
    exit_status = run(bench, &choice);
    finish(bench);
    return exit_status;
}
