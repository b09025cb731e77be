/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/modules.h"

#include <stdlib.h>

#include "base/assert.h"

void mr_modules_init(struct mr_modules *modules, uint32_t limit)
{
    MR_ASSERT(limit > 0);
    *modules = (struct mr_modules){.limit = limit};
}

void mr_modules_fini(struct mr_modules *modules)
{
    free(modules->items);
    modules->items = NULL;
    modules->count = 0;
    modules->capacity = 0;
}

static bool overlap(const struct mr_module *module, const struct mr_dict_module *item)
{
    uint64_t from = item->site_base, to = from + item->size;

    return from < (uint64_t)module->site_base + module->size && module->site_base < to;
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

enum mr_status mr_modules_add(struct mr_modules *modules,
                              const struct mr_dict_module *item,
                              const struct mr_site_module *origin)
{
    enum mr_status status;
    bool overlaps = false;

    for (uint32_t i = 0; i < modules->count; i++) {
        const struct mr_module *module = &modules->items[i];

        if (module->number == item->module && module->epoch == item->epoch)
            return MR_OK;
        overlaps |= overlap(module, item);
    }
    status = make_room(modules);
    if (status != MR_OK)
        return status;
    modules->depends_on_epoch |= overlaps;
    modules->items[modules->count++] = (struct mr_module){.number = item->module,
                                                          .epoch = item->epoch,
                                                          .gone = UINT32_MAX,
                                                          .site_base = item->site_base,
                                                          .size = item->size,
                                                          .address = item->address,
                                                          .bias = item->bias,
                                                          .origin = origin};
    return MR_OK;
}

void mr_modules_gone(struct mr_modules *modules, const struct mr_dict_module_gone *item)
{
    for (uint32_t i = 0; i < modules->count; i++) {
        struct mr_module *module = &modules->items[i];

        if (module->number == item->module && module->epoch < item->epoch &&
            module->gone > item->epoch) {
            module->gone = item->epoch;
            modules->depends_on_epoch = true;
        }
    }
}

/* Of two modules that cover a place: the one that holds in `epoch`, else the one that comes next. */
static const struct mr_module *better(const struct mr_module *a,
                                      const struct mr_module *b, uint32_t epoch)
{
    bool b_holds = b->epoch <= epoch && epoch < b->gone;

    if (!b_holds && b->epoch <= epoch)
        return a; /* gone already */
    if (!a)
        return b;
    if (b_holds)
        return a->epoch <= epoch && a->epoch > b->epoch ? a : b;
    return a->epoch <= epoch || a->epoch < b->epoch ? a : b;
}

const struct mr_module *mr_modules_by_site(const struct mr_modules *modules,
                                           uint32_t epoch, uint32_t site,
                                           uint64_t *offset)
{
    const struct mr_module *best = NULL;

    for (uint32_t i = 0; i < modules->count; i++) {
        const struct mr_module *module = &modules->items[i];

        if (site >= module->site_base && site - module->site_base < module->size)
            best = better(best, module, epoch);
    }
    if (best)
        *offset = best->address + (site - best->site_base) - best->bias;
    return best;
}

const struct mr_module *mr_modules_by_address(const struct mr_modules *modules,
                                              uint32_t epoch, uint64_t address,
                                              uint64_t *offset)
{
    const struct mr_module *best = NULL;

    for (uint32_t i = 0; i < modules->count; i++) {
        const struct mr_module *module = &modules->items[i];

        if (address >= module->address && address - module->address < module->size)
            best = better(best, module, epoch);
    }
    if (best)
        *offset = address - best->bias;
    return best;
}
