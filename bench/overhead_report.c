/* SPDX-License-Identifier: Apache-2.0 */
/* Results -> MooBench's results.yaml, charts, environment.json. */
#include "bench/overhead.h"

#include "bench/chart.h"
#include "bench/machine.h"
#include "bench/plot.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* MooBench's list: mean, deviation, half of the mean's 95 % interval, quartiles, max, min; in us. */
static enum mr_status put_yaml_case(const struct mr_overhead_case *which, double scale,
                                    struct mr_buffer *out)
{
    const struct mr_spread *spread = which->spread;
    double deviation = mr_spread_deviation(spread) * scale;

    if (spread->count == 0)
        return MR_OK;
    return mr_buffer_append_format(
        out, "      \"%s\": [%.6f, %.6f, %.9f, %.6f, %.6f, %.6f, %.6f, %.6f]\n",
        which->name, mr_spread_mean(spread) * scale, deviation,
        1.96 * deviation / sqrt((double)spread->count),
        mr_spread_quantile(spread, 0.25) * scale, mr_spread_quantile(spread, 0.5) * scale,
        mr_spread_quantile(spread, 0.75) * scale, spread->largest * scale,
        spread->least * scale);
}

static enum mr_status put_yaml(void *context, struct mr_buffer *out)
{
    const struct mr_overhead_bench *bench = context;
    enum mr_status status = mr_buffer_append_text(
        out, "# [mean, deviation, 95 % interval +-, 25 %, 50 %, 75 %, max, min], us\n"
             "kind: millrace\nexperiments:\n");

    for (int per_call = 0; per_call < 2 && status == MR_OK; per_call++) {
        status = mr_buffer_append_format(
            out, "  - timestamp: %lld\n    per: %s\n    partial: %s\n    measurements:\n",
            (long long)time(NULL), per_call ? "call" : "root-call",
            bench->rounds.is_partial ? "true" : "false");
        for (size_t i = 0; i < bench->case_count && status == MR_OK; i++)
            status = put_yaml_case(
                &bench->cases[i],
                1e-3 / (per_call ? (double)bench->cases[i].point.depth : 1), out);
    }
    return status;
}

static enum mr_status put_member(struct mr_buffer *out, const char *name,
                                 const char *value)
{
    enum mr_status status = mr_buffer_append_format(out, ", \"%s\": ", name);

    return status == MR_OK ? mr_bench_json_text(out, *value ? value : NULL) : status;
}

/* The commit of the tree that the command lies in, if it lies in one. */
static void read_commit(char *out, size_t size)
{
    char exe[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    struct mr_words words = {0};
    struct mr_command command = {.argv = &words, .timeout_ns = MR_VARIANT_TOOL_NS};

    exe[length > 0 ? length : 0] = '\0';
    if (strrchr(exe, '/'))
        *strrchr(exe, '/') = '\0';
    mr_words_split(&words, "git -C");
    mr_words_add(&words, "%s", exe);
    mr_words_split(&words, "describe --always --dirty --abbrev=40");
    out[0] = '\0';
    if (mr_command_run(&command, NULL) == MR_OK) {
        const char *text = mr_command_text(&command.output);

        (void)snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
    }
    mr_command_fini(&command);
    mr_words_fini(&words);
}

static enum mr_status put_flags(const struct mr_overhead_bench *bench,
                                struct mr_buffer *out)
{
    char version[128], commit[64];
    enum mr_status status;

    mr_build_version(&bench->build, NULL, version, sizeof(version));
    read_commit(commit, sizeof(commit));
    status = put_member(out, "compiler", version);
    if (status == MR_OK)
        status = put_member(out, "commit", commit);
    for (size_t i = 0; i < mr_variant_count && status == MR_OK; i++) {
        struct mr_words flags = {0};
        char name[48], line[1024];
        bool is_used = false;

        for (size_t j = 0; j < bench->case_count; j++)
            is_used |= bench->cases[j].variant == &mr_variants[i];
        if (!is_used)
            continue;
        mr_words_split(&flags, "-O2");
        (void)mr_variant_flags(&bench->build, &mr_variants[i], &flags, NULL);
        (void)snprintf(name, sizeof(name), "flags_%s", mr_variants[i].name);
        status = put_member(out, name, mr_words_join(&flags, line, sizeof(line)));
        mr_words_fini(&flags);
    }
    return status;
}

static enum mr_status put_options(const struct mr_overhead_bench *bench,
                                  struct mr_buffer *out)
{
    static const char *const policies[] = {"block", "drop"};
    const struct mr_overhead_options *options = &bench->options;
    enum mr_status status = mr_buffer_append_format(
        out,
        ", \"others\": %.3f, \"calls\": %" PRIu64 ", \"loops\": %" PRIu32
        ", \"discarded\": %" PRIu32
        ", \"steal_max\": %.4f, \"partial\": %s, \"cpu\": %d, \"policy\": \"%s\", "
        "\"placement\": \"%s\", \"lanes\": %" PRIu64
        ", \"timing\": \"%s\", \"seeds\": {\"order\": %d, \"bootstrap\": %llu}",
        bench->others, options->calls, bench->rounds.kept, bench->rounds.discarded,
        bench->rounds.steal_max, bench->rounds.is_partial ? "true" : "false", bench->cpu,
        policies[options->policy], options->placement ? "threads" : "fused",
        options->lanes, options->timing ? "whole" : "each", MR_ROUNDS_SEED,
        (unsigned long long)MR_STATS_SEED);

    return status == MR_OK ? put_member(out, "counters", options->counters) : status;
}

/* A bit for each of mr_variants, and of mr_java_systems. */
static void used_by(const struct mr_overhead_bench *bench, uint32_t *variants,
                    uint32_t *java)
{
    *variants = *java = 0;
    for (size_t i = 0; i < bench->case_count; i++) {
        if (bench->cases[i].variant)
            *variants |= UINT32_C(1) << (bench->cases[i].variant - mr_variants);
        if (bench->cases[i].java)
            *java |= UINT32_C(1) << (bench->cases[i].java - mr_java_systems);
    }
}

static enum mr_status put_environment(void *context, struct mr_buffer *out)
{
    struct mr_overhead_bench *bench = context;
    uint32_t variants, java;
    enum mr_status status = mr_bench_report_begin_environment(out);

    used_by(bench, &variants, &java);
    if (status == MR_OK)
        status = put_flags(bench, out);
    if (status == MR_OK)
        status = put_options(bench, out);
    if (status == MR_OK)
        status = mr_buffer_append_text(out, ", \"rivals\": {");
    if (status == MR_OK)
        status = mr_rivals_describe(&bench->rivals, variants, out);
    if (status == MR_OK)
        status = mr_buffer_append_text(out, "}, \"java\": {");
    if (status == MR_OK)
        status = mr_java_describe(&bench->java, java, out);
    if (status == MR_OK)
        status = mr_buffer_append_text(out, "}");
    return status == MR_OK ? mr_bench_report_end_environment(&bench->report, out)
                           : status;
}

static enum mr_status put_bars(void *context, struct mr_buffer *out)
{
    const struct mr_overhead_bench *bench = context;
    const struct mr_chart chart = {
        .title = "a root call, ns (median of the loops' means, "
                 "95 % interval)",
        .metric = bench->options.timing == 0 ? "response_ns" : "traces_per_second",
        .unit = bench->options.timing == 0 ? "ns" : "1/s",
        .line = (double)NAN,
        .group_part = 4};

    return mr_chart_draw(&chart, &bench->results, out);
}

/* Cases at the point of the options, peers among them. */
static enum mr_status put_plot(const struct mr_overhead_bench *bench,
                               enum mr_status (*draw)(const struct mr_plot *plot,
                                                      struct mr_buffer *out),
                               struct mr_buffer *out)
{
    struct mr_plot_item items[MR_OVERHEAD_CASES_MAX];
    struct mr_plot plot = {.title = bench->rounds.is_partial
                                        ? "a root call, ns, all loops. INTERRUPTED: this "
                                          "is what was measured until then."
                                        : "a root call, ns, all loops",
                           .unit = "ns",
                           .items = items};

    for (size_t i = 0; i < bench->case_count; i++)
        if (!bench->cases[i].is_swept)
            items[plot.count++] = (struct mr_plot_item){.name = bench->cases[i].name,
                                                        .spread = bench->cases[i].spread};
    return draw(&plot, out);
}

static enum mr_status put_boxes(void *context, struct mr_buffer *out)
{
    return put_plot(context, mr_plot_boxes, out);
}

static enum mr_status put_shares(void *context, struct mr_buffer *out)
{
    return put_plot(context, mr_plot_shares, out);
}

enum mr_status mr_overhead_write(struct mr_overhead_bench *bench, struct mr_error *error)
{
    static const struct mr_bench_file files[] = {
        {"results.yaml", put_yaml},
        {"overhead.svg", put_bars},
        {"environment.json", put_environment},
        {"overhead-boxes.svg", put_boxes}, /* of the times of single root calls */
        {"overhead-shares.svg", put_shares}};
    bool is_timed = bench->options.timing == 0;
    const struct mr_bench_output output = {.results = &bench->results,
                                           .tables = mr_overhead_tables,
                                           .files = files,
                                           .file_count =
                                               MR_ARRAY_COUNT(files) - (is_timed ? 0 : 2),
                                           .bench = bench,
                                           .is_json = bench->options.json};

    return mr_bench_report_write(&bench->report, &output, error);
}
