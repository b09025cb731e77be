/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of several parts, by recursion over all parts at once (docs/FORMAT.md section 8: part, joined shape). Each edge has one
 * end of each kind at most: the test's streams use no id twice.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference_private.h"

#define NODES_MAX 256u
enum { FLAG_MISSING = 1, FLAG_STUB = 2, FLAG_LARGE = 8 };

/* Of one joined shape and window; and of an edge of it, with its place. */
struct sum {
    struct ref_id shape, slowest;
    uint64_t window, place;
    uint64_t ok, failed, incomplete, clamped, first, last;
    uint64_t *times;
    size_t count;
    struct sum *next;
};

/* A part's place in its trace, or that of one which is missing. */
struct node {
    struct ref_id id;
    uint64_t size;
    struct node **children;
    bool *is_like_last;
};

static void *need(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static bool is_equal(struct ref_id a, struct ref_id b)
{
    return ref_id_compare(&a, &b) == 0;
}

static void link_parts(struct ref *ref)
{
    for (struct ref_part *from = ref->parts; from; from = from->next)
        for (uint32_t i = 0; i < from->out_count; i++)
            for (struct ref_part *to = ref->parts; to; to = to->next)
                if (to->in.kind && is_equal(to->in.key, from->out[i].key)) {
                    if (to->above || from->below[i])
                        abort(); /* an id came twice */
                    from->below[i] = to;
                    to->above = from;
                }
}

/* The part that nothing leads to; in a circle, the one with the smallest id. */
static struct ref_part *top_of(const struct ref *ref, struct ref_part *part,
                               bool *is_circle)
{
    struct ref_part *top = part;

    for (const struct ref_part *step = ref->parts; step && top->above; step = step->next)
        top = top->above; /* as many steps as there are parts: then it is in the circle */
    *is_circle = top->above != NULL;
    part = top;
    for (struct ref_part *at = part->above; *is_circle && at != part; at = at->above)
        if (ref_id_compare(&at->id, &top->id) < 0)
            top = at;
    return top;
}

static void free_node(struct node *node)
{
    free(node->children);
    free(node->is_like_last);
    free(node);
}

static uint8_t flags_of(const struct ref_part *part, bool is_large)
{
    if (!part)
        return FLAG_MISSING;
    return (uint8_t)((is_large ? FLAG_LARGE : 0) | (part->is_stub ? FLAG_STUB : 0));
}

/* `kinds`: of the edges to the children. */
static struct node *new_node(const struct ref_part *part, bool is_large,
                             struct node **children, const enum ref_edge_kind *kinds,
                             uint32_t count)
{
    struct ref_joined_child *folded = need(calloc(count + 1, sizeof(*folded)));
    struct node *node = need(calloc(1, sizeof(*node)));
    const struct ref_id zero = {{0}};
    uint32_t left = 0;

    node->children = need(calloc(count + 1, sizeof(struct node *)));
    node->is_like_last = need(calloc(count + 1, sizeof(bool)));
    node->size = 1;
    for (uint32_t i = 0; i < count; i++) {
        node->children[i] = children[i];
        if (left && folded[left - 1].kind == (uint8_t)kinds[i] &&
            is_equal(folded[left - 1].id, children[i]->id)) {
            folded[left - 1].is_run = node->is_like_last[i] = true;
            continue;
        }
        folded[left++] =
            (struct ref_joined_child){children[i]->id, (uint8_t)kinds[i], false};
        node->size += children[i]->size;
    }
    node->id = ref_id_joined(flags_of(part, is_large), part ? part->path : zero,
                             part && part->has_shape ? part->node : zero, folded, left);
    free(folded);
    return node;
}

/* The way to a child: an edge of `from`, which is not known where the child is the top of a trace without its root. */
struct step {
    const struct ref_part *from, *to;
    uint32_t out;
    enum ref_edge_kind kind;
};

struct steps {
    struct step *all;
    uint32_t count;
};

static void add_step(struct steps *steps, struct step step)
{
    steps->all = need(realloc(steps->all, (steps->count + 1) * sizeof(struct step)));
    steps->all[steps->count++] = step;
}

static bool is_beside(const struct ref_part *part, uint32_t out)
{
    return part && part->out[out].kind == REF_EDGE_NEXT;
}

/* A child, and behind it the call trees that followed it under one attach. */
static void add_steps(struct steps *steps, struct step step, const struct ref_part *top)
{
    add_step(steps, step);
    for (uint32_t i = 0; step.to && i < step.to->out_count; i++)
        if (is_beside(step.to, i))
            add_steps(
                steps,
                (struct step){.from = step.to,
                              .to = step.to->below[i] == top ? NULL : step.to->below[i],
                              .out = i,
                              .kind = REF_EDGE_NEXT},
                top);
}

static struct steps steps_below(const struct ref_part *part, const struct ref_part *top)
{
    struct steps steps = {NULL, 0};

    for (uint32_t i = 0; part && i < part->out_count; i++)
        if (!is_beside(part, i))
            add_steps(&steps,
                      (struct step){.from = part,
                                    .to = part->below[i] == top ? NULL : part->below[i],
                                    .out = i,
                                    .kind = part->out[i].kind},
                      top);
    return steps;
}

static struct node *build(const struct ref_part *part, const struct steps *steps,
                          const struct ref_part *top, bool is_large)
{
    struct node **children = need(calloc(steps->count + 1, sizeof(struct node *)));
    enum ref_edge_kind *kinds = need(calloc(steps->count + 1, sizeof(*kinds)));
    struct node *node;

    for (uint32_t i = 0; i < steps->count; i++) {
        struct steps below = steps_below(steps->all[i].to, top);

        kinds[i] = steps->all[i].kind;
        children[i] = build(steps->all[i].to, &below, top, false);
        free(below.all);
    }
    node = new_node(part, is_large, children, kinds, steps->count);
    free(children);
    free(kinds);
    return node;
}

/* Of a trace without its root, what led to the top is not seen. */
static struct node *build_trace(const struct ref_part *top, struct steps *steps,
                                bool is_large)
{
    const struct steps none = {NULL, 0};
    bool has_root = top->in.kind == REF_EDGE_NONE;
    struct node *node;

    if (!is_large) {
        if (has_root)
            *steps = steps_below(top, top);
        else
            add_steps(steps, (struct step){.to = top, .kind = top->in.kind}, top);
        return build(has_root ? top : NULL, steps, top, false);
    }
    node = build(top, &none, top, true);
    return has_root ? node : new_node(NULL, false, &node, &top->in.kind, 1);
}

static struct sum *sum_of(struct sum **list, struct ref_id shape, uint64_t window,
                          uint64_t place)
{
    while (*list && !((*list)->window == window && (*list)->place == place &&
                      is_equal((*list)->shape, shape)))
        list = &(*list)->next;
    if (!*list) {
        *list = need(calloc(1, sizeof(**list)));
        (*list)->shape = shape;
        (*list)->window = window;
        (*list)->place = place;
        (*list)->first = UINT64_MAX;
    }
    return *list;
}

static void add_time(struct sum *sum, uint64_t ns)
{
    sum->times = need(realloc(sum->times, (sum->count + 1) * sizeof(uint64_t)));
    sum->times[sum->count++] = ns;
}

struct counted {
    struct sum **sums;
    struct ref_id shape;
    uint64_t window;
    const struct ref_part *top;
};

/* Edges below a node at `place`; frees the nodes. */
static void count_edges(const struct counted *counted, const struct steps *steps,
                        struct node *node, uint64_t place)
{
    uint64_t next = place + 1, at = 0;

    for (uint32_t i = 0; i < steps->count; i++) {
        const struct step *step = &steps->all[i];
        struct steps below = steps_below(step->to, counted->top);

        if (!node->is_like_last[i]) {
            at = next;
            next += node->children[i]->size;
        }
        if (step->to && step->from) {
            struct sum *sum = sum_of(counted->sums, counted->shape, counted->window, at);
            uint64_t sent = step->from->out[step->out].ns;
            bool is_clamped = step->to->in.ns < sent;

            sum->clamped += is_clamped;
            add_time(sum, is_clamped ? 0 : step->to->in.ns - sent);
        }
        count_edges(counted, &below, node->children[i], at);
        free(below.all);
    }
    free_node(node);
}

static void free_nodes(struct node *node)
{
    for (uint32_t i = 0; node->children[i]; i++)
        free_nodes(node->children[i]);
    free_node(node);
}

/* Those of a trace, in a list by `group`. */
static struct ref_part *gather(struct ref_part *part, struct ref_part *list)
{
    if (!part || part->is_seen)
        return list;
    part->is_seen = true;
    part->group = list;
    list = part;
    for (uint32_t i = 0; i < part->out_count; i++)
        list = gather(part->below[i], list);
    return list;
}

static void count_times(struct sum *sum, const struct ref_part *top,
                        const struct ref_part *parts, bool is_incomplete, uint64_t end)
{
    struct ref_id trace = top->trace;
    uint64_t took = end - top->start, most = 0;

    for (const struct ref_part *part = parts; part; part = part->group)
        if (!top->has_trace && ref_id_compare(&part->trace, &trace) > 0)
            trace = part->trace;
    sum->first = end < sum->first ? end : sum->first;
    sum->last = end > sum->last ? end : sum->last;
    sum->incomplete += is_incomplete;
    if (is_incomplete)
        return;
    sum->failed += top->status == REF_FAILED;
    sum->ok += top->status == REF_OK;
    for (size_t i = 0; i < sum->count; i++)
        most = sum->times[i] > most ? sum->times[i] : most;
    if (sum->count == 0 || took > most ||
        (took == most && ref_id_compare(&trace, &sum->slowest) > 0))
        sum->slowest = trace;
    add_time(sum, took);
}

static void count_trace(struct ref *ref, struct sum **sums, struct ref_part *of)
{
    bool is_circle, is_incomplete, is_large = false;
    struct ref_part *top = top_of(ref, of, &is_circle), *parts = gather(top, NULL);
    struct steps steps = {NULL, 0};
    struct node *node = build_trace(top, &steps, false);
    struct counted counted = {.sums = sums, .top = top};
    uint64_t end = top->end;

    is_incomplete = is_circle || top->in.kind != REF_EDGE_NONE;
    for (const struct ref_part *part = parts; part; part = part->group) {
        end = part->end > end ? part->end : end;
        is_incomplete |= part->status == REF_INCOMPLETE;
        for (uint32_t i = 0; i < part->out_count; i++)
            is_incomplete |= !part->below[i];
    }
    if (node->size > NODES_MAX) {
        is_large = true;
        free_nodes(node);
        node = build_trace(top, &steps, true);
    }
    counted.window = end / 1000000000 / ref->options.window_s * ref->options.window_s;
    counted.shape = node->id;
    count_times(sum_of(sums, counted.shape, counted.window, 0), top, parts, is_incomplete,
                end);
    if (is_large)
        free_nodes(node);
    else
        count_edges(&counted, &steps, node, 0);
    free(steps.all);
}

/* Lines. */

static void write_sum(struct test_text *text, const struct sum *sum)
{
    char id[REF_ID_TEXT], slowest[REF_ID_TEXT], times[REF_TIMES_TEXT];
    char histogram[REF_HISTOGRAM_TEXT];

    ref_times_text(times, sum->times, sum->count);
    ref_histogram_text(histogram, sum->times, sum->count);
    (void)ref_id_text(sum->shape, id);
    if (sum->place > 0)
        test_text_add(
            text, "edge %s @%" PRIu64 " %" PRIu64 " = %zu %" PRIu64 " time=%s hist=%s",
            id, sum->window, sum->place, sum->count, sum->clamped, times, histogram);
    else
        test_text_add(text,
                      "joined %s @%" PRIu64 " = %" PRIu64 " %" PRIu64 " %" PRIu64
                      " %" PRIu64 " %" PRIu64 " slowest=%s time=%s hist=%s",
                      id, sum->window, sum->ok, sum->failed, sum->incomplete, sum->first,
                      sum->last, ref_id_text(sum->slowest, slowest), times, histogram);
}

static size_t edge_text(char *out, size_t size, const struct ref_part *part,
                        const struct ref_edge *edge)
{
    char id[REF_ID_TEXT];

    return (size_t)snprintf(out, size, " %d:%.12s+%" PRId64, (int)edge->kind,
                            ref_id_text(edge->key, id),
                            (int64_t)(edge->ns - part->start));
}

static void write_part(struct test_text *text, const struct ref_part *part)
{
    char id[REF_ID_TEXT], trace[REF_ID_TEXT], path[REF_ID_TEXT], node[REF_ID_TEXT];
    char line[64 * 64] = "";
    size_t size = 0;

    if (part->in.kind)
        size = edge_text(line, sizeof(line), part, &part->in);
    size += (size_t)snprintf(line + size, sizeof(line) - size, " ->");
    for (uint32_t i = 0; i < part->out_count; i++)
        size += edge_text(line + size, sizeof(line) - size, part, &part->out[i]);
    test_text_add(text, "part %s = %s %s %s %d %d %" PRIu64 " %" PRIu64 "%s",
                  ref_id_text(part->id, id), ref_id_text(part->trace, trace),
                  ref_id_text(part->path, path),
                  ref_id_text(part->has_shape ? part->node : (struct ref_id){{0}}, node),
                  (int)part->status, (part->is_stub ? 1 : 0) | (part->is_cut ? 2 : 0),
                  part->start, part->end, line);
}

void ref_write_parts(struct ref *ref, struct test_text *text)
{
    struct sum *sums = NULL;

    link_parts(ref);
    for (struct ref_part *part = ref->parts; part; part = part->next) {
        write_part(text, part);
        if (!part->is_seen)
            count_trace(ref, &sums, part);
    }
    while (sums) {
        struct sum *next = sums->next;

        write_sum(text, sums);
        free(sums->times);
        free(sums);
        sums = next;
    }
    while (ref->parts) {
        struct ref_part *next = ref->parts->next;

        free(ref->parts);
        ref->parts = next;
    }
}
