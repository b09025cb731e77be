/* SPDX-License-Identifier: Apache-2.0 */
/* The writer's side of the network: hello, frames and their sums, the last words. */
#include "probe/writer.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static size_t put_hello(const struct mr_writer *writer, uint64_t oldest,
                        uint32_t attribute_count, uint8_t *out, size_t capacity)
{
    const struct mr_probe *probe = writer->probe;
    struct mr_hello hello = {
        .sender = probe->source.id,
        .role = MR_ROLE_PROBE,
        .level = 0,
        .oldest = oldest,
        .token = probe->config.token,
        .source = {.host = probe->source.host,
                   .app = probe->config.app,
                   .version = probe->config.version,
                   .exe = writer->modules.count ? writer->modules.items[0].path : "",
                   .pid = probe->source.pid,
                   .start_ns = probe->source.start_ns,
                   .clock = writer->clock,
                   .policy = probe->config.policy,
                   .attribute_count = attribute_count}};

    memcpy(hello.source.attributes, probe->config.attributes,
           sizeof(hello.source.attributes));
    return mr_hello_put(&hello, out, capacity);
}

/* Attributes are left out from the end until the rest fits. */
static size_t on_hello(void *context, uint64_t oldest, uint8_t *out, size_t capacity)
{
    const struct mr_writer *writer = context;
    uint32_t count = writer->probe->config.attribute_count;
    size_t size = put_hello(writer, oldest, count, out, capacity);

    while (size == 0 && count > 0)
        size = put_hello(writer, oldest, --count, out, capacity);
    return size;
}

/* A receiver that has nothing of us, though another had: it needs the dictionary. */
static void on_welcomed(void *context, uint64_t next_sequence)
{
    struct mr_writer *writer = context;

    if (next_sequence <= 1 && writer->sender.oldest_sequence > 1)
        mr_announce_again(writer);
}

static bool open_sender(struct mr_writer *writer, uint64_t now_ns)
{
    struct mr_probe *probe = writer->probe;
    struct mr_sender_config config = {
        .address_count = 1,
        .incarnation = probe->source.id,
        .outbox = writer->outbox,
        .outbox_size = MR_WRITER_OUTBOX,
        .max_frame = MR_WRITER_FRAME,
        .now_ns_seed = now_ns,
        .hello = on_hello,
        .welcomed = on_welcomed,
        .context = writer,
    };

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

void mr_writer_commit(struct mr_writer *writer, enum mr_frame_type type, size_t size,
                      uint64_t events)
{
    uint64_t sequence = mr_sender_commit(&writer->sender, type, 0, size);

    writer->events += events;
    writer->events_until[sequence % MR_WRITER_FRAMES_MAX] = writer->events;
}

uint64_t mr_writer_acked(const struct mr_writer *writer)
{
    uint64_t last = writer->has_sender ? writer->sender.oldest_sequence - 1 : 0;

    return writer->events_until[last % MR_WRITER_FRAMES_MAX];
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
    mr_clock_sample(&sample);
    if (sample.raw_ns - probe->source.first_sample.raw_ns < MR_CALIBRATE_NS)
        return false;
    mr_clock_calibrate(&probe->source.first_sample, &sample, &writer->clock);
    memcpy(writer->sender.config.addresses, probe->addresses, sizeof(probe->addresses));
    writer->sender.config.address_count = probe->address_count;
    writer->is_calibrated = true;
    return true;
}

bool mr_writer_io(struct mr_writer *writer, uint64_t now_ns, uint64_t timeout_ns)
{
    (void)now_ns;
    if (!may_connect(writer))
        return false;
    return mr_sender_poll(&writer->sender, timeout_ns) == MR_OK;
}

/* What is left in the rings cannot be sent any more; it is counted. */
static uint64_t events_in_rings(struct mr_writer *writer)
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
            (void)mr_drain_ring(frame, ring, writer->epoch, 0);
            events += frame->totals.events;
            mr_drain_commit(frame, &writer->probe->pool);
        } while (frame->totals.events > 0);
    }
    return events;
}

static void report(const struct mr_writer *writer, uint64_t events)
{
    const struct mr_endpoint *endpoint = &writer->probe->config.endpoints.items[0];
    char line[512];
    int size = snprintf(
        line, sizeof(line),
        "millrace: %llu events of %s[%u] could not be sent to %s:%s "
        "within MILLRACE_EXIT_TIMEOUT=%llums: %s\n",
        (unsigned long long)events, writer->probe->config.app, writer->probe->source.pid,
        endpoint->host, endpoint->port,
        (unsigned long long)(writer->probe->config.exit_timeout_ns / MR_MILLISECOND_NS),
        writer->sender.last_error.text[0] ? writer->sender.last_error.text
                                          : "no acknowledgement");

    if (size > (int)sizeof(line) - 1)
        size = (int)sizeof(line) - 1;
    if (size > 0)
        (void)!write(STDERR_FILENO, line, (size_t)size);
}

void mr_writer_finish(struct mr_writer *writer, uint64_t deadline_ns)
{
    uint64_t lost;

    if (!writer->has_sender)
        return;
    if (writer->is_calibrated)
        (void)mr_sender_finish(&writer->sender, MR_BYE_FINISHED, deadline_ns);
    lost = writer->events - mr_writer_acked(writer);
    lost += events_in_rings(writer);
    (void)mr_add_relaxed(&writer->probe->lost[MR_LOSS_EXIT], lost);
    if (lost > 0)
        report(writer, lost);
}
