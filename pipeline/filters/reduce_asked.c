/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exemplars that somebody asked for (net/wanted.h): traces that a request wants are kept whole, beyond what the order of
 * exemplars keeps, and go up as its answers.
 *
 * What a request wants is known of a shape by its nodes, once for each list of requests; so while requests are open, a
 * trace of a shape that none wants costs a few comparisons, and when none is open, one. A trace without a shape is looked
 * at when it has ended, by its calls.
 *
 * What is open is condensed apart from what exemplars are taken from, with room for as many calls as fit a frame, within a
 * budget of its own. Of a trace that goes on since an earlier batch than the request, the beginning is gone: it is none of
 * the next ones, and passed over.
 */
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "net/ids.h"
#include "pipeline/filters/reduce_private.h"

#define FRONT_MAX 1024u /* subtrees at one depth of a shape in which a path is followed */

static uint64_t bit(uint32_t request)
{
    return UINT64_C(1) << request;
}

void mr_reduce_asked_open(struct mr_reduce *reduce)
{
    reduce->asked.budget.limit = reduce->config->asked_bytes;
    reduce->asked.budget.log_most = reduce->config->exemplar_log;
    reduce->asked.budget.guess_ns = reduce->config->exemplar_guess_ns;
}

static void drop_answers(struct mr_reduce_asked *asked)
{
    for (uint32_t i = 0; i < asked->answer_count; i++) {
        struct mr_reduce_pending *pending = &asked->answers[i].pending;

        asked->budget.used -= pending->exemplar.call_count * sizeof(*pending->calls);
        free(pending->calls);
    }
    asked->answer_count = 0;
}

void mr_reduce_asked_close(struct mr_reduce *reduce)
{
    drop_answers(&reduce->asked);
    free(reduce->asked.answers);
}

/* What is wanted still is wanted anew: what was sent for it may have been lost with a worker above. */
static void take_list(struct mr_reduce_asked *asked, struct mr_wanted_board *board,
                      uint64_t now_ns)
{
    struct mr_wanted_list list;

    asked->revision = mr_wanted_board_take(board, now_ns, &list);
    asked->open = 0;
    for (uint32_t i = 0; i < list.count; i++) {
        asked->taken[i] = 0;
        asked->until_ns[i] = now_ns + list.items[i].left_ms * MR_MILLISECOND_NS;
        asked->open |= bit(i);
    }
    asked->list.count = list.count;
    memcpy(asked->list.items, list.items, list.count * sizeof(*list.items));
}

void mr_reduce_asked_tick(struct mr_reduce *reduce)
{
    struct mr_reduce_asked *asked = &reduce->asked;
    struct mr_wanted_board *board = reduce->config->wanted;
    uint64_t now_ns;

    if (!board || reduce->config->exemplar_calls == 0 || reduce->config->asked_calls == 0)
        return;
    if (!asked->open && mr_wanted_board_revision(board) == asked->revision)
        return;
    now_ns = mr_clock_monotonic_ns();
    if (mr_wanted_board_revision(board) != asked->revision)
        take_list(asked, board, now_ns);
    for (uint32_t i = 0; i < asked->list.count; i++)
        if (now_ns >= asked->until_ns[i])
            asked->open &= ~bit(i);
}

/* Of which requests it is the entry point. */
static uint64_t name_entry(const struct mr_reduce *reduce, uint32_t path)
{
    const struct mr_wanted_list *list = &reduce->asked.list;
    const struct mr_path *root = &reduce->paths.nodes[path];
    struct mr_id scope = reduce->scopes[reduce->paths.nodes[root->parent].site].id;
    struct mr_id id =
        mr_id_path(scope, mr_sites_at(reduce->config->sites, root->site)->id);
    uint64_t named = 0;

    for (uint32_t i = 0; i < list->count; i++)
        if (mr_id_is_zero(list->items[i].entry) || mr_id_equal(list->items[i].entry, id))
            named |= bit(i);
    return named;
}

/* The same, remembered until there is another list. */
static uint64_t of_entry(const struct mr_reduce *reduce, uint32_t path)
{
    uint32_t number = reduce->paths.nodes[path].entry;
    struct mr_entry *entry;

    if (number == 0)
        return name_entry(reduce, path);
    entry = &reduce->entries[number - 1];
    if (entry->asked_revision != reduce->asked.revision) {
        entry->asked = name_entry(reduce, path);
        entry->asked_revision = reduce->asked.revision;
    }
    return entry->asked;
}

static bool is_site(const struct mr_reduce *reduce, uint32_t site, uint64_t wanted)
{
    return mr_sites_at(reduce->config->sites, site)->id.lo == wanted;
}

/* Adds the children of a node that are of the site to the walk; each once, of FRONT_MAX at most. */
static bool follow(struct mr_reduce *reduce, uint32_t node, uint64_t site, uint32_t front)
{
    const struct mr_node *from = &reduce->nodes.items[node];
    struct mr_list *walk = &reduce->walk;

    for (uint32_t i = 0; i < from->count; i++) {
        uint32_t child = mr_child_node(reduce->nodes.children[from->first + i]);
        uint32_t at = front;

        if (!is_site(reduce, reduce->nodes.items[child].site, site))
            continue;
        while (at < walk->count && walk->items[at] != child)
            at++;
        if (at < walk->count || walk->count - front == FRONT_MAX)
            continue;
        if (!mr_list_push(walk, child))
            return false;
    }
    return true;
}

/* Whether traces of the node's shape touch the request's path: one depth after the other. Without memory they do not. */
static bool touches(struct mr_reduce *reduce, uint32_t node,
                    const struct mr_wanted *wanted)
{
    struct mr_list *walk = &reduce->walk;
    uint32_t from = 0, to = 1;

    walk->count = 0;
    if (!mr_list_push(walk, node))
        return false;
    for (uint32_t depth = 0; depth < wanted->depth && from < to; depth++) {
        for (uint32_t i = from; i < to; i++)
            if (!follow(reduce, walk->items[i], wanted->sites[depth], to))
                return false;
        from = to;
        to = walk->count;
    }
    return from < to;
}

static uint64_t name_shape(struct mr_reduce *reduce, const struct mr_shape *shape)
{
    const struct mr_wanted_list *list = &reduce->asked.list;
    struct mr_id node = reduce->nodes.items[shape->node].id;
    uint64_t named = of_entry(reduce, shape->root);

    for (uint32_t i = 0; i < list->count; i++) {
        const struct mr_wanted *wanted = &list->items[i];

        if (!(named & bit(i)))
            continue;
        if ((!mr_id_is_zero(wanted->node) && !mr_id_equal(wanted->node, node)) ||
            (wanted->depth > 0 && !touches(reduce, shape->node, wanted)))
            named &= ~bit(i);
    }
    return named;
}

/* Those of `named` that are open, and to which a trace is long enough. */
static uint64_t open_for(const struct mr_reduce *reduce, uint64_t named, uint64_t ns)
{
    uint64_t left = named & reduce->asked.open, open = 0;

    for (uint32_t i = 0; left; i++, left >>= 1)
        if ((left & 1) && ns >= reduce->asked.list.items[i].min_ns)
            open |= bit(i);
    return open;
}

uint64_t mr_reduce_asked_of_shape(struct mr_reduce *reduce, struct mr_shape *shape,
                                  uint64_t ns)
{
    if (shape->asked_revision != reduce->asked.revision) {
        shape->asked = name_shape(reduce, shape);
        shape->asked_revision = reduce->asked.revision;
    }
    return open_for(reduce, shape->asked, ns);
}

/* Of a trace without a shape: requests for a path are looked at when its calls are there. */
static uint64_t of_paths_alone(const struct mr_reduce *reduce, const struct mr_kept *kept)
{
    uint64_t named = of_entry(reduce, kept->path);

    for (uint32_t i = 0; i < reduce->asked.list.count; i++)
        if (!mr_id_is_zero(reduce->asked.list.items[i].node))
            named &= ~bit(i);
    return open_for(reduce, named, kept->ns);
}

void mr_reduce_asked_drop(struct mr_trace *trace)
{
    if (!trace->asked)
        return;
    mr_condense_fini(trace->asked);
    free(trace->asked);
    trace->asked = NULL;
}

/* The trace's events of the batch at hand, up to `end`. False: there is no memory. */
static bool feed(struct mr_reduce *reduce, struct mr_trace *trace, uint32_t end,
                 bool is_end)
{
    const struct mr_condense_piece piece = {
        reduce->events + trace->first, reduce->whole + trace->first, end - trace->first};

    if (!trace->asked) {
        trace->asked = malloc(sizeof(*trace->asked));
        if (!trace->asked)
            return false;
        mr_condense_init(trace->asked, &reduce->asked.budget,
                         reduce->config->asked_calls);
    }
    if (is_end)
        mr_condense_feed(trace->asked, &piece);
    else
        mr_condense_later(trace->asked, &piece);
    return !trace->asked->is_given_up;
}

void mr_reduce_asked_carry(struct mr_reduce *reduce,
                           const struct mr_reduce_stream *stream, struct mr_trace *trace,
                           uint32_t event_count)
{
    uint32_t path = stream->frames[trace->frame].path;
    bool is_whole = trace->asked || !trace->is_carried;

    trace->is_carried = true;
    if (reduce->asked.open && is_whole && path != MR_PATH_NONE &&
        (of_entry(reduce, path) & reduce->asked.open))
        (void)feed(reduce, trace, event_count, false); /* the end tells */
    else
        mr_reduce_asked_drop(trace);
}

/* Whether one of the calls, in the order of their opening, is on the request's path. */
static bool is_on_path(const struct mr_reduce *reduce, const struct mr_wanted *wanted,
                       const struct mr_exemplar_call *calls, uint32_t count)
{
    uint32_t matched = 0; /* of the calls around the one at hand, from the root's on */

    for (uint32_t i = 1; i < count && matched < wanted->depth; i++) {
        uint32_t depth = calls[i].depth;

        if (matched >= depth)
            matched = depth - 1;
        if (matched == depth - 1 &&
            is_site(reduce, calls[i].site, wanted->sites[depth - 1]))
            matched = depth;
    }
    return matched == wanted->depth;
}

/* A place for an answer, and room for its calls; NULL: past the budget, or without memory. */
static struct mr_reduce_answer *new_answer(struct mr_reduce_asked *asked, size_t bytes)
{
    struct mr_reduce_answer *answer;

    if (bytes > asked->budget.limit - asked->budget.used)
        return NULL;
    if (asked->answer_count == asked->answer_capacity) {
        uint32_t capacity = asked->answer_capacity ? 2 * asked->answer_capacity : 16;
        struct mr_reduce_answer *grown =
            realloc(asked->answers, capacity * sizeof(*grown));

        if (!grown)
            return NULL;
        asked->answers = grown;
        asked->answer_capacity = capacity;
    }
    answer = &asked->answers[asked->answer_count];
    *answer = (struct mr_reduce_answer){.pending = {.calls = malloc(bytes)}};
    if (!answer->pending.calls)
        return NULL;
    asked->budget.used += bytes;
    asked->answer_count++;
    return answer;
}

static bool answer(struct mr_reduce *reduce, uint32_t request,
                   const struct mr_reduce_pending *found)
{
    struct mr_reduce_asked *asked = &reduce->asked;
    const struct mr_wanted *wanted = &asked->list.items[request];
    size_t bytes = found->exemplar.call_count * sizeof(*found->calls);
    struct mr_reduce_answer *given = new_answer(asked, bytes);
    struct mr_exemplar_call *calls;

    if (!given)
        return false;
    calls = given->pending.calls;
    memcpy(calls, found->calls, bytes);
    given->pending = *found;
    given->pending.calls = calls;
    given->pending.exemplar.items = calls;
    given->request = wanted->id;
    given->wanted = wanted->count;
    if (++asked->taken[request] >= wanted->count)
        asked->open &= ~bit(request);
    mr_counters_add(&reduce->counters, MR_REDUCE_ASKED, 1);
    mr_counters_add(&reduce->counters, MR_REDUCE_ASKED_ELIDED,
                    found->exemplar.calls > found->exemplar.call_count);
    return true;
}

/* The trace, whose calls are there, to each of the requests. False: some answer found no room. */
static bool answer_all(struct mr_reduce *reduce, uint64_t requests, bool has_shape,
                       const struct mr_reduce_pending *found)
{
    bool is_good = true;

    for (uint32_t i = 0; i < reduce->asked.list.count; i++) {
        const struct mr_wanted *wanted = &reduce->asked.list.items[i];

        if (!(requests & bit(i)))
            continue;
        if (!has_shape && wanted->depth > 0 &&
            !is_on_path(reduce, wanted, found->calls, found->exemplar.call_count))
            continue;
        is_good &= answer(reduce, i, found);
    }
    return is_good;
}

/* Finishes what is condensed and answers with it. False: no memory. */
static bool answer_with(struct mr_reduce *reduce, const struct mr_reduce_stream *stream,
                        const struct mr_trace *trace, const struct mr_kept *kept,
                        uint64_t requests)
{
    struct mr_condense *condense = trace->asked;
    uint64_t most =
        condense->closed < condense->limit ? condense->closed : condense->limit;
    struct mr_reduce_pending found = {
        .path = kept->path,
        .shape = kept->shape ? (uint32_t)(kept->shape - reduce->shapes) + 1 : 0,
        .is_incomplete = kept->is_incomplete,
        .calls = malloc(most * sizeof(*found.calls)),
        .exemplar = mr_reduce_exemplar_of(stream, trace, kept)};
    bool is_good = found.calls != NULL;

    if (is_good) {
        found.exemplar.why = MR_EXEMPLAR_ASKED;
        found.exemplar.calls = condense->closed;
        found.exemplar.call_count = mr_condense_finish(condense, found.calls);
        is_good = answer_all(reduce, requests, kept->shape != NULL, &found);
    }
    free(found.calls);
    return is_good;
}

void mr_reduce_asked_end(struct mr_reduce *reduce, const struct mr_reduce_stream *stream,
                         struct mr_trace *trace, const struct mr_kept *kept,
                         const struct mr_event *close)
{
    uint64_t requests = kept->shape
                            ? mr_reduce_asked_of_shape(reduce, kept->shape, kept->ns)
                            : of_paths_alone(reduce, kept);

    if (requests && trace->is_carried && !trace->asked)
        mr_counters_add(&reduce->counters, MR_REDUCE_ASKED_BEGUN, 1);
    else if (requests &&
             (!feed(reduce, trace, (uint32_t)(close - reduce->events) + 1, true) ||
              !answer_with(reduce, stream, trace, kept, requests)))
        mr_counters_add(&reduce->counters, MR_REDUCE_ASKED_NOT_KEPT, 1);
    mr_reduce_asked_drop(trace);
}

enum mr_status mr_reduce_asked_flush(struct mr_reduce *reduce)
{
    struct mr_reduce_asked *asked = &reduce->asked;
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; i < asked->answer_count && status == MR_OK; i++) {
        struct mr_reduce_answer *answer = &asked->answers[i];
        uint32_t path, shape;

        status = mr_reduce_exemplar_numbers(reduce, &answer->pending, &path, &shape);
        if (status != MR_OK)
            break;
        mr_delta_asked(&reduce->writer, answer->request, answer->wanted, path, shape,
                       mr_reduce_source_number(reduce, answer->pending.exemplar.source),
                       &answer->pending.exemplar);
        status = mr_delta_status(&reduce->writer);
    }
    drop_answers(asked);
    return status;
}
