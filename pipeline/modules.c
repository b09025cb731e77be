/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/modules.h"

#include <assert.h>
#include <stdlib.h>

#include "base/assert.h"

void mr_modules_init(struct mr_modules *modules, uint32_t limit)
{
    MR_ASSERT(limit > 0 && limit <= MR_MODULES_LIMIT_MAX);
    *modules = (struct mr_modules){.limit = limit};
    mr_table_init(&modules->numbers, limit);
}

void mr_modules_fini(struct mr_modules *modules)
{
    free(modules->items);
    modules->items = NULL;
    modules->count = 0;
    modules->capacity = 0;
    mr_table_fini(&modules->numbers);
    for (uint32_t i = 0; i < MR_MODULES_RUNS; i++)
        mr_module_index_fini(&modules->runs[i]);
}

static struct mr_id key_of(uint32_t number)
{
    return (struct mr_id){.hi = 0, .lo = number};
}

/* The last few, which have no index. */
static uint32_t tail_of(const struct mr_modules *modules)
{
    return modules->count - modules->count % MR_MODULES_TAIL;
}

static bool overlaps(const struct mr_modules *modules, const struct mr_dict_module *item)
{
    uint64_t from = item->site_base, to = from + item->size;

    for (uint32_t i = 0; i < MR_MODULES_RUNS; i++)
        if (modules->runs[i].count &&
            mr_module_index_overlaps(&modules->runs[i], from, to))
            return true;
    for (uint32_t i = tail_of(modules); i < modules->count; i++) {
        const struct mr_module *module = &modules->items[i];

        if (from < (uint64_t)module->site_base + module->size && module->site_base < to)
            return true;
    }
    return false;
}

static enum mr_status make_room(struct mr_modules *modules)
{
    uint32_t capacity = modules->capacity ? 2 * modules->capacity : 16;
    struct mr_module *grown;

    if (modules->count == modules->limit)
        return MR_ELIMIT;
    if (modules->count < modules->capacity)
        return MR_OK;
    grown = realloc(modules->items, capacity * sizeof(*grown));
    if (!grown)
        return MR_ENOMEM;
    modules->items = grown;
    modules->capacity = capacity;
    return MR_OK;
}

/* A full tail becomes a run, together with those that it makes twice as long: as a binary counter carries. */
static enum mr_status make_run(struct mr_modules *modules)
{
    uint32_t level = 0, size = MR_MODULES_TAIL;
    struct mr_module_index made;
    enum mr_status status;

    if (modules->count % MR_MODULES_TAIL)
        return MR_OK;
    for (; modules->runs[level].count; level++)
        size *= 2;
    status = mr_module_index_build(&made, modules->items, modules->count - size, size);
    if (status != MR_OK)
        return status;
    for (uint32_t i = 0; i < level; i++)
        mr_module_index_fini(&modules->runs[i]);
    modules->runs[level] = made;
    return MR_OK;
}

/* Whether the number has this epoch, and in how many it is. */
static bool is_known(const struct mr_modules *modules, uint32_t last, uint32_t epoch,
                     uint32_t *epochs)
{
    for (*epochs = 0; last != MR_MODULE_NONE; last = modules->items[last].previous) {
        if (modules->items[last].epoch == epoch)
            return true;
        ++*epochs;
    }
    return false;
}

/* As it was before the number's last module; this takes no memory. */
static void forget_last(struct mr_modules *modules)
{
    const struct mr_module *module = &modules->items[--modules->count];

    if (module->previous == MR_MODULE_NONE)
        (void)mr_table_remove(&modules->numbers, key_of(module->number));
    else
        (void)mr_table_put(&modules->numbers, key_of(module->number), module->previous);
}

enum mr_status mr_modules_add(struct mr_modules *modules,
                              const struct mr_dict_module *item,
                              const struct mr_site_module *origin)
{
    uint32_t last = mr_table_find(&modules->numbers, key_of(item->module)), epochs;
    bool depends = modules->depends_on_epoch;
    enum mr_status status;

    static_assert(MR_TABLE_NONE == MR_MODULE_NONE, "see find");
    if (is_known(modules, last, item->epoch, &epochs))
        return MR_OK;
    if (epochs == MR_MODULES_EPOCHS_MAX)
        return MR_ELIMIT;
    status = make_room(modules);
    if (status == MR_OK)
        status = mr_table_put(&modules->numbers, key_of(item->module), modules->count);
    if (status != MR_OK)
        return status;
    depends = depends || overlaps(modules, item);
    modules->items[modules->count++] = (struct mr_module){.number = item->module,
                                                          .epoch = item->epoch,
                                                          .gone = UINT32_MAX,
                                                          .site_base = item->site_base,
                                                          .size = item->size,
                                                          .previous = last,
                                                          .address = item->address,
                                                          .bias = item->bias,
                                                          .origin = origin};
    status = make_run(modules);
    if (status == MR_OK)
        modules->depends_on_epoch = depends;
    else
        forget_last(modules);
    return status;
}

void mr_modules_gone(struct mr_modules *modules, const struct mr_dict_module_gone *item)
{
    uint32_t at = mr_table_find(&modules->numbers, key_of(item->module));

    for (; at != MR_MODULE_NONE; at = modules->items[at].previous) {
        struct mr_module *module = &modules->items[at];

        if (module->epoch < item->epoch && module->gone > item->epoch) {
            module->gone = item->epoch;
            modules->depends_on_epoch = true;
        }
    }
}

static bool covers(const struct mr_module *module, enum mr_module_axis_kind kind,
                   uint64_t place)
{
    uint64_t start = kind == MR_MODULE_BY_SITE ? module->site_base : module->address;

    return place >= start && place - start < module->size;
}

/* The one that holds in `epoch`. */
static uint32_t find_holding(const struct mr_modules *modules,
                             enum mr_module_axis_kind kind, uint64_t place,
                             uint32_t epoch)
{
    const struct mr_module *items = modules->items;
    uint32_t best = MR_MODULE_NONE;

    for (uint32_t i = tail_of(modules); i < modules->count; i++)
        if (covers(&items[i], kind, place) && items[i].epoch <= epoch &&
            epoch < items[i].gone && mr_module_is_later(items, i, best))
            best = i;
    for (uint32_t i = 0; i < MR_MODULES_RUNS; i++)
        if (modules->runs[i].count)
            best = mr_module_index_holding(&modules->runs[i], items, kind, place, epoch,
                                           best);
    return best;
}

/* Where none holds: the one that comes next. */
static uint32_t find_next(const struct mr_modules *modules, enum mr_module_axis_kind kind,
                          uint64_t place, uint32_t epoch)
{
    const struct mr_module *items = modules->items;
    uint32_t best = MR_MODULE_NONE;

    for (uint32_t i = tail_of(modules); i < modules->count; i++)
        if (covers(&items[i], kind, place) && items[i].epoch > epoch &&
            mr_module_is_sooner(items, i, best))
            best = i;
    for (uint32_t i = 0; i < MR_MODULES_RUNS; i++)
        if (modules->runs[i].count)
            best =
                mr_module_index_next(&modules->runs[i], items, kind, place, epoch, best);
    return best;
}

static const struct mr_module *find(const struct mr_modules *modules,
                                    enum mr_module_axis_kind kind, uint64_t place,
                                    uint32_t epoch)
{
    uint32_t found = find_holding(modules, kind, place, epoch);

    if (found == MR_MODULE_NONE)
        found = find_next(modules, kind, place, epoch);
    return found == MR_MODULE_NONE ? NULL : &modules->items[found];
}

const struct mr_module *mr_modules_by_site(const struct mr_modules *modules,
                                           uint32_t epoch, uint32_t site,
                                           uint64_t *offset)
{
    const struct mr_module *module = find(modules, MR_MODULE_BY_SITE, site, epoch);

    if (module)
        *offset = module->address + (site - module->site_base) - module->bias;
    return module;
}

const struct mr_module *mr_modules_by_address(const struct mr_modules *modules,
                                              uint32_t epoch, uint64_t address,
                                              uint64_t *offset)
{
    const struct mr_module *module = find(modules, MR_MODULE_BY_ADDRESS, address, epoch);

    if (module)
        *offset = address - module->bias;
    return module;
}
