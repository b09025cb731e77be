/* SPDX-License-Identifier: Apache-2.0 */
#include "net/wanted.h"

#include "base/assert.h"
#include "net/bytes.h"
#include "net/ids.h"
#include "net/wire.h"

static_assert(MR_WANTED_SIZE_MAX <= MR_WIRE_MAX_CONTROL, "a full list is one frame");

/* Offsets in an item, FORMAT.md section 4. */
enum {
    AT_COUNT = 4,
    AT_DEPTH = 6,
    AT_LEFT = 8,
    AT_MIN = 16,
    AT_ID = 24,
    AT_ENTRY = 40,
    AT_NODE = 56
};

static bool is_sound(const struct mr_wanted *wanted)
{
    if (wanted->count == 0 || wanted->count > MR_WANTED_COUNT_MAX ||
        wanted->depth > MR_WANTED_DEPTH_MAX || wanted->left_ms == 0 ||
        wanted->left_ms > MR_WANTED_LEFT_MS_MAX || mr_id_is_zero(wanted->id))
        return false;
    if (mr_id_is_zero(wanted->entry))
        return wanted->depth == 0 && !mr_id_is_zero(wanted->node);
    return true;
}

static size_t size_of(const struct mr_wanted *wanted)
{
    return MR_WANTED_ITEM_SIZE + 8 * (size_t)wanted->depth;
}

static void put_item(const struct mr_wanted *wanted, uint8_t *out)
{
    memset(out, 0, MR_WANTED_ITEM_SIZE);
    mr_put_u32(out, (uint32_t)size_of(wanted));
    mr_put_u16(out + AT_COUNT, wanted->count);
    mr_put_u16(out + AT_DEPTH, wanted->depth);
    mr_put_u32(out + AT_LEFT, wanted->left_ms);
    mr_put_u64(out + AT_MIN, wanted->min_ns);
    mr_id_put(wanted->id, out + AT_ID);
    mr_id_put(wanted->entry, out + AT_ENTRY);
    mr_id_put(wanted->node, out + AT_NODE);
    for (uint32_t i = 0; i < wanted->depth; i++)
        mr_put_u64(out + MR_WANTED_ITEM_SIZE + 8 * (size_t)i, wanted->sites[i]);
}

size_t mr_wanted_put(const struct mr_wanted_list *list, uint8_t *out)
{
    size_t at = MR_WANTED_HEAD_SIZE;

    MR_ASSERT(list->count <= MR_WANTED_MAX);
    mr_put_u32(mr_put_u32(out, list->count), 0);
    for (uint32_t i = 0; i < list->count; i++) {
        MR_ASSERT(is_sound(&list->items[i]));
        put_item(&list->items[i], out + at);
        at += size_of(&list->items[i]);
    }
    return at;
}

/* The next item off the front of `rest`; a later version may have put more behind its sites. */
static bool get_item(struct mr_span *rest, struct mr_wanted *wanted)
{
    const uint8_t *at = rest->data;
    size_t size;

    if (rest->size < MR_WANTED_ITEM_SIZE)
        return false;
    size = mr_get_u32(at);
    wanted->count = mr_get_u16(at + AT_COUNT);
    wanted->depth = mr_get_u16(at + AT_DEPTH);
    wanted->left_ms = mr_get_u32(at + AT_LEFT);
    wanted->min_ns = mr_get_u64(at + AT_MIN);
    wanted->id = mr_id_get(at + AT_ID);
    wanted->entry = mr_id_get(at + AT_ENTRY);
    wanted->node = mr_id_get(at + AT_NODE);
    if (!is_sound(wanted) || size < size_of(wanted) || !mr_span_skip(rest, size))
        return false;
    for (uint32_t i = 0; i < wanted->depth; i++)
        wanted->sites[i] = mr_get_u64(at + MR_WANTED_ITEM_SIZE + 8 * (size_t)i);
    return true;
}

static bool is_known(const struct mr_wanted_list *list, struct mr_id id)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (mr_id_equal(list->items[i].id, id))
            return true;
    return false;
}

enum mr_status mr_wanted_get(struct mr_span payload, struct mr_wanted_list *list)
{
    struct mr_span rest = payload;
    uint32_t count, reserved;

    list->count = 0;
    if (!mr_span_take_u32(&rest, &count) || !mr_span_take_u32(&rest, &reserved) ||
        count > MR_WANTED_MAX)
        return MR_EFORMAT;
    for (uint32_t i = 0; i < count; i++) {
        struct mr_wanted *wanted = &list->items[i];

        if (!get_item(&rest, wanted) || is_known(list, wanted->id))
            return MR_EFORMAT;
        list->count++;
    }
    return MR_OK;
}

bool mr_wanted_is_same(const struct mr_wanted *a, const struct mr_wanted *b)
{
    return mr_id_equal(a->id, b->id) && mr_id_equal(a->entry, b->entry) &&
           mr_id_equal(a->node, b->node) && a->min_ns == b->min_ns &&
           a->count == b->count && a->depth == b->depth &&
           memcmp(a->sites, b->sites, a->depth * sizeof(*a->sites)) == 0;
}
