/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "pipeline/symbols_private.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEBUG_ROOT "/usr/lib/debug"
/*
 * Symbols before the nearest one that are looked at for one that covers the offset: entry
 * points inside assembly functions.
 */
#define NEIGHBOURS 16

static bool is_program(int fd)
{
    unsigned char head[EI_NIDENT + 2];
    struct stat about;
    uint16_t type;

    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        return false;
    if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
        memcmp(head, ELFMAG, SELFMAG) != 0)
        return false; /* libdwfl would expand compressed files and walk archives */
    memcpy(&type, head + EI_NIDENT, sizeof(type));
    return type == ET_EXEC || type == ET_DYN;
}

/* Never blocks on a pipe or a device that somebody put there. */
static int open_program(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd >= 0 && !is_program(fd)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static void prepare_callbacks(struct mr_symbols_module *module,
                              const struct mr_symbols_limits *limits)
{
    if (limits->debug_dir && asprintf(&module->debuginfo_path, ":.debug:%s:" DEBUG_ROOT,
                                      limits->debug_dir) < 0)
        module->debuginfo_path = NULL; /* libdwfl's own default then */
    module->callbacks = (Dwfl_Callbacks){
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address,
        .debuginfo_path = limits->debug_dir ? &module->debuginfo_path : NULL,
    };
}

static void end_session(struct mr_symbols_module *module)
{
    if (module->dwfl)
        dwfl_end(module->dwfl);
    free(module->debuginfo_path);
    module->dwfl = NULL;
    module->module = NULL;
    module->debuginfo_path = NULL;
}

static bool has_build_id(Dwfl_Module *module, struct mr_span wanted)
{
    const unsigned char *bits = NULL;
    GElf_Addr address;
    int size = dwfl_module_build_id(module, &bits, &address);

    return mr_span_equal(wanted, mr_span_of(bits, size > 0 ? (size_t)size : 0));
}

/* Takes the file if it is the one. */
static bool try_file(struct mr_symbols_module *module,
                     const struct mr_symbols_limits *limits, struct mr_span build_id,
                     const char *path, struct mr_symbols_stats *stats)
{
    GElf_Addr bias = 0;
    int fd = open_program(path);

    if (fd < 0)
        return false;
    prepare_callbacks(module, limits);
    module->dwfl = dwfl_begin(&module->callbacks);
    if (module->dwfl)
        module->module = dwfl_report_offline(module->dwfl, "module", path, fd);
    if (!module->module)
        (void)close(fd); /* libdwfl owns it only if it took the file */
    if (module->module && dwfl_report_end(module->dwfl, NULL, NULL) == 0 &&
        dwfl_module_getelf(module->module, &bias)) {
        module->bias = bias;
        if (has_build_id(module->module, build_id))
            return true;
        stats->mismatched++;
    }
    end_session(module);
    return false;
}

static bool try_build_id(struct mr_symbols_module *module,
                         const struct mr_symbols_limits *limits, struct mr_span build_id,
                         const char *root, struct mr_symbols_stats *stats)
{
    char path[4096];
    size_t used;

    if (!root || build_id.size < 2 || build_id.size > MR_BUILD_ID_MAX)
        return false;
    used = (size_t)snprintf(path, sizeof(path), "%s/.build-id/%02x/", root,
                            build_id.data[0]);
    if (used + 2 * build_id.size + sizeof(".debug") > sizeof(path))
        return false;
    for (size_t i = 1; i < build_id.size; i++)
        used +=
            (size_t)snprintf(path + used, sizeof(path) - used, "%02x", build_id.data[i]);
    (void)snprintf(path + used, sizeof(path) - used, ".debug");
    return try_file(module, limits, build_id, path, stats);
}

/*
 * Among names of one address: global before weak before local, then few underscores in
 * front, then short.
 */
static uint32_t rank_of(const GElf_Sym *symbol, const char *name)
{
    unsigned binding = GELF_ST_BIND(symbol->st_info);
    uint32_t scope = binding == STB_GLOBAL ? 2 : binding == STB_WEAK ? 1 : 0;
    size_t underscores = strspn(name, "_"), size = strnlen(name, UINT16_MAX);

    return scope << 24 | (uint32_t)(255 - (underscores < 255 ? underscores : 255)) << 16 |
           (uint32_t)(UINT16_MAX - size);
}

static int compare(const void *left, const void *right)
{
    const struct mr_symbols_function *l = left, *r = right;

    if (l->offset != r->offset)
        return l->offset < r->offset ? -1 : 1;
    if (l->rank != r->rank)
        return l->rank > r->rank ? -1 : 1; /* the best alias first */
    return strcmp(l->name, r->name);
}

/* Of each offset the first one, but with the largest size of its aliases. */
static void drop_aliases(struct mr_symbols_module *module)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < module->function_count; i++) {
        const struct mr_symbols_function *function = &module->functions[i];
        struct mr_symbols_function *last = kept ? &module->functions[kept - 1] : NULL;

        if (!last || last->offset != function->offset)
            module->functions[kept++] = *function;
        else if (function->size > last->size)
            last->size = function->size;
    }
    module->function_count = kept;
}

static bool is_function(const GElf_Sym *symbol, GElf_Word section, const char *name)
{
    unsigned type = GELF_ST_TYPE(symbol->st_info);

    return (type == STT_FUNC || type == STT_GNU_IFUNC) && section != SHN_UNDEF && name &&
           *name;
}

static void read_functions(struct mr_symbols_module *module,
                           const struct mr_symbols_limits *limits,
                           struct mr_symbols_stats *stats)
{
    int count = dwfl_module_getsymtab(module->module);

    if (count <= 0)
        return;
    module->functions = calloc((size_t)count, sizeof(*module->functions));
    for (int i = 0; module->functions && i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        GElf_Word section = SHN_UNDEF;
        const char *name = dwfl_module_getsym_info(module->module, i, &symbol, &address,
                                                   &section, NULL, NULL);

        if (!name || !is_function(&symbol, section, name))
            continue;
        if (module->function_count == limits->functions_max) {
            stats->over_limit++;
            continue;
        }
        module->functions[module->function_count++] =
            (struct mr_symbols_function){.offset = address - module->bias,
                                         .size = symbol.st_size,
                                         .name = name,
                                         .rank = rank_of(&symbol, name)};
    }
    if (!module->functions || module->function_count == 0)
        return;
    qsort(module->functions, module->function_count, sizeof(*module->functions), compare);
    drop_aliases(module);
}

void mr_symbols_module_open(struct mr_symbols_module *module,
                            const struct mr_symbols_limits *limits,
                            struct mr_span build_id, const char *path,
                            struct mr_symbols_stats *stats)
{
    MR_ASSERT(!module->dwfl && !module->functions);
    stats->modules++;
    if (!try_file(module, limits, build_id, path, stats) &&
        !try_build_id(module, limits, build_id, limits->debug_dir, stats) &&
        !try_build_id(module, limits, build_id, DEBUG_ROOT, stats)) {
        stats->not_found++;
        return;
    }
    read_functions(module, limits, stats);
    mr_symbols_debug_open(module);
    stats->stripped += module->function_count == 0 && module->range_count == 0;
}

void mr_symbols_module_close(struct mr_symbols_module *module)
{
    mr_symbols_debug_close(module);
    free(module->functions);
    end_session(module);
    *module = (struct mr_symbols_module){.is_taken = false};
}

/* How many functions begin at or before `offset`. */
static uint32_t count_up_to(const struct mr_symbols_module *module, uint64_t offset)
{
    uint32_t low = 0, high = module->function_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (module->functions[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct mr_symbols_function *mr_symbols_find_function(
    const struct mr_symbols_module *module, uint64_t offset)
{
    uint32_t at = count_up_to(module, offset);

    for (uint32_t n = 0; n < NEIGHBOURS && at > 0; n++) {
        const struct mr_symbols_function *function = &module->functions[--at];

        if (offset == function->offset || offset - function->offset < function->size)
            return function;
    }
    return NULL;
}
