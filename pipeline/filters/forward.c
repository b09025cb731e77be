/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field (of the link)  written by        read by          access
 * stopping             the worker, once  forward          release store [S], acquire load [T]
 * reannounce           forward           merge            release add [R], acquire load in merge.c
 * is_open, frames_*    forward           stats, at exit   relaxed: numbers, ordered with nothing
 * max_frame            forward           merge            relaxed: a number; what was made before it grew less is counted
 * Pairs: [S]-[T] nothing but the value itself: lanes still push behind it. Progress: wait-free but for process().
 */
#include "pipeline/filters/forward.h"

#include "base/assert.h"
#include "base/atomics.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/control.h"
#include "net/frame_compress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define POLL_WAIT_NS (10 * MR_MILLISECOND_NS)
#define BYE_WAIT_NS MR_SECOND_NS
#define KEEP_NS                                                                          \
    (200 * MR_MILLISECOND_NS) /* so often the spool hears what was acknowledged */
#define ALIVE_FACTOR 3        /* of give_up_ns */
/* Of the outbox, this much stays in memory once it is empty; what a burst took beyond it goes back. */
#define OUTBOX_KEEP_BYTES ((size_t)256 << 10)

enum counter {
    COUNTER_SENT,
    COUNTER_ACKED,
    COUNTER_BYTES,
    COUNTER_CONNECTS,
    COUNTER_FAILURES,
    COUNTER_RESENDS,
    COUNTER_TOO_LARGE,
    COUNTER_PACKED,
    COUNTER_SAVED,
    COUNTER_COUNT
};

static const char *const counter_names[COUNTER_COUNT] = {
    "forward_frames",    "forward_acked",    "forward_bytes",
    "forward_connects",  "forward_failures", "forward_resends",
    "forward_too_large", "forward_packed",   "forward_bytes_saved"};

struct forward {
    const struct mr_forward_config *config;
    struct mr_sender sender;
    uint8_t *outbox;
    size_t outbox_bytes;
    struct mr_frame_compressor compressor;
    void *compressor_memory;
    size_t
        outbox_used; /* bytes from its start that frames have lain in since it was trimmed */
    uint64_t told[COUNTER_COUNT]; /* what mr_filter_count() has of the sender's numbers */
    uint64_t progress_ns; /* when frames_acked last grew, or the stop was first seen */
    uint64_t progress_acked;
    uint64_t alive_ns;      /* when the receiver was last heard of; 0: never */
    uint64_t failures_told; /* of the sender's, in the log */
    uint64_t
        repeated_from; /* merge's last repetition is in frames from here on; 0: there was none */
    bool was_open, saw_stop;
    struct mr_batch *pending, **pending_end; /* they wait for their mark; with a spool */
    uint64_t kept_acked,
        kept_ns;      /* what the spool knows to be acknowledged, since when */
    bool has_stopped; /* what comes now stays in the spool, as frames that came */
    bool
        is_far; /* the receiver is on another host: bytes cost more than making them fewer */
};

static size_t write_hello(void *context, const struct mr_custody_hello *custody,
                          uint8_t *out, size_t capacity)
{
    struct forward *forward = context;
    struct mr_hello hello = {.sender = forward->config->incarnation,
                             .role = MR_ROLE_WORKER,
                             .level = forward->config->level,
                             .oldest = custody->acked + 1,
                             .custody = *custody,
                             .token = forward->config->token,
                             .takes_wanted = forward->config->wanted != NULL};

    return mr_hello_put(&hello, out, capacity);
}

/* The receiver lacks items that were acknowledged; merge has them, and sends them in frames of their own. */
static size_t on_lacking(void *context, uint64_t *cursor, uint8_t *out, size_t capacity)
{
    struct forward *forward = context;
    const struct mr_sender *sender = &forward->sender;

    MR_UNUSED(cursor);
    MR_UNUSED(out);
    MR_UNUSED(capacity);
    /* Where none of the frames since the last time was acknowledged, all that merge sent then reaches this receiver, too. */
    if (forward->repeated_from && sender->oldest_sequence <= forward->repeated_from)
        return 0;
    forward->repeated_from = sender->next_sequence;
    mr_add_acq_rel(&forward->config->link->reannounce, 1); /* [R] */
    mr_log_info("forward: %s is new to us: the dictionary goes out again",
                forward->config->target);
    return 0;
}

static void on_welcomed(void *context, uint64_t next_sequence)
{
    struct forward *forward = context;

    MR_UNUSED(next_sequence);
    if (forward->config->asks)
        mr_asks_mark_unsent(forward->config->asks);
}

static void on_answered(void *context, const struct mr_custody_ask *answer)
{
    struct forward *forward = context;

    if (forward->config->asks)
        mr_asks_answer(forward->config->asks, answer);
}

static bool on_wanted(void *context, struct mr_span payload)
{
    struct forward *forward = context;
    struct mr_wanted_list list;

    if (!forward->config->wanted)
        return true;
    if (mr_wanted_get(payload, &list) != MR_OK)
        return false;
    mr_wanted_board_ask_again(forward->config->wanted, &list, mr_clock_monotonic_ns());
    return true;
}

/* Before the receiver may learn that we know. */
static bool on_keep(void *context, const struct mr_custody_hello *custody, uint64_t acked)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(10 * MR_SECOND_NS);
    struct forward *forward = context;
    struct mr_error error = MR_ERROR_NONE;

    if (!forward->config->spool)
        return true;
    if (mr_spool_keep(forward->config->spool, custody, acked, &error) != MR_OK) {
        (void)mr_log_limited(&limit, MR_LOG_ERROR, "forward: %s", error.text);
        return false;
    }
    forward->kept_acked = acked;
    forward->kept_ns = mr_clock_monotonic_ns();
    return true;
}

static void send_asks(struct forward *forward)
{
    struct mr_custody_ask ask;

    if (!forward->config->asks || forward->sender.state != MR_SENDER_OPEN)
        return;
    while (mr_asks_next(forward->config->asks, &ask) &&
           mr_sender_ask(&forward->sender, &ask))
        mr_asks_mark_sent(forward->config->asks, &ask);
}

static void free_memory(struct forward *forward)
{
    free(forward->compressor_memory);
    if (forward->outbox)
        (void)munmap(forward->outbox, forward->outbox_bytes);
}

static bool make_memory(struct forward *forward)
{
    size_t size = mr_frame_compressor_size(MR_FRAME_COMPRESS_LEVEL);
    void *outbox = mmap(NULL, forward->outbox_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    forward->outbox = outbox == MAP_FAILED ? NULL : outbox;
    forward->compressor_memory = malloc(size);
    if (forward->outbox && forward->compressor_memory &&
        mr_frame_compressor_init(&forward->compressor, MR_FRAME_COMPRESS_LEVEL,
                                 forward->compressor_memory, size) == MR_OK)
        return true;
    free_memory(forward);
    return false;
}

static void tell(struct mr_filter *filter, enum counter counter, uint64_t now)
{
    struct forward *forward = mr_filter_state(filter);

    mr_filter_count(filter, counter, now - forward->told[counter]);
    forward->told[counter] = now;
}

static void tell_numbers(struct mr_filter *filter)
{
    struct forward *forward = mr_filter_state(filter);
    const struct mr_sender_stats *stats = &forward->sender.stats;
    struct mr_forward_link *link = forward->config->link;

    tell(filter, COUNTER_SENT, stats->frames_committed);
    tell(filter, COUNTER_ACKED, stats->frames_acked);
    tell(filter, COUNTER_BYTES, stats->bytes_sent);
    tell(filter, COUNTER_CONNECTS, stats->connects);
    tell(filter, COUNTER_FAILURES, stats->failures);
    tell(filter, COUNTER_RESENDS, stats->resends);
    /* Relaxed: numbers for people. */
    mr_store_relaxed(&link->frames_acked, stats->frames_acked);
    mr_store_relaxed(&link->frames_held, stats->frames_committed - stats->frames_acked);
    mr_store_relaxed(&link->max_frame, forward->sender.config.max_frame);
}

/* One line per change: opened, lost, refused; and at most one in 10 s while it stays away. */
static void log_state(struct forward *forward)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(10 * MR_SECOND_NS);
    const char *target = forward->config->target;
    const char *why = forward->sender.last_error.text;
    bool is_open = forward->sender.state == MR_SENDER_OPEN;

    if (is_open != forward->was_open) {
        forward->was_open = is_open;
        forward->is_far = is_open && !mr_sender_is_same_host(&forward->sender);
        mr_store_relaxed(&forward->config->link->is_open, is_open); /* for people */
        if (is_open)
            mr_log_info("forward: connected to %s%s", target,
                        forward->is_far ? ", on another host: compressed" : "");
        else
            mr_log_info("forward: the connection is lost: %s",
                        *why ? why : "the receiver asked for it, as it stops");
    } else if (!is_open && forward->sender.last_error.status != MR_OK &&
               forward->sender.stats.failures != forward->failures_told) {
        forward->failures_told = forward->sender.stats.failures;
        (void)mr_log_limited(&limit, MR_LOG_WARN, "forward: %s; trying again", why);
    }
}

static void poll_sender(struct mr_filter *filter, uint64_t wait_ns)
{
    struct forward *forward = mr_filter_state(filter);

    send_asks(forward);
    mr_resolver_serve(forward->config->resolver, &forward->sender);
    (void)mr_sender_poll(&forward->sender, wait_ns); /* its failures are in the state */
    if (forward->sender.state == MR_SENDER_OPEN)
        forward->alive_ns = forward->sender.heard_ns;
    log_state(forward);
    tell_numbers(filter);
    if (wait_ns)
        mr_filter_goes_on(filter);
}

/*
 * Whether the receiver has told lately that it lives, by heartbeats if by nothing else. A silence breaks
 * the connection, and who was silent for want of processors takes as long to welcome the next.
 */
static bool is_alive(const struct forward *forward, uint64_t now_ns)
{
    return forward->alive_ns != 0 &&
           (now_ns - forward->alive_ns) / ALIVE_FACTOR < forward->config->give_up_ns;
}

/*
 * While stopping: true once nothing was acknowledged for give_up_ns, or, of a receiver that is
 * alive and has much to do, for MR_FORWARD_PATIENCE times as long.
 */
static bool must_give_up(struct forward *forward)
{
    uint64_t now_ns = mr_clock_monotonic_ns();
    uint64_t patience = is_alive(forward, now_ns) ? MR_FORWARD_PATIENCE : 1;

    if (!mr_load_acquire(&forward->config->link->stopping)) /* [T] */
        return false;
    if (!forward->saw_stop ||
        forward->sender.stats.frames_acked != forward->progress_acked) {
        forward->saw_stop = true;
        forward->progress_acked = forward->sender.stats.frames_acked;
        forward->progress_ns = now_ns;
    }
    return (now_ns - forward->progress_ns) / patience >= forward->config->give_up_ns;
}

/* Waits for room: the back pressure of the header's contract. */
static uint8_t *wait_for_room(struct mr_filter *filter, size_t size)
{
    struct forward *forward = mr_filter_state(filter);
    uint8_t *payload;

    while (!(payload = mr_sender_reserve(&forward->sender, size))) {
        if (must_give_up(forward))
            return NULL;
        poll_sender(filter, POLL_WAIT_NS);
    }
    return payload;
}

static void give_up(struct forward *forward, uint64_t frames)
{
    mr_add_relaxed(&forward->config->link->frames_given_up, frames); /* a number */
}

/* Compressed on its way to another host, where that makes it smaller; the size of what was put. */
static size_t put_payload(struct mr_filter *filter, uint8_t *payload,
                          struct mr_span bytes, uint16_t *flags)
{
    struct forward *forward = mr_filter_state(filter);
    size_t size = 0;

    if (forward->is_far)
        size = mr_frame_compress(&forward->compressor, bytes, payload, bytes.size);
    if (size == 0) {
        memcpy(payload, bytes.data, bytes.size);
        return bytes.size;
    }
    mr_filter_count(filter, COUNTER_PACKED, 1);
    mr_filter_count(filter, COUNTER_SAVED, bytes.size - size);
    *flags = MR_WIRE_FLAG_ZSTD;
    return size;
}

/* Larger than the receiver takes: lost and counted. */
static bool is_too_large(struct mr_filter *filter, const struct mr_batch *batch)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(10 * MR_SECOND_NS);
    struct forward *forward = mr_filter_state(filter);

    if (batch->bytes.size <= forward->sender.config.max_frame)
        return false;
    mr_filter_count(filter, COUNTER_TOO_LARGE, 1);
    mr_add_relaxed(&forward->config->link->frames_too_large, 1); /* a number */
    give_up(forward, 1);
    (void)mr_log_limited(&limit, MR_LOG_ERROR,
                         "forward: a %s of %zu bytes is larger than %s takes (%" PRIu32
                         "); it is lost and counted: raise --max-frame there",
                         batch->kind == MR_BATCH_DICT ? "DICT" : "DELTA",
                         batch->bytes.size, forward->config->target,
                         forward->sender.config.max_frame);
    return true;
}

static void put_frame(struct mr_filter *filter, uint8_t *payload, enum mr_frame_type type,
                      struct mr_span bytes)
{
    struct forward *forward = mr_filter_state(filter);
    uint16_t flags = 0;
    size_t size = put_payload(filter, payload, bytes, &flags);
    size_t end = (size_t)(payload - forward->outbox) + size;

    if (end > forward->outbox_used)
        forward->outbox_used = end;
    (void)mr_sender_commit(&forward->sender, type, flags, size);
}

/* False: given up, while stopping. */
static bool send_batch(struct mr_filter *filter, const struct mr_batch *batch)
{
    /* Kept with a number, and of a receiver since that takes less: an empty delta takes its place. */
    bool is_empty = is_too_large(filter, batch);
    struct mr_span bytes =
        mr_span_of(batch->bytes.data, is_empty ? 0 : batch->bytes.size);
    uint8_t *payload = wait_for_room(filter, bytes.size);

    if (payload)
        put_frame(filter, payload,
                  batch->kind == MR_BATCH_DICT && !is_empty ? MR_FRAME_DICT
                                                            : MR_FRAME_DELTA,
                  bytes);
    return payload != NULL;
}

/* It goes out when the mark that speaks of it is kept. */
static void hold_back(struct forward *forward, struct mr_batch *batch)
{
    batch->next = NULL;
    *forward->pending_end = batch;
    forward->pending_end = &batch->next;
}

static void drop_pending(struct forward *forward)
{
    while (forward->pending) {
        struct mr_batch *batch = forward->pending;

        forward->pending = batch->next;
        mr_batch_free(batch);
    }
    forward->pending_end = &forward->pending;
}

/* Waits while the spool is full: what is acknowledged makes room. MR_AGAIN: given up, while stopping; what came stays in the spool. */
static enum mr_status keep_pending(struct mr_filter *filter, struct mr_span marks)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(10 * MR_SECOND_NS);
    struct forward *forward = mr_filter_state(filter);
    enum mr_status status;

    for (;;) {
        struct mr_error error = MR_ERROR_NONE;

        status = mr_spool_commit(forward->config->spool, forward->sender.next_sequence,
                                 forward->pending, marks, &error);
        if (status != MR_ELIMIT) {
            if (status != MR_OK)
                mr_log_error("forward: --spool: %s", error.text);
            return status;
        }
        (void)mr_log_limited(&limit, MR_LOG_ERROR,
                             "forward: %s: nothing goes on until there is room",
                             error.text);
        if (must_give_up(forward))
            return MR_AGAIN;
        poll_sender(filter, POLL_WAIT_NS);
        (void)on_keep(forward, &forward->sender.custody,
                      forward->sender.oldest_sequence - 1);
    }
}

static enum mr_status take_mark(struct mr_filter *filter, struct mr_span marks)
{
    struct forward *forward = mr_filter_state(filter);
    enum mr_status status = MR_OK;

    if (!forward->has_stopped && (forward->pending || marks.size))
        status = keep_pending(filter, marks);
    forward->has_stopped |= status == MR_AGAIN;
    for (const struct mr_batch *at = forward->pending;
         status == MR_OK && at && !forward->has_stopped; at = at->next)
        forward->has_stopped = !send_batch(filter, at);
    drop_pending(forward);
    return status == MR_AGAIN ? MR_OK : status;
}

static enum mr_status take_kept(void *context, const struct mr_spool_frame *frame)
{
    struct mr_filter *filter = context;
    struct forward *forward = mr_filter_state(filter);
    uint8_t *payload = NULL;

    if ((frame->type == MR_FRAME_DICT || frame->type == MR_FRAME_DELTA) &&
        frame->sequence == forward->sender.next_sequence)
        payload = mr_sender_reserve(&forward->sender, frame->payload.size);
    if (!payload)
        return MR_EFORMAT;
    put_frame(filter, payload, (enum mr_frame_type)frame->type, frame->payload);
    return MR_OK;
}

/* In the place of the process that left the outbox. */
static enum mr_status go_on(struct mr_filter *filter,
                            const struct mr_spool_upward *upward, struct mr_error *error)
{
    struct forward *forward = mr_filter_state(filter);
    uint32_t max_frame = forward->sender.config.max_frame;
    enum mr_status status;

    /* The next process must not open connections of the same numbers. */
    status = mr_spool_keep(forward->config->spool, &upward->custody,
                           upward->custody.acked, error);
    if (status != MR_OK)
        return status;
    mr_sender_resume(&forward->sender, &upward->custody);
    forward->kept_acked = upward->custody.acked;
    forward->sender.config.max_frame = UINT32_MAX; /* that process may have had more */
    status = mr_spool_each_frame(forward->config->spool, take_kept, filter, error);
    forward->sender.config.max_frame = max_frame;
    if (status == MR_EFORMAT)
        return mr_error_set(error, status,
                            "--spool %s: the outbox is damaged behind frame %" PRIu64
                            ": move the folder away and start again",
                            mr_spool_folder(forward->config->spool),
                            forward->sender.next_sequence - 1);
    if (status == MR_OK && upward->frame_count)
        mr_log_info("forward: %" PRIu64 " frames of the spool go out again",
                    upward->frame_count);
    return status;
}

static enum mr_status forward_open(struct mr_filter *filter, const void *config,
                                   struct mr_error *error)
{
    struct forward *forward = mr_filter_state(filter);
    const struct mr_forward_config *given = config;
    struct mr_sender_config sender = {.address_count = given->address_count,
                                      .incarnation = given->incarnation,
                                      .outbox_size = (size_t)given->outbox_bytes,
                                      .max_frame = given->max_frame,
                                      .now_ns_seed = mr_clock_realtime_ns(),
                                      .hello = write_hello,
                                      .announce = on_lacking,
                                      .welcomed = on_welcomed,
                                      .answered = on_answered,
                                      .wanted = on_wanted,
                                      .keep = on_keep,
                                      .context = forward};

    struct mr_spool_upward upward = {0};
    enum mr_status status;

    MR_ASSERT(given->link && given->address_count > 0);
    MR_ASSERT(given->outbox_bytes >= 2 * (uint64_t)given->max_frame);
    forward->config = given;
    forward->pending_end = &forward->pending;
    if (given->spool && mr_spool_get_upward(given->spool, &upward, error) != MR_OK)
        return error->status;
    /* Whatever an earlier process had in its outbox finds room, headers included. */
    forward->outbox_bytes =
        (size_t)(given->outbox_bytes + upward.frame_bytes +
                 upward.frame_count * MR_WIRE_HEADER_SIZE + given->max_frame);
    sender.outbox_size = forward->outbox_bytes;
    if (!make_memory(forward))
        return mr_error_set(error, MR_ENOMEM,
                            "no memory for an outbox of %" PRIu64 " bytes (--outbox)",
                            given->outbox_bytes);
    memcpy(sender.addresses, given->addresses, sizeof(sender.addresses));
    sender.outbox = forward->outbox;
    for (uint32_t i = 0; i < COUNTER_COUNT; i++)
        mr_filter_name_counter(filter, i, counter_names[i]);
    if (mr_sender_init(&forward->sender, &sender) != MR_OK) {
        free_memory(forward);
        return mr_error_set(error, MR_EUSAGE, "cannot send to %s", given->target);
    }
    status = given->spool ? go_on(filter, &upward, error) : MR_OK;
    if (status != MR_OK)
        free_memory(forward);
    return status;
}

static enum mr_status forward_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct forward *forward = mr_filter_state(filter);
    bool is_frame = (batch->kind == MR_BATCH_DICT || batch->kind == MR_BATCH_DELTA) &&
                    batch->bytes.size > 0 && !forward->has_stopped &&
                    !is_too_large(filter, batch);
    enum mr_status status = MR_OK;

    if (is_frame && forward->config->spool) {
        hold_back(forward, batch);
        batch = NULL;
    } else if (is_frame && !send_batch(filter, batch)) {
        give_up(forward, 1);
    } else if (batch->kind == MR_BATCH_MARK && forward->config->spool) {
        status = take_mark(filter, mr_buffer_span(&batch->bytes));
    }
    mr_batch_free(batch);
    poll_sender(filter, 0);
    return status;
}

/* An empty outbox begins at its start again, so nothing beyond what is kept is in use. */
static void trim_outbox(struct forward *forward)
{
    if (forward->outbox_used <= OUTBOX_KEEP_BYTES ||
        !mr_sender_is_drained(&forward->sender))
        return;
    (void)madvise(forward->outbox + OUTBOX_KEEP_BYTES,
                  forward->outbox_bytes - OUTBOX_KEEP_BYTES, MADV_DONTNEED);
    forward->outbox_used = 0;
}

static enum mr_status forward_tick(struct mr_filter *filter, uint64_t now_ns)
{
    struct forward *forward = mr_filter_state(filter);

    poll_sender(filter, 0);
    trim_outbox(forward);
    if (forward->kept_acked + 1 < forward->sender.oldest_sequence &&
        now_ns > forward->kept_ns + KEEP_NS)
        (void)on_keep(forward, &forward->sender.custody,
                      forward->sender.oldest_sequence - 1);
    return MR_OK;
}

/* Until everything is acknowledged, or nothing moves any more. */
static enum mr_status forward_drain(struct mr_filter *filter)
{
    struct forward *forward = mr_filter_state(filter);
    uint64_t left;

    enum mr_status status =
        forward->config->spool ? take_mark(filter, mr_span_of(NULL, 0)) : MR_OK;

    while (!mr_sender_is_drained(&forward->sender) && !must_give_up(forward))
        poll_sender(filter, POLL_WAIT_NS);
    if (mr_sender_is_drained(&forward->sender))
        (void)mr_sender_finish(&forward->sender, MR_BYE_FINISHED,
                               mr_clock_monotonic_ns() + BYE_WAIT_NS);
    tell_numbers(filter);
    left = forward->sender.stats.frames_committed - forward->sender.stats.frames_acked;
    if (forward->config->spool)
        mr_add_relaxed(&forward->config->link->frames_kept, left); /* a number */
    else
        give_up(forward, left);
    (void)on_keep(forward, &forward->sender.custody, forward->sender.oldest_sequence - 1);
    return status;
}

static void forward_close(struct mr_filter *filter)
{
    struct forward *forward = mr_filter_state(filter);

    drop_pending(forward);
    mr_sender_fini(&forward->sender);
    free_memory(forward);
}

const struct mr_filter_kind mr_forward_filter = {.name = "forward",
                                                 .state_size = sizeof(struct forward),
                                                 .open = forward_open,
                                                 .process = forward_process,
                                                 .tick = forward_tick,
                                                 .drain = forward_drain,
                                                 .close = forward_close};
