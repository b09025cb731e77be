/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RESUME (docs/FORMAT.md section 4): what the receiver that sent us away says to the next one. Held in the owner's memory,
 * one payload behind the other, each as a u32 with its size and its bytes. The sequence is the same in all and stands in the
 * sender: so whatever of the size told in HELLO comes finds room.
 *
 *     0 .... given .... resume_at ==== held ==== resume_end ---- free ---- config.resume_size
 */
#include <string.h>

#include "net/bytes.h"
#include "net/sender_private.h"

void mr_sender_forget_resumes(struct mr_sender *s)
{
    s->stats.resumes_dropped += s->resume_count;
    s->resume_at = s->resume_end = 0;
    s->resume_count = 0;
    s->is_resuming = false;
}

bool mr_sender_keep_resume(struct mr_sender *s, struct mr_span payload)
{
    struct mr_span bytes;
    uint64_t sequence;
    uint8_t *at;

    if (!s->is_moving || mr_resume_frame_get(payload, &sequence, &bytes) != MR_OK)
        return false;
    if (!s->has_resume) {
        mr_sender_forget_resumes(s);
        s->resume_sequence = sequence;
        s->has_resume = true;
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

void mr_sender_begin_resume(struct mr_sender *s, bool is_taken)
{
    s->is_resuming =
        is_taken && s->resume_count > 0 && s->resume_sequence == s->oldest_sequence - 1;
    if (!s->is_resuming)
        mr_sender_forget_resumes(s);
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
    size = mr_get_u32(at);
    mr_resume_frame_put_head(s->resume_sequence, payload);
    memcpy(payload + MR_RESUME_HEAD_SIZE, at + sizeof(uint32_t), size);
    mr_sender_queue_control(s, MR_FRAME_RESUME,
                            mr_span_of(payload, MR_RESUME_HEAD_SIZE + size));
    s->resume_at += sizeof(uint32_t) + size;
    s->resume_count--;
}
