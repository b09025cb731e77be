/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* What a first byte says: how many bytes the character has, and the least one that needs so many. */
static size_t size_by_first(uint8_t first, uint32_t *least)
{
    static const uint32_t leasts[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t size = first < 0x80   ? 1
                  : first < 0xc0 ? 0
                  : first < 0xe0 ? 2
                  : first < 0xf0 ? 3
                  : first < 0xf8 ? 4
                                 : 0;

    *least = leasts[size];
    return size;
}

/* Bytes of the character that begins at `at`; 0: none does. */
static size_t read_character(const char *at, size_t room, uint32_t *code)
{
    uint32_t least;
    size_t size = size_by_first((uint8_t)*at, &least);

    if (size <= 1) {
        *code = (uint8_t)*at;
        return size;
    }
    if (size > room)
        return 0;
    *code = (uint8_t)*at & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if (((uint8_t)at[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | ((uint8_t)at[i] & 0x3f);
    }
    if (*code < least || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff))
        return 0;
    return size;
}

static bool is_plain(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } others[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0x61c, 0x61c},
        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
    };

    for (size_t i = 0; i < MR_ARRAY_COUNT(others); i++)
        if (code >= others[i].first && code <= others[i].last)
            return false;
    return true;
}

void mr_text_make_valid(char *text, size_t size)
{
    size_t at = 0;

    while (at < size) {
        uint32_t code;
        size_t length = read_character(text + at, size - at, &code);

        if (length == 0)
            text[at] = '?';
        at += length ? length : 1;
    }
}

size_t mr_text_make_plain(char *text, size_t size)
{
    size_t at = 0, kept = 0;

    while (at < size) {
        uint32_t code;
        size_t length = read_character(text + at, size - at, &code);

        if (length == 0 || !is_plain(code)) {
            text[kept++] = '?';
        } else {
            memmove(text + kept, text + at, length);
            kept += length;
        }
        at += length ? length : 1;
    }
    return kept;
}

const char *mr_text_plain_copy(const char *text, char *copy, size_t size)
{
    size_t kept = strnlen(text, size - 1);

    memcpy(copy, text, kept);
    copy[mr_text_make_plain(copy, kept)] = '\0';
    return copy;
}
