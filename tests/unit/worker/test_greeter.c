/* SPDX-License-Identifier: Apache-2.0 */
/* worker/greeter.h: who may come in. The sockets are exercised by tests/system/cli. */
#include "worker/greeter.h"

#include "tests/unit/unit_test.h"

#include <string.h>

static const struct mr_greeter_rules rules = {
    .self = {1, 1}, .level = 2, .token = "", .max_frame = 65536, .max_connections = 1};

static struct mr_hello hello_of(enum mr_role role, uint32_t level)
{
    return (struct mr_hello){.sender = {2, 2}, .role = role, .level = level, .token = ""};
}

static void assert_refused(const struct mr_greeter_rules *by,
                           const struct mr_hello *hello, enum mr_wire_error expected,
                           const char *part)
{
    struct mr_error error = MR_ERROR_NONE;
    enum mr_wire_error code = MR_WIRE_ERROR_INTERNAL;

    assert_int_equal(mr_greeter_check(by, hello, &code, &error), MR_EREFUSED);
    assert_int_equal(code, expected);
    assert_non_null(strstr(error.text, part));
}

static void assert_welcome(const struct mr_greeter_rules *by,
                           const struct mr_hello *hello)
{
    enum mr_wire_error code;

    assert_int_equal(mr_greeter_check(by, hello, &code, NULL), MR_OK);
}

static void probes_and_workers_of_a_lower_level_are_welcome(void **state)
{
    struct mr_hello probe = hello_of(MR_ROLE_PROBE, 0);
    struct mr_hello worker = hello_of(MR_ROLE_WORKER, 1);

    MR_UNUSED(state);
    assert_welcome(&rules, &probe);
    assert_welcome(&rules, &worker);
}

static void a_worker_of_the_same_or_a_higher_level_would_be_a_loop(void **state)
{
    struct mr_hello same = hello_of(MR_ROLE_WORKER, 2);
    struct mr_hello higher = hello_of(MR_ROLE_WORKER, 3);

    MR_UNUSED(state);
    assert_refused(&rules, &same, MR_WIRE_ERROR_LOOP, "--level");
    assert_refused(&rules, &higher, MR_WIRE_ERROR_LOOP, "--level");
}

static void our_own_id_coming_in_is_a_loop_whatever_its_level(void **state)
{
    struct mr_hello self = hello_of(MR_ROLE_WORKER, 1);

    MR_UNUSED(state);
    self.sender = rules.self;
    assert_refused(&rules, &self, MR_WIRE_ERROR_LOOP, "--forward");
}

static void a_token_must_be_shown_whole_and_right(void **state)
{
    static const char *const wrong[] = {"", "s", "secre", "secret!", "Secret", "tercesX"};
    struct mr_greeter_rules strict = rules;
    struct mr_hello hello = hello_of(MR_ROLE_PROBE, 0);

    MR_UNUSED(state);
    strict.token = "secret";
    for (size_t i = 0; i < MR_ARRAY_COUNT(wrong); i++) {
        hello.token = wrong[i];
        assert_refused(&strict, &hello, MR_WIRE_ERROR_TOKEN, "token");
    }
    hello.token = "secret";
    assert_welcome(&strict, &hello);
}

static void a_token_that_nobody_asked_for_does_no_harm(void **state)
{
    struct mr_hello hello = hello_of(MR_ROLE_PROBE, 0);

    MR_UNUSED(state);
    hello.token = "anything";
    assert_welcome(&rules, &hello);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probes_and_workers_of_a_lower_level_are_welcome),
        cmocka_unit_test(a_worker_of_the_same_or_a_higher_level_would_be_a_loop),
        cmocka_unit_test(our_own_id_coming_in_is_a_loop_whatever_its_level),
        cmocka_unit_test(a_token_must_be_shown_whole_and_right),
        cmocka_unit_test(a_token_that_nobody_asked_for_does_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
