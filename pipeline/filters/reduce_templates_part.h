/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which template a call inside a call tree is, and what that says of its path: compiled for any processor (reduce_templates_find.c),
 * and for AVX2 (reduce_templates_wide.c). Not for others than these two.
 */
#ifndef MR_PIPELINE_FILTERS_REDUCE_TEMPLATES_PART_H
#define MR_PIPELINE_FILTERS_REDUCE_TEMPLATES_PART_H

#include <assert.h>

#include "pipeline/filters/reduce_private.h"

/* What a try that fails costs, in calls taken in bulk; where scores end; where they begin again after a rest; its length. */
#define SCORE_MISS 4
#define SCORE_MOST 64
#define SCORE_AGAIN (8 * SCORE_MISS - SCORE_MOST)
#define REST UINT8_MAX
/* The same of all paths together. */
#define LANE_SCORE_MOST 2048
#define LANE_SCORE_AGAIN (64 * SCORE_MISS - LANE_SCORE_MOST)
#define LANE_REST 16384

static_assert(2 * MR_TEMPLATE_PART_CALLS_MIN >= MR_CODE_BLOCK,
              "mr_codes_are_like() wants a block");

static inline void mr_template_score_hit(struct mr_templates *templates,
                                         struct mr_template_path *known, uint32_t calls)
{
    int score = known->score + (int)calls, all = templates->score + (int)calls;

    templates->score = all < LANE_SCORE_MOST ? all : LANE_SCORE_MOST;
    known->misses = 0;
    known->score = (int8_t)(score < SCORE_MOST ? score : SCORE_MOST);
}

static inline void mr_template_score_miss(struct mr_templates *templates,
                                          struct mr_template_path *known)
{
    templates->score -= SCORE_MISS;
    if (templates->score <= -LANE_SCORE_MOST) {
        templates->score = LANE_SCORE_AGAIN;
        templates->rest = LANE_REST;
    }
    if (known->misses < UINT8_MAX)
        known->misses++;
    known->score = (int8_t)(known->score - SCORE_MISS);
    if (known->score > -SCORE_MOST)
        return;
    known->score = SCORE_AGAIN;
    known->rest = REST;
}

/* mr_templates_find_part() */
static MR_ALWAYS_INLINE struct mr_template *mr_template_find_part(
    struct mr_reduce *reduce, uint32_t path, const uint32_t *codes, uint32_t count)
{
    struct mr_templates *templates = &reduce->templates;
    struct mr_template_path *known = &templates->paths[path];
    uint32_t number = known->first, *link = &known->first;
    const uint32_t close = mr_code_close_of(codes[0]);

    for (; number; link = &templates->items[number].next, number = *link) {
        struct mr_template *template = &templates->items[number];
        uint32_t size = 2 * template->calls;

        if (size > count || codes[size - 1] != close ||
            !mr_codes_are_like(templates->codes + template->first_code, codes, size))
            continue;
        mr_template_score_hit(templates, known, template->calls);
        if (number != known->first) { /* to the front */
            *link = template->next;
            template->next = known->first;
            known->first = number;
        }
        return template;
    }
    mr_template_score_miss(templates, known);
    return NULL;
}

#endif
