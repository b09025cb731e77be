/* SPDX-License-Identifier: Apache-2.0 */
/* bench/machine.h */
#include "bench/machine.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#include <unistd.h>

#include <string.h>

static void steal_is_the_eighth_number(void **state)
{
    struct mr_machine_ticks ticks;

    MR_UNUSED(state);
    assert_int_equal(
        mr_machine_ticks_parse("cpu  100 1 50 800 9 0 10 30 7 0\ncpu0 1 2 3\n", &ticks),
        MR_OK);
    assert_int_equal(ticks.steal, 30);
    assert_int_equal(ticks.total, 1000); /* guest time is in user time already */
}

static void what_is_no_proc_stat_is_refused(void **state)
{
    struct mr_machine_ticks ticks;

    MR_UNUSED(state);
    assert_int_equal(mr_machine_ticks_parse("", &ticks), MR_EFORMAT);
    assert_int_equal(mr_machine_ticks_parse("cpu  1 2 3\n", &ticks), MR_EFORMAT);
    assert_int_equal(mr_machine_ticks_parse("intr 1 2 3 4 5 6 7 8 9\n", &ticks),
                     MR_EFORMAT);
    assert_int_equal(ticks.total, 0);
}

static void steal_is_a_share_of_the_time_between(void **state)
{
    const struct mr_machine_ticks before = {.total = 1000, .steal = 10};
    const struct mr_machine_ticks after = {.total = 1200, .steal = 12};

    MR_UNUSED(state);
    assert_float_equal(mr_machine_steal(&before, &after), 0.01, 1e-12);
    assert_float_equal(mr_machine_steal(&before, &before), 0, 0);
    assert_float_equal(mr_machine_steal(&after, &before), 0, 0);
}

static void others_took_what_is_neither_idle_nor_stolen_nor_ours(void **state)
{
    const double second = (double)sysconf(_SC_CLK_TCK);
    const struct mr_machine_ticks before = {.total = 1000};
    const struct mr_machine_ticks after = {.total = 1000 + (uint64_t)(10 * second),
                                           .steal = (uint64_t)second,
                                           .idle = (uint64_t)(4 * second)};

    (void)state;
    assert_float_equal(mr_machine_others(&before, &after, 3), 0.2, 1e-9);
    assert_float_equal(mr_machine_others(&before, &after, 6), 0, 0);
    assert_float_equal(mr_machine_others(&before, &before, 0), 0, 0);
    assert_true(mr_machine_own_s() > 0);
}

static void this_machine_has_processors_and_ticks(void **state)
{
    struct mr_machine_ticks ticks;

    MR_UNUSED(state);
    mr_machine_ticks(&ticks);
    assert_true(ticks.total > 0);
    assert_true(mr_machine_cpus() > 0);
}

/* In virtual machines the name is "AMD EPYC", whichever it is. */
static void a_processor_is_known_by_its_numbers(void **state)
{
    static const char cpuinfo[] = "processor\t: 0\nvendor_id\t: AuthenticAMD\n"
                                  "cpu family\t: 25\nmodel\t\t: 17\n"
                                  "model name\t: AMD EPYC\nstepping\t: 1\n";
    char text[MR_MACHINE_MODEL_SIZE];

    MR_UNUSED(state);
    assert_string_equal(mr_machine_model(cpuinfo, text),
                        "family 25, model 17, stepping 1");
    assert_null(mr_machine_model("", text));
    assert_null(mr_machine_model("processor\t: 0\nCPU implementer\t: 0x41\n", text));
}

static void json_text_is_escaped(void **state)
{
    struct mr_buffer out;

    MR_UNUSED(state);
    mr_buffer_init(&out, 1000);
    assert_int_equal(mr_bench_json_text(&out, "a\"b\\c\n"), MR_OK);
    assert_int_equal(mr_bench_json_text(&out, NULL), MR_OK);
    assert_int_equal(mr_buffer_append_byte(&out, 0), MR_OK);
    assert_string_equal((const char *)out.data, "\"a\\\"b\\\\c\\u000a\"null");
    mr_buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steal_is_the_eighth_number),
        cmocka_unit_test(what_is_no_proc_stat_is_refused),
        cmocka_unit_test(steal_is_a_share_of_the_time_between),
        cmocka_unit_test(others_took_what_is_neither_idle_nor_stolen_nor_ours),
        cmocka_unit_test(this_machine_has_processors_and_ticks),
        cmocka_unit_test(a_processor_is_known_by_its_numbers),
        cmocka_unit_test(json_text_is_escaped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
