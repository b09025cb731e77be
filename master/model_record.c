/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How records are made, copied and freed. Records with texts are one allocation; they
 * are replaced, never edited, so that they need no clone.
 */
#include "base/assert.h"
#include "master/model_private.h"

#include <stdlib.h>
#include <string.h>

void *mr_model_record_new(uint32_t kind, size_t size)
{
    MR_ASSERT(size >= sizeof(struct mr_cow_head));
    struct mr_cow_head *record = calloc(1, size);

    if (record)
        record->kind = kind;
    return record;
}

void *mr_model_record_new_texts(uint32_t kind, size_t size, const char **texts,
                                uint32_t count)
{
    size_t all = size;

    for (uint32_t i = 0; i < count; i++)
        all += strlen(texts[i]) + 1;
    char *record = mr_model_record_new(kind, all);
    char *at = record + size;
    for (uint32_t i = 0; record && i < count; i++) {
        size_t text_size = strlen(texts[i]) + 1;

        memcpy(at, texts[i], text_size);
        texts[i] = at;
        at += text_size;
    }
    return record;
}

static struct mr_cow_head *clone_plain(const struct mr_cow_head *record, size_t size)
{
    struct mr_cow_head *copy = malloc(size);

    if (copy)
        memcpy(copy, record, size);
    return copy;
}

/* Replaces the bucket array that *h still shares with the original by a copy. */
static bool own_histogram(struct mr_histogram *h)
{
    const uint64_t *shared = h->counts;

    h->counts = NULL;
    h->capacity = 0;
    if (h->count == 0)
        return true;
    h->counts = malloc(h->count * sizeof(*h->counts));
    if (!h->counts)
        return false;
    memcpy(h->counts, shared, h->count * sizeof(*h->counts));
    h->capacity = h->count;
    return true;
}

/* Of records that have one, the histogram. */
static struct mr_histogram *histogram_of(struct mr_cow_head *record)
{
    void *at = record;

    switch (record->kind) {
    case MR_MODEL_PATH_STAT:
        return &((struct mr_model_path_stat *)at)->stats.histogram;
    case MR_MODEL_SHAPE_STAT:
        return &((struct mr_model_shape_stat *)at)->stats.histogram;
    case MR_MODEL_JOINED_STAT:
        return &((struct mr_model_joined_stat *)at)->stats.histogram;
    case MR_MODEL_JOINED_EDGE:
        return &((struct mr_model_joined_edge *)at)->stats.histogram;
    default:
        return NULL;
    }
}

static size_t size_of(uint32_t kind)
{
    switch (kind) {
    case MR_MODEL_PATH_STAT:
        return sizeof(struct mr_model_path_stat);
    case MR_MODEL_SHAPE_STAT:
        return sizeof(struct mr_model_shape_stat);
    case MR_MODEL_JOINED_STAT:
        return sizeof(struct mr_model_joined_stat);
    case MR_MODEL_JOINED_EDGE:
        return sizeof(struct mr_model_joined_edge);
    case MR_MODEL_SITE_STAT:
        return sizeof(struct mr_model_site_stat);
    case MR_MODEL_STREAM:
        return sizeof(struct mr_model_stream);
    case MR_MODEL_SHAPE: /* the next one of its id, in another scope or entry point */
        return sizeof(struct mr_model_shape);
    case MR_MODEL_PATH:
        return sizeof(struct mr_model_path);
    case MR_MODEL_ENTRY:
        return sizeof(struct mr_model_entry);
    case MR_MODEL_COUNTER:
        return sizeof(struct mr_model_counter);
    case MR_MODEL_SENDER:
        return sizeof(struct mr_model_sender);
    case MR_MODEL_OPEN:
        return sizeof(struct mr_model_open);
    case MR_MODEL_PATH_COUNTER:
        return sizeof(struct mr_model_path_counter);
    case MR_MODEL_SHAPE_PATH:
        return sizeof(struct mr_model_shape_path);
    case MR_MODEL_KIND_WINDOW:
        return sizeof(struct mr_model_window);
    case MR_MODEL_KIND_ENTRY_POINT:
        return sizeof(struct mr_model_entry_point);
    default:
        return 0; /* replaced whole, never edited */
    }
}

static struct mr_cow_head *clone_record(const struct mr_cow_head *record)
{
    size_t size = size_of(record->kind);

    MR_ASSERT(size > 0);
    struct mr_cow_head *copy = clone_plain(record, size);
    struct mr_histogram *histogram = copy ? histogram_of(copy) : NULL;
    if (histogram && !own_histogram(histogram)) {
        free(copy);
        return NULL;
    }
    return copy;
}

static void free_record(struct mr_cow_head *record)
{
    struct mr_histogram *histogram = histogram_of(record);

    if (histogram)
        mr_histogram_fini(histogram);
    free(record);
}

const struct mr_cow_type mr_model_cow_type = {.clone = clone_record, .free = free_record};
