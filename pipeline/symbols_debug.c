/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug information, read in two steps: which unit covers which addresses, for the whole
 * module at once (not every compiler writes .debug_aranges); which functions begin where,
 * per unit, when the first of them is asked for.
 */
#include "base/assert.h"
#include "pipeline/symbols_private.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>

#define UNITS_MAX (1u << 20)
#define RANGES_MAX (4u << 20)
#define ENTRIES_MAX (4u << 20)
#define DEPTH_MAX 64 /* of scopes in a unit */
#define MIN_CAPACITY 16u

/* Room for one more; false without memory or at the limit. */
static bool make_room(void **array, uint32_t count, uint32_t *capacity, uint32_t limit,
                      size_t size)
{
    uint32_t grown = *capacity ? *capacity * 2 : MIN_CAPACITY;
    void *moved;

    if (count < *capacity)
        return true;
    if (count >= limit)
        return false;
    moved = realloc(*array, grown * size);
    if (!moved)
        return false;
    *array = moved;
    *capacity = grown;
    return true;
}

static void add_range(struct mr_symbols_module *module, uint64_t low, uint64_t high,
                      uint32_t unit)
{
    void *ranges = module->ranges;

    if (low >= high || !make_room(&ranges, module->range_count, &module->range_capacity,
                                  RANGES_MAX, sizeof(*module->ranges)))
        return;
    module->ranges = ranges;
    module->ranges[module->range_count++] = (struct mr_symbols_range){low, high, unit};
}

static void add_unit(struct mr_symbols_module *module, Dwarf_Die *die)
{
    void *units = module->units;
    ptrdiff_t at = 0;
    Dwarf_Addr base, low, high;

    if (!make_room(&units, module->unit_count, &module->unit_capacity, UNITS_MAX,
                   sizeof(*module->units)))
        return;
    module->units = units;
    module->units[module->unit_count] =
        (struct mr_symbols_unit){.die = dwarf_dieoffset(die)};
    while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0 &&
           module->range_count < RANGES_MAX)
        add_range(module, low, high, module->unit_count);
    module->unit_count++;
}

static int compare_ranges(const void *left, const void *right)
{
    const struct mr_symbols_range *l = left, *r = right;

    return (l->low > r->low) - (l->low < r->low);
}

void mr_symbols_debug_open(struct mr_symbols_module *module)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    Dwarf_Addr bias = 0;

    module->debug = dwfl_module_getdwarf(module->module, &bias);
    module->debug_bias = bias;
    if (!module->debug)
        return;
    while (module->unit_count < UNITS_MAX &&
           dwarf_get_units(module->debug, unit, &unit, NULL, NULL, &die, NULL) == 0) {
        if (dwarf_tag(&die) == DW_TAG_compile_unit)
            add_unit(module, &die);
    }
    if (module->range_count)
        qsort(module->ranges, module->range_count, sizeof(*module->ranges),
              compare_ranges);
}

void mr_symbols_debug_close(struct mr_symbols_module *module)
{
    for (uint32_t i = 0; i < module->unit_count; i++)
        free(module->units[i].entries);
    free(module->units);
    free(module->ranges);
    module->units = NULL;
    module->ranges = NULL;
    module->unit_count = module->range_count = 0;
}

/*
 * Where a function begins. One in several pieces, such as a hot and a cold one, has a list of
 * ranges instead of a lowest address; compilers put the piece with the entry first.
 */
static bool find_begin(Dwarf_Die *die, Dwarf_Addr *address)
{
    Dwarf_Addr base, high;

    return dwarf_entrypc(die, address) == 0 ||
           dwarf_ranges(die, 0, &base, address, &high) > 0;
}

static void add_entry(struct mr_symbols_unit *unit, Dwarf_Die *die)
{
    void *entries = unit->entries;
    Dwarf_Addr address;

    if (!find_begin(die, &address))
        return; /* a declaration, or inlined everywhere */
    if (!make_room(&entries, unit->count, &unit->capacity, ENTRIES_MAX,
                   sizeof(*unit->entries)))
        return;
    unit->entries = entries;
    unit->entries[unit->count++] =
        (struct mr_symbols_entry){address, dwarf_dieoffset(die)};
}

static bool has_functions_inside(int tag)
{
    return tag == DW_TAG_subprogram || tag == DW_TAG_namespace ||
           tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
           tag == DW_TAG_union_type || tag == DW_TAG_lexical_block ||
           tag == DW_TAG_module;
}

/* Depth first, with a stack of its own: the nesting is the file's choice. */
static void read_entries(struct mr_symbols_unit *unit, Dwarf_Die *top)
{
    Dwarf_Die stack[DEPTH_MAX];
    int depth = 0;

    if (dwarf_child(top, &stack[0]) != 0)
        return;
    while (depth >= 0) {
        int tag = dwarf_tag(&stack[depth]);

        if (tag == DW_TAG_subprogram)
            add_entry(unit, &stack[depth]);
        if (depth + 1 < DEPTH_MAX && has_functions_inside(tag) &&
            dwarf_child(&stack[depth], &stack[depth + 1]) == 0) {
            depth++;
            continue;
        }
        while (depth >= 0 && dwarf_siblingof(&stack[depth], &stack[depth]) != 0)
            depth--;
    }
}

static int compare_entries(const void *left, const void *right)
{
    const struct mr_symbols_entry *l = left, *r = right;

    return (l->address > r->address) - (l->address < r->address);
}

static void read_unit(struct mr_symbols_module *module, struct mr_symbols_unit *unit)
{
    Dwarf_Die die;

    unit->is_read = true;
    if (!dwarf_offdie(module->debug, unit->die, &die))
        return;
    read_entries(unit, &die);
    if (unit->count)
        qsort(unit->entries, unit->count, sizeof(*unit->entries), compare_entries);
}

/* The unit of the last range that begins at or before `address`, if it covers it. */
static struct mr_symbols_unit *find_unit(struct mr_symbols_module *module,
                                         uint64_t address)
{
    uint32_t low = 0, high = module->range_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (module->ranges[middle].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address >= module->ranges[low - 1].high)
        return NULL;
    MR_ASSERT(module->ranges[low - 1].unit < module->unit_count);
    return &module->units[module->ranges[low - 1].unit];
}

/*
 * As dwarf_decl_file(), which until elfutils 0.189 does not know that files count from 0
 * in DWARF 5.
 */
static const char *file_of(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    Dwarf_Die unit;
    Dwarf_Files *files;
    Dwarf_Word index;
    size_t count;

    if (dwarf_formudata(dwarf_attr_integrate(die, DW_AT_decl_file, &attribute), &index) !=
        0)
        return NULL;
    /*
     * Of the unit that holds the attribute: with link-time optimisation it may be another
     * than the function's.
     */
    if (!dwarf_cu_die(attribute.cu, &unit, NULL, NULL, NULL, NULL, NULL, NULL) ||
        dwarf_getsrcfiles(&unit, &files, &count) != 0 || index >= count)
        return NULL;
    return dwarf_filesrc(files, index, NULL, NULL);
}

/*
 * Where its code begins, for functions that nobody declared: lambdas, what the compiler
 * makes.
 */
static const char *first_line(Dwarf_Die *die, uint64_t address, uint32_t *line)
{
    Dwarf_Die unit;
    Dwarf_Line *found;
    int number = 0;

    if (!dwarf_diecu(die, &unit, NULL, NULL))
        return NULL;
    found = dwarf_getsrc_die(&unit, address);
    if (!found || dwarf_lineno(found, &number) != 0 || number <= 0)
        return NULL;
    *line = (uint32_t)number;
    return dwarf_linesrc(found, NULL, NULL);
}

static bool describe(struct mr_symbols_module *module,
                     const struct mr_symbols_entry *entry, const char **name,
                     const char **file, uint32_t *line)
{
    Dwarf_Die die;
    Dwarf_Attribute attribute;
    int number = 0;

    if (!dwarf_offdie(module->debug, entry->die, &die))
        return false;
    *name = dwarf_formstring(dwarf_attr_integrate(&die, DW_AT_linkage_name, &attribute));
    if (!*name)
        *name = dwarf_diename(&die);
    *file = file_of(&die);
    if (*file && dwarf_decl_line(&die, &number) == 0 && number > 0)
        *line = (uint32_t)number;
    else
        *file = first_line(&die, entry->address, line);
    return *file != NULL;
}

bool mr_symbols_debug_find(struct mr_symbols_module *module, uint64_t offset,
                           const char **name, const char **file, uint32_t *line)
{
    uint64_t address = offset + module->bias - module->debug_bias;
    struct mr_symbols_unit *unit = find_unit(module, address);
    const struct mr_symbols_entry wanted = {address, 0}, *entry;

    if (!unit)
        return false;
    if (!unit->is_read)
        read_unit(module, unit);
    if (unit->count == 0)
        return false;
    entry = bsearch(&wanted, unit->entries, unit->count, sizeof(wanted), compare_entries);
    return entry && describe(module, entry, name, file, line);
}
