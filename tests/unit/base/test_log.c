/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/clock.h"
#include "tests/unit/base/capture.h"

#include <errno.h>

static size_t count_lines(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += *text == '\n';
    return count;
}

static int logs_one_warning(void *argument)
{
    (void)argument;
    mr_log_init("worker", MR_LOG_INFO);
    mr_log_warn("%d lost", 7);
    return (int)getpid() & 0x7f;
}

static void a_line_tells_program_process_and_level(void **state)
{
    struct capture result = capture_run(STDERR_FILENO, logs_one_warning, NULL);

    (void)state;
    assert_int_equal(strncmp(result.text, "millrace worker[", 16), 0);
    assert_non_null(strstr(result.text, "] warn: 7 lost\n"));
    assert_int_equal(count_lines(result.text), 1);
}

static int logs_at_all_levels(void *argument)
{
    mr_log_init("x", *(enum mr_log_level *)argument);
    mr_log_error("one");
    mr_log_warn("two");
    mr_log_info("three");
    mr_log_debug("four");
    return 0;
}

static void each_level_shows_itself_and_what_is_graver(void **state)
{
    (void)state;
    for (int level = MR_LOG_ERROR; level <= MR_LOG_DEBUG; level++) {
        enum mr_log_level argument = (enum mr_log_level)level;
        struct capture result = capture_run(STDERR_FILENO, logs_at_all_levels, &argument);

        assert_int_equal(count_lines(result.text), (size_t)level + 1);
    }
}

static int logs_hostile_text(void *argument)
{
    (void)argument;
    mr_log_init("x", MR_LOG_INFO);
    mr_log_info("%s", "a\nmillrace x[1] error: forged\033[2J");
    return 0;
}

static void text_from_outside_cannot_forge_a_line(void **state)
{
    struct capture result = capture_run(STDERR_FILENO, logs_hostile_text, NULL);

    (void)state;
    assert_int_equal(count_lines(result.text), 1);
    assert_null(strchr(result.text, '\033'));
}

static int logs_a_very_long_line(void *argument)
{
    (void)argument;
    mr_log_init("x", MR_LOG_INFO);
    mr_log_info("%05000d", 1);
    return 0;
}

static void a_long_line_is_cut_and_still_ends(void **state)
{
    struct capture result = capture_run(STDERR_FILENO, logs_a_very_long_line, NULL);

    (void)state;
    assert_int_equal(result.size, MR_LOG_LINE_SIZE);
    assert_int_equal(result.text[result.size - 1], '\n');
    assert_int_equal(count_lines(result.text), 1);
}

static int logs_many_limited(void *argument)
{
    static struct mr_log_limit seldom = MR_LOG_LIMIT(MR_HOUR_NS);
    static struct mr_log_limit always = MR_LOG_LIMIT(0);
    int written = 0;

    (void)argument;
    mr_log_init("x", MR_LOG_INFO);
    for (int i = 0; i < 100; i++)
        written += mr_log_limited(&seldom, MR_LOG_WARN, "seldom");
    atomic_store(&seldom.next_ns, 0); /* as if the hour had passed */
    written += mr_log_limited(&seldom, MR_LOG_WARN, "seldom");
    for (int i = 0; i < 3; i++)
        written += mr_log_limited(&always, MR_LOG_WARN, "always");
    return written;
}

static void a_limited_line_says_how_many_were_left_out(void **state)
{
    struct capture result = capture_run(STDERR_FILENO, logs_many_limited, NULL);

    (void)state;
    assert_int_equal(WEXITSTATUS(result.wait_status), 5);
    assert_int_equal(count_lines(result.text), 5);
    assert_non_null(strstr(result.text, "seldom (and 99 more like it)\n"));
}

static int logs_a_burst(void *argument)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT_BURST(MR_HOUR_NS, 5);
    int written = 0;

    (void)argument;
    mr_log_init("x", MR_LOG_INFO);
    for (int i = 0; i < 100; i++)
        written += mr_log_limited(&limit, MR_LOG_WARN, "burst");
    /* As if an hour had passed: one more is due, not five. */
    atomic_fetch_sub(&limit.next_ns, MR_HOUR_NS);
    for (int i = 0; i < 100; i++)
        written += mr_log_limited(&limit, MR_LOG_WARN, "later");
    return written;
}

static void some_lines_may_come_at_once(void **state)
{
    struct capture result = capture_run(STDERR_FILENO, logs_a_burst, NULL);

    (void)state;
    assert_int_equal(WEXITSTATUS(result.wait_status), 6);
    assert_int_equal(count_lines(result.text), 6);
    assert_non_null(strstr(result.text, "later (and 95 more like it)\n"));
}

static int keeps_errno(void *argument)
{
    (void)argument;
    mr_log_init("x", MR_LOG_INFO);
    errno = ENOENT;
    (void)close(STDERR_FILENO); /* the write fails */
    mr_log_error("nobody hears this");
    return errno == ENOENT ? 0 : 1;
}

static void logging_leaves_errno_alone(void **state)
{
    struct capture result = capture_run(STDERR_FILENO, keeps_errno, NULL);

    (void)state;
    assert_int_equal(result.wait_status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_tells_program_process_and_level),
        cmocka_unit_test(each_level_shows_itself_and_what_is_graver),
        cmocka_unit_test(text_from_outside_cannot_forge_a_line),
        cmocka_unit_test(a_long_line_is_cut_and_still_ends),
        cmocka_unit_test(a_limited_line_says_how_many_were_left_out),
        cmocka_unit_test(some_lines_may_come_at_once),
        cmocka_unit_test(logging_leaves_errno_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
