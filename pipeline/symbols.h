/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names, files and lines of functions, read from ELF files with elfutils, once per
 * build-id.
 *
 *     /path as told, if its build-id matches   ->  symbol table (its own, or a separate file's)  ->  name     quality 1
 *     else DEBUG_DIR/.build-id/xx/yyyy.debug   ->  debug information (as above)                  ->  line     quality 2
 *
 * Separate files are found as everywhere: by build-id below the debug folders, by
 * .gnu_debuglink beside the file, in .debug/ and below the debug folders; from a
 * debuginfod server only where DEBUGINFOD_URLS is set. A file whose build-id is not the
 * one asked for is not used.
 *
 *     mr_symbols_new(NULL, &symbols);
 *     if (mr_symbols_lookup(symbols, build_id, "/usr/bin/program", offset, &symbol) == MR_OK)
 *         printf("%s at %s:%u\n", symbol.name, symbol.file, symbol.line);
 *     mr_symbols_free(symbols);
 *
 * Opens files: a lookup may take seconds for the first function of a large module, so it
 * belongs on a thread that may wait. One thread at a time. Bounded: modules_max modules
 * are kept open, the least recently used one is closed. Damaged files are elfutils' to
 * survive; of what is read here every count is checked. Files are mapped: one that is
 * truncated in place while it is read ends the process (SIGBUS), as with every reader of
 * ELF files.
 */
#ifndef MR_PIPELINE_SYMBOLS_H
#define MR_PIPELINE_SYMBOLS_H

#include <stdint.h>

#include "base/span.h"
#include "base/status.h"
#include "net/control.h"

struct mr_symbols_limits {
    uint32_t modules_max;   /* 0: the default */
    uint32_t functions_max; /* of a module; those past it keep module and offset */
    const char *debug_dir;  /* searched besides /usr/lib/debug; NULL: none; borrowed */
};
#define MR_SYMBOLS_MODULES_MAX 128u
#define MR_SYMBOLS_FUNCTIONS_MAX (4u << 20)

struct mr_symbol {           /* valid until the next call */
    const char *name, *file; /* "" where unknown */
    uint32_t line;           /* 0 where unknown */
    enum mr_site_quality quality;
};

struct mr_symbols_stats {
    uint64_t lookups, found;
    uint64_t modules;    /* opened, again after they were closed for others included */
    uint64_t not_found;  /* modules without a readable ELF file */
    uint64_t mismatched; /* files whose build-id was another */
    uint64_t
        stripped; /* modules without any function symbol and without debug information */
    uint64_t over_limit; /* functions past functions_max */
};

struct mr_symbols;

/* NULL limits: the defaults. MR_ENOMEM. */
enum mr_status mr_symbols_new(const struct mr_symbols_limits *limits,
                              struct mr_symbols **symbols);
void mr_symbols_free(struct mr_symbols *symbols); /* NULL allowed */

/*
 * The function at `offset` (virtual address in the ELF file) of the module. MR_OK;
 * MR_ENOTFOUND: module+offset is all that is known (*symbol is empty, of quality 0);
 * MR_ENOMEM.
 */
enum mr_status mr_symbols_lookup(struct mr_symbols *symbols, struct mr_span build_id,
                                 const char *path, uint64_t offset,
                                 struct mr_symbol *symbol);

void mr_symbols_stats(const struct mr_symbols *symbols, struct mr_symbols_stats *stats);

#endif
