/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RESUME (docs/FORMAT.md section 4): what the receiver that sent us away says to the next one. Held in the owner's memory,
 * one payload behind the other, each as a u32 with its size and its bytes. The sequence is the same in all and stands in the
 * sender: so whatever of the size told in HELLO comes finds room.
 *
 *     0 .... given .... resume_at ==== held ==== resume_end ---- free ---- config.resume_size
 *
 * It is the sender's only once the receiver that said it has let go of it: that one ends what is open itself, unless it is
 * told that somebody else goes on with it.
 *
 *     NONE --RESUME--> COMING --OFFER (made)--> OFFERED --accepted--> ACCEPTED --OFFER (granted)--> GRANTED --> GIVEN
 *
 * It is accepted when a receiver has welcomed us that takes it, or when none is there: who sent us away may be about to end,
 * and the next one to take its place. From every state it goes to NONE when it cannot go on; the connection that was left is
 * closed then, which tells the receiver so.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/bytes.h"
#include "net/sender_private.h"

/* For a receiver to be found. */
#define FIND_NS (MR_SECOND_NS / 2)
/* For the one that we left to let go; frames to the next one wait for that. */
#define GRANT_NS MR_SECOND_NS

static void close_parting(struct mr_sender *s)
{
    if (s->parting.fd >= 0)
        (void)close(s->parting.fd);
    s->parting.fd = -1;
}

void mr_sender_forget_resumes(struct mr_sender *s)
{
    close_parting(s);
    s->stats.resumes_dropped += s->resume_count;
    s->resume_at = s->resume_end = 0;
    s->resume_count = 0;
    s->is_resuming = false;
    s->resume_state = MR_SENDER_RESUME_NONE;
}

void mr_sender_lose_parting(struct mr_sender *s)
{
    s->parting.fd = -1;
    mr_sender_forget_resumes(s);
}

bool mr_sender_keep_resume(struct mr_sender *s, struct mr_span payload)
{
    struct mr_span bytes;
    uint64_t sequence;
    uint8_t *at;

    if (!s->is_moving || mr_sender_is_to_part(s) ||
        mr_resume_frame_get(payload, &sequence, &bytes) != MR_OK)
        return false;
    if (s->resume_state != MR_SENDER_RESUME_COMING) {
        mr_sender_forget_resumes(s);
        s->resume_sequence = sequence;
        s->resume_state = MR_SENDER_RESUME_COMING;
    }
    if (sequence != s->resume_sequence)
        return false;
    if (sizeof(uint32_t) + bytes.size > s->config.resume_size - s->resume_end) {
        s->stats.resumes_dropped++;
        return true;
    }
    at = mr_put_u32(s->config.resume + s->resume_end, (uint32_t)bytes.size);
    memcpy(at, bytes.data, bytes.size);
    s->resume_end += sizeof(uint32_t) + bytes.size;
    s->resume_count++;
    return true;
}

bool mr_sender_take_offer(struct mr_sender *s, struct mr_span payload)
{
    enum mr_offer_step step;

    if (s->resume_state != MR_SENDER_RESUME_COMING ||
        mr_offer_get(payload, &step) != MR_OK || step != MR_OFFER_MADE)
        return false;
    s->resume_state = MR_SENDER_RESUME_OFFERED;
    return true;
}

bool mr_sender_is_to_part(const struct mr_sender *s)
{
    return s->resume_state == MR_SENDER_RESUME_OFFERED && s->parting.fd < 0;
}

void mr_sender_part(struct mr_sender *s, uint64_t now_ns)
{
    struct mr_sender_parting *parting = &s->parting;

    /* At most the beginning of another frame; a larger one than OFFER fills the input, and ends the connection when it is read. */
    parting->input_size = s->input_size < sizeof(parting->input)
                              ? s->input_size
                              : (uint32_t)sizeof(parting->input);
    memcpy(parting->input, s->input, parting->input_size);
    parting->fd = s->fd;
    parting->failures = 0;
    parting->due_ns = now_ns + FIND_NS;
    s->fd = -1;
    mr_sender_leave(s, now_ns);
}

/* It was not all said, or a part of it was given away. */
void mr_sender_end_resume(struct mr_sender *s)
{
    s->is_resuming = false;
    if (s->resume_state == MR_SENDER_RESUME_COMING ||
        s->resume_state == MR_SENDER_RESUME_GIVEN || mr_sender_is_to_part(s))
        mr_sender_forget_resumes(s);
}

/* The socket has room: all that it was sent is acknowledged. */
static void accept_offer(struct mr_sender *s, uint64_t now_ns)
{
    uint8_t frame[MR_WIRE_HEADER_SIZE + MR_OFFER_SIZE];

    mr_offer_put(MR_OFFER_ACCEPTED, frame + MR_WIRE_HEADER_SIZE);
    mr_frame_put_header(MR_FRAME_OFFER, 0, 0,
                        mr_span_of(frame + MR_WIRE_HEADER_SIZE, MR_OFFER_SIZE), frame);
    if (send(s->parting.fd, frame, sizeof(frame), MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t)sizeof(frame)) {
        mr_sender_forget_resumes(s);
        return;
    }
    s->resume_state = MR_SENDER_RESUME_ACCEPTED;
    s->parting.due_ns = now_ns + GRANT_NS;
}

void mr_sender_miss_receiver(struct mr_sender *s, uint64_t now_ns)
{
    if (s->resume_state == MR_SENDER_RESUME_OFFERED &&
        ++s->parting.failures >= s->config.address_count)
        accept_offer(s, now_ns);
}

void mr_sender_begin_resume(struct mr_sender *s, uint64_t now_ns, bool is_taken)
{
    if (s->resume_state == MR_SENDER_RESUME_NONE)
        return;
    if (!is_taken || s->resume_sequence != s->oldest_sequence - 1)
        mr_sender_forget_resumes(s);
    else if (s->resume_state == MR_SENDER_RESUME_OFFERED)
        accept_offer(s, now_ns);
    s->is_resuming = s->resume_state != MR_SENDER_RESUME_NONE;
}

bool mr_sender_waits_for_grant(const struct mr_sender *s)
{
    return s->is_resuming && s->resume_state == MR_SENDER_RESUME_ACCEPTED;
}

/* False: over this connection nothing more is to come. */
static bool take_parting_frame(struct mr_sender *s, const struct mr_frame *frame)
{
    enum mr_offer_step step;

    if (frame->type == MR_FRAME_HEARTBEAT)
        return true;
    if (frame->type == MR_FRAME_OFFER && mr_offer_get(frame->payload, &step) == MR_OK &&
        step == MR_OFFER_GRANTED && s->resume_state == MR_SENDER_RESUME_ACCEPTED)
        s->resume_state = MR_SENDER_RESUME_GRANTED;
    return false;
}

static void take_parting_frames(struct mr_sender *s)
{
    struct mr_sender_parting *parting = &s->parting;
    struct mr_span rest = mr_span_of(parting->input, parting->input_size);
    struct mr_error error = MR_ERROR_NONE;
    bool goes_on = true;
    struct mr_frame frame;
    size_t need;

    while (goes_on &&
           mr_frame_take(&rest, MR_WIRE_MAX_CONTROL, &frame, &need, &error) == MR_OK)
        goes_on = take_parting_frame(s, &frame);
    goes_on = goes_on && error.status == MR_OK;
    memmove(parting->input, rest.data, rest.size);
    parting->input_size = (uint32_t)rest.size;
    if (!goes_on && s->resume_state == MR_SENDER_RESUME_GRANTED)
        close_parting(s);
    else if (!goes_on)
        mr_sender_forget_resumes(s);
}

/* The receiver that closes it has not let go: it ends what is open itself. */
static bool receive_parting(struct mr_sender *s)
{
    struct mr_sender_parting *parting = &s->parting;
    ssize_t size = recv(parting->fd, parting->input + parting->input_size,
                        sizeof(parting->input) - parting->input_size, MSG_DONTWAIT);

    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (size <= 0) {
        mr_sender_forget_resumes(s);
        return true;
    }
    parting->input_size += (uint32_t)size;
    take_parting_frames(s);
    return true;
}

bool mr_sender_tend_parting(struct mr_sender *s, uint64_t now_ns)
{
    bool has_moved;

    if (s->parting.fd < 0)
        return false;
    has_moved = receive_parting(s);
    if (s->parting.fd < 0 || now_ns < s->parting.due_ns)
        return has_moved;
    if (s->resume_state == MR_SENDER_RESUME_OFFERED)
        accept_offer(s, now_ns);
    else
        mr_sender_forget_resumes(s);
    return true;
}

void mr_sender_give_resume(struct mr_sender *s)
{
    uint8_t *payload = s->control + MR_WIRE_HEADER_SIZE;
    const uint8_t *at = s->config.resume + s->resume_at;
    size_t size;

    if (s->resume_count == 0 || s->is_leaving) {
        mr_sender_forget_resumes(s);
        return;
    }
    if (mr_sender_waits_for_grant(s))
        return;
    s->resume_state = MR_SENDER_RESUME_GIVEN;
    size = mr_get_u32(at);
    mr_resume_frame_put_head(s->resume_sequence, payload);
    memcpy(payload + MR_RESUME_HEAD_SIZE, at + sizeof(uint32_t), size);
    mr_sender_queue_control(s, MR_FRAME_RESUME,
                            mr_span_of(payload, MR_RESUME_HEAD_SIZE + size));
    s->resume_at += sizeof(uint32_t) + size;
    s->resume_count--;
}
