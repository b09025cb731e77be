/* SPDX-License-Identifier: Apache-2.0 */
/* Workload stamps: the times that the receiver found, beside those that the program read. */
#include "bench/probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mr_probe_stamps_ask(struct mr_probe_bench *bench)
{
    if (bench->receiver.totals) {
        mr_store_relaxed(&bench->receiver.totals->stamp_count, 0);
        mr_store_release(&bench->receiver.totals->wants_stamps, 1);
    }
}

/* What the program left; its count. */
static size_t read_stamps(const struct mr_probe_bench *bench, uint64_t *stamps)
{
    char path[PATH_MAX];
    FILE *file;
    size_t count = 0;

    (void)snprintf(path, sizeof(path), "%.*s/" MR_PROBE_STAMPS_FILE, PATH_MAX - 64,
                   bench->rivals.folder);
    file = fopen(path, "re");
    if (file) {
        count = fread(stamps, sizeof(*stamps), MR_RECEIVER_STAMPS_MAX, file);
        (void)fclose(file);
    }
    (void)remove(path);
    return count;
}

static void fill(double *errors, size_t count, double values[MR_MEASURE_COUNT])
{
    mr_stats_sort(errors, count);
    values[MR_MEASURE_ERROR_P50] = mr_stats_quantile(errors, count, 0.5);
    values[MR_MEASURE_ERROR_P99] = mr_stats_quantile(errors, count, 0.99);
    values[MR_MEASURE_ERROR_P9999] = mr_stats_quantile(errors, count, 0.9999);
    values[MR_MEASURE_ERROR_MAX] = errors[count - 1];
}

void mr_probe_stamps_compare(struct mr_probe_bench *bench, const char *output,
                             double values[MR_MEASURE_COUNT])
{
    const struct mr_receiver_totals *totals = bench->receiver.totals;
    const char *rate = strstr(output, "tick_ns ");
    double tick_ns = rate ? strtod(rate + strlen("tick_ns "), NULL) : 0;
    uint64_t *stamps = malloc(MR_RECEIVER_STAMPS_MAX * sizeof(*stamps));
    double *errors = malloc(MR_RECEIVER_STAMPS_MAX * sizeof(*errors));
    size_t count = stamps ? read_stamps(bench, stamps) : 0;

    mr_store_relaxed(&bench->receiver.totals->wants_stamps, 0);
    /* One by one: if any is missing, no pair is sure. */
    if (errors && count > 0 && tick_ns > 0 &&
        mr_load_relaxed(&totals->stamp_count) == count) {
        for (size_t i = 0; i < count; i++)
            errors[i] = (double)(int64_t)(stamps[i] - totals->stamps[i]) * tick_ns;
        fill(errors, count, values);
    }
    free(errors);
    free(stamps);
}
