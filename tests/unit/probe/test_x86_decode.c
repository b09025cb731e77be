/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths by objdump. All of libc, libstdc++, SQLite and libm agreed with it, too. */
#include "tests/unit/unit_test.h"

#include "probe/x86_decode.h"

#include "base/compiler.h"

struct sample {
    uint8_t bytes[16];
    uint8_t size, kind;
    int32_t displacement;
};

static const struct sample samples[] = {
    {{0x90}, 1, MR_X86_OTHER, 0},
    {{0xc3}, 1, MR_X86_OTHER, 0},
    {{0xf3, 0x0f, 0x1e, 0xfa}, 4, MR_X86_OTHER, 0}, /* endbr64 */
    {{0xe8, 0x78, 0x56, 0x34, 0x12}, 5, MR_X86_CALL, 0x12345678},
    {{0x67, 0xe8, 0xff, 0xff, 0xff, 0xff}, 6, MR_X86_CALL, -1},
    {{0xff, 0x15, 0x10, 0, 0, 0}, 6, MR_X86_CALL_MEMORY, 16},
    {{0xff, 0xd0}, 2, MR_X86_OTHER, 0}, /* call *%rax */
    {{0xeb, 0xfe}, 2, MR_X86_JUMP, -2},
    {{0xe9, 0, 1, 0, 0}, 5, MR_X86_JUMP, 256},
    {{0x74, 0x05}, 2, MR_X86_JUMP, 5},
    {{0x0f, 0x84, 4, 0, 0, 0}, 6, MR_X86_JUMP, 4},
    {{0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}, 10, MR_X86_OTHER, 0}, /* movabs */
    {{0xb8, 1, 2, 3, 4}, 5, MR_X86_OTHER, 0},
    {{0x66, 0xb8, 1, 2}, 4, MR_X86_OTHER, 0},
    {{0x48, 0x8b, 0x84, 0x24, 1, 2, 3, 4}, 8, MR_X86_OTHER, 0}, /* sib, disp32 */
    {{0x48, 0x8b, 0x05, 1, 2, 3, 4}, 7, MR_X86_OTHER, 0},       /* rip */
    {{0x8b, 0x04, 0x25, 1, 2, 3, 4}, 7, MR_X86_OTHER, 0},       /* absolute */
    {{0xf6, 0xc0, 0x01}, 3, MR_X86_OTHER, 0},                   /* test imm8 */
    {{0xf6, 0xd8}, 2, MR_X86_OTHER, 0},                         /* neg */
    {{0xf7, 0xc0, 1, 2, 3, 4}, 6, MR_X86_OTHER, 0},
    {{0x66, 0xf7, 0xc0, 1, 2}, 5, MR_X86_OTHER, 0},
    {{0xc8, 1, 2, 3}, 4, MR_X86_OTHER, 0}, /* enter */
    {{0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, 10, MR_X86_OTHER, 0},
    {{0xc5, 0xf8, 0x77}, 3, MR_X86_OTHER, 0},                         /* vzeroupper */
    {{0xc5, 0xf9, 0x70, 0xc1, 0x1b}, 5, MR_X86_OTHER, 0},             /* vpshufd */
    {{0xc4, 0xe2, 0x71, 0xf7, 0xc0}, 5, MR_X86_OTHER, 0},             /* shlx */
    {{0xc4, 0xe3, 0x7d, 0x39, 0xc1, 0x01}, 6, MR_X86_OTHER, 0},       /* vextracti128 */
    {{0x62, 0xf1, 0x7c, 0x48, 0x10, 0x47, 0x01}, 7, MR_X86_OTHER, 0}, /* vmovups zmm */
    {{0x66, 0x0f, 0x3a, 0x0f, 0xc1, 0x08}, 6, MR_X86_OTHER, 0},       /* palignr */
    {{0x66, 0x0f, 0x38, 0x00, 0xc1}, 5, MR_X86_OTHER, 0},             /* pshufb */
};

static void an_instruction_is_as_long_as_it_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < MR_ARRAY_COUNT(samples); i++) {
        const struct sample *sample = &samples[i];
        struct mr_x86 found;

        assert_true(mr_x86_decode(sample->bytes, sample->bytes + 16, &found));
        assert_int_equal(found.size, sample->size);
        assert_int_equal(found.kind, sample->kind);
        assert_int_equal(found.displacement, sample->displacement);
    }
}

static void what_is_cut_off_is_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < MR_ARRAY_COUNT(samples); i++)
        for (uint8_t size = 0; size < samples[i].size; size++) {
            struct mr_x86 found;

            assert_false(
                mr_x86_decode(samples[i].bytes, samples[i].bytes + size, &found));
        }
}

static void what_has_no_meaning_in_64_bit_mode_is_none(void **state)
{
    static const uint8_t invalid[] = {0x06, 0x0e, 0x27, 0x60, 0x82,
                                      0x9a, 0xce, 0xd4, 0xea};

    (void)state;
    for (size_t i = 0; i < MR_ARRAY_COUNT(invalid); i++) {
        uint8_t bytes[16] = {invalid[i]};
        struct mr_x86 found;

        assert_false(mr_x86_decode(bytes, bytes + sizeof(bytes), &found));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_instruction_is_as_long_as_it_is),
        cmocka_unit_test(what_is_cut_off_is_none),
        cmocka_unit_test(what_has_no_meaning_in_64_bit_mode_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
