/* SPDX-License-Identifier: Apache-2.0 */
#include "truth.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NODES_MAX (1u << 16)
#define FRAMES_MAX (1u << 17)
#define NAME_SIZE 24
#define CALL_DEPTH_MAX 40
#define FLOATING_CALLS 3
/* MR_PATHS_DEPTH_MAX of pipeline/paths.h: below, calls of a path are counted as if they were beside one another. */
#define LEVELS_MAX 4096

enum { ROOT, OUTER, BASES };

struct node {
    uint32_t parent, child, next;
    char name[NAME_SIZE];
    uint64_t ends[TRUTH_ENDS];
};

struct frame {
    uint32_t node;
    uint16_t level;
    bool is_outer, is_failed;
};

struct track {
    struct track *next;
    bool is_floating;
    uint32_t nodes_count, depth;
    uint64_t random, calls_left;
    struct node nodes[NODES_MAX];
    struct frame frames[FRAMES_MAX];
};

static _Atomic(struct track *) tracks;
static __thread struct track *of_thread, *of_handlers;
static __thread bool is_floating;

static void fail(const char *what)
{
    fprintf(stderr, "truth: %s\n", what);
    abort();
}

static void forget(struct track *track)
{
    memset(track->nodes, 0, BASES * sizeof(track->nodes[0]));
    track->nodes_count = BASES;
    track->depth = 0;
}

/* Mapped, as a handler may come in the middle of malloc(); of its pages only those are there that are used. */
static struct track *track_new(void)
{
    struct track *track = mmap(NULL, sizeof(*track), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (track == MAP_FAILED)
        fail("no memory");
    forget(track);
    track->is_floating = is_floating;
    track->random = 1;
    track->next = atomic_load(&tracks);
    while (!atomic_compare_exchange_weak(&tracks, &track->next, track))
        ;
    return track;
}

static struct track *self(void)
{
    struct track **own = is_floating ? &of_handlers : &of_thread;

    if (!*own)
        *own = track_new();
    return *own;
}

static uint32_t child_of(struct track *track, uint32_t parent, const char *name)
{
    struct node *nodes = track->nodes;
    uint32_t child = nodes[parent].child;

    while (child && strcmp(nodes[child].name, name) != 0)
        child = nodes[child].next;
    if (child)
        return child;
    if (track->nodes_count == NODES_MAX || strlen(name) >= NAME_SIZE)
        fail("too many paths, or a name that is too long");
    child = track->nodes_count++;
    memset(&nodes[child], 0, sizeof(nodes[child]));
    strcpy(nodes[child].name, name);
    nodes[child].parent = parent;
    nodes[child].next = nodes[parent].child;
    nodes[parent].child = child;
    return child;
}

static void open_call(const char *name, uint32_t base)
{
    struct track *track = self();
    const struct frame *top = track->depth ? &track->frames[track->depth - 1] : NULL;
    struct frame frame = {base, 1, base == OUTER, false};

    if (top && top->is_outer == frame.is_outer) {
        frame.node = top->node;
        frame.level = (uint16_t)(top->level + 1);
        if (frame.level > LEVELS_MAX) {
            frame.node = track->nodes[top->node].parent;
            frame.level = LEVELS_MAX;
        }
    }
    if (track->depth == FRAMES_MAX)
        fail("calls are too deep");
    frame.node = child_of(track, frame.node, name);
    track->frames[track->depth++] = frame;
}

void truth_enter(const char *name)
{
    open_call(name, ROOT);
}

void truth_enter_outer(const char *name)
{
    open_call(name, OUTER);
}

/* With none open: what a forked child leaves that its parent has entered. */
void truth_leave(enum truth_end end)
{
    struct track *track = self();
    const struct frame *top;

    if (track->depth == 0)
        return;
    top = &track->frames[--track->depth];
    track->nodes[top->node].ends[top->is_failed ? TRUTH_FAILED : end]++;
}

void truth_fail(bool is_failed)
{
    struct track *track = self();

    if (track->depth)
        track->frames[track->depth - 1].is_failed = is_failed;
}

unsigned truth_depth(void)
{
    return self()->depth;
}

void truth_land(unsigned depth)
{
    while (self()->depth > depth)
        truth_leave(TRUTH_FAILED);
}

void truth_float_begin(void)
{
    is_floating = true;
    self()->calls_left = FLOATING_CALLS;
}

void truth_float_end(void)
{
    is_floating = false;
}

bool truth_is_floating(void)
{
    return is_floating;
}

/* xorshift (Marsaglia 2003). */
uint32_t truth_random(uint32_t count)
{
    uint64_t *random = &self()->random;

    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (uint32_t)(*random >> 20) % count;
}

void truth_seed(uint64_t seed, uint64_t calls)
{
    struct track *track = self();

    track->random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    track->calls_left = calls;
}

bool truth_may_call(int depth)
{
    struct track *track = self();

    if (depth > CALL_DEPTH_MAX || track->calls_left == 0)
        return false;
    track->calls_left--;
    return true;
}

bool truth_has_calls(void)
{
    return self()->calls_left > 0;
}

/* Depth first; a path may be 4096 deep, so without recursion. */
static void write_tree(FILE *file, const struct node *nodes, uint32_t base,
                       const char *tree)
{
    uint32_t at = nodes[base].child;
    unsigned depth = 1;

    while (at && at != base) {
        const struct node *node = &nodes[at];

        fprintf(file, "%s %u %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", tree, depth,
                node->name, node->ends[TRUTH_OK], node->ends[TRUTH_FAILED],
                node->ends[TRUTH_INCOMPLETE]);
        if (node->child) {
            at = node->child;
            depth++;
            continue;
        }
        while (at != base && !nodes[at].next) {
            at = nodes[at].parent;
            depth--;
        }
        if (at != base)
            at = nodes[at].next;
    }
}

static void write_track(FILE *file, struct track *track)
{
    for (uint32_t i = 0; i < track->depth; i++)
        track->nodes[track->frames[i].node].ends[TRUTH_INCOMPLETE]++;
    write_tree(file, track->nodes, ROOT, track->is_floating ? "floating" : "root");
    write_tree(file, track->nodes, OUTER, "outer");
}

/* Of all the program's destructors the last; no handler comes after it. */
__attribute__((destructor(101))) static void write_all(void)
{
    const char *folder = getenv("TRUTH_FOLDER");
    char path[4096];
    sigset_t all;
    FILE *file;

    sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    if (!folder)
        return;
    (void)snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
    file = fopen(path, "w");
    if (!file)
        fail("cannot write");
    for (struct track *track = atomic_load(&tracks); track; track = track->next)
        write_track(file, track);
    if (fclose(file))
        fail("cannot write");
}

/* The child has one thread, with no call open. */
static void forked(void)
{
    struct track *own = of_thread;

    of_handlers = NULL;
    atomic_store(&tracks, own);
    if (own) {
        own->next = NULL;
        forget(own);
    }
}

__attribute__((constructor(101))) static void begin(void)
{
    if (pthread_atfork(NULL, NULL, forked))
        fail("no memory");
}
