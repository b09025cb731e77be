/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics over calls that have ended, by recursion; every time is kept. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference_private.h"

#define PATH_DEPTH_MAX 4096u
#define COVERAGES 4
#define SLOTS 4096u

enum coverage { WHOLE, FOLDED, PATHS, INCOMPLETE };

/* What one line needs. */
struct tally {
    uint64_t window;
    struct ref_id shape; /* of shapes */
    uint64_t ok, failed, incomplete, calls, folded, first, last;
    uint64_t *selves, *totals;
    size_t count, capacity;
    uint64_t coverage[COVERAGES][3];
    struct tally *next;
};

/* A path, by its site below its parent. */
struct path {
    struct path *parent, *next, *children; /* next: of its parent's */
    struct ref_id id;
    uint32_t site, depth;
    bool is_outer;
    struct tally *windows, *shapes, *entries;
    struct ref_exemplars *exemplars;
};

struct ref_rows {
    struct path entries,
        outers; /* what stands above all entry points, and all outer frames */
    bool is_ready;
};

struct shape {
    struct ref_id id;
    uint64_t calls;
    bool is_folded, is_over;
};

static void *need(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

struct ref_rows *ref_rows_new(void)
{
    return need(calloc(1, sizeof(struct ref_rows)));
}

static struct ref_rows *rows_of(struct ref *ref)
{
    struct ref_rows *rows = ref->rows;

    if (!rows->is_ready) {
        rows->entries.id = rows->outers.id =
            ref_id_scope(ref->options.app, ref->options.version);
        rows->outers.is_outer = true;
        rows->is_ready = true;
    }
    return rows;
}

static struct path *path_below(struct ref *ref, struct path *parent, uint32_t site)
{
    struct path **at;

    if (parent->depth == PATH_DEPTH_MAX)
        parent = parent->parent;
    for (at = &parent->children; *at; at = &(*at)->next)
        if ((*at)->site == site)
            return *at;
    *at = need(calloc(1, sizeof(**at)));
    **at = (struct path){
        .parent = parent,
        .id = ref_id_path(parent->id, ref->sites[site].id, parent->is_outer),
        .site = site,
        .depth = parent->depth + 1,
        .is_outer = parent->is_outer};
    return *at;
}

static struct tally *tally_of(struct tally **list, uint64_t window,
                              const struct ref_id *shape)
{
    while (*list && ((*list)->window != window ||
                     (shape && ref_id_compare(&(*list)->shape, shape) != 0)))
        list = &(*list)->next;
    if (!*list) {
        *list = need(calloc(1, sizeof(**list)));
        (*list)->window = window;
        (*list)->first = UINT64_MAX;
        if (shape)
            (*list)->shape = *shape;
    }
    return *list;
}

static uint64_t window_of(const struct ref *ref, uint64_t ns)
{
    return ns / 1000000000 / ref->options.window_s * ref->options.window_s;
}

static void add_times(struct tally *tally, uint64_t self, uint64_t total)
{
    if (tally->count == tally->capacity) {
        tally->capacity = tally->capacity ? 2 * tally->capacity : 16;
        tally->selves = need(realloc(tally->selves, tally->capacity * sizeof(uint64_t)));
        tally->totals = need(realloc(tally->totals, tally->capacity * sizeof(uint64_t)));
    }
    tally->selves[tally->count] = self;
    tally->totals[tally->count++] = total;
}

bool ref_is_timed(const struct ref_call *call)
{
    return !call->is_incomplete && !call->is_unknown;
}

static uint64_t self_of(const struct ref_call *call)
{
    uint64_t self = call->leave - call->enter;

    for (const struct ref_call *child = call->first; child; child = child->next)
        if (ref_is_timed(child))
            self -= child->leave - child->enter;
    return self;
}

static void count_status(struct tally *tally, const struct ref_call *call)
{
    if (call->is_failed || call->is_unwound)
        tally->failed++;
    else
        tally->ok++;
}

static void count_path(struct ref *ref, const struct ref_call *call, struct path *path)
{
    struct tally *tally = tally_of(&path->windows, window_of(ref, call->leave), NULL);

    if (!ref_is_timed(call)) {
        tally->incomplete++;
        return;
    }
    count_status(tally, call);
    add_times(tally, self_of(call), call->leave - call->enter);
}

/* Shapes. */

static int compare_children(const void *a, const void *b)
{
    const struct ref_child *left = a, *right = b;

    return ref_id_compare(&left->id, &right->id);
}

static bool is_same(const struct ref_child *a, const struct ref_child *b)
{
    return ref_id_compare(&a->id, &b->id) == 0;
}

/* Calls of one site that some calls made. */
struct same {
    const struct ref_call **calls;
    size_t count;
};

static void add_same(const struct ref *ref, struct same *groups, size_t *count,
                     const struct ref_call *call)
{
    size_t at = 0;

    while (at < *count && ref_id_compare(&ref->sites[groups[at].calls[0]->site].id,
                                         &ref->sites[call->site].id) != 0)
        at++;
    if (at == *count)
        groups[(*count)++] = (struct same){.calls = NULL};
    groups[at].calls = need(
        realloc(groups[at].calls, (groups[at].count + 1) * sizeof(struct ref_call *)));
    groups[at].calls[groups[at].count++] = call;
}

/* Which paths were touched below calls of one site: one child of each site that any of them called. */
static struct ref_id set_of(const struct ref *ref, const struct same *same)
{
    struct ref_child *children;
    struct same *groups;
    struct ref_id id;
    size_t count = 0, all = 0;

    for (size_t i = 0; i < same->count; i++)
        for (const struct ref_call *child = same->calls[i]->first; child;
             child = child->next)
            all++;
    groups = need(malloc((all + 1) * sizeof(*groups)));
    children = need(malloc((all + 1) * sizeof(*children)));
    for (size_t i = 0; i < same->count; i++)
        for (const struct ref_call *child = same->calls[i]->first; child;
             child = child->next)
            if (!child->is_root)
                add_same(ref, groups, &count, child);
    for (size_t i = 0; i < count; i++) {
        children[i] = (struct ref_child){.id = set_of(ref, &groups[i])};
        free((void *)groups[i].calls);
    }
    if (count)
        qsort(children, count, sizeof(*children), compare_children);
    id = ref_id_node(2, ref->sites[same->calls[0]->site].id, children, count);
    free(groups);
    free(children);
    return id;
}

/* Adds a child to a list; folded and exact keep a run of equal ones as one entry. */
static void add_child(const struct ref *ref, struct ref_child *children, size_t *count,
                      struct ref_id id, struct shape *shape)
{
    struct ref_child child = {.id = id, .repeat = ref->options.exactness == 1};

    if (ref->options.exactness == 2) {
        shape->is_folded |= *count > 0;
    } else if (*count && is_same(&children[*count - 1], &child)) {
        shape->is_folded |= ref->options.exactness == 0;
        children[*count - 1].repeat += ref->options.exactness == 1;
        return;
    }
    children[(*count)++] = child;
}

/* `held`: entries of the lists of the calls around it, in this trace. The id is not that of a set. */
static struct ref_id shape_of(const struct ref *ref, const struct ref_call *call,
                              size_t held, struct shape *shape)
{
    struct ref_child *children;
    struct ref_id id;
    size_t count = 0, capacity = 0;

    shape->calls++;
    for (const struct ref_call *child = call->first; child; child = child->next)
        capacity++;
    children = need(malloc((capacity + 1) * sizeof(*children)));
    for (const struct ref_call *child = call->first; child; child = child->next) {
        if (child->is_root)
            continue; /* a tree of its own */
        id = shape_of(ref, child, held + count, shape);
        shape->is_over |= held + count >= ref->options.trace_children_max;
        add_child(ref, children, &count, id, shape);
    }
    id = ref_id_node(ref->options.exactness, ref->sites[call->site].id, children, count);
    free(children);
    return id;
}

static uint64_t count_calls(const struct ref_call *call)
{
    uint64_t count = 1;

    for (const struct ref_call *child = call->first; child; child = child->next)
        if (!child->is_root)
            count += count_calls(child);
    return count;
}

uint64_t ref_count_ended(const struct ref_call *root)
{
    uint64_t count = root->leave != 0;

    for (const struct ref_call *child = root->first; child; child = child->next)
        if (!child->is_root)
            count += ref_count_ended(child);
    return count;
}

static void count_shape(const struct ref *ref, const struct ref_call *root,
                        struct path *path, const struct shape *shape)
{
    struct tally *tally =
        tally_of(&path->shapes, window_of(ref, root->leave), &shape->id);

    count_status(tally, root);
    tally->calls += shape->calls;
    tally->folded += shape->is_folded;
    tally->first = root->leave < tally->first ? root->leave : tally->first;
    tally->last = root->leave > tally->last ? root->leave : tally->last;
    add_times(tally, 0, root->leave - root->enter);
}

/* What a root that is over comes to; of one that is incomplete, no shape. */
static enum coverage cover(const struct ref *ref, const struct ref_call *root,
                           struct shape *shape)
{
    if (root->is_broken || !ref_is_timed(root))
        return INCOMPLETE;
    shape->id = shape_of(ref, root, 0, shape);
    if (ref->options.exactness == 2)
        shape->id = set_of(ref, &(struct same){.calls = &root, .count = 1});
    return shape->is_over ? PATHS : shape->is_folded ? FOLDED : WHOLE;
}

bool ref_shape_of(const struct ref *ref, const struct ref_call *root, struct ref_id *id,
                  enum ref_status *status)
{
    struct shape shape = {.calls = 0};
    enum coverage kind = cover(ref, root, &shape);

    *status = root->is_failed || root->is_unwound ? REF_FAILED : REF_OK;
    if (kind == INCOMPLETE)
        *status = REF_INCOMPLETE;
    *id = shape.id;
    return kind == WHOLE || kind == FOLDED;
}

static void count_trace(struct ref *ref, const struct ref_stream *stream,
                        const struct ref_call *root, struct path *path)
{
    struct tally *tally = tally_of(&path->entries, window_of(ref, root->leave), NULL);
    struct shape shape = {.calls = 0};
    enum coverage kind = cover(ref, root, &shape);
    bool has_shape = kind == WHOLE || kind == FOLDED;

    if (has_shape)
        count_shape(ref, root, path, &shape);
    ref_keep_trace(ref, &path->exemplars, stream, root, has_shape ? &shape.id : NULL);
    tally->coverage[kind][0]++;
    tally->coverage[kind][1] += count_calls(root);
    tally->coverage[kind][2] += root->leave - root->enter;
}

/* A root that was learned is no trace, but what had ended of it is in the paths. */
static void count_part(const struct ref *ref, const struct ref_call *call,
                       struct path *path)
{
    struct tally *tally =
        tally_of(&path->entries, window_of(ref, call->learned_at), NULL);

    tally->coverage[PATHS][1] += call->ended_calls;
    tally->coverage[PATHS][2] += call->ended_ns;
}

/* `outer` and `inner`: the paths below which outer frames, and calls that are no roots, of the caller stand. */
static void count_call(struct ref *ref, const struct ref_stream *stream,
                       const struct ref_call *call, struct path *outer,
                       struct path *inner)
{
    struct path *entries = &rows_of(ref)->entries;
    struct path *own = path_below(ref,
                                  call->is_outer  ? outer
                                  : call->is_root ? entries
                                                  : inner,
                                  call->site);
    /* An UNKNOWN call's children were met while its site was: they stand below the unknown site. */
    struct path *below = own;

    if (call->is_unknown)
        below = path_below(ref, call->is_root ? entries : inner, REF_SITE_UNKNOWN);
    if (call->is_learned) /* what it called before stands where it then stood: in a call tree */
        below = path_below(ref, call->was_root ? entries : inner, call->site);
    if (call->was_root)
        count_part(ref, call, below);
    count_path(ref, call, own);
    for (const struct ref_call *child = call->first; child; child = child->next)
        count_call(ref, stream, child, own, below);
    if (call->is_root)
        count_trace(ref, stream, call, own);
}

void ref_count_stream(struct ref *ref, const struct ref_stream *stream)
{
    struct ref_rows *rows = rows_of(ref);

    for (const struct ref_call *call = stream->forest.first; call; call = call->next)
        count_call(ref, stream, call, &rows->outers, &rows->entries);
}

/* Histograms: the bucket of v at scale s is the i with 2^(i/2^s) < v <= 2^((i+1)/2^s). */

static long bucket(uint64_t value, int scale)
{
    long double exact = log2l((long double)value) * (long double)(1 << scale);

    return (long)ceill(exact) - 1;
}

/* Buckets of all values but 0; how many values. False when their range takes more than 512. */
static bool fill(const uint64_t *values, size_t count, int scale, long *buckets,
                 size_t *used, long *low, long *high)
{
    *used = 0;
    for (size_t i = 0; i < count; i++)
        if (values[i])
            buckets[(*used)++] = bucket(values[i], scale);
    *low = *used ? buckets[0] : 0;
    *high = *used ? buckets[0] : -1;
    for (size_t i = 1; i < *used; i++) {
        *low = buckets[i] < *low ? buckets[i] : *low;
        *high = buckets[i] > *high ? buckets[i] : *high;
    }
    return *high - *low < 512;
}

void ref_histogram_text(char *out, const uint64_t *values, size_t count)
{
    long low, high, *buckets = need(calloc(count + 1, sizeof(long)));
    uint32_t counts[512] = {0};
    size_t used, at, size = REF_HISTOGRAM_TEXT;
    int scale = 5;

    while (!fill(values, count, scale, buckets, &used, &low, &high))
        scale--;
    at = (size_t)snprintf(out, size, "%zu", count - used);
    if (used)
        at += (size_t)snprintf(out + at, size - at, ";%d;%ld", scale, low);
    for (size_t i = 0; i < used; i++)
        counts[buckets[i] - low]++;
    for (long b = low; b <= high; b++)
        at += (size_t)snprintf(out + at, size - at, "%c%" PRIu32, b == low ? ';' : ',',
                               counts[b - low]);
    free(buckets);
}

void ref_times_text(char *out, const uint64_t *values, size_t count)
{
    uint64_t sum = 0, min = count ? values[0] : 0, max = 0;

    for (size_t i = 0; i < count; i++) {
        sum += values[i];
        min = values[i] < min ? values[i] : min;
        max = values[i] > max ? values[i] : max;
    }
    (void)snprintf(out, REF_TIMES_TEXT, "%" PRIu64 ",%" PRIu64 ",%" PRIu64, sum, min,
                   max);
}

/* Lines. */

static void write_path(struct test_text *text, const char *id, const struct tally *tally)
{
    char self[REF_TIMES_TEXT], total[REF_TIMES_TEXT], histogram[REF_HISTOGRAM_TEXT];

    ref_times_text(self, tally->selves, tally->count);
    ref_times_text(total, tally->totals, tally->count);
    ref_histogram_text(histogram, tally->totals, tally->count);
    test_text_add(text,
                  "path %s @%" PRIu64 " = %" PRIu64 " %" PRIu64 " %" PRIu64
                  " self=%s total=%s hist=%s",
                  id, tally->window, tally->ok, tally->failed, tally->incomplete, self,
                  total, histogram);
}

static void write_shape(struct test_text *text, const char *id, const struct tally *tally)
{
    char shape[REF_ID_TEXT], total[REF_TIMES_TEXT], histogram[REF_HISTOGRAM_TEXT];

    ref_times_text(total, tally->totals, tally->count);
    ref_histogram_text(histogram, tally->totals, tally->count);
    test_text_add(text,
                  "shape %s %s @%" PRIu64 " = %" PRIu64 " %" PRIu64 " %" PRIu64
                  " %" PRIu64 " %" PRIu64 " %" PRIu64 " time=%s hist=%s",
                  id, ref_id_text(tally->shape, shape), tally->window, tally->ok,
                  tally->failed, tally->calls, tally->folded, tally->first, tally->last,
                  total, histogram);
}

static void write_entry(struct test_text *text, const char *id, const struct tally *tally)
{
    char line[400];
    size_t size = 0;

    for (int i = 0; i < COVERAGES; i++)
        size += (size_t)snprintf(
            line + size, sizeof(line) - size, " %" PRIu64 ",%" PRIu64 ",%" PRIu64,
            tally->coverage[i][0], tally->coverage[i][1], tally->coverage[i][2]);
    test_text_add(text, "entry %s @%" PRIu64 " =%s", id, tally->window, line);
}

static void write_all(struct test_text *text, const char *id, struct tally *tallies,
                      void (*write)(struct test_text *, const char *,
                                    const struct tally *))
{
    while (tallies) {
        struct tally *next = tallies->next;

        write(text, id, tallies);
        free(tallies->selves);
        free(tallies->totals);
        free(tallies);
        tallies = next;
    }
}

/* Without recursion: paths are 4,096 deep. Frees what hangs below. */
static void write_below(struct test_text *text, struct path *top)
{
    struct path *path = top;

    while (path != top || path->children) {
        struct path *child = path->children, *parent;
        char id[REF_ID_TEXT];

        if (child) {
            path->children = child->next;
            path = child;
            continue;
        }
        (void)ref_id_text(path->id, id);
        write_all(text, id, path->windows, write_path);
        write_all(text, id, path->shapes, write_shape);
        write_all(text, id, path->entries, write_entry);
        ref_write_exemplars(text, id, path->exemplars);
        parent = path->parent;
        free(path);
        path = parent;
    }
}

static void write_ledger(const struct ref_stream *stream, struct test_text *text)
{
    char line[512] = "";
    uint64_t lost = 0;
    size_t size = 0;

    for (int i = 0; i < REF_REASONS; i++) {
        lost += stream->lost[i];
        if (stream->lost[i])
            size += (size_t)snprintf(line + size, sizeof(line) - size, " %d:%" PRIu64, i,
                                     stream->lost[i]);
    }
    test_text_add(text, "ledger %" PRIu32 " = %" PRIu64 " %" PRIu64 " 0%s",
                  stream->number, stream->last, stream->last - lost, line);
}

void ref_write_rows(struct ref *ref, struct test_text *text)
{
    struct ref_rows *rows = rows_of(ref);
    char id[REF_ID_TEXT];

    write_below(text, &rows->entries);
    write_below(text, &rows->outers);
    for (const struct ref_stream *stream = ref->streams; stream; stream = stream->next)
        if (stream->is_used)
            write_ledger(stream, text);
    for (uint32_t i = 0; i < ref->outer_count; i++)
        test_text_add(text, "outer %s %" PRIu32,
                      ref_id_text(ref->sites[ref->outers[i].site].id, id),
                      ref->outers[i].why);
    free(rows);
}

/* What is open. */

struct open_entry {
    struct ref_id id;
    uint64_t count, oldest, since;
};

/* The innermost call of the tree of `root`, of those on the stack up to `top`. */
static const struct ref_call *innermost(const struct ref_call *top,
                                        const struct ref_call *root)
{
    const struct ref_call *at = top;

    for (const struct ref_call *call = top; call != root; call = call->parent)
        if (call->is_root)
            at = call->parent; /* that one has a tree of its own */
    return at;
}

static void add_open(struct open_entry *entries, size_t *count, struct ref_id id,
                     uint64_t oldest, uint64_t since)
{
    size_t at = 0;

    while (at < *count && ref_id_compare(&entries[at].id, &id) != 0)
        at++;
    if (at == *count)
        entries[(*count)++] = (struct open_entry){.id = id, .oldest = UINT64_MAX};
    entries[at].count++;
    if (oldest < entries[at].oldest ||
        (oldest == entries[at].oldest && since > entries[at].since)) {
        entries[at].oldest = oldest;
        entries[at].since = since;
    }
}

void ref_open_rows(struct ref *ref, struct test_text *text)
{
    struct open_entry *entries = need(calloc(SLOTS, sizeof(*entries)));
    struct path *base = &rows_of(ref)->entries;
    char id[REF_ID_TEXT];
    size_t count = 0;

    for (const struct ref_stream *stream = ref->streams; stream; stream = stream->next)
        for (const struct ref_call *call = stream->open; call && call != &stream->forest;
             call = call->parent)
            if (call->is_root)
                add_open(entries, &count, path_below(ref, base, call->site)->id,
                         call->enter, innermost(stream->open, call)->enter);
    for (size_t i = 0; i < count; i++)
        test_text_add(text, "open %s = %" PRIu64 " %" PRIu64 " %" PRIu64,
                      ref_id_text(entries[i].id, id), entries[i].count, entries[i].oldest,
                      entries[i].since);
    free(entries);
}
