/* SPDX-License-Identifier: Apache-2.0 */
/* What crosses an open connection of a sender: control frames out of `control`, data out of the outbox, answers in. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "net/sender_private.h"

/* Rounds of recv() or send() in one call, so that a fast peer does not keep us from the timers. */
enum { ROUNDS_MAX = 64 };

void mr_sender_queue_control(struct mr_sender *s, enum mr_frame_type type,
                             struct mr_span payload)
{
    uint8_t *at = s->control + s->control_size;

    if (payload.size + MR_WIRE_HEADER_SIZE > sizeof(s->control) - s->control_size)
        return; /* a heartbeat or BYE behind a HELLO that is still stuck: the silence time-out ends this */
    memmove(at + MR_WIRE_HEADER_SIZE, payload.data ? payload.data : at, payload.size);
    payload.data = at + MR_WIRE_HEADER_SIZE;
    mr_frame_put_header((uint8_t)type, 0, 0, payload, at);
    s->control_size += (uint32_t)(MR_WIRE_HEADER_SIZE + payload.size);
}

/* What it lacks of what was acknowledged, another receiver has, or it had itself. */
static bool lacks_dictionary(const struct mr_sender *s, const struct mr_welcome *welcome)
{
    return welcome->next_sequence < s->oldest_sequence ||
           (welcome->flags & MR_WELCOME_WANTS_DICTIONARY) != 0;
}

/* Or goes on with it; what was in doubt is decided either way. */
static void begin_epoch(struct mr_sender *s, const struct mr_welcome *welcome)
{
    if (welcome->epoch)
        s->custody.epoch = welcome->epoch;
    s->custody.custodian = welcome->receiver;
    s->custody.was_shown = false;
    s->sent_sequence = s->oldest_sequence;
    s->settled = 0;
}

static bool keeps(struct mr_sender *s)
{
    return !s->config.keep ||
           s->config.keep(s->config.context, &s->custody, s->oldest_sequence - 1);
}

static void on_welcome(struct mr_sender *s, uint64_t now_ns, struct mr_span payload)
{
    struct mr_welcome welcome;

    if (s->state != MR_SENDER_GREETING || mr_welcome_get(payload, &welcome) != MR_OK ||
        welcome.version != MR_WIRE_VERSION) {
        mr_sender_break(s, now_ns, "bad WELCOME", 0);
        return;
    }
    if (welcome.next_sequence > s->next_sequence) {
        mr_sender_break(s, now_ns, "the receiver knows frames that were never sent", 0);
        return;
    }
    mr_outbox_ack(s, welcome.next_sequence - 1);
    if (mr_outbox_largest(s) > welcome.max_frame) {
        mr_sender_break(s, now_ns,
                        "the receiver's max_frame is below that of frames held", 0);
        return;
    }
    if (welcome.max_frame < s->config.max_frame)
        s->config.max_frame = welcome.max_frame;
    s->credit = welcome.credit;
    mr_outbox_rewind(s);
    if (s->sent_sequence > s->oldest_sequence)
        s->stats.resends += s->sent_sequence - s->oldest_sequence;
    begin_epoch(s, &welcome);
    if (!keeps(s)) {
        mr_sender_break(s, now_ns, "what it takes to go on cannot be kept", 0);
        return;
    }
    s->state = MR_SENDER_OPEN;
    mr_sender_begin_resume(s, now_ns, (welcome.flags & MR_WELCOME_TAKES_RESUME) != 0);
    s->announce_cursor = 0;
    s->is_announcing = s->config.announce && lacks_dictionary(s, &welcome);
    if (s->config.welcomed)
        s->config.welcomed(s->config.context, welcome.next_sequence);
}

static void on_ack(struct mr_sender *s, uint64_t now_ns, struct mr_span payload)
{
    struct mr_ack ack;

    if (s->state != MR_SENDER_OPEN || mr_ack_get(payload, &ack) != MR_OK ||
        ack.sequence >= s->send_sequence) {
        mr_sender_break(s, now_ns, "bad ACK", 0);
        return;
    }
    s->credit = ack.credit;
    mr_outbox_ack(s, ack.sequence);
    if (s->config.acked)
        s->config.acked(s->config.context, &ack);
}

static void on_error(struct mr_sender *s, uint64_t now_ns, struct mr_span payload)
{
    struct mr_wire_error_text error;

    if (mr_error_get(payload, &error) != MR_OK)
        mr_sender_break(s, now_ns, "bad ERROR", 0);
    else
        mr_sender_refuse(s, now_ns, &error);
}

static void on_move(struct mr_sender *s, uint64_t now_ns, struct mr_span payload)
{
    uint32_t jitter_ms;

    if (s->state != MR_SENDER_OPEN || mr_move_get(payload, &jitter_ms) != MR_OK) {
        mr_sender_break(s, now_ns, "bad MOVE", 0);
        return;
    }
    if (s->move_at_ns == 0)
        s->move_at_ns = now_ns + mr_sender_random(s, jitter_ms * MR_MILLISECOND_NS);
}

static void on_answer(struct mr_sender *s, uint64_t now_ns, struct mr_span payload)
{
    struct mr_custody_ask answer;

    if (s->state != MR_SENDER_OPEN || mr_ask_get(payload, &answer) != MR_OK)
        mr_sender_break(s, now_ns, "bad ANSWER", 0);
    else if (s->config.answered)
        s->config.answered(s->config.context, &answer);
}

static void on_wanted(struct mr_sender *s, uint64_t now_ns, struct mr_span payload)
{
    if (s->state != MR_SENDER_OPEN ||
        (s->config.wanted && !s->config.wanted(s->config.context, payload)))
        mr_sender_break(s, now_ns, "bad WANTED", 0);
}

static void on_resume(struct mr_sender *s, uint64_t now_ns, struct mr_span payload)
{
    if (s->config.resume_size == 0)
        mr_sender_break(s, now_ns, "a frame that no receiver sends", 0);
    else if (!mr_sender_keep_resume(s, payload))
        mr_sender_break(s, now_ns, "bad RESUME", 0);
}

static void on_offer(struct mr_sender *s, uint64_t now_ns, struct mr_span payload)
{
    if (!mr_sender_take_offer(s, payload))
        mr_sender_break(s, now_ns, "bad OFFER", 0);
}

static void on_frame(struct mr_sender *s, uint64_t now_ns, const struct mr_frame *frame)
{
    switch (frame->type) {
    case MR_FRAME_WELCOME:
        on_welcome(s, now_ns, frame->payload);
        break;
    case MR_FRAME_ACK:
        on_ack(s, now_ns, frame->payload);
        break;
    case MR_FRAME_ERROR:
        on_error(s, now_ns, frame->payload);
        return; /* not a sign of a receiver that takes what we send */
    case MR_FRAME_MOVE:
        on_move(s, now_ns, frame->payload);
        break;
    case MR_FRAME_ANSWER:
        on_answer(s, now_ns, frame->payload);
        break;
    case MR_FRAME_WANTED:
        on_wanted(s, now_ns, frame->payload);
        break;
    case MR_FRAME_RESUME:
        on_resume(s, now_ns, frame->payload);
        break;
    case MR_FRAME_OFFER:
        on_offer(s, now_ns, frame->payload);
        break;
    case MR_FRAME_HEARTBEAT:
        break;
    default:
        mr_sender_break(s, now_ns, "a frame that no receiver sends", 0);
    }
    if (frame->type != MR_FRAME_WELCOME && s->state == MR_SENDER_OPEN)
        s->backoff_ns = 0;
}

/* Handles the whole frames in `input` and moves what is left to its front. */
static void take_frames(struct mr_sender *s, uint64_t now_ns)
{
    struct mr_span rest = mr_span_of(s->input, s->input_size);
    struct mr_frame frame;
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status;
    size_t need;

    while ((status = mr_frame_take(&rest, MR_WIRE_MAX_CONTROL, &frame, &need, &error)) ==
           MR_OK) {
        on_frame(s, now_ns, &frame);
        if (s->fd < 0)
            return; /* broken, or left: input was given up */
    }
    if (status != MR_AGAIN) {
        mr_sender_break(s, now_ns, error.text, 0);
        return;
    }
    memmove(s->input, rest.data, rest.size);
    s->input_size = (uint32_t)rest.size;
    if (mr_sender_is_to_part(s))
        mr_sender_part(s, now_ns);
}

static void on_closed(struct mr_sender *s, uint64_t now_ns, int system_errno)
{
    if (s->is_leaving)
        mr_sender_leave(s, now_ns);
    else
        mr_sender_break(s, now_ns,
                        system_errno ? "receive" : "the receiver closed the connection",
                        system_errno);
}

/* Reads once. False when there was nothing, or the connection is closed. */
static bool receive_once(struct mr_sender *s, uint64_t now_ns)
{
    ssize_t size = recv(s->fd, s->input + s->input_size, sizeof(s->input) - s->input_size,
                        MSG_DONTWAIT);

    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (size <= 0) {
        on_closed(s, now_ns, size < 0 ? errno : 0);
        return false;
    }
    s->input_size += (uint32_t)size;
    s->heard_ns = now_ns;
    take_frames(s, now_ns);
    return s->fd >= 0;
}

bool mr_sender_receive(struct mr_sender *s, uint64_t now_ns)
{
    int rounds = 0;

    /* A frame is at most MR_WIRE_MAX_CONTROL, so there always is room after take_frames(). */
    while (rounds < ROUNDS_MAX && receive_once(s, now_ns))
        rounds++;
    return rounds > 0 || s->fd < 0;
}

/* What to send next: control frames between data frames, data only when the connection is open. */
static struct mr_span next_output(const struct mr_sender *s)
{
    bool has_control = s->control_at < s->control_size;

    if (has_control && mr_outbox_is_between_frames(s))
        return mr_span_of(s->control + s->control_at, s->control_size - s->control_at);
    if (s->state != MR_SENDER_OPEN || s->is_resuming || s->is_announcing)
        return mr_span_of(NULL, 0);
    return mr_outbox_sendable(s, has_control || s->is_leaving);
}

/* The custodian does not know yet that we know what it has: until then it may not use it. */
static bool owes_settle(const struct mr_sender *s)
{
    return s->state == MR_SENDER_OPEN && !mr_id_is_zero(s->custody.custodian) &&
           s->settled < s->oldest_sequence - 1;
}

bool mr_sender_has_output(const struct mr_sender *s)
{
    return (s->is_resuming && !mr_sender_waits_for_grant(s)) ||
           (s->is_announcing && !s->is_resuming) || owes_settle(s) ||
           next_output(s).size != 0;
}

static bool has_control_room(const struct mr_sender *s, size_t size)
{
    return sizeof(s->control) - s->control_size >= MR_WIRE_HEADER_SIZE + size;
}

static void settle(struct mr_sender *s, uint64_t now_ns)
{
    uint8_t bytes[MR_SETTLE_SIZE];

    if (!has_control_room(s, sizeof(bytes)))
        return;
    if (!keeps(s)) {
        mr_sender_break(s, now_ns, "what it takes to go on cannot be kept", 0);
        return;
    }
    s->settled = s->oldest_sequence - 1;
    mr_settle_put(s->settled, bytes);
    mr_sender_queue_control(s, MR_FRAME_SETTLE, mr_span_of(bytes, sizeof(bytes)));
}

bool mr_sender_ask(struct mr_sender *s, const struct mr_custody_ask *ask)
{
    uint8_t bytes[MR_ASK_SIZE];

    if (s->state != MR_SENDER_OPEN || s->is_leaving ||
        !has_control_room(s, sizeof(bytes)))
        return false;
    mr_ask_put(ask, bytes);
    mr_sender_queue_control(s, MR_FRAME_ASK, mr_span_of(bytes, sizeof(bytes)));
    return true;
}

static void on_sent(struct mr_sender *s, const uint8_t *data, size_t size)
{
    bool is_control =
        s->control_at < s->control_size && data == s->control + s->control_at;

    if (!is_control) {
        mr_outbox_sent(s, size);
        return;
    }
    s->control_at += (uint32_t)size;
    if (s->control_at == s->control_size)
        s->control_at = s->control_size = 0;
}

/* Puts the next payload of the dictionary's repetition where control frames go out; the outbox waits behind it. */
static void announce(struct mr_sender *s)
{
    size_t size = 0;

    if (!s->is_leaving)
        size =
            s->config.announce(s->config.context, &s->announce_cursor,
                               s->control + MR_WIRE_HEADER_SIZE, MR_SENDER_ANNOUNCE_SIZE);
    MR_DEBUG_ASSERT(size <= MR_SENDER_ANNOUNCE_SIZE);
    s->is_announcing = size > 0;
    if (size == 0)
        return;
    mr_sender_queue_control(s, MR_FRAME_DICT,
                            mr_span_of(s->control + MR_WIRE_HEADER_SIZE, size));
    s->stats.announced++;
}

/* False when there is nothing to send, or the socket is full or broken. */
static bool transmit_once(struct mr_sender *s, uint64_t now_ns)
{
    struct mr_span output;
    ssize_t size;
    int system_errno;

    if (owes_settle(s))
        settle(s, now_ns);
    if (s->fd < 0)
        return false;
    if (s->is_resuming && s->control_size == 0)
        mr_sender_give_resume(s);
    if (s->is_announcing && !s->is_resuming && s->control_size == 0)
        announce(s);
    output = next_output(s);
    if (output.size == 0)
        return false;
    size = send(s->fd, output.data, output.size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0) {
        system_errno = errno;
        if (system_errno == EAGAIN || system_errno == EINTR)
            return false;
        (void)mr_sender_receive(s,
                                now_ns); /* there may be an ERROR frame that says why */
        if (s->fd >= 0)
            mr_sender_break(s, now_ns, "send", system_errno);
        return false;
    }
    s->said_ns = now_ns;
    on_sent(s, output.data, (size_t)size);
    return true;
}

bool mr_sender_transmit(struct mr_sender *s, uint64_t now_ns)
{
    int rounds = 0;

    while (rounds < ROUNDS_MAX && transmit_once(s, now_ns))
        rounds++;
    return rounds > 0;
}
