/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: a traced program on one processor; its writer, and the worker and the master behind it, on another. Beside
 * the same program whose events are taken by a receiver and forgotten.
 */
#include "bench/interrupt.h"
#include "bench/machine.h"
#include "bench/pipeline.h"
#include "bench/receiver.h"
#include "bench/server.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "recursion.hooks"
#define PROGRAM_MS 1000
#define RUN_NS (60 * MR_SECOND_NS)

enum way { DISCARD, WORKER, WAYS };
static const char *const way_names[WAYS] = {"discard", "worker"};

enum metric { NS_PER_EVENT, CPU_PROGRAM, CPU_WRITER, CPU_TAKER, CPU_MASTER, METRICS };
static const char *const metric_names[METRICS] = {
    "ns_per_event", "cpu_seconds_program", "cpu_seconds_writer", "cpu_seconds_taker",
    "cpu_seconds_master"};

struct end {
    struct mr_pipeline_bench *bench;
    struct mr_receiver receiver;
    struct mr_server server;
    struct mr_error error;
    uint64_t lost[WAYS];
    double values[WAYS][METRICS][MR_BENCH_LOOPS_MAX];
};

static enum mr_status build(struct mr_pipeline_bench *bench, struct mr_error *error)
{
    static const char *const sources[] = {"bench/programs/workload.c",
                                          "bench/programs/recursion.c"};
    static const char *const objects[] = {"end.workload.o", "end.recursion.o"};
    struct mr_words words = {0};
    enum mr_status status = MR_OK;

    for (int i = 0; i < 2 && status == MR_OK; i++) {
        struct mr_words flags = {0}; /* the loop is not traced */
        const struct mr_build_object wanted = {
            .source = sources[i], .object = objects[i], .flags = &flags};

        mr_words_split(&flags, "-std=c17 -D_GNU_SOURCE -Isource");
        status = mr_build_flags(&bench->build, "millrace",
                                i == 0 ? "--cflags" : "--cflags-only-I", &flags, error);
        if (status == MR_OK)
            status = mr_build_object(&bench->build, &wanted, error);
        mr_words_add(&words, "%s", objects[i]);
        mr_words_fini(&flags);
    }
    if (status == MR_OK)
        status = mr_build_flags(&bench->build, "millrace", "--libs", &words, error);
    mr_words_split(&words, "-lm -ldl -pthread");
    if (status == MR_OK)
        status = mr_build_link(&bench->build, NULL, PROGRAM, &words, error);
    mr_words_fini(&words);
    return status;
}

/* What is started from here on runs on the second processor, until `back`. */
static void stay_on(uint32_t cpu, cpu_set_t *back)
{
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    (void)sched_getaffinity(0, sizeof(*back), back);
    (void)sched_setaffinity(0, sizeof(cpus), &cpus);
}

static enum mr_status start(struct end *end)
{
    char folder[PATH_MAX];
    cpu_set_t before;
    enum mr_status status;

    (void)snprintf(folder, sizeof(folder), "%.*s/end", PATH_MAX - 16,
                   end->bench->scratch);
    status = mr_folder_make(folder, &end->error);
    stay_on(1, &before);
    if (status == MR_OK)
        status = mr_receiver_start(&end->receiver, NULL, -1, &end->error);
    if (status == MR_OK)
        status = mr_server_start(
            &end->server, &(struct mr_server_config){.folder = folder}, &end->error);
    (void)sched_setaffinity(0, sizeof(before), &before);
    return status;
}

enum number { CALLS, WALL_NS, CPU_NS, LOST, ALL_CPU_NS, NUMBERS };

/* "calls N wall_ns N cpu_ns N lost N ..." */
static bool read_output(struct mr_command *command, double numbers[NUMBERS])
{
    static const char *const names[] = {"calls ", "wall_ns ", "cpu_ns ", "lost "};
    const char *text = mr_command_text(&command->output);

    for (size_t i = 0; i < MR_ARRAY_COUNT(names); i++) {
        const char *at = strstr(text, names[i]);
        char *end = NULL;

        if (!at)
            return false;
        at += strlen(names[i]);
        numbers[i] = strtod(at, &end);
        if (end == at)
            return false;
    }
    return true;
}

static enum mr_status run_program(struct end *end, enum way way, struct mr_words *env,
                                  double numbers[NUMBERS])
{
    struct mr_words argv = {0};
    char path[PATH_MAX];
    struct mr_command command = {.argv = &argv,
                                 .env = env,
                                 .directory = end->bench->scratch,
                                 .timeout_ns = RUN_NS};
    cpu_set_t before;
    enum mr_status status;

    mr_words_add(env, "MILLRACE_ENDPOINT=%s",
                 way == DISCARD ? end->receiver.endpoint : end->server.endpoint);
    mr_words_add(env, "MILLRACE_POLICY=block");
    mr_words_add(env, "MILLRACE_BLOCK_TIMEOUT=60s");
    mr_words_add(&argv, "%s", mr_build_path(&end->bench->build, PROGRAM, path));
    mr_words_add(&argv, "%d", PROGRAM_MS);
    mr_words_add(&argv, "0");
    stay_on(1, &before); /* the writer's, too: only the main thread leaves it */
    status = mr_command_run(&command, &end->error);
    (void)sched_setaffinity(0, sizeof(before), &before);
    if (status == MR_OK && !read_output(&command, numbers))
        status = mr_error_set(&end->error, MR_EIO, "%s printed something else", PROGRAM);
    numbers[ALL_CPU_NS] = (double)command.cpu_ns;
    mr_command_fini(&command);
    mr_words_fini(&argv);
    return status;
}

static enum mr_status measure(void *context, size_t index, uint32_t loop)
{
    struct end *end = context;
    enum way way = (enum way)index;
    pid_t taker = way == DISCARD ? end->receiver.pid : end->server.worker;
    uint64_t taker_ns = mr_bench_process_ns(taker);
    uint64_t master_ns = mr_bench_process_ns(end->server.master);
    struct mr_words env = {0};
    double numbers[NUMBERS], *values[METRICS];
    enum mr_status status =
        mr_interrupt_seen() ? MR_END : run_program(end, way, &env, numbers);

    mr_words_fini(&env);
    if (status != MR_OK)
        return MR_END;
    for (int i = 0; i < METRICS; i++)
        values[i] = &end->values[way][i][loop];
    *values[NS_PER_EVENT] = numbers[WALL_NS] / (2 * numbers[CALLS]);
    end->lost[way] += (uint64_t)numbers[LOST];
    *values[CPU_PROGRAM] = numbers[CPU_NS] / 1e9;
    *values[CPU_WRITER] = (numbers[ALL_CPU_NS] - numbers[CPU_NS]) / 1e9;
    *values[CPU_TAKER] = (double)(mr_bench_process_ns(taker) - taker_ns) / 1e9;
    *values[CPU_MASTER] =
        way == DISCARD
            ? 0
            : (double)(mr_bench_process_ns(end->server.master) - master_ns) / 1e9;
    return MR_OK;
}

static enum mr_status add_results(struct end *end, const struct mr_rounds *rounds)
{
    enum mr_status status = MR_OK;

    for (int way = 0; way < WAYS; way++)
        for (int i = 0; i < METRICS && status == MR_OK; i++) {
            char name[MR_RESULT_NAME_SIZE];
            bool is_compared = way == WORKER && i == NS_PER_EVENT;

            (void)snprintf(name, sizeof(name), "end/recursion-10/%s", way_names[way]);
            status = mr_pipeline_add(end->bench, name, metric_names[i],
                                     i == NS_PER_EVENT ? "ns" : "s", end->values[way][i],
                                     rounds->kept, is_compared ? "discard" : NULL,
                                     end->values[DISCARD][i]);
            if (status == MR_OK && i == NS_PER_EVENT) {
                struct mr_result *added =
                    &end->bench->results.items[end->bench->results.count - 1];

                added->has_lost = true;
                added->lost = end->lost[way];
            }
        }
    return status;
}

enum mr_status mr_pipeline_end(struct mr_pipeline_bench *bench, struct mr_error *error)
{
    struct end *end = calloc(1, sizeof(*end));
    struct mr_rounds rounds = {.loops = (uint32_t)bench->options.loops,
                               .steal_percent = (uint32_t)bench->options.steal_max,
                               .case_count = WAYS,
                               .measure = measure,
                               .context = end,
                               .progress = "end"};
    enum mr_status status;

    if (!end)
        return MR_ENOMEM;
    end->bench = bench;
    if (mr_machine_cpus() < 2)
        status = mr_error_set(&end->error, MR_ENOTFOUND, "it wants two processors");
    else if (!bench->has_build)
        status = mr_error_set(&end->error, MR_ENOTFOUND, "nothing can be compiled here");
    else
        status = build(bench, &end->error);
    if (status == MR_OK)
        status = start(end);
    if (status == MR_OK) {
        mr_rounds_run(&rounds);
        bench->discarded += rounds.discarded;
        bench->is_partial |= rounds.is_partial;
        status = end->error.status;
    }
    if (status == MR_OK && rounds.kept > 0)
        status = add_results(end, &rounds);
    mr_server_stop(&end->server);
    mr_receiver_stop(&end->receiver);
    *error = end->error;
    free(end);
    return status;
}
