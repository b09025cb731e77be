/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/assert.h"
#include "net/dict_fields.h"
#include "net/ids.h"
#include "net/msgpack_read.h"
#include "net/text_pool.h"

enum mr_status mr_dict_open(struct mr_dict_reader *reader, struct mr_span payload,
                            struct mr_error *error)
{
    struct mr_span rest = payload;

    *reader = (struct mr_dict_reader){.rest = payload, .size = payload.size};
    if (!mr_msgpack_skip(&rest) || rest.size ||
        !mr_msgpack_array(&reader->rest, &reader->count))
        return mr_error_set(error, MR_EFORMAT, "DICT: not one whole msgpack array");
    reader->memory = malloc(payload.size);
    if (!reader->memory)
        return mr_error_set(error, MR_ENOMEM, "DICT: no memory for %zu bytes",
                            payload.size);
    return MR_OK;
}

void mr_dict_close(struct mr_dict_reader *reader)
{
    free(reader->memory);
    *reader = (struct mr_dict_reader){.memory = NULL};
}

static bool get_u32(struct mr_span *in, uint32_t max, uint8_t *to)
{
    uint64_t wide;
    uint32_t value;

    if (!mr_msgpack_uint(in, &wide) || wide > max)
        return false;
    value = (uint32_t)wide;
    memcpy(to, &value, sizeof(value));
    return true;
}

static bool get_u64(struct mr_span *in, uint8_t *to)
{
    uint64_t value;

    if (!mr_msgpack_uint(in, &value))
        return false;
    memcpy(to, &value, sizeof(value));
    return true;
}

static bool get_text(struct mr_span *in, struct mr_text_pool *pool, uint8_t *to)
{
    struct mr_span text;
    const char *copy;

    if (!mr_msgpack_text(in, &text) || !mr_text_pool_add(pool, text, &copy))
        return false;
    memcpy(to, &copy, sizeof(copy));
    return true;
}

static bool get_bytes(struct mr_span *in, struct mr_text_pool *pool, uint8_t *to)
{
    struct mr_span bytes;

    if (!mr_msgpack_bytes(in, &bytes))
        return false;
    bytes = mr_text_pool_copy(pool, bytes);
    memcpy(to, &bytes, sizeof(bytes));
    return true;
}

static bool get_id(struct mr_span *in, uint8_t *to)
{
    struct mr_span bytes;
    struct mr_id id;

    if (!mr_msgpack_bytes(in, &bytes) || bytes.size != 16)
        return false;
    id = mr_id_get(bytes.data);
    memcpy(to, &id, sizeof(id));
    return true;
}

static bool get_field(struct mr_span *in, const struct mr_dict_field *field,
                      struct mr_text_pool *pool, uint8_t *to)
{
    switch ((enum mr_dict_field_type)field->type) {
    case MR_FIELD_U32:
    case MR_FIELD_CHOICE:
        return get_u32(in, field->max, to);
    case MR_FIELD_U64:
        return get_u64(in, to);
    case MR_FIELD_TEXT:
        return get_text(in, pool, to);
    case MR_FIELD_BYTES:
        return get_bytes(in, pool, to);
    case MR_FIELD_ID:
        return get_id(in, to);
    }
    return false;
}

static bool are_children(struct mr_span children)
{
    struct mr_node_child child;
    enum mr_status status;

    while ((status = mr_node_child_next(&children, &child)) == MR_OK)
        ;
    return status == MR_END;
}

/* One beyond the last site has no site of its own; its functions are told by address. */
static bool is_module_sound(const struct mr_dict_module *module)
{
    uint32_t end = module->site_base < MR_SITE_LIMIT ? MR_SITE_LIMIT : UINT32_MAX;

    return module->build_id.size <= MR_BUILD_ID_MAX &&
           module->site_base >= MR_SITE_FIRST_MODULE &&
           module->size <= end - module->site_base;
}

static bool is_counter_name(const char *name)
{
    size_t size = strlen(name);

    return size > 0 && size <= MR_COUNTER_NAME_MAX;
}

/* What must hold of the fields beyond the type and the greatest value of each. */
static bool is_sound(struct mr_dict_item *item)
{
    switch (item->kind) {
    case MR_DICT_MODULE:
        return is_module_sound(&item->module);
    case MR_DICT_NAMED_SITE:
        return item->named_site.site >= MR_SITE_FIRST_NAMED;
    case MR_DICT_STREAM:
        return item->stream.stream != 0;
    case MR_DICT_COUNTER:
        return is_counter_name(item->counter.name);
    case MR_DICT_SPAN_COUNTER:
        return is_counter_name(item->span_counter.name);
    case MR_DICT_SOURCE_LOSS:
        return item->source_loss.reason != 0 &&
               item->source_loss.events <= MR_EVENTS_LIMIT;
    case MR_DICT_LINK:
        return item->link.events <= MR_EVENTS_LIMIT;
    case MR_DICT_SITE:
        return item->site.build_id.size <= MR_BUILD_ID_MAX;
    case MR_DICT_NODE:
        return are_children(item->node.children);
    default:
        return true;
    }
}

static bool get_item(struct mr_dict_reader *reader, uint64_t kind, uint32_t elements,
                     struct mr_dict_item *item)
{
    struct mr_text_pool pool = {reader->memory, reader->used, reader->size};
    uint32_t count;
    const struct mr_dict_field *fields = mr_dict_fields_of(kind, &count);

    memset(item, 0, sizeof(*item));
    item->kind = (enum mr_dict_kind)kind;
    if (elements < count)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!get_field(&reader->rest, &fields[i], &pool,
                       (uint8_t *)item + fields[i].offset))
            return false;
    }
    reader->used = pool.used;
    return is_sound(item);
}

/* The rest has been checked as a whole when it was opened, so that this cannot fail. */
static void skip_elements(struct mr_dict_reader *reader, uint32_t count)
{
    while (count-- > 0) {
        bool is_there = mr_msgpack_skip(&reader->rest);

        MR_ASSERT(is_there);
    }
}

static enum mr_status fail(const struct mr_dict_reader *reader, struct mr_error *error,
                           unsigned long long kind)
{
    return mr_error_set(error, MR_EFORMAT,
                        "DICT: item %u of %u, kind %llu, breaks the format", reader->next,
                        reader->count, kind);
}

enum mr_status mr_dict_next(struct mr_dict_reader *reader, struct mr_dict_item *item,
                            struct mr_error *error)
{
    while (reader->next < reader->count) {
        uint32_t elements, known;
        uint64_t kind;

        reader->next++;
        if (!mr_msgpack_array(&reader->rest, &elements) || elements == 0 ||
            !mr_msgpack_uint(&reader->rest, &kind))
            return fail(reader, error, 0);
        elements--;
        if (mr_dict_fields_of(kind, &known)) {
            if (!get_item(reader, kind, elements, item))
                return fail(reader, error, kind);
            skip_elements(reader, elements - known);
            return MR_OK;
        }
        skip_elements(reader, elements);
        reader->unknown++;
    }
    return MR_END;
}
