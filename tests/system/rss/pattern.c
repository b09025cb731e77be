/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/system/rss/pattern.h"

#define SHAPES_PER_ROOT 16
#define SHORT_MAX 4 /* children of the root of a trace that comes back */
#define LONG_MIN 16 /* and of one that does not */
#define LONG_MAX 512
#define CHILDREN_MAX 6

/* splitmix64 */
static uint64_t mix(uint64_t value)
{
    value += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

static uint64_t next_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return mix(*state);
}

/* Nodes get their children in the order of their numbers, so parents come before children. */
void pattern_init(struct pattern *pattern, uint64_t long_shapes,
                  void (*emit)(void *, uint32_t, int), void *context)
{
    uint32_t used = PATTERN_ROOTS;

    pattern->random = 1;
    pattern->long_shapes = long_shapes;
    pattern->emit = emit;
    pattern->context = context;
    for (uint32_t i = 0; i < PATTERN_PATHS; i++) {
        struct pattern_node *node = &pattern->nodes[i];
        uint32_t wanted =
            i < PATTERN_ROOTS ? CHILDREN_MAX : (uint32_t)(mix(i) % CHILDREN_MAX);
        node->site =
            i < PATTERN_ROOTS ? i : (uint32_t)(mix(i + PATTERN_PATHS) % PATTERN_SITES);
        node->first_child = used;
        node->child_count = used + wanted <= PATTERN_PATHS ? wanted : 0;
        used += node->child_count;
    }
}

/* Of a node's two variants each calls three quarters of its children, each once or twice. */
static void call(struct pattern *pattern, uint32_t number, uint64_t variant)
{
    const struct pattern_node *node = &pattern->nodes[number];

    pattern->emit(pattern->context, node->site, 0);
    for (uint32_t i = 0; i < node->child_count; i++) {
        uint32_t child = node->first_child + i;
        uint64_t bits = mix((uint64_t)child << 1 | variant);
        if (bits % 4 == 0)
            continue;
        for (uint64_t repeat = 1 + (bits >> 8 & 1); repeat > 0; repeat--)
            call(pattern, child, bits >> 1 & 1);
    }
    pattern->emit(pattern->context, node->site, 1);
}

static void call_root(struct pattern *pattern, uint32_t root, uint64_t seed,
                      uint64_t length)
{
    const struct pattern_node *node = &pattern->nodes[root];

    pattern->emit(pattern->context, node->site, 0);
    while (length-- > 0) {
        uint64_t bits = next_random(&seed);
        call(pattern, node->first_child + (uint32_t)(bits >> 8) % node->child_count,
             bits & 1);
    }
    pattern->emit(pattern->context, node->site, 1);
}

static void call_long(struct pattern *pattern, uint64_t bits)
{
    uint64_t seed = pattern->long_shapes ? mix(bits % pattern->long_shapes) : bits;

    call_root(pattern, (uint32_t)(seed >> 32) % PATTERN_ROOTS, seed,
              LONG_MIN + (seed >> 16) % (LONG_MAX - LONG_MIN));
}

void pattern_trace(struct pattern *pattern)
{
    uint64_t bits = next_random(&pattern->random);
    uint32_t root = (uint32_t)(bits >> 32) % PATTERN_ROOTS;
    uint64_t shape = bits % SHAPES_PER_ROOT;

    if (bits >> 8 & 0x3f)
        call_root(pattern, root, mix(root * SHAPES_PER_ROOT + shape),
                  1 + shape % SHORT_MAX);
    else
        call_long(pattern, bits >> 14);
}
