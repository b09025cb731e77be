/* SPDX-License-Identifier: Apache-2.0 */
#include "net/frame_expand.h"

#include <stdlib.h>

#include "net/bytes.h"
#include "net/frame_compress.h"
#include "tests/unit/net/net_test.h"

enum { MAX_FRAME = 64 << 10, BOMB = 16 << 20 };

struct rig {
    struct mr_frame_compressor compressor;
    struct mr_frame_expander expander;
    void *memory;
    uint8_t packed[2 * MAX_FRAME];
};

static struct rig rig;

static int setup(void **state)
{
    size_t size = mr_frame_compressor_size(MR_FRAME_COMPRESS_LEVEL);

    (void)state;
    rig.memory = malloc(size);
    mr_frame_expander_init(&rig.expander);
    return mr_frame_compressor_init(&rig.compressor, MR_FRAME_COMPRESS_LEVEL, rig.memory,
                                    size) != MR_OK;
}

static int teardown(void **state)
{
    (void)state;
    mr_frame_expander_fini(&rig.expander);
    free(rig.memory);
    return 0;
}

static enum mr_status expand(struct mr_span packed, struct mr_span *payload,
                             struct mr_error *error)
{
    struct mr_frame frame = {
        .type = MR_FRAME_CHUNKS, .flags = MR_WIRE_FLAG_ZSTD, .payload = packed};
    enum mr_status status = mr_frame_expand(&rig.expander, MAX_FRAME, &frame, error);

    if (status == MR_OK) {
        assert_int_equal(frame.flags, 0);
        *payload = frame.payload;
    }
    return status;
}

/* Of one value: compresses a thousandfold and more. */
static size_t pack_bomb(size_t size)
{
    uint8_t *bomb = calloc(1, size);
    size_t packed;

    assert_non_null(bomb);
    packed = mr_frame_compress(&rig.compressor, mr_span_of(bomb, size), rig.packed,
                               sizeof(rig.packed));
    free(bomb);
    assert_true(packed > 0 && packed < size / 100);
    return packed;
}

static void payloads_of_all_sizes_come_back(void **state)
{
    static uint8_t bytes[MAX_FRAME];
    struct mr_test_random random = mr_test_random_new();
    struct mr_span payload;

    (void)state;
    for (int round = 0; round < 200; round++) {
        size_t size = 1 + mr_test_random_below(&random, sizeof(bytes)), packed;

        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)(mr_test_random_next(&random) & (uint64_t)(round % 8));
        packed = mr_frame_compress(&rig.compressor, mr_span_of(bytes, size), rig.packed,
                                   sizeof(rig.packed));
        if (packed == 0)
            continue;
        assert_true(packed < size);
        assert_int_equal(expand(mr_span_of(rig.packed, packed), &payload, NULL), MR_OK);
        assert_true(mr_span_equal(payload, mr_span_of(bytes, size)));
    }
}

/* Two runs of the same bytes: nothing is left in the context from the one before. */
static void the_same_payload_becomes_the_same_bytes(void **state)
{
    static uint8_t first[1 << 16];
    size_t size = pack_bomb(30000);

    (void)state;
    memcpy(first, rig.packed, size);
    (void)pack_bomb(50000);
    assert_int_equal(pack_bomb(30000), size);
    assert_memory_equal(first, rig.packed, size);
}

static void what_does_not_fit_or_is_no_smaller_is_0(void **state)
{
    static uint8_t bytes[1000];
    struct mr_test_random random = mr_test_random_new();
    struct mr_span payload = mr_span_of(bytes, sizeof(bytes));

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)mr_test_random_next(&random);
    assert_int_equal(mr_frame_compress(&rig.compressor, payload, rig.packed, 5000), 0);
    memset(bytes, 0, sizeof(bytes));
    assert_true(mr_frame_compress(&rig.compressor, payload, rig.packed, 5000) > 0);
    for (size_t capacity = 0; capacity < 12; capacity++)
        assert_int_equal(
            mr_frame_compress(&rig.compressor, payload, rig.packed, capacity), 0);
}

static void too_little_memory_is_refused(void **state)
{
    struct mr_frame_compressor compressor;
    size_t size = mr_frame_compressor_size(1);

    (void)state;
    assert_int_equal(mr_frame_compressor_init(&compressor, 1, rig.memory, size - 1),
                     MR_EUSAGE);
    assert_int_equal(
        mr_frame_compressor_init(&compressor, 1, (uint8_t *)rig.memory + 1, size),
        MR_EUSAGE);
}

/* It says that it is larger than max_frame: nothing is expanded. */
static void a_bomb_that_tells_its_size_meets_the_limit(void **state)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_span payload;
    size_t size = pack_bomb(BOMB);

    (void)state;
    assert_int_equal(expand(mr_span_of(rig.packed, size), &payload, &error), MR_ELIMIT);
    assert_non_null(strstr(error.text, "16777216"));
    assert_non_null(strstr(error.text, "65536"));
    assert_int_equal(rig.expander.capacity, 0);
}

/* It says that it is small: no more than that is written. */
static void a_bomb_that_lies_breaks_the_format(void **state)
{
    struct mr_span payload;
    size_t size = pack_bomb(BOMB);

    (void)state;
    for (uint32_t told = 0; told <= MAX_FRAME; told = told * 4 + 1) {
        mr_put_u32(rig.packed, told);
        assert_int_equal(expand(mr_span_of(rig.packed, size), &payload, NULL),
                         MR_EFORMAT);
        assert_true(rig.expander.capacity <= MAX_FRAME);
    }
}

static void cut_or_changed_bytes_break_the_format(void **state)
{
    struct mr_span payload;
    size_t size = pack_bomb(30000);

    (void)state;
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(expand(mr_span_of(rig.packed, cut), &payload, NULL), MR_EFORMAT);
    mr_put_u32(rig.packed, 30001);
    assert_int_equal(expand(mr_span_of(rig.packed, size), &payload, NULL), MR_EFORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(payloads_of_all_sizes_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(the_same_payload_becomes_the_same_bytes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_or_is_no_smaller_is_0, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(too_little_memory_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bomb_that_tells_its_size_meets_the_limit, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_bomb_that_lies_breaks_the_format, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(cut_or_changed_bytes_break_the_format, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
