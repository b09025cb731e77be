/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/modules.h"

#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WINDOW_BYTES (UINT64_C(1) << 29)
/* Room above the highest library for what is loaded there later. */
#define WINDOW_SLACK (UINT64_C(1) << 20)
#define PAGE_MASK UINT64_C(0xfff)
#define NOTE_BUILD_ID 3

static int count_generation(struct dl_phdr_info *info, size_t size, void *context)
{
    uint64_t *generation = context;

    (void)size;
    *generation = info->dlpi_adds + info->dlpi_subs;
    return 1; /* the first tells it */
}

uint64_t mr_modules_generation(void)
{
    uint64_t generation = 0;

    (void)dl_iterate_phdr(count_generation, &generation);
    return generation;
}

/* Into zeros; too long a path is cut. */
static void set_path(struct mr_module *module, const char *name)
{
    char absolute[PATH_MAX];
    ssize_t size;

    if (module->is_executable) {
        size = readlink(MR_MODULE_EXE, module->path, sizeof(module->path) - 1);
        module->path[size > 0 ? size : 0] = '\0';
        return;
    }
    if (name[0] != '/' && realpath(name, absolute))
        name = absolute;
    (void)memcpy(module->path, name, strnlen(name, sizeof(module->path) - 1));
}

/* A note: sizes of name and of what it tells, its type; then both, each padded to 4. */
static void find_build_id(struct mr_module *module, uint64_t address, uint64_t size)
{
    const uint8_t *at = (const uint8_t *)(uintptr_t)address, *end = at + size;

    while ((size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        uint64_t name_size, body_size;

        memcpy(&note, at, sizeof(note));
        at += sizeof(note);
        name_size = (note.n_namesz + 3u) & ~UINT64_C(3);
        body_size = (note.n_descsz + 3u) & ~UINT64_C(3);
        if (name_size + body_size > (size_t)(end - at))
            return;
        if (note.n_type == NOTE_BUILD_ID && note.n_namesz == 4 &&
            memcmp(at, "GNU", 4) == 0 && note.n_descsz <= MR_MODULE_BUILD_ID_SIZE) {
            memcpy(module->build_id, at + name_size, note.n_descsz);
            module->build_id_size = (uint8_t)note.n_descsz;
        }
        at += name_size + body_size;
    }
}

static void add_segment(struct mr_module *module, const ElfW(Phdr) * segment)
{
    uint64_t start = module->bias + segment->p_vaddr;
    uint64_t end = start + segment->p_memsz;

    if (segment->p_type == PT_NOTE)
        find_build_id(module, start, segment->p_memsz);
    if (segment->p_type == PT_GNU_EH_FRAME) {
        module->unwind_header = start;
        module->unwind_header_size = segment->p_memsz;
    }
    if (segment->p_type == PT_DYNAMIC)
        module->dynamic = start;
    if (segment->p_type != PT_LOAD)
        return;
    start &= ~PAGE_MASK;
    end = (end + PAGE_MASK) & ~PAGE_MASK;
    if (module->size == 0) /* loaded segments come in order of address */
        module->address = start;
    module->size = end - module->address;
    if (segment->p_flags & PF_X) {
        if (module->text_end == 0)
            module->text_start = start;
        module->text_end = end;
        module->text_segments++;
    }
}

static void describe(struct mr_module *module, const struct dl_phdr_info *info,
                     bool is_executable)
{
    memset(module, 0, sizeof(*module));
    module->bias = info->dlpi_addr;
    module->is_executable = is_executable;
    for (int i = 0; i < info->dlpi_phnum; i++)
        add_segment(module, &info->dlpi_phdr[i]);
}

static bool is_same(const struct mr_module *a, const struct mr_module *b)
{
    return a->address == b->address && a->size == b->size &&
           a->build_id_size == b->build_id_size &&
           memcmp(a->build_id, b->build_id, a->build_id_size) == 0 &&
           strcmp(a->path, b->path) == 0;
}

struct scan {
    const struct mr_module_table *known; /* or NULL */
    bool *is_there;
    struct mr_module_table *fresh;
    uint32_t seen;
};

static bool is_known(struct scan *scan, const struct mr_module *module)
{
    for (uint32_t i = 0; scan->known && i < scan->known->count; i++)
        if (is_same(&scan->known->items[i], module)) {
            scan->is_there[i] = true;
            return true;
        }
    return false;
}

static int scan_one(struct dl_phdr_info *info, size_t size, void *context)
{
    struct scan *scan = context;
    struct mr_module *module = &scan->fresh->items[scan->fresh->count];
    bool is_executable = scan->seen++ == 0;

    (void)size;
    if (scan->fresh->count == MR_MODULES_MAX)
        return 1;
    /* What has no file, such as the vDSO, has no functions that we could meet. */
    if (!is_executable && (!info->dlpi_name || !strchr(info->dlpi_name, '/')))
        return 0;
    describe(module, info, is_executable);
    set_path(module, info->dlpi_name ? info->dlpi_name : "");
    if (module->size > 0 && !is_known(scan, module))
        scan->fresh->count++;
    return 0;
}

void mr_modules_scan(struct mr_module_table *table)
{
    struct scan scan = {.fresh = table};

    table->count = 0;
    (void)dl_iterate_phdr(scan_one, &scan);
}

void mr_modules_compare(const struct mr_module_table *known, bool *is_there,
                        struct mr_module_table *fresh)
{
    struct scan scan = {.known = known, .is_there = is_there, .fresh = fresh};

    fresh->count = 0;
    memset(is_there, 0, known->count * sizeof(*is_there));
    (void)dl_iterate_phdr(scan_one, &scan);
}

struct visitor {
    bool (*visit)(const struct mr_module *module, void *context);
    void *context;
    struct mr_module module;
    uint32_t seen;
};

static int visit_one(struct dl_phdr_info *info, size_t size, void *context)
{
    struct visitor *visitor = context;

    (void)size;
    describe(&visitor->module, info, visitor->seen++ == 0);
    return visitor->module.size > 0 &&
           !visitor->visit(&visitor->module, visitor->context);
}

void mr_modules_each(bool (*visit)(const struct mr_module *module, void *context),
                     void *context)
{
    struct visitor visitor = {.visit = visit, .context = context};

    (void)dl_iterate_phdr(visit_one, &visitor);
}

struct search {
    uint64_t address;
    struct mr_module *module;
    uint32_t seen;
};

static int find_one(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *search = context;

    (void)size;
    describe(search->module, info, search->seen++ == 0);
    if (search->address - search->module->address >= search->module->size)
        return 0;
    set_path(search->module, info->dlpi_name ? info->dlpi_name : "");
    return 1;
}

bool mr_modules_find(uint64_t address, struct mr_module *module)
{
    struct search search = {.address = address, .module = module};

    return dl_iterate_phdr(find_one, &search) == 1;
}

void mr_modules_windows(const struct mr_module_table *table, struct mr_windows *windows)
{
    uint64_t top = 0;

    windows->exe_origin = 0;
    for (uint32_t i = 0; i < table->count; i++) {
        const struct mr_module *module = &table->items[i];

        if (module->is_executable)
            windows->exe_origin = module->address - MR_SITE_FIRST_MODULE;
        else if (module->address + module->size > top)
            top = module->address + module->size;
    }
    windows->library_origin = top + WINDOW_SLACK - MR_SITE_LIMIT;
}

static bool is_in_libraries(const struct mr_windows *windows,
                            const struct mr_module *module)
{
    uint64_t site = module->address + module->size - 1 - windows->library_origin;

    return site >= MR_WINDOW_LIBRARIES && site < MR_SITE_LIMIT &&
           site - (module->size - 1) >= MR_SITE_FIRST_MODULE;
}

void mr_modules_number_one(struct mr_module *module, const struct mr_windows *windows,
                           uint64_t *beyond)
{
    uint64_t sites = module->size < WINDOW_BYTES ? module->size : WINDOW_BYTES;

    if (module->is_executable) {
        /* What lies beyond half a GiB of an executable has no site of its own. */
        if (sites > MR_WINDOW_LIBRARIES - MR_SITE_FIRST_MODULE)
            sites = MR_WINDOW_LIBRARIES - MR_SITE_FIRST_MODULE;
        module->site_base = MR_SITE_FIRST_MODULE;
    } else if (is_in_libraries(windows, module)) {
        module->site_base = (uint32_t)(module->address - windows->library_origin);
    } else {
        /* No event carries these: that two modules have the same does not matter. */
        if (*beyond + sites > UINT32_MAX)
            *beyond = MR_SITE_LIMIT;
        module->site_base = (uint32_t)*beyond;
        *beyond += sites;
    }
    module->sites = (uint32_t)sites;
}

uint64_t mr_modules_number(struct mr_module_table *table,
                           const struct mr_windows *windows)
{
    uint64_t beyond = MR_SITE_LIMIT;

    for (uint32_t i = 0; i < table->count; i++)
        mr_modules_number_one(&table->items[i], windows, &beyond);
    return beyond;
}

uint64_t mr_windows_address(const struct mr_windows *windows, uint32_t site)
{
    return site +
           (site < MR_WINDOW_LIBRARIES ? windows->exe_origin : windows->library_origin);
}

uint32_t mr_windows_site(const struct mr_windows *windows, uint64_t address)
{
    uint64_t site = address - windows->exe_origin;

    if (site - MR_SITE_FIRST_MODULE < MR_WINDOW_LIBRARIES - MR_SITE_FIRST_MODULE)
        return (uint32_t)site;
    site = address - windows->library_origin;
    if (site - MR_WINDOW_LIBRARIES < MR_SITE_LIMIT - MR_WINDOW_LIBRARIES)
        return (uint32_t)site;
    return 0;
}
