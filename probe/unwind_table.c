/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/unwind_table.h"

#include "probe/unwind_bytes.h"

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

static bool is_inside(const struct mr_unwind_table *table, uint64_t address,
                      uint64_t size)
{
    return address >= table->address && address - table->address <= table->size &&
           size <= table->size - (address - table->address);
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

bool mr_unwind_open_at(struct mr_unwind_table *table, uint64_t address, uint64_t size,
                       uint64_t header, uint64_t header_size)
{
    const uint8_t *bytes = bytes_at(header);
    uint32_t count;

    *table = (struct mr_unwind_table){.address = address, .size = size, .header = header};
    if (header_size < HEADER_BYTES || !is_inside(table, header, header_size))
        return false;
    if (bytes[0] != 1 || bytes[1] != PE_PCREL_SDATA4 || bytes[2] != PE_UDATA4 ||
        bytes[3] != PE_DATAREL_SDATA4)
        return false;
    count = read_32(bytes + 8);
    if (count > (header_size - HEADER_BYTES) / ENTRY_BYTES)
        return false;
    table->entries = bytes + HEADER_BYTES;
    table->count = count;
    return true;
}

bool mr_unwind_open(struct mr_unwind_table *table, const struct mr_module *module)
{
    return mr_unwind_open_at(table, module->address, module->size, module->unwind_header,
                             module->unwind_header_size);
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

/* What entries share with others of their common one. */
struct common {
    uint8_t encoding; /* of addresses */
    bool has_augmentation;
};

/* A length, and so many bytes. */
static bool take_sized(struct mr_unwind_bytes *bytes, struct mr_unwind_bytes *data)
{
    uint64_t size = mr_unwind_uleb(bytes);

    *data = (struct mr_unwind_bytes){.at = mr_unwind_take(bytes, size)};
    data->end = bytes->at;
    return !bytes->has_failed;
}

/* The letters of the augmentation tell what its data holds, in order. */
static bool read_letters(const char *letters, struct mr_unwind_bytes data,
                         struct common *common, struct mr_unwind_entry *entry)
{
    for (; *letters; letters++) {
        if (*letters == 'R')
            common->encoding = (uint8_t)mr_unwind_fixed(&data, 1);
        else if (*letters == 'L')
            (void)mr_unwind_take(&data, 1);
        else if (*letters == 'P')
            /* An indirect pointer to the personality routine has a size, too. */
            (void)mr_unwind_take(&data, encoded_size((uint8_t)(mr_unwind_fixed(&data, 1) &
                                                               ~(uint64_t)PE_INDIRECT)));
        else if (*letters == 'S')
            entry->is_signal = true;
        else if (*letters != 'B')
            return false;
    }
    return !data.has_failed;
}

/* The common part of an entry: version, augmentation, steps, instructions. */
static bool read_common(const struct mr_unwind_table *table, uint64_t address,
                        struct common *common, struct mr_unwind_entry *entry)
{
    const uint8_t *at = bytes_at(address);
    struct mr_unwind_bytes bytes, data;
    const char *letters;
    uint64_t room = table->address + table->size - address;

    if (room < 16 || read_32(at) > room - 4 || read_32(at) < 12 || read_32(at + 4) != 0)
        return false;
    bytes = (struct mr_unwind_bytes){.at = at + 9, .end = at + 4 + read_32(at)};
    letters = (const char *)bytes.at;
    (void)mr_unwind_take(&bytes, strnlen(letters, (size_t)(bytes.end - bytes.at)) + 1);
    entry->code_step = mr_unwind_uleb(&bytes);
    entry->data_step = mr_unwind_sleb(&bytes);
    /* Version 1 has a byte, and no machine of ours a number past 127. */
    entry->return_column = (uint8_t)mr_unwind_uleb(&bytes);
    *common = (struct common){.encoding = PE_ABSPTR};
    if (bytes.has_failed || (letters[0] != 'z' && letters[0] != '\0'))
        return false;
    if (letters[0] == 'z') {
        common->has_augmentation = true;
        if (!take_sized(&bytes, &data) || !read_letters(letters + 1, data, common, entry))
            return false;
    }
    entry->shared = (struct mr_unwind_code){bytes.at, bytes.end};
    return true;
}

/* An entry: length, distance to the common one, first address, bytes, instructions. */
static bool read_entry(const struct mr_unwind_table *table, uint64_t address,
                       struct mr_unwind_entry *entry)
{
    const uint8_t *at = bytes_at(address);
    struct mr_unwind_bytes bytes, data;
    struct common common;
    uint32_t distance, width;

    if (!is_inside(table, address, 16) || read_32(at) < 4 ||
        !is_inside(table, address + 4, read_32(at)))
        return false;
    distance = read_32(at + 4);
    if (distance == 0 || !is_inside(table, address + 4 - distance, 16) ||
        !read_common(table, address + 4 - distance, &common, entry))
        return false;
    bytes = (struct mr_unwind_bytes){.at = at + 8, .end = at + 4 + read_32(at)};
    width = encoded_size(common.encoding);
    (void)mr_unwind_take(&bytes, width);
    entry->size = (uint32_t)mr_unwind_fixed(&bytes, width); /* no function has 4 GiB */
    if (width == 0 || bytes.has_failed ||
        (common.has_augmentation && !take_sized(&bytes, &data)))
        return false;
    entry->own = (struct mr_unwind_code){bytes.at, bytes.end};
    return entry->size > 0 && is_inside(table, entry->start, entry->size);
}

uint64_t mr_unwind_start(const struct mr_unwind_table *table, uint32_t index)
{
    const uint8_t *pair = table->entries + (uint64_t)index * ENTRY_BYTES;

    return table->header + (uint64_t)(int64_t)(int32_t)read_32(pair);
}

static bool entry_at(const struct mr_unwind_table *table, uint32_t index,
                     struct mr_unwind_entry *entry)
{
    const uint8_t *pair = table->entries + (uint64_t)index * ENTRY_BYTES;

    *entry = (struct mr_unwind_entry){.start = mr_unwind_start(table, index)};
    return read_entry(
        table, table->header + (uint64_t)(int64_t)(int32_t)read_32(pair + 4), entry);
}

bool mr_unwind_range(const struct mr_unwind_table *table, uint32_t index, uint64_t *start,
                     uint32_t *size)
{
    struct mr_unwind_entry entry;

    if (!entry_at(table, index, &entry))
        return false;
    *start = entry.start;
    *size = entry.size;
    return true;
}

bool mr_unwind_find(const struct mr_unwind_table *table, uint64_t address,
                    struct mr_unwind_entry *entry)
{
    uint32_t low = 0, high = table->count; /* the last that starts at or below it */

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (mr_unwind_start(table, middle) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && entry_at(table, low - 1, entry) &&
           address - entry->start < entry->size;
}
