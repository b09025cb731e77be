/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit_test.h"

#include "probe/config.h"

#include <string.h>
#include <unistd.h>

#define ENDPOINT "MILLRACE_ENDPOINT=tcp://127.0.0.1:4600"
#define EXE "/usr/bin/prog"

static struct mr_config config;
static struct mr_error error;

static enum mr_status parse(char *a, char *b, char *c)
{
    char endpoint[] = ENDPOINT, *env[] = {endpoint, a, b, c, NULL};

    mr_error_clear(&error);
    return mr_config_parse(env, EXE, &config, &error);
}

static bool is_wanted(char *a, char *b)
{
    char *env[] = {a, b, NULL};

    return mr_config_is_wanted(env);
}

static void tracing_is_wanted_with_an_endpoint_and_no_switch(void **state)
{
    (void)state;
    assert_true(is_wanted((char[]){ENDPOINT}, NULL));
    assert_false(is_wanted((char[]){"PATH=/bin"}, NULL));
    assert_false(is_wanted((char[]){"MILLRACE_ENDPOINT="}, NULL));
    assert_false(is_wanted((char[]){ENDPOINT}, (char[]){"MILLRACE_DISABLED=1"}));
    assert_false(is_wanted((char[]){ENDPOINT}, (char[]){"OTEL_SDK_DISABLED=TRUE"}));
    assert_true(is_wanted((char[]){ENDPOINT}, (char[]){"MILLRACE_DISABLED=0"}));
}

static void to_be_controlled_is_wanted_without_an_endpoint(void **state)
{
    char control[] = "MILLRACE_CONTROL=1", runtime[] = "XDG_RUNTIME_DIR=/run/user/7";
    char *env[] = {control, runtime, NULL};

    (void)state;
    assert_true(is_wanted((char[]){"MILLRACE_CONTROL=1"}, NULL));
    assert_false(is_wanted((char[]){"MILLRACE_CONTROL=0"}, NULL));
    assert_false(is_wanted((char[]){"MILLRACE_CONTROL="}, NULL));
    assert_false(
        is_wanted((char[]){"MILLRACE_CONTROL=1"}, (char[]){"MILLRACE_DISABLED=1"}));
    assert_int_equal(mr_config_parse(env, EXE, &config, &error), MR_OK);
    assert_int_equal(config.endpoints.count, 0);
    assert_true(config.is_controlled);
    assert_string_equal(config.control_dir, "");
    assert_string_equal(config.runtime_dir, "/run/user/7");
    assert_int_equal(parse((char[]){"MILLRACE_CONTROL=1"},
                           (char[]){"MILLRACE_CONTROL_DIR=/tmp"},
                           (char[]){"MILLRACE_START=off"}),
                     MR_OK);
    assert_int_equal(config.endpoints.count, 1);
    assert_string_equal(config.control_dir, "/tmp");
    assert_false(config.starts_on);
}

static void what_is_not_given_has_its_default(void **state)
{
    (void)state;
    assert_int_equal(parse(NULL, NULL, NULL), MR_OK);
    assert_int_equal(config.policy, MR_POLICY_DROP);
    assert_int_equal(config.clock, MR_CLOCK_MODE_COUNTER);
    assert_true(config.block_timeout_ns == UINT64_C(100000000));
    assert_true(config.ring_bytes == 256 << 10);
    assert_true(config.memory_bytes == 64 << 20);
    assert_true(config.exit_timeout_ns == UINT64_C(5000000000));
    assert_false(config.is_exit_timeout_given);
    assert_false(config.is_controlled);
    assert_true(config.starts_on);
    assert_int_equal(parse((char[]){"MILLRACE_EXIT_TIMEOUT=5s"}, NULL, NULL), MR_OK);
    assert_true(config.is_exit_timeout_given);
    assert_int_equal(parse(NULL, NULL, NULL), MR_OK);
    assert_string_equal(config.app, "prog");
    assert_string_equal(config.token, "");
    assert_int_equal(config.endpoints.count, 1);
    assert_string_equal(config.endpoints.items[0].port, "4600");
}

static void names_come_from_the_first_that_is_set(void **state)
{
    (void)state;
    assert_int_equal(parse((char[]){"OTEL_SERVICE_NAME=service"}, NULL, NULL), MR_OK);
    assert_string_equal(config.app, "service");
    assert_int_equal(
        parse((char[]){"OTEL_SERVICE_NAME=service"}, (char[]){"MILLRACE_APP=app"}, NULL),
        MR_OK);
    assert_string_equal(config.app, "app");
    assert_int_equal(
        parse((char[]){"OTEL_RESOURCE_ATTRIBUTES=service.name=a,service.version=1.2"},
              NULL, NULL),
        MR_OK);
    assert_string_equal(config.app, "a");
    assert_string_equal(config.version, "1.2");
}

static void attributes_are_decoded(void **state)
{
    (void)state;
    assert_int_equal(
        parse((char[]){"OTEL_RESOURCE_ATTRIBUTES= a = b%20c , d=%2C%, e="}, NULL, NULL),
        MR_OK);
    assert_int_equal(config.attribute_count, 3);
    assert_string_equal(config.attributes[0].key, "a");
    assert_string_equal(config.attributes[0].value, "b c");
    assert_string_equal(config.attributes[1].value, ",%");
    assert_string_equal(config.attributes[2].value, "");
}

static void a_ring_is_rounded_up_to_a_power_of_two(void **state)
{
    (void)state;
    assert_int_equal(parse((char[]){"MILLRACE_RING_SIZE=5000"},
                           (char[]){"MILLRACE_POLICY=block"}, NULL),
                     MR_OK);
    assert_true(config.ring_bytes == 8192);
    assert_int_equal(config.policy, MR_POLICY_BLOCK);
}

static void bad_values_are_named(void **state)
{
    static const struct {
        const char *variable, *value;
    } bad[] = {
        {"MILLRACE_POLICY", "wait"},
        {"MILLRACE_RING_SIZE", "many"},
        {"MILLRACE_RING_SIZE", "12"},
        {"MILLRACE_BLOCK_TIMEOUT", "1 fortnight"},
        {"MILLRACE_MEMORY", "-1"},
        {"MILLRACE_EXIT_TIMEOUT", "x"},
        {"MILLRACE_TOKEN_FILE", "/does/not/exist"},
        {"OTEL_RESOURCE_ATTRIBUTES", "nokey"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char item[128];

        (void)snprintf(item, sizeof(item), "%s=%s", bad[i].variable, bad[i].value);
        assert_true(mr_status_is_error(parse(item, NULL, NULL)));
        assert_non_null(strstr(error.text, bad[i].variable));
        assert_non_null(strstr(error.text, bad[i].value));
        assert_null(strchr(error.text, '\n'));
    }
}

/* As the worker reads the same file: with the blank it would be another token, and refused. */
static void the_token_ends_before_white_space(void **state)
{
    char path[] = "/tmp/millrace-test-XXXXXX", item[64];
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "s3cret \t\r\n", 10), 10);
    assert_int_equal(close(fd), 0);
    (void)snprintf(item, sizeof(item), "MILLRACE_TOKEN_FILE=%s", path);
    assert_int_equal(parse(item, NULL, NULL), MR_OK);
    assert_string_equal(config.token, "s3cret");
    assert_int_equal(unlink(path), 0);
}

static void a_bad_endpoint_is_named(void **state)
{
    char item[] = "MILLRACE_ENDPOINT=http://x", *env[] = {item, NULL};

    (void)state;
    mr_error_clear(&error);
    assert_int_equal(mr_config_parse(env, EXE, &config, &error), MR_EUSAGE);
    assert_non_null(strstr(error.text, "MILLRACE_ENDPOINT=http://x"));
}

static void discard_stands_alone(void **state)
{
    static const char *const refused[] = {
        "MILLRACE_ENDPOINT=discard:", "MILLRACE_ENDPOINT=discard,tcp://127.0.0.1:4600",
        "MILLRACE_ENDPOINT=tcp://127.0.0.1:4600,discard",
        "MILLRACE_ENDPOINT=tcp://discard", "MILLRACE_ENDPOINT=DISCARD"};
    char alone[] = "MILLRACE_ENDPOINT=discard", host[] = "MILLRACE_ENDPOINT=discard:4600";

    (void)state;
    mr_error_clear(&error);
    assert_true(is_wanted(alone, NULL));
    assert_int_equal(mr_config_parse((char *[]){alone, NULL}, EXE, &config, &error),
                     MR_OK);
    assert_true(config.is_discarding && mr_config_has_endpoint(&config));
    assert_int_equal(config.endpoints.count, 0);
    assert_int_equal(mr_config_parse((char *[]){host, NULL}, EXE, &config, &error),
                     MR_OK);
    assert_false(config.is_discarding);
    assert_string_equal(config.endpoints.items[0].host, "discard");
    for (size_t i = 0; i < MR_ARRAY_COUNT(refused); i++) {
        char item[64], *env[] = {item, NULL};

        strcpy(item, refused[i]);
        mr_error_clear(&error);
        assert_int_equal(mr_config_parse(env, EXE, &config, &error), MR_EUSAGE);
        assert_non_null(strstr(error.text, refused[i]));
        assert_non_null(strstr(error.text, "discard alone"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tracing_is_wanted_with_an_endpoint_and_no_switch),
        cmocka_unit_test(to_be_controlled_is_wanted_without_an_endpoint),
        cmocka_unit_test(what_is_not_given_has_its_default),
        cmocka_unit_test(names_come_from_the_first_that_is_set),
        cmocka_unit_test(attributes_are_decoded),
        cmocka_unit_test(a_ring_is_rounded_up_to_a_power_of_two),
        cmocka_unit_test(bad_values_are_named),
        cmocka_unit_test(the_token_ends_before_white_space),
        cmocka_unit_test(a_bad_endpoint_is_named),
        cmocka_unit_test(discard_stands_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
