/* SPDX-License-Identifier: Apache-2.0 */
/* Our walk over the stack against libc's, which goes through the unwinder of exceptions. */
#include "tests/unit/unit_test.h"

#include "probe/frame_call.h"
#include "probe/frames.h"

#include <execinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 128

struct seen {
    uint64_t address, function, stack, base;
};

static struct seen seen[DEPTH_MAX];
static int seen_count, expected_count;
static void *expected[DEPTH_MAX];

MR_NOINLINE static void walk(void)
{
    struct mr_frames frames;

    expected_count = backtrace(expected, DEPTH_MAX);
    seen_count = 0;
    mr_frames_here(&frames);
    while (seen_count < DEPTH_MAX && mr_frames_next(&frames))
        seen[seen_count++] =
            (struct seen){frames.address, frames.function, frames.stack, frames.base};
}

static uint64_t expected_at(int index)
{
    return (uint64_t)(uintptr_t)expected[index];
}

/*
 * Where each frame goes on but the first, which has gone on; with a sanitizer, backtrace() has frames of its own on top.
 * libc does not tell the outermost of all.
 */
static void check_addresses(void)
{
    int own = 0, count;

    assert_true(seen_count > 3);
    while (own < expected_count && expected_at(own) != seen[1].address)
        own++;
    assert_in_range(own, 0, 4);
    count = expected_count - own + 1;
    assert_in_range(seen_count, count - 1, count + 1);
    for (int i = 1; i < seen_count && i < count; i++)
        assert_int_equal(seen[i].address, expected_at(own + i - 1));
}

static uint64_t address_of(void (*function)(int))
{
    return (uint64_t)(uintptr_t)function;
}

MR_NOINLINE static void descend(int depth)
{
    volatile char room[64];
    char *more = __builtin_alloca((size_t)depth * 16 + 16);

    room[0] = (char)depth;
    memset(more, room[0], (size_t)depth * 16 + 16);
    if (depth == 0)
        walk();
    else
        descend(depth - 1);
    __asm__ volatile("" ::"r"(more) : "memory");
}

static void each_frame_is_found_with_its_function(void **state)
{
    (void)state;
    descend(20);
    check_addresses();
    for (int i = 1; i <= 21; i++) {
        assert_int_equal(seen[i].function, address_of(descend));
        assert_int_equal(seen[i].base, seen[i + 1].stack);
        assert_true(seen[i].base > seen[i].stack);
    }
    assert_int_not_equal(seen[22].function, address_of(descend));
}

static void on_signal(int number)
{
    (void)number;
    walk();
}

static void use_handler(int flags)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};

    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

MR_NOINLINE static void interrupted(int depth)
{
    if (depth == 0)
        (void)raise(SIGUSR1);
    else
        interrupted(depth - 1);
    __asm__ volatile("" ::: "memory");
}

static int count_of(uint64_t function)
{
    int count = 0;

    for (int i = 0; i < seen_count; i++)
        count += seen[i].function == function;
    return count;
}

static void the_walk_goes_through_a_signal_handler(void **state)
{
    (void)state;
    use_handler(0);
    interrupted(5);
    check_addresses();
    assert_int_equal(count_of(address_of(interrupted)), 6);
}

static void the_walk_goes_from_one_stack_to_another(void **state)
{
    static char memory[65536];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)}, before;

    (void)state;
    assert_int_equal(sigaltstack(&stack, &before), 0);
    use_handler(SA_ONSTACK);
    interrupted(5);
    assert_int_equal(sigaltstack(&before, NULL), 0);
    assert_in_range(seen[1].stack, (uintptr_t)memory, (uintptr_t)memory + sizeof(memory));
    check_addresses();
    assert_int_equal(count_of(address_of(interrupted)), 6);
}

static int compare(const void *a, const void *b)
{
    (void)a;
    (void)b;
    walk();
    return 0;
}

static void the_walk_goes_through_libraries(void **state)
{
    int values[] = {1, 2};

    (void)state;
    qsort(values, 2, sizeof(values[0]), compare);
    check_addresses();
}

#if defined(__x86_64__)
static uint64_t called;

MR_NOINLINE static void look_at_caller(int depth)
{
    struct mr_frames frames;

    (void)depth;
    mr_frames_here(&frames);
    called = UINT64_MAX;
    if (mr_frames_next(&frames) && mr_frames_next(&frames))
        called = mr_frame_call(&frames);
    __asm__ volatile("" ::: "memory");
}

static void a_direct_call_tells_what_was_called(void **state)
{
    (void)state;
    look_at_caller(1);
    assert_int_equal(called, address_of(look_at_caller));
}

static void an_indirect_call_tells_nothing(void **state)
{
    void (*volatile function)(int) = look_at_caller;

    (void)state;
    function(1);
    assert_int_not_equal(called, UINT64_MAX);
    assert_int_not_equal(called, address_of(look_at_caller));
}
#endif

/* --- tables of a test's own -------------------------------------------------------- */

#define BYTES 512
#define FUNCTION 256 /* where the one function stands */
#define COMMON 32
#define ENTRY 64

static uint8_t *image;

static void put_32(uint32_t at, uint32_t value)
{
    memcpy(image + at, &value, sizeof(value));
}

/* A header with one function of 64 bytes, its common part, its entry: CFA = rsp + 8, return address below. */
static void make_image(const uint8_t *program, uint32_t size)
{
    static const uint8_t head[] = {1, 0x1b, 0x03, 0x3b};
    static const uint8_t common[] = {0,  0, 0,    0,    1, 'z', 'R',  0, 1, 0x78,
                                     16, 1, 0x1b, 0x0c, 7, 8,   0x90, 1, 0, 0};

    memset(image, 0, BYTES);
    memcpy(image, head, sizeof(head));
    put_32(4, 0);
    put_32(8, 1);
    put_32(12, FUNCTION);
    put_32(16, ENTRY);
    put_32(COMMON, sizeof(common));
    memcpy(image + COMMON + 4, common, sizeof(common));
    put_32(ENTRY, 13 + size);
    put_32(ENTRY + 4, ENTRY + 4 - COMMON);
    put_32(ENTRY + 8, FUNCTION - ENTRY - 8);
    put_32(ENTRY + 12, 64);
    image[ENTRY + 16] = 0;
    memcpy(image + ENTRY + 17, program, size);
}

static bool row_of(uint32_t offset, struct mr_unwind_row *row)
{
    uint64_t address = (uintptr_t)image;
    struct mr_unwind_table table;
    struct mr_unwind_entry entry;

    return mr_unwind_open_at(&table, address, BYTES, address, BYTES) &&
           mr_unwind_find(&table, address + FUNCTION + offset, &entry) &&
           mr_unwind_row_at(row, &entry, address + FUNCTION + offset);
}

static void a_row_follows_the_instructions_up_to_its_address(void **state)
{
    /* +4: CFA + 16; remember; +4: restore of r16's rule is common's; +8: recall. */
    static const uint8_t program[] = {0x44, 0x0e, 16, 0x86, 2,    0x0a, 0x44,
                                      0x0c, 6,    32, 0xc6, 0x48, 0x0b};
    struct mr_unwind_row row;

    (void)state;
    make_image(program, sizeof(program));
    assert_true(row_of(0, &row));
    assert_int_equal(row.frame.offset, 8);
    assert_int_equal(row.registers[16].rule, MR_UNWIND_AT);
    assert_int_equal(row.registers[16].offset, -8);
    assert_true(row_of(5, &row));
    assert_int_equal(row.frame.offset, 16);
    assert_int_equal(row.registers[6].offset, -16);
    assert_true(row_of(9, &row));
    assert_int_equal(row.frame.number, 6);
    assert_int_equal(row.frame.offset, 32);
    assert_int_equal(row.registers[6].rule, MR_UNWIND_SAME);
    assert_true(row_of(16, &row));
    assert_int_equal(row.frame.number, 7);
    assert_int_equal(row.frame.offset, 16);
    assert_false(row_of(64, &row));
}

static void what_is_no_instruction_gives_no_row(void **state)
{
    static const uint8_t programs[][3] = {{0x1f, 0, 0},
                                          {0x0b, 0, 0},
                                          {0x0a, 0x0a, 0x0a},
                                          {0x0e, 0x80, 0x80},
                                          {0x0c, 99, 0}};
    struct mr_unwind_row row;

    (void)state;
    for (size_t i = 0; i < MR_ARRAY_COUNT(programs); i++) {
        make_image(programs[i], 3);
        assert_false(row_of(0, &row));
    }
}

static void damaged_tables_are_read_within_their_bounds(void **state)
{
    static const uint8_t program[] = {0x44, 0x0e, 16, 0x10, 6,    3,
                                      0x76, 0,    6,  0x0a, 0x44, 0x0b};
    struct mr_test_random random = mr_test_random_new();
    struct mr_unwind_row row;
    uint32_t good = 0;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        make_image(program, sizeof(program));
        for (uint64_t k = 1 + mr_test_random_below(&random, 3); k > 0; k--)
            image[mr_test_random_below(&random, ENTRY + 17 + sizeof(program))] =
                (uint8_t)mr_test_random_below(&random, 256);
        good += row_of((uint32_t)mr_test_random_below(&random, 70), &row);
    }
    assert_in_range(good, 1000, 190000);
}

static bool evaluate(const uint8_t *expression, uint64_t *value)
{
    struct mr_unwind_registers registers = {.known = 1U << 7};

    registers.values[7] = 0x1000;
    return mr_unwind_evaluate(expression, &registers, true, 5, value);
}

static void expressions_are_computed_or_refused(void **state)
{
    /* The entry of a linkage table: rsp + 8 + ((frame & 15) >= 11) << 3. */
    static const uint8_t plt[] = {12,   0x77, 8,    0x70 + 7, 0,    0x3f, 0x1a,
                                  0x3b, 0x2a, 0x33, 0x24,     0x22, 0x96};
    static const uint8_t unknown_register[] = {2, 0x76, 0};
    static const uint8_t empty_stack[] = {2, 0x13, 0x13};
    static const uint8_t none[] = {1, 0xff};
    static const uint8_t full[] = {9,    0x30, 0x30, 0x30, 0x30,
                                   0x30, 0x30, 0x30, 0x30, 0x30};
    static const uint8_t cut[] = {2, 0x0e, 1};
    uint64_t value;

    (void)state;
    assert_true(evaluate(plt, &value));
    assert_int_equal(value, 0x1008);
    assert_false(evaluate(unknown_register, &value));
    assert_false(evaluate(empty_stack, &value));
    assert_false(evaluate(none, &value));
    assert_false(evaluate(full, &value));
    assert_false(evaluate(cut, &value));
}

static int make_memory(void **state)
{
    (void)state;
    image = malloc(BYTES); /* its ends are seen by AddressSanitizer */
    return image ? 0 : -1;
}

static int free_memory(void **state)
{
    (void)state;
    free(image);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_frame_is_found_with_its_function),
        cmocka_unit_test(the_walk_goes_through_a_signal_handler),
        cmocka_unit_test(the_walk_goes_from_one_stack_to_another),
        cmocka_unit_test(the_walk_goes_through_libraries),
#if defined(__x86_64__)
        cmocka_unit_test(a_direct_call_tells_what_was_called),
        cmocka_unit_test(an_indirect_call_tells_nothing),
#endif
        cmocka_unit_test(a_row_follows_the_instructions_up_to_its_address),
        cmocka_unit_test(what_is_no_instruction_gives_no_row),
        cmocka_unit_test(damaged_tables_are_read_within_their_bounds),
        cmocka_unit_test(expressions_are_computed_or_refused),
    };

    return cmocka_run_group_tests(tests, make_memory, free_memory);
}
