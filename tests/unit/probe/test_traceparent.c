/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a traceparent, as W3C Trace Context has it. */
#include "../unit_test.h"

#include <string.h>

#include "probe/include/millrace/probe.h"

#define GOOD "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static int parse(const char *text, struct mr_traceparent *parent)
{
    return mr_traceparent_parse(text, strlen(text), parent);
}

static void a_header_says_what_was_sent(void **state)
{
    struct mr_traceparent parent;
    char text[MR_TRACEPARENT_SIZE];

    (void)state;
    assert_int_equal(parse(GOOD, &parent), 0);
    assert_int_equal(parent.trace_hi, UINT64_C(0x4bf92f3577b34da6));
    assert_int_equal(parent.trace_lo, UINT64_C(0xa3ce929d0e0e4736));
    assert_int_equal(parent.span, UINT64_C(0x00f067aa0ba902b7));
    assert_int_equal(parent.flags, 1);
    assert_ptr_equal(mr_traceparent_format(&parent, text), text);
    assert_string_equal(text, GOOD);
}

static void later_versions_are_read_by_their_first_fields(void **state)
{
    struct mr_traceparent parent;

    (void)state;
    assert_int_equal(
        parse("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", &parent), 0);
    assert_int_equal(
        parse("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03-more", &parent),
        0);
    assert_int_equal(parent.flags, 3);
}

static void what_breaks_the_specification_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "00",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "0g-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-011",
        "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0 ",
        " 0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-xy",
    };
    struct mr_traceparent parent;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        (void)parse(GOOD, &parent);
        if (parse(bad[i], &parent) != -1)
            fail_msg("taken: %s", bad[i]);
        assert_int_equal(parent.trace_hi | parent.trace_lo | parent.span | parent.flags,
                         0);
    }
    /* No byte behind the size is read: that is what a header in a larger buffer is. */
    assert_int_equal(mr_traceparent_parse(GOOD "-x", 54, &parent), -1);
    assert_int_equal(mr_traceparent_parse(GOOD "-x", 55, &parent), 0);
}

/* Any one byte that is changed is either another good header or refused. */
static void damaged_headers_never_do_harm(void **state)
{
    (void)state;
    for (size_t at = 0; at < sizeof(GOOD) - 1; at++)
        for (int byte = 0; byte < 256; byte++) {
            char text[] = GOOD, again[MR_TRACEPARENT_SIZE];
            struct mr_traceparent parent;

            text[at] = (char)byte;
            if (mr_traceparent_parse(text, sizeof(text) - 1, &parent) != 0)
                continue;
            mr_traceparent_format(&parent, again);
            assert_string_equal(again + 2, text + 2); /* but for the version */
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_says_what_was_sent),
        cmocka_unit_test(later_versions_are_read_by_their_first_fields),
        cmocka_unit_test(what_breaks_the_specification_is_refused),
        cmocka_unit_test(damaged_headers_never_do_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
