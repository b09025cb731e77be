/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the functions of a loaded module begin and end, and how their frames are left, as its unwind
 * information has it: the sorted table of .eh_frame_hdr (Linux Standard Base, "Exception Frames") and the
 * entries of .eh_frame that it points to. The linker makes both; compilers write an entry
 * for every function on x86-64, and stripping leaves them. A part of a function that
 * stands elsewhere, such as its cold part, has an entry of its own.
 *
 *     if (mr_unwind_open(&table, module))
 *         for (i = 0; i < table.count; i++)
 *             if (mr_unwind_range(&table, i, &start, &size)) ...
 *
 * Any thread and signal handlers; the module must stay loaded. What is read is checked
 * against the bounds of the module, so that a broken table gives no functions, not a fault.
 */
#ifndef MR_PROBE_UNWIND_TABLE_H
#define MR_PROBE_UNWIND_TABLE_H

#include "probe/modules.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_unwind_table {
    uint64_t address, size; /* of the module */
    uint64_t header;
    const uint8_t *entries; /* pairs of 4 bytes: start, address of its entry */
    uint32_t count;
};

struct mr_unwind_code {
    const uint8_t *at, *end;
};

/* One entry, with what it shares with others. */
struct mr_unwind_entry {
    uint64_t start;
    uint32_t size;
    uint8_t return_column; /* the register that stands for the return address */
    bool is_signal;        /* its caller was interrupted, not called from */
    uint64_t code_step;
    int64_t data_step;
    struct mr_unwind_code shared, own; /* call frame instructions, in this order */
};

/* False: the module has no table of the form that linkers write. */
bool mr_unwind_open(struct mr_unwind_table *table, const struct mr_module *module);
/* The same of a module of `size` bytes at `address` with its .eh_frame_hdr at `header`. */
bool mr_unwind_open_at(struct mr_unwind_table *table, uint64_t address, uint64_t size,
                       uint64_t header, uint64_t header_size);
/* Where the range of entry `index` begins, unchecked. */
uint64_t mr_unwind_start(const struct mr_unwind_table *table, uint32_t index);
/* Of entry `index` in order of address: first address and bytes. False: not readable. */
bool mr_unwind_range(const struct mr_unwind_table *table, uint32_t index, uint64_t *start,
                     uint32_t *size);
/* The entry that holds `address`. False: none, or not readable. */
bool mr_unwind_find(const struct mr_unwind_table *table, uint64_t address,
                    struct mr_unwind_entry *entry);

#endif
