/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of single traces: exemplars, and for shapes that recur statistics per path of their own.
 *
 * While a trace runs, nothing is kept of it but where it began: when it ends and is wanted, its events are still in the
 * batch. Those of a trace that goes on in another batch are condensed when their batch ends (pipeline/condense.h).
 *
 * Wanted is a trace that began earlier or took longer than all of its shape before it, and as many others of known shapes as `shape_calls_s` pays for. Exemplars compete over the whole time of this lane for `exemplars_max` places per
 * reason, in an order that the traces alone decide: who finds no place here would find none at the master.
 */
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/hash.h"
#include "pipeline/filters/reduce_private.h"

#define SPARE_MAX 16u
#define ROWS_MAX 16384u
#define SLOTS 32768u /* twice as many */

enum { RANK_FIRST, RANK_SLOWEST };

/* Calls at once: an eighth of a second's, and at least one trace of any size that is counted. */
static uint64_t most_credit(const struct mr_reduce_config *config)
{
    uint64_t part = config->shape_calls_s / 8;

    if (config->shape_calls_s == 0)
        return 0;
    return part > config->exemplar_calls ? part : config->exemplar_calls;
}

enum mr_status mr_reduce_exemplars_open(struct mr_reduce *reduce)
{
    struct mr_reduce_exemplars *exemplars = &reduce->exemplars;
    const struct mr_reduce_config *config = reduce->config;

    exemplars->budget.limit = config->exemplar_open_bytes;
    exemplars->budget.log_most = config->exemplar_log;
    exemplars->budget.guess_ns = config->exemplar_guess_ns;
    mr_reduce_asked_open(reduce);
    exemplars->credit = most_credit(config);
    exemplars->credit_ns = mr_reduce_budget_ns(reduce);
    if (config->exemplar_calls == 0)
        return MR_OK;
    exemplars->calls = malloc(config->exemplar_calls * sizeof(*exemplars->calls));
    return exemplars->calls ? MR_OK : MR_ENOMEM;
}

static void clear_pending(struct mr_reduce_exemplars *exemplars)
{
    for (uint32_t i = 0; i < exemplars->pending_count; i++)
        free(exemplars->pending[i].calls);
    exemplars->pending_count = 0;
}

void mr_reduce_exemplars_close(struct mr_reduce *reduce)
{
    struct mr_reduce_exemplars *exemplars = &reduce->exemplars;

    mr_reduce_asked_close(reduce);
    clear_pending(exemplars);
    free(exemplars->pending);
    free(exemplars->calls);
    free(exemplars->rows);
    free(exemplars->slots);
    for (int i = 0; i < MR_EXEMPLAR_WHYS; i++)
        free(exemplars->ranks[i].items);
    while (exemplars->spare_count > 0) {
        mr_condense_fini(exemplars->spare[--exemplars->spare_count]);
        free(exemplars->spare[exemplars->spare_count]);
    }
}

void mr_reduce_exemplars_tick(struct mr_reduce *reduce)
{
    uint64_t now_ns = mr_reduce_budget_ns(reduce);
    struct mr_reduce_exemplars *exemplars = &reduce->exemplars;
    uint64_t rate = reduce->config->shape_calls_s;
    uint64_t since_ns = now_ns > exemplars->credit_ns ? now_ns - exemplars->credit_ns : 0;

    if (since_ns > MR_SECOND_NS)
        since_ns = MR_SECOND_NS;
    exemplars->credit += rate * (since_ns / 1000) / (MR_SECOND_NS / 1000);
    if (exemplars->credit > most_credit(reduce->config))
        exemplars->credit = most_credit(reduce->config);
    exemplars->credit_ns = now_ns;
}

static struct mr_condense *take_condense(struct mr_reduce *reduce)
{
    struct mr_reduce_exemplars *exemplars = &reduce->exemplars;
    struct mr_condense *condense;

    if (exemplars->spare_count > 0)
        return exemplars->spare[--exemplars->spare_count];
    condense = malloc(sizeof(*condense));
    if (condense)
        mr_condense_init(condense, &exemplars->budget, reduce->config->exemplar_calls);
    return condense;
}

void mr_reduce_exemplars_drop(struct mr_reduce *reduce, struct mr_trace *trace)
{
    struct mr_reduce_exemplars *exemplars = &reduce->exemplars;

    mr_reduce_asked_drop(trace);
    if (!trace->condense)
        return;
    reduce->noted.least_ns = UINT64_MAX;
    if (exemplars->spare_count < SPARE_MAX) {
        mr_condense_reset(trace->condense);
        exemplars->spare[exemplars->spare_count++] = trace->condense;
    } else {
        mr_condense_fini(trace->condense);
        free(trace->condense);
    }
    trace->condense = NULL;
}

/* Takes the trace's events of the batch at hand, up to `end`; of a trace that goes on, it may do so later. */
static void feed(struct mr_reduce *reduce, struct mr_trace *trace, uint32_t end,
                 bool is_end)
{
    const struct mr_condense_piece piece = {
        reduce->events + trace->first, reduce->whole + trace->first, end - trace->first};

    if (!trace->condense)
        trace->condense = take_condense(reduce);
    if (trace->condense && is_end)
        mr_condense_feed(trace->condense, &piece);
    else if (trace->condense)
        mr_condense_later(trace->condense, &piece);
    trace->first = 0; /* of the next batch */
}

void mr_reduce_exemplars_carry(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                               uint32_t event_count)
{
    if (reduce->config->exemplar_calls == 0)
        return;
    for (uint32_t i = 0; i < stream->trace_count; i++) {
        struct mr_trace *trace = &stream->traces[i];

        mr_reduce_asked_carry(reduce, stream, trace, event_count);
        if (!mr_reduce_noted_carry(reduce, stream, trace, event_count))
            feed(reduce, trace, event_count, false);
    }
}

/* Larger is better. False: all places are taken by better ones. */
static bool take_place(struct mr_reduce_rank *rank, uint32_t limit, struct mr_id key,
                       uint64_t value)
{
    uint32_t at = 0;

    if (rank->count == limit && value < rank->items[rank->worst].value)
        return false;
    if (!rank->items)
        rank->items = calloc(limit, sizeof(*rank->items));
    if (!rank->items)
        return false;
    while (at < rank->count && !mr_id_equal(rank->items[at].key, key))
        at++;
    if (at < rank->count && value < rank->items[at].value)
        return false;
    if (at == rank->count && rank->count == limit)
        at = rank->worst;
    if (at == rank->count)
        rank->count++;
    rank->items[at] = (struct mr_reduce_place){key, value};
    for (uint32_t i = rank->worst = 0; i < rank->count; i++)
        if (rank->items[i].value < rank->items[rank->worst].value)
            rank->worst = i;
    return true;
}

static struct mr_id key_of(const struct mr_reduce *reduce, const struct mr_kept *kept)
{
    const struct mr_path *root = &reduce->paths.nodes[kept->path];
    const struct mr_id none = {0, kept->is_incomplete};
    const struct mr_id ids[] = {reduce->scopes[reduce->paths.nodes[root->parent].site].id,
                                mr_sites_at(reduce->config->sites, root->site)->id,
                                kept->shape ? reduce->nodes.items[kept->shape->node].id
                                            : none};

    return mr_hash128(mr_span_of(ids, sizeof(ids)));
}

/* What the trace is kept for; the extremes have it from now on. */
static uint32_t reasons(struct mr_reduce *reduce, const struct mr_kept *kept)
{
    struct mr_reduce_rank *ranks = reduce->exemplars.ranks;
    uint32_t limit = reduce->config->exemplars_max, why = 0;
    struct mr_extremes *extremes = kept->extremes;
    struct mr_id key;

    if (limit == 0 || !mr_reduce_is_extreme(extremes, kept->ns, kept->start_ns))
        return 0;
    key = key_of(reduce, kept);
    if (mr_reduce_is_slowest(extremes, kept->ns, kept->start_ns)) {
        extremes->longest_ns = kept->ns;
        extremes->longest_start_ns = kept->start_ns;
        if (take_place(&ranks[RANK_SLOWEST], limit, key, kept->ns))
            why |= MR_EXEMPLAR_SLOWEST;
    }
    if (kept->start_ns <= extremes->earliest_ns) {
        extremes->earliest_ns = kept->start_ns;
        if (take_place(&ranks[RANK_FIRST], limit, key, UINT64_MAX - kept->start_ns))
            why |= MR_EXEMPLAR_FIRST;
    }
    return why;
}

static bool is_of(const struct mr_reduce_pending *a, const struct mr_reduce_pending *b)
{
    return a->path == b->path && a->shape == b->shape &&
           (a->shape || a->is_incomplete == b->is_incomplete);
}

/* Takes the reasons for which one of the two is the better one off the other. */
static void compete(struct mr_reduce_pending *a, struct mr_reduce_pending *b)
{
    for (uint32_t why = 1; why < MR_EXEMPLAR_ALL; why <<= 1) {
        if (!(a->exemplar.why & b->exemplar.why & why))
            continue;
        if (mr_exemplar_is_before(&a->exemplar, &b->exemplar, (enum mr_exemplar_why)why))
            b->exemplar.why &= ~why;
        else
            a->exemplar.why &= ~why;
    }
}

static struct mr_reduce_pending *add_pending(struct mr_reduce_exemplars *exemplars)
{
    if (exemplars->pending_count == exemplars->pending_capacity) {
        uint32_t capacity =
            exemplars->pending_capacity ? 2 * exemplars->pending_capacity : 16;
        struct mr_reduce_pending *grown =
            realloc(exemplars->pending, capacity * sizeof(*grown));

        if (!grown)
            return NULL;
        exemplars->pending = grown;
        exemplars->pending_capacity = capacity;
    }
    exemplars->pending[exemplars->pending_count] = (struct mr_reduce_pending){.path = 0};
    return &exemplars->pending[exemplars->pending_count++];
}

static enum mr_exemplar_status status_of(const struct mr_kept *kept)
{
    if (kept->is_incomplete)
        return MR_EXEMPLAR_INCOMPLETE;
    return kept->is_failed ? MR_EXEMPLAR_FAILED : MR_EXEMPLAR_OK;
}

/* Where the exemplar is to wait: the place of one that has no reason left, or a new one; NULL without memory. */
static struct mr_reduce_pending *place_for(struct mr_reduce_exemplars *exemplars,
                                           struct mr_reduce_pending *given)
{
    struct mr_reduce_pending *place = NULL;

    for (uint32_t i = 0; i < exemplars->pending_count; i++) {
        struct mr_reduce_pending *pending = &exemplars->pending[i];

        if (is_of(pending, given))
            compete(pending, given);
        if (pending->exemplar.why == 0)
            place = pending;
    }
    return place ? place : add_pending(exemplars);
}

/* Calls of the stream that had begun when it began: a number that no other trace of the stream has. */
static uint64_t begun_before(const struct mr_reduce_stream *stream,
                             const struct mr_trace *trace)
{
    uint32_t outers = 0;

    while (outers < trace->frame && stream->frames[outers].flags & MR_EVENT_OUTER)
        outers++;
    return trace->closed + trace->frame - outers;
}

struct mr_exemplar mr_reduce_exemplar_of(const struct mr_reduce_stream *stream,
                                         const struct mr_trace *trace,
                                         const struct mr_kept *kept)
{
    return (struct mr_exemplar){.status = status_of(kept),
                                .source = stream->source,
                                .stream = stream->id,
                                .before = begun_before(stream, trace),
                                .start_ns = kept->start_ns};
}

/* Keeps the `count` calls at hand until the next delta. */
static enum mr_status keep(struct mr_reduce *reduce,
                           const struct mr_reduce_stream *stream,
                           const struct mr_trace *trace, const struct mr_kept *kept,
                           uint32_t why, uint32_t count)
{
    struct mr_reduce_exemplars *exemplars = &reduce->exemplars;
    size_t size = count * sizeof(*exemplars->calls);
    struct mr_reduce_pending *place,
        given = {.path = kept->path,
                 .shape = kept->shape ? (uint32_t)(kept->shape - reduce->shapes) + 1 : 0,
                 .is_incomplete = kept->is_incomplete,
                 .calls = malloc(size),
                 .exemplar = mr_reduce_exemplar_of(stream, trace, kept)};

    if (!given.calls)
        return MR_ENOMEM;
    given.exemplar.why = why;
    given.exemplar.calls = trace->condense->closed;
    given.exemplar.call_count = count;
    memcpy(given.calls, exemplars->calls, size);
    given.exemplar.items = given.calls;
    place = place_for(exemplars, &given);
    if (!place || given.exemplar.why == 0) {
        free(given.calls);
        return place ? MR_OK : MR_ENOMEM;
    }
    free(place->calls);
    *place = given;
    return MR_OK;
}

static struct mr_shape_path_row *find_row(struct mr_reduce_exemplars *exemplars,
                                          uint32_t shape, uint32_t path)
{
    uint32_t at =
        (uint32_t)((((uint64_t)shape << 32 | path) * UINT64_C(0x9e3779b97f4a7c15)) >>
                   32) %
        SLOTS;

    for (; exemplars->slots[at]; at = (at + 1) % SLOTS) {
        struct mr_shape_path_row *row = &exemplars->rows[exemplars->slots[at] - 1];

        if (row->shape == shape && row->path == path)
            return row;
    }
    exemplars->rows[exemplars->row_count] =
        (struct mr_shape_path_row){.shape = shape, .path = path};
    exemplars->slots[at] = ++exemplars->row_count;
    return &exemplars->rows[exemplars->row_count - 1];
}

static bool make_rows(struct mr_reduce_exemplars *exemplars)
{
    if (!exemplars->rows)
        exemplars->rows = malloc(ROWS_MAX * sizeof(*exemplars->rows));
    if (!exemplars->slots)
        exemplars->slots = calloc(SLOTS, sizeof(*exemplars->slots));
    return exemplars->rows && exemplars->slots;
}

static void count_call(struct mr_reduce_exemplars *exemplars, uint32_t shape,
                       uint32_t path, const struct mr_exemplar_call *call,
                       uint64_t self_ns)
{
    struct mr_shape_path_row *row = find_row(exemplars, shape, path);
    bool is_failed = call->flags & (MR_EXEMPLAR_CALL_FAILED | MR_EXEMPLAR_CALL_UNWOUND);
    bool is_first = row->stats.ok + row->stats.failed == 0;

    row->stats.ok += !is_failed;
    row->stats.failed += is_failed;
    mr_times_add(&row->stats.total, call->total_ns, is_first);
    mr_times_add(&row->stats.self, self_ns, is_first);
}

/* Adds a whole trace to the paths of its shape. */
static void count_paths(struct mr_reduce *reduce, const struct mr_kept *kept,
                        const struct mr_condense_call *whole, uint32_t count)
{
    struct mr_reduce_exemplars *exemplars = &reduce->exemplars;
    const struct mr_exemplar_call *calls = exemplars->calls;
    uint32_t shape = (uint32_t)(kept->shape - reduce->shapes);

    reduce->chain.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t path = kept->path;

        reduce->chain.count = calls[i].depth;
        if (i > 0)
            path = mr_paths_child(&reduce->paths, reduce->chain.items[calls[i].depth - 1],
                                  calls[i].site);
        if (path == MR_PATH_NONE || !mr_list_push(&reduce->chain, path))
            return;
        count_call(exemplars, shape, path, &calls[i],
                   whole[i].total_ns - whole[i].child_ns);
    }
}

static enum mr_status take_trace(struct mr_reduce *reduce,
                                 const struct mr_reduce_stream *stream,
                                 struct mr_trace *trace, const struct mr_kept *kept,
                                 uint32_t why, bool is_counted)
{
    struct mr_reduce_exemplars *exemplars = &reduce->exemplars;
    enum mr_status status = MR_OK;
    uint32_t count;

    if (!trace->condense || trace->condense->is_given_up) {
        mr_counters_add(&reduce->counters, MR_REDUCE_NOT_KEPT, 1);
        return MR_OK;
    }
    count = mr_condense_finish(trace->condense, exemplars->calls);
    if (why)
        status = keep(reduce, stream, trace, kept, why, count);
    if (status == MR_OK && is_counted && trace->condense->closed == count &&
        make_rows(exemplars))
        count_paths(reduce, kept, trace->condense->kept, count);
    return status;
}

enum mr_status mr_reduce_exemplars_end(struct mr_reduce *reduce,
                                       struct mr_reduce_stream *stream,
                                       const struct mr_kept *kept,
                                       const struct mr_event *close)
{
    struct mr_reduce_exemplars *exemplars = &reduce->exemplars;
    struct mr_trace *trace = &stream->traces[stream->trace_count - 1];
    bool is_counted = kept->shape && kept->extremes->earliest_ns != UINT64_MAX &&
                      mr_reduce_pays(reduce, kept->calls) &&
                      exemplars->row_count + kept->calls <= ROWS_MAX;
    enum mr_status status = MR_OK;
    uint32_t why = 0;

    if (trace->is_partial) {
        mr_reduce_exemplars_drop(reduce, trace);
        return MR_OK;
    }
    if (reduce->asked.open && kept->path != MR_PATH_NONE)
        mr_reduce_asked_end(reduce, stream, trace, kept, close);
    if (reduce->config->exemplar_calls > 0 && kept->path != MR_PATH_NONE)
        why = reasons(reduce, kept);
    if (why || is_counted) {
        feed(reduce, trace, (uint32_t)(close - reduce->events) + 1, true);
        exemplars->credit -= is_counted ? kept->calls : 0;
        status = take_trace(reduce, stream, trace, kept, why, is_counted);
    }
    mr_reduce_exemplars_drop(reduce, trace);
    return status;
}

enum mr_status mr_reduce_exemplar_numbers(struct mr_reduce *reduce,
                                          struct mr_reduce_pending *pending,
                                          uint32_t *path, uint32_t *shape)
{
    enum mr_status status = mr_reduce_room(reduce);

    *shape = MR_DELTA_NONE;
    if (status == MR_OK)
        status = mr_reduce_path_number(reduce, pending->path, path);
    if (status == MR_OK && pending->shape) {
        status = mr_reduce_shape_number(reduce, &reduce->shapes[pending->shape - 1]);
        *shape = reduce->shapes[pending->shape - 1].index;
    }
    for (uint32_t i = 0; status == MR_OK && i < pending->exemplar.call_count; i++)
        status = mr_reduce_site_number(reduce, pending->calls[i].site,
                                       &pending->calls[i].site);
    return status;
}

static enum mr_status exemplar_row(struct mr_reduce *reduce,
                                   struct mr_reduce_pending *pending)
{
    uint32_t path, shape;
    enum mr_status status = mr_reduce_exemplar_numbers(reduce, pending, &path, &shape);

    if (status != MR_OK)
        return status;
    mr_delta_exemplar(&reduce->writer, path, shape,
                      mr_reduce_source_number(reduce, pending->exemplar.source),
                      &pending->exemplar);
    return mr_delta_status(&reduce->writer);
}

static enum mr_status shape_path_row(struct mr_reduce *reduce,
                                     const struct mr_shape_path_row *row)
{
    enum mr_status status = mr_reduce_room(reduce);
    uint32_t path;

    if (status == MR_OK)
        status = mr_reduce_shape_number(reduce, &reduce->shapes[row->shape]);
    if (status == MR_OK)
        status = mr_reduce_path_number(reduce, row->path, &path);
    if (status != MR_OK)
        return status;
    mr_delta_shape_path(&reduce->writer, reduce->shapes[row->shape].index, path,
                        &row->stats);
    return mr_delta_status(&reduce->writer);
}

enum mr_status mr_reduce_exemplars_flush(struct mr_reduce *reduce)
{
    struct mr_reduce_exemplars *exemplars = &reduce->exemplars;
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; i < exemplars->pending_count && status == MR_OK; i++)
        if (exemplars->pending[i].exemplar.why)
            status = exemplar_row(reduce, &exemplars->pending[i]);
    if (status == MR_OK)
        status = mr_reduce_asked_flush(reduce);
    for (uint32_t i = 0; i < exemplars->row_count && status == MR_OK; i++)
        status = shape_path_row(reduce, &exemplars->rows[i]);
    clear_pending(exemplars);
    if (exemplars->row_count)
        memset(exemplars->slots, 0, SLOTS * sizeof(*exemplars->slots));
    exemplars->row_count = 0;
    return status;
}
