/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EVENTS batches are recycled through one bounded list for the process, because the
 * thread that frees them is not the one that makes them when filters run in threads of
 * their own: lists per thread would run dry on one side and full on the other. Numbers:
 * docs/why/2026-11-20-batch-recycling.md.
 *
 * field          written by  read by    access
 * recycled.*     any thread  any        under recycled.mutex
 * group_last     any thread  any        relaxed: each adds 1, and what it makes is its own
 *
 * The list is the second process-wide state beside the log's level, and the last group's
 * number the third: they hold no meaning, only memory and what is not to be used twice.
 * Checked by: tests/race/test_graph.c
 */
#include "pipeline/batch.h"

#include "base/assert.h"
#include "base/atomics.h"

#include <pthread.h>
#include <stdlib.h>

#define RECYCLED_MAX 256       /* 16 MiB: four full pipes of EVENTS */
#define RECYCLED_LOSSES_MAX 64 /* a batch with more losses gives them back to malloc */

static struct {
    pthread_mutex_t mutex;
    struct mr_batch *first;
    uint32_t count;
} recycled = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct mr_batch *take_recycled(void)
{
    struct mr_batch *batch;

    (void)pthread_mutex_lock(&recycled.mutex);
    batch = recycled.first;
    if (batch) {
        recycled.first = batch->next;
        recycled.count--;
    }
    (void)pthread_mutex_unlock(&recycled.mutex);
    return batch;
}

static bool give_recycled(struct mr_batch *batch)
{
    bool is_taken;

    (void)pthread_mutex_lock(&recycled.mutex);
    is_taken = recycled.count < RECYCLED_MAX;
    if (is_taken) {
        batch->next = recycled.first;
        recycled.first = batch;
        recycled.count++;
    }
    (void)pthread_mutex_unlock(&recycled.mutex);
    return is_taken;
}

/* Back to the state of a new batch, with the memory it has. */
static void reset_events(struct mr_batch *batch, enum mr_batch_kind kind)
{
    *batch = (struct mr_batch){.kind = kind,
                               .events = batch->events,
                               .event_capacity = batch->event_capacity,
                               .losses = batch->losses,
                               .loss_capacity = batch->loss_capacity};
    mr_buffer_init(&batch->bytes, MR_BATCH_BYTES_MAX);
}

static struct mr_batch *new_batch(enum mr_batch_kind kind)
{
    struct mr_batch *batch = calloc(1, sizeof(*batch));

    if (!batch)
        return NULL;
    batch->kind = kind;
    mr_buffer_init(&batch->bytes, MR_BATCH_BYTES_MAX);
    return batch;
}

static struct mr_batch *new_events(enum mr_batch_kind kind)
{
    struct mr_batch *batch = take_recycled();

    if (batch) {
        reset_events(batch, kind);
        return batch;
    }
    batch = new_batch(kind);
    if (!batch)
        return NULL;
    batch->events = malloc(MR_BATCH_EVENTS_MAX * sizeof(*batch->events));
    if (!batch->events) {
        free(batch);
        return NULL;
    }
    batch->event_capacity = MR_BATCH_EVENTS_MAX;
    return batch;
}

struct mr_batch *mr_batch_new(enum mr_batch_kind kind)
{
    MR_ASSERT(kind >= MR_BATCH_FRAME && kind <= MR_BATCH_REPEATS);
    return kind == MR_BATCH_EVENTS || kind == MR_BATCH_REPEATS ? new_events(kind)
                                                               : new_batch(kind);
}

void mr_batch_free(struct mr_batch *batch)
{
    if (!batch)
        return;
    while (batch->unit) {
        struct mr_batch *first = batch->unit;

        batch->unit = first->next;
        mr_batch_free(first);
    }
    mr_buffer_fini(&batch->bytes);
    if (batch->events && batch->event_capacity == MR_BATCH_EVENTS_MAX &&
        batch->loss_capacity <= RECYCLED_LOSSES_MAX && give_recycled(batch))
        return;
    free(batch->losses);
    free(batch->events);
    free(batch);
}

static _Atomic uint64_t group_last;

uint64_t mr_batch_new_group(void)
{
    return mr_add_relaxed(&group_last, 1) + 1;
}

enum mr_status mr_batch_own(struct mr_batch *batch)
{
    enum mr_status status;

    MR_ASSERT(batch);
    if (batch->kind != MR_BATCH_FRAME || batch->is_owned)
        return MR_OK;
    MR_ASSERT(batch->bytes.size == 0);
    /*
     * The receiver's max_frame has admitted it, so its size is no reason to refuse it
     * here.
     */
    if (batch->bytes.limit < batch->frame.payload.size)
        batch->bytes.limit = batch->frame.payload.size;
    status = mr_buffer_append(&batch->bytes, batch->frame.payload.data,
                              batch->frame.payload.size);
    if (status != MR_OK)
        return status;
    batch->frame.payload = mr_buffer_span(&batch->bytes);
    batch->is_owned = true;
    return MR_OK;
}
