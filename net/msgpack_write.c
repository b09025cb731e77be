/* SPDX-License-Identifier: Apache-2.0 */
#include "net/msgpack_write.h"

static bool is_inside_character(char c)
{
    return ((uint8_t)c & 0xc0) == 0x80;
}

void mr_pack_text(struct mr_packer *packer, const char *text)
{
    size_t size = strnlen(text, MR_TEXT_MAX + 1);

    if (size > MR_TEXT_MAX) {
        size = MR_TEXT_MAX;
        while (size > MR_TEXT_MAX - 4 && is_inside_character(text[size]))
            size--;
    }
    (void)msgpack_pack_str(&packer->pack, size);
    (void)msgpack_pack_str_body(&packer->pack, text, size);
}
