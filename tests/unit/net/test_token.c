/* SPDX-License-Identifier: Apache-2.0 */
/* net/token.h: the one rule by which probe, worker and master read the secret that they share. */
#include "net/token.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static int set_up(void **state)
{
    MR_UNUSED(state);
    (void)strcpy(path, "/tmp/millrace-test-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
    MR_UNUSED(state);
    return unlink(path);
}

static void write_text(const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void the_token_is_the_first_line_without_its_end(void **state)
{
    char token[MR_TOKEN_SIZE];

    MR_UNUSED(state);
    write_text("s3cret \r\nanother line\n");
    assert_int_equal(mr_token_read("--token-file", path, token, NULL), MR_OK);
    assert_string_equal(token, "s3cret");
    write_text("no line end");
    assert_int_equal(mr_token_read("--token-file", path, token, NULL), MR_OK);
    assert_string_equal(token, "no line end");
}

static void a_file_without_a_token_is_refused(void **state)
{
    static const char *const texts[] = {"", "\n", "  \t \n", "\nlate\n"};
    char token[MR_TOKEN_SIZE];

    MR_UNUSED(state);
    for (size_t i = 0; i < MR_ARRAY_COUNT(texts); i++) {
        struct mr_error error = MR_ERROR_NONE;

        write_text(texts[i]);
        assert_int_equal(mr_token_read("--token-file", path, token, &error), MR_EUSAGE);
        assert_non_null(strstr(error.text, path));
        assert_non_null(strstr(error.text, "--token-file"));
    }
    assert_int_equal(mr_token_read("--token-file", "/nowhere/at/all", token, NULL),
                     MR_EUSAGE);
}

static void a_token_that_is_too_long_is_refused_and_not_cut(void **state)
{
    static char text[MR_TOKEN_SIZE + 10];
    char token[MR_TOKEN_SIZE];

    MR_UNUSED(state);
    memset(text, 'x', MR_TOKEN_SIZE);
    write_text(text);
    assert_int_equal(mr_token_read("--token-file", path, token, NULL), MR_EUSAGE);
    memcpy(text + MR_TOKEN_SIZE - 1, "\nmore", sizeof("\nmore"));
    write_text(text);
    assert_int_equal(mr_token_read("--token-file", path, token, NULL), MR_OK);
    assert_int_equal(strlen(token), MR_TOKEN_SIZE - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_token_is_the_first_line_without_its_end,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_without_a_token_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_token_that_is_too_long_is_refused_and_not_cut,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
