/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden bytes: what a test expects stands in it as hexadecimal digits; blanks are for reading only.
 *
 * Use:
 *     assert_hex(mr_span_of(out, size), "4d4c5243 01 05 0000");
 *     struct mr_test_bytes bytes = mr_test_bytes("0001 ff");     // and back: a span of exactly these bytes
 */
#ifndef MR_TESTS_UNIT_NET_NET_TEST_H
#define MR_TESTS_UNIT_NET_NET_TEST_H

#include <string.h>

#include "base/span.h"
#include "tests/unit/unit_test.h"

struct mr_test_bytes {
    uint8_t data[1024];
    size_t size;
};

static inline struct mr_test_bytes mr_test_bytes(const char *hex)
{
    static const char digits[] = "0123456789abcdef";
    struct mr_test_bytes bytes = {.size = 0};
    unsigned half = 0;

    for (; *hex; hex++) {
        const char *digit = strchr(digits, *hex);

        if (!digit)
            continue;
        bytes.data[half / 2] = (uint8_t)(bytes.data[half / 2] << 4 | (digit - digits));
        half++;
    }
    assert_int_equal(half % 2, 0);
    bytes.size = half / 2;
    return bytes;
}

static inline struct mr_span mr_test_span(const struct mr_test_bytes *bytes)
{
    return mr_span_of(bytes->data, bytes->size);
}

static inline void mr_test_print_hex(struct mr_span bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        print_message("%02x%s", bytes.data[i], i % 4 == 3 ? " " : "");
    print_message("\n");
}

static inline void assert_hex(struct mr_span bytes, const char *hex)
{
    struct mr_test_bytes expected = mr_test_bytes(hex);

    if (bytes.size != expected.size || memcmp(bytes.data, expected.data, bytes.size) != 0)
        mr_test_print_hex(bytes);
    assert_int_equal(bytes.size, expected.size);
    assert_memory_equal(bytes.data, expected.data, bytes.size);
}

#endif
