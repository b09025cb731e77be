/* SPDX-License-Identifier: Apache-2.0 */
/* probe/code_loop.h: bytes as compilers make them. */
#include "tests/unit/unit_test.h"

#include "base/compiler.h"
#include "probe/code_loop.h"

#include <string.h>

struct code {
    const char *what;
    bool has_loop;
    uint8_t size, bytes[24];
};

#if defined(__x86_64__)
static const struct code codes[] = {
    {"lea 1(%rdi), %eax; ret", false, 4, {0x8d, 0x47, 1, 0xc3}},
    {"forward jump", false, 6, {0x74, 2, 0x89, 0xc8, 0x90, 0xc3}},
    {"backward jump to the start", true, 5, {0xff, 0xcf, 0x75, 0xfc, 0xc3}},
    {"backward jump of four bytes",
     true,
     9,
     {0xff, 0xcf, 0x0f, 0x85, 0xf8, 0xff, 0xff, 0xff, 0xc3}},
    {"jump to itself", true, 2, {0xeb, 0xfe}},
    {"loop", true, 3, {0xe2, 0xfe, 0xc3}},
    {"tail call of what lies before",
     false,
     7,
     {0xff, 0xcf, 0xe9, 0xf0, 0xff, 0xff, 0xff}},
    {"call of itself", false, 8, {0xff, 0xcf, 0xe8, 0xf9, 0xff, 0xff, 0xff, 0xc3}},
    {"site that is off", false, 7, {0xa9, 0xe8, 0xf9, 0xff, 0xff, 0xc3, 0x90}},
    {"a jump's bytes in an immediate", false, 6, {0xb8, 0x75, 0xfc, 0xeb, 0xfe, 0xc3}},
    {"rare part behind the end that jumps back",
     false,
     13,
     {0x85, 0xff, 0x78, 4, 0x8d, 0x47, 1, 0xc3, 0xd1, 0xef, 0xeb, 0xf8, 0x90}},
    {"loop whose head is behind its body",
     true,
     9,
     {0xeb, 2, 0xff, 0xcf, 0x85, 0xff, 0x75, 0xfa, 0xc3}},
    {"endless, left in the middle", true, 7, {0xff, 0xcf, 0x74, 2, 0xeb, 0xfa, 0xc3}},
    {"two ways that meet", false, 9, {0x74, 3, 0xff, 0xc7, 0x90, 0x74, 1, 0x90, 0xc3}},
    {"backward behind a jump through a register",
     false,
     5,
     {0x90, 0xff, 0xe0, 0xeb, 0xfb}},
    {"backward behind what nobody reaches", false, 4, {0x90, 0xc3, 0xeb, 0xfc}},
    {"no instruction", true, 2, {0x06, 0xc3}},
    {"not whole", true, 3, {0x90, 0xe9, 0x00}},
};
#elif defined(__aarch64__)
static const struct code codes[] = {
    {"add w0, w0, 1; ret", false, 8, {0x00, 0x04, 0x00, 0x11, 0xc0, 0x03, 0x5f, 0xd6}},
    {"cbz forward",
     false,
     12,
     {0x40, 0, 0, 0x34, 0x1f, 0x20, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6}},
    {"cbnz backward", true, 8, {0x00, 0x04, 0x00, 0x51, 0xe0, 0xff, 0xff, 0x35}},
    {"b.ne backward", true, 8, {0x00, 0x04, 0x00, 0x51, 0xe1, 0xff, 0xff, 0x54}},
    {"tbnz backward", true, 8, {0x00, 0x04, 0x00, 0x51, 0xe0, 0xff, 0x07, 0x37}},
    {"rare part behind the end that jumps back",
     false,
     20,
     {0x60, 0,    0,    0x34, 0x00, 0x04, 0x00, 0x11, 0xc0, 0x03,
      0x5f, 0xd6, 0x00, 0x04, 0x00, 0x51, 0xfd, 0xff, 0xff, 0x17}},
    {"b before the start", false, 4, {0xff, 0xff, 0xff, 0x17}},
    {"bl backward", false, 8, {0x00, 0x04, 0x00, 0x51, 0xff, 0xff, 0xff, 0x97}},
};
#else
static const struct code codes[] = {{"anything", true, 1, {0}}};
#endif

static void backward_branches_within_the_function_are_loops(void **state)
{
    (void)state;
    for (size_t i = 0; i < MR_ARRAY_COUNT(codes); i++)
        if (mr_code_has_loop((uintptr_t)codes[i].bytes, codes[i].size) !=
            codes[i].has_loop)
            fail_msg("%s: %s", codes[i].what, codes[i].has_loop ? "no loop" : "a loop");
}

/* Larger ones are looked at more simply, and no memory is exceeded. */
static void a_large_function_is_walked(void **state)
{
    static uint8_t code[3 * MR_CODE_LOOP_EXACT];

    (void)state;
#if defined(__x86_64__)
    for (size_t size = MR_CODE_LOOP_EXACT - 2; size < sizeof(code); size++) {
        memset(code, 0x90, sizeof(code));
        assert_false(mr_code_has_loop((uintptr_t)code, size));
        code[size - 2] = 0xeb;
        code[size - 1] = 0x80;
        assert_true(mr_code_has_loop((uintptr_t)code, size));
    }
#endif
    assert_true(sizeof(code) > MR_CODE_LOOP_EXACT);
}

static void nothing_has_no_loop(void **state)
{
    (void)state;
    assert_false(mr_code_has_loop(0, 0));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(backward_branches_within_the_function_are_loops),
        cmocka_unit_test(a_large_function_is_walked),
        cmocka_unit_test(nothing_has_no_loop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
