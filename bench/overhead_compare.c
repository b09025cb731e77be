/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether two runs agree: case by case, the ratio of what their loops measured. Where the machines differ that says nothing
 * of the tracer; so there each case is taken by `none` of its own run first, loop by loop. On one machine a case that differs
 * as much as `none` does, in which nothing is traced, tells of the machine: it is too noisy to tell.
 */
#include "bench/overhead.h"

#include "bench/stats.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINE_SIZE 4096
#define SAMPLES_MAX 1000 /* of a case: the loops an option allows */
#define NEAR 0.03
#define NOISY                                                                            \
    0.10 /* half of the middle half of the loops, or of the ratio's interval, by their median */
#define LOOPS_MIN 3 /* below, an interval is not one */
#define METRIC "traces_per_second"

struct series {
    char name[MR_RESULT_NAME_SIZE];
    double values[SAMPLES_MAX]; /* by loop; NAN: none */
    size_t count;               /* loops, the last one included */
    bool is_left_out;           /* of what is compared */
};

struct samples {
    struct series *series; /* owned */
    size_t count;
};

static struct series *series_of(struct samples *samples, const char *name, bool make)
{
    for (size_t i = 0; i < samples->count; i++)
        if (strcmp(samples->series[i].name, name) == 0)
            return &samples->series[i];
    if (!make || samples->count == MR_OVERHEAD_CASES_MAX)
        return NULL;
    (void)snprintf(samples->series[samples->count].name, MR_RESULT_NAME_SIZE, "%s", name);
    return &samples->series[samples->count++];
}

/* A loop that was discarded for stolen time and made again is there twice: the last counts. */
static bool take_line(struct samples *samples, const char *line)
{
    json_t *json = json_loads(line, 0, NULL);
    const char *name = json_string_value(json_object_get(json, "case"));
    const json_t *value = json_object_get(json, METRIC);
    const json_t *number = json_object_get(json, "loop");
    json_int_t loop = json_integer_value(number);
    bool is_good = name && json_is_integer(number) && loop >= 0 && loop < SAMPLES_MAX;
    struct series *series = is_good ? series_of(samples, name, true) : NULL;

    if (series) {
        while (series->count <= (size_t)loop)
            series->values[series->count++] = (double)NAN;
        series->values[loop] =
            json_is_number(value) ? json_number_value(value) : (double)NAN;
    }
    json_decref(json);
    return is_good;
}

/* samples.jsonl of a run's folder. */
static enum mr_status read_samples(const char *folder, struct samples *samples,
                                   struct mr_error *error)
{
    char path[PATH_MAX], line[LINE_SIZE];
    unsigned number = 0;
    enum mr_status status = MR_OK;
    FILE *file;

    *samples = (struct samples){
        .series = calloc(MR_OVERHEAD_CASES_MAX, sizeof(*samples->series))};
    if (!samples->series)
        return mr_error_set(error, MR_ENOMEM, "no memory");
    (void)snprintf(path, sizeof(path), "%.*s/samples.jsonl", PATH_MAX - 32, folder);
    file = fopen(path, "re");
    if (!file)
        return mr_error_set(error, MR_EUSAGE,
                            "--compare: %.100s is no folder of a run: no samples.jsonl",
                            folder);
    while (status == MR_OK && fgets(line, sizeof(line), file)) {
        number++;
        if (!take_line(samples, line))
            status = mr_error_set(error, MR_EUSAGE, "--compare: %.100s:%u: no sample",
                                  path, number);
    }
    (void)fclose(file);
    if (status == MR_OK && samples->count == 0)
        status =
            mr_error_set(error, MR_EUSAGE, "--compare: %.100s holds no sample", path);
    return status;
}

static double spread_of(const struct series *series)
{
    double sorted[SAMPLES_MAX], median;
    size_t count = 0;

    for (size_t i = 0; i < series->count; i++)
        if (!isnan(series->values[i]))
            sorted[count++] = series->values[i];
    if (count == 0)
        return (double)INFINITY;
    mr_stats_sort(sorted, count);
    median = mr_stats_quantile(sorted, count, 0.5);
    return (mr_stats_quantile(sorted, count, 0.75) -
            mr_stats_quantile(sorted, count, 0.25)) /
           2 / median;
}

enum verdict { AGREES, DIFFERS, TOO_NOISY, VERDICTS };
static const char *const verdict_names[VERDICTS] = {"agrees", "DIFFERS", "too noisy"};

/* Agreement wants an interval that could have excluded 1; a difference wants loops that agree among themselves. */
static enum verdict judge(const struct mr_stats *ratio, bool is_noisy, double spread)
{
    bool holds_one = ratio->low <= 1 && ratio->high >= 1;
    bool is_wide = (ratio->high - ratio->low) / 2 > NOISY * ratio->median;

    if (ratio->count < LOOPS_MIN || (holds_one && is_wide))
        return TOO_NOISY;
    if (holds_one || fabs(ratio->median - 1) <= NEAR)
        return AGREES;
    return is_noisy || spread > NOISY ? TOO_NOISY : DIFFERS;
}

/* The untraced program that a system is taken by: of its compiler, or in Java. */
static const char *plain_of(const char *system, size_t size)
{
    for (size_t i = 0; i < mr_java_system_count; i++)
        if (strlen(mr_java_systems[i].name) == size &&
            strncmp(mr_java_systems[i].name, system, size) == 0)
            return mr_java_systems[0].name;
    for (size_t i = 0; i < mr_variant_count; i++)
        if (strlen(mr_variants[i].name) == size &&
            strncmp(mr_variants[i].name, system, size) == 0)
            return mr_variant_plain(&mr_variants[i])->name;
    return mr_variants[0].name;
}

/* Its case of phase none at the same point: depth, threads and method time; ring and link make no difference there. */
static void name_of_none(const char *name, char out[MR_RESULT_NAME_SIZE])
{
    const char *system = strchr(name, '/'), *point = strrchr(name, '/');
    size_t size = 0;

    system = system ? system + 1 : "";
    point = point ? point + 1 : "";
    for (int i = 0; i < 3; i++) {
        size += i > 0 && point[size] == '-';
        size += strcspn(point + size, "-");
    }
    (void)snprintf(out, MR_RESULT_NAME_SIZE, "none/%s/none/none/%.*s",
                   plain_of(system, strcspn(system, "/")), (int)size, point);
}

static bool is_none(const struct series *series)
{
    return strncmp(series->name, "none/", 5) == 0;
}

static struct mr_stats ratio_of(const struct series *one, const struct series *other)
{
    size_t count = one->count < other->count ? one->count : other->count;
    struct mr_stats ratio = {.count = 0, .median = NAN, .low = NAN, .high = NAN};

    (void)mr_stats_of_ratio(one->values, other->values, count, &ratio); /* else NAN */
    return ratio;
}

/* Of none at the same point, in both runs; NAN where one has it not. */
static double drift_of(struct samples *one, struct samples *other, const char *name)
{
    const struct series *a, *b;
    char none[MR_RESULT_NAME_SIZE];

    name_of_none(name, none);
    a = series_of(one, none, false);
    b = series_of(other, none, false);
    return a && b && strcmp(none, name) != 0 ? ratio_of(a, b).median : (double)NAN;
}

/* `drift`: how much faster the machine itself was, or NAN. */
static enum verdict compare_series(const struct series *one, const struct series *other,
                                   bool is_noisy, double drift)
{
    struct mr_stats ratio = ratio_of(one, other);
    enum verdict verdict = TOO_NOISY;
    const char *why = ratio.count < LOOPS_MIN ? ": too few loops" : "";

    if (ratio.count > 0)
        verdict = judge(&ratio, is_noisy, fmax(spread_of(one), spread_of(other)));
    if (verdict == DIFFERS && fabs(ratio.median / drift - 1) <= NEAR) {
        verdict = TOO_NOISY;
        why = ": none, where nothing is traced, differs as much";
    }
    (void)printf("%-60s %7.3f  (%.3f .. %.3f, %zu loops)  %s%s\n", one->name,
                 ratio.median, ratio.low, ratio.high, ratio.count, verdict_names[verdict],
                 why);
    return verdict;
}

/* Said, not judged: two runs may have been asked for different cases. */
static void tell_missing(const struct samples *in, struct samples *from,
                         const char *which)
{
    for (size_t i = 0; i < in->count; i++)
        if (!series_of(from, in->series[i].name, false))
            (void)printf("%-60s only in the %s\n", in->series[i].name, which);
}

/* Values become ratios to none's of the same loop. What has no such case is left out, and told. */
static void take_by_none(struct samples *samples, const char *which)
{
    for (size_t i = 0; i < samples->count; i++) {
        struct series *series = &samples->series[i];
        char name[MR_RESULT_NAME_SIZE];
        const struct series *none;

        series->is_left_out = is_none(series);
        if (series->is_left_out)
            continue;
        name_of_none(series->name, name);
        none = series_of(samples, name, false);
        series->is_left_out = !none;
        if (!none)
            (void)printf("%-60s not compared: no %s in the %s\n", series->name, name,
                         which);
        for (size_t loop = 0; none && loop < series->count; loop++)
            series->values[loop] = loop < none->count && none->values[loop] > 0
                                       ? series->values[loop] / none->values[loop]
                                       : (double)NAN;
    }
}

/* How the two were run; NULL where it is not known, which is told. */
struct environments {
    json_t *of[2];
};

/* True: at least one was disturbed by others. */
static bool load_environments(struct environments *environments, const char *one,
                              const char *other)
{
    const char *const folders[] = {one, other};
    bool is_noisy = false;

    for (int i = 0; i < 2; i++) {
        json_t **environment = &environments->of[i];
        char path[PATH_MAX];
        double others;

        (void)snprintf(path, sizeof(path), "%.*s/environment.json", PATH_MAX - 32,
                       folders[i]);
        *environment = json_load_file(path, 0, NULL);
        others = json_number_value(json_object_get(*environment, "others"));
        if (!*environment)
            (void)printf("%s: no environment.json: how it was run is not known\n",
                         folders[i]);
        if (others <= MR_OVERHEAD_OTHERS_MAX)
            continue;
        is_noisy = true;
        (void)printf("%s: the machine was too noisy: others took %.0f %% of the "
                     "processors\n",
                     folders[i], 100 * others);
    }
    return is_noisy;
}

/* What would make two runs incomparable is told; whoever compares two commits means to. */
static void tell_differences(const struct environments *environments)
{
    static const char *const keys[] = {"calls",  "policy",   "placement", "lanes",
                                       "timing", "counters", "commit",    "machine"};

    for (size_t i = 0; i < MR_ARRAY_COUNT(keys); i++) {
        const json_t *a = json_object_get(environments->of[0], keys[i]);
        const json_t *b = json_object_get(environments->of[1], keys[i]);

        if (a && b && !json_equal(a, b))
            (void)printf("the runs differ in: %s\n", keys[i]);
    }
}

/* Of these the speed of everything is; where it is not known they are taken for the same. */
static bool tell_machines(const struct environments *environments)
{
    static const char *const keys[] = {"processor", "processor_model", "kernel"};
    const json_t *one = json_object_get(environments->of[0], "machine");
    const json_t *other = json_object_get(environments->of[1], "machine");
    bool do_differ = false;

    for (size_t i = 0; i < MR_ARRAY_COUNT(keys); i++) {
        const char *a = json_string_value(json_object_get(one, keys[i]));
        const char *b = json_string_value(json_object_get(other, keys[i]));

        if (!a || !b || strcmp(a, b) == 0)
            continue;
        do_differ = true;
        (void)printf("the machines differ: %s %s, and %s\n", keys[i], a, b);
    }
    if (do_differ)
        (void)printf(
            "so no absolute values are compared, but what each is of none in its "
            "own run\n");
    return do_differ;
}

static int compare_all(struct samples *one, struct samples *other, bool is_noisy,
                       bool is_by_none)
{
    size_t counts[VERDICTS] = {0}, compared = 0;
    bool has_common = false;

    for (size_t i = 0; i < one->count; i++) {
        const struct series *same = series_of(other, one->series[i].name, false);

        has_common |= same != NULL;
        if (!same || one->series[i].is_left_out || same->is_left_out)
            continue;
        counts[compare_series(&one->series[i], same, is_noisy,
                              is_by_none ? (double)NAN
                                         : drift_of(one, other, one->series[i].name))]++;
        compared++;
    }
    tell_missing(one, other, "first");
    tell_missing(other, one, "second");
    if (compared == 0) {
        (void)printf("no case is in both%s\n", has_common ? " that can be compared" : "");
        return 1;
    }
    (void)printf("%zu of %zu cases agree (the interval contains 1, or within %.0f %%), "
                 "%zu differ, %zu are too noisy to tell%s\n",
                 counts[AGREES], compared, NEAR * 100, counts[DIFFERS], counts[TOO_NOISY],
                 counts[TOO_NOISY] > 0 ? ": use a quieter machine, or more loops" : "");
    return counts[AGREES] == compared ? 0 : 1;
}

/* Tells what is compared, then compares it. */
static int compare_runs(struct samples *one, struct samples *other, const char *first,
                        const char *second)
{
    struct environments environments;
    bool is_noisy = load_environments(&environments, first, second), do_differ;

    tell_differences(&environments);
    do_differ = tell_machines(&environments);
    json_decref(environments.of[0]);
    json_decref(environments.of[1]);
    if (do_differ) {
        take_by_none(one, "first");
        take_by_none(other, "second");
    }
    (void)printf("%s%s, of the first by the second: median of the loops' ratios, 95 %% "
                 "interval\n",
                 METRIC, do_differ ? " by that of none" : "");
    return compare_all(one, other, is_noisy, do_differ);
}

int mr_overhead_compare(const char *command, const char *folders)
{
    struct mr_error error = MR_ERROR_NONE;
    struct samples one = {.count = 0}, other = {.count = 0};
    const char *comma = strchr(folders, ',');
    char first[PATH_MAX];
    enum mr_status status = MR_OK;
    int exit_status = 2;

    if (!comma)
        status = mr_error_set(&error, MR_EUSAGE,
                              "--compare: two folders with a comma between them");
    (void)snprintf(first, sizeof(first), "%.*s", (int)(comma ? comma - folders : 0),
                   folders);
    if (status == MR_OK)
        status = read_samples(first, &one, &error);
    if (status == MR_OK)
        status = read_samples(comma + 1, &other, &error);
    if (status == MR_OK)
        exit_status = compare_runs(&one, &other, first, comma + 1);
    else
        (void)fprintf(stderr, "%s: %s\n", command, error.text);
    free(one.series);
    free(other.series);
    return exit_status;
}
