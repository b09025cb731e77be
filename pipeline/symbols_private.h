/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of symbols: symbols.c keeps the modules, symbols_elf.c opens one and reads
 * its function symbols, symbols_debug.c finds the line of a function. Nobody else
 * includes it.
 */
#ifndef MR_PIPELINE_SYMBOLS_PRIVATE_H
#define MR_PIPELINE_SYMBOLS_PRIVATE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>

#include "base/id.h"
#include "pipeline/symbols.h"

struct mr_symbols_function {
    uint64_t offset, size;
    const char *name; /* in the file's memory: valid while the module is open */
    uint32_t rank;    /* the better alias is greater */
};

struct mr_symbols_entry { /* a function in the debug information */
    uint64_t address;     /* as libdw tells it */
    Dwarf_Off die;
};

struct mr_symbols_unit { /* a compilation unit */
    Dwarf_Off die;
    struct mr_symbols_entry *entries; /* by address */
    uint32_t count, capacity;
    bool is_read;
};

struct mr_symbols_range { /* addresses of a unit */
    uint64_t low, high;
    uint32_t unit;
};

struct mr_symbols_module {
    struct mr_id key; /* of build-id, or of the path */
    uint64_t used;    /* number of the lookup that used it last */
    bool is_taken;
    Dwfl *dwfl; /* NULL: no file */
    Dwfl_Module *module;
    Dwfl_Callbacks callbacks;
    char *debuginfo_path;                  /* owned */
    uint64_t bias;                         /* dwfl's address - offset */
    struct mr_symbols_function *functions; /* by offset */
    uint32_t function_count;
    Dwarf *debug;        /* NULL: none */
    uint64_t debug_bias; /* dwfl's address - libdw's address */
    struct mr_symbols_unit *units;
    uint32_t unit_count, unit_capacity;
    struct mr_symbols_range *ranges; /* by low */
    uint32_t range_count, range_capacity;
};

/*
 * Opens the file of the module and reads its functions; on failure the module is one
 * without a file. Counts in `stats`.
 */
void mr_symbols_module_open(struct mr_symbols_module *module,
                            const struct mr_symbols_limits *limits,
                            struct mr_span build_id, const char *path,
                            struct mr_symbols_stats *stats);
void mr_symbols_module_close(struct mr_symbols_module *module);
/* The function that covers `offset`; NULL if none does. */
const struct mr_symbols_function *mr_symbols_find_function(
    const struct mr_symbols_module *module, uint64_t offset);

/* Reads which unit covers which addresses. */
void mr_symbols_debug_open(struct mr_symbols_module *module);
void mr_symbols_debug_close(struct mr_symbols_module *module);
/*
 * Name (may be NULL), file and line of the function that begins at `offset`. False if the
 * debug information has none.
 */
bool mr_symbols_debug_find(struct mr_symbols_module *module, uint64_t offset,
                           const char **name, const char **file, uint32_t *line);

#endif
