/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which trace a thread works for, and the records that join call trees across threads and
 * processes: send, receive, capture, attach, detach (docs/FORMAT.md sections 6.1, 6.2).
 *
 * field        written by   read by  access
 * context      its thread   same     thread-local
 * context_ids  any thread   any      relaxed add: a block of numbers is one thread's
 *
 * Ids cost no system call: numbers that this process gives once, mixed with its random
 * source id by a function that takes no two numbers to one.
 * Checked by: tests/system/join
 */
#include "probe/hook.h"
#include "probe/include/millrace/probe.h"
#include "probe/registry.h"

#include <errno.h>

#define SAVED_MAX 8
#define BLOCK 4096u /* numbers that a thread takes at a time */
#define FLAG_SAMPLED 1u

struct frame {
    uint64_t trace_hi, trace_lo;
    uint64_t handoff; /* id of what was attached; 0: received, or nothing */
};

struct context {
    struct frame now,
        saved[SAVED_MAX]; /* of more, the innermost: detaches may be missing */
    uint32_t depth;       /* attached, and saved */
    uint32_t cuts;        /* switches of recording before the outermost attach */
    bool is_received;     /* something came of which no end was told for sure */
    uint64_t next_id, end_id;
};

static _Thread_local struct context self MR_TLS_INITIAL_EXEC;

/* MurmurHash3's finaliser: a bijection. */
static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 33) * UINT64_C(0xff51afd7ed558ccd);
    value = (value ^ value >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return value ^ value >> 33;
}

/* From 1 on, each once in this process; a forked child goes on with a source id of its own. */
static uint64_t new_number(struct context *context)
{
    if (context->next_id == context->end_id) {
        context->next_id = 1 + mr_add_relaxed(&mr_probe->context_ids, BLOCK);
        context->end_id = context->next_id + BLOCK;
    }
    return context->next_id++;
}

static uint64_t new_id(struct context *context, uint64_t seed)
{
    uint64_t id;

    do
        id = mix(seed + new_number(context));
    while (id == 0);
    return id;
}

static void record(enum mr_record_kind kind, const uint64_t *payload, uint32_t words)
{
    struct mr_thread *thread = &mr_thread_self;
    uint32_t clock = mr_load_relaxed(&mr_hook_state.clock);
    struct mr_event event = {
        .bits = mr_word_record(kind, words, 0, 0), .rest = payload, .words = 1 + words};

    if (clock == 0) /* recording ended meanwhile */
        return;
    if (!thread->words) {
        mr_thread_event(thread, &event);
        return;
    }
    mr_ring_event_record(thread, &event, mr_clock_read((enum mr_clock_mode)clock));
}

/* FORMAT.md section 6.2. */
static void record_message(enum mr_record_kind kind, const struct mr_traceparent *parent)
{
    const uint64_t low = (UINT64_C(1) << 62) - 1;
    uint64_t hi = parent->trace_hi, lo = parent->trace_lo, span = parent->span;
    uint64_t payload[] = {lo & low, (hi << 2 | lo >> 62) & low,
                          hi >> 60 | (span & ((UINT64_C(1) << 58) - 1)) << 4,
                          span >> 58 | (uint64_t)parent->flags << 8};

    record(kind, payload, MR_ARRAY_COUNT(payload));
}

static bool has_trace(const struct frame *frame)
{
    return (frame->trace_hi | frame->trace_lo) != 0;
}

static void begin_trace(struct context *context, struct frame *frame)
{
    frame->trace_hi = mix(mr_probe->source.id.hi);
    frame->trace_lo = new_id(context, mr_probe->source.id.lo);
}

MR_EXPORT int mr_probe_send(struct mr_traceparent *parent)
{
    int saved_errno = errno;
    struct context *context = &self;
    struct frame frame = context->now;

    if (!has_trace(&frame))
        begin_trace(context, &frame);
    parent->trace_hi = frame.trace_hi;
    parent->trace_lo = frame.trace_lo;
    parent->span = new_id(context, mr_probe->source.id.hi);
    parent->flags = FLAG_SAMPLED; /* we record it; the others are to be zero */
    record_message(MR_RECORD_SEND, parent);
    errno = saved_errno;
    return 1;
}

/*
 * No call tree belongs any more to what the thread received outside of what it attached. Whether now is outside only the worker
 * knows, as some of what is attached here may be over there, its detach missing.
 */
static void end_received(struct context *context)
{
    const uint64_t none = 0;

    if (context->is_received)
        record(MR_RECORD_DETACH, &none, 1);
    if (context->depth == 0)
        context->is_received = false;
}

MR_EXPORT void mr_probe_receive(const struct mr_traceparent *parent)
{
    int saved_errno = errno;
    struct context *context = &self;
    uint64_t handoff = context->now.handoff;

    if (parent)
        record_message(MR_RECORD_RECEIVE, parent);
    else
        end_received(context);
    context->is_received |= parent != NULL;
    context->now = (struct frame){.handoff = handoff};
    if (parent && parent->span && (parent->trace_hi | parent->trace_lo)) {
        context->now.trace_hi = parent->trace_hi;
        context->now.trace_lo = parent->trace_lo;
    } else {
        begin_trace(context, &context->now);
    }
    errno = saved_errno;
}

MR_EXPORT void mr_probe_capture(struct mr_token *token)
{
    int saved_errno = errno;
    struct context *context = &self;

    token->id = new_number(context);
    token->trace_hi = context->now.trace_hi;
    token->trace_lo = context->now.trace_lo;
    record(MR_RECORD_CAPTURE, &token->id, 1);
    errno = saved_errno;
}

/* A switch of recording may have swallowed detaches: what was attached before it is not any more. */
static void forget_after_switch(struct context *context)
{
    uint32_t cuts = mr_load_relaxed(&mr_probe->pool.shared.cuts.count); /* a hint */

    if (context->cuts == cuts)
        return;
    context->cuts = cuts;
    if (context->depth == 0)
        return;
    context->depth = 0;
    context->now = (struct frame){0};
}

/* Makes room for one; of a thread that leaves detaches out, none but the last attaches matter. */
static void save(struct context *context)
{
    if (context->depth == SAVED_MAX) {
        for (uint32_t i = 1; i < SAVED_MAX; i++)
            context->saved[i - 1] = context->saved[i];
        context->depth--;
    }
    context->saved[context->depth++] = context->now;
}

MR_EXPORT void mr_probe_attach(const struct mr_token *token)
{
    int saved_errno = errno;
    struct context *context = &self;

    forget_after_switch(context);
    if (token->id)
        record(MR_RECORD_ATTACH, &token->id, 1);
    save(context);
    context->now = (struct frame){
        .trace_hi = token->trace_hi, .trace_lo = token->trace_lo, .handoff = token->id};
    errno = saved_errno;
}

MR_EXPORT void mr_probe_detach(void)
{
    int saved_errno = errno;
    struct context *context = &self;

    forget_after_switch(context);
    if (context->depth > 0) {
        uint64_t handoff = context->now.handoff;

        if (handoff)
            record(MR_RECORD_DETACH, &handoff, 1);
        context->now = context->saved[--context->depth];
    } else {
        end_received(context);
        context->now = (struct frame){0};
    }
    errno = saved_errno;
}
