/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the executable's `main`: the start function of the main thread. */
#include "base/compiler.h"
#include "probe/modules.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_in_text(const struct mr_module *module, uint64_t address)
{
    return address >= module->text_start && address < module->text_end;
}

#if defined(__x86_64__)
#define START_BYTES 64

static int64_t signed_32(const uint8_t *at)
{
    int32_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

/*
 * libc's start code passes main as the first argument, in %rdi:
 *     48 8d 3d rel32   lea rel32(%rip),%rdi         PIE
 *     48 8b 3d rel32   mov rel32(%rip),%rdi         PIE, from the global offset table
 *     48 c7 c7 imm32   mov $imm32,%rdi              not PIE
 */
static uint64_t main_operand(const struct mr_module *module, const uint8_t *code)
{
    uint64_t next = (uint64_t)(uintptr_t)code + 7, address;

    if (code[0] != 0x48)
        return 0;
    if (code[1] == 0xc7 && code[2] == 0xc7)
        return (uint64_t)signed_32(code + 3);
    if (code[2] != 0x3d)
        return 0;
    address = next + (uint64_t)signed_32(code + 3);
    if (code[1] == 0x8d)
        return address;
    if (code[1] != 0x8b || address - module->address > module->size - sizeof(address))
        return 0;
    memcpy(&address, (const void *)(uintptr_t)address, sizeof(address));
    return address;
}

static uint64_t main_from_start(const struct mr_module *module)
{
    uint64_t entry = getauxval(AT_ENTRY);

    if (!is_in_text(module, entry) || !is_in_text(module, entry + START_BYTES))
        return 0; /* started by naming the loader: the entry is the loader's */
    for (uint64_t at = entry; at < entry + START_BYTES - 7; at++) {
        uint64_t address = main_operand(module, (const uint8_t *)(uintptr_t)at);

        if (is_in_text(module, address))
            return address;
    }
    return 0;
}
#else
static uint64_t main_from_start(const struct mr_module *module)
{
    MR_UNUSED(module);
    return 0;
}
#endif

struct file {
    const uint8_t *data;
    uint64_t size;
};

/* `count` items of `item` bytes at `offset`, or NULL when they leave the file. */
static const void *part(const struct file *file, uint64_t offset, uint64_t count,
                        uint64_t item)
{
    if (offset > file->size || count > (file->size - offset) / item || offset % 4)
        return NULL;
    return file->data + offset;
}

static uint64_t main_in_table(const struct file *file, const ElfW(Shdr) * symbols,
                              const ElfW(Shdr) * names)
{
    uint64_t count = symbols->sh_size / sizeof(ElfW(Sym));
    const uint8_t *at = part(file, symbols->sh_offset, count, sizeof(ElfW(Sym)));
    const char *text;

    if (names->sh_offset > file->size || names->sh_size > file->size - names->sh_offset)
        return 0;
    text = (const char *)file->data + names->sh_offset;
    for (uint64_t i = 0; at && i < count; i++) {
        ElfW(Sym) symbol;

        memcpy(&symbol, at + i * sizeof(symbol), sizeof(symbol));
        if (symbol.st_name + UINT64_C(5) <= names->sh_size && symbol.st_value &&
            memcmp(text + symbol.st_name, "main", 5) == 0)
            return symbol.st_value;
    }
    return 0;
}

static uint64_t main_in_file(const struct file *file)
{
    const ElfW(Ehdr) *header = part(file, 0, 1, sizeof(*header));
    const ElfW(Shdr) * sections;
    uint64_t value = 0;

    if (!header || header->e_shentsize != sizeof(*sections) || header->e_shoff % 8)
        return 0;
    sections = part(file, header->e_shoff, header->e_shnum, sizeof(*sections));
    for (uint32_t i = 0; sections && i < header->e_shnum && value == 0; i++)
        if ((sections[i].sh_type == SHT_SYMTAB || sections[i].sh_type == SHT_DYNSYM) &&
            sections[i].sh_link < header->e_shnum)
            value = main_in_table(file, &sections[i], &sections[sections[i].sh_link]);
    return value;
}

static uint64_t main_from_symbols(const struct mr_module *module)
{
    int fd = open(MR_MODULE_EXE, O_RDONLY | O_CLOEXEC);
    struct stat stat;
    void *data;
    uint64_t value = 0;

    if (fd < 0)
        return 0;
    if (fstat(fd, &stat) == 0 && stat.st_size > 0) {
        data = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data != MAP_FAILED) {
            value = main_in_file(&(struct file){data, (uint64_t)stat.st_size});
            (void)munmap(data, (size_t)stat.st_size);
        }
    }
    (void)close(fd);
    return value && is_in_text(module, module->bias + value) ? module->bias + value : 0;
}

uint64_t mr_main_address(const struct mr_module *executable)
{
    uint64_t address = main_from_start(executable);

    return address ? address : main_from_symbols(executable);
}
