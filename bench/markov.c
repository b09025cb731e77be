/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/markov.h"

#include "base/table.h"
#include "bench/random.h"
#include "net/wire.h"

#include <stdlib.h>

#define LIMIT (UINT32_C(1) << 22) /* of paths, edges, functions */
#define SHAPES_MAX (UINT32_C(1) << 21)
#define TRIES_MAX 100000u
#define CHECK(condition) ((condition) ? (void)0 : abort())

/* A path; number 0 is what all call trees lie below. */
struct path {
    uint32_t parent, function, depth;
};

/* Where a thread is: on path `path`; `last`: the path that it called last there, 0 if none. */
struct place {
    uint32_t path, last;
};

/* From state `from` (state_of()) to a call of path `to`, or, 0, to the end of the call at hand; `count`: how often. */
struct edge {
    uint32_t from, to;
    uint64_t count;
};

/* What is folded of a call whose children are made. */
struct fold {
    uint64_t hash, last;
};

struct mr_markov {
    struct mr_table functions, paths_by_key, edges_by_key;
    uint32_t function_count;
    struct path *paths;
    uint32_t path_count, path_capacity;
    struct edge *edges; /* sealed: by state, the most frequent first */
    uint32_t edge_count, edge_capacity;
    struct place places[MR_MARKOV_STACKS];
    uint32_t *firsts; /* of each state's edges; one more at the end */
    struct fold *folds;
    struct mr_markov_step *steps;
    uint32_t step_count;
    struct mr_table shapes; /* that were made */
};

static void *need(void *memory)
{
    CHECK(memory);
    return memory;
}

/* The number behind a key, which is `next` if it is new. */
static uint32_t number_of(struct mr_table *table, uint64_t hi, uint64_t lo, uint32_t next)
{
    uint32_t index;

    CHECK(mr_table_find_or_add(table, (struct mr_id){hi, lo}, next, &index) == MR_OK);
    return index;
}

/* Room for one item more. */
static void *grow(void *items, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    *capacity = *capacity ? 2 * *capacity : 1024;
    return need(realloc(items, *capacity * size));
}

/* After the enter of a path, or, where a call of it just ended, after that. */
static uint32_t state_of(const struct place *place)
{
    return place->last ? 2 * place->last + 1 : 2 * place->path;
}

struct mr_markov *mr_markov_new(void)
{
    struct mr_markov *markov = need(calloc(1, sizeof(*markov)));

    mr_table_init(&markov->functions, LIMIT);
    mr_table_init(&markov->paths_by_key, LIMIT);
    mr_table_init(&markov->edges_by_key, LIMIT);
    mr_table_init(&markov->shapes, SHAPES_MAX);
    markov->paths = grow(NULL, 0, &markov->path_capacity, sizeof(*markov->paths));
    markov->paths[markov->path_count++] = (struct path){0};
    return markov;
}

static uint32_t child_of(struct mr_markov *markov, uint32_t parent, uint32_t site)
{
    uint32_t function = number_of(&markov->functions, 0, site, markov->function_count);
    uint32_t path;

    markov->function_count += function == markov->function_count;
    path = number_of(&markov->paths_by_key, parent, function, markov->path_count);
    if (path < markov->path_count)
        return path;
    markov->paths = grow(markov->paths, markov->path_count, &markov->path_capacity,
                         sizeof(*markov->paths));
    markov->paths[markov->path_count++] =
        (struct path){parent, function, markov->paths[parent].depth + 1};
    return path;
}

static void count_edge(struct mr_markov *markov, uint32_t from, uint32_t to)
{
    uint32_t edge = number_of(&markov->edges_by_key, from, to, markov->edge_count);

    if (edge == markov->edge_count) {
        markov->edges = grow(markov->edges, markov->edge_count, &markov->edge_capacity,
                             sizeof(*markov->edges));
        markov->edges[markov->edge_count++] = (struct edge){from, to, 0};
    }
    markov->edges[edge].count++;
}

static void enter(struct mr_markov *markov, struct place *place, uint32_t path)
{
    count_edge(markov, state_of(place), path);
    *place = (struct place){path, 0};
}

/* Call trees do not hang on the one before: what comes next is drawn as if nothing had been. */
static void leave(struct mr_markov *markov, struct place *place)
{
    uint32_t parent = markov->paths[place->path].parent;

    count_edge(markov, state_of(place), 0);
    *place = (struct place){parent, parent ? place->path : 0};
}

void mr_markov_learn(struct mr_markov *markov, uint32_t stack, const uint64_t *words,
                     uint64_t count)
{
    struct place *place = &markov->places[stack];

    for (uint64_t i = 0; i < count; i++)
        if ((words[i] & MR_WORD_EXIT) == 0)
            enter(markov, place, child_of(markov, place->path, mr_word_site(words[i])));
        else if (place->path)
            leave(markov, place);
}

static int compare_edges(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

static uint32_t deepest(const struct mr_markov *markov)
{
    uint32_t depth = 0;

    for (uint32_t i = 0; i < markov->path_count; i++)
        if (markov->paths[i].depth > depth)
            depth = markov->paths[i].depth;
    return depth;
}

enum mr_status mr_markov_seal(struct mr_markov *markov, uint32_t functions)
{
    uint32_t states = 2 * markov->path_count, depth = deepest(markov), edge = 0;

    if (markov->function_count > functions)
        return MR_ELIMIT;
    if (depth == 0)
        return MR_ENOTFOUND;
    qsort(markov->edges, markov->edge_count, sizeof(*markov->edges), compare_edges);
    markov->firsts = need(calloc(states + 1, sizeof(*markov->firsts)));
    for (uint32_t state = 0; state <= states; state++) {
        while (edge < markov->edge_count && markov->edges[edge].from < state)
            edge++;
        markov->firsts[state] = edge;
    }
    markov->folds = need(calloc(depth + 1, sizeof(*markov->folds)));
    /* Behind the last call that may begin, those that are open end. */
    markov->steps =
        need(malloc(2 * (size_t)MR_MARKOV_CALLS_MAX * sizeof(*markov->steps)));
    return MR_OK;
}

uint32_t mr_markov_paths(const struct mr_markov *markov)
{
    return markov->path_count - 1;
}

/* What follows: a path that is called, or 0. */
static uint32_t draw(const struct mr_markov *markov, uint32_t state, uint64_t *random)
{
    const struct edge *edge = markov->edges + markov->firsts[state];
    const struct edge *end = markov->edges + markov->firsts[state + 1];
    uint64_t sum = 0, at;

    for (const struct edge *i = edge; i < end; i++)
        sum += i->count;
    if (sum == 0) /* the recording ended there */
        return 0;
    at = mr_random_next(random) % sum;
    while (at >= edge->count)
        at -= edge++->count;
    return edge->to;
}

static void put(struct mr_markov *markov, const struct path *path, bool is_exit)
{
    struct fold *fold = &markov->folds[path->depth], *above = fold - 1;
    uint64_t hash;

    markov->steps[markov->step_count++] =
        (struct mr_markov_step){path->function, is_exit};
    if (!is_exit) {
        *fold = (struct fold){path->function, 0};
        return;
    }
    hash = mr_random_of(fold->hash);
    if (hash != above->last)
        *above = (struct fold){mr_random_of(above->hash ^ hash), hash};
}

/* One call tree; the hash of its shape. */
static uint64_t make_tree(struct mr_markov *markov, uint64_t *random)
{
    struct place place = {0, 0};
    uint32_t calls = 0, path;

    markov->step_count = 0;
    markov->folds[0] = (struct fold){0, 0};
    do {
        path = calls < MR_MARKOV_CALLS_MAX ? draw(markov, state_of(&place), random) : 0;
        if (path) {
            put(markov, &markov->paths[path], false);
            place = (struct place){path, 0};
            calls++;
        } else {
            uint32_t parent = markov->paths[place.path].parent;

            put(markov, &markov->paths[place.path], true);
            place = (struct place){parent, place.path};
        }
    } while (place.path);
    return markov->folds[0].hash;
}

uint32_t mr_markov_make(struct mr_markov *markov, uint64_t *random,
                        const struct mr_markov_step **steps)
{
    struct mr_id shape = {0, 0};
    uint32_t tries = 0;

    do {
        CHECK(tries++ < TRIES_MAX);
        shape.lo = make_tree(markov, random);
    } while (mr_table_find(&markov->shapes, shape) != MR_TABLE_NONE);
    if (markov->shapes.count == SHAPES_MAX)
        mr_table_clear(&markov->shapes);
    CHECK(mr_table_put(&markov->shapes, shape, 0) == MR_OK);
    *steps = markov->steps;
    return markov->step_count;
}

void mr_markov_free(struct mr_markov *markov)
{
    if (!markov)
        return;
    mr_table_fini(&markov->functions);
    mr_table_fini(&markov->paths_by_key);
    mr_table_fini(&markov->edges_by_key);
    mr_table_fini(&markov->shapes);
    free(markov->paths);
    free(markov->edges);
    free(markov->firsts);
    free(markov->folds);
    free(markov->steps);
    free(markov);
}
