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

/* What FORMAT.md says, by looking at all of them: the one that holds and began last, else the one that begins first. */
static const struct mr_module *look_at_all(const struct mr_modules *modules,
                                           uint32_t epoch, bool is_site, uint64_t place)
{
    const struct mr_module *holding = NULL, *next = NULL;

    for (uint32_t i = 0; i < modules->count; i++) {
        const struct mr_module *module = &modules->items[i];
        uint64_t start = is_site ? module->site_base : module->address;

        if (place < start || place - start >= module->size)
            continue;
        if (module->epoch > epoch)
            next = !next || module->epoch <= next->epoch ? module : next;
        else if (epoch < module->gone)
            holding = !holding || module->epoch >= holding->epoch ? module : holding;
    }
    return holding ? holding : next;
}

static bool one_overlaps(const struct mr_modules *modules,
                         const struct mr_dict_module *item)
{
    for (uint32_t i = 0; i < modules->count; i++) {
        const struct mr_module *module = &modules->items[i];

        if (item->site_base < (uint64_t)module->site_base + module->size &&
            module->site_base < (uint64_t)item->site_base + item->size)
            return true;
    }
    return false;
}

static void check_one_place(struct mr_test_random *random,
                            const struct mr_modules *modules, uint32_t epochs,
                            uint32_t places)
{
    uint32_t epoch = (uint32_t)mr_test_random_below(random, epochs + 2);
    uint32_t site = (uint32_t)mr_test_random_below(random, places);
    uint64_t address = mr_test_random_below(random, 2) ? UINT64_MAX - site : site;
    uint64_t offset;

    assert_ptr_equal(mr_modules_by_site(modules, epoch, site, &offset),
                     look_at_all(modules, epoch, true, site));
    assert_ptr_equal(mr_modules_by_address(modules, epoch, address, &offset),
                     look_at_all(modules, epoch, false, address));
}

/* Modules of few or many places and epochs, in any order; some end at the last address, or beyond all sites. */
static void run_at_random(struct mr_test_random *random)
{
    uint32_t places = 4u << mr_test_random_below(random, 12);
    uint32_t epochs = 1u << mr_test_random_below(random, 10);
    uint32_t numbers = 1u << mr_test_random_below(random, 10);
    struct mr_modules modules;

    mr_modules_init(&modules, 1000);
    for (uint32_t i = 0; i < 2000; i++) {
        struct mr_dict_module made =
            item((uint32_t)mr_test_random_below(random, numbers),
                 (uint32_t)mr_test_random_below(random, epochs),
                 (uint32_t)mr_test_random_below(random, places),
                 (uint32_t)mr_test_random_below(random, places / 2));
        struct mr_dict_module_gone gone = {
            .epoch = (uint32_t)mr_test_random_below(random, epochs),
            .module = made.module};

        made.address = mr_test_random_below(random, places);
        if (mr_test_random_below(random, 2))
            made.address = UINT64_MAX - made.address;
        (void)mr_modules_add(&modules, &made, &file_a);
        if (mr_test_random_below(random, 2))
            mr_modules_gone(&modules, &gone);
        for (uint32_t k = 0; k < 4; k++)
            check_one_place(random, &modules, epochs, places);
    }
    mr_modules_fini(&modules);
}

static void modules_are_found_as_if_all_were_looked_at(void **state)
{
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (uint32_t i = 0; i < 60 / MR_TEST_FEWER; i++)
        run_at_random(&random);
}

static void sites_depend_on_the_epoch_once_two_modules_share_some(void **state)
{
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (uint32_t round = 0; round < 200; round++) {
        uint32_t places = 100u << mr_test_random_below(&random, 8);
        struct mr_modules modules;
        bool overlapping = false;

        mr_modules_init(&modules, 1000);
        for (uint32_t i = 0; i < 300; i++) {
            struct mr_dict_module made =
                item(i, 1, (uint32_t)mr_test_random_below(&random, places),
                     (uint32_t)mr_test_random_below(&random, 5));

            overlapping = overlapping || one_overlaps(&modules, &made);
            assert_int_equal(mr_modules_add(&modules, &made, &file_a), MR_OK);
            assert_int_equal(modules.depends_on_epoch, overlapping);
        }
        mr_modules_fini(&modules);
    }
}

static void a_number_has_so_many_epochs_and_no_more(void **state)
{
    struct mr_modules modules;
    struct mr_dict_module made;

    (void)state;
    mr_modules_init(&modules, 1000);
    for (uint32_t i = 0; i < MR_MODULES_EPOCHS_MAX; i++) {
        made = item(7, i, 100, 10);
        assert_int_equal(mr_modules_add(&modules, &made, &file_a), MR_OK);
    }
    made = item(7, MR_MODULES_EPOCHS_MAX, 100, 10);
    assert_int_equal(mr_modules_add(&modules, &made, &file_a), MR_ELIMIT);
    made = item(8, MR_MODULES_EPOCHS_MAX, 100, 10);
    assert_int_equal(mr_modules_add(&modules, &made, &file_a), MR_OK);
    mr_modules_fini(&modules);
}

#define MANY 65536u
#define LOOKS (2u << 20)

/* All cover one place, each what the one before it does; all but the first are gone. By looking at each it would take a quarter of an hour. */
static void looking_up_does_not_go_through_all_modules(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    struct mr_modules modules;

    (void)state;
    mr_modules_init(&modules, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        struct mr_dict_module made = item(i, i, MANY - i, 2 * i + 1);

        assert_int_equal(mr_modules_add(&modules, &made, &file_a), MR_OK);
    }
    for (uint32_t i = 1; i < LOOKS / MR_TEST_FEWER; i++) {
        struct mr_dict_module_gone gone = {.epoch = MANY, .module = i};
        struct mr_dict_module again = item(i % MANY, i % MANY, 0, 1);
        uint64_t offset;

        if (i < MANY)
            mr_modules_gone(&modules, &gone);
        assert_int_equal(mr_modules_add(&modules, &again, &file_a), MR_OK);
        (void)mr_modules_by_address(&modules, MANY, mr_test_random_next(&random) % MANY,
                                    &offset);
    }
    for (uint32_t i = 0; i < LOOKS / MR_TEST_FEWER; i++) {
        uint64_t offset;

        assert_ptr_equal(mr_modules_by_site(&modules, MANY + 1, MANY, &offset),
                         &modules.items[0]);
    }
    mr_modules_fini(&modules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_site_is_found_where_it_is_covered),
        cmocka_unit_test(a_module_holds_from_its_epoch_until_it_is_gone),
        cmocka_unit_test(a_full_table_says_so),
        cmocka_unit_test(modules_are_found_as_if_all_were_looked_at),
        cmocka_unit_test(sites_depend_on_the_epoch_once_two_modules_share_some),
        cmocka_unit_test(a_number_has_so_many_epochs_and_no_more),
        cmocka_unit_test(looking_up_does_not_go_through_all_modules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
