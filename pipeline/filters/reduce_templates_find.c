/* SPDX-License-Identifier: Apache-2.0 */
/* Which template a call is, whether it pays to look for one, and how they are made. */
#include <string.h>

#include "base/assert.h"
#include "pipeline/filters/reduce_private.h"
#include "pipeline/filters/reduce_templates_part.h"

#define PROBES 8u      /* slots from that of the hash on */
#define SEEN_TIMES 3u  /* the low bits of `seen` */
#define MISSES_MAX 32u /* in a row, before another template may take the place of one */

struct mr_template *mr_templates_find_part(struct mr_reduce *reduce, uint32_t path,
                                           const uint32_t *codes, uint32_t count)
{
    const struct mr_template_vectors *vectors = reduce->templates.vectors;

    return vectors ? vectors->find_part(reduce, path, codes, count)
                   : mr_template_find_part(reduce, path, codes, count);
}

/* All bits of these in the upper ones. */
static MR_ALWAYS_INLINE uint64_t mix(const struct mr_templates *templates, uint32_t path,
                                     uint32_t size, uint64_t sum)
{
    uint64_t hash = (sum ^ ((uint64_t)path << 32 | size)) * templates->keys[0];

    return (hash ^ hash >> 32) * templates->keys[0];
}

static struct mr_template_key sum_of(const struct mr_templates *templates,
                                     const uint32_t *codes, uint32_t count)
{
    const uint64_t *key = &templates->keys[1];
    const uint32_t open = codes[0] & ~MR_CODE_ROOT, close = mr_code_close_of(codes[0]);
    uint32_t depth = 1;
    uint64_t sum = 0;

    for (uint32_t at = 1; at < count; at += 2) {
        if (mr_code_is_root_close(codes[at], close) && --depth == 0)
            return (struct mr_template_key){sum, at + 1};
        depth += codes[at] == open;
        if (at + 1 == count ||
            (mr_code_is_root_close(codes[at + 1], close) && --depth == 0))
            break; /* not in order */
        depth += codes[at + 1] == open;
        sum += mr_template_product(*key++, mr_code_pair(codes + at));
    }
    return (struct mr_template_key){0, 0};
}

struct mr_template_key mr_templates_key(const struct mr_templates *templates,
                                        uint32_t path, const uint32_t *codes,
                                        uint32_t count)
{
    struct mr_template_key key;

    count = count < MR_TEMPLATE_EVENTS_MAX ? count : MR_TEMPLATE_EVENTS_MAX;
    key = templates->vectors ? templates->vectors->sum(templates, codes, count)
                             : sum_of(templates, codes, count);
    key.hash = mix(templates, path, key.size, key.hash);
    return key;
}

/* Whether the codes between the first and the last, an even number, are these: all of the path's templates begin and end so. */
static bool is_like_root(const struct mr_templates *templates,
                         const struct mr_template *template, const uint32_t *codes)
{
    const uint32_t *others = templates->codes + template->first_code;
    const uint32_t between = 2 * template->calls - 2;
    uint64_t differ = 0;

    if (between >= MR_CODE_BLOCK)
        return mr_codes_are_like(others + 1, codes + 1, between);
    for (uint32_t at = 1; at < between; at += 2)
        differ |= mr_code_pair(others + at) ^ mr_code_pair(codes + at);
    return differ == 0;
}

static uint32_t *slot_of(const struct mr_templates *templates, uint64_t hash,
                         uint32_t probe)
{
    const uint32_t mask = (1u << templates->slot_bits) - 1;

    return &templates
                ->slots[((uint32_t)(hash >> (64 - templates->slot_bits)) + probe) & mask];
}

static struct mr_template *look_up(const struct mr_templates *templates, uint32_t path,
                                   struct mr_template_key key, const uint32_t *codes)
{
    for (uint32_t probe = 0; key.size && probe < PROBES; probe++) {
        uint32_t number = *slot_of(templates, key.hash, probe);
        struct mr_template *template = &templates->items[number];

        if (number == MR_TEMPLATE_NONE)
            return NULL;
        if (template->hash == key.hash && template->path == path &&
            2 * template->calls == key.size && is_like_root(templates, template, codes))
            return template;
    }
    return NULL;
}

/*
 * How far the templates go that begin as a root does, with the same two events behind its first: mostly they tell which kind of
 * work it is, and a kind that never comes back is not worth a scan.
 */
static uint8_t *longest_of(struct mr_templates *templates, uint32_t path,
                           const uint32_t *codes)
{
    uint64_t sum = mr_template_product(templates->keys[1], mr_code_pair(codes + 1));

    return &templates->longest[mix(templates, path, 0, sum) % MR_TEMPLATE_BEGINNINGS];
}

/* A root that calls nothing: what is behind it says nothing of it. */
static bool is_call_alone(const uint32_t *codes, uint32_t count)
{
    return count > 1 && mr_code_is_root_close(codes[1], mr_code_close_of(codes[0]));
}

struct mr_template *mr_templates_find_root(struct mr_reduce *reduce, uint32_t path,
                                           const uint32_t *codes, uint32_t count)
{
    struct mr_templates *templates = &reduce->templates;
    struct mr_template_path *known = &templates->paths[path];
    struct mr_template *template = &templates->items[known->first];
    uint32_t size = 2 * template->calls, last;

    last = is_call_alone(codes, count) ? 1
           : count < 3                 ? 0
                                       : *longest_of(templates, path, codes);
    count = count <= last ? count : last + 1;
    if (size > count ||
        !mr_code_is_root_close(codes[size - 1], mr_code_close_of(codes[0])) ||
        !is_like_root(templates, template, codes))
        template = look_up(templates, path,
                           mr_templates_key(templates, path, codes, count), codes);
    if (template) {
        known->first = (uint32_t)(template - templates->items);
        mr_template_score_hit(templates, known, template->calls);
    } else {
        mr_template_score_miss(templates, known);
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
                const struct mr_template_call *calls, const uint32_t *codes)
{
    struct mr_template_path *known = &templates->paths[template->path];
    struct mr_template *added = &templates->items[templates->count];
    const uint32_t last = 2 * template->calls - 1;
    uint8_t *longest;

    *added = *template;
    added->first_code = templates->code_count;
    added->first_call = templates->call_count;
    for (uint32_t i = 0; i <= last; i++) /* without the marks of a root */
        templates->codes[templates->code_count++] = codes[i] & ~MR_CODE_ROOT;
    memcpy(templates->calls + templates->call_count, calls,
           template->calls * sizeof(*calls));
    templates->call_count += template->calls;
    make_slots(templates);
    if (template->hash) {
        (void)put_slot(templates, templates->count);
        if (last > 1) {
            longest = longest_of(templates, template->path, codes);
            *longest = last > *longest ? (uint8_t)last : *longest;
        }
    } else {
        added->next = known->first;
        known->count++;
    }
    known->first = templates->count++;
    known->misses = 0;
}

static bool has_part(const struct mr_templates *templates, uint32_t path,
                     const uint32_t *codes, uint32_t count)
{
    uint32_t number = templates->paths[path].first;

    while (number &&
           (2 * templates->items[number].calls != count ||
            !mr_codes_are_like(templates->codes + templates->items[number].first_code,
                               codes, count)))
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
                      const uint32_t *codes, uint32_t count, uint64_t *hash)
{
    const struct mr_template_path *known = &templates->paths[path];
    struct mr_template_key key;

    if (!is_root)
        return (known->count < MR_TEMPLATES_PER_PATH || known->misses >= MISSES_MAX) &&
               !has_part(templates, path, codes, count);
    key = mr_templates_key(templates, path, codes, count);
    *hash = key.hash;
    return key.hash && key.size == count && came_often(templates, key.hash) &&
           !look_up(templates, path, key, codes);
}

void mr_templates_learn(struct mr_reduce *reduce, uint32_t path,
                        const struct mr_event *events, uint32_t count,
                        uint32_t nodes_known)
{
    struct mr_templates *templates = &reduce->templates;
    struct mr_template_call calls[MR_TEMPLATE_CALLS_MAX];
    struct mr_template template;
    const uint32_t *codes;
    uint64_t hash = 0;
    bool is_root;

    MR_ASSERT(path != MR_PATH_NONE && count <= MR_TEMPLATE_EVENTS_MAX);
    if (path >= templates->path_limit || templates->rest)
        return;
    is_root = (reduce->paths.nodes[path].flags & MR_PATH_ROOT) != 0;
    codes = mr_reduce_codes(reduce, events);
    if (!is_wanted(templates, path, is_root, codes, count, &hash) ||
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
    add(templates, &template, calls, codes);
}
