/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/homes.h"

void mr_homes_init(struct mr_homes *homes)
{
    mr_table_init(&homes->young, MR_HOMES_MAX);
    mr_table_init(&homes->old, MR_HOMES_MAX);
}

void mr_homes_fini(struct mr_homes *homes)
{
    mr_table_fini(&homes->young);
    mr_table_fini(&homes->old);
}

bool mr_homes_find(struct mr_homes *homes, struct mr_id sender, uint32_t *lane)
{
    uint32_t found = mr_table_find(&homes->young, sender);

    if (found == MR_TABLE_NONE) {
        found = mr_table_find(&homes->old, sender);
        if (found == MR_TABLE_NONE)
            return false;
        mr_homes_put(homes, sender,
                     found); /* it is alive: not forgotten with the others */
    }
    *lane = found;
    return true;
}

void mr_homes_put(struct mr_homes *homes, struct mr_id sender, uint32_t lane)
{
    struct mr_table full = homes->young;

    if (mr_table_put(&homes->young, sender, lane) != MR_ELIMIT)
        return;
    mr_table_clear(&homes->old);
    homes->young = homes->old;
    homes->old = full;
    (void)mr_table_put(&homes->young, sender, lane);
}
