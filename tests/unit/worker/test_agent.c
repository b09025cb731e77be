/* SPDX-License-Identifier: Apache-2.0 */
/* worker/agent.h: what is said, and what is understood. The sockets are exercised by tests/system/level. */
#include "worker/agent.h"

#include "tests/unit/unit_test.h"

#include <string.h>

static void assert_line(struct mr_agent_view view, const char *expected)
{
    char line[MR_AGENT_LINE_MAX];
    size_t size = mr_agent_put(&view, line);

    assert_int_equal(size, strlen(expected));
    assert_string_equal(line, expected);
}

static void the_weight_is_what_is_left_and_never_zero(void **state)
{
    MR_UNUSED(state);
    assert_line((struct mr_agent_view){MR_WORKER_UP, 1, 0, 0},
                "up ready 100% #level=1 senders=0\n");
    assert_line((struct mr_agent_view){MR_WORKER_UP, 1, 0.27, 12},
                "up ready 73% #level=1 senders=12\n");
    assert_line((struct mr_agent_view){MR_WORKER_UP, 2, 1, 12},
                "up ready 1% #level=2 senders=12\n");
    assert_line((struct mr_agent_view){MR_WORKER_UP, 2, 1.7, 12},
                "up ready 1% #level=2 senders=12\n");
}

static void other_states_have_no_weight(void **state)
{
    MR_UNUSED(state);
    assert_line((struct mr_agent_view){MR_WORKER_DRAIN, 1, 0.5, 3},
                "drain #level=1 senders=3\n");
    assert_line((struct mr_agent_view){MR_WORKER_MAINT, 1, 0, 0},
                "maint #level=1 senders=0\n");
    assert_line((struct mr_agent_view){MR_WORKER_DOWN, 1, 0, 9},
                "down #level=1 senders=9\n");
}

static void what_is_said_is_understood(void **state)
{
    MR_UNUSED(state);
    for (uint32_t at = 0; at < MR_WORKER_STATES; at++) {
        for (uint32_t percent = 0; percent < 100; percent++) {
            struct mr_agent_view view = {(enum mr_worker_state)at, 1 + percent % 64,
                                         percent / 100.0, percent * 1000};
            struct mr_agent_view read;
            char line[MR_AGENT_LINE_MAX];
            size_t size = mr_agent_put(&view, line);

            assert_int_equal(mr_agent_get(mr_span_of(line, size), &read), MR_OK);
            assert_int_equal(read.state, view.state);
            assert_int_equal(read.level, view.level);
            assert_int_equal(read.senders, view.senders);
            if (view.state == MR_WORKER_UP)
                assert_int_equal((int)(100 * read.utilisation + 0.5), percent);
        }
    }
}

static void what_no_worker_says_is_refused(void **state)
{
    static const char *const lines[] = {
        "",
        "\n",
        "up ready 50% #level=1 senders=1",
        "up 50% #level=1 senders=1\n",
        "up ready % #level=1 senders=1\n",
        "up ready 101% #level=1 senders=1\n",
        "up ready -1% #level=1 senders=1\n",
        "up ready 50% #level=65 senders=1\n",
        "up ready 50% #level=1 senders=4294967296\n",
        "up ready 50% #level=1 senders=\n",
        "up ready 50% #senders=1\n",
        "drained #level=1 senders=1\n",
        "HTTP/1.1 400 Bad Request\r\n",
    };
    char longest[MR_AGENT_LINE_MAX + 1];
    struct mr_agent_view view;

    MR_UNUSED(state);
    for (size_t i = 0; i < MR_ARRAY_COUNT(lines); i++)
        assert_int_equal(mr_agent_get(mr_span_of_text(lines[i]), &view), MR_EFORMAT);
    memset(longest, ' ', sizeof(longest));
    longest[sizeof(longest) - 1] = '\n';
    assert_int_equal(mr_agent_get(mr_span_of(longest, sizeof(longest)), &view),
                     MR_EFORMAT);
    assert_int_equal(mr_agent_get(mr_span_of("drain\0#level=1 senders=1\n", 25), &view),
                     MR_EFORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_weight_is_what_is_left_and_never_zero),
        cmocka_unit_test(other_states_have_no_weight),
        cmocka_unit_test(what_is_said_is_understood),
        cmocka_unit_test(what_no_worker_says_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
