/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input buffer, which holds one frame at least and many small ones:
 *
 *     0 ....... input_held ++++++++ input_start ======= input_end ------- input_capacity
 *
 *     .... released    ++++ held: handed out once    ==== received     ---- room for recv()
 *
 * Frames are views into it. What is received moves to the front only when a recv() would find little room, and the
 * buffer grows only for a frame that is larger, up to max_frame, and for what is held.
 *
 * What is held is megabytes where a receiver has all it can do, as a SETTLE comes behind what is on its way before it:
 * to move that again and again was 4 % of a worker's time. So it stays, and only the received goes to the front:
 *
 *     0 ++++++++ input_start ======= input_end ------- input_older ++++++++ input_older_end ....... input_capacity
 *
 * The older frames are the first to be released; then all is as above.
 */
#include "net/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"

enum {
    INPUT_MIN =
        512 << 10, /* so that a recv() has 256 KiB of room, whatever is left of a frame */
    READ_MIN = 256 << 10,
    WRAP_MIN =
        256 << 10, /* so that a buffer of INPUT_MIN never wraps, nor grows for it */
    OUTPUT_MAX =
        2 << 20, /* 40,000 ACK frames that the peer did not read; all of RESUME */
    DISCARD_MAX = 4 << 20,
};

#define QUIET_NS (500 * MR_MILLISECOND_NS) /* nothing came for so long: a burst is over */

static size_t input_max(const struct mr_conn *conn)
{
    size_t size = (size_t)conn->max_frame + MR_WIRE_HEADER_SIZE + conn->hold_max;

    return size < INPUT_MIN ? INPUT_MIN : size;
}

enum mr_status mr_conn_init(struct mr_conn *conn, int fd, const char *peer,
                            uint32_t max_frame)
{
    int flags = fcntl(fd, F_GETFL);

    *conn = (struct mr_conn){.fd = fd, .max_frame = max_frame};
    conn->heard_ns = conn->said_ns = mr_clock_monotonic_ns();
    memccpy(conn->peer, peer, 0, sizeof(conn->peer) - 1);
    mr_buffer_init(&conn->output, OUTPUT_MAX);
    mr_frame_expander_init(&conn->expander);
    if (max_frame < MR_WIRE_MAX_FRAME_MIN)
        return mr_error_set(&conn->error, MR_EUSAGE, "max_frame of %u is below %u",
                            max_frame, MR_WIRE_MAX_FRAME_MIN);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return mr_error_set_errno(&conn->error, MR_EIO, errno, "connection from %s",
                                  conn->peer);
    conn->input = malloc(INPUT_MIN);
    if (!conn->input)
        return mr_error_set(&conn->error, MR_ENOMEM,
                            "no memory for the connection from %s", conn->peer);
    conn->input_capacity = INPUT_MIN;
    return MR_OK;
}

void mr_conn_fini(struct mr_conn *conn)
{
    if (conn->fd >= 0)
        (void)close(conn->fd);
    conn->fd = -1;
    free(conn->input);
    conn->input = NULL;
    conn->input_capacity = conn->input_held = conn->input_start = conn->input_end = 0;
    conn->input_older = conn->input_older_end = 0;
    mr_frame_expander_fini(&conn->expander);
    mr_buffer_fini(&conn->output);
}

static bool is_wrapped(const struct mr_conn *conn)
{
    return conn->input_older_end > 0;
}

/* Where the room for recv() ends. */
static size_t input_limit(const struct mr_conn *conn)
{
    return is_wrapped(conn) ? conn->input_older : conn->input_capacity;
}

/* For what misses of the frame at input_start, and for a good recv(). */
static bool has_room(const struct mr_conn *conn)
{
    size_t limit = input_limit(conn);

    return limit - conn->input_end >= READ_MIN &&
           conn->input_need <= limit - conn->input_start;
}

static bool is_empty(const struct mr_conn *conn)
{
    return !is_wrapped(conn) && conn->input_held == conn->input_end;
}

/* What lies from `from` on, which is input_held or input_start. */
static void move_to_front(struct mr_conn *conn, size_t from)
{
    size_t size = conn->input_end - from;

    MR_DEBUG_ASSERT(from == conn->input_held || from == conn->input_start);
    if (size && from)
        memmove(conn->input, conn->input + from, size);
    conn->input_start -= from;
    conn->input_held = 0;
    conn->input_end = size;
}

static enum mr_status grow(struct mr_conn *conn, size_t capacity)
{
    uint8_t *input;

    MR_DEBUG_ASSERT(capacity <= input_max(conn));
    if (capacity <= conn->input_capacity)
        return MR_OK;
    input = realloc(conn->input, capacity);
    if (!input)
        return MR_ENOMEM;
    conn->input = input;
    conn->input_capacity = capacity;
    return MR_OK;
}

static enum mr_status grow_twofold(struct mr_conn *conn)
{
    size_t capacity = 2 * conn->input_capacity;

    return grow(conn, capacity < input_max(conn) ? capacity : input_max(conn));
}

/* False, and nothing is done: little is held, which moves as well, or there is too little room before it. */
static bool wrap(struct mr_conn *conn)
{
    size_t rest = conn->input_end - conn->input_start;
    size_t room = conn->input_need < rest + READ_MIN ? rest + READ_MIN : conn->input_need;

    MR_DEBUG_ASSERT(!is_wrapped(conn));
    if (conn->input_start - conn->input_held < WRAP_MIN || conn->input_held < room)
        return false;
    conn->input_older = conn->input_held;
    conn->input_older_end = conn->input_start;
    move_to_front(conn, conn->input_start);
    MR_DEBUG_ASSERT(has_room(conn));
    return true;
}

/* In new memory: the older, and what came later behind it. */
static enum mr_status straighten(struct mr_conn *conn)
{
    size_t older = conn->input_older_end - conn->input_older;
    uint8_t *input = malloc(conn->input_capacity);

    if (!input)
        return MR_ENOMEM;
    memcpy(input, conn->input + conn->input_older, older);
    memcpy(input + older, conn->input, conn->input_end);
    free(conn->input);
    conn->input = input;
    conn->input_older = 0;
    conn->input_older_end = older;
    return MR_OK;
}

/* What came later lies behind the older again. */
static enum mr_status unwrap(struct mr_conn *conn)
{
    enum mr_status status = grow_twofold(conn);

    MR_DEBUG_ASSERT(is_wrapped(conn) && conn->input_held == 0);
    if (status == MR_OK && conn->input_end > conn->input_capacity - conn->input_older_end)
        status = straighten(conn);
    else if (status == MR_OK)
        memcpy(conn->input + conn->input_older_end, conn->input, conn->input_end);
    if (status != MR_OK)
        return status;
    conn->input_held = conn->input_older;
    conn->input_start += conn->input_older_end;
    conn->input_end += conn->input_older_end;
    conn->input_older = conn->input_older_end = 0;
    return MR_OK;
}

static enum mr_status make_room_to_hold(struct mr_conn *conn)
{
    enum mr_status status = MR_OK;

    if (is_wrapped(conn))
        status = unwrap(conn);
    else if (wrap(conn))
        return MR_OK;
    if (status == MR_OK && !has_room(conn))
        move_to_front(conn, conn->input_held);
    if (status == MR_OK && !has_room(conn))
        status = grow_twofold(conn);
    if (status != MR_OK)
        return status;
    if (conn->input_end == input_max(conn) ||
        conn->input_need > input_max(conn) - conn->input_start)
        return mr_error_set(&conn->error, MR_ELIMIT,
                            "connection from %s: more than %zu bytes came without SETTLE",
                            conn->peer, conn->hold_max);
    return grow(conn, conn->input_start + conn->input_need);
}

static enum mr_status make_room(struct mr_conn *conn)
{
    if (is_empty(conn))
        move_to_front(conn, conn->input_start);
    if (has_room(conn))
        return MR_OK;
    if (conn->hold_max)
        return make_room_to_hold(conn);
    move_to_front(conn, conn->input_start);
    return grow(conn, conn->input_need);
}

enum mr_status mr_conn_read(struct mr_conn *conn)
{
    enum mr_status status = make_room(conn);
    ssize_t size;

    if (status != MR_OK)
        return status;
    if (conn->input_end == input_limit(conn))
        return MR_OK; /* full of frames that mr_conn_next() has not handed out yet */
    do
        size = recv(conn->fd, conn->input + conn->input_end,
                    input_limit(conn) - conn->input_end, MSG_DONTWAIT);
    while (size < 0 && errno == EINTR);
    if (size == 0)
        return MR_END;
    if (size < 0)
        return errno == EAGAIN ? MR_AGAIN : MR_EIO;
    conn->input_end += (size_t)size;
    conn->stats.bytes += (size_t)size;
    conn->heard_ns = mr_clock_monotonic_ns();
    return MR_OK;
}

static enum mr_status fail(struct mr_conn *conn, enum mr_status status, const char *what,
                           const struct mr_frame *frame)
{
    return mr_error_set(
        &conn->error, status, "connection from %s: %s (%s frame %llu, expected %llu)",
        conn->peer, what, mr_frame_type_name(frame->type),
        (unsigned long long)frame->sequence, (unsigned long long)conn->next_sequence);
}

static enum mr_status expand(struct mr_conn *conn, struct mr_frame *frame)
{
    if (!(frame->flags & MR_WIRE_FLAG_ZSTD))
        return MR_OK;
    return mr_frame_expand(&conn->expander, conn->max_frame, frame, &conn->error);
}

/* MR_AGAIN for a frame that needs no more attention. */
static enum mr_status accept_data(struct mr_conn *conn, struct mr_frame *frame)
{
    if (!conn->greeted)
        return fail(conn, MR_ESTATE, "data before WELCOME", frame);
    if (conn->finished)
        return fail(conn, MR_ESTATE, "data behind BYE", frame);
    if (frame->sequence == 0)
        return MR_OK; /* DICT out of custody */
    conn->has_numbered = true;
    if (frame->sequence < conn->next_sequence) {
        conn->stats.duplicates++;
        return MR_AGAIN;
    }
    if (frame->sequence > conn->next_sequence)
        return fail(conn, MR_EFORMAT, "data frames are missing", frame);
    conn->next_sequence++;
    return conn->hold_max ? MR_OK : expand(conn, frame);
}

/* What the peer says it knows; it cannot know what it was not told. */
static enum mr_status accept_settle(struct mr_conn *conn, const struct mr_frame *frame)
{
    uint64_t sequence;

    if (mr_settle_get(frame->payload, &sequence) != MR_OK || sequence > conn->acked)
        return fail(conn, MR_EFORMAT, "SETTLE of what was not acknowledged", frame);
    if (sequence > conn->settled)
        conn->settled = sequence;
    return MR_AGAIN;
}

/* It says what came before the first frame; whoever reads it would have begun without. */
static enum mr_status accept_resume(struct mr_conn *conn, const struct mr_frame *frame)
{
    struct mr_span bytes;
    uint64_t sequence;

    if (!conn->greeted || !conn->takes_resume)
        return fail(conn, MR_ESTATE, "RESUME that was not asked for", frame);
    if (conn->has_numbered)
        return fail(conn, MR_ESTATE, "RESUME behind data", frame);
    if (conn->finished)
        return fail(conn, MR_ESTATE, "RESUME behind BYE", frame);
    if (mr_resume_frame_get(frame->payload, &sequence, &bytes) != MR_OK)
        return fail(conn, MR_EFORMAT, "bad RESUME", frame);
    return MR_OK;
}

static enum mr_status accept_offer(struct mr_conn *conn, const struct mr_frame *frame)
{
    enum mr_offer_step step;

    if (!conn->has_offered)
        return fail(conn, MR_ESTATE, "OFFER accepted that was not made", frame);
    if (mr_offer_get(frame->payload, &step) != MR_OK || step != MR_OFFER_ACCEPTED)
        return fail(conn, MR_EFORMAT, "bad OFFER", frame);
    return MR_OK;
}

static enum mr_status accept_bye(struct mr_conn *conn, const struct mr_frame *frame)
{
    if (mr_bye_get(frame->payload, &conn->bye_reason) != MR_OK)
        return fail(conn, MR_EFORMAT, "bad BYE", frame);
    conn->finished = true;
    return MR_END;
}

static enum mr_status accept_error(struct mr_conn *conn, const struct mr_frame *frame)
{
    struct mr_wire_error_text error;

    if (mr_error_get(frame->payload, &error) != MR_OK)
        return fail(conn, MR_EFORMAT, "bad ERROR", frame);
    return mr_error_set(&conn->error, MR_EREFUSED, "%s gave up (%u): %.*s", conn->peer,
                        error.code, (int)error.text.size, (const char *)error.text.data);
}

static enum mr_status accept_hello(struct mr_conn *conn, const struct mr_frame *frame)
{
    if (conn->has_hello)
        return fail(conn, MR_ESTATE, "a second HELLO", frame);
    conn->has_hello = true;
    return MR_OK;
}

static enum mr_status accept_frame(struct mr_conn *conn, struct mr_frame *frame)
{
    if (!conn->has_hello && frame->type != MR_FRAME_HELLO)
        return fail(conn, MR_ESTATE, "the first frame is no HELLO", frame);
    switch (frame->type) {
    case MR_FRAME_HELLO:
        return accept_hello(conn, frame);
    case MR_FRAME_HEARTBEAT:
        return MR_AGAIN;
    case MR_FRAME_SETTLE:
        return accept_settle(conn, frame);
    case MR_FRAME_ASK:
        return MR_OK;
    case MR_FRAME_RESUME:
        return accept_resume(conn, frame);
    case MR_FRAME_OFFER:
        return accept_offer(conn, frame);
    case MR_FRAME_BYE:
        return accept_bye(conn, frame);
    case MR_FRAME_ERROR:
        return accept_error(conn, frame);
    default:
        if (!mr_frame_is_data(frame->type))
            return fail(conn, MR_ESTATE, "a frame that no sender sends", frame);
        return accept_data(conn, frame);
    }
}

/* Nothing but what lies behind input_start is needed, once no frame is held. */
static void release(struct mr_conn *conn)
{
    if (conn->hold_max == 0)
        conn->held_sequence = conn->next_sequence;
    if (conn->held_sequence < conn->next_sequence)
        return;
    conn->input_older = conn->input_older_end = 0;
    conn->input_held = conn->input_start;
}

/* A frame off the front of the input. */
static enum mr_status take_frame(struct mr_conn *conn, struct mr_frame *frame)
{
    struct mr_span bytes =
        mr_span_of(conn->input + conn->input_start, conn->input_end - conn->input_start);
    size_t before = bytes.size;
    enum mr_status status =
        mr_frame_take(&bytes, conn->max_frame, frame, &conn->input_need, &conn->error);

    if (status != MR_OK)
        return status;
    conn->input_start += before - bytes.size;
    conn->input_need = MR_WIRE_HEADER_SIZE;
    conn->stats.frames++;
    return MR_OK;
}

enum mr_status mr_conn_next(struct mr_conn *conn, struct mr_frame *frame)
{
    enum mr_status status;

    if (conn->error.status != MR_OK)
        return conn->error.status;
    if (conn->finished && conn->hold_max == 0 && !conn->has_offered)
        return MR_END; /* else a SETTLE may come */
    do {
        status = take_frame(conn, frame);
        if (status != MR_OK)
            return status;
        status = accept_frame(conn, frame);
        release(conn);
    } while (status == MR_AGAIN);
    return status;
}

void mr_conn_hold(struct mr_conn *conn, size_t size)
{
    MR_ASSERT(!conn->greeted && size > 0);
    conn->hold_max = size;
}

static struct mr_span span_between(const struct mr_conn *conn, size_t from, size_t to)
{
    return mr_span_of(conn->input + from, to - from);
}

enum mr_status mr_conn_copy_held(const struct mr_conn *conn, struct mr_buffer *out)
{
    struct mr_span older = span_between(conn, conn->input_older, conn->input_older_end);
    struct mr_span later = span_between(conn, conn->input_held, conn->input_start);
    uint8_t *at;
    enum mr_status status = mr_buffer_reserve(out, older.size + later.size, &at);

    if (status == MR_OK)
        status = mr_buffer_append(out, older.data, older.size);
    return status == MR_OK ? mr_buffer_append(out, later.data, later.size) : status;
}

/* The oldest frame or control frame of what is held, which it is no more; false: nothing is. */
static bool take_held(struct mr_conn *conn, struct mr_frame *frame)
{
    size_t *from = is_wrapped(conn) ? &conn->input_older : &conn->input_held;
    size_t to = is_wrapped(conn) ? conn->input_older_end : conn->input_start;
    struct mr_span rest = span_between(conn, *from, to);

    if (!mr_frame_take_again(&rest, frame))
        return false;
    *from = to - rest.size;
    if (conn->input_older == conn->input_older_end)
        conn->input_older = conn->input_older_end = 0;
    return true;
}

enum mr_status mr_conn_next_settled(struct mr_conn *conn, uint64_t sequence,
                                    struct mr_frame *frame)
{
    while (conn->held_sequence < conn->next_sequence && conn->held_sequence <= sequence &&
           take_held(conn, frame)) {
        if (frame->sequence != conn->held_sequence)
            continue; /* a control frame between them, or a duplicate */
        conn->held_sequence++;
        release(conn);
        return expand(conn, frame);
    }
    return MR_AGAIN;
}

enum mr_status mr_conn_flush(struct mr_conn *conn)
{
    while (conn->output.size) {
        ssize_t size = send(conn->fd, conn->output.data, conn->output.size,
                            MSG_NOSIGNAL | MSG_DONTWAIT);

        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            return errno == EAGAIN ? MR_AGAIN : MR_EIO;
        mr_buffer_consume(&conn->output, (size_t)size);
    }
    return MR_OK;
}

/* `tail` follows `head` in the payload. */
static enum mr_status send_control(struct mr_conn *conn, enum mr_frame_type type,
                                   struct mr_span head, struct mr_span tail)
{
    size_t size = head.size + tail.size;
    uint8_t *at;
    enum mr_status status =
        mr_buffer_reserve(&conn->output, MR_WIRE_HEADER_SIZE + size, &at);

    MR_ASSERT(size <= MR_WIRE_MAX_CONTROL);
    if (status != MR_OK)
        return status;
    if (head.size)
        memcpy(at + MR_WIRE_HEADER_SIZE, head.data, head.size);
    if (tail.size)
        memcpy(at + MR_WIRE_HEADER_SIZE + head.size, tail.data, tail.size);
    mr_frame_put_header((uint8_t)type, 0, 0, mr_span_of(at + MR_WIRE_HEADER_SIZE, size),
                        at);
    mr_buffer_commit(&conn->output, MR_WIRE_HEADER_SIZE + size);
    conn->said_ns = mr_clock_monotonic_ns();
    status = mr_conn_flush(conn);
    return status == MR_AGAIN ? MR_OK : status;
}

static const struct mr_span nothing = {NULL, 0};

enum mr_status mr_conn_welcome(struct mr_conn *conn, uint64_t next_sequence,
                               uint64_t credit)
{
    return mr_conn_welcome_epoch(conn, next_sequence, credit, 0, (struct mr_id){0, 0});
}

static uint16_t welcome_flags(const struct mr_conn *conn)
{
    return (uint16_t)((conn->wants_dictionary ? MR_WELCOME_WANTS_DICTIONARY : 0) |
                      (conn->takes_resume ? MR_WELCOME_TAKES_RESUME : 0));
}

enum mr_status mr_conn_welcome_epoch(struct mr_conn *conn, uint64_t next_sequence,
                                     uint64_t credit, uint64_t epoch, struct mr_id self)
{
    const struct mr_welcome welcome = {
        .version = MR_WIRE_VERSION,
        .max_frame = conn->max_frame,
        .next_sequence = next_sequence,
        .credit = credit,
        .flags = welcome_flags(conn),
        .epoch = epoch,
        .receiver = self,
    };
    uint8_t bytes[MR_WELCOME_SIZE];

    MR_ASSERT(conn->has_hello && !conn->greeted && next_sequence > 0);
    conn->greeted = true;
    conn->next_sequence = conn->held_sequence = next_sequence;
    conn->acked = next_sequence - 1;
    conn->credit = credit;
    mr_welcome_put(&welcome, bytes);
    return send_control(conn, MR_FRAME_WELCOME, mr_span_of(bytes, sizeof(bytes)),
                        nothing);
}

enum mr_status mr_conn_ack(struct mr_conn *conn, uint64_t sequence, uint64_t credit)
{
    uint8_t bytes[MR_ACK_SIZE];

    if (sequence <= conn->acked && credit == conn->credit)
        return MR_OK;
    MR_ASSERT(conn->greeted && sequence < conn->next_sequence);
    if (conn->acked < sequence)
        conn->acked = sequence;
    conn->credit = credit;
    mr_ack_put(conn->acked, credit, bytes);
    return send_control(conn, MR_FRAME_ACK, mr_span_of(bytes, sizeof(bytes)), nothing);
}

enum mr_status mr_conn_move(struct mr_conn *conn, uint32_t jitter_ms)
{
    uint8_t bytes[MR_MOVE_SIZE];

    MR_ASSERT(conn->greeted);
    mr_move_put(jitter_ms, bytes);
    return send_control(conn, MR_FRAME_MOVE, mr_span_of(bytes, sizeof(bytes)), nothing);
}

enum mr_status mr_conn_resume(struct mr_conn *conn, uint64_t sequence,
                              struct mr_span bytes)
{
    uint8_t head[MR_RESUME_HEAD_SIZE];

    MR_ASSERT(conn->greeted && conn->finished && conn->bye_reason == MR_BYE_MOVING);
    MR_ASSERT(bytes.size > 0 && bytes.size <= MR_RESUME_BYTES_MAX);
    mr_resume_frame_put_head(sequence, head);
    return send_control(conn, MR_FRAME_RESUME, mr_span_of(head, sizeof(head)), bytes);
}

enum mr_status mr_conn_offer(struct mr_conn *conn, enum mr_offer_step step)
{
    uint8_t bytes[MR_OFFER_SIZE];

    MR_ASSERT(conn->greeted && conn->finished && step != MR_OFFER_ACCEPTED);
    conn->has_offered = true;
    mr_offer_put(step, bytes);
    return send_control(conn, MR_FRAME_OFFER, mr_span_of(bytes, sizeof(bytes)), nothing);
}

enum mr_status mr_conn_answer(struct mr_conn *conn, const struct mr_custody_ask *answer)
{
    uint8_t bytes[MR_ASK_SIZE];

    MR_ASSERT(conn->greeted);
    mr_ask_put(answer, bytes);
    return send_control(conn, MR_FRAME_ANSWER, mr_span_of(bytes, sizeof(bytes)), nothing);
}

enum mr_status mr_conn_wanted(struct mr_conn *conn, struct mr_span payload)
{
    MR_ASSERT(conn->greeted);
    return send_control(conn, MR_FRAME_WANTED, payload, nothing);
}

/* A close() with bytes unread resets the connection, and the peer may lose our ERROR: read some of them away. */
static void discard_input(struct mr_conn *conn)
{
    size_t left = DISCARD_MAX;
    ssize_t size;

    do {
        size = recv(conn->fd, conn->input, conn->input_capacity, MSG_DONTWAIT);
        left -= size > 0 && (size_t)size < left ? (size_t)size : left;
    } while (size > 0 && left);
}

void mr_conn_refuse(struct mr_conn *conn, enum mr_wire_error code, const char *text)
{
    uint8_t bytes[4 + MR_ERROR_TEXT_SIZE];
    size_t size = mr_error_put(code, text, bytes, sizeof(bytes));

    (void)send_control(conn, MR_FRAME_ERROR, mr_span_of(bytes, size), nothing);
    (void)shutdown(conn->fd, SHUT_WR);
    discard_input(conn);
}

/* Between bursts, what a burst made the buffer grow to goes back; best effort. */
static void trim_input(struct mr_conn *conn, uint64_t now_ns)
{
    uint8_t *input;

    if (conn->input_capacity <= INPUT_MIN || !is_empty(conn) ||
        now_ns < conn->heard_ns + QUIET_NS)
        return;
    input = realloc(conn->input, INPUT_MIN);
    if (!input)
        return;
    conn->input = input;
    conn->input_capacity = INPUT_MIN;
    conn->input_held = conn->input_start = conn->input_end = 0;
}

enum mr_status mr_conn_tick(struct mr_conn *conn, uint64_t now_ns)
{
    trim_input(conn, now_ns);
    if (now_ns > conn->heard_ns && now_ns - conn->heard_ns >= MR_WIRE_SILENCE_NS)
        return MR_ETIMEOUT;
    return mr_conn_beat(conn, now_ns);
}

enum mr_status mr_conn_beat(struct mr_conn *conn, uint64_t now_ns)
{
    if (!conn->greeted || conn->output.size || now_ns < conn->said_ns ||
        now_ns - conn->said_ns < MR_WIRE_HEARTBEAT_NS)
        return MR_OK;
    return send_control(conn, MR_FRAME_HEARTBEAT, nothing, nothing);
}

enum mr_wire_error mr_conn_wire_code(enum mr_status status)
{
    switch (status) {
    case MR_EFORMAT:
        return MR_WIRE_ERROR_FORMAT;
    case MR_EVERSION:
        return MR_WIRE_ERROR_VERSION;
    case MR_ELIMIT:
        return MR_WIRE_ERROR_LIMIT;
    case MR_ECHECKSUM:
        return MR_WIRE_ERROR_CHECKSUM;
    case MR_ESTATE:
        return MR_WIRE_ERROR_STATE;
    default:
        return MR_WIRE_ERROR_INTERNAL;
    }
}
