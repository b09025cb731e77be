/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/symbols.h"

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whoever is built with -finstrument-functions calls it. */
#define HOOK "__cyg_profile_func_enter"

static bool map_file(struct mr_symbols *symbols, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    void *memory = MAP_FAILED;

    if (fd < 0)
        return false;
    if (fstat(fd, &about) == 0 && about.st_size >= (off_t)sizeof(ElfW(Ehdr))) {
        symbols->file_size = (size_t)about.st_size;
        memory = mmap(NULL, symbols->file_size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    (void)close(fd);
    if (memory == MAP_FAILED)
        return false;
    symbols->file = memory;
    return true;
}

static bool is_in_file(const struct mr_symbols *symbols, uint64_t offset, uint64_t size)
{
    return offset <= symbols->file_size && size <= symbols->file_size - offset;
}

/* Section header number `index`; false: outside the file. */
static bool read_section(const struct mr_symbols *symbols, const ElfW(Ehdr) * header,
                         uint32_t index, ElfW(Shdr) * section)
{
    uint64_t offset = header->e_shoff + (uint64_t)index * sizeof(*section);

    if (index >= header->e_shnum || !is_in_file(symbols, offset, sizeof(*section)))
        return false;
    memcpy(section, symbols->file + offset, sizeof(*section));
    return is_in_file(symbols, section->sh_offset,
                      section->sh_type == SHT_NOBITS ? 0 : section->sh_size);
}

static bool find_table(const struct mr_symbols *symbols, uint32_t type,
                       ElfW(Shdr) * table, ElfW(Shdr) * strings)
{
    ElfW(Ehdr) header;

    memcpy(&header, symbols->file, sizeof(header));
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_shentsize != sizeof(ElfW(Shdr)))
        return false;
    for (uint32_t i = 0; i < header.e_shnum; i++)
        if (read_section(symbols, &header, i, table) && table->sh_type == type)
            return read_section(symbols, &header, table->sh_link, strings) &&
                   strings->sh_type == SHT_STRTAB && strings->sh_size > 0 &&
                   symbols->file[strings->sh_offset + strings->sh_size - 1] == '\0';
    return false;
}

/* A file may tell anything; who reads the code relies on this. */
static bool is_code(const struct mr_module *module, uint64_t address, uint64_t size)
{
    return address >= module->text_start && address <= module->text_end &&
           size <= module->text_end - address;
}

static void add(struct mr_symbols *symbols, const struct mr_module *module,
                const ElfW(Sym) * symbol, const ElfW(Shdr) * strings)
{
    unsigned type = symbol->st_info & 0xfu;
    const char *name = (const char *)symbols->file + strings->sh_offset + symbol->st_name;
    uint64_t address = module->bias + symbol->st_value;

    /* libc and our library define it and call none; a static program defines what it calls. */
    if (symbol->st_name < strings->sh_size && strcmp(name, HOOK) == 0 &&
        (symbol->st_shndx == SHN_UNDEF || module->is_executable))
        symbols->has_hooks = true;
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol->st_shndx == SHN_UNDEF ||
        symbol->st_name >= strings->sh_size)
        return;
    symbols->items[symbols->count++] = (struct mr_symbol){
        .address = address,
        .size = is_code(module, address, symbol->st_size) ? symbol->st_size : 0,
        .name = name};
}

static int compare(const void *left, const void *right)
{
    const struct mr_symbol *a = left, *b = right;

    return a->address < b->address ? -1 : a->address > b->address;
}

static enum mr_status read_table(struct mr_symbols *symbols,
                                 const struct mr_module *module, const ElfW(Shdr) * table,
                                 const ElfW(Shdr) * strings)
{
    uint64_t count = table->sh_size / sizeof(ElfW(Sym));
    void *memory;

    if (count == 0 || count > UINT32_MAX)
        return MR_EFORMAT;
    symbols->item_bytes = count * sizeof(*symbols->items);
    memory = mmap(NULL, symbols->item_bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return MR_ENOMEM;
    symbols->items = memory;
    for (uint64_t i = 0; i < count; i++) {
        ElfW(Sym) symbol;

        memcpy(&symbol, symbols->file + table->sh_offset + i * sizeof(symbol),
               sizeof(symbol));
        add(symbols, module, &symbol, strings);
    }
    qsort(symbols->items, symbols->count, sizeof(*symbols->items), compare);
    return MR_OK;
}

enum mr_status mr_symbols_open(struct mr_symbols *symbols, const struct mr_module *module)
{
    /* The link holds on where the executable's file was moved or replaced. */
    const char *path = module->is_executable ? MR_MODULE_EXE : module->path;
    enum mr_status status = MR_EFORMAT;
    ElfW(Shdr) table, strings;

    *symbols = (struct mr_symbols){0};
    if (!map_file(symbols, path))
        return MR_EIO;
    if (find_table(symbols, SHT_SYMTAB, &table, &strings) ||
        find_table(symbols, SHT_DYNSYM, &table, &strings))
        status = read_table(symbols, module, &table, &strings);
    if (status != MR_OK)
        mr_symbols_close(symbols);
    return status;
}

void mr_symbols_close(struct mr_symbols *symbols)
{
    if (symbols->items)
        (void)munmap(symbols->items, symbols->item_bytes);
    if (symbols->file)
        (void)munmap((void *)(uintptr_t)symbols->file, symbols->file_size);
    *symbols = (struct mr_symbols){0};
}

uint32_t mr_symbols_first(const struct mr_symbols *symbols, uint64_t address)
{
    uint32_t low = 0, high = symbols->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (symbols->items[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
