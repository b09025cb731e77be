/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id.h"

#include <errno.h>
#include <sys/random.h>

enum mr_status mr_id_random(struct mr_id *id)
{
    struct mr_id random = {0, 0};

    while (mr_id_is_zero(random)) {
        /*
         * Up to 256 bytes come whole once the generator is ready; a signal may only
         * interrupt the wait for that.
         */
        ssize_t size = getrandom(&random, sizeof(random), 0);

        if (size == (ssize_t)sizeof(random))
            continue;
        if (size < 0 && errno != EINTR)
            return MR_EIO;
        random = (struct mr_id){0, 0};
    }
    *id = random;
    return MR_OK;
}

static void format_half(uint64_t half, char *text)
{
    static const char digits[] = "0123456789abcdef";

    for (unsigned i = 0; i < 16; i++)
        text[i] = digits[half >> (60 - 4 * i) & 15];
}

char *mr_id_format(struct mr_id id, char text[MR_ID_TEXT_SIZE])
{
    format_half(id.hi, text);
    format_half(id.lo, text + 16);
    text[MR_ID_HEX_COUNT] = '\0';
    return text;
}

static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

enum mr_status mr_id_parse(const char *text, size_t size, struct mr_id *id)
{
    uint64_t halves[2] = {0, 0};

    if (size != MR_ID_HEX_COUNT)
        return MR_EFORMAT;
    for (size_t i = 0; i < size; i++) {
        int value = digit_value(text[i]);

        if (value < 0)
            return MR_EFORMAT;
        halves[i / 16] = halves[i / 16] << 4 | (uint64_t)value;
    }
    *id = (struct mr_id){halves[0], halves[1]};
    return MR_OK;
}
