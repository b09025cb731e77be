/* SPDX-License-Identifier: Apache-2.0 */
/* scale/fetch.h: metrics are found by name and labels. What servers answer is tests/system/scale's. */
#include "scale/fetch.h"

#include "base/clock.h"
#include "tests/unit/unit_test.h"

#include <string.h>

static const char text[] = "HTTP/1.1 200 OK\r\nX: y\r\n\r\n"
                           "# HELP millrace_senders Senders.\n"
                           "# TYPE millrace_senders gauge\n"
                           "millrace_senders 12\n"
                           "millrace_senders_total 13\n"
                           "millrace_state{state=\"up\"} 0\n"
                           "millrace_state{state=\"drain\"} 1\n"
                           "millrace_busy{f=\"a b\"} 0.25\n"
                           "millrace_busy{f=\"c\"} 0.5\n"
                           "millrace_busy{f=\"d\"} 0.125\n";

static void a_value_is_found_by_name_and_labels(void **state)
{
    double value = -1;

    MR_UNUSED(state);
    assert_true(mr_fetch_value(text, "millrace_senders", "", &value));
    assert_int_equal(value, 12);
    assert_true(mr_fetch_value(text, "millrace_state", "{state=\"drain\"}", &value));
    assert_int_equal(value, 1);
    assert_false(mr_fetch_value(text, "millrace_state", "{state=\"down\"}", &value));
    assert_false(mr_fetch_value(text, "millrace_state", "", &value));
    assert_false(mr_fetch_value(text, "millrace_sender", "", &value));
    assert_false(mr_fetch_value("", "millrace_senders", "", &value));
}

static void the_largest_is_that_of_all_labels(void **state)
{
    double value = -1;

    MR_UNUSED(state);
    assert_true(mr_fetch_largest(text, "millrace_busy", &value));
    assert_int_equal(value * 1000, 500);
    assert_false(mr_fetch_largest(text, "millrace_idle", &value));
}

static void who_is_not_there_is_told_of_with_the_address(void **state)
{
    struct mr_fetch fetches[] = {{.address = "127.0.0.1:1"}, {.address = "nonsense"}};

    MR_UNUSED(state);
    mr_fetch_all(fetches, 2, "/metrics", 30 * MR_SECOND_NS);
    assert_false(fetches[0].is_there || fetches[1].is_there);
    assert_non_null(strstr(fetches[0].error.text, "127.0.0.1:1: connect"));
    assert_non_null(strstr(fetches[1].error.text, "nonsense"));
    mr_fetch_free(fetches, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_found_by_name_and_labels),
        cmocka_unit_test(the_largest_is_that_of_all_labels),
        cmocka_unit_test(who_is_not_there_is_told_of_with_the_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
