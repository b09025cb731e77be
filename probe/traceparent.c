/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a traceparent: W3C Trace Context, Recommendation of 23 November 2021, section
 * 3.2. No state.
 *
 *     00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *     |  |                                |                |
 *     0  3                                36               53   of 55 bytes
 */
#include "base/compiler.h"
#include "probe/include/millrace/probe.h"

#include <stdbool.h>
#include <stddef.h>

enum { TRACE_AT = 3, SPAN_AT = 36, FLAGS_AT = 53, SIZE = 55 };

static void put_hex(char *at, uint64_t value, uint32_t digits)
{
    for (uint32_t i = 0; i < digits; i++)
        at[i] = "0123456789abcdef"[value >> 4 * (digits - 1 - i) & 15];
}

/* Lower case only, as the specification has it. */
static bool get_hex(const char *at, uint32_t digits, uint64_t *value)
{
    *value = 0;
    for (uint32_t i = 0; i < digits; i++) {
        char digit = at[i];

        if (digit >= '0' && digit <= '9')
            *value = *value << 4 | (uint64_t)(digit - '0');
        else if (digit >= 'a' && digit <= 'f')
            *value = *value << 4 | (uint64_t)(digit - 'a' + 10);
        else
            return false;
    }
    return true;
}

MR_EXPORT char *mr_traceparent_format(const struct mr_traceparent *parent,
                                      char text[MR_TRACEPARENT_SIZE])
{
    put_hex(text, 0, 2);
    put_hex(text + TRACE_AT, parent->trace_hi, 16);
    put_hex(text + TRACE_AT + 16, parent->trace_lo, 16);
    put_hex(text + SPAN_AT, parent->span, 16);
    put_hex(text + FLAGS_AT, parent->flags, 2);
    text[TRACE_AT - 1] = text[SPAN_AT - 1] = text[FLAGS_AT - 1] = '-';
    text[SIZE] = '\0';
    return text;
}

/* What a version may look like behind what we read: 00 ends there, others may go on. */
static bool is_of_version(const char *text, uint64_t size)
{
    uint64_t version;

    if (!get_hex(text, 2, &version) || version == 0xff)
        return false;
    return size == SIZE || (version > 0 && text[SIZE] == '-');
}

static bool read_fields(const char *text, struct mr_traceparent *parent)
{
    uint64_t flags;

    if (text[TRACE_AT - 1] != '-' || text[SPAN_AT - 1] != '-' ||
        text[FLAGS_AT - 1] != '-' || !get_hex(text + TRACE_AT, 16, &parent->trace_hi) ||
        !get_hex(text + TRACE_AT + 16, 16, &parent->trace_lo) ||
        !get_hex(text + SPAN_AT, 16, &parent->span) ||
        !get_hex(text + FLAGS_AT, 2, &flags))
        return false;
    parent->flags = (uint8_t)flags;
    return (parent->trace_hi | parent->trace_lo) != 0 && parent->span != 0;
}

MR_EXPORT int mr_traceparent_parse(const char *text, uint64_t size,
                                   struct mr_traceparent *parent)
{
    if (size >= SIZE && is_of_version(text, size) && read_fields(text, parent))
        return 0;
    parent->trace_hi = parent->trace_lo = parent->span = 0;
    parent->flags = 0;
    return -1;
}
