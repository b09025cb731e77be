/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include "tests/unit/unit_test.h"

/* From xxHash 0.8.1's own command line tool: printf '' | xxhsum -H3, printf abc | ... */
static void the_hashes_are_those_of_xxh3(void **state)
{
    char text[MR_ID_TEXT_SIZE];

    (void)state;
    assert_true(mr_hash64(mr_span_of(NULL, 0)) == UINT64_C(0x2d06800538d394c2));
    assert_true(mr_hash64(mr_span_of_text("abc")) == UINT64_C(0x78af5f94892f3950));
    assert_string_equal(mr_id_format(mr_hash128(mr_span_of(NULL, 0)), text),
                        "99aa06d3014798d86001c324468d497f");
    assert_string_equal(mr_id_format(mr_hash128(mr_span_of_text("abc")), text),
                        "06b05ab6733a618578af5f94892f3950");
}

static void seed_zero_is_no_seed_and_others_differ(void **state)
{
    struct mr_span span = mr_span_of_text("some bytes to hash");

    (void)state;
    assert_true(mr_hash64_seed(span, 0) == mr_hash64(span));
    assert_true(mr_hash64_seed(span, 1) != mr_hash64(span));
    assert_true(mr_id_equal(mr_hash128_seed(span, 0), mr_hash128(span)));
    assert_false(mr_id_equal(mr_hash128_seed(span, 1), mr_hash128(span)));
}

static void every_byte_and_the_size_count(void **state)
{
    uint8_t bytes[600] = {0};

    (void)state;
    for (size_t size = 1; size < sizeof(bytes); size += 37) {
        struct mr_span span = mr_span_of(bytes, size);
        uint64_t hash = mr_hash64(span);
        struct mr_id id = mr_hash128(span);

        bytes[size - 1] ^= 1;
        assert_true(mr_hash64(span) != hash);
        assert_false(mr_id_equal(mr_hash128(span), id));
        bytes[size - 1] ^= 1;
        assert_true(mr_hash64(mr_span_of(bytes, size - 1)) != hash);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hashes_are_those_of_xxh3),
        cmocka_unit_test(seed_zero_is_no_seed_and_others_differ),
        cmocka_unit_test(every_byte_and_the_size_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
