/* SPDX-License-Identifier: Apache-2.0 */
#include "scale/scale.h"

#include "base/clock.h"
#include "base/log.h"
#include "scale/fetch.h"
#include "scale/options.h"
#include "scale/rules.h"
#include "scale/template.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_NS (2 * MR_SECOND_NS)
/* Looks in a row with a hot master before a level is added. */
#define MASTER_ROUNDS 2

static const char *const state_words[] = {"absent", "starting", "up",    "draining",
                                          "empty",  "ending",   "failed"};

/* The master's counters at the last look, and what they say. */
struct master {
    double cpu_s, busy_s, utilisation;
    uint64_t looked_ns; /* 0: never */
    uint32_t rounds_hot;
    uint64_t quiet_until_ns;
};

struct scale {
    struct mr_scale_options options;
    struct mr_scale_group group;
    struct mr_fetch
        fetches[MR_SCALE_WORKERS_MAX + 1]; /* the master's behind the workers' */
    struct master master;
    uint32_t levels; /* that there are */
    bool has_failed; /* a command, ever */
};

/* What a worker says of itself; false: it says nothing of the kind. */
static bool read_answer(const char *text, struct mr_scale_answer *answer)
{
    static const struct {
        const char *labels;
        enum mr_scale_state state;
    } states[] = {{"{state=\"up\"}", MR_SCALE_UP},
                  {"{state=\"drain\"}", MR_SCALE_DRAINING},
                  {"{state=\"maint\"}", MR_SCALE_EMPTY},
                  {"{state=\"down\"}", MR_SCALE_ENDING}};
    double senders = 0, is_in = 0;

    for (size_t i = 0; i < MR_ARRAY_COUNT(states); i++) {
        if (!mr_fetch_value(text, "millrace_state", states[i].labels, &is_in) ||
            is_in < 1)
            continue;
        answer->state = states[i].state;
        if (!mr_fetch_value(text, "millrace_senders", "", &senders) ||
            !mr_fetch_value(text, "millrace_utilisation", "", &answer->utilisation))
            return false;
        answer->senders = (uint32_t)senders;
        return true;
    }
    return false;
}

static void log_change(const struct scale *scale, uint32_t number,
                       enum mr_scale_state before)
{
    const struct mr_scale_worker *worker = &scale->group.workers[number - 1];
    const struct mr_fetch *fetch = &scale->fetches[number - 1];

    if (worker->state == before)
        return;
    if (worker->state == MR_SCALE_FAILED)
        mr_log_error("worker %" PRIu32
                     " was started and does not answer (%s); its number "
                     "is left alone for --start-timeout",
                     number, fetch->error.text);
    else if (worker->state == MR_SCALE_ABSENT && before == MR_SCALE_UP)
        mr_log_error("worker %" PRIu32 " is gone: %s", number, fetch->error.text);
    else
        mr_log_info("worker %" PRIu32 ": %s", number, state_words[worker->state]);
}

static void hear(struct scale *scale, uint32_t number, uint64_t now_ns)
{
    struct mr_fetch *fetch = &scale->fetches[number - 1];
    struct mr_scale_worker *worker = &scale->group.workers[number - 1];
    enum mr_scale_state before = worker->state;
    struct mr_scale_answer answer;
    bool is_there = fetch->is_there && read_answer(fetch->text, &answer);

    if (fetch->is_there && !is_there)
        (void)mr_error_set(&fetch->error, MR_EFORMAT,
                           "%s: these are not a worker's metrics", fetch->address);
    mr_scale_hear(&scale->group, number, is_there ? &answer : NULL, now_ns);
    if (!is_there && worker->state == MR_SCALE_UP)
        mr_log_warn("worker %" PRIu32 " did not answer: %s", number, fetch->error.text);
    log_change(scale, number, before);
}

/* The busiest of its filters or the whole process, since the last look. */
static void hear_master(struct scale *scale, uint64_t now_ns)
{
    const struct mr_fetch *fetch = &scale->fetches[scale->options.max];
    struct master *master = &scale->master;
    double cpu_s, busy_s, cpus = 1, since_s = (double)(now_ns - master->looked_ns) / 1e9;
    bool is_first = master->looked_ns == 0;

    if (!fetch->is_there ||
        !mr_fetch_value(fetch->text, "millrace_process_cpu_seconds_total", "", &cpu_s) ||
        !mr_fetch_largest(fetch->text, "millrace_filter_busy_seconds_total", &busy_s)) {
        mr_log_warn("the master: %s", fetch->is_there ? "these are not a master's metrics"
                                                      : fetch->error.text);
        return;
    }
    (void)mr_fetch_value(fetch->text, "millrace_processors", "", &cpus);
    if (!is_first && since_s > 0) {
        double process = (cpu_s - master->cpu_s) / since_s / cpus;
        double filter = (busy_s - master->busy_s) / since_s;

        master->utilisation = process > filter ? process : filter;
    }
    master->cpu_s = cpu_s;
    master->busy_s = busy_s;
    master->looked_ns = now_ns;
    master->rounds_hot = master->utilisation * 100 > (double)scale->options.high
                             ? master->rounds_hot + 1
                             : 0;
}

static void look(struct scale *scale)
{
    const struct mr_scale_options *options = &scale->options;
    uint32_t count = (uint32_t)options->max + (*options->master ? 1 : 0);
    uint64_t now_ns;
    uint32_t up;
    double mean;

    mr_fetch_all(scale->fetches, count, "/metrics", ANSWER_NS);
    now_ns = mr_clock_monotonic_ns();
    for (uint32_t number = 1; number <= options->max; number++)
        hear(scale, number, now_ns);
    if (*options->master)
        hear_master(scale, now_ns);
    mr_fetch_free(scale->fetches, count);
    mean = mr_scale_mean(&scale->group, &up);
    mr_log_debug("%" PRIu32 " up, %.0f %% of them in use", up, 100 * mean);
}

/* Runs a command, or says that it would; whether it worked. */
static bool run(struct scale *scale, const char *template,
                const struct mr_template_values *values, const char *what)
{
    struct mr_error error = MR_ERROR_NONE;
    char command[MR_TEMPLATE_MAX] = "";

    (void)mr_template_fill(template, values, command, sizeof(command));
    mr_log_info("%s%s: %s", scale->options.dry_run ? "would " : "", what, command);
    if (scale->options.dry_run)
        return true;
    if (mr_template_run(template, values, scale->options.command_timeout_ns, &error) ==
        MR_OK)
        return true;
    mr_log_error("%s: %s", what, error.text);
    scale->has_failed = true;
    return false;
}

static void act(struct scale *scale, const struct mr_scale_action *action)
{
    const struct mr_scale_options *options = &scale->options;
    const char *const templates[] = {NULL, options->start, options->drain, options->stop};
    const struct mr_template_values values = {action->number, action->count,
                                              (uint32_t)options->level};
    char what[MR_SCALE_REASON_MAX + 64];
    bool has_worked;

    (void)snprintf(what, sizeof(what), "%s %" PRIu32 " (%s)",
                   mr_scale_verb_word(action->verb), action->number, action->reason);
    has_worked = run(scale, templates[action->verb], &values, what);
    mr_scale_done(&scale->group, action, has_worked, mr_clock_monotonic_ns());
}

/* Everything that is to be done now: at most one action for each worker. */
static void decide(struct scale *scale)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(MR_MINUTE_NS);

    for (uint32_t i = 0; i < scale->options.max; i++) {
        struct mr_scale_action action =
            mr_scale_decide(&scale->group, mr_clock_monotonic_ns());

        if (action.verb == MR_SCALE_NOTHING) {
            if (*action.reason)
                (void)mr_log_limited(&limit, MR_LOG_WARN, "nothing is done: %s",
                                     action.reason);
            return;
        }
        act(scale, &action);
    }
}

static void decide_level(struct scale *scale)
{
    const struct mr_scale_options *options = &scale->options;
    const struct mr_template_values values = {0, 0, scale->levels + 1};
    uint64_t now_ns = mr_clock_monotonic_ns();
    char what[160];

    if (!*options->add_level || scale->master.rounds_hot < MASTER_ROUNDS ||
        scale->levels >= options->max_levels || now_ns < scale->master.quiet_until_ns)
        return;
    (void)snprintf(what, sizeof(what),
                   "add level %" PRIu32 " (%.0f %% of the master in use, above %" PRIu64
                   " %%)",
                   scale->levels + 1, 100 * scale->master.utilisation, options->high);
    scale->master.quiet_until_ns = now_ns + options->cool_down_ns;
    if (run(scale, options->add_level, &values, what))
        scale->levels++;
}

static void configure(struct scale *scale)
{
    const struct mr_scale_options *options = &scale->options;

    scale->group.limits =
        (struct mr_scale_limits){.high = (double)options->high / 100,
                                 .low = (double)options->low / 100,
                                 .min = (uint32_t)options->min,
                                 .max = (uint32_t)options->max,
                                 .takes_last = options->victim == 1,
                                 .cool_down_ns = options->cool_down_ns,
                                 .start_timeout_ns = options->start_timeout_ns,
                                 .drain_timeout_ns = options->drain_timeout_ns};
    scale->levels = (uint32_t)options->level;
    for (uint32_t i = 0; i < options->max; i++) {
        const struct mr_template_values values = {i + 1, 0, (uint32_t)options->level};

        (void)mr_template_fill(options->metrics, &values, scale->fetches[i].address,
                               MR_FETCH_ADDRESS_MAX);
    }
    (void)snprintf(scale->fetches[options->max].address, MR_FETCH_ADDRESS_MAX, "%s",
                   options->master);
}

/* Until SIGTERM or SIGINT, which end what is under way first. */
static void serve(struct scale *scale)
{
    const struct mr_scale_options *options = &scale->options;
    const struct timespec interval = {
        .tv_sec = (time_t)(options->interval_ns / MR_SECOND_NS),
        .tv_nsec = (long)(options->interval_ns % MR_SECOND_NS)};
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    for (uint64_t round = 1;; round++) {
        look(scale);
        decide(scale);
        decide_level(scale);
        if (round == options->rounds || sigtimedwait(&set, NULL, &interval) > 0)
            return;
    }
}

int mr_scale_command(int argc, char **argv)
{
    struct scale *scale = calloc(1, sizeof(*scale));
    int exit_status;

    if (!scale)
        return EXIT_FAILURE;
    exit_status = mr_scale_options_read(argc, argv, &scale->options);
    if (exit_status < 0) {
        configure(scale);
        mr_log_init("scale", (enum mr_log_level)scale->options.log_level);
        serve(scale);
        exit_status = scale->has_failed ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    free(scale);
    return exit_status;
}
