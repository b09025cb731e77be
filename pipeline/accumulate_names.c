/* SPDX-License-Identifier: Apache-2.0 */
/* Names of a payload: from numbers in it to items of the sets, when a row needs them. */
#include "base/assert.h"
#include "base/hash.h"
#include "net/ids.h"
#include "pipeline/accumulate_private.h"

enum mr_status mr_acc_add_local(struct mr_accumulator *acc, enum mr_acc_set_kind kind,
                                struct mr_acc_local local)
{
    struct mr_acc_locals *locals = &acc->locals[kind];
    void *items = locals->items;
    enum mr_status status =
        mr_acc_grow(&items, &locals->capacity, locals->count + 1, sizeof(*locals->items));

    locals->items = items;
    if (status == MR_OK)
        locals->items[locals->count++] = local;
    return status;
}

static struct mr_acc_local *local_at(struct mr_accumulator *acc,
                                     enum mr_acc_set_kind kind, uint32_t number)
{
    MR_ASSERT(number < acc->locals[kind].count); /* the reader has checked it */
    return &acc->locals[kind].items[number];
}

enum mr_status mr_acc_add_path(struct mr_accumulator *acc,
                               const struct mr_delta_item *item)
{
    struct mr_acc_local local = {.parent = item->parent,
                                 .scope = item->scope,
                                 .site = item->site,
                                 .flags = item->flags & MR_DELTA_PATH_OUTER};

    if (item->parent != MR_DELTA_NONE) {
        uint32_t above = local_at(acc, MR_ACC_PATH, item->parent)->depth;

        local.depth = above < MR_ACCUMULATOR_DEPTH_MAX ? above + 1 : above;
    }
    return mr_acc_add_local(acc, MR_ACC_PATH, local);
}

/* Site, scope, source `number` of the payload in its set. */
enum mr_status mr_acc_intern_name(struct mr_accumulator *acc, enum mr_acc_set_kind kind,
                                  uint32_t number, uint32_t *index)
{
    struct mr_acc_local *local = local_at(acc, kind, number);
    enum mr_status status;
    bool is_new;

    if (local->epoch != acc->epoch) {
        status = mr_acc_set_take(&acc->sets[kind], local->id, &local->index, &is_new);
        if (status != MR_OK)
            return status;
        if (is_new)
            *(struct mr_acc_name *)mr_acc_at(&acc->sets[kind], local->index) =
                (struct mr_acc_name){.id = local->id};
        local->epoch = acc->epoch;
    }
    *index = local->index;
    return MR_OK;
}

static struct mr_id path_id(const struct mr_accumulator *acc,
                            const struct mr_acc_path *path)
{
    const struct mr_acc_name *site = mr_acc_at(&acc->sets[MR_ACC_SITE], path->site);
    const struct mr_acc_name *scope = mr_acc_at(&acc->sets[MR_ACC_SCOPE], path->scope);
    struct mr_id above = scope->id;

    if (path->parent != MR_ACC_NONE)
        above =
            ((struct mr_acc_path *)mr_acc_at(&acc->sets[MR_ACC_PATH], path->parent))->id;
    return path->flags & MR_DELTA_PATH_OUTER ? mr_id_outer_path(above, site->id)
                                             : mr_id_path(above, site->id);
}

static enum mr_status grow_chain(struct mr_accumulator *acc, uint32_t depth)
{
    void *chain = acc->chain;
    enum mr_status status =
        mr_acc_grow(&chain, &acc->chain_capacity, depth, sizeof(*acc->chain));

    acc->chain = chain;
    return status;
}

/* One path whose parent is there already. */
static enum mr_status intern_link(struct mr_accumulator *acc, struct mr_acc_local *local)
{
    struct mr_acc_path path = {.parent = MR_ACC_NONE, .flags = local->flags};
    enum mr_status status = mr_acc_intern_name(acc, MR_ACC_SITE, local->site, &path.site);
    bool is_new;

    if (local->parent != MR_DELTA_NONE) {
        const struct mr_acc_path *parent;

        path.parent = local_at(acc, MR_ACC_PATH, local->parent)->index;
        parent = mr_acc_at(&acc->sets[MR_ACC_PATH], path.parent);
        path.scope = parent->scope;
        path.depth = parent->depth + 1;
    } else if (status == MR_OK) {
        status = mr_acc_intern_name(acc, MR_ACC_SCOPE, local->scope, &path.scope);
    }
    if (status != MR_OK)
        return status;
    MR_DEBUG_ASSERT(path.depth < MR_ACCUMULATOR_DEPTH_MAX);
    path.id = path_id(acc, &path);
    status = grow_chain(acc, path.depth + 1); /* writing goes up the whole chain */
    if (status == MR_OK)
        status =
            mr_acc_set_take(&acc->sets[MR_ACC_PATH], path.id, &local->index, &is_new);
    if (status != MR_OK)
        return status;
    if (is_new)
        *(struct mr_acc_path *)mr_acc_at(&acc->sets[MR_ACC_PATH], local->index) = path;
    local->epoch = acc->epoch;
    return MR_OK;
}

/* Without recursion: the depth is the sender's choice. */
enum mr_status mr_acc_intern_path(struct mr_accumulator *acc, uint32_t number,
                                  uint32_t *index)
{
    uint32_t depth = 0, at = number;
    enum mr_status status = MR_OK;

    if (local_at(acc, MR_ACC_PATH, number)->depth >= MR_ACCUMULATOR_DEPTH_MAX)
        return MR_EUSAGE; /* each row that names it would have all above it interned and given up again */
    while (at != MR_DELTA_NONE && local_at(acc, MR_ACC_PATH, at)->epoch != acc->epoch) {
        status = grow_chain(acc, depth + 1);
        if (status != MR_OK)
            return status;
        acc->chain[depth++] = at;
        at = local_at(acc, MR_ACC_PATH, at)->parent;
    }
    while (depth > 0 && status == MR_OK)
        status = intern_link(acc, local_at(acc, MR_ACC_PATH, acc->chain[--depth]));
    *index = local_at(acc, MR_ACC_PATH, number)->index;
    return status;
}

static struct mr_id shape_key(const struct mr_accumulator *acc,
                              const struct mr_acc_shape *shape)
{
    const struct mr_acc_name *scope = mr_acc_at(&acc->sets[MR_ACC_SCOPE], shape->scope);
    const struct mr_acc_path *path = mr_acc_at(&acc->sets[MR_ACC_PATH], shape->path);
    const struct mr_id ids[] = {scope->id, path->id, shape->node};

    return mr_hash128(mr_span_of(ids, sizeof(ids)));
}

enum mr_status mr_acc_intern_shape(struct mr_accumulator *acc, uint32_t number,
                                   uint32_t *index)
{
    struct mr_acc_local *local = local_at(acc, MR_ACC_SHAPE, number);
    struct mr_acc_shape shape = {.node = local->id};
    enum mr_status status;
    bool is_new;

    *index = local->index;
    if (local->epoch == acc->epoch)
        return MR_OK;
    status = mr_acc_intern_name(acc, MR_ACC_SCOPE, local->scope, &shape.scope);
    if (status == MR_OK)
        status = mr_acc_intern_path(acc, local->path, &shape.path);
    if (status != MR_OK)
        return status;
    shape.key = shape_key(acc, &shape);
    status = mr_acc_set_take(&acc->sets[MR_ACC_SHAPE], shape.key, &local->index, &is_new);
    if (status != MR_OK)
        return status;
    if (is_new)
        *(struct mr_acc_shape *)mr_acc_at(&acc->sets[MR_ACC_SHAPE], local->index) = shape;
    local->epoch = acc->epoch;
    *index = local->index;
    return MR_OK;
}
