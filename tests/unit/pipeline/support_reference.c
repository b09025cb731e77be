/* SPDX-License-Identifier: Apache-2.0 */
#include "support_reference.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAMS 8
#define SECOND UINT64_C(1000000000)
#define RESYNC_ROOTS 64
#define RESYNC_NS (10 * SECOND)
#define FORMAT_LOSS 7
#define EVER ((uint64_t)-1)

struct call {
    struct call *parent, *first, *last, *next; /* calls that it made, in order */
    uint32_t function;
    uint64_t enter, leave;
    bool is_outer, is_root, is_unknown, is_failed, is_unwound, is_incomplete, is_broken;
};

struct stream {
    struct call forest; /* roots and outer frames hang here */
    struct call *open;  /* innermost, or &forest */
    uint32_t start;
    uint64_t time, events, lost[16];
    bool is_used, is_lost; /* is_lost: after a gap, base not sure */
    uint64_t lost_time, lost_roots;
};

/* What one line needs; times are kept one by one. */
struct tally {
    char *key;
    uint64_t ok, failed, incomplete, calls, folded, first, last;
    uint64_t *selves, *totals;
    uint32_t count, capacity;
    uint64_t coverage[4][3];
    struct tally *next;
};

struct test_reference {
    enum test_exactness exactness;
    struct stream streams[STREAMS];
    struct tally *paths, *shapes, *entries;
};

struct test_reference *test_reference_new(enum test_exactness exactness)
{
    struct test_reference *reference = calloc(1, sizeof(*reference));

    reference->exactness = exactness;
    for (int i = 0; i < STREAMS; i++)
        reference->streams[i].open = &reference->streams[i].forest;
    return reference;
}

void test_reference_start(struct test_reference *reference, uint32_t stream,
                          uint32_t function)
{
    reference->streams[stream].start = function;
}

/* Building the calls. */

static bool is_base(const struct stream *stream, const struct call *call)
{
    return call == &stream->forest || call->is_outer;
}

static struct call *root_of(struct stream *stream, struct call *call)
{
    if (is_base(stream, call))
        return NULL;
    while (!call->is_root)
        call = call->parent;
    return call;
}

static void break_tree(struct stream *stream)
{
    struct call *root = root_of(stream, stream->open);

    if (root)
        root->is_broken = true;
}

static struct call *enter(struct stream *stream, uint32_t function)
{
    struct call *call = calloc(1, sizeof(*call));
    struct call *parent = stream->open;

    call->parent = parent;
    call->function = function;
    call->enter = stream->time;
    if (parent->last)
        parent->last->next = call;
    else
        parent->first = call;
    parent->last = call;
    if (is_base(stream, parent)) {
        call->is_outer =
            parent == &stream->forest && function && function == stream->start;
        call->is_root = !call->is_outer;
        call->is_broken = call->is_root && stream->is_lost;
    }
    stream->open = call;
    return call;
}

static void leave(struct stream *stream)
{
    struct call *call = stream->open;

    call->leave = stream->time;
    stream->open = call->parent;
    if (call->is_outer && !call->is_unwound && !call->is_incomplete)
        stream->is_lost = false;
    if (call->is_root && stream->is_lost && ++stream->lost_roots >= RESYNC_ROOTS &&
        stream->time - stream->lost_time > RESYNC_NS)
        stream->is_lost = false;
}

static void unwind_one(struct stream *stream)
{
    if (stream->open->is_unknown)
        stream->open->is_incomplete = true;
    else
        stream->open->is_unwound = true;
    leave(stream);
}

static void cut_one(struct stream *stream)
{
    stream->open->is_incomplete = true;
    leave(stream);
}

static void take_exit(struct stream *stream, uint32_t function)
{
    struct call *call = stream->open;

    while (call != &stream->forest && call->function != function && !call->is_unknown)
        call = call->parent;
    if (call == &stream->forest) {
        stream->lost_time = stream->time;
        stream->lost_roots = 0;
        return;
    }
    while (stream->open != call)
        unwind_one(stream);
    call->function = function;
    leave(stream);
}

static void take_loss(struct stream *stream, const struct test_event *event)
{
    stream->lost[event->reason] += event->events;
    break_tree(stream);
    for (uint32_t i = 0; i < event->pops && stream->open != &stream->forest; i++)
        cut_one(stream);
    for (uint32_t i = 0; i < event->pushes; i++) {
        enter(stream, 0)->is_unknown = true;
        break_tree(stream);
    }
}

static void take_gap(struct stream *stream, const struct test_event *event)
{
    stream->lost[FORMAT_LOSS] += event->events;
    break_tree(stream);
    stream->is_lost = true;
    stream->lost_time = stream->time;
    stream->lost_roots = 0;
    while (!is_base(stream, stream->open))
        cut_one(stream);
}

static uint32_t depth_of(const struct stream *stream)
{
    uint32_t depth = 0;

    for (const struct call *call = stream->open; call != &stream->forest;
         call = call->parent)
        depth++;
    return depth;
}

void test_reference_event(struct test_reference *reference, uint32_t number,
                          const struct test_event *event)
{
    struct stream *stream = &reference->streams[number];

    stream->is_used = true;
    /* A gap has no time of its own: what it cut ends when the stream was last seen. */
    if (event->kind != TEST_GAP && event->ns > stream->time)
        stream->time = event->ns;
    stream->events +=
        event->kind == TEST_LOSS || event->kind == TEST_GAP ? event->events : 1;
    switch (event->kind) {
    case TEST_ENTER:
        (void)enter(stream, event->function);
        break;
    case TEST_EXIT:
        take_exit(stream, event->function);
        break;
    case TEST_LOSS:
        take_loss(stream, event);
        break;
    case TEST_GAP:
        take_gap(stream, event);
        break;
    case TEST_STATUS:
        if (stream->open != &stream->forest)
            stream->open->is_failed = event->value;
        break;
    case TEST_UNWIND:
        while (!stream->is_lost && depth_of(stream) > event->value)
            unwind_one(stream);
        break;
    case TEST_OTHER:
        break;
    }
}

/* Statistics, by recursion over finished calls. */

static struct tally *tally_of(struct tally **list, const char *key)
{
    struct tally *tally = *list;

    while (tally && strcmp(tally->key, key) != 0)
        tally = tally->next;
    if (tally)
        return tally;
    tally = calloc(1, sizeof(*tally));
    tally->key = strdup(key);
    tally->first = EVER;
    tally->next = *list;
    *list = tally;
    return tally;
}

static void add_times(struct tally *tally, uint64_t self, uint64_t total)
{
    if (tally->count == tally->capacity) {
        tally->capacity = tally->capacity ? 2 * tally->capacity : 16;
        tally->selves = realloc(tally->selves, tally->capacity * sizeof(uint64_t));
        tally->totals = realloc(tally->totals, tally->capacity * sizeof(uint64_t));
    }
    tally->selves[tally->count] = self;
    tally->totals[tally->count++] = total;
}

static bool is_timed(const struct call *call)
{
    return !call->is_incomplete && !call->is_unknown;
}

static uint64_t self_of(const struct call *call)
{
    uint64_t self = call->leave - call->enter;

    for (const struct call *child = call->first; child; child = child->next)
        if (is_timed(child))
            self -= child->leave - child->enter;
    return self;
}

static void count_path(struct test_reference *reference, const struct call *call,
                       const char *path)
{
    char key[8192];
    struct tally *tally;

    (void)snprintf(key, sizeof(key), "%s @%" PRIu64, path, call->leave / SECOND);
    tally = tally_of(&reference->paths, key);
    if (!is_timed(call)) {
        tally->incomplete++;
        return;
    }
    if (call->is_failed || call->is_unwound)
        tally->failed++;
    else
        tally->ok++;
    add_times(tally, self_of(call), call->leave - call->enter);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *shape_of(const struct call *call, enum test_exactness exactness,
                      bool *folded);

/* The texts of the children, after folding; how many. */
static size_t shapes_below(const struct call *call, enum test_exactness exactness,
                           char **parts, bool *folded)
{
    size_t count = 0, kept = 0;
    uint32_t repeats[4096];

    for (const struct call *child = call->first; child; child = child->next)
        parts[count++] = shape_of(child, exactness, folded);
    if (exactness == TEST_SET && count) {
        *folded |= count > 1;
        qsort(parts, count, sizeof(char *), compare);
    }
    for (size_t i = 0; i < count; i++) {
        if (kept && strcmp(parts[kept - 1], parts[i]) == 0) {
            *folded |= exactness != TEST_EXACT;
            repeats[kept - 1]++;
            free(parts[i]);
            continue;
        }
        repeats[kept] = 1;
        parts[kept++] = parts[i];
    }
    for (size_t i = 0; i < kept && exactness == TEST_EXACT; i++) {
        char *text = NULL;

        if (asprintf(&text, "%sx%u", parts[i], repeats[i]) > 0) {
            free(parts[i]);
            parts[i] = text;
        }
    }
    return kept;
}

static char *shape_of(const struct call *call, enum test_exactness exactness,
                      bool *folded)
{
    char **parts = calloc(4096, sizeof(char *)), *text = malloc(65536);
    size_t count = shapes_below(call, exactness, parts, folded);
    size_t size = (size_t)snprintf(text, 65536, "f%u", call->function);

    for (size_t i = 0; i < count; i++) {
        size += (size_t)snprintf(text + size, 65536 - size, "%s%s%s", i ? " " : "{",
                                 parts[i], i + 1 == count ? "}" : "");
        free(parts[i]);
    }
    free(parts);
    return text;
}

static uint64_t count_calls(const struct call *call)
{
    uint64_t count = 1;

    for (const struct call *child = call->first; child; child = child->next)
        count += count_calls(child);
    return count;
}

static void count_shape(struct test_reference *reference, const struct call *root,
                        bool *folded)
{
    char *shape = shape_of(root, reference->exactness, folded), *key = NULL;
    struct tally *tally;

    if (asprintf(&key, "f%u @%" PRIu64 " %s", root->function, root->leave / SECOND,
                 shape) < 0)
        abort();
    tally = tally_of(&reference->shapes, key);
    if (root->is_failed || root->is_unwound)
        tally->failed++;
    else
        tally->ok++;
    tally->calls += count_calls(root);
    tally->folded += *folded;
    tally->first = root->leave < tally->first ? root->leave : tally->first;
    tally->last = root->leave > tally->last ? root->leave : tally->last;
    add_times(tally, 0, root->leave - root->enter);
    free(shape);
    free(key);
}

static void count_trace(struct test_reference *reference, const struct call *root)
{
    char key[64];
    bool folded = false;
    uint64_t *coverage;
    struct tally *tally;
    int kind = 3;

    if (!root->is_broken && is_timed(root)) {
        count_shape(reference, root, &folded);
        kind = folded ? 1 : 0;
    }
    (void)snprintf(key, sizeof(key), "f%u @%" PRIu64, root->function,
                   root->leave / SECOND);
    tally = tally_of(&reference->entries, key);
    coverage = tally->coverage[kind];
    coverage[0]++;
    coverage[1] += count_calls(root);
    coverage[2] += root->leave - root->enter;
}

/* `path` is that of the caller; below an outer frame paths begin anew. An UNKNOWN call's children stand under f0. */
static void count_call(struct test_reference *reference, const struct call *call,
                       const char *path)
{
    char own[4096], below[4096];

    (void)snprintf(own, sizeof(own), "%s%s%sf%u%s", path, *path ? "/" : "",
                   call->is_outer ? "(" : "", call->function, call->is_outer ? ")" : "");
    (void)snprintf(below, sizeof(below), "%s%sf%u", path, *path ? "/" : "",
                   call->is_unknown ? 0 : call->function);
    count_path(reference, call, own);
    for (const struct call *child = call->first; child; child = child->next)
        count_call(reference, child, call->is_outer ? "" : below);
    if (call->is_root)
        count_trace(reference, call);
}

/* Histograms: the bucket of v at scale s is the i with 2^(i/2^s) < v <= 2^((i+1)/2^s). */

static long bucket(uint64_t value, int scale)
{
    long double exact = log2l((long double)value) * (long double)(1 << scale);

    return (long)ceill(exact) - 1;
}

static void histogram_text(char *out, size_t size, const uint64_t *values, uint32_t count)
{
    long low = 0, high = -1, *buckets = calloc(count + 1, sizeof(long));
    uint32_t zeros = 0, used = 0;
    size_t at;
    int scale;

    for (scale = 5; scale >= 0; scale--) {
        used = 0;
        zeros = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (values[i] == 0)
                zeros++;
            else
                buckets[used++] = bucket(values[i], scale);
        }
        low = used ? buckets[0] : 0;
        high = used ? buckets[0] : -1;
        for (uint32_t i = 1; i < used; i++) {
            low = buckets[i] < low ? buckets[i] : low;
            high = buckets[i] > high ? buckets[i] : high;
        }
        if (high - low < 512)
            break;
    }
    at = (size_t)snprintf(out, size, "%u", zeros);
    if (used)
        at += (size_t)snprintf(out + at, size - at, ";%d;%ld", scale, low);
    for (long b = low; b <= high; b++) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < used; i++)
            n += buckets[i] == b;
        at += (size_t)snprintf(out + at, size - at, "%c%u", b == low ? ';' : ',', n);
    }
    free(buckets);
}

static void times_text(char *out, size_t size, const uint64_t *values, uint32_t count)
{
    uint64_t sum = 0, min = count ? values[0] : 0, max = 0;

    for (uint32_t i = 0; i < count; i++) {
        sum += values[i];
        min = values[i] < min ? values[i] : min;
        max = values[i] > max ? values[i] : max;
    }
    (void)snprintf(out, size, "%" PRIu64 ",%" PRIu64 ",%" PRIu64, sum, min, max);
}

static void free_tally(struct tally *tally)
{
    free(tally->key);
    free(tally->selves);
    free(tally->totals);
    free(tally);
}

static void write_tallies(struct test_reference *reference, struct test_text *text)
{
    char self[80], total[80], histogram[16384];

    for (struct tally *tally = reference->paths, *next; tally; tally = next) {
        next = tally->next;
        times_text(self, sizeof(self), tally->selves, tally->count);
        times_text(total, sizeof(total), tally->totals, tally->count);
        histogram_text(histogram, sizeof(histogram), tally->totals, tally->count);
        test_text_add(text,
                      "path %s = %" PRIu64 " %" PRIu64 " %" PRIu64
                      " self=%s total=%s hist=%s",
                      tally->key, tally->ok, tally->failed, tally->incomplete, self,
                      total, histogram);
        free_tally(tally);
    }
    for (struct tally *tally = reference->shapes, *next; tally; tally = next) {
        next = tally->next;
        times_text(total, sizeof(total), tally->totals, tally->count);
        histogram_text(histogram, sizeof(histogram), tally->totals, tally->count);
        test_text_add(text,
                      "shape %s = %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                      " %" PRIu64 " %" PRIu64 " time=%s hist=%s",
                      tally->key, tally->ok, tally->failed, tally->calls, tally->folded,
                      tally->first, tally->last, total, histogram);
        free_tally(tally);
    }
}

static void write_entries(struct test_reference *reference, struct test_text *text)
{
    for (struct tally *tally = reference->entries, *next; tally; tally = next) {
        char line[512];
        size_t size = 0;

        next = tally->next;
        for (int i = 0; i < 4; i++)
            size += (size_t)snprintf(
                line + size, sizeof(line) - size, " %" PRIu64 ",%" PRIu64 ",%" PRIu64,
                tally->coverage[i][0], tally->coverage[i][1], tally->coverage[i][2]);
        test_text_add(text, "entry %s =%s", tally->key, line);
        free_tally(tally);
    }
}

static void write_ledger(const struct stream *stream, int number, struct test_text *text)
{
    char line[512] = "";
    uint64_t lost = 0;
    size_t size = 0;

    for (int i = 0; i < 16; i++) {
        lost += stream->lost[i];
        if (stream->lost[i])
            size += (size_t)snprintf(line + size, sizeof(line) - size, " %d:%" PRIu64, i,
                                     stream->lost[i]);
    }
    test_text_add(text, "ledger %d = %" PRIu64 " %" PRIu64 " 0%s", number, stream->events,
                  stream->events - lost, line);
}

static void free_calls(struct call *call)
{
    for (struct call *child = call->first, *next; child; child = next) {
        next = child->next;
        free_calls(child);
        free(child);
    }
}

void test_reference_end(struct test_reference *reference, struct test_text *text)
{
    for (int i = 0; i < STREAMS; i++) {
        struct stream *stream = &reference->streams[i];

        if (!stream->is_used)
            continue;
        break_tree(stream);
        while (stream->open != &stream->forest)
            cut_one(stream);
        for (const struct call *call = stream->forest.first; call; call = call->next)
            count_call(reference, call, "");
        write_ledger(stream, i, text);
        free_calls(&stream->forest);
    }
    write_tallies(reference, text);
    write_entries(reference, text);
    free(reference);
}
