/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit_test.h"

#include "pipeline/modules.h"

static const struct mr_site_module file_a = {.path = "/a"}, file_b = {.path = "/b"};

static struct mr_dict_module item(uint32_t number, uint32_t epoch, uint32_t base,
                                  uint32_t size)
{
    return (struct mr_dict_module){.module = number,
                                   .epoch = epoch,
                                   .site_base = base,
                                   .size = size,
                                   .address = 0x7000 + base,
                                   .bias = 0x7000,
                                   .path = ""};
}

static void a_site_is_found_where_it_is_covered(void **state)
{
    struct mr_dict_module a = item(0, 1, 100, 50), b = item(1, 1, 200, 50);
    struct mr_modules modules;
    uint64_t offset;

    (void)state;
    mr_modules_init(&modules, 10);
    assert_int_equal(mr_modules_add(&modules, &a, &file_a), MR_OK);
    assert_int_equal(mr_modules_add(&modules, &b, &file_b), MR_OK);
    assert_int_equal(mr_modules_add(&modules, &b, &file_b),
                     MR_OK); /* again is nothing new */
    assert_int_equal(modules.count, 2);
    assert_false(modules.depends_on_epoch);
    assert_ptr_equal(mr_modules_by_site(&modules, 1, 149, &offset)->origin, &file_a);
    assert_int_equal(offset, 149);
    assert_null(mr_modules_by_site(&modules, 1, 150, &offset));
    assert_ptr_equal(mr_modules_by_address(&modules, 1, 0x7000 + 200, &offset)->origin,
                     &file_b);
    assert_int_equal(offset, 200);
    assert_null(mr_modules_by_address(&modules, 1, 0x7000 + 99, &offset));
    mr_modules_fini(&modules);
}

static void a_module_holds_from_its_epoch_until_it_is_gone(void **state)
{
    struct mr_dict_module a = item(0, 1, 100, 50), b = item(1, 5, 100, 50);
    struct mr_dict_module_gone gone = {.epoch = 3, .module = 0};
    struct mr_modules modules;
    uint64_t offset;

    (void)state;
    mr_modules_init(&modules, 10);
    assert_int_equal(mr_modules_add(&modules, &a, &file_a), MR_OK);
    mr_modules_gone(&modules, &gone);
    assert_true(modules.depends_on_epoch);
    assert_null(
        mr_modules_by_site(&modules, 3, 100, &offset)); /* nobody later covers it */
    assert_int_equal(mr_modules_add(&modules, &b, &file_b), MR_OK);
    assert_ptr_equal(mr_modules_by_site(&modules, 0, 100, &offset)->origin,
                     &file_a); /* a later epoch's */
    assert_ptr_equal(mr_modules_by_site(&modules, 2, 100, &offset)->origin, &file_a);
    assert_ptr_equal(mr_modules_by_site(&modules, 3, 100, &offset)->origin, &file_b);
    assert_ptr_equal(mr_modules_by_site(&modules, 9, 100, &offset)->origin, &file_b);
    mr_modules_fini(&modules);
}

static void a_full_table_says_so(void **state)
{
    struct mr_dict_module a = item(0, 1, 100, 50), b = item(1, 1, 200, 50);
    struct mr_modules modules;

    (void)state;
    mr_modules_init(&modules, 1);
    assert_int_equal(mr_modules_add(&modules, &a, &file_a), MR_OK);
    assert_int_equal(mr_modules_add(&modules, &b, &file_b), MR_ELIMIT);
    assert_int_equal(mr_modules_add(&modules, &a, &file_a), MR_OK);
    mr_modules_fini(&modules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_site_is_found_where_it_is_covered),
        cmocka_unit_test(a_module_holds_from_its_epoch_until_it_is_gone),
        cmocka_unit_test(a_full_table_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
