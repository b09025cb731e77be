/* SPDX-License-Identifier: Apache-2.0 */
/* Which template a call is, whether it pays to look for one, and how they are made. */
#include <string.h>

#include "base/assert.h"
#include "pipeline/filters/reduce_private.h"

#define MISSES_MAX 32u /* in a row, before another template may take the place of one */
/* What a try that fails costs, in calls taken in bulk; where scores end; where they begin again after a rest; its length. */
#define SCORE_MISS 4
#define SCORE_MOST 64
#define SCORE_AGAIN (8 * SCORE_MISS - SCORE_MOST)
#define REST UINT8_MAX
/* The same of all paths together. */
#define LANE_SCORE_MOST 2048
#define LANE_SCORE_AGAIN (64 * SCORE_MISS - LANE_SCORE_MOST)
#define LANE_REST 16384

/* Of the last event of a call. That of a root may have its mark, or not yet (pipeline/nesting.h). */
static MR_ALWAYS_INLINE uint64_t last_word_of(const struct mr_event *event)
{
    return mr_event_word(event) & ~((uint64_t)MR_EVENT_ROOT << 48);
}

/*
 * Whether the events between the first and the last, an even number, are these. The first one opens a call on the path: all of
 * the path's templates begin so.
 */
static MR_ALWAYS_INLINE bool is_like(const uint64_t *words, const struct mr_event *events,
                                     uint32_t count)
{
    for (uint32_t i = 1; i < count - 1; i += 2)
        if ((mr_event_word(&events[i]) ^ words[i]) |
            (mr_event_word(&events[i + 1]) ^ words[i + 1]))
            return false;
    return true;
}

static void score_hit(struct mr_templates *templates, struct mr_template_path *known,
                      uint32_t calls)
{
    int score = known->score + (int)calls, all = templates->score + (int)calls;

    templates->score = all < LANE_SCORE_MOST ? all : LANE_SCORE_MOST;
    known->misses = 0;
    known->score = (int8_t)(score < SCORE_MOST ? score : SCORE_MOST);
}

static void score_miss(struct mr_templates *templates, struct mr_template_path *known)
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

struct mr_template *mr_templates_find(struct mr_reduce *reduce, uint32_t path,
                                      const struct mr_event *events, uint32_t count)
{
    struct mr_templates *templates = &reduce->templates;
    struct mr_template_path *known = &templates->paths[path];
    uint32_t number = known->first, *link = &known->first;

    for (; number; link = &templates->items[number].next, number = *link) {
        struct mr_template *template = &templates->items[number];
        uint32_t size = 2 * template->calls;

        if (size > count || last_word_of(&events[size - 1]) != template->last_word ||
            !is_like(templates->words + template->first_word, events, size))
            continue;
        score_hit(templates, known, template->calls);
        if (number != known->first) { /* to the front */
            *link = template->next;
            template->next = known->first;
            known->first = number;
        }
        return template;
    }
    score_miss(templates, known);
    return NULL;
}

/* The last of the path's templates is given up; its place in the pools is lost until they are cleared. */
static void drop_last(struct mr_templates *templates, struct mr_template_path *known)
{
    uint32_t *link = &known->first;

    while (templates->items[*link].next)
        link = &templates->items[*link].next;
    *link = MR_TEMPLATE_NONE; /* what waits in it is listed */
    known->count--;
}

static void add(struct mr_templates *templates, uint32_t path,
                const struct mr_template *template, const struct mr_template_call *calls,
                const struct mr_event *events)
{
    struct mr_template_path *known = &templates->paths[path];
    struct mr_template *added = &templates->items[templates->count];

    *added = *template;
    added->next = known->first;
    added->first_word = templates->word_count;
    added->first_call = templates->call_count;
    for (uint32_t i = 0; i < 2 * template->calls; i++)
        templates->words[templates->word_count++] = mr_event_word(&events[i]);
    added->last_word = last_word_of(&events[2 * template->calls - 1]);
    memcpy(templates->calls + templates->call_count, calls,
           template->calls * sizeof(*calls));
    templates->call_count += template->calls;
    known->first = templates->count++;
    known->misses = 0;
    known->count++;
}

static bool has(const struct mr_templates *templates, uint32_t path,
                const struct mr_event *events, uint32_t count)
{
    uint32_t number = templates->paths[path].first;

    while (number && (2 * templates->items[number].calls != count ||
                      !is_like(templates->words + templates->items[number].first_word,
                               events, count)))
        number = templates->items[number].next;
    return number != MR_TEMPLATE_NONE;
}

/* Of a root: the shape that it was just counted in. */
static uint32_t shape_of(const struct mr_reduce *reduce, uint32_t path, uint32_t node)
{
    uint32_t entry = reduce->paths.nodes[path].entry;
    uint32_t shape = entry ? reduce->entries[entry - 1].last_shape : 0;

    return shape && reduce->shapes[shape - 1].node == node ? shape : 0;
}

void mr_templates_learn(struct mr_reduce *reduce, uint32_t path,
                        const struct mr_event *events, uint32_t count,
                        uint32_t nodes_known)
{
    struct mr_templates *templates = &reduce->templates;
    struct mr_template_call calls[MR_TEMPLATE_CALLS_MAX];
    struct mr_template_path *known;
    struct mr_template template;

    MR_ASSERT(path != MR_PATH_NONE && count <= MR_TEMPLATE_EVENTS_MAX);
    if (path >= templates->path_limit || templates->rest)
        return;
    known = &templates->paths[path];
    if ((known->count == MR_TEMPLATES_PER_PATH && known->misses < MISSES_MAX) ||
        has(templates, path, events, count) ||
        !mr_template_play(reduce, path, events, count, &template, calls) ||
        template.node >= nodes_known)
        return;
    if (reduce->paths.nodes[path].flags & MR_PATH_ROOT)
        template.shape = shape_of(reduce, path, template.node);
    if (templates->count == MR_TEMPLATES_MAX ||
        templates->call_count + template.calls > MR_TEMPLATES_CALLS_MAX) {
        mr_templates_settle(reduce);
        mr_templates_clear(templates);
    } else if (known->count == MR_TEMPLATES_PER_PATH) {
        drop_last(templates, known);
    }
    add(templates, path, &template, calls, events);
}
