/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "net/dict_fields.h"
#include "net/msgpack_write.h"

/* The array's head has always 5 bytes, as its count is known last: 0xdd, then the count, big-endian. */
enum { ARRAY_HEAD_SIZE = 5, ARRAY_32 = 0xdd };

void mr_dict_writer_init(struct mr_dict_writer *writer, uint8_t *out, size_t capacity)
{
    *writer = (struct mr_dict_writer){out, capacity, ARRAY_HEAD_SIZE, 0};
}

/* Through memcpy, as the fields have many types. */
static uint32_t u32_at(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static uint64_t u64_at(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static void put_text(struct mr_packer *packer, const uint8_t *at)
{
    const char *text;

    memcpy(&text, at, sizeof(text));
    mr_pack_text(packer, text ? text : "");
}

static void put_bytes(struct mr_packer *packer, const uint8_t *at)
{
    struct mr_span bytes;

    memcpy(&bytes, at, sizeof(bytes));
    mr_pack_bytes(packer, bytes);
}

static void put_id(struct mr_packer *packer, const uint8_t *at)
{
    struct mr_id id;

    memcpy(&id, at, sizeof(id));
    mr_pack_id(packer, id);
}

static void put_field(struct mr_packer *packer, enum mr_dict_field_type type,
                      const uint8_t *at)
{
    switch (type) {
    case MR_FIELD_U32:
    case MR_FIELD_CHOICE:
        mr_pack_uint(packer, u32_at(at));
        break;
    case MR_FIELD_U64:
        mr_pack_uint(packer, u64_at(at));
        break;
    case MR_FIELD_TEXT:
        put_text(packer, at);
        break;
    case MR_FIELD_BYTES:
        put_bytes(packer, at);
        break;
    case MR_FIELD_ID:
        put_id(packer, at);
        break;
    }
}

enum mr_status mr_dict_put(struct mr_dict_writer *writer, const struct mr_dict_item *item)
{
    struct mr_packer packer;
    uint32_t count;
    const struct mr_dict_field *fields = mr_dict_fields_of(item->kind, &count);

    MR_DEBUG_ASSERT(fields);
    if (writer->size > writer->capacity)
        return MR_AGAIN;
    mr_packer_init(&packer, writer->out + writer->size, writer->capacity - writer->size);
    (void)msgpack_pack_array(&packer.pack, count + 1u);
    mr_pack_uint(&packer, item->kind);
    for (uint32_t i = 0; i < count; i++)
        put_field(&packer, (enum mr_dict_field_type)fields[i].type,
                  (const uint8_t *)item + fields[i].offset);
    if (packer.is_full)
        return MR_AGAIN;
    writer->size += packer.size;
    writer->count++;
    return MR_OK;
}

size_t mr_dict_writer_finish(struct mr_dict_writer *writer)
{
    if (writer->count == 0)
        return 0;
    writer->out[0] = ARRAY_32;
    for (int i = 0; i < 4; i++)
        writer->out[1 + i] = (uint8_t)(writer->count >> (24 - 8 * i));
    return writer->size;
}
