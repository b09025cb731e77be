/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outbox: frames as they go over the wire, header and payload, one behind the other in the order of their sequence,
 * so that one send() covers a run of them. A frame is contiguous; one that does not fit behind `tail` starts over at 0.
 *
 *     not wrapped       0 ....... head ======= send_at ------- tail ....... size
 *     wrapped           0 ------- tail ....... head ======= send_at ------- wrap . size
 *
 *     ==== sent, not acknowledged     ---- committed, not sent     .... free
 *
 * head, tail, send_frame lie at the start of a frame (or at tail, when there is none); send_frame <= send_at. When wrapped,
 * tail < head; no offset of a frame is ever `wrap`, it is 0 then. With a window (net/sender.h) it starts over sooner, so that a
 * receiver that keeps up is served out of near caches.
 */
#include <string.h>

#include "base/assert.h"
#include "net/bytes.h"
#include "net/sender_private.h"

/* Bytes per send(): larger ones gain nothing, and smaller ones let an ACK or a MOVE be seen in time. */
enum { SEND_MAX = 1 << 20, AT_FLAGS = 6, AT_LENGTH = 8 };

static size_t frame_size(const struct mr_sender *s, size_t offset)
{
    return MR_WIRE_HEADER_SIZE +
           (size_t)mr_get_u32(s->config.outbox + offset + AT_LENGTH);
}

static size_t next_frame(const struct mr_sender *s, size_t offset)
{
    offset += frame_size(s, offset);
    return s->is_wrapped && offset == s->wrap ? 0 : offset;
}

static bool is_empty(const struct mr_sender *s)
{
    return s->oldest_sequence == s->next_sequence;
}

/* Bytes free in one piece at `tail` and at 0; one always stays free in front of head. */
static size_t free_at_tail(const struct mr_sender *s)
{
    return s->is_wrapped ? s->head - s->tail - 1 : s->config.outbox_size - s->tail;
}

static size_t free_at_zero(const struct mr_sender *s)
{
    return s->is_wrapped || s->head == 0 ? 0 : s->head - 1;
}

size_t mr_sender_room(const struct mr_sender *s)
{
    size_t room = free_at_tail(s);

    if (is_empty(s))
        room = s->config.outbox_size;
    else if (free_at_zero(s) > room)
        room = free_at_zero(s);
    room -= room < MR_WIRE_HEADER_SIZE ? room : MR_WIRE_HEADER_SIZE;
    return room < s->config.max_frame ? room : s->config.max_frame;
}

size_t mr_sender_held(const struct mr_sender *s)
{
    return s->is_wrapped ? s->wrap - s->head + s->tail : s->tail - s->head;
}

static void start_over(struct mr_sender *s)
{
    s->head = s->tail = s->send_frame = s->send_at = 0;
    s->is_wrapped = false;
}

/*
 * What lies at the beginning moves behind the rest: after a window, for which it started over before the end, all the room is
 * there again.
 */
static void unwrap(struct mr_sender *s)
{
    memmove(s->config.outbox + s->wrap, s->config.outbox, s->tail);
    if (s->send_frame < s->head) {
        s->send_frame += s->wrap;
        s->send_at += s->wrap;
    }
    s->tail += s->wrap;
    s->is_wrapped = false;
}

/* With a window: memory that was just read is in near caches. */
static bool is_worn(const struct mr_sender *s)
{
    return s->window > 0 && s->tail >= s->window;
}

uint8_t *mr_sender_reserve(struct mr_sender *s, size_t size)
{
    size_t whole = MR_WIRE_HEADER_SIZE + size;
    bool fits_at_tail;

    s->reserved = 0;
    if (size > s->config.max_frame)
        return NULL;
    if (is_empty(s))
        start_over(s);
    if (s->window == 0 && s->is_wrapped && whole > free_at_tail(s) &&
        s->wrap + s->tail + whole <= s->config.outbox_size)
        unwrap(s);
    fits_at_tail = whole <= free_at_tail(s);
    if (whole <= free_at_zero(s) && (is_worn(s) || !fits_at_tail))
        s->reserve_at = 0;
    else if (fits_at_tail)
        s->reserve_at = s->tail;
    else
        return NULL;
    s->reserved = whole;
    return s->config.outbox + s->reserve_at + MR_WIRE_HEADER_SIZE;
}

/* What was at the end of the data is at 0 from now on. Frames may have been acknowledged since the reservation. */
static void wrap_around(struct mr_sender *s)
{
    s->wrap = s->tail;
    s->is_wrapped = s->head != s->tail;
    if (!s->is_wrapped)
        s->head = 0;
    if (s->send_frame == s->tail)
        s->send_frame = s->send_at = 0;
}

uint64_t mr_sender_commit(struct mr_sender *s, enum mr_frame_type type, uint16_t flags,
                          size_t size)
{
    uint8_t *frame = s->config.outbox + s->reserve_at;
    struct mr_span payload = mr_span_of(frame + MR_WIRE_HEADER_SIZE, size);

    MR_DEBUG_ASSERT(s->reserved >= MR_WIRE_HEADER_SIZE + size &&
                    mr_frame_is_data((uint8_t)type));
    mr_frame_put_header((uint8_t)type, flags, s->next_sequence, payload, frame);
    if (s->reserve_at != s->tail)
        wrap_around(s);
    s->tail = s->reserve_at + MR_WIRE_HEADER_SIZE + size;
    s->reserved = 0;
    s->stats.frames_committed++;
    return s->next_sequence++;
}

void mr_outbox_ack(struct mr_sender *s, uint64_t sequence)
{
    MR_DEBUG_ASSERT(sequence < s->next_sequence);
    while (s->oldest_sequence <= sequence) {
        size_t size = frame_size(s, s->head), next = next_frame(s, s->head);

        s->is_wrapped = s->is_wrapped && next > s->head;
        s->head = next;
        s->oldest_sequence++;
        s->unacked_bytes -= size < s->unacked_bytes ? size : s->unacked_bytes;
        s->stats.frames_acked++;
    }
}

void mr_outbox_rewind(struct mr_sender *s)
{
    s->send_frame = s->send_at = s->head;
    s->send_sequence = s->oldest_sequence;
    s->unacked_bytes = 0;
}

uint64_t mr_sender_discard(struct mr_sender *s)
{
    uint64_t count = s->next_sequence - s->oldest_sequence;

    MR_DEBUG_ASSERT(s->fd < 0);
    if (count > 0) {
        mr_outbox_ack(s, s->next_sequence - 1);
        mr_outbox_rewind(s);
        s->stats.frames_acked -= count; /* nobody did */
        s->stats.discarded += count;
    }
    return count;
}

/* Room in the credit for a frame more. One may always be on its way, whatever its size. */
static bool has_credit(const struct mr_sender *s, uint64_t unacked, size_t size)
{
    return s->credit == 0 || unacked == 0 || unacked + size <= s->credit;
}

struct mr_span mr_outbox_sendable(const struct mr_sender *s, bool only_rest)
{
    size_t frame = s->send_frame, end = s->send_at;
    uint64_t sequence = s->send_sequence, unacked = s->unacked_bytes;

    if (!mr_outbox_is_between_frames(s)) {
        end = frame + frame_size(s, frame);
        unacked += end - s->send_at;
        frame = next_frame(s, frame);
        sequence++;
    }
    while (!only_rest && sequence < s->next_sequence && frame == end &&
           end - s->send_at < SEND_MAX && has_credit(s, unacked, frame_size(s, frame))) {
        unacked += frame_size(s, frame);
        end = frame + frame_size(s, frame);
        frame = next_frame(s, frame);
        sequence++;
    }
    return mr_span_of(s->config.outbox + s->send_at, end - s->send_at);
}

void mr_outbox_sent(struct mr_sender *s, size_t size)
{
    s->send_at += size;
    s->unacked_bytes += size;
    s->stats.bytes_sent += size;
    while (s->send_sequence < s->next_sequence &&
           s->send_at - s->send_frame >= frame_size(s, s->send_frame)) {
        size_t end = s->send_frame + frame_size(s, s->send_frame);
        size_t next = next_frame(s, s->send_frame);

        s->send_at =
            next == end ? s->send_at : next; /* a piece ends where the data wraps */
        s->send_frame = next;
        s->send_sequence++;
    }
    if (s->sent_sequence < s->send_sequence)
        s->sent_sequence = s->send_sequence;
}

/* Of the payload, as it came and, if it is compressed, as it goes into the receiver's hands. */
static size_t payload_size(const struct mr_sender *s, size_t offset)
{
    const uint8_t *frame = s->config.outbox + offset;
    size_t size = frame_size(s, offset) - MR_WIRE_HEADER_SIZE;

    if ((frame[AT_FLAGS] & MR_WIRE_FLAG_ZSTD) && size >= sizeof(uint32_t) &&
        mr_get_u32(frame + MR_WIRE_HEADER_SIZE) > size)
        size = mr_get_u32(frame + MR_WIRE_HEADER_SIZE);
    return size;
}

uint32_t mr_outbox_largest(const struct mr_sender *s)
{
    size_t largest = 0, frame = s->head;

    for (uint64_t sequence = s->oldest_sequence; sequence < s->next_sequence;
         sequence++) {
        if (payload_size(s, frame) > largest)
            largest = payload_size(s, frame);
        frame = next_frame(s, frame);
    }
    return (uint32_t)largest;
}
