/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field         written by  read by  access
 * magic         process     we       acquire load [R], pairs with [H] in recorder.c
 * is_made       process     we       acquire load [C], pairs with [P] in recorder_ring.c
 * words[]       process     we       acquire load [S], pairs with [W] in ring.h and [B]
 * granted       process     we       acquire load [V], pairs with [G] in ring_record.c
 * anchors[]     process     we       acquire loads [M], pair with [N] there
 * streams[],    process     we       acquire loads [J] and [K], pair with [I] and [E]
 *  generation,
 *  end
 * writing       process     we       acquire load [Q], pairs with [B] in ring.c
 * Checked by: tests/race/test_recorder.c
 *
 * Why a copy is whole. A word of index i stands in its slot until the word of index
 * i + capacity is stored, which happens after `granted` was made larger than i + capacity.
 * We read the words [S] and then `granted` [V]. Had one of the words been of a later lap,
 * reading it would have brought its `granted` with it, and we would see that i lies below
 * granted - capacity. So what lies at or above that was not overwritten when we read it:
 * it is of lap(i), or was not written yet, and then has the bit of the lap before
 * (ring_record.c, seal). Anchors live for two laps, so the same holds for them.
 *
 * Why no payload is taken for events. Words below the newest anchor are records that were
 * finished when it was made, or single words that wait for their event: a word without
 * its lap's bit there is one event. Behind the newest anchor it may also be the first word
 * of a record whose payload stands already. Who saw that payload sees `writing` [Q] of
 * that record or of a later moment; if later, the first word was stored by then, so that
 * a second look at it [S] finds it.
 */
#include "probe/recorder_read.h"

#include "base/atomics.h"
#include "probe/clock.h"
#include "probe/ring.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RING_WORDS_MAX (UINT64_C(1) << 27) /* 1 GiB, as MILLRACE_RING_SIZE */

static bool lies_inside(uint64_t size, uint64_t offset, uint64_t element, uint64_t count)
{
    return offset % MR_CACHE_LINE == 0 && offset <= size &&
           count <= (size - offset) / element;
}

static enum mr_status check_version(const struct mr_recorder_header *header,
                                    struct mr_error *error)
{
    if (header->version != MR_RECORDER_VERSION ||
        header->header_size != sizeof(*header) ||
        header->module_size != sizeof(struct mr_recorder_module) ||
        header->named_size != sizeof(struct mr_named_entry) ||
        header->ring_size != sizeof(struct mr_recorder_ring))
        return mr_error_set(error, MR_EFORMAT,
                            "a flight recorder of another version of millrace (layout "
                            "%u, this one reads %u)",
                            header->version, MR_RECORDER_VERSION);
    return MR_OK;
}

/* Tables hold at most what is in them; what comes later is not looked at. */
static bool find_tables(struct mr_recorder_view *view)
{
    struct mr_recorder_header *header = view->header;

    view->module_count = mr_load_acquire(&header->module_count);
    view->ring_count = mr_load_acquire(&header->ring_count);
    view->named_max = header->named_max;
    view->modules_offset = header->modules_offset;
    view->named_offset = header->named_offset;
    view->rings_offset = header->rings_offset;
    return header->file_size <= view->size &&
           lies_inside(view->size, view->modules_offset, header->module_size,
                       view->module_count) &&
           lies_inside(view->size, view->named_offset, header->named_size,
                       view->named_max) &&
           lies_inside(view->size, view->rings_offset, header->ring_size,
                       view->ring_count);
}

enum mr_status mr_recorder_view_open(struct mr_recorder_view *view, const void *memory,
                                     uint64_t size, struct mr_error *error)
{
    enum mr_status status;

    *view = (struct mr_recorder_view){.base = (uint8_t *)(uintptr_t)memory, .size = size};
    view->header = (void *)view->base;
    if (size < sizeof(*view->header) ||
        mr_load_acquire(&view->header->magic) != MR_RECORDER_MAGIC) /* [R] */
        return mr_error_set(error, MR_EFORMAT, "no flight recorder of millrace");
    status = check_version(view->header, error);
    if (status == MR_OK && !find_tables(view))
        status = mr_error_set(error, MR_EFORMAT, "a flight recorder that is not whole");
    return status;
}

uint32_t mr_recorder_view_rings(const struct mr_recorder_view *view)
{
    return view->ring_count;
}

bool mr_recorder_view_module(const struct mr_recorder_view *view, uint32_t index,
                             struct mr_recorder_module *out)
{
    struct mr_recorder_module *module = (void *)(view->base + view->modules_offset);
    uint32_t version;

    if (index >= view->module_count)
        return false;
    module += index;
    version = mr_load_acquire(&module->version); /* [M] */
    *out = *module;
    out->path[sizeof(out->path) - 1] = '\0';
    if (out->build_id_size > sizeof(out->build_id))
        out->build_id_size = 0;
    /* Changes are seconds apart: two alike versions with a change between need 2^31. */
    return version % 2 == 0 && mr_load_acquire(&module->version) == version;
}

bool mr_recorder_view_named(const struct mr_recorder_view *view, uint32_t index,
                            struct mr_named_entry *out)
{
    struct mr_named_entry *entry = (void *)(view->base + view->named_offset);

    if (index >= view->named_max || !mr_load_acquire(&entry[index].is_ready))
        return false;
    *out = entry[index];
    out->name[sizeof(out->name) - 1] = '\0';
    out->file[sizeof(out->file) - 1] = '\0';
    return true;
}

uint32_t mr_recorder_view_depth(const struct mr_recorder_view *view, uint64_t *skipped)
{
    *skipped = mr_load_relaxed(&view->header->depth_skipped);
    return mr_load_relaxed(&view->header->depth_limit);
}

uint64_t mr_recorder_view_lost(const struct mr_recorder_view *view, uint32_t reason)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < MR_RECORDER_STRIPES; i++)
        sum += mr_load_relaxed(&view->header->stripes[i].lost[reason]);
    return sum;
}

static void find_attributes(struct mr_recorder_header *header,
                            struct mr_source_info *info)
{
    char *at = header->attributes, *end = at + sizeof(header->attributes);

    end[-1] = '\0';
    for (uint32_t i = 0; i < header->attribute_count && i < MR_ATTRIBUTES_MAX; i++) {
        char *value = at + strlen(at) + 1;

        if (value >= end || value + strlen(value) + 1 > end)
            return;
        info->attributes[info->attribute_count++] =
            (struct mr_attribute){.key = at, .value = value};
        at = value + strlen(value) + 1;
        if (at >= end)
            return;
    }
}

void mr_recorder_view_source(const struct mr_recorder_view *view,
                             struct mr_recorder_texts *texts, struct mr_source_info *info)
{
    struct mr_recorder_header *header = &texts->header;

    *header = *view->header;
    header->host[sizeof(header->host) - 1] = '\0';
    header->app[sizeof(header->app) - 1] = '\0';
    header->program_version[sizeof(header->program_version) - 1] = '\0';
    header->exe[sizeof(header->exe) - 1] = '\0';
    header->clock_warning[sizeof(header->clock_warning) - 1] = '\0';
    *info = (struct mr_source_info){.host = header->host,
                                    .app = header->app,
                                    .version = header->program_version,
                                    .exe = header->exe,
                                    .pid = header->pid,
                                    .start_ns = header->start_ns,
                                    .clock_warning = header->clock_warning,
                                    .policy = MR_POLICY_OVERWRITE};
    find_attributes(header, info);
}

static struct mr_clock_sample sample_of(const struct mr_recorder_sample *from)
{
    return (struct mr_clock_sample){.raw_ticks = from->raw_ticks,
                                    .raw_ns = from->raw_ns,
                                    .real_ticks = from->real_ticks,
                                    .real_ns = from->real_ns,
                                    .error_ticks = from->error_ticks};
}

void mr_recorder_view_clock(const struct mr_recorder_view *view,
                            struct mr_clock_info *clock)
{
    enum mr_clock_mode mode = view->header->clock_mode == MR_CLOCK_MODE_MONOTONIC
                                  ? MR_CLOCK_MODE_MONOTONIC
                                  : MR_CLOCK_MODE_COUNTER;
    struct mr_clock_sample first = sample_of(&view->header->first_sample), last;
    /* [T] pairs with [S] in recorder.c; the one we read changes two seconds later. */
    uint32_t count = mr_load_acquire(&view->header->sample_count);
    struct timespec pause = {.tv_nsec = (long)MR_CALIBRATE_NS};

    last = sample_of(&view->header->last_samples[count & 1]);
    if (count == 0 || last.raw_ns - first.raw_ns < MR_CALIBRATE_NS) {
        struct mr_clock_sample here;

        mr_clock_sample(mode, &here);
        (void)nanosleep(&pause, NULL);
        mr_clock_sample(mode, &last);
        mr_clock_calibrate(mode, &here, &last, clock);
        clock->ticks = first.real_ticks;
        clock->realtime_ns = first.real_ns;
    } else {
        mr_clock_calibrate(mode, &first, &last, clock);
    }
}

static struct mr_recorder_ring *ring_at(const struct mr_recorder_view *view,
                                        uint32_t number)
{
    struct mr_recorder_ring *ring = (void *)(view->base + view->rings_offset);
    uint64_t capacity;

    if (number >= view->ring_count || !mr_load_acquire(&ring[number].is_made)) /* [C] */
        return NULL;
    ring += number;
    capacity = ring->capacity;
    if (capacity < MR_RING_WORDS_MIN || capacity > RING_WORDS_MAX ||
        (capacity & (capacity - 1)) != 0 ||
        !lies_inside(view->size, ring->words_offset, sizeof(uint64_t), capacity))
        return NULL;
    return ring;
}

/* One anchor, if it is of now: what it says is of `index`. [M] */
static bool read_anchor(struct mr_recorder_anchor *anchor, struct mr_recorder_mark *mark)
{
    mark->index = mr_load_acquire(&anchor->index);
    mark->event = mr_load_acquire(&anchor->event);
    mark->ticks = mr_load_acquire(&anchor->ticks);
    mark->epoch = mr_load_acquire(&anchor->epoch);
    return mark->index != MR_RECORDER_NONE &&
           mr_load_acquire(&anchor->index) == mark->index;
}

static int by_index(const void *a, const void *b)
{
    const struct mr_recorder_mark *left = a, *right = b;

    return left->index < right->index ? -1 : left->index > right->index;
}

static void read_anchors(struct mr_recorder_ring *ring, uint64_t low, uint64_t high,
                         struct mr_recorder_copy *copy)
{
    copy->mark_count = 0;
    for (size_t i = 0; i < MR_RECORDER_ANCHORS; i++) {
        struct mr_recorder_mark *mark = &copy->marks[copy->mark_count];

        if (read_anchor(&ring->anchors[i], mark) && mark->index >= low &&
            mark->index <= high)
            copy->mark_count++;
    }
    qsort(copy->marks, copy->mark_count, sizeof(copy->marks[0]), by_index);
}

static void drop_marks_below(struct mr_recorder_copy *copy, uint64_t low)
{
    uint32_t count = 0;

    while (count < copy->mark_count && copy->marks[count].index < low)
        count++;
    copy->mark_count -= count;
    memmove(copy->marks, copy->marks + count, copy->mark_count * sizeof(copy->marks[0]));
}

/* The word of `index` without its lap, or 0 where it is not there. [S] */
static uint64_t read_word(const struct mr_recorder_view *view,
                          const struct mr_recorder_ring *ring, uint64_t index)
{
    _Atomic uint64_t *words = (void *)(view->base + ring->words_offset);
    uint64_t word = mr_load_acquire(&words[index & (ring->capacity - 1)]);
    uint64_t lap = index & ring->capacity ? 0 : MR_WORD_LAP;

    return (word ^ lap) & MR_WORD_LAP ? 0 : word & ~MR_WORD_LAP;
}

/* Reads all, then once more what was not there; see the top. The number of words. */
static uint64_t read_words(const struct mr_recorder_view *view,
                           struct mr_recorder_ring *ring, uint64_t from, uint64_t to,
                           uint64_t *words)
{
    uint64_t count = to - from, newest = from, writing;

    for (uint64_t i = 0; i < count; i++) {
        words[i] = read_word(view, ring, from + i);
        if (words[i])
            newest = from + i + 1;
    }
    writing = mr_load_acquire(&ring->writing); /* [Q] */
    for (uint64_t i = 0; i < newest - from; i++)
        if (words[i] == 0)
            words[i] = read_word(view, ring, from + i);
    if (writing >= from && writing < newest && words[writing - from] == 0)
        newest = writing;
    return newest;
}

/* Those that came after the stream began, as far as they are known. */
static void read_cuts(const struct mr_recorder_view *view, uint64_t start_ticks,
                      struct mr_recorder_copy *copy)
{
    const struct mr_cuts *cuts = &view->header->cuts;
    uint32_t count = mr_cuts_count(cuts);
    uint32_t number = count > MR_CUTS_KEPT - 2 ? count - (MR_CUTS_KEPT - 2) : 0;

    for (; number < count; number++) {
        uint64_t ticks, ns;

        mr_cuts_at(cuts, number, &ticks, &ns);
        if (ticks <= start_ticks)
            continue;
        if (copy->cut_count == 0)
            copy->cut_number = number;
        copy->cuts[copy->cut_count++] = ticks;
    }
}

static void read_name(struct mr_recorder_stream *stream, char *name)
{
    for (size_t i = 0; i < MR_RECORDER_NAME_SIZE; i++)
        name[i] = mr_load_acquire(&stream->name[i]);
    name[MR_RECORDER_NAME_SIZE - 1] = '\0';
}

/* Who has it, [J]; the index at which it ended, or MR_RECORDER_NONE. */
static uint64_t read_stream(struct mr_recorder_stream *stream,
                            struct mr_recorder_copy *copy)
{
    uint64_t end = mr_load_acquire(&stream->end); /* [K] */

    copy->end_event = mr_load_acquire(&stream->end_event);
    copy->stream = mr_load_acquire(&stream->stream);
    copy->tid = mr_load_acquire(&stream->tid);
    copy->start_site = mr_load_acquire(&stream->start_site);
    copy->streams_before = mr_load_acquire(&stream->streams_before);
    copy->events_before = mr_load_acquire(&stream->events_before);
    copy->first = mr_load_acquire(&stream->first_index);
    copy->is_ended = end != MR_RECORDER_NONE;
    copy->start_ticks = mr_load_acquire(&stream->start_ticks);
    read_name(stream, copy->name);
    return end;
}

/* Leaves out what was overwritten while it was read. */
static enum mr_status settle(struct mr_recorder_copy *copy, uint64_t *words,
                             uint64_t from, uint64_t granted, uint64_t capacity)
{
    uint64_t low = granted > capacity ? granted - capacity : 0, skip;

    drop_marks_below(copy, low);
    if (copy->mark_count == 0)
        return MR_AGAIN;
    skip = copy->marks[0].index - from;
    memmove(words, words + skip, (copy->end - from - skip) * sizeof(*words));
    copy->first = copy->marks[0].index;
    copy->overwritten = copy->marks[0].event;
    return MR_OK;
}

static enum mr_status read_ring(const struct mr_recorder_view *view,
                                struct mr_recorder_ring *ring,
                                struct mr_recorder_copy *copy, uint64_t *words)
{
    uint32_t generation = mr_load_acquire(&ring->generation); /* [J] */
    uint64_t granted, low, high, end, from;

    if (generation == 0)
        return MR_ENOTFOUND;
    end = read_stream(&ring->streams[generation & 1], copy);
    granted = mr_load_acquire(&ring->granted); /* [V] */
    low = granted > ring->capacity ? granted - ring->capacity : 0;
    high = end < granted ? end : granted;
    read_anchors(ring, low > copy->first ? low : copy->first, high, copy);
    if (copy->mark_count == 0)
        return mr_load_acquire(&ring->granted) == granted ? MR_ENOTFOUND : MR_AGAIN;
    from = copy->marks[0].index;
    copy->end = read_words(view, ring, from, high, words);
    if (copy->end < copy->marks[copy->mark_count - 1].index)
        copy->end = copy->marks[copy->mark_count - 1].index;
    if (copy->is_ended)
        copy->end = high;
    if (mr_load_acquire(&ring->generation) != generation)
        return MR_AGAIN;
    return settle(copy, words, from, mr_load_acquire(&ring->granted), /* [V] */
                  ring->capacity);
}

enum mr_status mr_recorder_copy_ring(const struct mr_recorder_view *view, uint32_t number,
                                     struct mr_recorder_copy *copy)
{
    struct mr_recorder_ring *ring = ring_at(view, number);
    enum mr_status status;

    memset(copy, 0, sizeof(*copy));
    if (!ring)
        return number < view->ring_count ? MR_EFORMAT : MR_ENOTFOUND;
    copy->words = malloc((ring->capacity + 1) * sizeof(uint64_t));
    if (!copy->words)
        return MR_ENOMEM;
    status = read_ring(view, ring, copy, copy->words);
    if (status != MR_OK) {
        mr_recorder_copy_fini(copy);
        return status;
    }
    copy->words[copy->end - copy->first] = 0;
    read_cuts(view, copy->start_ticks, copy);
    copy->at = copy->first;
    copy->event = copy->overwritten;
    copy->end_event = copy->is_ended ? copy->end_event : 0;
    for (uint64_t i = 0; i < copy->end - copy->first; i++)
        copy->torn += copy->words[i] == 0;
    return MR_OK;
}

void mr_recorder_copy_fini(struct mr_recorder_copy *copy)
{
    free(copy->words);
    copy->words = NULL;
}
