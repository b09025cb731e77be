/* SPDX-License-Identifier: Apache-2.0 */
/* One run of one case: the chain started, the program run, its lines and its durations read, the chain's account taken. */
#include "bench/overhead.h"

#include "bench/interrupt.h"
#include "bench/machine.h"
#include "bench/stats.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct run {
    struct mr_overhead_bench *bench;
    struct mr_overhead_case *which;
    uint32_t loop;
    struct mr_overhead_chain chain;
    struct mr_words argv, env;
    struct mr_command command;
    double values[MR_OVERHEAD_MEASURES];
    double arrived, bytes; /* events at the end of the chain; NAN: nobody counts */
    double fitted;         /* root calls that the program made besides */
    double lost;           /* as the tracer itself tells; NAN: it has no account */
    char last_words[160];  /* what the program wrote to stderr at last */
};

static void make_environment(struct run *run)
{
    static const char *const policies[] = {"block", "drop"};
    const struct mr_overhead_options *options = &run->bench->options;
    const struct mr_overhead_case *which = run->which;
    const char *endpoint = mr_overhead_chain_endpoint(&run->chain, which);

    if (!which->variant || which->variant->kind != MR_VARIANT_DOOR || !endpoint)
        return;
    mr_words_add(&run->env, "MILLRACE_ENDPOINT=%s", endpoint);
    mr_words_add(&run->env, "MILLRACE_POLICY=%s", policies[options->policy]);
    mr_words_add(&run->env, "MILLRACE_BLOCK_TIMEOUT=60s");
    mr_words_add(&run->env, "MILLRACE_EXIT_TIMEOUT=60s");
    if (which->point.ring_bytes > 0)
        mr_words_add(&run->env, "MILLRACE_RING_SIZE=%" PRIu64, which->point.ring_bytes);
    if (*options->counters) {
        mr_words_add(&run->env, "MILLRACE_COUNTERS=%s", options->counters);
        mr_words_add(&run->env, "MILLRACE_COUNTERS_ON=all");
    }
    if (which->clock && which->clock->env)
        mr_words_add(&run->env, "%s", which->clock->env);
}

/* Not in the scratch folder, which is the rivals'. */
static const char *durations(const struct run *run, char path[PATH_MAX])
{
    (void)snprintf(path, PATH_MAX, "%.*s.durations", PATH_MAX - 32,
                   run->bench->rivals.folder);
    return path;
}

static void make_arguments(struct run *run)
{
    static const char *const timings[] = {"each", "whole"};
    const struct mr_overhead_point *point = &run->which->point;
    char path[PATH_MAX];

    if (run->which->variant)
        mr_words_add(&run->argv, "%s",
                     mr_overhead_program(run->bench, run->which->variant, path));
    mr_words_add(&run->argv, "%" PRIu64, point->calls);
    mr_words_add(&run->argv, "%" PRIu64, point->depth);
    mr_words_add(&run->argv, "%" PRIu64, point->method_ns);
    mr_words_add(&run->argv, "%" PRIu64, point->threads);
    mr_words_add(&run->argv, "%s", timings[run->bench->options.timing]);
    mr_words_add(&run->argv, "%d", point->threads == 1 ? run->bench->cpu : -1);
    mr_words_add(&run->argv, "%g", run->which->added_ns);
    mr_words_add(&run->argv, "%s", durations(run, path));
}

/* The numbers behind the line that begins with `name`; how many of `room` there were. */
static size_t read_line(const char *text, const char *name, double *numbers, size_t room)
{
    size_t size = strlen(name), count = 0;

    while (text && strncmp(text, name, size) != 0) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    for (text = text ? text + size : NULL; text && count < room; count++) {
        char *end;

        numbers[count] = strtod(text, &end);
        if (end == text || memchr(text, '\n', (size_t)(end - text)))
            break;
        text = end;
    }
    return count;
}

static void read_output(struct run *run)
{
    const char *text = mr_command_text(&run->command.output);
    const struct mr_overhead_point *point = &run->which->point;
    uint64_t told = point->calls - point->calls / 2; /* root calls of a thread */
    double traces = (double)(point->calls * point->threads), numbers[3];
    double second_half = (double)(told * point->threads);

    if (read_line(text, "wall ", numbers, 1) == 1 && numbers[0] > 0)
        run->values[MR_OVERHEAD_TRACES] = second_half / numbers[0] * 1e9;
    if (read_line(text, "all ", numbers, 2) == 2 && numbers[1] > 0)
        run->values[MR_OVERHEAD_DRAINED] = traces / numbers[1] * 1e9;
    if (read_line(text, "cpu ", numbers, 1) == 1) {
        run->values[MR_OVERHEAD_CPU_PROGRAM] = numbers[0] / 1e9;
        if (run->which->phase >= MR_PHASE_COLLECTING)
            run->values[MR_OVERHEAD_CPU_WRITER] =
                ((double)run->command.cpu_ns - numbers[0]) / 1e9;
    }
    if (read_line(text, "fitted ", numbers, 1) == 1)
        run->fitted = numbers[0];
    if (read_line(text, "memory ", numbers, 1) == 1 && numbers[0] > 0)
        run->values[MR_OVERHEAD_PEAK_PROGRAM] = numbers[0];
}

/* What the probe tells of a run that it should have recorded, with the clock of the case. */
static enum mr_status read_probe(struct run *run, struct mr_error *error)
{
    double numbers[3]; /* written, acknowledged, lost */
    enum mr_status status;

    if (!run->which->variant || run->which->variant->kind != MR_VARIANT_DOOR ||
        run->which->phase < MR_PHASE_COLLECTING)
        return MR_OK;
    if (read_line(mr_command_text(&run->command.output), "probe ", numbers, 3) != 3 ||
        numbers[0] + numbers[2] <= 0)
        return mr_error_set(error, MR_EIO, "the probe recorded nothing: %.200s",
                            mr_command_text(&run->command.errors));
    run->lost = numbers[2];
    status =
        mr_probe_clock_check(run->which->clock, mr_command_text(&run->command.output),
                             mr_command_text(&run->command.errors), error);
    run->bench->has_other_clock |= status != MR_OK;
    return status;
}

/* MooBench's raw file: the thread, ns, bytes of heap, collections; the latter are 0 here. */
static enum mr_status write_raw(struct run *run, FILE *file, uint64_t thread,
                                const uint32_t *spent, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (fprintf(file, "%" PRIu64 ";%" PRIu32 ";0;0\n", thread, spent[i]) < 0)
            break;
    if (!ferror(file))
        return MR_OK;
    return mr_error_set_errno(&run->bench->write_error, MR_EIO, errno,
                              "cannot write raw files to %.100s",
                              run->bench->options.out);
}

/* The median over blocks of the mean of a block: what interrupts did to a few of them is left out. */
static double block_of(const uint32_t *spent, uint64_t count)
{
    uint64_t blocks = count / MR_OVERHEAD_BLOCK;
    double *means = malloc((blocks > 0 ? blocks : 1) * sizeof(*means)), median;

    if (!means || blocks == 0) {
        free(means);
        return (double)NAN;
    }
    for (uint64_t i = 0; i < blocks; i++) {
        uint64_t sum = 0;

        for (uint64_t j = 0; j < MR_OVERHEAD_BLOCK; j++)
            sum += spent[i * MR_OVERHEAD_BLOCK + j];
        means[i] = (double)sum / MR_OVERHEAD_BLOCK;
    }
    mr_stats_sort(means, blocks);
    median = mr_stats_quantile(means, blocks, 0.5);
    free(means);
    return median;
}

static void take_thread(struct run *run, const uint32_t *spent, uint64_t count)
{
    double block = block_of(spent + count / 2, count - count / 2);
    double *value = &run->values[MR_OVERHEAD_BLOCKS];

    for (uint64_t i = count / 2; i < count; i++)
        mr_spread_add(run->bench->scratch, spent[i]);
    /* Of several threads: their mean. */
    block /= (double)run->which->point.threads;
    *value = isnan(*value) ? block : *value + block;
}

/* Config numbers as MooBench's scripts have them, which want small numbers in file names. */
static FILE *open_raw(struct run *run)
{
    char path[PATH_MAX];
    FILE *file;

    if (!run->bench->options.raw || run->which->is_swept)
        return NULL;
    (void)snprintf(path, sizeof(path), "%.*s/raw-%" PRIu32 "-%" PRIu64 "-%td.csv",
                   PATH_MAX - 80, run->bench->options.out, run->loop + 1,
                   run->which->point.depth, run->which - run->bench->cases);
    file = fopen(path, "we");
    if (!file)
        (void)mr_error_set_errno(&run->bench->write_error, MR_EIO, errno,
                                 "cannot write %.100s", path);
    return file;
}

static enum mr_status read_threads(struct run *run, FILE *file, FILE *raw,
                                   struct mr_error *error)
{
    enum mr_status status = MR_OK;

    for (uint64_t i = 0; i < run->which->point.threads && status == MR_OK; i++) {
        uint32_t *spent = NULL;
        uint64_t count = 0;

        if (fread(&count, sizeof(count), 1, file) == 1 &&
            count == run->which->point.calls)
            spent = malloc(count * sizeof(*spent));
        if (!spent || fread(spent, sizeof(*spent), count, file) != count) {
            free(spent);
            return mr_error_set(error, MR_EIO,
                                "the program did not tell %" PRIu64 " times",
                                run->which->point.calls);
        }
        take_thread(run, spent, count);
        if (raw)
            status = write_raw(run, raw, i, spent, count);
        free(spent);
    }
    return status;
}

static enum mr_status read_durations(struct run *run, struct mr_error *error)
{
    char path[PATH_MAX];
    FILE *file = fopen(durations(run, path), "re"), *raw;
    enum mr_status status;

    if (!file)
        return mr_error_set_errno(error, MR_EIO, errno, "cannot read %.100s", path);
    mr_spread_clear(run->bench->scratch);
    raw = open_raw(run);
    status = read_threads(run, file, raw, error);
    (void)fclose(file);
    (void)unlink(path);
    if (raw && fclose(raw) != 0 && status == MR_OK)
        status = mr_error_set_errno(&run->bench->write_error, MR_EIO, errno,
                                    "cannot write raw files to %.100s",
                                    run->bench->options.out);
    return status;
}

static void take_spread(struct run *run)
{
    static const struct {
        enum mr_overhead_measure measure;
        double share;
    } parts[] = {{MR_OVERHEAD_Q1, 0.25},    {MR_OVERHEAD_MEDIAN, 0.5},
                 {MR_OVERHEAD_Q3, 0.75},    {MR_OVERHEAD_P99, 0.99},
                 {MR_OVERHEAD_P999, 0.999}, {MR_OVERHEAD_MAX, 1}};
    const struct mr_spread *spread = run->bench->scratch;

    run->values[MR_OVERHEAD_RESPONSE] = mr_spread_mean(spread);
    run->values[MR_OVERHEAD_PER_CALL] =
        mr_spread_mean(spread) / (double)run->which->point.depth;
    for (size_t i = 0; i < MR_ARRAY_COUNT(parts); i++)
        run->values[parts[i].measure] = mr_spread_quantile(spread, parts[i].share);
    mr_spread_merge(run->which->spread, spread);
}

/* What the tracer says it lost, and what did not come to the end of the chain though nobody says so. */
static void take_account(struct run *run)
{
    const struct mr_overhead_point *point = &run->which->point;
    double roots = (double)(point->calls * point->threads) + run->fitted;
    double made = 2.0 * (double)point->depth * roots;

    if (!isnan(run->arrived)) {
        double missing = made - run->arrived;

        run->lost = missing > 0 ? missing : 0;
        if (run->arrived > 0 && !isnan(run->bytes))
            run->values[MR_OVERHEAD_BYTES] = run->bytes / run->arrived;
    } else if (!isnan(run->bytes) && run->bytes > 0) {
        run->values[MR_OVERHEAD_BYTES] = run->bytes / made;
    }
}

/* A rival's events: those it recorded or, negative, those it did not. */
static void end_rival(struct run *run)
{
    double events = (double)NAN;

    if (run->which->variant && run->which->variant->end) {
        run->which->variant->end(&run->bench->rivals, &events, &run->bytes);
        if (events <= 0)
            run->lost = -events;
        else if (!isnan(events))
            run->arrived = events;
    }
    if (run->which->java)
        mr_java_end(&run->bench->java, run->which->java, &run->arrived, &run->bytes);
}

static enum mr_status begin(struct run *run, struct mr_error *error)
{
    const struct mr_variant *variant = run->which->variant;
    enum mr_status status = MR_OK;

    make_environment(run);
    if (run->which->point.is_slow_link)
        mr_link_words(&run->bench->link, &run->argv);
    if (variant && variant->begin)
        status = variant->begin(&run->bench->rivals, &run->argv, &run->env, error);
    else if (run->which->java)
        status = mr_java_begin(&run->bench->java, run->which->java, &run->argv, &run->env,
                               error);
    if (status == MR_OK)
        make_arguments(run);
    return status;
}

static enum mr_status run_program(struct run *run, struct mr_error *error)
{
    enum mr_status status;

    run->command = (struct mr_command){.argv = &run->argv,
                                       .env = &run->env,
                                       .directory = run->bench->rivals.folder,
                                       .timeout_ns = MR_OVERHEAD_RUN_NS};
    status = mr_command_run(&run->command, error);
    if (status == MR_OK) {
        read_output(run);
        status = mr_rival_check_loaded(&run->command, error);
        if (status == MR_OK)
            status = read_probe(run, error);
        if (status == MR_OK && run->bench->options.timing == 0)
            status = read_durations(run, error);
    }
    mr_command_last_line(&run->command.errors, run->last_words, sizeof(run->last_words));
    mr_command_fini(&run->command);
    return status;
}

/* A peer may lose what it likes, and has not been measured where it did nothing. */
static enum mr_status check_came(const struct run *run, struct mr_error *error)
{
    if (!run->which->java || !run->which->java->is_peer ||
        (run->bytes > 0 && run->arrived != 0))
        return MR_OK;
    return mr_error_set(error, MR_EIO, "nothing of it came; its last words: %s",
                        *run->last_words ? run->last_words : "none");
}

static void place_anywhere(const struct run *run)
{
    (void)sched_setaffinity(0, sizeof(run->bench->affinity), &run->bench->affinity);
}

/*
 * Of a single caller's case all but the calling thread, which chooses for itself, stay off its processor. A JVM chooses
 * nothing and gets all.
 */
static void place(const struct run *run)
{
    place_anywhere(run);
    if (run->which->variant && run->which->point.threads == 1)
        mr_machine_leave_cpu(run->bench->cpu);
}

static enum mr_status perform(struct run *run, struct mr_error *error)
{
    enum mr_status status =
        mr_overhead_chain_start(run->bench, run->which, &run->chain, error);
    bool has_begun = status == MR_OK;

    if (status == MR_OK)
        status = begin(run, error);
    /* A probe looks at its start how many processors there are; its threads leave the caller's a moment later. */
    if (run->which->clock)
        place_anywhere(run);
    if (status == MR_OK)
        status = run_program(run, error);
    if (has_begun)
        end_rival(run);
    if (status == MR_OK)
        status = check_came(run, error);
    mr_overhead_chain_stop(run->which, &run->chain, run->values, &run->arrived,
                           &run->bytes);
    take_account(run);
    return status;
}

/* A line of samples.jsonl, at once: Ctrl-C or a crash leave what was measured. */
static void write_sample(struct run *run)
{
    FILE *file = run->bench->samples;

    (void)fprintf(file, "{\"case\":\"%s\",\"loop\":%" PRIu32 ",\"calls\":%" PRIu64,
                  run->which->name, run->loop, run->which->point.calls);
    for (int i = 0; i < MR_OVERHEAD_MEASURES; i++)
        if (!isnan(run->values[i]))
            (void)fprintf(file, ",\"%s\":%.9g", mr_overhead_metrics[i].name,
                          run->values[i]);
    if (!isnan(run->lost))
        (void)fprintf(file, ",\"lost\":%.0f", run->lost);
    (void)fputs("}\n", file);
    if (fflush(file) != 0 && run->bench->write_error.status == MR_OK)
        (void)mr_error_set_errno(&run->bench->write_error, MR_EIO, errno,
                                 "cannot write samples.jsonl to %.100s",
                                 run->bench->options.out);
}

static void keep(struct run *run)
{
    struct mr_overhead_case *which = run->which;

    if (run->bench->options.timing == 0)
        take_spread(run);
    for (int i = 0; i < MR_OVERHEAD_MEASURES; i++)
        which->values[i][run->loop] = run->values[i];
    which->has_lost |= !isnan(run->lost);
    which->lost += isnan(run->lost) ? 0 : (uint64_t)run->lost;
    write_sample(run);
}

enum mr_status mr_overhead_measure(void *context, size_t index, uint32_t loop)
{
    struct mr_overhead_bench *bench = context;
    struct run run = {.bench = bench,
                      .which = &bench->cases[index],
                      .loop = loop,
                      .arrived = (double)NAN,
                      .bytes = (double)NAN,
                      .lost = (double)NAN};
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = mr_interrupt_seen() ? MR_END : MR_OK;

    for (int i = 0; i < MR_OVERHEAD_MEASURES; i++)
        run.values[i] = (double)NAN;
    if (run.which->has_failed || status == MR_END)
        return status;
    place(&run);
    status = perform(&run, &error);
    if (status == MR_OK)
        keep(&run);
    if (bench->write_error.status != MR_OK)
        status = MR_END;
    if (status != MR_OK && status != MR_END) {
        run.which->has_failed = true;
        mr_bench_report_skip(&bench->report, "%s: %s", run.which->name, error.text);
    }
    mr_words_fini(&run.argv);
    mr_words_fini(&run.env);
    return status == MR_END ? MR_END : MR_OK;
}
