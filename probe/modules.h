/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's modules (executable and shared libraries) and the numbers of their
 * functions as sites.
 *
 * 30 bits of a site cannot hold an address, so two windows of the address space are
 * mapped to sites, fixed when tracing starts:
 *
 *     sites      2^24 ............ 2^29 ........................ 2^30
 *     addresses  executable's base ...  512 MiB that end just above the highest library
 *
 * Libraries are mapped downwards from there, so that those opened later usually fit. A
 * function outside both windows is recorded with its address (record `wide`); its
 * module gets site numbers past 2^30, which no event carries.
 *
 *     mr_modules_scan(table);
 *     mr_modules_windows(table, &windows);
 *     mr_modules_number(table, &windows);
 *
 * scan takes the loader's lock and may allocate inside libc: never on the writer or in
 * a hook. The rest: one thread at a time per table.
 */
#ifndef MR_PROBE_MODULES_H
#define MR_PROBE_MODULES_H

#include "net/wire.h"

#include <stdbool.h>
#include <stdint.h>

/* /proc/self tells nothing once main() has left by pthread_exit(), while other threads go on. */
#define MR_MODULE_EXE "/proc/thread-self/exe"

#define MR_MODULES_MAX 1024
#define MR_MODULE_PATH_SIZE 1024
#define MR_MODULE_BUILD_ID_SIZE 32

#define MR_WINDOW_LIBRARIES (UINT32_C(1) << 29)

struct mr_module {
    uint64_t address, size;        /* of all its loaded segments together */
    uint64_t bias;                 /* address = bias + address in the file */
    uint64_t text_start, text_end; /* of its executable segments together */
    uint32_t text_segments;
    uint64_t unwind_header, unwind_header_size; /* .eh_frame_hdr; 0: none */
    uint64_t dynamic;                           /* its dynamic section; 0: none */
    uint32_t site_base, sites;
    uint32_t number; /* the writer's: number on the wire */
    uint32_t epoch;  /* the writer's: since when it is there */
    bool is_executable;
    uint8_t build_id_size;
    uint8_t build_id[MR_MODULE_BUILD_ID_SIZE];
    char path[MR_MODULE_PATH_SIZE];
};

struct mr_module_table {
    uint32_t count;
    struct mr_module items[MR_MODULES_MAX];
};

/* site = address - origin, where it lies in the window. */
struct mr_windows {
    uint64_t exe_origin, library_origin;
};

/* How often modules came and went so far, by the loader's count. */
uint64_t mr_modules_generation(void);
/* Fills path, addresses and build-id of all modules, the executable first. */
void mr_modules_scan(struct mr_module_table *table);
/*
 * The same against what is known: is_there[i] tells of each known module whether it still
 * is, `fresh` has the others. Does not allocate.
 */
void mr_modules_compare(const struct mr_module_table *known, bool *is_there,
                        struct mr_module_table *fresh);
/*
 * Each module with its addresses alone, under the loader's lock: none comes or goes. Until
 * `visit` returns false.
 */
void mr_modules_each(bool (*visit)(const struct mr_module *module, void *context),
                     void *context);
/* The loaded module that holds `address`. False: none does. */
bool mr_modules_find(uint64_t address, struct mr_module *module);
void mr_modules_windows(const struct mr_module_table *table, struct mr_windows *windows);
/*
 * Sets site_base and sites. Modules outside both windows are numbered from MR_SITE_LIMIT
 * on, and from there again at 2^32; the next such number is returned, and of one module
 * kept in *beyond.
 */
uint64_t mr_modules_number(struct mr_module_table *table,
                           const struct mr_windows *windows);
void mr_modules_number_one(struct mr_module *module, const struct mr_windows *windows,
                           uint64_t *beyond);
/* The site of an address, or 0 where it lies outside both windows. */
uint32_t mr_windows_site(const struct mr_windows *windows, uint64_t address);

/* The address of such a site. */
uint64_t mr_windows_address(const struct mr_windows *windows, uint32_t site);

/*
 * The address of the executable's `main`, or 0. From the start code where it is that of
 * a known libc, else from the symbol table.
 */
uint64_t mr_main_address(const struct mr_module *executable);

#endif
