/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/chain.h"

#include "base/log.h"
#include "base/options.h"
#include "bench/bench.h"
#include "bench/interrupt.h"
#include "bench/report.h"
#include "bench/result.h"
#include "bench/rounds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOPS_MAX 128
#define QUICK_LOOPS 3
#define QUICK_REQUESTS 15000
#define MODEL_LEVELS_MAX 8
/* Of the requests, in the run that is taken away. */
#define SHORT_PART 10

struct chain_options {
#define MR_OPTION MR_OPTION_FIELD
#include "bench/chain_options.def"
#undef MR_OPTION
};

static const struct mr_option_spec specs[] = {
#define MR_OPTION(...) MR_OPTION_SPEC(struct chain_options, __VA_ARGS__)
#include "bench/chain_options.def"
#undef MR_OPTION
};

static const struct mr_option_table table = {
    .command = "millrace bench chain",
    .summary = "what a chain of workers costs per event and per sender, by workers and "
               "levels, and what it would be for many hosts",
    .specs = specs,
    .spec_count = MR_ARRAY_COUNT(specs)};

/* The first is what others are compared with. */
static const struct mr_chain_case cases[] = {{1, 1}, {2, 1}, {4, 1}, {1, 2}, {2, 2},
                                             {4, 2}, {1, 3}, {2, 3}, {4, 3}};
#define CASES MR_ARRAY_COUNT(cases)
#define BASE_NAME "workers-1/levels-1"

enum metric { RATE, WORKER_NS, ABOVE_NS, MASTER_NS, METRICS };
static const struct {
    const char *name, *unit;
} metrics[METRICS] = {{"events_per_cpu_second", "events/s"},
                      {"level1_ns_per_event", "ns"},
                      {"above_ns_per_event", "ns"},
                      {"master_ns_per_event", "ns"}};

struct chain_bench {
    struct chain_options options;
    struct mr_results results;
    struct mr_bench_report report;
    struct mr_build build;
    struct mr_chain_load load;
    struct mr_error error;
    char program[PATH_MAX], scratch[PATH_MAX];
    uint64_t lost[CASES];
    double values[METRICS][CASES][LOOPS_MAX];
    /* Part of a processor that one sender takes of the level above it, and of the master. */
    double above_share[CASES][LOOPS_MAX], master_share[CASES][LOOPS_MAX];
};

static enum mr_status build_program(struct chain_bench *bench, struct mr_error *error)
{
    struct mr_words flags = {0}, words = {0};
    const struct mr_build_object wanted = {.source = "bench/programs/requests.c",
                                           .object = "chain.requests.o",
                                           .flags = &flags};
    char path[PATH_MAX];
    enum mr_status status;

    status = mr_bench_report_build(&bench->report, &bench->build, error);
    mr_words_split(&flags, "-std=c17 -D_GNU_SOURCE -pthread -Isource");
    if (status == MR_OK)
        status = mr_build_flags(&bench->build, "millrace", "--cflags", &flags, error);
    if (status == MR_OK)
        status = mr_build_object(&bench->build, &wanted, error);
    mr_words_add(&words, "%s", wanted.object);
    if (status == MR_OK)
        status = mr_build_flags(&bench->build, "millrace", "--libs", &words, error);
    mr_words_split(&words, "-pthread");
    if (status == MR_OK)
        status = mr_build_link(&bench->build, NULL, "chain.requests", &words, error);
    mr_words_fini(&flags);
    mr_words_fini(&words);
    if (status == MR_OK &&
        !realpath(mr_build_path(&bench->build, "chain.requests", path), bench->program))
        status = mr_error_set(error, MR_EIO, "%.100s: no usable path", path);
    return status;
}

/*
 * A long run without what a short one took: starts, ends, and names that are looked up once are in both, and what is left is
 * what goes on.
 */
static enum mr_status run_without_ends(struct chain_bench *bench,
                                       const struct mr_chain_case *which,
                                       struct mr_chain_result *result)
{
    struct mr_chain_load small = bench->load;
    struct mr_chain_result ends;
    enum mr_status status;

    small.requests = bench->load.requests / SHORT_PART;
    status = mr_chain_run(which, &small, &ends, &bench->error);
    if (status == MR_OK)
        status = mr_chain_run(which, &bench->load, result, &bench->error);
    if (status != MR_OK)
        return status;
    if (result->events <= ends.events || result->wall_s <= ends.wall_s)
        return mr_error_set(&bench->error, MR_EIO,
                            "a long run was no longer than a short one: give more "
                            "--requests");
    result->events -= ends.events;
    result->lost += ends.lost;
    result->wall_s -= ends.wall_s;
    for (uint32_t level = 0; level <= which->levels; level++)
        result->level_s[level] = fmax(0, result->level_s[level] - ends.level_s[level]);
    return MR_OK;
}

static enum mr_status measure(void *context, size_t index, uint32_t loop)
{
    struct chain_bench *bench = context;
    const struct mr_chain_case *which = &cases[index];
    struct mr_chain_result result;
    double above_s = 0, events;
    enum mr_status status =
        mr_interrupt_seen() ? MR_END : run_without_ends(bench, which, &result);

    if (status != MR_OK)
        return MR_END;
    events = (double)result.events;
    for (uint32_t level = 2; level <= which->levels; level++)
        above_s += result.level_s[level - 1];
    bench->lost[index] += result.lost;
    bench->values[RATE][index][loop] =
        events / (result.level_s[0] + above_s + result.level_s[which->levels]);
    bench->values[WORKER_NS][index][loop] = 1e9 * result.level_s[0] / events;
    bench->values[ABOVE_NS][index][loop] = 1e9 * above_s / events;
    bench->values[MASTER_NS][index][loop] = 1e9 * result.level_s[which->levels] / events;
    bench->above_share[index][loop] =
        which->levels < 2 ? (double)NAN
                          : result.level_s[1] / result.wall_s / which->workers;
    bench->master_share[index][loop] = result.level_s[which->levels] / result.wall_s /
                                       (which->levels == 1 ? which->workers : 1);
    return MR_OK;
}

static enum mr_status add(struct chain_bench *bench, const char *name, const char *metric,
                          const char *unit, const double *values, size_t count,
                          const double *base)
{
    return mr_results_add_values(&bench->results, name, metric, unit, values, count,
                                 BASE_NAME, base);
}

/* Senders that a processor carries, at the utilisation asked for. */
static void fan_in(const struct chain_bench *bench, const double *shares, size_t count,
                   double *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (double)bench->options.utilisation / 100 / shares[i];
}

static enum mr_status add_case(struct chain_bench *bench, size_t index, size_t kept)
{
    char name[MR_RESULT_NAME_SIZE];
    double carried[LOOPS_MAX];
    enum mr_status status = MR_OK;

    (void)snprintf(name, sizeof(name), "workers-%u/levels-%u", cases[index].workers,
                   cases[index].levels);
    for (int metric = 0; metric < METRICS && status == MR_OK; metric++) {
        if (metric == ABOVE_NS && cases[index].levels == 1)
            continue;
        status = add(bench, name, metrics[metric].name, metrics[metric].unit,
                     bench->values[metric][index], kept,
                     metric == RATE ? bench->values[metric][0] : NULL);
        if (status == MR_OK && metric == RATE) {
            struct mr_result *added = &bench->results.items[bench->results.count - 1];

            added->has_lost = true;
            added->lost = bench->lost[index];
        }
    }
    if (status == MR_OK && cases[index].levels > 1) {
        fan_in(bench, bench->above_share[index], kept, carried);
        status = add(bench, name, "level2_fan_in", "senders", carried, kept, NULL);
    }
    if (status == MR_OK) {
        fan_in(bench, bench->master_share[index], kept, carried);
        status = add(bench, name, "master_fan_in", "senders", carried, kept, NULL);
    }
    return status;
}

static double median_of(const double *values, size_t count)
{
    struct mr_stats stats;

    return mr_stats_of(values, count, &stats) == MR_OK ? stats.median : (double)NAN;
}

static size_t find_case(uint32_t workers, uint32_t levels)
{
    size_t at = 0;

    while (cases[at].workers != workers || cases[at].levels != levels)
        at++;
    return at;
}

static enum mr_status add_number(struct chain_bench *bench, const char *metric,
                                 const char *unit, double value)
{
    char name[MR_RESULT_NAME_SIZE];

    (void)snprintf(name, sizeof(name), "model/hosts-%llu",
                   (unsigned long long)bench->options.hosts);
    return add(bench, name, metric, unit, &value, 1, NULL);
}

/*
 * Level 1 is paid by event. Levels above and the master are paid by sender: what comes to them are deltas of tens of milliseconds,
 * as large as there are paths. Levels are added until the master carries the last one.
 */
static enum mr_status add_model(struct chain_bench *bench, size_t kept)
{
    static const char *const names[MODEL_LEVELS_MAX] = {
        "level1_workers", "level2_workers", "level3_workers", "level4_workers",
        "level5_workers", "level6_workers", "level7_workers", "level8_workers"};
    size_t wide = find_case(4, 1), high = find_case(4, 2);
    double use = (double)bench->options.utilisation / 100;
    double events = (double)bench->options.hosts * (double)bench->options.host_events;
    double busy = events * median_of(bench->values[WORKER_NS][wide], kept) / 1e9;
    double by_sender = median_of(bench->above_share[high], kept);
    double by_master = median_of(bench->master_share[wide], kept);
    double senders = ceil(busy / use);
    enum mr_status status = add_number(bench, names[0], "workers", senders);
    uint32_t level = 1;

    for (; senders * by_master > use && level < MODEL_LEVELS_MAX && status == MR_OK;
         level++) {
        busy += senders * by_sender;
        senders = ceil(senders * by_sender / use);
        status = add_number(bench, names[level], "workers", senders);
    }
    busy += senders * by_master;
    if (status == MR_OK)
        status = add_number(bench, "levels", "levels", level);
    if (status == MR_OK)
        status = add_number(bench, "master_share", "of a processor", senders * by_master);
    if (status == MR_OK)
        status = add_number(bench, "processors_busy", "processors", busy);
    return status == MR_OK ? add_number(bench, "processors_per_host", "processors",
                                        busy / (double)bench->options.hosts)
                           : status;
}

static const struct mr_table_column columns[] = {
    {"events/CPU-s", "events_per_cpu_second", NULL, MR_TABLE_VALUE, 0},
    {"+-", "events_per_cpu_second", NULL, MR_TABLE_ERROR, 0},
    {"x 1/1", "events_per_cpu_second", BASE_NAME, MR_TABLE_RATIO, 2},
    {"level 1 ns/event", "level1_ns_per_event", NULL, MR_TABLE_VALUE, 2},
    {"above", "above_ns_per_event", NULL, MR_TABLE_VALUE, 3},
    {"master", "master_ns_per_event", NULL, MR_TABLE_VALUE, 3},
    {"level 2 carries", "level2_fan_in", NULL, MR_TABLE_VALUE, 0},
    {"master carries", "master_fan_in", NULL, MR_TABLE_VALUE, 0},
    {"lost", NULL, NULL, MR_TABLE_LOST, 0},
};

static enum mr_status put_tables(void *context, enum mr_table_form form,
                                 struct mr_buffer *out)
{
    const struct chain_bench *bench = context;
    enum mr_status status =
        mr_results_table(&bench->results, columns, MR_ARRAY_COUNT(columns), form, out);

    for (size_t i = 0; i < bench->results.count && status == MR_OK; i++) {
        const struct mr_result *result = &bench->results.items[i];

        if (strncmp(result->name, "model/", 6) == 0)
            status = mr_buffer_append_format(out, "%s %s: %.4g %s\n", result->name,
                                             result->metric, result->value.median,
                                             result->unit);
    }
    if (status == MR_OK)
        status = mr_buffer_append_format(
            out,
            "\nMedians of %llu loops, %u discarded for stolen time. Processor time of "
            "all "
            "processes of the chain, without\nstart and end. carries: senders at %llu %% "
            "of a processor, at 10 deltas a second of this program's paths.\n",
            (unsigned long long)bench->options.loops, bench->results.discarded,
            (unsigned long long)bench->options.utilisation);
    return status;
}

static enum mr_status write_all(struct chain_bench *bench, struct mr_error *error)
{
    const struct mr_bench_output output = {.results = &bench->results,
                                           .tables = put_tables,
                                           .bench = bench,
                                           .is_json = bench->options.json};

    return mr_bench_report_write(&bench->report, &output, error);
}

static enum mr_status run_all(struct chain_bench *bench, struct mr_error *error)
{
    struct mr_rounds rounds = {.loops = (uint32_t)bench->options.loops,
                               .steal_percent = (uint32_t)bench->options.steal_max,
                               .case_count = CASES,
                               .measure = measure,
                               .context = bench,
                               .progress = "chain"};
    enum mr_status status;

    mr_rounds_run(&rounds);
    bench->results.discarded = rounds.discarded;
    bench->results.is_partial = rounds.is_partial;
    *error = bench->error;
    status = error->status;
    if (status == MR_OK && rounds.kept == 0)
        status = mr_error_set(error, MR_EUSAGE, "nothing was measured");
    for (size_t i = 0; i < CASES && status == MR_OK; i++)
        status = add_case(bench, i, rounds.kept);
    if (status == MR_OK)
        status = add_model(bench, rounds.kept);
    return status == MR_OK ? write_all(bench, error) : status;
}

static enum mr_status prepare(struct chain_bench *bench, struct mr_error *error)
{
    enum mr_status status;

    bench->results.bench = "chain";
    mr_bench_report_init(&bench->report, table.command, bench->options.out);
    if (bench->options.quick && bench->options.loops > QUICK_LOOPS)
        bench->options.loops = QUICK_LOOPS;
    if (bench->options.quick && bench->options.requests > QUICK_REQUESTS)
        bench->options.requests = QUICK_REQUESTS;
    status = mr_bench_report_scratch(&bench->report, "chain", bench->scratch, error);
    if (status == MR_OK)
        status = build_program(bench, error);
    bench->load = (struct mr_chain_load){.program = bench->program,
                                         .folder = bench->scratch,
                                         .programs = (uint32_t)bench->options.programs,
                                         .requests = bench->options.requests};
    return status;
}

int mr_bench_chain_command(int argc, char **argv)
{
    struct chain_bench *bench = calloc(1, sizeof(*bench));
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status;
    int first = 0, exit_status;

    if (!bench)
        return EXIT_FAILURE;
    exit_status = mr_options_start(&table, &bench->options, argc, argv, &first);
    if (exit_status >= 0) {
        free(bench);
        return exit_status;
    }
    mr_log_init(table.command, MR_LOG_WARN);
    mr_interrupt_catch();
    status = prepare(bench, &error);
    if (status == MR_OK)
        status = run_all(bench, &error);
    if (status != MR_OK && !mr_interrupt_seen())
        (void)mr_bench_fail(table.command, status, &error);
    if (*bench->scratch)
        mr_folder_remove(bench->scratch);
    mr_results_fini(&bench->results);
    mr_bench_report_fini(&bench->report);
    mr_build_fini(&bench->build);
    free(bench);
    if (mr_interrupt_seen())
        return MR_BENCH_EXIT_INTERRUPTED;
    return status == MR_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
