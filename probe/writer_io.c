/* SPDX-License-Identifier: Apache-2.0 */
/* The writer's side of the network: hello, frames and their sums, the last words. */
#include "probe/writer.h"

#include "base/clock.h"
#include "base/text.h"
#include "probe/futex.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Names of hosts are looked up again while a connection stands, too: for the day it falls. */
#define RENEW_NS (30 * MR_SECOND_NS)
/* Of the end of a program; a deadline may change after each. */
#define ANSWER_POLL_NS (10 * MR_MILLISECOND_NS)

static size_t put_hello(const struct mr_writer *writer,
                        const struct mr_custody_hello *custody, uint32_t attribute_count,
                        uint8_t *out, size_t capacity)
{
    const struct mr_probe *probe = writer->probe;
    bool is_hybrid = probe->clock.mode == MR_CLOCK_MODE_HYBRID;
    struct mr_hello hello = {
        .sender = probe->source.id,
        .role = MR_ROLE_PROBE,
        .level = 0,
        .oldest = custody->acked + 1,
        .custody = *custody,
        .resume_max = MR_WRITER_RESUME,
        .token = probe->config.token,
        .source = {.host = probe->source.host,
                   .app = probe->config.app,
                   .version = probe->config.version,
                   .exe = writer->modules.count ? writer->modules.items[0].path : "",
                   .pid = probe->source.pid,
                   .start_ns = probe->source.start_ns,
                   .clock = writer->clock,
                   .clock_warning = probe->clock.warning,
                   .tick_ns = is_hybrid ? MR_TICK_NS : 0,
                   .tick_events = is_hybrid ? MR_TICK_EVENTS : 0,
                   .policy = probe->config.policy,
                   .attribute_count = attribute_count}};

    memcpy(hello.source.attributes, probe->config.attributes,
           sizeof(hello.source.attributes));
    return mr_hello_put(&hello, out, capacity);
}

/* Attributes are left out from the end until the rest fits. */
static size_t on_hello(void *context, const struct mr_custody_hello *custody,
                       uint8_t *out, size_t capacity)
{
    const struct mr_writer *writer = context;
    uint32_t count = writer->probe->config.attribute_count;
    size_t size = put_hello(writer, custody, count, out, capacity);

    while (size == 0 && count > 0)
        size = put_hello(writer, custody, --count, out, capacity);
    return size;
}

static void on_welcomed(void *context, uint64_t next_sequence)
{
    struct mr_writer *writer = context;

    (void)next_sequence;
    writer->is_welcomed = true;
    /* Of threads that hang nothing else may come: it goes on with them at our first frame. */
    writer->sync_at_ns = 0;
    mr_writer_choose_for_connection(writer);
}

static bool open_sender(struct mr_writer *writer, uint64_t now_ns)
{
    struct mr_probe *probe = writer->probe;
    struct mr_sender_config config = {
        .address_count = 1,
        .incarnation = probe->source.id,
        .outbox = writer->outbox,
        .outbox_size = MR_WRITER_OUTBOX,
        .resume = writer->outbox + MR_WRITER_OUTBOX,
        .resume_size = MR_WRITER_RESUME,
        .max_frame = MR_WRITER_FRAME,
        .now_ns_seed = now_ns,
        .hello = on_hello,
        .announce = mr_repeat,
        .welcomed = on_welcomed,
        .context = writer,
    };

    writer->socket.fd = writer->parting.fd = -1;
    /* Frames are made before names are resolved; the addresses follow in may_connect(). */
    return mr_sender_init(&writer->sender, &config) == MR_OK;
}

uint8_t *mr_writer_reserve(struct mr_writer *writer)
{
    struct mr_sender *sender = &writer->sender;

    if (!writer->has_sender) {
        writer->has_sender = open_sender(writer, mr_clock_monotonic_ns());
        if (!writer->has_sender)
            return NULL;
    }
    if (sender->next_sequence - sender->oldest_sequence >= MR_WRITER_FRAMES_MAX - 1)
        return NULL;
    return mr_sender_reserve(sender, MR_WRITER_FRAME);
}

void mr_writer_commit(struct mr_writer *writer, enum mr_frame_type type, uint16_t flags,
                      size_t size, uint64_t events)
{
    uint64_t sequence = mr_sender_commit(&writer->sender, type, flags, size);

    writer->events += events;
    writer->events_until[sequence % MR_WRITER_FRAMES_MAX] = writer->events;
}

uint64_t mr_writer_acked(const struct mr_writer *writer)
{
    uint64_t last = writer->has_sender ? writer->sender.oldest_sequence - 1 : 0;

    return writer->events_until[last % MR_WRITER_FRAMES_MAX];
}

void mr_writer_tell_acked(const struct mr_writer *writer)
{
    struct mr_probe *probe = writer->probe;

    mr_store_release(probe->config.is_discarding ? &probe->events_discarded
                                                 : &probe->events_acked,
                     mr_writer_acked(writer));
}

/*
 * The rate of the clock is in the hello, so the first connection waits for it; that of a
 * forked child also until there is something to tell.
 */
static bool may_connect(struct mr_writer *writer)
{
    struct mr_probe *probe = writer->probe;
    struct mr_clock_sample sample;

    if (writer->is_calibrated)
        return true;
    if (probe->source.is_forked && mr_load_relaxed(&probe->pool.next_stream) == 1)
        return false;
    if (!writer->has_sender || !mr_load_acquire(&probe->has_addresses)) /* [C] */
        return false;
    mr_clock_sample(probe->clock.mode, &sample);
    if (sample.raw_ns - probe->source.first_sample.raw_ns < MR_CALIBRATE_NS)
        return false;
    mr_clock_calibrate(probe->clock.mode, &probe->source.first_sample, &sample,
                       &writer->clock);
    if (probe->address_count) /* none is there for one who discards */
        mr_sender_set_addresses(&writer->sender, probe->addresses, probe->address_count);
    writer->renew_at_ns = mr_clock_monotonic_ns() + RENEW_NS;
    writer->is_calibrated = true;
    return true;
}

/* Names of hosts are looked up by the helper: when a connection ended, and now and then. */
static void renew_addresses(struct mr_writer *writer)
{
    struct mr_probe *probe = writer->probe;
    const struct mr_sender *sender = &writer->sender;
    uint64_t now_ns, ended = sender->stats.failures + sender->stats.moves;

    if (!probe->has_names)
        return;
    if (writer->is_renewing) {
        if (!mr_load_acquire(&probe->has_addresses)) /* [C] */
            return;
        mr_sender_set_addresses(&writer->sender, probe->addresses, probe->address_count);
        writer->is_renewing = false;
    }
    now_ns = mr_clock_monotonic_ns();
    if (ended == writer->renewed_ended && now_ns < writer->renew_at_ns)
        return;
    writer->renewed_ended = ended;
    writer->renew_at_ns = now_ns + RENEW_NS;
    writer->is_renewing = true;
    mr_store_release(&probe->has_addresses, 0); /* [G] in helper.c */
}

/*
 * A connection that the program closed is one that broke: the sender makes a new one. It
 * notices when it next reads; but while it connects, it does not read.
 */
static void forget_lost_socket(struct mr_writer *writer)
{
    struct mr_sender *sender = &writer->sender;

    if (sender->parting.fd >= 0 && !mr_own_fd_is_there(&writer->parting))
        mr_sender_lose_parting(sender);
    if (sender->fd < 0 || mr_own_fd_is_there(&writer->socket))
        return;
    sender->fd = -1;
    if (sender->state == MR_SENDER_CONNECTING) {
        sender->state = MR_SENDER_IDLE;
        sender->retry_at_ns = mr_clock_monotonic_ns() + MR_SENDER_BACKOFF_MIN_NS;
    }
}

static void adopt_new_socket(struct mr_writer *writer)
{
    struct mr_sender *sender = &writer->sender;
    uint64_t ended = sender->stats.failures + sender->stats.moves;

    /* The one that was left is where it was. */
    if (sender->parting.fd >= 0 && sender->parting.fd == writer->socket.fd)
        writer->parting = writer->socket;
    if (sender->fd < 0)
        writer->socket.fd = -1;
    else if (sender->fd != writer->socket.fd || ended != writer->sockets_ended)
        sender->fd = mr_own_fd_adopt(&writer->socket, sender->fd);
    writer->sockets_ended = ended;
}

/*
 * What stands for the network where there is to be none: frames went as far as they would
 * for a receiver, which has all of them at once.
 */
static bool discard(struct mr_writer *writer)
{
    (void)may_connect(writer); /* others need to know what a tick is worth */
    writer->is_welcomed = true;
    return writer->has_sender && mr_sender_discard(&writer->sender) > 0;
}

bool mr_writer_io(struct mr_writer *writer, uint64_t now_ns, uint64_t timeout_ns)
{
    enum mr_status status;

    (void)now_ns;
    if (writer->probe->config.is_discarding)
        return discard(writer);
    if (!may_connect(writer))
        return false;
    renew_addresses(writer);
    forget_lost_socket(writer);
    mr_writer_rest(writer);
    status = mr_sender_poll(&writer->sender, timeout_ns);
    adopt_new_socket(writer);
    mr_writer_watch_link(writer, mr_clock_monotonic_ns());
    return status == MR_OK;
}

void mr_writer_abandon(struct mr_writer *writer)
{
    forget_lost_socket(writer);
    mr_sender_abandon(&writer->sender);
}

/* Of a program whose endpoint never answered; what a user would call "at once". */
#define UNANSWERED_EXIT_NS MR_SECOND_NS

/*
 * Someone welcomed us once, or has taken our connection and is about to. A connection
 * that was broken before its welcome is one to nobody, such as a balancer without workers.
 */
static bool is_answered(const struct mr_writer *writer)
{
    return writer->is_welcomed ||
           (writer->has_sender && writer->sender.state == MR_SENDER_GREETING &&
            writer->sender.stats.failures == 0);
}

static uint64_t end_limit_ns(const struct mr_writer *writer)
{
    const struct mr_config *config = &writer->probe->config;

    if (!config->is_exit_timeout_given && config->exit_timeout_ns > UNANSWERED_EXIT_NS &&
        !is_answered(writer))
        return UNANSWERED_EXIT_NS;
    return config->exit_timeout_ns;
}

bool mr_writer_may_wait(struct mr_writer *writer)
{
    return mr_patience_left(&writer->end, end_limit_ns(writer)) > 0;
}

/* Whoever is not there may come until the deadline, which then is a later one. */
static void wait_until_sent(struct mr_writer *writer)
{
    while (!(writer->is_welcomed && mr_sender_is_drained(&writer->sender)) &&
           mr_writer_may_wait(writer)) {
        (void)mr_writer_io(writer, writer->end.seen_ns, ANSWER_POLL_NS);
        if (!writer->is_calibrated) /* nowhere to connect to yet */
            mr_sleep_ns(ANSWER_POLL_NS);
    }
}

static void add_losses(uint64_t *sums, const uint64_t *losses)
{
    for (size_t i = 0; i < MR_LOSS_REASON_COUNT; i++)
        sums[i] += losses[i];
}

/* What is left in the rings cannot be sent any more: its events, and losses told there. */
static uint64_t events_in_rings(struct mr_writer *writer, uint64_t *losses)
{
    struct mr_drain_frame *frame = &writer->frame;
    uint64_t events = 0;
    struct mr_ring *ring = mr_load_acquire(&writer->probe->pool.rings);

    for (; ring; ring = ring->next) {
        uint32_t state = mr_load_acquire(&ring->state);

        if ((state != MR_RING_OWNED && state != MR_RING_CLOSED) || ring->done.is_last)
            continue;
        do {
            mr_drain_begin(frame, writer->outbox, MR_WRITER_FRAME);
            (void)mr_drain_ring(frame, ring, writer->epochs.newest, 0);
            events += frame->totals.events;
            add_losses(losses, frame->totals.lost);
            mr_drain_commit(frame, &writer->probe->pool);
        } while (frame->totals.events > 0);
    }
    return events;
}

/* Events that found no room, wherever they are counted by now. */
static uint64_t dropped_events(const struct mr_writer *writer, const uint64_t *losses)
{
    const struct mr_probe *probe = writer->probe;
    struct mr_ring *ring = mr_load_acquire(&probe->pool.rings);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < MR_LOSS_REASON_COUNT; i++)
        sum +=
            losses[i] + mr_load_relaxed(&probe->lost[i]) + mr_probe_source_lost(probe, i);
    for (; ring; ring = ring->next)
        for (size_t i = 0; i < MR_LOSS_REASON_COUNT && !ring->done.is_last; i++)
            sum += mr_load_relaxed(&ring->pending[i]);
    return sum;
}

static const char *failure_text(const struct mr_writer *writer)
{
    if (writer->probe->config.is_discarding)
        return "they were not looked at in that time";
    if (writer->sender.last_error.text[0])
        return writer->sender.last_error.text;
    if (!writer->is_calibrated && !mr_load_relaxed(&writer->probe->has_addresses))
        return "the name of the host was not resolved";
    return writer->is_welcomed ? "no acknowledgement" : "no answer";
}

/*
 * A line; `printed` of it, which was cut where that is more than `capacity`. What a receiver said, or what the program is called,
 * may stand in it: neither drives the terminal of who runs the program.
 */
static void say(const struct mr_writer *writer, char *line, int printed, size_t capacity)
{
    size_t size = printed < 0 ? 0 : (size_t)printed;

    if (size > capacity - 1)
        size = capacity - 1;
    size = mr_text_make_plain(line, size);
    line[size++] = '\n'; /* in place of the terminating zero */
    if (mr_own_fd_is_there(&writer->probe->error_output))
        (void)!write(STDERR_FILENO, line, size);
}

static void report_discarded(const struct mr_writer *writer)
{
    uint64_t discarded = mr_writer_acked(writer);
    char line[640];
    int size;

    if (discarded == 0)
        return;
    size = snprintf(line, sizeof(line),
                    "millrace: %llu events of %s[%u] were recorded and discarded: "
                    "MILLRACE_ENDPOINT=discard",
                    (unsigned long long)discarded, writer->probe->config.app,
                    writer->probe->source.pid);
    say(writer, line, size, sizeof(line));
}

static void report(const struct mr_writer *writer, uint64_t unsent, uint64_t dropped,
                   uint64_t wait_ns)
{
    const struct mr_endpoint *endpoint = &writer->probe->config.endpoints.items[0];
    char line[640], more[64] = "", to[400] = MR_ENDPOINT_DISCARD;
    int size;

    if (!writer->probe->config.is_discarding)
        (void)snprintf(to, sizeof(to), "%s:%s", endpoint->host, endpoint->port);

    if (dropped > 0)
        (void)snprintf(more, sizeof(more), "; %llu more were dropped before",
                       (unsigned long long)dropped);
    size = snprintf(line, sizeof(line),
                    "millrace: %llu events of %s[%u] could not be sent to %s within "
                    "MILLRACE_EXIT_TIMEOUT=%llums: %s%s",
                    (unsigned long long)unsent, writer->probe->config.app,
                    writer->probe->source.pid, to,
                    (unsigned long long)(wait_ns / MR_MILLISECOND_NS),
                    failure_text(writer), more);
    say(writer, line, size, sizeof(line));
}

void mr_writer_finish(struct mr_writer *writer)
{
    uint64_t losses[MR_LOSS_REASON_COUNT] = {0}, unsent, dropped, limit_ns;

    if (!writer->has_sender)
        return;
    wait_until_sent(writer);
    limit_ns = end_limit_ns(writer);
    forget_lost_socket(writer);
    if (writer->is_calibrated && !writer->probe->config.is_discarding)
        (void)mr_sender_finish(&writer->sender, MR_BYE_FINISHED,
                               writer->end.seen_ns +
                                   mr_patience_left(&writer->end, limit_ns));
    unsent = writer->events - mr_writer_acked(writer);
    unsent += events_in_rings(writer, losses);
    dropped = dropped_events(writer, losses);
    (void)mr_add_relaxed(&writer->probe->lost[MR_LOSS_EXIT], unsent);
    if (writer->probe->config.is_discarding)
        report_discarded(writer);
    if (unsent > 0)
        report(writer, unsent, dropped, limit_ns);
}
