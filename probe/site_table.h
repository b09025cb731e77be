/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sites of one module: its functions, and of each the points where the compiler has
 * left room for a call, at the entry and at every exit.
 *
 *     status = mr_site_table_find(&table, &module, &site_module);
 *     for (f = 0; f < table.function_count; f++)
 *         for (p = table.functions[f].first; p != MR_SITE_POINT_NONE;
 *              p = table.points[p].next) ...
 *     mr_site_table_fini(&table);
 *
 * gcc. An entry is the call of the module's __fentry__ that is the first instruction of a
 * function (or the second, behind endbr64); where functions begin, the unwind table
 * knows. An exit is a call of the module's __return__ somewhere in it. Both are calls of
 * exactly these addresses, in the forms that compilers and linkers make: e8, 67 e8,
 * ff 15. That bytes which look so are an instruction is not assumed but walked: from the
 * first instruction of the function, instruction by instruction. Where the walk meets
 * something that is none, or does not end with the function, the function has no sites.
 * An exit in a part of a function that stands elsewhere (.cold) belongs to the one
 * function that jumps there; if it is none or several, it is left alone.
 *
 * clang. xray_instr_map tells it all.
 *
 * What is left alone is counted, and goes on to call a function that returns at once.
 * Memory is mapped, not allocated. One thread; the module's code must not run yet.
 */
#ifndef MR_PROBE_SITE_TABLE_H
#define MR_PROBE_SITE_TABLE_H

#include "base/error.h"
#include "probe/modules.h"
#include "probe/sites.h"

#include <stdint.h>

#define MR_SITE_POINT_NONE UINT32_MAX

enum mr_site_kind {
    MR_SITE_ENTER,  /* a call of 5 bytes */
    MR_SITE_EXIT,   /* likewise, before ret or the jump of a tail call */
    MR_SITE_RETURN, /* the ret itself, with room for a jump of 5 bytes: XRay */
};

struct mr_site_point {
    uint32_t offset; /* from the module's address */
    uint32_t next;   /* of the same function, or MR_SITE_POINT_NONE */
    uint32_t function;
    uint8_t kind; /* enum mr_site_kind */
    uint8_t size; /* bytes that the compiler left, >= 5 */
    uint8_t is_patched;
};

struct mr_site_function {
    uint32_t offset, size; /* of its code, without parts that stand elsewhere */
    uint32_t first;        /* of its points */
    uint8_t is_on;         /* as the filters say */
    uint8_t is_pruned;     /* while it is on, its calls are counted instead of recorded */
    uint8_t is_always;     /* MR_ALWAYS_TRACE: of any size, and never pruned */
};

struct mr_site_table {
    struct mr_site_function *functions; /* in order of address */
    struct mr_site_point *points;
    uint32_t function_count, point_count;
    uint32_t unclear;                     /* calls of ours that were left alone */
    uint64_t function_bytes, point_bytes; /* mapped */
};

/* MR_OK; MR_EFORMAT with the reason why none of the sites can be used; MR_ENOMEM. */
enum mr_status mr_site_table_find(struct mr_site_table *table,
                                  const struct mr_module *module,
                                  const struct mr_site_module *sites,
                                  struct mr_error *error);
void mr_site_table_fini(struct mr_site_table *table);

#endif
