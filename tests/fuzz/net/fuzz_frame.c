/* SPDX-License-Identifier: Apache-2.0 */
/* Frames as they come, the same with the right checksum, and every raw control payload. */
#include <stdlib.h>

#include "base/assert.h"
#include "net/frame.h"
#include "net/frame_expand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_payload(struct mr_span payload)
{
    struct mr_welcome welcome;
    struct mr_ack ack;
    struct mr_wire_error_text error;
    struct mr_span bytes;
    uint64_t sequence;
    enum mr_offer_step step;
    uint32_t jitter_ms;
    uint8_t reason;

    (void)mr_welcome_get(payload, &welcome);
    (void)mr_bye_get(payload, &reason);
    (void)mr_move_get(payload, &jitter_ms);
    (void)mr_ack_get(payload, &ack);
    if (mr_offer_get(payload, &step) == MR_OK)
        MR_ASSERT(step >= MR_OFFER_MADE && step <= MR_OFFER_GRANTED);
    if (mr_resume_frame_get(payload, &sequence, &bytes) == MR_OK)
        MR_ASSERT(bytes.size > 0 && bytes.size + MR_RESUME_HEAD_SIZE == payload.size);
    if (mr_error_get(payload, &error) == MR_OK)
        MR_ASSERT(error.text.size <= payload.size);
}

static void expand(struct mr_frame *frame)
{
    struct mr_frame_expander expander;
    struct mr_error error = MR_ERROR_NONE;

    mr_frame_expander_init(&expander);
    if (mr_frame_expand(&expander, MR_WIRE_MAX_FRAME_MIN, frame, &error) == MR_OK)
        MR_ASSERT(frame->payload.size <= MR_WIRE_MAX_FRAME_MIN);
    mr_frame_expander_fini(&expander);
}

static void read_frames(struct mr_span bytes)
{
    struct mr_frame frame;
    size_t need;

    while (mr_frame_take(&bytes, MR_WIRE_MAX_FRAME_MIN, &frame, &need, NULL) == MR_OK) {
        read_payload(frame.payload);
        if (frame.flags & MR_WIRE_FLAG_ZSTD)
            expand(&frame);
    }
}

/* Without it, the checksum keeps the fuzzer out. */
static void read_with_checksum(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size);
    struct mr_span payload =
        mr_span_of(copy + MR_WIRE_HEADER_SIZE, size - MR_WIRE_HEADER_SIZE);

    if (!copy)
        return;
    memcpy(copy, data, size);
    mr_frame_put_header(data[5], (uint16_t)(data[6] | data[7] << 8), data[16], payload,
                        copy);
    read_frames(mr_span_of(copy, size));
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_frames(mr_span_of(data, size));
    read_payload(mr_span_of(data, size));
    if (size >= MR_WIRE_HEADER_SIZE)
        read_with_checksum(data, size);
    return 0;
}
