/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a table of the model by weight, for a list: the largest first, among the same the first of the table. Any thread.
 *
 *     qsort(order, count, sizeof(*order), mr_ranked_compare);
 */
#ifndef MR_MASTER_RANKED_H
#define MR_MASTER_RANKED_H

#include <stdint.h>

struct mr_ranked {
    uint64_t weight;
    uint32_t index;
};

static inline int mr_ranked_compare(const void *a, const void *b)
{
    const struct mr_ranked *left = a, *right = b;

    if (left->weight != right->weight)
        return left->weight < right->weight ? 1 : -1;
    return left->index < right->index ? -1 : left->index > right->index;
}

#endif
