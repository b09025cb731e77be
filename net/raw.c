/* SPDX-License-Identifier: Apache-2.0 */
/* The raw control payloads of FORMAT.md section 4, declared in net/frame.h. */
#include "base/assert.h"
#include "net/bytes.h"
#include "net/frame.h"
#include "net/ids.h"

enum { ERROR_HEADER_SIZE = 4 };

void mr_welcome_put(const struct mr_welcome *welcome, uint8_t out[MR_WELCOME_SIZE])
{
    uint8_t *at = mr_put_u16(out, welcome->version);

    at = mr_put_u16(at, welcome->flags);
    at = mr_put_u32(at, welcome->max_frame);
    at = mr_put_u64(at, welcome->next_sequence);
    at = mr_put_u64(at, welcome->credit);
    at = mr_put_u64(at, welcome->epoch);
    mr_id_put(welcome->receiver, at);
}

/* Bytes behind the known ones are ignored, so that a later version can add fields. */
enum mr_status mr_welcome_get(struct mr_span payload, struct mr_welcome *welcome)
{
    if (payload.size < MR_WELCOME_SIZE_MIN)
        return MR_EFORMAT;
    welcome->epoch = 0;
    welcome->receiver = (struct mr_id){0, 0};
    if (payload.size >= MR_WELCOME_SIZE) {
        welcome->epoch = mr_get_u64(payload.data + 24);
        welcome->receiver = mr_id_get(payload.data + 32);
    }
    welcome->version = mr_get_u16(payload.data);
    welcome->flags = mr_get_u16(payload.data + 2);
    welcome->max_frame = mr_get_u32(payload.data + 4);
    welcome->next_sequence = mr_get_u64(payload.data + 8);
    welcome->credit = mr_get_u64(payload.data + 16);
    if (welcome->next_sequence == 0 || welcome->max_frame < MR_WIRE_MAX_FRAME_MIN)
        return MR_EFORMAT;
    if (welcome->epoch > MR_WIRE_SEQUENCE_MAX) /* no other receiver would take it */
        return MR_EFORMAT;
    return MR_OK;
}

void mr_ack_put(uint64_t sequence, uint64_t credit, uint8_t out[MR_ACK_SIZE])
{
    uint8_t *at = mr_put_u64(out, sequence);

    at = mr_put_u64(at, credit);
    mr_put_u64(at, 0);
}

enum mr_status mr_ack_get(struct mr_span payload, struct mr_ack *ack)
{
    if (payload.size < MR_ACK_SIZE)
        return MR_EFORMAT;
    ack->sequence = mr_get_u64(payload.data);
    ack->credit = mr_get_u64(payload.data + 8);
    return MR_OK;
}

size_t mr_error_put(enum mr_wire_error code, const char *text, uint8_t *out,
                    size_t capacity)
{
    struct mr_span bytes = mr_span_of_text(text);

    MR_DEBUG_ASSERT(capacity >= ERROR_HEADER_SIZE);
    if (bytes.size > capacity - ERROR_HEADER_SIZE)
        bytes.size = capacity - ERROR_HEADER_SIZE;
    if (bytes.size > UINT16_MAX)
        bytes.size = UINT16_MAX;
    mr_put_u16(mr_put_u16(out, (uint16_t)code), (uint16_t)bytes.size);
    memcpy(out + ERROR_HEADER_SIZE, bytes.data, bytes.size);
    return ERROR_HEADER_SIZE + bytes.size;
}

enum mr_status mr_error_get(struct mr_span payload, struct mr_wire_error_text *error)
{
    uint16_t size;

    if (!mr_span_take_u16(&payload, &error->code) || !mr_span_take_u16(&payload, &size) ||
        !mr_span_take(&payload, size, &error->text))
        return MR_EFORMAT;
    return MR_OK;
}

void mr_bye_put(enum mr_bye_reason reason, uint8_t out[MR_BYE_SIZE])
{
    memset(out, 0, MR_BYE_SIZE);
    out[0] = (uint8_t)reason;
}

enum mr_status mr_bye_get(struct mr_span payload, uint8_t *reason)
{
    if (payload.size < MR_BYE_SIZE)
        return MR_EFORMAT;
    *reason = payload.data[0];
    return MR_OK;
}

void mr_move_put(uint32_t jitter_ms, uint8_t out[MR_MOVE_SIZE])
{
    mr_put_u32(out, jitter_ms);
}

enum mr_status mr_move_get(struct mr_span payload, uint32_t *jitter_ms)
{
    return mr_span_take_u32(&payload, jitter_ms) ? MR_OK : MR_EFORMAT;
}

void mr_settle_put(uint64_t sequence, uint8_t out[MR_SETTLE_SIZE])
{
    mr_put_u64(out, sequence);
}

enum mr_status mr_settle_get(struct mr_span payload, uint64_t *sequence)
{
    if (payload.size < MR_SETTLE_SIZE)
        return MR_EFORMAT;
    *sequence = mr_get_u64(payload.data);
    return MR_OK;
}

void mr_offer_put(enum mr_offer_step step, uint8_t out[MR_OFFER_SIZE])
{
    memset(out, 0, MR_OFFER_SIZE);
    mr_put_u32(out, (uint32_t)step);
}

enum mr_status mr_offer_get(struct mr_span payload, enum mr_offer_step *step)
{
    uint32_t number;

    if (payload.size < MR_OFFER_SIZE)
        return MR_EFORMAT;
    number = mr_get_u32(payload.data);
    *step = (enum mr_offer_step)number;
    return number >= MR_OFFER_MADE && number <= MR_OFFER_GRANTED ? MR_OK : MR_EFORMAT;
}

void mr_resume_frame_put_head(uint64_t sequence, uint8_t out[MR_RESUME_HEAD_SIZE])
{
    mr_put_u64(out, sequence);
}

enum mr_status mr_resume_frame_get(struct mr_span payload, uint64_t *sequence,
                                   struct mr_span *bytes)
{
    *bytes = payload;
    return mr_span_take_u64(bytes, sequence) && bytes->size ? MR_OK : MR_EFORMAT;
}

enum { ASK_CLAIM = 1, AT_ASK_EPOCH = 16, AT_ASK_POSITION = 24, AT_ASK_FLAGS = 32 };

void mr_ask_put(const struct mr_custody_ask *ask, uint8_t out[MR_ASK_SIZE])
{
    memset(out, 0, MR_ASK_SIZE);
    mr_id_put(ask->subject, out);
    mr_put_u64(out + AT_ASK_EPOCH, ask->epoch);
    mr_put_u64(out + AT_ASK_POSITION, ask->position);
    mr_put_u32(out + AT_ASK_FLAGS, ask->is_claim ? ASK_CLAIM : 0);
}

enum mr_status mr_ask_get(struct mr_span payload, struct mr_custody_ask *ask)
{
    if (payload.size < MR_ASK_SIZE)
        return MR_EFORMAT;
    ask->subject = mr_id_get(payload.data);
    ask->epoch = mr_get_u64(payload.data + AT_ASK_EPOCH);
    ask->position = mr_get_u64(payload.data + AT_ASK_POSITION);
    ask->is_claim = (mr_get_u32(payload.data + AT_ASK_FLAGS) & ASK_CLAIM) != 0;
    return mr_id_is_zero(ask->subject) ? MR_EFORMAT : MR_OK;
}
