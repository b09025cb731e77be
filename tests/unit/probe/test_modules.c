/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit_test.h"

#include "probe/modules.h"
#include "probe/named.h"

#include <dlfcn.h>
#include <string.h>

int main(void);

static struct mr_module_table table;

static const struct mr_module *module_of(uint64_t address)
{
    for (uint32_t i = 0; i < table.count; i++)
        if (address - table.items[i].address < table.items[i].size)
            return &table.items[i];
    return NULL;
}

static int scan(void **state)
{
    (void)state;
    mr_modules_scan(&table);
    return 0;
}

static void the_executable_comes_first_with_path_and_build_id(void **state)
{
    const struct mr_module *exe = &table.items[0];

    (void)state;
    assert_true(table.count >= 2);
    assert_true(exe->is_executable);
    assert_non_null(strstr(exe->path, "test_probe_modules"));
    assert_int_equal(exe->build_id_size, 20);
    assert_ptr_equal(module_of((uint64_t)(uintptr_t)&main), exe);
}

static void a_library_function_lies_in_its_library(void **state)
{
    const struct mr_module *libc =
        module_of((uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));

    (void)state;
    if (!libc) {
        fail_msg("no module holds libc");
        return;
    }
    assert_non_null(strstr(libc->path, "libc"));
    assert_int_equal(libc->path[0], '/');
    assert_false(libc->is_executable);
}

static void sites_agree_with_their_modules(void **state)
{
    struct mr_windows windows;

    (void)state;
    mr_modules_windows(&table, &windows);
    mr_modules_number(&table, &windows);
    assert_true(table.items[0].site_base == MR_SITE_FIRST_MODULE);
    for (uint32_t i = 0; i < table.count; i++) {
        const struct mr_module *module = &table.items[i];
        uint64_t offsets[] = {0, 1, module->size - 1};

        for (size_t at = 0; at < 3; at++) {
            uint32_t site = mr_windows_site(&windows, module->address + offsets[at]);

            assert_true(site == module->site_base + offsets[at]);
            assert_true(site < MR_SITE_LIMIT);
            assert_true(i == 0 || site >= MR_WINDOW_LIBRARIES);
        }
    }
    assert_int_equal(mr_windows_site(&windows, 16), 0);
    assert_int_equal(mr_windows_site(&windows, table.items[0].address - 1), 0);
    assert_int_equal(mr_windows_site(&windows, UINT64_MAX), 0);
}

static void a_module_far_away_has_sites_that_no_event_carries(void **state)
{
    static struct mr_module_table far;
    struct mr_windows windows;

    (void)state;
    far.count = 3;
    far.items[0] =
        (struct mr_module){.address = 0x400000, .size = 0x1000, .is_executable = true};
    far.items[1] =
        (struct mr_module){.address = UINT64_C(0x7f0000000000), .size = 0x2000};
    far.items[2] =
        (struct mr_module){.address = UINT64_C(0x7e0000000000), .size = 0x2000};
    mr_modules_windows(&far, &windows);
    mr_modules_number(&far, &windows);
    assert_true(mr_windows_site(&windows, 0x400010) == MR_SITE_FIRST_MODULE + 0x10);
    assert_true(far.items[1].site_base >= MR_WINDOW_LIBRARIES);
    assert_true(far.items[1].site_base < MR_SITE_LIMIT);
    assert_true(far.items[2].site_base == MR_SITE_LIMIT);
    assert_int_equal(mr_windows_site(&windows, far.items[2].address), 0);
}

static void modules_far_away_that_come_and_go_are_numbered_anew(void **state)
{
    struct mr_windows windows = {0, 0};
    struct mr_module far = {.address = UINT64_C(0x7e0000000000), .size = 0x2000};
    uint64_t beyond = UINT32_MAX - 0x2000;

    (void)state;
    mr_modules_number_one(&far, &windows, &beyond);
    assert_true(far.site_base == UINT32_MAX - 0x2000);
    mr_modules_number_one(&far, &windows, &beyond);
    assert_true(far.site_base == MR_SITE_LIMIT);
    assert_true(beyond == MR_SITE_LIMIT + 0x2000);
}

static void main_is_found(void **state)
{
    (void)state;
    assert_true(mr_main_address(&table.items[0]) == (uint64_t)(uintptr_t)&main);
}

static void names_are_cut_and_kept(void **state)
{
    struct mr_named named;
    char text[300];
    struct mr_named_entry *entry;
    uint32_t site;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    text[sizeof(text) - 2] = 'y';
    assert_int_equal(mr_named_init(&named), MR_OK);
    site = mr_named_add(&named, text, text, 42, 1);
    entry = mr_named_at(&named, site - MR_SITE_FIRST_NAMED);
    assert_non_null(entry);
    assert_int_equal(strlen(entry->name), MR_NAMED_NAME_SIZE - 1);
    assert_int_equal(entry->file[MR_NAMED_FILE_SIZE - 2], 'y'); /* its end is kept */
    for (uint32_t i = 2; i < MR_NAMED_MAX; i++)
        assert_true(mr_named_add(&named, "n", "f", i, 0) == MR_SITE_FIRST_NAMED + i);
    assert_true(mr_named_add(&named, "n", "f", 1, 0) == MR_SITE_FIRST_NAMED);
    mr_named_fini(&named);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_executable_comes_first_with_path_and_build_id),
        cmocka_unit_test(a_library_function_lies_in_its_library),
        cmocka_unit_test(sites_agree_with_their_modules),
        cmocka_unit_test(a_module_far_away_has_sites_that_no_event_carries),
        cmocka_unit_test(modules_far_away_that_come_and_go_are_numbered_anew),
        cmocka_unit_test(main_is_found),
        cmocka_unit_test(names_are_cut_and_kept),
    };

    return cmocka_run_group_tests(tests, scan, NULL);
}
