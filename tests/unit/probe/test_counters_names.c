/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/counters.h"

#include "tests/unit/unit_test.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

static struct mr_counter_event resolved(const char *name)
{
    struct mr_counter_event event;
    struct mr_error error = MR_ERROR_NONE;

    if (mr_counter_resolve(name, &event, &error) != MR_OK)
        fail_msg("%s: %s", name, error.text);
    return event;
}

static void assert_event(const char *name, const char *shown, uint32_t type,
                         uint64_t config)
{
    struct mr_counter_event event = resolved(name);

    assert_string_equal(event.name, shown);
    assert_int_equal(event.type, type);
    assert_true(event.config == config);
}

static void an_event_has_one_name_whatever_it_was_asked_by(void **state)
{
    (void)state;
    assert_event("page-faults", "page-faults", PERF_TYPE_SOFTWARE,
                 PERF_COUNT_SW_PAGE_FAULTS);
    assert_event("faults", "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
    assert_event("PERF_COUNT_SW_PAGE_FAULTS", "page-faults", PERF_TYPE_SOFTWARE,
                 PERF_COUNT_SW_PAGE_FAULTS);
    assert_event("Instructions", "instructions", PERF_TYPE_HARDWARE,
                 PERF_COUNT_HW_INSTRUCTIONS);
    assert_event("cs", "context-switches", PERF_TYPE_SOFTWARE,
                 PERF_COUNT_SW_CONTEXT_SWITCHES);
    assert_event("r01C2", "r01C2", PERF_TYPE_RAW, 0x1c2);
    assert_string_equal(resolved("task-clock").unit, "ns");
    assert_string_equal(resolved("cycles").unit, "1");
}

static void a_suffix_leaves_the_kernel_out(void **state)
{
    struct mr_counter_event event = resolved("cycles:u");

    (void)state;
    assert_string_equal(event.name, "cycles:u");
    assert_true(event.is_user_only);
    assert_false(resolved("cycles").is_user_only);
    assert_true(resolved("context-switches").is_kernel_only);
}

static void the_nearest_name_is_told(void **state)
{
    static const char *const cases[][2] = {
        {"page-fault", "is page-faults meant?"},
        {"instrutions", "is instructions meant?"},
        {"contextswitches", "is context-switches meant?"},
        {"PERF_COUNT_SW_PAGEFAULTS", "is PERF_COUNT_SW_PAGE_FAULTS meant?"},
        {"", "is "},
        {"r", "is "},
        {"r12345678901234567", "is "},
    };

    (void)state;
    for (size_t i = 0; i < MR_ARRAY_COUNT(cases); i++) {
        struct mr_counter_event event;
        struct mr_error error = MR_ERROR_NONE;

        assert_int_equal(mr_counter_resolve(cases[i][0], &event, &error), MR_ENOTFOUND);
        if (!strstr(error.text, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], error.text);
        assert_null(strchr(error.text, '\n'));
    }
}

static void a_name_of_any_length_is_an_error_and_no_more(void **state)
{
    struct mr_counter_event event;
    struct mr_error error = MR_ERROR_NONE;
    char name[1000];

    (void)state;
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(mr_counter_resolve(name, &event, &error), MR_ENOTFOUND);
    name[MR_COUNTER_NAME_MAX - 2] = '\0';
    assert_int_equal(mr_counter_resolve(name, &event, &error), MR_ENOTFOUND);
}

static char complaints[4096];

static void complain(const char *text)
{
    (void)strcat(strcat(complaints, text), "\n");
}

static const struct mr_counter *find(const struct mr_counters *counters, const char *name)
{
    for (uint32_t i = 0; i < counters->count; i++)
        if (strcmp(counters->items[i].event.name, name) == 0)
            return &counters->items[i];
    fail_msg("no %s", name);
    return NULL;
}

static void what_is_no_name_is_absent_and_has_a_line(void **state)
{
    struct mr_counters *counters = calloc(1, sizeof(*counters));

    (void)state;
    complaints[0] = '\0';
    (void)mr_counters_start(counters, ",task-clock,,nonsense,task-clock,", complain);
    assert_int_equal(counters->count, 2); /* once */
    assert_non_null(strstr(find(counters, "nonsense")->absent, "no counter"));
    assert_int_equal(strncmp(complaints, "MILLRACE_COUNTERS: nonsense: ", 29), 0);
    assert_ptr_equal(strchr(complaints, '\n'), complaints + strlen(complaints) - 1);
    free(counters);
}

static void the_limits_hold(void **state)
{
    struct mr_counters *counters = calloc(1, sizeof(*counters));
    char names[1024] = "task-clock,cpu-clock,page-faults,minor-faults,major-faults";

    (void)state;
    complaints[0] = '\0';
    (void)mr_counters_start(counters, names, complain);
    assert_int_equal(counters->count, 5);
    assert_true(counters->present <= MR_COUNTERS_MAX);
    if (counters->present == MR_COUNTERS_MAX) /* else this kernel has none for us */
        assert_non_null(strstr(find(counters, "major-faults")->absent, "at most 4"));
    assert_string_equal(complaints, "");
    for (int i = 0; i < 40; i++)
        (void)snprintf(names + strlen(names), 16, ",x%d", i);
    memset(counters, 0, sizeof(*counters));
    (void)mr_counters_start(counters, names, complain);
    assert_int_equal(counters->count, MR_COUNTERS_NAMES_MAX);
    assert_non_null(strstr(complaints, "more than"));
    free(counters);
}

static void items_tell_places_and_reasons(void **state)
{
    struct mr_counters *counters = calloc(1, sizeof(*counters));
    char text[MR_COUNTER_REASON_SIZE];
    struct mr_dict_item item;

    (void)state;
    counters->count = 2;
    counters->present = 1;
    (void)strcpy(counters->items[0].event.name, "a");
    (void)strcpy(counters->items[1].event.name, "b");
    (void)strcpy(counters->items[1].absent, "no");
    counters->items[0].event.unit = counters->items[1].event.unit = "1";
    (void)strcpy(counters->budget, "too many");
    assert_true(mr_counters_item(counters, 0, 0, text, &item));
    assert_int_equal(item.counter.counter, 0);
    assert_string_equal(item.counter.absent, "");
    assert_true(mr_counters_item(counters, 1, 0, text, &item));
    assert_string_equal(item.counter.absent, "no");
    assert_false(mr_counters_item(counters, 0, 1, text, &item)); /* all threads have it */
    counters->refused[0] = 24;                                   /* EMFILE */
    assert_true(mr_counters_item(counters, 0, 1, text, &item));
    assert_string_equal(item.counter.absent, "on some threads: Too many open files");
    assert_false(mr_counters_item(counters, 1, 1, text, &item));
    assert_false(mr_counters_item(counters, 0, 2, text, &item));
    counters->refused[1] = MR_COUNTERS_BUDGET;
    assert_true(mr_counters_item(counters, 0, 2, text, &item));
    assert_string_equal(item.counter.absent, "on some threads: too many");
    free(counters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_has_one_name_whatever_it_was_asked_by),
        cmocka_unit_test(a_suffix_leaves_the_kernel_out),
        cmocka_unit_test(the_nearest_name_is_told),
        cmocka_unit_test(a_name_of_any_length_is_an_error_and_no_more),
        cmocka_unit_test(what_is_no_name_is_absent_and_has_a_line),
        cmocka_unit_test(the_limits_hold),
        cmocka_unit_test(items_tell_places_and_reasons),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
