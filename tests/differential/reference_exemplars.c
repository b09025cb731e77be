/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which traces are kept with their calls, and which calls (docs/FORMAT.md section 8, docs/why, exemplars): of every shape, and of
 * the traces without one, the first and the slowest; of each the longest calls, all of them sorted.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference_private.h"

#define LEVELS_MAX 4096u /* deeper calls are counted alone */

enum reason { FIRST, SLOWEST, REASONS };

/* The best trace so far, and its line. */
struct best {
    uint64_t start, took, before;
    uint32_t stream;
    char *text;
};

struct ref_exemplars {
    bool has_shape, is_incomplete;
    struct ref_id shape;
    struct best best[REASONS];
    struct ref_exemplars *next;
};

/* A call of the trace at hand. */
struct listed {
    const struct ref_call *call;
    uint32_t depth;
    size_t number, end; /* end: of the calls below it */
    bool is_kept;
};

struct list {
    struct listed *items;
    size_t count, capacity;
};

static void *need(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static void list_calls(struct list *list, const struct ref_call *call, uint32_t depth)
{
    size_t at = list->count++;

    if (at == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 64;
        list->items = need(realloc(list->items, list->capacity * sizeof(*list->items)));
    }
    list->items[at] = (struct listed){.call = call, .depth = depth, .number = at};
    for (const struct ref_call *child = call->first; child; child = child->next)
        if (!child->is_root)
            list_calls(list, child, depth + 1);
    list->items[at].end = list->count;
}

static uint64_t took(const struct ref_call *call)
{
    return call->leave - call->enter;
}

static int longest_first(const void *a, const void *b)
{
    const struct listed *left = *(struct listed *const *)a;
    const struct listed *right = *(struct listed *const *)b;

    if (took(left->call) != took(right->call))
        return took(left->call) > took(right->call) ? -1 : 1;
    return left->number < right->number ? -1 : 1;
}

static void choose(struct list *list, uint32_t limit)
{
    struct listed **order = need(malloc(list->count * sizeof(*order)));
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].depth < LEVELS_MAX)
            order[count++] = &list->items[i];
    qsort(order, count, sizeof(*order), longest_first);
    for (size_t i = 0; i < count && i < limit; i++)
        order[i]->is_kept = true;
    free(order);
}

static size_t put_call(char *out, size_t room, const struct ref *ref,
                       const struct list *list, size_t at)
{
    const struct listed *item = &list->items[at];
    const struct ref_call *call = item->call;
    uint64_t elided = 0, elided_ns = 0;
    char site[REF_ID_TEXT];

    for (size_t i = at + 1; i < item->end; i = list->items[i].end)
        if (!list->items[i].is_kept) {
            elided += list->items[i].end - i;
            elided_ns += took(list->items[i].call);
        }
    return (size_t)snprintf(
        out, room, "; %u %.8s %" PRIu64 "+%" PRIu64 " %d-%" PRIu64 ",%" PRIu64,
        item->depth, ref_id_text(ref->sites[call->site].id, site),
        call->enter - list->items[0].call->enter, took(call),
        (call->is_failed ? 1 : 0) | (call->is_incomplete || call->is_unknown ? 2 : 0) |
            (call->is_unwound ? 4 : 0),
        elided, elided_ns);
}

static char *describe(const struct ref *ref, const struct ref_stream *stream,
                      const struct ref_call *root, bool is_incomplete)
{
    struct list list = {0};
    size_t size, room;
    char *text;
    int status = root->is_failed || root->is_unwound;

    list_calls(&list, root, 0);
    choose(&list, ref->options.exemplar_calls);
    room = 200 + 150 * (size_t)ref->options.exemplar_calls;
    text = need(malloc(room));
    size = (size_t)snprintf(text, room, "%d %u %" PRIu64 " %" PRIu64 " %zu",
                            is_incomplete ? 2 : status, stream->number, root->before,
                            root->enter, list.count);
    for (size_t i = 0; i < list.count; i++)
        if (list.items[i].is_kept)
            size += put_call(text + size, room - size, ref, &list, i);
    free(list.items);
    return text;
}

static bool is_better(const struct best *a, const struct best *b, enum reason reason)
{
    if (reason == SLOWEST && a->took != b->took)
        return a->took > b->took;
    if (a->start != b->start)
        return a->start < b->start;
    if (a->stream != b->stream)
        return a->stream < b->stream;
    return a->before < b->before;
}

static struct ref_exemplars *place_of(struct ref_exemplars **list,
                                      const struct ref_id *shape, bool is_incomplete)
{
    for (; *list; list = &(*list)->next)
        if ((*list)->is_incomplete == is_incomplete &&
            (*list)->has_shape == (shape != NULL) &&
            (!shape || ref_id_compare(&(*list)->shape, shape) == 0))
            return *list;
    *list = need(calloc(1, sizeof(**list)));
    (*list)->is_incomplete = is_incomplete;
    (*list)->has_shape = shape != NULL;
    if (shape)
        (*list)->shape = *shape;
    return *list;
}

void ref_keep_trace(struct ref *ref, struct ref_exemplars **list,
                    const struct ref_stream *stream, const struct ref_call *root,
                    const struct ref_id *shape)
{
    bool is_incomplete = root->is_broken || root->is_incomplete || root->is_unknown;
    struct ref_exemplars *place;
    struct best given = {.start = root->enter,
                         .took = took(root),
                         .before = root->before,
                         .stream = stream->number};

    if (ref->options.exemplar_calls == 0)
        return;
    place = place_of(list, shape, is_incomplete);
    for (enum reason reason = FIRST; reason < REASONS; reason++) {
        struct best *best = &place->best[reason];

        if (best->text && !is_better(&given, best, reason))
            continue;
        free(best->text);
        *best = given;
        best->text = describe(ref, stream, root, is_incomplete);
    }
}

static void write_one(struct test_text *text, const char *path,
                      const struct ref_exemplars *of, int why, const struct best *best)
{
    char id[REF_ID_TEXT] = "-";

    if (of->has_shape)
        (void)ref_id_text(of->shape, id);
    test_text_add(text, "exemplar %s %s why=%d %s", path, id, why, best->text);
}

void ref_write_exemplars(struct test_text *text, const char *path,
                         struct ref_exemplars *list)
{
    while (list) {
        struct ref_exemplars *next = list->next;
        struct best *first = &list->best[FIRST], *slowest = &list->best[SLOWEST];

        if (strcmp(first->text, slowest->text) == 0) {
            write_one(text, path, list, 3, first);
        } else {
            write_one(text, path, list, 1, first);
            write_one(text, path, list, 2, slowest);
        }
        free(first->text);
        free(slowest->text);
        free(list);
        list = next;
    }
}
