/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include "tests/unit/unit_test.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

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

/* Long inputs are hashed by another build of the function, where the processor has wider registers. */
static void any_size_and_alignment_gives_what_a_stream_of_bytes_gives(void **state)
{
    static uint8_t bytes[1 << 17];
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)mr_test_random_next(&random);
    for (int i = 0; i < 2000; i++) {
        size_t most = i % 2 ? 2000 : sizeof(bytes);
        size_t size = mr_test_random_below(&random, most);
        size_t at = mr_test_random_below(&random, sizeof(bytes) - size);
        uint64_t seed = mr_test_random_next(&random);
        XXH3_state_t stream = {.seed = 0};

        (void)XXH3_64bits_reset_withSeed(&stream, seed);
        for (size_t done = 0, step; done < size; done += step) {
            step = 1 + mr_test_random_below(&random, size - done);
            (void)XXH3_64bits_update(&stream, bytes + at + done, step);
        }
        assert_true(mr_hash64_seed(mr_span_of(bytes + at, size), seed) ==
                    XXH3_64bits_digest(&stream));
    }
}

static void a_key_is_odd_and_never_the_same(void **state)
{
    uint64_t first = mr_hash_key(), second = mr_hash_key();

    (void)state;
    assert_int_equal(first & 1, 1);
    assert_int_equal(second & 1, 1);
    assert_int_not_equal(first, second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hashes_are_those_of_xxh3),
        cmocka_unit_test(seed_zero_is_no_seed_and_others_differ),
        cmocka_unit_test(any_size_and_alignment_gives_what_a_stream_of_bytes_gives),
        cmocka_unit_test(a_key_is_odd_and_never_the_same),
        cmocka_unit_test(every_byte_and_the_size_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
