/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windowed statistics of the last minutes. A series is a ring of windows; a window holds
 * a sparse array of points, so a publish copies only the windows that got data:
 *
 *     slot = window number % windows      [ 0 | 1 | ... ]
 *                                               |
 *                                    window 1700000001: points by entry, shape or path
 *
 * A window leaves when a newer one needs its slot, or, oldest first, when the series has
 * its limit of points. What left for lack of room is still in the store.
 */
#include "base/assert.h"
#include "base/atomics.h"
#include "base/compiler.h"
#include "master/model_private.h"

/* Of a delta's own time, and of ours: beyond it a clock is wrong, and the windows of all other senders would be late. */
#define FUTURE_MAX_S 3600

static const struct {
    uint32_t seconds, windows;
} shapes[] = {
#define X(name, seconds_, windows_) {.seconds = (seconds_), .windows = (windows_)},
    MR_MODEL_SERIES(X)
#undef X
};

uint32_t mr_model_series_seconds(enum mr_model_series series)
{
    MR_ASSERT(series < MR_SERIES_COUNT);
    return shapes[series].seconds;
}

uint32_t mr_model_series_windows(enum mr_model_series series)
{
    MR_ASSERT(series < MR_SERIES_COUNT);
    return shapes[series].windows;
}

static uint32_t slot_of(enum mr_model_series series, uint64_t window)
{
    return (uint32_t)(window / shapes[series].seconds % shapes[series].windows);
}

const struct mr_model_window *mr_model_window_at(const struct mr_model_root *root,
                                                 enum mr_model_series series,
                                                 uint64_t window)
{
    const struct mr_model_window *at =
        mr_cow_get(&root->series[series], slot_of(series, window));

    return at && at->window == window / shapes[series].seconds * shapes[series].seconds
               ? at
               : NULL;
}

/* Whether the store has all of the window, so that memory may lose it. */
static bool is_saved(const struct mr_model *model, const struct mr_model_window *window)
{
    /* Relaxed: a late value only keeps a window longer. */
    return !model->waits_for_store ||
           window->head.generation <= mr_load_relaxed(&model->saved_generation);
}

static enum mr_status empty_window(struct mr_model *model, enum mr_model_series series,
                                   uint32_t slot)
{
    struct mr_model_window *window =
        mr_cow_edit(&model->cow, &model->working->series[series], slot);

    if (!window)
        return MR_ENOMEM;
    model->working->points[series] -= window->count;
    window->count = 0;
    window->closed = true;
    return mr_cow_drop(&model->cow, &window->points);
}

/* The oldest window with points that may go, or MR_MODEL_NONE. */
static uint32_t oldest_slot(const struct mr_model *model, enum mr_model_series series,
                            uint64_t before)
{
    const struct mr_cow_array *ring = &model->working->series[series];
    uint32_t oldest = MR_MODEL_NONE;

    for (uint32_t slot = 0; slot < ring->count; slot++) {
        const struct mr_model_window *window = mr_cow_get(ring, slot);

        if (window && window->count && window->window < before &&
            is_saved(model, window)) {
            before = window->window;
            oldest = slot;
        }
    }
    return oldest;
}

/* Whether there is one already: what is added to it takes no room. */
static bool has_point(const struct mr_model *model, enum mr_model_series series,
                      uint64_t window, uint32_t index)
{
    const struct mr_model_window *at = mr_model_window_at(model->working, series, window);

    return at && mr_cow_get(&at->points, index);
}

/* MR_ELIMIT, counted, when the series is full of what must stay. */
static enum mr_status make_room(struct mr_model *model, enum mr_model_series series,
                                uint64_t window)
{
    if (model->working->points[series] < model->limits.series_points)
        return MR_OK;
    uint32_t slot = oldest_slot(model, series, window);
    if (slot == MR_MODEL_NONE) {
        model->working->refused_points++;
        return MR_ELIMIT;
    }
    return empty_window(model, series, slot);
}

static enum mr_status put_window(struct mr_model *model, enum mr_model_series series,
                                 uint32_t slot, uint64_t window)
{
    struct mr_model_window *record =
        mr_model_record_new(MR_MODEL_KIND_WINDOW, sizeof(*record));

    if (!record)
        return MR_ENOMEM;
    record->window = window;
    if (window > model->working->newest[series])
        model->working->newest[series] = window;
    return mr_cow_put(&model->cow, &model->working->series[series], slot, &record->head);
}

/* Whether the ring has turned past the window: only the store may still have it. */
static bool is_late(const struct mr_model *model, enum mr_model_series series,
                    uint64_t window)
{
    uint64_t span_s = (uint64_t)shapes[series].seconds * shapes[series].windows;

    return window + span_s <= model->working->newest[series];
}

/* Makes `slot` hold `window`. MR_ELIMIT, counted, when it holds a newer one. */
static enum mr_status open_window(struct mr_model *model, enum mr_model_series series,
                                  uint32_t slot, uint64_t window)
{
    const struct mr_model_window *at = mr_cow_get(&model->working->series[series], slot);

    if (at && at->window == window && !at->closed)
        return MR_OK;
    if ((at && at->window >= window) || is_late(model, series, window)) {
        model->working->late_points++;
        return MR_ELIMIT;
    }
    if (at && !is_saved(model, at)) {
        model->working->refused_points++;
        return MR_ELIMIT;
    }
    if (at && empty_window(model, series, slot) != MR_OK)
        return MR_ENOMEM;
    return put_window(model, series, slot, window);
}

static void *new_point(enum mr_model_series series)
{
    switch (series) {
    case MR_SERIES_ENTRY:
        return mr_model_record_new(MR_MODEL_KIND_ENTRY_POINT,
                                   sizeof(struct mr_model_entry_point));
    case MR_SERIES_SHAPE:
        return mr_model_record_new(MR_MODEL_SHAPE_STAT,
                                   sizeof(struct mr_model_shape_stat));
    default:
        return mr_model_record_new(MR_MODEL_PATH_STAT, sizeof(struct mr_model_path_stat));
    }
}

static enum mr_status merge_point(enum mr_model_series series, void *point,
                                  const void *stats)
{
    switch (series) {
    case MR_SERIES_ENTRY:
        mr_entry_stats_merge(&((struct mr_model_entry_point *)point)->stats, stats);
        return MR_OK;
    case MR_SERIES_SHAPE:
        return mr_shape_stats_merge(&((struct mr_model_shape_stat *)point)->stats, stats);
    default:
        return mr_path_stats_merge(&((struct mr_model_path_stat *)point)->stats, stats);
    }
}

/* The point's record for writing, new or not. */
static enum mr_status own_point(struct mr_model *model, enum mr_model_series series,
                                struct mr_model_window *window, uint32_t index,
                                void **point)
{
    if (mr_cow_get(&window->points, index)) {
        *point = mr_cow_edit(&model->cow, &window->points, index);
        return *point ? MR_OK : MR_ENOMEM;
    }
    *point = new_point(series);
    if (!*point || mr_cow_put(&model->cow, &window->points, index, *point) != MR_OK)
        return MR_ENOMEM;
    window->count++;
    model->working->points[series]++;
    return MR_OK;
}

enum mr_status mr_model_add_point(struct mr_model *model, enum mr_model_series series,
                                  uint64_t window, uint64_t now_s, uint32_t index,
                                  const void *stats)
{
    void *point = NULL;
    uint32_t slot = slot_of(series, window);

    window = window / shapes[series].seconds * shapes[series].seconds;
    if (now_s && window > now_s + FUTURE_MAX_S) {
        model->working->refused_points++;
        return MR_OK;
    }
    enum mr_status status = MR_OK;
    if (!has_point(model, series, window, index))
        status = make_room(model, series, window);
    if (status == MR_OK)
        status = open_window(model, series, slot, window);
    if (status == MR_ELIMIT)
        return MR_OK;
    if (status != MR_OK)
        return status;
    struct mr_model_window *record =
        mr_cow_edit(&model->cow, &model->working->series[series], slot);
    if (!record)
        return MR_ENOMEM;
    status = own_point(model, series, record, index, &point);
    return status == MR_OK ? merge_point(series, point, stats) : status;
}
