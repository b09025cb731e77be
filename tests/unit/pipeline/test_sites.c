/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit_test.h"

#include "net/ids.h"
#include "pipeline/sites.h"

static void a_site_keeps_its_number_and_knows_what_it_is(void **state)
{
    struct mr_sites *sites;
    struct mr_span build_id = mr_span_of("abcd", 4);
    const struct mr_site_module *module;
    struct mr_dict_named_site span = {
        .name = "work", .file = "w.c", .line = 7, .flags = MR_NAMED_SITE_ROOT};
    struct mr_dict_item item;
    uint32_t function, named;

    (void)state;
    assert_int_equal(mr_sites_new(100, &sites), MR_OK);
    module = mr_sites_module(sites, "/usr/lib/a.so", build_id);
    assert_non_null(module);
    assert_ptr_equal(mr_sites_module(sites, "/usr/lib/a.so", build_id), module);
    function = mr_sites_add_function(sites, module, 0x40);
    named = mr_sites_add_span(sites, "app", &span);
    assert_int_equal(mr_sites_add_function(sites, module, 0x40), function);
    assert_int_equal(mr_sites_add_span(sites, "app", &span), named);
    assert_int_not_equal(function, named);
    assert_true(mr_id_equal(mr_sites_at(sites, function)->id,
                            mr_id_function(build_id, "", 0x40)));
    assert_true(mr_id_equal(mr_sites_at(sites, named)->id, mr_id_span("app", "work")));
    assert_true(
        mr_id_equal(mr_sites_at(sites, MR_SITE_UNKNOWN)->id, mr_id_unknown_site()));
    assert_true(sites->has_roots);
    mr_sites_item(sites, function, &item);
    assert_int_equal(item.site.quality, MR_QUALITY_OFFSET);
    assert_string_equal(item.site.module, "/usr/lib/a.so");
    mr_sites_item(sites, named, &item);
    assert_int_equal(item.site.type, MR_SITE_SPAN);
    assert_string_equal(item.site.module, "app");
    assert_string_equal(item.site.name, "work");
    assert_int_equal(item.site.line, 7);
    mr_sites_free(sites);
}

static void files_without_build_id_are_told_apart_by_path(void **state)
{
    struct mr_sites *sites;
    struct mr_span none = mr_span_of(NULL, 0);
    uint32_t a, b;

    (void)state;
    assert_int_equal(mr_sites_new(100, &sites), MR_OK);
    a = mr_sites_add_function(sites, mr_sites_module(sites, "/a", none), 16);
    b = mr_sites_add_function(sites, mr_sites_module(sites, "/b", none), 16);
    assert_int_not_equal(a, b);
    mr_sites_free(sites);
}

static void a_full_table_gives_the_unknown_site_and_counts(void **state)
{
    struct mr_sites *sites;
    const struct mr_site_module *module;

    (void)state;
    assert_int_equal(mr_sites_new(3000, &sites), MR_OK);
    module = mr_sites_module(sites, "/a", mr_span_of("x", 1));
    for (uint32_t i = 0; i < 5000; i++) {
        uint32_t number = mr_sites_add_function(sites, module, i);

        assert_int_equal(number, i < 2999 ? i + 1 : MR_SITE_UNKNOWN);
    }
    assert_int_equal(sites->refused, 5000 - 2999);
    assert_int_equal(mr_sites_at(sites, 2999)->offset, 2998);
    mr_sites_free(sites);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_site_keeps_its_number_and_knows_what_it_is),
        cmocka_unit_test(files_without_build_id_are_told_apart_by_path),
        cmocka_unit_test(a_full_table_gives_the_unknown_site_and_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
