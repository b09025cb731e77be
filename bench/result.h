/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a benchmark found, the same for every `millrace bench` command: a list of results
 * that becomes JSON lines, a table for the terminal, one in Markdown, a chart
 * (bench/chart.h). One thread.
 *
 *     struct mr_results results = {.bench = "probe"};
 *     mr_results_add(&results, &(struct mr_result){.name = "hooks/tsc/tiny/tcp",
 *         .metric = "ns_per_call", .unit = "ns", .value = stats, ...});
 *     mr_results_json(&results, &out);
 *     mr_results_table(&results, columns, MR_ARRAY_COUNT(columns), MR_TABLE_TEXT, &out);
 *     mr_results_fini(&results);
 *
 * One JSON object per line and result. `lost`, `ratio_to`, `ratio` are null where there
 * is no account, and nothing to compare with:
 *
 *     {"bench":"probe","case":"hooks/tsc/tiny/tcp","metric":"ns_per_call","value":17.1,
 *      "unit":"ns","ratio_to":"floor","ratio":1.01,"lost":0,"low":17.0,"high":17.3,
 *      "ratio_low":1.00,"ratio_high":1.02,"loops":10,"discarded":0,"partial":false}
 *
 * low .. high and ratio_low .. ratio_high: 95 % bootstrap intervals over the loops.
 * discarded: loops left out for stolen time. partial: the run was ended early.
 */
#ifndef MR_BENCH_RESULT_H
#define MR_BENCH_RESULT_H

#include "base/buffer.h"
#include "bench/stats.h"

#include <stdbool.h>

#define MR_RESULT_NAME_SIZE 96

struct mr_result {
    char name[MR_RESULT_NAME_SIZE]; /* of the case */
    const char *metric, *unit;      /* of static life */
    struct mr_stats value;
    const char *ratio_to; /* NULL: nothing */
    struct mr_stats ratio;
    bool has_lost; /* whoever was measured tells what it lost */
    uint64_t lost;
};

struct mr_results {
    const char *bench;  /* set by the caller */
    uint32_t discarded; /* loops */
    bool is_partial;
    struct mr_result *items; /* owned */
    size_t count, capacity;
};

/* A copy of `result` at the end. MR_ENOMEM. */
enum mr_status mr_results_add(struct mr_results *results, const struct mr_result *result);
/*
 * The stats of `count` values of a case, and, where neither `ratio_to` nor `bottom` is NULL, those of the ratio to that, pair by
 * pair. MR_ENOMEM.
 */
enum mr_status mr_results_add_values(struct mr_results *results, const char *name,
                                     const char *metric, const char *unit,
                                     const double *values, size_t count,
                                     const char *ratio_to, const double *bottom);
void mr_results_fini(struct mr_results *results);
/* The first result of this case and metric (and ratio, unless `ratio_to` is NULL). */
const struct mr_result *mr_results_find(const struct mr_results *results,
                                        const char *name, const char *metric,
                                        const char *ratio_to);

/* JSON lines. The buffer's failures. */
enum mr_status mr_results_json(const struct mr_results *results, struct mr_buffer *out);
/* One of them, with its line end. */
enum mr_status mr_result_json(const struct mr_results *results,
                              const struct mr_result *result, struct mr_buffer *out);

enum mr_table_form { MR_TABLE_TEXT, MR_TABLE_MARKDOWN };
enum mr_table_what { MR_TABLE_VALUE, MR_TABLE_ERROR, MR_TABLE_RATIO, MR_TABLE_LOST };

/* ERROR is half of the interval's width; LOST needs no metric. An empty cell is "-"; an empty column is left out. */
struct mr_table_column {
    const char *title, *metric, *ratio_to; /* ratio_to NULL: any */
    enum mr_table_what what;
    int decimals;
};

/* A row for each case that has one of the columns, in the order of the results. */
enum mr_status mr_results_table(const struct mr_results *results,
                                const struct mr_table_column *columns,
                                size_t column_count, enum mr_table_form form,
                                struct mr_buffer *out);
/* The same of the cases that `is_of` takes, by name and `part`, and an empty line; nothing where there are none. MR_ENOMEM. */
enum mr_status mr_results_table_of(const struct mr_results *results,
                                   bool (*is_of)(const char *name, size_t part),
                                   size_t part, const struct mr_table_column *columns,
                                   size_t column_count, enum mr_table_form form,
                                   struct mr_buffer *out);

#endif
