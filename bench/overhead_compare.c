/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two runs agree: case by case, the ratio of what their loops measured. */
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

static enum verdict compare_series(const struct series *one, const struct series *other,
                                   bool is_noisy)
{
    size_t count = one->count < other->count ? one->count : other->count;
    struct mr_stats ratio = {.count = 0, .median = NAN, .low = NAN, .high = NAN};
    enum verdict verdict = TOO_NOISY;

    if (mr_stats_of_ratio(one->values, other->values, count, &ratio) == MR_OK)
        verdict = judge(&ratio, is_noisy, fmax(spread_of(one), spread_of(other)));
    (void)printf("%-60s %7.3f  (%.3f .. %.3f, %zu loops)  %s%s\n", one->name,
                 ratio.median, ratio.low, ratio.high, ratio.count, verdict_names[verdict],
                 ratio.count < LOOPS_MIN ? ": too few loops" : "");
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

/* What would make two runs incomparable is told; whoever compares two commits or machines means to. True: one was disturbed. */
static bool tell_differences(const char *one, const char *other)
{
    static const char *const keys[] = {"calls",  "policy",   "placement", "lanes",
                                       "timing", "counters", "commit",    "machine"};
    const char *const folders[] = {one, other};
    json_t *environments[2];
    bool is_noisy = false;

    for (int i = 0; i < 2; i++) {
        char path[PATH_MAX];
        double others;

        (void)snprintf(path, sizeof(path), "%.*s/environment.json", PATH_MAX - 32,
                       folders[i]);
        environments[i] = json_load_file(path, 0, NULL);
        others = json_number_value(json_object_get(environments[i], "others"));
        if (!environments[i])
            (void)printf("%s: no environment.json: how it was run is not known\n",
                         folders[i]);
        if (others <= MR_OVERHEAD_OTHERS_MAX)
            continue;
        is_noisy = true;
        (void)printf("%s: the machine was too noisy: others took %.0f %% of the "
                     "processors\n",
                     folders[i], 100 * others);
    }
    for (size_t i = 0; i < MR_ARRAY_COUNT(keys); i++) {
        const json_t *a = json_object_get(environments[0], keys[i]);
        const json_t *b = json_object_get(environments[1], keys[i]);

        if (a && b && !json_equal(a, b))
            (void)printf("the runs differ in: %s\n", keys[i]);
    }
    json_decref(environments[0]);
    json_decref(environments[1]);
    return is_noisy;
}

static int compare_all(struct samples *one, struct samples *other, bool is_noisy)
{
    size_t counts[VERDICTS] = {0}, compared = 0;

    (void)printf("%s of the first by the second: median of the loops' ratios, 95 %% "
                 "interval\n",
                 METRIC);
    for (size_t i = 0; i < one->count; i++) {
        const struct series *same = series_of(other, one->series[i].name, false);

        if (!same)
            continue;
        counts[compare_series(&one->series[i], same, is_noisy)]++;
        compared++;
    }
    tell_missing(one, other, "first");
    tell_missing(other, one, "second");
    if (compared == 0) {
        (void)printf("no case is in both\n");
        return 1;
    }
    (void)printf("%zu of %zu cases agree (the interval contains 1, or within %.0f %%), "
                 "%zu differ, %zu are too noisy to tell%s\n",
                 counts[AGREES], compared, NEAR * 100, counts[DIFFERS], counts[TOO_NOISY],
                 counts[TOO_NOISY] > 0 ? ": use a quieter machine, or more loops" : "");
    return counts[AGREES] == compared ? 0 : 1;
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
        exit_status = compare_all(&one, &other, tell_differences(first, comma + 1));
    else
        (void)fprintf(stderr, "%s: %s\n", command, error.text);
    free(one.series);
    free(other.series);
    return exit_status;
}
