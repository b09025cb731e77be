/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/chain.h"

#include "base/assert.h"
#include "base/clock.h"
#include "bench/server.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define RUN_NS (300 * MR_SECOND_NS)
#define PROCESSES_MAX (MR_CHAIN_WORKERS_MAX + MR_CHAIN_LEVELS_MAX)

struct chain {
    const struct mr_chain_case *which;
    const struct mr_chain_load *load;
    struct mr_error *error;
    pid_t pids[PROCESSES_MAX]; /* the master, then workers from above to below */
    uint32_t levels[PROCESSES_MAX];
    uint32_t count;
    char endpoints[PROCESSES_MAX][128];
};

static enum mr_status start_one(struct chain *chain, uint32_t level, const char *forward)
{
    uint32_t at = chain->count;
    struct mr_words argv = {0};
    char name[32];
    enum mr_status status;

    MR_ASSERT(at < PROCESSES_MAX);
    if (forward) {
        mr_words_split(&argv, "millrace worker --listen tcp://127.0.0.1:0 --lanes 1");
        mr_words_add(&argv, "--forward=%s", forward);
        mr_words_add(&argv, "--level=%" PRIu32, level);
        (void)snprintf(name, sizeof(name), "worker-%" PRIu32 "-%" PRIu32, level, at);
    } else {
        mr_words_split(&argv, "millrace master --listen tcp://127.0.0.1:0 --http "
                              "127.0.0.1:0");
        mr_words_add(&argv, "--store=%s/store", chain->load->folder);
        (void)snprintf(name, sizeof(name), "master");
    }
    status =
        mr_server_run(chain->load->folder, name, &argv, &chain->pids[at],
                      chain->endpoints[at], sizeof(chain->endpoints[at]), chain->error);
    mr_words_fini(&argv);
    if (chain->pids[at] > 0) {
        chain->levels[at] = level;
        chain->count++;
    }
    return status;
}

/* The master, then from the highest level down. */
static enum mr_status start_all(struct chain *chain)
{
    enum mr_status status = start_one(chain, chain->which->levels + 1, NULL);

    for (uint32_t level = chain->which->levels; level > 1 && status == MR_OK; level--)
        status = start_one(chain, level, chain->endpoints[chain->count - 1]);
    for (uint32_t i = 0, above = chain->count - 1;
         i < chain->which->workers && status == MR_OK; i++)
        status = start_one(chain, 1, chain->endpoints[above]);
    return status;
}

/* From below, so that everything goes up. */
static void stop_all(struct chain *chain, struct mr_chain_result *result)
{
    while (chain->count > 0) {
        uint32_t at = --chain->count;
        struct mr_usage usage = {0};

        mr_server_end(&chain->pids[at], &usage);
        result->level_s[chain->levels[at] - 1] += (double)usage.cpu_ns / 1e9;
    }
}

/* A line of shell: all programs side by side, each to its worker; it fails if one does. */
static void put_script(const struct chain *chain, struct mr_words *argv)
{
    uint32_t first = chain->count - chain->which->workers;
    char script[16384];
    size_t size = 0;

    for (uint32_t i = 0; i < chain->load->programs; i++)
        size +=
            (size_t)snprintf(script + size, sizeof(script) - size,
                             "MILLRACE_ENDPOINT=%s '%s' 2 %" PRIu64 " & p=\"$p $!\"; ",
                             chain->endpoints[first + i % chain->which->workers],
                             chain->load->program, chain->load->requests);
    (void)snprintf(script + size, sizeof(script) - size,
                   "for i in $p; do wait $i || exit 1; done");
    mr_words_add(argv, "/bin/sh");
    mr_words_add(argv, "-c");
    mr_words_add(argv, "%s", script);
}

static enum mr_status run_programs(struct chain *chain, struct mr_chain_result *result)
{
    struct mr_words argv = {0}, env = {0};
    struct mr_command command = {.argv = &argv,
                                 .env = &env,
                                 .directory = chain->load->folder,
                                 .timeout_ns = RUN_NS};
    enum mr_status status;

    put_script(chain, &argv);
    mr_words_split(&env, "MILLRACE_POLICY=block MILLRACE_BLOCK_TIMEOUT=60s "
                         "MILLRACE_EXIT_TIMEOUT=60s");
    status = mr_command_run(&command, chain->error);
    result->wall_s = (double)command.wall_ns / 1e9;
    mr_command_fini(&command);
    mr_words_fini(&argv);
    mr_words_fini(&env);
    return status;
}

static enum mr_status read_ledger(json_t *report, struct mr_chain_result *result,
                                  struct mr_error *error)
{
    json_t *ledger = json_object_get(report, "ledger");

    result->events = (uint64_t)json_integer_value(json_object_get(ledger, "last"));
    result->lost = (uint64_t)json_integer_value(json_object_get(ledger, "lost"));
    if (result->events > 0 && json_is_true(json_object_get(ledger, "balanced")))
        return MR_OK;
    return mr_error_set(error, MR_EIO, "the master's ledger does not balance");
}

static enum mr_status ask_report(struct chain *chain, struct mr_chain_result *result)
{
    struct mr_words argv = {0};
    struct mr_command command = {.argv = &argv, .timeout_ns = RUN_NS};
    enum mr_status status;
    json_t *report;

    mr_words_split(&argv, "/proc/self/exe report --json");
    mr_words_add(&argv, "%s/store", chain->load->folder);
    status = mr_command_run(&command, chain->error);
    if (status == MR_OK) {
        report = json_loads(mr_command_text(&command.output), 0, NULL);
        status = read_ledger(report, result, chain->error);
        json_decref(report);
    }
    mr_command_fini(&command);
    mr_words_fini(&argv);
    return status;
}

enum mr_status mr_chain_run(const struct mr_chain_case *which,
                            const struct mr_chain_load *load,
                            struct mr_chain_result *result, struct mr_error *error)
{
    struct chain chain = {.which = which, .load = load, .error = error};
    enum mr_status status;

    MR_ASSERT(which->workers >= 1 && which->workers <= MR_CHAIN_WORKERS_MAX);
    MR_ASSERT(which->levels >= 1 && which->levels <= MR_CHAIN_LEVELS_MAX);
    *result = (struct mr_chain_result){.events = 0};
    mr_folder_remove(load->folder);
    status = mr_folder_make(load->folder, error);
    if (status == MR_OK)
        status = start_all(&chain);
    if (status == MR_OK)
        status = run_programs(&chain, result);
    stop_all(&chain, result);
    return status == MR_OK ? ask_report(&chain, result) : status;
}
