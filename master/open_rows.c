/* SPDX-License-Identifier: Apache-2.0 */
#include "master/open_rows.h"

#include <stdlib.h>

static int by_oldest(const void *a, const void *b)
{
    const struct mr_open_row *left = a, *right = b;

    if (left->stats.oldest_ns != right->stats.oldest_ns)
        return left->stats.oldest_ns < right->stats.oldest_ns ? -1 : 1;
    return left->path < right->path ? -1 : left->path > right->path;
}

static void add(struct mr_open_row *row, const struct mr_model_open *open)
{
    row->path = open->path;
    if (!mr_open_stats_merge(&row->stats, &open->stats))
        return;
    row->stack = open->stack;
    row->told_ns = open->created_ns;
}

struct mr_open_row *mr_open_rows_new(const struct mr_model_root *root, uint64_t now_ns,
                                     size_t *count)
{
    uint32_t entries = mr_model_count(root, MR_MODEL_ENTRY);
    struct mr_open_row *rows = calloc((size_t)entries + 1, sizeof(*rows));

    *count = 0;
    for (uint32_t i = 0; rows && i < mr_model_count(root, MR_MODEL_OPEN); i++) {
        const struct mr_model_open *open = mr_model_open(root, i);
        uint32_t entry = mr_model_path(root, open->path)->entry;

        if (entry != MR_MODEL_NONE && mr_model_open_is_current(root, open, now_ns))
            add(&rows[entry], open);
    }
    for (uint32_t i = 0; rows && i < entries; i++)
        if (rows[i].stats.count > 0)
            rows[(*count)++] = rows[i]; /* those of nothing are squeezed out */
    if (rows)
        qsort(rows, *count, sizeof(*rows), by_oldest);
    return rows;
}
