/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/filters/join.h"

#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "pipeline/counters.h"
#include "pipeline/joined_rows.h"

#define MARKS_BYTES_MAX ((size_t)1 << 30)

enum join_counter {
    PARTS,     /* parts that came */
    JOINED,    /* traces that were whole here */
    PASSED_ON, /* parts that travel on */
    AGAIN,     /* parts that came twice */
    DOUBLES,   /* edges with more than two ends */
    CIRCLES,   /* traces without a root */
    FULL,      /* parts that travel on early, for parts_max */
    COUNTERS
};

static const char *const counter_names[COUNTERS] = {
    [PARTS] = "join_parts",          [JOINED] = "join_traces",
    [PASSED_ON] = "join_passed_on",  [AGAIN] = "join_parts_again",
    [DOUBLES] = "join_doubles",      [CIRCLES] = "join_circles",
    [FULL] = "join_passed_on_early",
};

struct join {
    struct mr_filter *filter;
    const struct mr_join_config *config;
    struct mr_counters counters;
    struct mr_joiner *joiner;
    struct mr_joiner_stats told; /* in counters already */
    struct mr_joined_rows rows;
    struct mr_batch *batch; /* being written, or NULL */
    struct mr_delta_writer writer;
    uint64_t now_ns, emitted_ns;
    struct mr_batch *mark; /* of all that came, or NULL */
};

static enum mr_status join_open(struct mr_filter *filter, const void *config,
                                struct mr_error *error)
{
    struct join *join = mr_filter_state(filter);

    join->filter = filter;
    join->config = config;
    if (!config || join->config->parts_max == 0 || join->config->window_s == 0 ||
        join->config->delta_bytes_max == 0)
        return mr_error_set(error, MR_EUSAGE, "join: a limit is missing");
    mr_counters_init(&join->counters, filter, counter_names, COUNTERS);
    mr_joined_rows_init(&join->rows);
    join->now_ns = mr_clock_monotonic_ns();
    if (mr_joiner_new(join->config->parts_max, &join->joiner) != MR_OK)
        return mr_error_set(error, MR_ENOMEM, "join: no memory");
    return MR_OK;
}

static void join_close(struct mr_filter *filter)
{
    struct join *join = mr_filter_state(filter);

    mr_joiner_free(join->joiner);
    mr_joined_rows_fini(&join->rows);
    mr_batch_free(join->mark);
    mr_batch_free(join->batch);
}

static enum mr_status emit_batch(struct join *join)
{
    struct mr_batch *batch = join->batch;
    enum mr_status status;

    if (!batch)
        return MR_OK;
    join->batch = NULL;
    status = mr_delta_status(&join->writer);
    if (status == MR_OK)
        return mr_filter_emit(join->filter, batch);
    mr_batch_free(batch);
    return status;
}

/* A payload with room for one more row, whole, or part. */
static enum mr_status make_room(struct join *join)
{
    if (join->batch && join->batch->bytes.size >= join->config->delta_bytes_max) {
        enum mr_status status = emit_batch(join);

        if (status != MR_OK)
            return status;
    }
    if (join->batch)
        return MR_OK;
    join->batch = mr_batch_new(MR_BATCH_DELTA);
    if (!join->batch)
        return MR_ENOMEM;
    mr_delta_begin(&join->writer, &join->batch->bytes);
    mr_delta_head(&join->writer, join->config->level, mr_clock_realtime_ns());
    return MR_OK;
}

/* What was joined, in payloads past delta_bytes_max by one row at most. */
static enum mr_status write_rows(struct join *join)
{
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; i < join->rows.count && status == MR_OK; i++) {
        status = make_room(join);
        if (status == MR_OK)
            mr_joined_rows_write(&join->rows, i, &join->writer);
    }
    mr_joined_rows_clear(&join->rows);
    return status;
}

static enum mr_status emit_rows(struct join *join)
{
    enum mr_status status = write_rows(join);

    join->emitted_ns = join->now_ns;
    return status == MR_OK ? emit_batch(join) : status;
}

static enum mr_status take_joined(struct join *join)
{
    struct mr_joined joined;
    enum mr_status status = MR_OK;

    while (status == MR_OK && mr_joiner_take(join->joiner, &joined)) {
        status = mr_joined_rows_add(&join->rows, &joined, join->config->window_s);
        if (status != MR_ELIMIT)
            continue;
        status = write_rows(join);
        if (status == MR_OK)
            status = mr_joined_rows_add(&join->rows, &joined, join->config->window_s);
    }
    return status;
}

/* Parts to whose trace nothing came since `before_ns` travel on. */
static enum mr_status pass_on(struct join *join, uint64_t before_ns, uint64_t *count)
{
    struct mr_part part;
    enum mr_status status = MR_OK;

    *count = 0;
    while (status == MR_OK && mr_joiner_give(join->joiner, before_ns, &part)) {
        status = make_room(join);
        if (status == MR_OK)
            mr_delta_part(&join->writer, &part);
        ++*count;
    }
    mr_counters_add(&join->counters, PASSED_ON, *count);
    return status == MR_OK && join->batch ? mr_delta_status(&join->writer) : status;
}

static enum mr_status take_part(struct join *join, const struct mr_part *part)
{
    enum mr_status status = mr_joiner_add(join->joiner, part, join->now_ns, NULL);

    if (status == MR_ELIMIT) {
        uint64_t given;

        status = pass_on(join, join->now_ns, &given); /* what came before this tick */
        if (status == MR_OK && given == 0)
            status = pass_on(join, UINT64_MAX, &given);
        mr_counters_add(&join->counters, FULL, given);
        if (status == MR_OK)
            status = mr_joiner_add(join->joiner, part, join->now_ns, NULL);
    }
    return status == MR_OK ? take_joined(join) : status;
}

/* Takes the parts out of the payload; what is not well formed is left for merge to see. */
static enum mr_status take_parts(struct join *join, struct mr_buffer *bytes)
{
    struct mr_part_edge edges[MR_PART_EDGES_MAX];
    struct mr_span rest = mr_buffer_span(bytes), whole, fields;
    size_t kept = 0;
    uint64_t tag;
    struct mr_part part;
    enum mr_status status = MR_OK;

    while (status == MR_OK && mr_delta_skip(&rest, &tag, &whole, &fields)) {
        if (tag == MR_DELTA_PART && mr_part_get(&fields, &part, edges)) {
            status = take_part(join, &part);
            continue;
        }
        memmove(bytes->data + kept, whole.data, whole.size);
        kept += whole.size;
    }
    if (rest.size)
        memmove(bytes->data + kept, rest.data, rest.size);
    mr_buffer_truncate(bytes, kept + rest.size);
    return status;
}

static bool has_parts(struct mr_span payload)
{
    struct mr_span whole, fields;
    uint64_t tag;

    while (mr_delta_skip(&payload, &tag, &whole, &fields))
        if (tag == MR_DELTA_PART)
            return true;
    return false;
}

/* Holds it until nothing is held of what it speaks of. */
static enum mr_status take_mark(struct join *join, struct mr_batch *batch)
{
    enum mr_status status = MR_OK;

    if (!join->mark) {
        join->mark = batch;
        return MR_OK;
    }
    join->mark->bytes.limit = MARKS_BYTES_MAX;
    if (batch->bytes.size)
        status =
            mr_buffer_append(&join->mark->bytes, batch->bytes.data, batch->bytes.size);
    mr_batch_free(batch);
    return status;
}

static enum mr_status emit_mark(struct join *join)
{
    struct mr_batch *mark = join->mark;

    join->mark = NULL;
    return mark ? mr_filter_emit(join->filter, mark) : MR_OK;
}

static enum mr_status join_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct join *join = mr_filter_state(filter);
    enum mr_status status = MR_OK;

    if (batch->kind == MR_BATCH_MARK)
        return take_mark(join, batch);
    if (batch->kind == MR_BATCH_DELTA && has_parts(mr_buffer_span(&batch->bytes)))
        status = take_parts(join, &batch->bytes);
    if (status == MR_OK)
        return mr_filter_emit(filter, batch);
    mr_batch_free(batch);
    return status;
}

static void tell_counters(struct join *join)
{
    struct mr_joiner_stats now;

    mr_joiner_stats(join->joiner, &now);
    mr_counters_add(&join->counters, PARTS, now.parts - join->told.parts);
    mr_counters_add(&join->counters, JOINED, now.joined - join->told.joined);
    mr_counters_add(&join->counters, AGAIN, now.again - join->told.again);
    mr_counters_add(&join->counters, DOUBLES, now.doubles - join->told.doubles);
    mr_counters_add(&join->counters, CIRCLES, now.circles - join->told.circles);
    join->told = now;
}

static enum mr_status join_tick(struct mr_filter *filter, uint64_t now_ns)
{
    struct join *join = mr_filter_state(filter);
    uint64_t passed;
    enum mr_status status = MR_OK;

    join->now_ns = now_ns;
    if (now_ns - join->emitted_ns >= join->config->period_ns &&
        mr_filter_can_emit(filter)) {
        if (join->mark) /* nothing that it speaks of may stay behind */
            status = pass_on(join, UINT64_MAX, &passed);
        else if (now_ns > join->config->period_ns)
            status = pass_on(join, now_ns - join->config->period_ns, &passed);
        if (status == MR_OK)
            status = emit_rows(join);
        if (status == MR_OK)
            status = emit_mark(join);
        tell_counters(join);
    }
    return status == MR_OK
               ? mr_counters_tick(&join->counters, join->config->level, now_ns)
               : status;
}

static enum mr_status join_drain(struct mr_filter *filter)
{
    struct join *join = mr_filter_state(filter);
    uint64_t passed;
    enum mr_status status = pass_on(join, UINT64_MAX, &passed);

    if (status == MR_OK)
        status = emit_rows(join);
    tell_counters(join);
    if (status == MR_OK)
        status = mr_counters_emit(&join->counters, join->config->level);
    return status == MR_OK ? emit_mark(join) : status;
}

const struct mr_filter_kind mr_join_filter = {
    .name = "join",
    .state_size = sizeof(struct join),
    .open = join_open,
    .process = join_process,
    .tick = join_tick,
    .drain = join_drain,
    .close = join_close,
};
