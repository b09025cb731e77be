/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report.h"

#include "base/options.h"
#include "cli/render.h"
#include "master/store.h"

#include <stdlib.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define TEXT_BYTES_MAX ((size_t)1 << 30)

struct report_options {
#define MR_OPTION MR_OPTION_FIELD
#include "cli/report_options.def"
#undef MR_OPTION
};

static const struct mr_option_spec specs[] = {
#define MR_OPTION(...) MR_OPTION_SPEC(struct report_options, __VA_ARGS__)
#include "cli/report_options.def"
#undef MR_OPTION
};

static const struct mr_option_table table = {
    .command = "millrace report",
    .summary = "prints what a recording holds: functions, entry points, loss, ledger",
    .positionals = "[DIR]",
    .specs = specs,
    .spec_count = MR_ARRAY_COUNT(specs)};

static enum mr_status render(struct mr_summary *summary, const char *directory,
                             const struct mr_view *view, bool json, struct mr_buffer *out)
{
    struct mr_run run;
    bool has_run = mr_run_load(&run, directory) == MR_OK;
    enum mr_status status;

    if (json)
        status = mr_summary_json(summary, has_run ? &run : NULL, view, out);
    else
        status = mr_summary_text(summary, has_run ? &run : NULL, view, out);
    if (has_run)
        mr_run_fini(&run);
    return status;
}

/* A body that takes no longer than about an enter and an exit cost. */
#define CHEAP_NS 20

/* The whole of the store, since any order may be asked for. */
static enum mr_status summarise(struct mr_model *model, struct mr_summary **summary)
{
    const struct mr_summary_limits all = {
        .functions = SIZE_MAX,
        .entries = SIZE_MAX,
        .sources = MR_SUMMARY_LIMITS_DEFAULT.sources,
        .traces = SIZE_MAX,
        .cheap_ns = CHEAP_NS,
        .has_shares = true,
        .open = SIZE_MAX,
    };
    enum mr_status status;

    mr_model_thread_enter();
    status = mr_summary_new(model, &all, summary);
    mr_model_thread_leave();
    return status;
}

/* What a master had room for, whatever its options were, is in its store and is told. */
static struct mr_model_limits limits_of_any_master(void)
{
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;

    limits.sites = limits.scopes = limits.sources = limits.streams = UINT32_MAX;
    limits.paths = limits.path_counters = limits.notes = UINT32_MAX;
    limits.shapes = limits.nodes = limits.shape_paths = UINT32_MAX;
    limits.joined = limits.joined_edges = UINT32_MAX;
    return limits;
}

static enum mr_status load(const char *directory, struct mr_summary **summary,
                           struct mr_error *error)
{
    const struct mr_model_limits limits = limits_of_any_master();
    struct mr_model *model;
    enum mr_status status = mr_model_new(&limits, &model);

    if (status != MR_OK)
        return mr_error_set(error, status, "%s", mr_status_text(status));
    status = mr_store_load(directory, model, error);
    if (status == MR_OK)
        status = summarise(model, summary);
    mr_model_free(model);
    return status;
}

enum mr_status mr_report_print(const char *directory, const struct mr_view *view,
                               bool json, FILE *out, struct mr_error *error)
{
    struct mr_summary *summary = NULL;
    struct mr_buffer text;
    enum mr_status status = load(directory, &summary, error);

    if (status != MR_OK)
        return mr_error_set(error, status, "%s: %s", directory, mr_status_text(status));
    mr_buffer_init(&text, TEXT_BYTES_MAX);
    status = render(summary, directory, view, json, &text);
    if (status == MR_OK &&
        (fwrite(text.data, 1, text.size, out) != text.size || fflush(out) != 0))
        status = MR_EIO;
    if (status != MR_OK)
        mr_error_set(error, status, "cannot print: %s", mr_status_text(status));
    mr_buffer_fini(&text);
    mr_summary_free(summary);
    return status;
}

int mr_report_command(int argc, char **argv)
{
    struct mr_error error = MR_ERROR_NONE;
    struct report_options options;
    struct mr_view view;
    int first = 0;
    int exit_status = mr_options_start(&table, &options, argc, argv, &first);

    if (exit_status >= 0)
        return exit_status;
    if (argc - first > 1) {
        (void)fprintf(stderr, "%s: one directory at a time\n", table.command);
        return EXIT_USAGE;
    }
    if (first < argc && !*argv[first]) {
        (void)fprintf(stderr, "%s: the directory has no name\n", table.command);
        return EXIT_USAGE;
    }
    view = (struct mr_view){.functions = (size_t)options.functions,
                            .entries = (size_t)options.entries,
                            .sort = (enum mr_view_sort)options.sort,
                            .width = mr_terminal_width(STDOUT_FILENO)};
    if (mr_report_print(first < argc ? argv[first] : MR_DATA_DIRECTORY, &view,
                        options.json, stdout, &error) == MR_OK)
        return EXIT_SUCCESS;
    (void)fprintf(stderr, "%s: %s\n", table.command, error.text);
    return EXIT_FAILURE;
}
