/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field                written by     read by     access
 * config->reannounce   forward        this        acquire load [R], pairs with the release add in forward.c; nothing but the value counts
 * config->max_frame    forward        this        relaxed: a number
 */
#include "pipeline/filters/merge.h"

#include "base/atomics.h"
#include "base/clock.h"
#include "net/delta.h"
#include "pipeline/dict_batch.h"
#include "pipeline/open_traces.h"

#include <stdio.h>

struct merge {
    const struct mr_merge_config *config;
    struct mr_accumulator *accumulator;
    struct mr_dictionary *dictionary;
    struct mr_dict_batch dict;
    uint64_t period_ns, next_ns;
    uint64_t now_ns;    /* of the last tick */
    uint64_t gained_ns; /* when there was something to merge */
    bool is_released;
    uint64_t announced;               /* value of *reannounce that has been served */
    struct mr_accumulator_stats told; /* in counters already */
    uint64_t told_beyond, told_collisions, told_unwritten;
    struct mr_batch *held, **held_end; /* payloads of one group, as they came; linked */
    bool has_groups;                   /* the accumulator has payloads of groups */
    struct mr_open_traces open;
    struct mr_accumulator *open_accumulator; /* of them alone; empty between deltas */
    bool has_news; /* somebody has told something since the last deltas left */
};

static void name_counters(struct mr_filter *filter)
{
    mr_filter_name_counter(filter, MR_MERGE_BAD_DELTA, "merge_bad_delta");
    mr_filter_name_counter(filter, MR_MERGE_BAD_DICT, "merge_bad_dict");
    mr_filter_name_counter(filter, MR_MERGE_OVER_LIMIT, "merge_over_limit");
    mr_filter_name_counter(filter, MR_MERGE_UNKNOWN, "merge_unknown");
    mr_filter_name_counter(filter, MR_MERGE_UNWRITTEN, "merge_unwritten");
    mr_filter_name_counter(filter, MR_MERGE_DICTIONARY_BEYOND, "merge_dictionary_beyond");
    mr_filter_name_counter(filter, MR_MERGE_EARLY, "merge_early");
    mr_filter_name_counter(filter, MR_MERGE_REANNOUNCED, "merge_reannounced");
    mr_filter_name_counter(filter, MR_MERGE_COLLISIONS, "merge_id_collisions");
    mr_filter_name_counter(filter, MR_MERGE_PASSED, "merge_passed");
}

static uint64_t reannounce_value(const struct merge *merge)
{
    return merge->config->reannounce ? mr_load_acquire(merge->config->reannounce)
                                     : 0; /* [R] */
}

/* Bytes of a delta, at most. */
static size_t payload_max(const struct merge *merge)
{
    uint32_t max_frame =
        merge->config->max_frame ? mr_load_relaxed(merge->config->max_frame) : 0;

    return max_frame > 0 && max_frame < MR_BATCH_BYTES_MAX ? max_frame
                                                           : MR_BATCH_BYTES_MAX;
}

static enum mr_status merge_open(struct mr_filter *filter, const void *config,
                                 struct mr_error *error)
{
    struct merge *merge = mr_filter_state(filter);
    enum mr_status status;

    merge->config = config;
    merge->held_end = &merge->held;
    merge->period_ns =
        merge->config->period_ns ? merge->config->period_ns : MR_MERGE_PERIOD_NS;
    merge->announced = reannounce_value(merge);
    name_counters(filter);
    status = mr_accumulator_new(&merge->config->accumulator, &merge->accumulator);
    if (status == MR_OK)
        status =
            mr_accumulator_new(&merge->config->accumulator, &merge->open_accumulator);
    if (status == MR_OK)
        status = mr_dictionary_new(&merge->config->dictionary, &merge->dictionary);
    if (status != MR_OK) {
        mr_accumulator_free(merge->accumulator);
        mr_accumulator_free(merge->open_accumulator);
        return mr_error_set(error, status, "merge: %s", mr_status_text(status));
    }
    return MR_OK;
}

static struct mr_batch *take_held(struct merge *merge)
{
    struct mr_batch *batch = merge->held;

    merge->held = batch->next;
    if (!merge->held)
        merge->held_end = &merge->held;
    batch->next = NULL;
    return batch;
}

static void merge_close(struct mr_filter *filter)
{
    struct merge *merge = mr_filter_state(filter);

    while (merge->held)
        mr_batch_free(take_held(merge));
    mr_open_traces_fini(&merge->open);
    mr_dict_batch_fini(&merge->dict);
    mr_dictionary_free(merge->dictionary);
    mr_accumulator_free(merge->accumulator);
    mr_accumulator_free(merge->open_accumulator);
}

/* What the parts have counted since the last time. */
static void tell_counters(struct mr_filter *filter)
{
    struct merge *merge = mr_filter_state(filter);
    struct mr_accumulator_stats now;
    struct mr_dictionary_stats dictionary;

    mr_accumulator_stats(merge->accumulator, &now);
    mr_dictionary_stats(merge->dictionary, &dictionary);
    mr_filter_count(filter, MR_MERGE_OVER_LIMIT, now.over_limit - merge->told.over_limit);
    mr_filter_count(filter, MR_MERGE_UNKNOWN, now.unknown - merge->told.unknown);
    mr_filter_count(filter, MR_MERGE_DICTIONARY_BEYOND,
                    dictionary.beyond - merge->told_beyond);
    mr_filter_count(filter, MR_MERGE_COLLISIONS,
                    dictionary.collisions - merge->told_collisions);
    merge->told = now;
    merge->told_beyond = dictionary.beyond;
    merge->told_collisions = dictionary.collisions;
}

/*
 * One item goes out; one that no batch can hold is skipped, as its site or shape then
 * stays without a name.
 */
static enum mr_status emit_item(struct mr_filter *filter, const struct mr_dict_item *item)
{
    struct merge *merge = mr_filter_state(filter);
    enum mr_status status = mr_dict_batch_put(&merge->dict, filter, item);

    if (status != MR_ELIMIT)
        return status;
    mr_filter_count(filter, MR_MERGE_UNWRITTEN, 1);
    return MR_OK;
}

/* All unsent items, or as many as the next filter takes without waiting. */
static enum mr_status emit_dictionary(struct mr_filter *filter, bool is_patient)
{
    struct merge *merge = mr_filter_state(filter);
    struct mr_dict_item item;
    enum mr_status status = MR_OK;

    while (status == MR_OK && (is_patient || mr_filter_can_emit(filter)) &&
           mr_dictionary_peek(merge->dictionary, &item)) {
        status = emit_item(filter, &item);
        mr_dictionary_mark_sent(merge->dictionary);
    }
    return status == MR_OK ? mr_dict_batch_emit(&merge->dict, filter) : status;
}

static bool has_open(const struct mr_batch *held)
{
    while (held && !held->has_open)
        held = held->next;
    return held != NULL;
}

static enum mr_status emit_held(struct mr_filter *filter, uint64_t created_ns)
{
    struct merge *merge = mr_filter_state(filter);
    enum mr_status status = MR_OK;

    while (status == MR_OK && merge->held) {
        struct mr_batch *batch = take_held(merge);

        (void)mr_delta_restamp(batch->bytes.data, batch->bytes.size, created_ns);
        mr_filter_count(filter, MR_MERGE_PASSED, 1);
        status = mr_filter_emit(filter, batch);
    }
    return status;
}

static enum mr_status emit_accumulated(struct mr_filter *filter,
                                       struct mr_accumulator *accumulator,
                                       uint64_t created_ns)
{
    const struct merge *merge = mr_filter_state(filter);
    enum mr_status status = mr_accumulator_write_begin(accumulator);

    while (status == MR_OK) {
        struct mr_batch *batch = mr_batch_new(MR_BATCH_DELTA);

        if (!batch)
            return MR_ENOMEM;
        batch->bytes.limit = payload_max(merge);
        status = mr_accumulator_write(accumulator, merge->config->level, created_ns,
                                      &batch->bytes);
        if (status == MR_OK)
            status = mr_filter_emit(filter, batch);
        else
            mr_batch_free(batch);
    }
    mr_accumulator_reset(accumulator);
    return status == MR_END ? MR_OK : status;
}

static uint64_t unwritten_of(const struct mr_accumulator *accumulator)
{
    struct mr_accumulator_stats stats;

    mr_accumulator_stats(accumulator, &stats);
    return stats.unwritten;
}

/* Rows that no payload could hold are lost: the master hears how many, with the same delta. */
static enum mr_status tell_unwritten(struct mr_filter *filter, uint64_t created_ns)
{
    struct merge *merge = mr_filter_state(filter);
    uint64_t now =
        unwritten_of(merge->accumulator) + unwritten_of(merge->open_accumulator);
    char name[MR_DELTA_COUNTER_NAME_MAX];
    struct mr_delta_writer writer;

    if (now == merge->told_unwritten)
        return MR_OK;
    struct mr_batch *batch = mr_batch_new(MR_BATCH_DELTA);
    if (!batch)
        return MR_ENOMEM;
    (void)snprintf(name, sizeof(name), MR_MERGE_UNWRITTEN_TOLD, merge->config->level);
    mr_delta_begin(&writer, &batch->bytes);
    mr_delta_head(&writer, merge->config->level, created_ns);
    mr_delta_counter(&writer, name, now - merge->told_unwritten);
    if (mr_delta_status(&writer) != MR_OK) {
        mr_batch_free(batch);
        return mr_delta_status(&writer);
    }
    mr_filter_count(filter, MR_MERGE_UNWRITTEN, now - merge->told_unwritten);
    merge->told_unwritten = now;
    return mr_filter_emit(filter, batch);
}

static enum mr_status emit_merged(struct mr_filter *filter, uint64_t created_ns)
{
    struct merge *merge = mr_filter_state(filter);
    enum mr_status status = emit_accumulated(filter, merge->accumulator, created_ns);

    merge->has_groups = false;
    tell_counters(filter);
    return status == MR_OK ? tell_unwritten(filter, created_ns) : status;
}

/* What is open, of all, with whatever else goes out; where one payload that leaves as it came says so, nobody else has any. */
static enum mr_status emit_open(struct mr_filter *filter, uint64_t created_ns)
{
    struct merge *merge = mr_filter_state(filter);
    enum mr_status status;

    if (!merge->has_news || has_open(merge->held))
        return MR_OK;
    status = mr_open_traces_merge(&merge->open, merge->open_accumulator);
    if (status == MR_AGAIN) {
        mr_filter_count(filter, MR_MERGE_OVER_LIMIT, 1);
        status = MR_OK;
    }
    return status == MR_OK ? emit_accumulated(filter, merge->open_accumulator, created_ns)
                           : status;
}

/* All of one time, as who is told of open traces takes what is older for ended ones. */
static enum mr_status emit_deltas(struct mr_filter *filter)
{
    struct merge *merge = mr_filter_state(filter);
    uint64_t created_ns = mr_clock_realtime_ns();
    enum mr_status status = emit_open(filter, created_ns);

    merge->has_news = false;
    if (status == MR_OK)
        status = emit_held(filter, created_ns);
    return status == MR_OK ? emit_merged(filter, created_ns) : status;
}

static enum mr_status emit_all(struct mr_filter *filter)
{
    enum mr_status status = emit_dictionary(filter, true);

    return status == MR_OK ? emit_deltas(filter) : status;
}

static void note_gain(struct merge *merge)
{
    if (mr_accumulator_is_empty(merge->accumulator))
        return;
    merge->gained_ns = merge->now_ns;
    merge->is_released = false;
}

static enum mr_status process_delta(struct mr_filter *filter,
                                    const struct mr_batch *batch)
{
    struct merge *merge = mr_filter_state(filter);
    enum mr_status status;

    mr_accumulator_open(merge->accumulator, mr_buffer_span(&batch->bytes));
    mr_accumulator_choose(merge->accumulator, MR_ACCUMULATE_NOT_OPEN);
    while ((status = mr_accumulator_merge(merge->accumulator, NULL)) == MR_AGAIN) {
        mr_filter_count(filter, MR_MERGE_EARLY, 1);
        status = emit_all(filter);
        if (status != MR_OK)
            return status;
        merge->has_news = true; /* the rest of it */
    }
    note_gain(merge);
    if (status == MR_EFORMAT) {
        mr_filter_count(filter, MR_MERGE_BAD_DELTA, 1);
        status = MR_OK;
    }
    return status;
}

/* What is held is merged after all. */
static enum mr_status merge_held(struct mr_filter *filter)
{
    struct merge *merge = mr_filter_state(filter);
    enum mr_status status = MR_OK;

    while (status == MR_OK && merge->held) {
        struct mr_batch *batch = take_held(merge);

        merge->has_groups = true;
        status = process_delta(filter, batch);
        mr_batch_free(batch);
    }
    return status;
}

/* Whether the payload may leave as it came, if nothing else comes in this period. */
static bool is_alone(const struct merge *merge, const struct mr_batch *batch)
{
    return batch->group && !merge->has_groups &&
           batch->bytes.size <= payload_max(merge) &&
           (!merge->held || merge->held->group == batch->group) &&
           !(batch->has_open && mr_open_traces_has_others(&merge->open, batch->teller));
}

static enum mr_status take_open(struct mr_filter *filter, const struct mr_batch *batch)
{
    struct merge *merge = mr_filter_state(filter);
    enum mr_status status = mr_open_traces_take(&merge->open, batch, merge->now_ns);

    merge->has_news = true;
    if (status != MR_ELIMIT)
        return status;
    mr_filter_count(filter, MR_MERGE_OVER_LIMIT, 1);
    return MR_OK;
}

static enum mr_status take_delta(struct mr_filter *filter, struct mr_batch *batch)
{
    struct merge *merge = mr_filter_state(filter);
    enum mr_status status = take_open(filter, batch);

    if (status == MR_OK && is_alone(merge, batch)) {
        batch->next = NULL;
        *merge->held_end = batch;
        merge->held_end = &batch->next;
        return MR_OK;
    }
    if (status == MR_OK && (batch->group || batch->has_open))
        status = merge_held(filter); /* numbers of open traces add up */
    merge->has_groups |= batch->group != 0;
    if (status == MR_OK)
        status = process_delta(filter, batch);
    mr_batch_free(batch);
    return status;
}

static enum mr_status process_item(struct mr_filter *filter,
                                   const struct mr_dict_item *item)
{
    struct merge *merge = mr_filter_state(filter);
    enum mr_status status = mr_dictionary_take(merge->dictionary, item);

    if (status == MR_ELIMIT)
        return emit_item(filter, item);
    if (status == MR_EUSAGE) {
        mr_filter_count(filter, MR_MERGE_UNKNOWN, 1);
        return MR_OK;
    }
    return status;
}

static enum mr_status process_dict(struct mr_filter *filter, const struct mr_batch *batch)
{
    struct mr_dict_reader reader;
    struct mr_dict_item item;
    enum mr_status status = mr_dict_open(&reader, mr_buffer_span(&batch->bytes), NULL);

    while (status == MR_OK) {
        status = mr_dict_next(&reader, &item, NULL);
        if (status == MR_OK)
            status = process_item(filter, &item);
    }
    if (status == MR_END)
        mr_filter_count(filter, MR_MERGE_UNKNOWN, reader.unknown);
    mr_dict_close(&reader);
    if (status == MR_EFORMAT)
        mr_filter_count(filter, MR_MERGE_BAD_DICT, 1);
    return status == MR_END || status == MR_EFORMAT ? MR_OK : status;
}

static enum mr_status merge_process(struct mr_filter *filter, struct mr_batch *batch)
{
    enum mr_status status;

    if (batch->kind == MR_BATCH_MARK) {
        status = emit_all(filter);
        if (status == MR_OK)
            return mr_filter_emit(filter, batch);
        mr_batch_free(batch);
        return status;
    }
    if (batch->kind != MR_BATCH_DELTA && batch->kind != MR_BATCH_DICT)
        return mr_filter_emit(filter, batch);
    if (batch->kind == MR_BATCH_DELTA)
        return take_delta(filter, batch);
    status = process_dict(filter, batch);
    mr_batch_free(batch);
    return status;
}

static void serve_reannounce(struct mr_filter *filter)
{
    struct merge *merge = mr_filter_state(filter);
    uint64_t value = reannounce_value(merge);

    if (value == merge->announced)
        return;
    merge->announced = value;
    mr_dictionary_mark_all_unsent(merge->dictionary);
    mr_filter_count(filter, MR_MERGE_REANNOUNCED, 1);
}

/*
 * When bursts are over, the memory that the last one needed goes back. A mark empties what was merged, so that is noted when it
 * comes, too: a burst that no tick found anything of would keep its memory.
 */
static void watch_quiet(struct merge *merge, uint64_t now_ns)
{
    note_gain(merge);
    if (!merge->is_released && now_ns - merge->gained_ns >= MR_FILTER_QUIET_NS &&
        mr_accumulator_is_empty(merge->accumulator)) {
        mr_accumulator_release(merge->accumulator);
        mr_accumulator_release(merge->open_accumulator);
        merge->is_released = true;
    }
}

static enum mr_status merge_tick(struct mr_filter *filter, uint64_t now_ns)
{
    struct merge *merge = mr_filter_state(filter);
    enum mr_status status;

    merge->now_ns = now_ns;
    if (now_ns < merge->next_ns)
        return MR_OK;
    merge->next_ns = now_ns + merge->period_ns;
    watch_quiet(merge, now_ns);
    mr_open_traces_expire(&merge->open, now_ns);
    serve_reannounce(filter);
    status = emit_dictionary(filter, false);
    if (status != MR_OK)
        return status;
    if (mr_filter_can_emit(filter) && merge->config->by_marks)
        return MR_OK;
    if (mr_filter_can_emit(filter))
        return emit_deltas(filter);
    return merge_held(filter);
}

/* Who ends knows of no open trace: they have ended, or their senders tell of them elsewhere. */
static enum mr_status merge_drain(struct mr_filter *filter)
{
    struct merge *merge = mr_filter_state(filter);
    enum mr_status status = merge_held(filter);

    mr_open_traces_fini(&merge->open);
    return status == MR_OK ? emit_all(filter) : status;
}

const struct mr_filter_kind mr_merge_filter = {
    .name = "merge",
    .state_size = sizeof(struct merge),
    .open = merge_open,
    .process = merge_process,
    .tick = merge_tick,
    .drain = merge_drain,
    .close = merge_close,
};
