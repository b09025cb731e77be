/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module table of a source over its epochs (docs/FORMAT.md section 5): which file covered which sites and addresses
 * when. A module holds from its epoch until it is gone; a site that no module of an epoch covers is looked up in later
 * epochs. Owned by one source; one thread.
 *
 *     mr_modules_init(&modules, limit);
 *     mr_modules_add(&modules, &item, origin);
 *     module = mr_modules_by_site(&modules, epoch, wire_site, &offset);      // NULL: nobody covers it
 */
#ifndef MR_PIPELINE_MODULES_H
#define MR_PIPELINE_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/table.h"
#include "net/control.h"
#include "pipeline/module_index.h"
#include "pipeline/sites.h"

#define MR_MODULES_TAIL 32u /* looked through one by one; the shortest run */
#define MR_MODULES_RUNS 20u
#define MR_MODULES_LIMIT_MAX (MR_MODULES_TAIL << (MR_MODULES_RUNS - 1))
#define MR_MODULES_EPOCHS_MAX                                                            \
    64u /* of one number; a probe gives each number to one module */

struct mr_module {
    uint32_t number, epoch, gone; /* holds in epoch .. gone - 1 */
    uint32_t site_base, size;
    uint32_t previous; /* of the same number, or MR_MODULE_NONE */
    uint64_t address, bias;
    const struct mr_site_module *origin; /* of the lane's site table */
};

struct mr_modules {
    struct mr_module *items; /* in order of arrival */
    uint32_t count, capacity, limit;
    bool depends_on_epoch;   /* some site means different things in different epochs */
    struct mr_table numbers; /* -> the last one that came of a number */
    struct mr_module_index runs[MR_MODULES_RUNS]; /* of 32 << i; count 0: none */
};

/* Of one epoch the one that came later, else the one of the later epoch; of the sooner one. `b` may be MR_MODULE_NONE. */
static inline bool mr_module_is_later(const struct mr_module *items, uint32_t a,
                                      uint32_t b)
{
    return b == MR_MODULE_NONE || items[a].epoch > items[b].epoch ||
           (items[a].epoch == items[b].epoch && a > b);
}
static inline bool mr_module_is_sooner(const struct mr_module *items, uint32_t a,
                                       uint32_t b)
{
    return b == MR_MODULE_NONE || items[a].epoch < items[b].epoch ||
           (items[a].epoch == items[b].epoch && a > b);
}

/* `limit` is 1 .. MR_MODULES_LIMIT_MAX. */
void mr_modules_init(struct mr_modules *modules, uint32_t limit);
void mr_modules_fini(struct mr_modules *modules);

/* Idempotent: the same (epoch, module) again changes nothing. MR_ELIMIT (also: a number in too many epochs), MR_ENOMEM. */
enum mr_status mr_modules_add(struct mr_modules *modules,
                              const struct mr_dict_module *item,
                              const struct mr_site_module *origin);
void mr_modules_gone(struct mr_modules *modules, const struct mr_dict_module_gone *item);

/* The module that covers the place in that epoch, and the offset in its file; NULL when none does. */
const struct mr_module *mr_modules_by_site(const struct mr_modules *modules,
                                           uint32_t epoch, uint32_t site,
                                           uint64_t *offset);
const struct mr_module *mr_modules_by_address(const struct mr_modules *modules,
                                              uint32_t epoch, uint64_t address,
                                              uint64_t *offset);

#endif
