/* SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include "tests/unit/base/sample.h"
#include "tests/unit/unit_test.h"

#include <string.h>

static const char expected_help[] =
    "Usage: millrace sample [OPTION...] [FILE...]\n"
    "show what a table of options can do\n"
    "\n"
    "Options [and the variables that set them]:\n"
    "  --listen ENDPOINT       where to listen [default:\n"
    "                          tcp://127.0.0.1:4600] [MILLRACE_LISTEN]\n"
    "  --lanes COUNT           analysis lanes to run; 1 to 64 [default:\n"
    "                          1] [MILLRACE_LANES]\n"
    "  --memory SIZE           memory for all rings together; what does\n"
    "                          not fit is dropped and counted; at least\n"
    "                          4K [default: 64M] [MILLRACE_MEMORY]\n"
    "  --block-timeout TIME    longest wait for a full ring; 0 to 1m\n"
    "                          [default: 100ms] [MILLRACE_BLOCK_TIMEOUT]\n"
    "  --policy POLICY         what to do when a ring is full;\n"
    "                          drop|block|overwrite [default: drop]\n"
    "                          [MILLRACE_POLICY]\n"
    "  --compare               also run the program plain\n"
    "                          [MILLRACE_COMPARE]\n"
    "  --no-color              no colors [SAMPLE_COLOR]\n"
    "  --output-file-of-the-run PATH\n"
    "                          where to write\n"
    "  --seed NUMBER           seed [MILLRACE_SEED]\n"
    "  --help                  show this text\n"
    "  --help-man              show the manual page's source (scdoc)\n";

static char *text_of(struct mr_buffer *buffer)
{
    assert_int_equal(mr_buffer_append_byte(buffer, 0), MR_OK);
    return (char *)buffer->data;
}

static void help_shows_each_option_aligned_and_wrapped(void **state)
{
    struct mr_buffer buffer;

    (void)state;
    mr_buffer_init(&buffer, 1 << 16);
    assert_int_equal(mr_options_help(&sample_table, 68, &buffer), MR_OK);
    assert_string_equal(text_of(&buffer), expected_help);
    mr_buffer_fini(&buffer);
}

static void the_manual_page_is_scdoc_of_the_same_table(void **state)
{
    struct mr_buffer buffer;
    const char *text;

    (void)state;
    mr_buffer_init(&buffer, 1 << 16);
    assert_int_equal(mr_options_man(&sample_table, &buffer), MR_OK);
    text = text_of(&buffer);
    assert_int_equal(strncmp(text, "millrace-sample(1)\n\n# NAME\n\n", 28), 0);
    assert_non_null(strstr(text, "\n*--lanes COUNT*\n\tanalysis lanes to run; 1 to 64 "
                                 "[default: 1] [MILLRACE\\_LANES]\n"));
    assert_non_null(
        strstr(text, "\n# SYNOPSIS\n\nmillrace sample [OPTION...] [FILE...]\n"));
    mr_buffer_fini(&buffer);
}

static void a_full_buffer_is_told(void **state)
{
    struct mr_buffer buffer;

    (void)state;
    mr_buffer_init(&buffer, 100);
    assert_int_equal(mr_options_help(&sample_table, 80, &buffer), MR_ELIMIT);
    assert_int_equal(mr_options_man(&sample_table, &buffer), MR_ELIMIT);
    mr_buffer_fini(&buffer);
}

static void the_nearest_word_is_near(void **state)
{
    static const char *const words[] = {"record", "report", "replay", "top"};
    char long_word[200];

    (void)state;
    memset(long_word, 'a', sizeof(long_word));
    long_word[199] = '\0';
    assert_string_equal(mr_options_nearest("recrod", words, 4), "record");
    assert_string_equal(mr_options_nearest("reports", words, 4), "report");
    assert_string_equal(mr_options_nearest("tp", words, 4), "top");
    assert_string_equal(mr_options_nearest("top", words, 4), "top");
    assert_null(mr_options_nearest("worker", words, 4));
    assert_null(mr_options_nearest(long_word, words, 4));
    assert_null(mr_options_nearest("top", NULL, 0));
}

static void variables_are_named_after_their_flags(void **state)
{
    struct mr_option_spec spec = {.name = "block-timeout"};
    char name[MR_OPTION_ENV_SIZE];

    (void)state;
    mr_options_env_name(&spec, name);
    assert_string_equal(name, "MILLRACE_BLOCK_TIMEOUT");
    spec.env = "OTHER";
    mr_options_env_name(&spec, name);
    assert_string_equal(name, "OTHER");
    spec.env = "";
    mr_options_env_name(&spec, name);
    assert_string_equal(name, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_shows_each_option_aligned_and_wrapped),
        cmocka_unit_test(the_manual_page_is_scdoc_of_the_same_table),
        cmocka_unit_test(a_full_buffer_is_told),
        cmocka_unit_test(the_nearest_word_is_near),
        cmocka_unit_test(variables_are_named_after_their_flags),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
