/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the functions of a loaded module, for globs: the symbol table of its file, or
 * its dynamic symbols where the file is stripped.
 *
 *     if (mr_symbols_open(&symbols, module) == MR_OK) {
 *         for (i = mr_symbols_first(&symbols, address);
 *              i < symbols.count && symbols.items[i].address == address; i++)
 *             ... symbols.items[i].name ...
 *         mr_symbols_close(&symbols);
 *     }
 *
 * Names point into the mapped file. Never on the writer or in a hook: opens files. One
 * thread per table.
 */
#ifndef MR_PROBE_SYMBOLS_H
#define MR_PROBE_SYMBOLS_H

#include "base/status.h"
#include "probe/modules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mr_symbol {
    uint64_t address; /* where it is loaded */
    uint64_t size;    /* 0: not known, or not all of it is code of the module */
    const char *name;
};

struct mr_symbols {
    struct mr_symbol *items; /* functions, by address; several may share one */
    uint32_t count;
    bool has_hooks; /* calls __cyg_profile_func_enter */
    const uint8_t *file;
    size_t file_size, item_bytes;
};

/* MR_EIO: the file cannot be read; MR_EFORMAT: no table in it; MR_ENOMEM. */
enum mr_status mr_symbols_open(struct mr_symbols *symbols,
                               const struct mr_module *module);
void mr_symbols_close(struct mr_symbols *symbols);
/* Index of the first symbol at `address` or behind it. */
uint32_t mr_symbols_first(const struct mr_symbols *symbols, uint64_t address);

#endif
