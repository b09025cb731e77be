/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/record.h"

#include "base/clock.h"
#include "base/options.h"
#include "base/text.h"
#include "cli/chain.h"
#include "cli/dump.h"
#include "cli/program.h"
#include "cli/render.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "cli/target.h"
#include "net/endpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

struct record_options {
#define MR_OPTION MR_OPTION_FIELD
#include "cli/record_options.def"
#undef MR_OPTION
};

static const struct mr_option_spec specs[] = {
#define MR_OPTION(...) MR_OPTION_SPEC(struct record_options, __VA_ARGS__)
#include "cli/record_options.def"
#undef MR_OPTION
};

static const struct mr_option_table table = {
    .command = "millrace record",
    .summary = "runs a program, traces every call of it, and tells where its time went",
    .positionals = "PROGRAM [ARGUMENT...]",
    .specs = specs,
    .spec_count = MR_ARRAY_COUNT(specs),
    .stop_at_positional = true};

static const char *const policies[] = {"block", "drop", "overwrite"};
#define POLICY_OVERWRITE 2
static const char *const clocks[] = {"tsc", "hybrid", "monotonic"};
static const char *const shapes[] = {"folded", "exact", "set"};

static int say(int exit_status, const char *text)
{
    (void)fprintf(stderr, "%s: %s\n", table.command, text);
    return exit_status;
}

static int explain_probe(const char *path, const struct mr_program *program)
{
    char plain[PATH_MAX];
    const char *name = mr_text_plain_copy(path, plain, sizeof(plain));

    if (program->probe == MR_PROBE_HOOKS)
        (void)fprintf(
            stderr,
            "%s: %s has the hooks of -finstrument-functions, but is static: link "
            "it with $(pkg-config --libs millrace)\n",
            table.command, name);
    else
        (void)fprintf(stderr,
                      "%s: %s has no probe in it. Build it so:\n"
                      "    cc $(pkg-config --cflags millrace) -O2 -c program.c\n"
                      "    cc program.o $(pkg-config --libs millrace) -o program\n"
                      "that is, with -finstrument-functions and -lmillrace. Where only a "
                      "library of it has the probe, --unchecked runs it.\n",
                      table.command, name);
    return EXIT_USAGE;
}

/* Fills what is known of the program before it runs. -1 to go on, else the exit status. */
static int examine(const char *name, bool unchecked, struct mr_target *target)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_program program;
    enum mr_status status = mr_program_find(name, target->path, &error);

    if (status == MR_OK)
        status = mr_program_inspect(target->path, &program, &error);
    if (status == MR_ENOTFOUND)
        return say(EXIT_NOT_FOUND, error.text);
    if (status != MR_OK)
        return say(EXIT_NOT_EXECUTABLE, error.text);
    if (!unchecked && (program.probe == MR_PROBE_NONE ||
                       (program.probe == MR_PROBE_HOOKS && program.is_static)))
        return explain_probe(name, &program);
    target->preload = program.probe == MR_PROBE_HOOKS;
    return -1;
}

/* Both runs read the same stdin, where it can be read twice. */
static enum mr_status run_plain(const struct mr_target *target, struct mr_run *run,
                                struct mr_error *error)
{
    struct mr_target plain = *target;
    off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
    enum mr_status status;

    plain.endpoint = NULL;
    status = mr_target_run(&plain, error);
    if (status == MR_OK && mr_signals_taken())
        status = mr_error_set(error, MR_END, "interrupted while it ran untraced");
    run->plain_ns = plain.wall_ns;
    if (at >= 0)
        (void)lseek(STDIN_FILENO, at, SEEK_SET);
    return status;
}

/* Runs it traced, and before that untraced where that was asked for. */
static enum mr_status run(const struct record_options *options, const char *endpoint,
                          struct mr_target *target, struct mr_run *run,
                          struct mr_error *error)
{
    enum mr_status status = MR_OK;

    target->endpoint = endpoint;
    target->policy = policies[options->policy];
    target->clock = clocks[options->clock];
    target->counters = options->counters;
    target->depth = options->depth;
    target->block_timeout_ns = options->block_timeout_ns;
    target->prune_ns = options->prune_ns;
    if (options->compare)
        status = run_plain(target, run, error);
    if (status == MR_OK)
        status = mr_target_run(target, error);
    if (status == MR_OK)
        mr_signals_forget(); /* the program has had them */
    target->endpoint = NULL; /* the caller's, who may go first */
    run->started_ns = target->started_ns;
    run->wall_ns = target->wall_ns;
    run->exit_status = target->exit_status;
    return status;
}

static int did_not_run(const struct mr_error *error)
{
    const int number = mr_signals_taken();

    return say(number ? 128 + number : EXIT_NOT_EXECUTABLE, error->text);
}

static int record_to_endpoint(const struct record_options *options,
                              struct mr_target *target)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_run result = {0};
    char wall[MR_RENDER_SIZE], plain[MR_RENDER_SIZE], endpoint[1024];

    if (run(options, options->endpoint, target, &result, &error) != MR_OK)
        return did_not_run(&error);
    (void)fprintf(stderr, "%s: ran for %s, events ", table.command,
                  mr_render_ns(result.wall_ns, wall));
    if (strcmp(options->endpoint, MR_ENDPOINT_DISCARD) == 0)
        (void)fputs("discarded", stderr);
    else
        (void)fprintf(stderr, "for %s (its probe tells what could not be sent)",
                      mr_text_plain_copy(options->endpoint, endpoint, sizeof(endpoint)));
    if (result.plain_ns)
        (void)fprintf(stderr, "; untraced %s, %.2f times slower",
                      mr_render_ns(result.plain_ns, plain),
                      (double)result.wall_ns / (double)result.plain_ns);
    (void)fputc('\n', stderr);
    return result.exit_status;
}

/* Prints what was found; the program's exit status stands unless nothing could be told. */
static int tell(const struct record_options *options, const struct mr_run *run,
                bool is_complete)
{
    const struct mr_view view = {.functions = (size_t)options->functions,
                                 .entries = (size_t)options->entries,
                                 .sort = (enum mr_view_sort)options->sort,
                                 .width = mr_terminal_width(STDERR_FILENO)};
    struct mr_error error = MR_ERROR_NONE;

    if (mr_run_save(run, options->output, &error) != MR_OK)
        (void)say(0, error.text);
    mr_error_clear(&error);
    if (mr_report_print(options->output, &view, false, stderr, &error) != MR_OK)
        return say(EXIT_FAILURE, error.text);
    if (!is_complete)
        (void)say(0, "not all of it reached the store; what is above is what did");
    return run->exit_status;
}

static int record_privately(const struct record_options *options,
                            struct mr_target *target)
{
    const struct mr_chain_options wanted = {.store = options->output,
                                            .outer = options->outer,
                                            .root = options->root,
                                            .shapes = shapes[options->shapes],
                                            .drain_timeout_ns =
                                                options->drain_timeout_ns};
    struct mr_error error = MR_ERROR_NONE;
    struct mr_run result = {0};
    struct mr_chain chain;
    enum mr_status status = mr_recording_clear(options->output, &error);
    bool is_complete;
    int exit_status;

    if (status != MR_OK)
        return say(EXIT_USAGE, error.text);
    result.command = mr_run_command_line(target->argv);
    if (!result.command || mr_chain_start(&wanted, &chain, &error) != MR_OK) {
        mr_run_fini(&result);
        mr_recording_remove(options->output);
        return mr_signals_taken() ? did_not_run(&error) : say(EXIT_FAILURE, error.text);
    }
    status = run(options, chain.endpoint, target, &result, &error);
    is_complete = mr_chain_stop(&chain);
    if (status == MR_OK) {
        exit_status = tell(options, &result, is_complete);
    } else {
        mr_recording_remove(options->output);
        exit_status = did_not_run(&error);
    }
    mr_run_fini(&result);
    return exit_status;
}

/* What the flight recorder of a process holds becomes a recording in `store`. */
static int dump(const struct record_options *options, const char *process,
                bool is_recovery, const char *store)
{
    const struct mr_view view = {.functions = (size_t)options->functions,
                                 .entries = (size_t)options->entries,
                                 .sort = (enum mr_view_sort)options->sort,
                                 .width = mr_terminal_width(STDOUT_FILENO)};
    const struct mr_dump wanted = {
        .command = table.command,
        .process = process,
        .is_recovery = is_recovery,
        .places = options->recorder_dir,
        .endpoint = options->endpoint,
        .chain = {.store = store,
                  .outer = options->outer,
                  .root = options->root,
                  .shapes = shapes[options->shapes],
                  .drain_timeout_ns = options->drain_timeout_ns,
                  .is_of_any_time = true},
        .view = &view};

    return mr_dump_command(&wanted);
}

/* `rest`: what follows the options; at most where to leave the recording. */
static int dump_or_recover(const struct record_options *options, char **rest, int count)
{
    const bool is_recovery = *options->recover != '\0';

    if (*options->dump && *options->recover)
        return say(EXIT_USAGE, "either --dump or --recover");
    if (count > 1)
        return say(EXIT_USAGE, "--dump and --recover run no program: one directory may "
                               "follow");
    return dump(options, is_recovery ? options->recover : options->dump, is_recovery,
                count > 0 ? rest[0] : options->output);
}

/* Policy overwrite: nothing is sent; what a program that dies has left is recovered. */
static int record_flight(const struct record_options *options, struct mr_target *target)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_run result = {0};
    char pid[32];

    if (*options->recorder_dir)
        (void)setenv("MILLRACE_RECORDER_DIR", options->recorder_dir, 1);
    if (run(options, "", target, &result, &error) != MR_OK)
        return did_not_run(&error);
    (void)snprintf(pid, sizeof(pid), "%ld", (long)target->pid);
    if (target->was_killed)
        (void)dump(options, pid, true, options->output);
    else
        (void)say(0, "the program came to its end: its flight recorder is not kept");
    return result.exit_status;
}

static enum mr_status check_globs(const char *option, const char *globs,
                                  struct mr_error *error)
{
    if (strlen(globs) <= MR_CHAIN_GLOBS_MAX)
        return MR_OK;
    return mr_error_set(error, MR_EUSAGE, "%s: longer than %d bytes", option,
                        MR_CHAIN_GLOBS_MAX);
}

/* What a probe, which runs the program whatever it is told, would say of it comes too late. */
static enum mr_status check_endpoint(const char *text, struct mr_error *error)
{
    struct mr_error why = MR_ERROR_NONE;
    struct mr_endpoints endpoints;

    if (!*text || strcmp(text, MR_ENDPOINT_DISCARD) == 0 ||
        mr_endpoints_parse(text, &endpoints, &why) == MR_OK)
        return MR_OK;
    return mr_error_set(error, MR_EUSAGE, "--endpoint: %s", why.text);
}

/* Before an earlier recording gives way. */
static enum mr_status check(const struct record_options *options, struct mr_error *error)
{
    enum mr_status status = check_globs("--outer", options->outer, error);

    if (status == MR_OK)
        status = check_globs("--root", options->root, error);
    return status == MR_OK ? check_endpoint(options->endpoint, error) : status;
}

int mr_record_command(int argc, char **argv)
{
    struct mr_error error = MR_ERROR_NONE;
    struct record_options options;
    struct mr_target target = {0};
    int first = 0;
    int exit_status = mr_options_start(&table, &options, argc, argv, &first);

    if (exit_status >= 0)
        return exit_status;
    if (check(&options, &error) != MR_OK)
        return say(EXIT_USAGE, error.text);
    mr_signals_take();
    if (*options.dump || *options.recover)
        return dump_or_recover(&options, argv + first, argc - first);
    if (first >= argc || !*argv[first])
        return say(EXIT_USAGE, "name a program to run (see 'millrace record --help')");
    exit_status = examine(argv[first], options.unchecked, &target);
    if (exit_status >= 0)
        return exit_status;
    target.argv = argv + first;
    if (options.policy == POLICY_OVERWRITE)
        return record_flight(&options, &target);
    return *options.endpoint ? record_to_endpoint(&options, &target)
                             : record_privately(&options, &target);
}
