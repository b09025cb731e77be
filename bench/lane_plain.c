/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/lane_plain.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/pages.h"

#define NODES_MAX (1u << 16)
#define SLOTS ((size_t)4 * NODES_MAX)
#define HASH_SLOTS (1u << 22)
#define DEPTH_MAX 16384
#define STACKS_MAX 64
#define PARTS 8
#define BINS ((size_t)64 * PARTS)
#define SITE_MASK 0x3fffffffu
#define CHECK(condition) ((condition) ? (void)0 : abort())

struct node {
    uint32_t site, parent, last_child, spare;
    uint64_t count, sum, self, min, max;
    uint32_t *bins;
};

struct frame {
    uint64_t start, child, hash, last;
    uint32_t node, site;
};

struct stack {
    uint64_t time;
    uint32_t depth;
    struct frame frames[DEPTH_MAX];
};

/* A set: open addressing, 0 is free. Half full, it is forgotten: streams that never repeat are played for hours. */
struct hashes {
    uint64_t *slots; /* NULL: not wanted */
    uint64_t count, used;
};

struct lane_plain {
    struct node *nodes;
    uint32_t node_count;
    uint32_t *slots;
    struct hashes shapes, trees; /* of whole traces; of all subtrees, if consed */
    uint64_t mismatches;
    uint32_t *bins;
    struct stack *stack; /* the chosen one */
    struct stack *stacks[STACKS_MAX];
};

/* On large pages where there are some, as the tables of the lane. */
static void *new_table(size_t size)
{
    void *table = mr_pages_alloc(size);

    CHECK(table);
    memset(table, 0, size);
    return table;
}

struct lane_plain *lane_plain_new(bool is_consed)
{
    struct lane_plain *plain = calloc(1, sizeof(*plain));

    CHECK(plain);
    plain->nodes = new_table(NODES_MAX * sizeof(*plain->nodes));
    plain->slots = new_table(SLOTS * sizeof(*plain->slots));
    plain->shapes.slots = new_table(HASH_SLOTS * sizeof(*plain->shapes.slots));
    if (is_consed)
        plain->trees.slots = new_table(HASH_SLOTS * sizeof(*plain->trees.slots));
    plain->bins = new_table(NODES_MAX * BINS * sizeof(*plain->bins));
    plain->nodes[0] = (struct node){.site = UINT32_MAX};
    plain->node_count = 1;
    lane_plain_choose(plain, 0);
    return plain;
}

void lane_plain_choose(struct lane_plain *plain, uint32_t number)
{
    struct stack **at = &plain->stacks[number % STACKS_MAX];

    if (!*at) {
        *at = calloc(1, sizeof(**at));
        CHECK(*at);
        (*at)->frames[0] = (struct frame){.site = UINT32_MAX};
    }
    plain->stack = *at;
}

void lane_plain_reset(struct lane_plain *plain)
{
    for (uint32_t i = 0; i < STACKS_MAX; i++)
        if (plain->stacks[i])
            plain->stacks[i]->depth = 0;
}

void lane_plain_free(struct lane_plain *plain)
{
    if (!plain)
        return;
    for (uint32_t i = 0; i < STACKS_MAX; i++)
        free(plain->stacks[i]);
    mr_pages_free(plain->nodes, NODES_MAX * sizeof(*plain->nodes));
    mr_pages_free(plain->slots, SLOTS * sizeof(*plain->slots));
    mr_pages_free(plain->shapes.slots, HASH_SLOTS * sizeof(*plain->shapes.slots));
    mr_pages_free(plain->trees.slots, HASH_SLOTS * sizeof(*plain->trees.slots));
    mr_pages_free(plain->bins, NODES_MAX * BINS * sizeof(*plain->bins));
    free(plain);
}

static MR_NOINLINE uint32_t find_child(struct lane_plain *plain, uint32_t parent,
                                       uint32_t site)
{
    uint64_t key = ((uint64_t)parent << 32 | site) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t at = (uint32_t)(key >> 40) % SLOTS, number;

    while ((number = plain->slots[at]) != 0 &&
           (plain->nodes[number].parent != parent || plain->nodes[number].site != site))
        at = (at + 1) % SLOTS;
    if (number == 0) {
        number = plain->node_count++;
        CHECK(number < NODES_MAX);
        plain->slots[at] = number;
        plain->nodes[number] = (struct node){.site = site,
                                             .parent = parent,
                                             .min = UINT64_MAX,
                                             .bins = plain->bins + number * BINS};
    }
    plain->nodes[parent].last_child = number;
    return number;
}

/* Apart, so that what is rare takes no registers from the loop. */
static MR_NOINLINE void insert(struct hashes *hashes, uint64_t hash, uint64_t at)
{
    if (++hashes->used > HASH_SLOTS / 2) {
        memset(hashes->slots, 0, HASH_SLOTS * sizeof(*hashes->slots));
        hashes->used = 1;
        at = hash >> 32;
    }
    hashes->slots[at % HASH_SLOTS] = hash;
    hashes->count++;
}

static MR_ALWAYS_INLINE void intern(struct hashes *hashes, uint64_t hash)
{
    uint64_t at = hash >> 32;

    while (hashes->slots[at % HASH_SLOTS] != 0 && hashes->slots[at % HASH_SLOTS] != hash)
        at++;
    if (MR_UNLIKELY(hashes->slots[at % HASH_SLOTS] != hash))
        insert(hashes, hash, at);
}

static MR_ALWAYS_INLINE uint64_t mix(uint64_t value)
{
    value *= UINT64_C(0xff51afd7ed558ccd);
    return value ^ value >> 32;
}

static MR_ALWAYS_INLINE uint32_t bin_of(uint64_t value)
{
    uint32_t top;

    if (value < PARTS)
        return (uint32_t)value;
    top = 63 - (uint32_t)MR_LEADING_ZEROS64(value);
    return (top - 2) * PARTS + (uint32_t)(value >> (top - 3) & (PARTS - 1));
}

static MR_ALWAYS_INLINE void count_call(struct node *node, uint64_t total, uint64_t self)
{
    node->count++;
    node->sum += total;
    node->self += self;
    node->min = total < node->min ? total : node->min;
    node->max = total > node->max ? total : node->max;
    node->bins[bin_of(total)]++;
}

/* A run of equal children is one. */
static MR_ALWAYS_INLINE void fold(struct frame *parent, uint64_t hash)
{
    if (hash == parent->last)
        return;
    parent->last = hash;
    parent->hash = mix(parent->hash ^ hash);
}

/* Twice, so that the loop does not ask. */
static MR_ALWAYS_INLINE void run(struct lane_plain *plain, const uint64_t *words,
                                 uint64_t count, bool is_consed)
{
    struct stack *stack = plain->stack;
    struct frame *top = &stack->frames[stack->depth];
    uint64_t time = stack->time;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t word = words[i];
        uint32_t site = (uint32_t)(word >> 32) & SITE_MASK;

        time += (uint32_t)word - (uint32_t)time;
        if ((word >> 62 & 1) == 0) {
            uint32_t node = plain->nodes[top->node].last_child;

            if (MR_UNLIKELY(plain->nodes[node].site != site))
                node = find_child(plain, top->node, site);
            CHECK(++top < stack->frames + DEPTH_MAX);
            *top = (struct frame){time, 0, site, 0, node, site};
            continue;
        }
        if (MR_UNLIKELY(top->site != site)) {
            plain->mismatches++;
            continue;
        }
        count_call(&plain->nodes[top->node], time - top->start,
                   time - top->start - top->child);
        top[-1].child += time - top->start;
        if (is_consed)
            intern(&plain->trees, mix(top->hash) | 1);
        if (--top != stack->frames)
            fold(top, mix(top[1].hash));
        else
            intern(&plain->shapes, mix(top[1].hash) | 1);
    }
    stack->depth = (uint32_t)(top - stack->frames);
    stack->time = time;
}

void lane_plain_run(struct lane_plain *plain, const uint64_t *words, uint64_t count)
{
    if (plain->trees.slots)
        run(plain, words, count, true);
    else
        run(plain, words, count, false);
}

uint64_t lane_plain_calls(const struct lane_plain *plain)
{
    uint64_t calls = 0;

    for (uint32_t i = 1; i < plain->node_count; i++)
        calls += plain->nodes[i].count;
    return calls;
}

uint32_t lane_plain_paths(const struct lane_plain *plain)
{
    return plain->node_count - 1;
}

uint64_t lane_plain_shapes(const struct lane_plain *plain)
{
    return plain->shapes.count;
}

uint64_t lane_plain_trees(const struct lane_plain *plain)
{
    return plain->trees.count;
}
