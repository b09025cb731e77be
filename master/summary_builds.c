/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of two builds of a program that run side by side have the same name and place: which is of which. */
#include "master/summary_private.h"

#include <stdlib.h>
#include <string.h>

static const char digits[] = "0123456789abcdef";

const char *mr_summary_build_of(const struct mr_model_site *site, struct mr_arena *arena)
{
    char text[2 * MR_BUILD_ID_MAX + 1];
    const char *copy;
    size_t size = site->build_id_size;

    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digits[site->build_id[i] >> 4];
        text[2 * i + 1] = digits[site->build_id[i] & 15];
    }
    text[2 * size] = '\0';
    copy = mr_arena_copy(arena, mr_span_of_text(text));
    return copy ? copy : "";
}

struct row {
    struct mr_summary_function *function;
};

static bool has_line(const struct mr_summary_function *function)
{
    return *function->file && function->line;
}

static const char *place_of(const struct mr_summary_function *function)
{
    return has_line(function) ? function->file : function->module;
}

/* By what is shown of them. */
static int by_look(const void *a, const void *b)
{
    const struct mr_summary_function *left = ((const struct row *)a)->function;
    const struct mr_summary_function *right = ((const struct row *)b)->function;
    uint32_t left_line = has_line(left) ? left->line : 0;
    uint32_t right_line = has_line(right) ? right->line : 0;
    int order = strcmp(left->name, right->name);

    if (order == 0)
        order = strcmp(place_of(left), place_of(right));
    return order ? order : (left_line > right_line) - (left_line < right_line);
}

/* `count` functions that look the same: mostly one, else mostly of different builds. */
static void mark(const struct row *same, size_t count)
{
    bool differ = false;

    for (size_t i = 1; i < count; i++)
        differ |= strcmp(same[i].function->build, same[0].function->build) != 0;
    for (size_t i = 0; i < count; i++)
        same[i].function->has_twin = differ;
}

enum mr_status mr_summary_find_twins(const struct mr_summary *summary)
{
    size_t count = summary->function_count, first = 0;
    struct row *rows = calloc(count + 1, sizeof(*rows));

    if (!rows)
        return MR_ENOMEM;
    for (size_t i = 0; i < count; i++)
        rows[i].function = &summary->functions[i];
    qsort(rows, count, sizeof(*rows), by_look);
    for (size_t i = 1; i <= count; i++) {
        if (i < count && by_look(&rows[first], &rows[i]) == 0)
            continue;
        mark(rows + first, i - first);
        first = i;
    }
    free(rows);
    return MR_OK;
}
