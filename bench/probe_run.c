/* SPDX-License-Identifier: Apache-2.0 */
/* One run of one case: a program started, its lines read, what it sent or stored counted. */
#include "bench/probe.h"

#include "bench/stats.h"
#include "net/endpoint.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICES_MAX 1000
#define STAMPS 100000
#define STAMPS_PAUSE 700 /* steps, about 1 us */
#define SMALL_NS (120 * MR_SECOND_NS)
#define SQLITE_NS (600 * MR_SECOND_NS)

struct run {
    struct mr_probe_bench *bench;
    struct mr_probe_case *which;
    struct mr_words argv, env;
    struct mr_command command;
    double values[MR_MEASURE_COUNT];
    double calls; /* made; NAN: not told */
    bool has_lost;
    double lost, events, bytes;
};

static const char *endpoint_of(const struct mr_probe_bench *bench, enum mr_sink sink)
{
    if (sink == MR_SINK_DISCARD)
        return MR_ENDPOINT_DISCARD;
    return MR_SINK_RECEIVED(sink) ? bench->receiver.endpoint : bench->server.endpoint;
}

static void make_environment(struct run *run)
{
    static const char *const policies[] = {"block", "drop"};
    const struct mr_probe_bench *bench = run->bench;
    const struct mr_probe_case *which = run->which;

    if (which->variant->kind != MR_VARIANT_DOOR || which->sink == MR_SINK_OFF)
        return;
    if (which->sink == MR_SINK_CONTROL) {
        mr_words_add(&run->env, "MILLRACE_CONTROL=1");
        return;
    }
    if (which->sink == MR_SINK_RECORDER) {
        mr_words_add(&run->env, "MILLRACE_POLICY=overwrite");
        mr_words_add(&run->env, "MILLRACE_RECORDER_DIR=%s", bench->rivals.folder);
        return;
    }
    mr_words_add(&run->env, "MILLRACE_ENDPOINT=%s", endpoint_of(bench, which->sink));
    mr_words_add(&run->env, "MILLRACE_POLICY=%s", policies[bench->options.policy]);
    mr_words_add(&run->env, "MILLRACE_BLOCK_TIMEOUT=20s");
    mr_words_add(&run->env, "MILLRACE_EXIT_TIMEOUT=60s");
    if (which->sink == MR_SINK_COMPACT)
        mr_words_add(&run->env, "MILLRACE_ENCODING=compact");
    if (which->clock->env)
        mr_words_add(&run->env, "%s", which->clock->env);
}

static void make_arguments(struct run *run)
{
    const struct mr_probe_options *options = &run->bench->options;
    const struct mr_probe_case *which = run->which;
    char path[PATH_MAX];

    mr_words_add(&run->argv, "%s",
                 mr_probe_program(run->bench, which->variant, which->workload, path));
    if (MR_WORKLOAD_SMALL(which->workload)) {
        mr_words_add(&run->argv, "%s", mr_workload_names[which->workload]);
        mr_words_add(&run->argv, "%" PRIu32, which->threads);
        mr_words_add(&run->argv, "%" PRIu64, options->slices);
        mr_words_add(&run->argv, "%" PRIu64, options->slice_ns / 1000);
        mr_words_add(&run->argv, "%d", which->threads == 1 ? run->bench->cpu : -1);
        mr_words_add(&run->argv, "%g", which->added_ns);
    } else if (which->workload == MR_WORKLOAD_SQLITE) {
        mr_words_add(&run->argv, "--size");
        mr_words_add(&run->argv, "%" PRIu64, options->sqlite_size);
    } else if (which->workload == MR_WORKLOAD_STAMPS) {
        mr_words_add(&run->argv, "%d", STAMPS);
        mr_words_add(&run->argv, "%d", STAMPS_PAUSE);
        mr_words_add(&run->argv, "%d", run->bench->cpu);
        mr_words_split(&run->argv, MR_PROBE_STAMPS_FILE);
    }
}

/*
 * The numbers behind the first `name` in text, as many as there are up to `room`. *next is
 * what follows, or NULL when there is no such line.
 */
static size_t read_line(const char *text, const char *name, double *numbers, size_t room,
                        const char **next)
{
    const char *at = strstr(text, name);
    size_t count = 0;

    *next = at;
    if (!at)
        return 0;
    for (at += strlen(name); count < room; count++) {
        char *end;

        numbers[count] = strtod(at, &end);
        if (end == at)
            break;
        at = end;
    }
    *next = at;
    return count;
}

/* Medians over the slices: one disturbed slice does not count. */
static void read_slices(struct run *run, const char *text)
{
    double floors[SLICES_MAX], works[SLICES_MAX], pair[2];
    size_t count = 0, read;

    while ((read = read_line(text, "slice ", pair, 2, &text)), text) {
        if (read != 2 || count == SLICES_MAX)
            break;
        floors[count] = pair[0];
        works[count++] = pair[1];
    }
    if (count == 0)
        return;
    mr_stats_sort(floors, count);
    mr_stats_sort(works, count);
    run->values[MR_MEASURE_FLOOR] = mr_stats_quantile(floors, count, 0.5);
    run->values[MR_MEASURE_NS] = mr_stats_quantile(works, count, 0.5);
}

/* "batch CALLS" and the measures from TIMER to MAX. */
static void read_batches(struct run *run, const char *text)
{
    double numbers[2 + MR_MEASURE_MAX - MR_MEASURE_TIMER];

    if (read_line(text, "batch ", numbers, MR_ARRAY_COUNT(numbers), &text) ==
        MR_ARRAY_COUNT(numbers))
        memcpy(&run->values[MR_MEASURE_TIMER], numbers + 1,
               sizeof(numbers) - sizeof(*numbers));
}

static void read_counts(struct run *run, const char *text)
{
    double counts[3];
    const char *next;

    if (read_line(text, "calls ", counts, 1, &next) == 1)
        run->calls = counts[0];
    if (read_line(text, "probe ", counts, 3, &next) != 3)
        return;
    if (run->which->sink == MR_SINK_RECORDER)
        return; /* to forget the oldest is what it is for */
    run->events = counts[0];
    run->lost = counts[2];
    run->has_lost = true;
}

static void read_start(struct run *run, const char *text)
{
    double numbers[2]; /* ns are exact up to 2^53, a hundred days */

    if (read_line(text, "start ", numbers, 2, &text) != 2)
        return;
    run->values[MR_MEASURE_START_MS] =
        (numbers[0] - (double)run->command.started_ns) / 1e6;
    if (numbers[1] > 0)
        run->values[MR_MEASURE_PRIVATE_KIB] = numbers[1];
}

static void read_output(struct run *run)
{
    const char *text = mr_command_text(&run->command.output);

    if (MR_WORKLOAD_SMALL(run->which->workload)) {
        read_slices(run, text);
        read_batches(run, text);
        read_counts(run, text);
    } else if (run->which->workload == MR_WORKLOAD_START) {
        read_start(run, text);
    } else if (run->which->workload == MR_WORKLOAD_STAMPS) {
        read_counts(run, text);
        mr_receiver_settle(&run->bench->receiver);
        mr_probe_stamps_compare(run->bench, text, run->values);
    } else {
        run->values[MR_MEASURE_SECONDS] = (double)run->command.wall_ns / 1e9;
        run->values[MR_MEASURE_CPU] = (double)run->command.cpu_ns / 1e9;
    }
}

/* Of the programs that tell it, where the case's clock was asked for. */
static enum mr_status check_clock(struct run *run, struct mr_error *error)
{
    const struct mr_probe_case *which = run->which;
    enum mr_status status;

    if (which->variant->kind != MR_VARIANT_DOOR || which->sink < MR_SINK_DISCARD ||
        !(MR_WORKLOAD_SMALL(which->workload) || which->workload == MR_WORKLOAD_STAMPS))
        return MR_OK;
    status = mr_probe_clock_check(which->clock, mr_command_text(&run->command.output),
                                  mr_command_text(&run->command.errors), error);
    run->bench->has_other_clock |= status != MR_OK;
    return status;
}

/* What the receiver got beside what the probe says; nobody else sends to it meanwhile. */
static void count_received(struct run *run, uint64_t events_before, uint64_t bytes_before,
                           uint64_t lost_before)
{
    const struct mr_receiver *receiver = &run->bench->receiver;

    if (run->which->variant->kind != MR_VARIANT_DOOR ||
        !MR_SINK_RECEIVED(run->which->sink))
        return;
    mr_receiver_settle(receiver);
    run->events = (double)(mr_load_relaxed(&receiver->totals->events) - events_before);
    run->bytes = (double)(mr_load_relaxed(&receiver->totals->bytes) - bytes_before);
    if (!run->has_lost) { /* the program does not tell */
        run->has_lost = run->events > 0;
        run->lost = (double)(mr_load_relaxed(&receiver->totals->lost) - lost_before);
    }
}

/* A rival that counts what it recorded; or, negative, what it did not. */
static void count_rival(struct run *run)
{
    double events = (double)NAN;

    if (run->which->variant->end)
        run->which->variant->end(&run->bench->rivals, &events, &run->bytes);
    if (isnan(events))
        return;
    if (events <= 0) {
        run->has_lost = true;
        run->lost = -events;
        if (!isnan(run->calls))
            run->events = 2 * run->calls - run->lost;
    } else {
        run->events = events;
        run->has_lost = !isnan(run->calls);
        run->lost =
            run->has_lost && 2 * run->calls > events ? 2 * run->calls - events : 0;
    }
}

static enum mr_status perform(struct run *run, struct mr_error *error)
{
    const struct mr_variant *variant = run->which->variant;
    const struct mr_receiver_totals *totals = run->bench->receiver.totals;
    uint64_t events = totals ? mr_load_relaxed(&totals->events) : 0;
    uint64_t bytes = totals ? mr_load_relaxed(&totals->bytes) : 0;
    uint64_t lost = totals ? mr_load_relaxed(&totals->lost) : 0;
    enum mr_status status = MR_OK;

    make_environment(run);
    if (run->which->workload == MR_WORKLOAD_STAMPS)
        mr_probe_stamps_ask(run->bench);
    if (variant->begin)
        status = variant->begin(&run->bench->rivals, &run->argv, &run->env, error);
    make_arguments(run);
    run->command = (struct mr_command){
        .argv = &run->argv,
        .env = &run->env,
        .directory = run->bench->rivals.folder,
        .timeout_ns = run->which->workload == MR_WORKLOAD_SQLITE ? SQLITE_NS : SMALL_NS};
    if (status == MR_OK) {
        status = mr_command_run(&run->command, error);
        if (status == MR_OK)
            status = mr_rival_check_loaded(&run->command, error);
        if (status == MR_OK)
            status = check_clock(run, error);
        if (status == MR_OK)
            read_output(run);
        mr_command_fini(&run->command);
    }
    count_received(run, events, bytes, lost);
    count_rival(run);
    if (run->events > 0 && !isnan(run->bytes))
        run->values[MR_MEASURE_BYTES] = run->bytes / run->events;
    return status;
}

/* A line of samples.jsonl, at once: Ctrl-C or a crash leave what was measured. */
static void write_sample(const struct run *run, uint32_t loop)
{
    static const char *const names[MR_MEASURE_COUNT] = {
        "floor_ns",  "ns",           "timer_ns", "p50",         "p90",
        "p99",       "p99.9",        "p99.99",   "max_ns",      "bytes_per_event",
        "seconds",   "cpu_seconds",  "start_ms", "private_kib", "error_p50",
        "error_p99", "error_p99.99", "error_max"};
    FILE *file = run->bench->samples;

    (void)fprintf(file, "{\"case\":\"%s\",\"loop\":%" PRIu32, run->which->name, loop);
    for (int i = 0; i < MR_MEASURE_COUNT; i++)
        if (!isnan(run->values[i]))
            (void)fprintf(file, ",\"%s\":%.9g", names[i], run->values[i]);
    if (run->has_lost)
        (void)fprintf(file, ",\"lost\":%.0f", run->lost);
    (void)fputs("}\n", file);
    (void)fflush(file);
}

static void keep(struct run *run, uint32_t loop)
{
    struct mr_probe_case *which = run->which;

    for (int i = 0; i < MR_MEASURE_COUNT; i++)
        which->values[i][loop] = run->values[i];
    write_sample(run, loop);
    which->has_lost |= run->has_lost;
    which->lost += run->has_lost ? (uint64_t)run->lost : 0;
    which->events += run->events > 0 ? (uint64_t)run->events : 0;
}

enum mr_status mr_probe_measure(void *context, size_t index, uint32_t loop)
{
    struct mr_probe_bench *bench = context;
    struct run run = {.bench = bench,
                      .which = &bench->cases[index],
                      .calls = (double)NAN,
                      .bytes = (double)NAN};
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = MR_OK;

    for (int i = 0; i < MR_MEASURE_COUNT; i++)
        run.values[i] = (double)NAN;
    if (!run.which->has_failed)
        status = perform(&run, &error);
    if (status != MR_OK && status != MR_END) {
        run.which->has_failed = true;
        (void)snprintf(run.which->failure, sizeof(run.which->failure), "%s", error.text);
        mr_bench_report_skip(&bench->report, "%s: %s", run.which->name, error.text);
    }
    if (status == MR_OK)
        keep(&run, loop);
    mr_words_fini(&run.argv);
    mr_words_fini(&run.env);
    return status == MR_END ? MR_END : MR_OK;
}
