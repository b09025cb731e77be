/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/unwind_table.h"

#include <string.h>

#define ENTRY_BYTES 8
#define HEADER_BYTES 12 /* version and encodings, pointer to .eh_frame, count */

/* DWARF exception header encodings. */
#define PE_UDATA4 0x03
#define PE_SDATA4 0x0b
#define PE_PCREL_SDATA4 0x1b
#define PE_DATAREL_SDATA4 0x3b
#define PE_ABSPTR 0x00
#define PE_UDATA8 0x04
#define PE_SDATA8 0x0c
#define PE_SIZE_MASK 0x0f
#define PE_INDIRECT 0x80

static bool is_inside(const struct mr_module *module, uint64_t address, uint64_t size)
{
    return address >= module->address && address - module->address <= module->size &&
           size <= module->size - (address - module->address);
}

static uint32_t read_32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static const uint8_t *bytes_at(uint64_t address)
{
    return (const uint8_t *)(uintptr_t)address;
}

bool mr_unwind_open(struct mr_unwind_table *table, const struct mr_module *module)
{
    const uint8_t *header = bytes_at(module->unwind_header);
    uint64_t size = module->unwind_header_size;
    uint32_t count;

    *table = (struct mr_unwind_table){.module = module, .header = module->unwind_header};
    if (size < HEADER_BYTES || !is_inside(module, module->unwind_header, size))
        return false;
    if (header[0] != 1 || header[1] != PE_PCREL_SDATA4 || header[2] != PE_UDATA4 ||
        header[3] != PE_DATAREL_SDATA4)
        return false;
    count = read_32(header + 8);
    if (count > (size - HEADER_BYTES) / ENTRY_BYTES)
        return false;
    table->entries = header + HEADER_BYTES;
    table->count = count;
    return true;
}

/* Bytes of a pointer of this encoding, 0: of none that code uses. */
static uint32_t encoded_size(uint8_t encoding)
{
    if (encoding & PE_INDIRECT)
        return 0;
    switch (encoding & PE_SIZE_MASK) {
    case PE_UDATA4:
    case PE_SDATA4:
        return 4;
    case PE_ABSPTR:
    case PE_UDATA8:
    case PE_SDATA8:
        return 8;
    default:
        return 0;
    }
}

static const uint8_t *skip_leb128(const uint8_t *at, const uint8_t *end)
{
    while (at < end && *at & 0x80)
        at++;
    return at < end ? at + 1 : NULL;
}

/* The letters of the augmentation tell what its data holds, in order. */
static bool find_encoding(const char *letters, const uint8_t *data, const uint8_t *end,
                          uint8_t *encoding)
{
    *encoding = PE_ABSPTR;
    for (; *letters && data && data < end; letters++) {
        if (*letters == 'R') {
            *encoding = *data;
            return true;
        }
        if (*letters == 'L')
            data += 1;
        else if (*letters == 'P')
            /* An indirect pointer to the personality routine has a size, too. */
            data += 1 + encoded_size((uint8_t)(*data & ~PE_INDIRECT));
        else if (*letters != 'S' && *letters != 'B')
            return false;
    }
    return true;
}

/* The encoding of addresses in the entries that share this common one. */
static bool read_common(const struct mr_module *module, uint64_t address,
                        uint8_t *encoding)
{
    const uint8_t *at = bytes_at(address), *end;
    const char *letters;
    size_t room = module->address + module->size - address, length;

    if (room < 16 || read_32(at) > room - 4 || read_32(at) < 12 || read_32(at + 4) != 0)
        return false;
    end = at + 4 + read_32(at);
    letters = (const char *)at + 9;
    length = strnlen(letters, (size_t)(end - (at + 9)));
    at += 9 + length + 1;
    at = at < end ? skip_leb128(at, end) : NULL; /* code alignment */
    at = at ? skip_leb128(at, end) : NULL;       /* data alignment */
    at = at ? skip_leb128(at, end) : NULL;       /* return address */
    if (!at || letters[0] != 'z')
        return at && letters[0] == '\0' && (*encoding = PE_ABSPTR, true);
    at = skip_leb128(at, end); /* size of the augmentation */
    return at && find_encoding(letters + 1, at, end, encoding);
}

/* An entry: length, distance to the common one, first address, bytes. */
static bool read_size(const struct mr_module *module, uint64_t address, uint32_t *size)
{
    const uint8_t *at = bytes_at(address);
    uint8_t encoding;
    uint32_t distance, width;

    if (!is_inside(module, address, 16))
        return false;
    distance = read_32(at + 4);
    if (distance == 0 || !is_inside(module, address + 4 - distance, 16) ||
        !read_common(module, address + 4 - distance, &encoding))
        return false;
    width = encoded_size(encoding);
    if (width == 0 || !is_inside(module, address, 8 + 2 * (uint64_t)width))
        return false;
    *size = read_32(at + 8 + width); /* no function has 4 GiB */
    return true;
}

bool mr_unwind_range(const struct mr_unwind_table *table, uint32_t index, uint64_t *start,
                     uint32_t *size)
{
    const uint8_t *entry = table->entries + (uint64_t)index * ENTRY_BYTES;
    uint64_t unwind = table->header + (uint64_t)(int64_t)(int32_t)read_32(entry + 4);

    *start = table->header + (uint64_t)(int64_t)(int32_t)read_32(entry);
    return read_size(table->module, unwind, size) && *size > 0 &&
           is_inside(table->module, *start, *size);
}
