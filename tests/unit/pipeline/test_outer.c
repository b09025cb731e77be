/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit_test.h"

#include "pipeline/outer.h"

static const char *known_name;

static const char *resolve(void *context, const struct mr_site *site)
{
    (void)context;
    (void)site;
    return known_name;
}

static void a_name_that_comes_late_is_asked_for_again(void **state)
{
    static const char *const outer_globs[] = {"main", "*loop*"}, *const root_globs[] = {
                                                                     "handle_*"};
    struct mr_outer_config config = {.outer_globs = outer_globs,
                                     .outer_glob_count = 2,
                                     .root_globs = root_globs,
                                     .root_glob_count = 1,
                                     .resolve = resolve};
    struct mr_sites *sites;
    struct mr_outer outer;
    uint32_t scope, other, site;

    (void)state;
    assert_int_equal(mr_sites_new(5000, &sites), MR_OK);
    site =
        mr_sites_add_function(sites, mr_sites_module(sites, "/a", mr_span_of("x", 1)), 8);
    config.sites = sites;
    mr_outer_init(&outer, &config);
    assert_true(mr_outer_has_roots(&outer));
    assert_int_equal(mr_outer_scope(&outer, (struct mr_id){1, 1}, &scope), MR_OK);
    assert_int_equal(mr_outer_scope(&outer, (struct mr_id){1, 2}, &other), MR_OK);
    assert_int_not_equal(scope, other);
    known_name = NULL;
    assert_int_equal(mr_outer_flags(&outer, scope, site), 0);
    known_name = "event_loop_run";
    assert_int_equal(mr_outer_flags(&outer, scope, site),
                     MR_OUTER_FRAME | MR_OUTER_KNOWN);
    known_name = "handle_get";
    assert_int_equal(mr_outer_flags(&outer, scope, site),
                     MR_OUTER_FRAME | MR_OUTER_KNOWN);
    assert_int_equal(mr_outer_flags(&outer, other, site), MR_OUTER_ROOT | MR_OUTER_KNOWN);
    mr_outer_fini(&outer);
    mr_sites_free(sites);
}

static void what_is_set_holds_for_its_scope_only(void **state)
{
    struct mr_outer_config config = {0};
    struct mr_sites *sites;
    struct mr_outer outer;
    uint32_t a, b;

    (void)state;
    assert_int_equal(mr_sites_new(5000, &sites), MR_OK);
    config.sites = sites;
    mr_outer_init(&outer, &config);
    assert_false(mr_outer_has_roots(&outer));
    assert_int_equal(mr_outer_scope(&outer, (struct mr_id){1, 1}, &a), MR_OK);
    assert_int_equal(mr_outer_scope(&outer, (struct mr_id){1, 2}, &b), MR_OK);
    assert_true(
        mr_outer_set(&outer, a, MR_SITE_UNKNOWN, MR_OUTER_FRAME | MR_OUTER_ANNOUNCED));
    assert_false(mr_outer_set(&outer, a, MR_SITE_UNKNOWN, MR_OUTER_FRAME));
    assert_true(mr_outer_flags(&outer, a, MR_SITE_UNKNOWN) & MR_OUTER_FRAME);
    assert_false(mr_outer_flags(&outer, b, MR_SITE_UNKNOWN) & MR_OUTER_FRAME);
    mr_outer_fini(&outer);
    mr_sites_free(sites);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_that_comes_late_is_asked_for_again),
        cmocka_unit_test(what_is_set_holds_for_its_scope_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
