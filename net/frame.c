/* SPDX-License-Identifier: Apache-2.0 */
#include "net/frame.h"

#include "base/assert.h"
#include "base/hash.h"
#include "net/bytes.h"

/* Offsets in the header, FORMAT.md section 2. */
enum {
    AT_VERSION = 4,
    AT_TYPE = 5,
    AT_FLAGS = 6,
    AT_LENGTH = 8,
    AT_CHECKSUM = 12,
    AT_SEQUENCE = 16
};

const char *mr_frame_type_name(uint8_t type)
{
    switch (type) {
#define X(number, name, data)                                                            \
    case number:                                                                         \
        return #name;
        MR_FRAME_TYPES(X)
#undef X
    default:
        return "?";
    }
}

int mr_frame_is_data(uint8_t type)
{
#define X(number, name, data) || ((data) && type == (number))
    return 0 MR_FRAME_TYPES(X);
#undef X
}

static bool is_known(uint8_t type)
{
    return mr_frame_type_name(type)[0] != '?';
}

/* The header's own bytes go in by way of the seed, so that no byte of a frame is unprotected. */
static uint32_t checksum(const uint8_t header[MR_WIRE_HEADER_SIZE],
                         struct mr_span payload)
{
    uint8_t plain[MR_WIRE_HEADER_SIZE];

    memcpy(plain, header, sizeof(plain));
    memset(plain + AT_CHECKSUM, 0, 4);
    return (uint32_t)mr_hash64_seed(payload, mr_hash64(mr_span_of(plain, sizeof(plain))));
}

void mr_frame_put_header(uint8_t type, uint16_t flags, uint64_t sequence,
                         struct mr_span payload, uint8_t out[MR_WIRE_HEADER_SIZE])
{
    uint8_t *at = mr_put_u32(out, MR_WIRE_MAGIC);

    MR_DEBUG_ASSERT(payload.size <= UINT32_MAX);
    at = mr_put_u8(at, MR_WIRE_VERSION);
    at = mr_put_u8(at, type);
    at = mr_put_u16(at, flags);
    at = mr_put_u32(at, (uint32_t)payload.size);
    at = mr_put_u32(at, 0);
    mr_put_u64(at, sequence);
    mr_put_u32(out + AT_CHECKSUM, checksum(out, payload));
}

/* What can be said of the first two fields as soon as they are there. */
static enum mr_status check_dialect(const uint8_t *header, struct mr_error *error)
{
    uint32_t magic = mr_get_u32(header);

    if (magic != MR_WIRE_MAGIC)
        return mr_error_set(error, MR_EFORMAT,
                            "no millrace frame: it begins with 0x%08x instead of 0x%08x",
                            magic, MR_WIRE_MAGIC);
    if (header[AT_VERSION] != MR_WIRE_VERSION)
        return mr_error_set(error, MR_EVERSION,
                            "frame of wire version %u; this side speaks %u",
                            header[AT_VERSION], MR_WIRE_VERSION);
    return MR_OK;
}

static enum mr_status check_type(uint8_t type, uint16_t flags, uint64_t sequence,
                                 struct mr_error *error)
{
    uint16_t allowed = mr_frame_is_data(type) && sequence ? MR_WIRE_FLAG_ZSTD : 0;

    if (!is_known(type))
        return mr_error_set(error, MR_EFORMAT, "frame of unknown type %u", type);
    if (flags & ~allowed)
        return mr_error_set(error, MR_EFORMAT, "%s frame with flags 0x%x",
                            mr_frame_type_name(type), flags);
    return MR_OK;
}

static enum mr_status check_sequence(uint8_t type, uint64_t sequence,
                                     struct mr_error *error)
{
    if (!is_known(type) || mr_frame_is_data(type) == (sequence != 0) ||
        type == MR_FRAME_DICT)
        return MR_OK; /* DICT of sequence 0: out of custody */
    return mr_error_set(error, MR_EFORMAT, "%s frame with sequence %llu",
                        mr_frame_type_name(type), (unsigned long long)sequence);
}

static enum mr_status check_length(uint8_t type, uint64_t sequence, uint32_t length,
                                   uint32_t max_frame, struct mr_error *error)
{
    uint32_t limit = max_frame;

    if (sequence == 0 && limit > MR_WIRE_MAX_CONTROL)
        limit = MR_WIRE_MAX_CONTROL;
    if (length <= limit)
        return MR_OK;
    return mr_error_set(error, MR_ELIMIT, "%s frame of %u bytes; the limit is %u",
                        mr_frame_type_name(type), length, limit);
}

static enum mr_status check_header(const uint8_t *header, uint32_t max_frame,
                                   struct mr_error *error)
{
    uint8_t type = header[AT_TYPE];
    uint64_t sequence = mr_get_u64(header + AT_SEQUENCE);
    enum mr_status status = check_dialect(header, error);

    if (status == MR_OK)
        status = check_sequence(type, sequence, error);
    if (status == MR_OK)
        status = check_type(type, mr_get_u16(header + AT_FLAGS), sequence, error);
    if (status == MR_OK)
        status = check_length(type, sequence, mr_get_u32(header + AT_LENGTH), max_frame,
                              error);
    return status;
}

enum mr_status mr_frame_take(struct mr_span *bytes, uint32_t max_frame,
                             struct mr_frame *frame, size_t *need, struct mr_error *error)
{
    const uint8_t *header = bytes->data;
    enum mr_status status;

    *need = MR_WIRE_HEADER_SIZE;
    if (bytes->size < *need)
        return MR_AGAIN;
    status = check_header(header, max_frame, error);
    if (status != MR_OK)
        return status;
    *need += mr_get_u32(header + AT_LENGTH);
    if (bytes->size < *need)
        return MR_AGAIN;
    frame->type = header[AT_TYPE];
    frame->flags = mr_get_u16(header + AT_FLAGS);
    frame->sequence = mr_get_u64(header + AT_SEQUENCE);
    frame->payload =
        mr_span_of(header + MR_WIRE_HEADER_SIZE, *need - MR_WIRE_HEADER_SIZE);
    if (mr_get_u32(header + AT_CHECKSUM) != checksum(header, frame->payload))
        return mr_error_set(
            error, MR_ECHECKSUM, "%s frame %llu: its checksum does not match",
            mr_frame_type_name(frame->type), (unsigned long long)frame->sequence);
    (void)mr_span_skip(bytes, *need);
    return MR_OK;
}

bool mr_frame_take_again(struct mr_span *bytes, struct mr_frame *frame)
{
    const uint8_t *header = bytes->data;

    if (bytes->size == 0)
        return false;
    MR_ASSERT(bytes->size >= MR_WIRE_HEADER_SIZE);
    frame->type = header[AT_TYPE];
    frame->flags = mr_get_u16(header + AT_FLAGS);
    frame->sequence = mr_get_u64(header + AT_SEQUENCE);
    frame->payload =
        mr_span_of(header + MR_WIRE_HEADER_SIZE, mr_get_u32(header + AT_LENGTH));
    MR_ASSERT(mr_span_skip(bytes, MR_WIRE_HEADER_SIZE + frame->payload.size));
    return true;
}
