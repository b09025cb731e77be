/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the functions of a loaded module begin and end, as its unwind information has it:
 * the sorted table of .eh_frame_hdr (Linux Standard Base, "Exception Frames") and the
 * entries of .eh_frame that it points to. The linker makes both; compilers write an entry
 * for every function on x86-64, and stripping leaves them. A part of a function that
 * stands elsewhere, such as its cold part, has an entry of its own.
 *
 *     if (mr_unwind_open(&table, module))
 *         for (i = 0; i < table.count; i++)
 *             if (mr_unwind_range(&table, i, &start, &size)) ...
 *
 * Any thread; the module must stay loaded. What is read is checked against the bounds of
 * the module, so that a broken table gives no functions, not a fault.
 */
#ifndef MR_PROBE_UNWIND_TABLE_H
#define MR_PROBE_UNWIND_TABLE_H

#include "probe/modules.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_unwind_table {
    const struct mr_module *module;
    uint64_t header;
    const uint8_t *entries; /* pairs of 4 bytes: start, address of its entry */
    uint32_t count;
};

/* False: the module has no table of the form that linkers write. */
bool mr_unwind_open(struct mr_unwind_table *table, const struct mr_module *module);
/* Of entry `index` in order of address: first address and bytes. False: not readable. */
bool mr_unwind_range(const struct mr_unwind_table *table, uint32_t index, uint64_t *start,
                     uint32_t *size);

#endif
