/* SPDX-License-Identifier: Apache-2.0 */
#include "net/exemplar.h"

#include "base/assert.h"
#include "net/varint.h"

#include <stdlib.h>

bool mr_exemplar_is_same(const struct mr_exemplar *a, const struct mr_exemplar *b)
{
    return mr_id_equal(a->source, b->source) && a->stream == b->stream &&
           a->before == b->before && a->start_ns == b->start_ns;
}

bool mr_exemplar_is_before(const struct mr_exemplar *a, const struct mr_exemplar *b,
                           enum mr_exemplar_why why)
{
    int sources = mr_id_compare(a->source, b->source);

    MR_ASSERT(why == MR_EXEMPLAR_FIRST || why == MR_EXEMPLAR_SLOWEST ||
              why == MR_EXEMPLAR_ASKED);
    if (why == MR_EXEMPLAR_SLOWEST && mr_exemplar_ns(a) != mr_exemplar_ns(b))
        return mr_exemplar_ns(a) > mr_exemplar_ns(b);
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns;
    if (sources != 0)
        return sources < 0;
    if (a->stream != b->stream)
        return a->stream < b->stream;
    return a->before < b->before;
}

uint8_t *mr_exemplar_put_calls(const struct mr_exemplar *exemplar, uint8_t *at)
{
    const struct mr_exemplar_call *items = exemplar->items;

    at = mr_varint_put(at, exemplar->call_count);
    for (uint32_t i = 0; i < exemplar->call_count; i++) {
        uint64_t before_ns = i ? items[i - 1].start_ns : 0;
        uint32_t up = i ? items[i - 1].depth + 1 - items[i].depth : 0;

        MR_ASSERT(items[i].start_ns >= before_ns);
        at = mr_varint_put(at, up);
        at = mr_varint_put(at, items[i].site);
        at = mr_varint_put(at, items[i].start_ns - before_ns);
        at = mr_varint_put(at, items[i].total_ns);
        at = mr_varint_put(at, items[i].flags);
        at = mr_varint_put(at, items[i].elided_calls);
        at = mr_varint_put(at, items[i].elided_ns);
    }
    return at;
}

/* What is left of the calls that are open at a place of the list. */
struct around {
    uint64_t from_ns; /* where the next call in it may begin */
    uint64_t end_ns;
    uint64_t left_ns; /* of its time, for calls in it */
};

static bool get_call(struct mr_span *in, uint32_t sites, uint64_t before_ns,
                     struct mr_exemplar_call *call, uint64_t *up)
{
    uint64_t gap_ns;

    if (!mr_varint_get(in, up) || !mr_varint_get_u32(in, &call->site) ||
        !mr_varint_get(in, &gap_ns) || !mr_varint_get(in, &call->total_ns) ||
        !mr_varint_get_u32(in, &call->flags) || !mr_varint_get(in, &call->elided_calls) ||
        !mr_varint_get(in, &call->elided_ns))
        return false;
    call->start_ns = before_ns + gap_ns;
    return call->site < sites && gap_ns <= UINT64_MAX - before_ns &&
           call->total_ns <= UINT64_MAX - call->start_ns &&
           (call->flags & ~(uint32_t)MR_EXEMPLAR_CALL_FLAGS) == 0 &&
           call->elided_ns <= call->total_ns && (call->elided_calls || !call->elided_ns);
}

/* Whether the call lies inside the one around it, behind those before it. */
static bool enter(struct around *stack, const struct mr_exemplar_call *call)
{
    struct around *outer = &stack[call->depth - 1];

    if (call->start_ns < outer->from_ns ||
        call->start_ns + call->total_ns > outer->end_ns ||
        call->total_ns > outer->left_ns)
        return false;
    outer->from_ns = call->start_ns + call->total_ns;
    outer->left_ns -= call->total_ns;
    return true;
}

static bool get_all(struct mr_span *in, uint32_t sites, uint64_t calls,
                    struct mr_exemplar_call *items, uint32_t count, struct around *stack)
{
    for (uint32_t i = 0; i < count; i++) {
        struct mr_exemplar_call *call = &items[i];
        uint64_t up;

        if (!get_call(in, sites, i ? items[i - 1].start_ns : 0, call, &up) ||
            (i ? up > items[i - 1].depth : up > 0 || call->start_ns > 0))
            return false;
        call->depth = i ? items[i - 1].depth + 1 - (uint32_t)up : 0;
        if (call->depth > 0 && !enter(stack, call))
            return false;
        stack[call->depth] =
            (struct around){call->start_ns, call->start_ns + call->total_ns,
                            call->total_ns - call->elided_ns};
        if (calls == 0 || call->elided_calls > calls - 1)
            return false;
        calls -= 1 + call->elided_calls;
    }
    return calls == 0;
}

bool mr_exemplar_get_calls(struct mr_span *in, uint32_t sites, uint64_t calls,
                           struct mr_exemplar_call *items, uint32_t count)
{
    struct around *stack = malloc(((size_t)count + 1) * sizeof(*stack));
    bool is_good = stack && count > 0 && get_all(in, sites, calls, items, count, stack);

    free(stack);
    return is_good;
}
