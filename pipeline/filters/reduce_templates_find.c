/* SPDX-License-Identifier: Apache-2.0 */
/* Which template a call is, whether it pays to look for one, and how they are made. */
#include <string.h>

#include "base/assert.h"
#include "pipeline/filters/reduce_private.h"

#define PROBES 8u      /* slots from that of the hash on */
#define SEEN_TIMES 3u  /* the low bits of `seen` */
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

struct mr_template *mr_templates_find_part(struct mr_reduce *reduce, uint32_t path,
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

/* All bits of these in the upper ones. */
static MR_ALWAYS_INLINE uint64_t mix(const struct mr_templates *templates, uint32_t path,
                                     uint32_t size, uint64_t sum)
{
    uint64_t hash = (sum ^ ((uint64_t)path << 32 | size)) * templates->keys[0];

    return (hash ^ hash >> 32) * templates->keys[0];
}

static struct mr_template_key sum_of(const struct mr_templates *templates,
                                     const struct mr_event *events, uint32_t count)
{
    const uint32_t site = events[0].site;
    const uint64_t close = mr_open_call_closes(site, 0);
    uint32_t depth = 1;
    uint64_t sum = 0;

    for (uint32_t at = 1; at < count; at++) {
        uint64_t word = mr_event_word(&events[at]);

        if (last_word_of(&events[at]) == close && --depth == 0)
            return (struct mr_template_key){sum, at + 1};
        depth += word == site; /* it opens, without a flag */
        sum += mr_template_product(templates->keys[at], word);
    }
    return (struct mr_template_key){0, 0};
}

struct mr_template_key mr_templates_key(const struct mr_templates *templates,
                                        uint32_t path, const struct mr_event *events,
                                        uint32_t count)
{
    struct mr_template_key key;

    count = count < MR_TEMPLATE_EVENTS_MAX ? count : MR_TEMPLATE_EVENTS_MAX;
    key = templates->vectors ? templates->vectors->sum(templates, events, count)
                             : sum_of(templates, events, count);
    key.hash = mix(templates, path, key.size, key.hash);
    return key;
}

/* As is_like(): of roots, which have more events. */
static bool is_like_root(const struct mr_templates *templates, const uint64_t *words,
                         const struct mr_event *events, uint32_t count)
{
    return templates->vectors ? templates->vectors->is_like(words, events, count)
                              : is_like(words, events, count);
}

static uint32_t *slot_of(const struct mr_templates *templates, uint64_t hash,
                         uint32_t probe)
{
    const uint32_t mask = (1u << templates->slot_bits) - 1;

    return &templates
                ->slots[((uint32_t)(hash >> (64 - templates->slot_bits)) + probe) & mask];
}

static struct mr_template *look_up(const struct mr_templates *templates, uint32_t path,
                                   struct mr_template_key key,
                                   const struct mr_event *events)
{
    for (uint32_t probe = 0; key.size && probe < PROBES; probe++) {
        uint32_t number = *slot_of(templates, key.hash, probe);
        struct mr_template *template = &templates->items[number];

        if (number == MR_TEMPLATE_NONE)
            return NULL;
        if (template->hash == key.hash && template->path == path &&
            2 * template->calls == key.size &&
            is_like_root(templates, templates->words + template->first_word, events,
                         key.size))
            return template;
    }
    return NULL;
}

/*
 * How far the templates go that begin as a root does, with the same two events behind its first: mostly they tell which kind of
 * work it is, and a kind that never comes back is not worth a scan.
 */
static uint8_t *longest_of(struct mr_templates *templates, uint32_t path,
                           const struct mr_event *events)
{
    uint64_t sum = mr_template_product(templates->keys[1], mr_event_word(&events[1])) +
                   mr_template_product(templates->keys[2], mr_event_word(&events[2]));

    return &templates->longest[mix(templates, path, 0, sum) % MR_TEMPLATE_BEGINNINGS];
}

struct mr_template *mr_templates_find_root(struct mr_reduce *reduce, uint32_t path,
                                           const struct mr_event *events, uint32_t count)
{
    struct mr_templates *templates = &reduce->templates;
    struct mr_template_path *known = &templates->paths[path];
    struct mr_template *template = &templates->items[known->first];
    uint32_t size = 2 * template->calls, last;

    last = count < 2 * MR_TEMPLATE_CALLS_MIN ? 0 : *longest_of(templates, path, events);
    count = count <= last ? count : last + 1;
    if (size > count || last_word_of(&events[size - 1]) != template->last_word ||
        !is_like(templates->words + template->first_word, events, size))
        template = look_up(templates, path,
                           mr_templates_key(templates, path, events, count), events);
    if (template) {
        known->first = (uint32_t)(template - templates->items);
        score_hit(templates, known, template->calls);
    } else {
        score_miss(templates, known);
    }
    return template;
}

/* False where there is no place for it near that of its hash: it will not be found. */
static bool put_slot(struct mr_templates *templates, uint32_t number)
{
    for (uint32_t probe = 0; probe < PROBES; probe++) {
        uint32_t *slot = slot_of(templates, templates->items[number].hash, probe);

        if (*slot == MR_TEMPLATE_NONE) {
            *slot = number;
            return true;
        }
    }
    return false;
}

/* Twice as many slots where one more would fill half of them. */
static void make_slots(struct mr_templates *templates)
{
    if (2 * (templates->count + 1) <= 1u << templates->slot_bits)
        return;
    MR_ASSERT(1u << templates->slot_bits < MR_TEMPLATE_SLOTS_MAX);
    memset(templates->slots, 0, sizeof(*templates->slots) << templates->slot_bits);
    templates->slot_bits++;
    for (uint32_t i = 1; i < templates->count; i++)
        if (templates->items[i].hash)
            (void)put_slot(templates, i);
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

static void add(struct mr_templates *templates, const struct mr_template *template,
                const struct mr_template_call *calls, const struct mr_event *events)
{
    struct mr_template_path *known = &templates->paths[template->path];
    struct mr_template *added = &templates->items[templates->count];
    const uint32_t last = 2 * template->calls - 1;
    uint8_t *longest;

    *added = *template;
    added->first_word = templates->word_count;
    added->first_call = templates->call_count;
    for (uint32_t i = 0; i <= last; i++)
        templates->words[templates->word_count++] = mr_event_word(&events[i]);
    added->last_word = last_word_of(&events[last]);
    memcpy(templates->calls + templates->call_count, calls,
           template->calls * sizeof(*calls));
    templates->call_count += template->calls;
    make_slots(templates);
    if (template->hash) {
        (void)put_slot(templates, templates->count);
        longest = longest_of(templates, template->path, events);
        *longest = last > *longest ? (uint8_t)last : *longest;
    } else {
        added->next = known->first;
        known->count++;
    }
    known->first = templates->count++;
    known->misses = 0;
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

/*
 * Whether such a root came so often lately that a template will pay: one whose calls wait alone for the end of a window costs
 * more than they would one by one. Of each is kept, in a place by its hash, which others take over, some bits of that and how often it came.
 */
static bool came_often(struct mr_templates *templates, uint64_t hash)
{
    uint16_t *seen = &templates->seen[hash % MR_TEMPLATE_SEEN];
    uint16_t kind = (uint16_t)(hash >> 32 & ~(uint64_t)SEEN_TIMES);

    if (*seen == 0 || (*seen & ~SEEN_TIMES) != kind)
        *seen = kind;
    if ((*seen & SEEN_TIMES) < SEEN_TIMES)
        ++*seen;
    return (*seen & SEEN_TIMES) == SEEN_TIMES;
}

/* Whether the call is to have a template; of a root, with which hash. */
static bool is_wanted(struct mr_templates *templates, uint32_t path, bool is_root,
                      const struct mr_event *events, uint32_t count, uint64_t *hash)
{
    const struct mr_template_path *known = &templates->paths[path];
    struct mr_template_key key;

    if (!is_root)
        return (known->count < MR_TEMPLATES_PER_PATH || known->misses >= MISSES_MAX) &&
               !has(templates, path, events, count);
    key = mr_templates_key(templates, path, events, count);
    *hash = key.hash;
    return key.hash && key.size == count && came_often(templates, key.hash) &&
           !look_up(templates, path, key, events);
}

void mr_templates_learn(struct mr_reduce *reduce, uint32_t path,
                        const struct mr_event *events, uint32_t count,
                        uint32_t nodes_known)
{
    struct mr_templates *templates = &reduce->templates;
    struct mr_template_call calls[MR_TEMPLATE_CALLS_MAX];
    struct mr_template template;
    uint64_t hash = 0;
    bool is_root;

    MR_ASSERT(path != MR_PATH_NONE && count <= MR_TEMPLATE_EVENTS_MAX);
    if (path >= templates->path_limit || templates->rest)
        return;
    is_root = (reduce->paths.nodes[path].flags & MR_PATH_ROOT) != 0;
    if (!is_wanted(templates, path, is_root, events, count, &hash) ||
        !mr_template_play(reduce, path, events, count, &template, calls) ||
        template.node >= nodes_known)
        return;
    template.path = path;
    template.hash = hash;
    if (is_root)
        template.shape = shape_of(reduce, path, template.node);
    if (!mr_templates_have_room(templates, template.calls)) {
        mr_templates_settle(reduce);
        mr_templates_clear(templates);
    } else if (!is_root && templates->paths[path].count == MR_TEMPLATES_PER_PATH) {
        drop_last(templates, &templates->paths[path]);
    }
    add(templates, &template, calls, events);
}
