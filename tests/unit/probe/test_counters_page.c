/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe of linux/perf_event.h on pages made here, for a processor that is made here. */
#include "probe/counters_page.h"

#include "tests/unit/unit_test.h"

#include <string.h>

static struct perf_event_mmap_page page;
static uint64_t pmc_value, ticks_value;
static uint32_t pmc_index, pmc_reads, changes_left;

/* The kernel may write the page while the processor is asked: then both are other ones. */
static uint64_t fake_pmc(uint32_t index)
{
    uint64_t value = pmc_value;

    pmc_index = index;
    pmc_reads++;
    if (changes_left > 0) {
        changes_left--;
        page.lock += 2;
        page.offset += 1000;
        pmc_value = 5;
    }
    return value;
}

static uint64_t fake_ticks(void)
{
    return ticks_value;
}

static const struct mr_counter_machine fake = {true, fake_pmc, fake_ticks};

static void set_up_page(uint64_t offset, uint32_t index, uint16_t width, uint64_t pmc)
{
    memset(&page, 0, sizeof(page));
    page.cap_user_rdpmc = 1;
    page.offset = (int64_t)offset;
    page.index = index;
    page.pmc_width = width;
    page.time_enabled = page.time_running = 77;
    pmc_value = pmc;
    pmc_reads = changes_left = 0;
}

static void assert_reads(uint64_t expected)
{
    uint64_t value = 0;

    assert_true(mr_counter_page_read(&page, &fake, &value));
    assert_true(value == expected);
}

static void assert_not_read(void)
{
    uint64_t value;

    assert_false(mr_counter_page_read(&page, &fake, &value));
}

static void offset_and_counter_are_added(void **state)
{
    (void)state;
    set_up_page(1000, 3, 48, 42);
    assert_reads(1042);
    assert_int_equal(pmc_index, 2); /* the index is one more */
    assert_int_equal(pmc_reads, 1);
}

static void a_counter_of_less_than_64_bits_has_a_sign(void **state)
{
    (void)state;
    /* The kernel starts counters below zero, so that they overflow in time. */
    set_up_page(5000, 1, 48, (UINT64_C(1) << 48) - 100);
    assert_reads(4900);
    set_up_page(5000, 1, 48, (UINT64_C(1) << 47) - 1); /* the greatest that is positive */
    assert_reads(5000 + (UINT64_C(1) << 47) - 1);
    set_up_page(5000, 1, 48, UINT64_C(0xffff) << 48 | 7); /* bits that do not count */
    assert_reads(5007);
    set_up_page(10, 1, 64, UINT64_MAX);
    assert_reads(9);
    set_up_page(10, 1, 32, UINT64_C(0xfffffffe));
    assert_reads(8);
}

static void a_page_that_changes_is_read_again(void **state)
{
    (void)state;
    set_up_page(100, 1, 48, 1);
    changes_left = 1;
    assert_reads(1105);
    assert_int_equal(pmc_reads, 2);
    set_up_page(100, 1, 48, 1);
    changes_left = 3;
    assert_reads(3105);
    assert_int_equal(pmc_reads, 4);
}

static void a_page_that_never_rests_is_left_to_the_kernel(void **state)
{
    (void)state;
    set_up_page(100, 1, 48, 1);
    changes_left = UINT32_MAX;
    assert_not_read();
    assert_int_equal(pmc_reads, MR_COUNTER_PAGE_TRIES);
}

static void what_may_not_be_read_here_is_left_to_the_kernel(void **state)
{
    static const struct mr_counter_machine none = {.has_pmc = false};
    uint64_t value;

    (void)state;
    set_up_page(100, 0, 48, 1); /* index 0: not on the processor */
    assert_not_read();
    set_up_page(100, 1, 48, 1);
    page.cap_user_rdpmc = 0;
    assert_not_read();
    set_up_page(100, 1, 0, 1); /* no width: nothing that we know */
    assert_not_read();
    assert_int_equal(pmc_reads, 0);
    set_up_page(100, 1, 48, 1);
    assert_false(mr_counter_page_read(&page, &none, &value));
}

static void a_counter_that_shared_the_processor_is_scaled(void **state)
{
    (void)state;
    set_up_page(1000, 1, 48, 0);
    page.time_enabled = 3000;
    page.time_running = 1000;
    page.cap_user_time = 1;
    page.time_mult = 1;
    ticks_value = 0;
    assert_reads(3000);
    /* 1000 ns more of both: it runs now. */
    ticks_value = 1000;
    assert_reads(2000); /* 1000 x 4000 / 2000 */
    /* time = offset + ticks x mult >> shift, the ticks in two parts. */
    page.time_offset = 500;
    page.time_mult = 3;
    page.time_shift = 4;
    ticks_value = 16 * 100 + 8; /* 300 + 8 * 3 / 16 = 301 */
    assert_reads((uint64_t)((mr_u128)1000 * (3000 + 801) / (1000 + 801)));
    page.cap_user_time = 0; /* the times of the page are old */
    assert_not_read();
}

static void scaling_does_not_overflow(void **state)
{
    uint64_t year_ns = UINT64_C(31536000000000000);

    (void)state;
    assert_true(mr_counter_scale(UINT64_C(1) << 62, year_ns, year_ns) == UINT64_C(1)
                                                                             << 62);
    assert_true(mr_counter_scale(UINT64_C(1) << 61, year_ns, year_ns / 2) == UINT64_C(1)
                                                                                 << 62);
    assert_true(mr_counter_scale(10, 5, 0) == 10);
    assert_true(mr_counter_scale(10, 3, 2) == 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offset_and_counter_are_added),
        cmocka_unit_test(a_counter_of_less_than_64_bits_has_a_sign),
        cmocka_unit_test(a_page_that_changes_is_read_again),
        cmocka_unit_test(a_page_that_never_rests_is_left_to_the_kernel),
        cmocka_unit_test(what_may_not_be_read_here_is_left_to_the_kernel),
        cmocka_unit_test(a_counter_that_shared_the_processor_is_scaled),
        cmocka_unit_test(scaling_does_not_overflow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
