/* SPDX-License-Identifier: Apache-2.0 */
/* bench/server.h: it starts this program again, with words that main() knows. */
#include "bench/server.h"

#include "base/compiler.h"
#include "bench/build.h"
#include "tests/unit/unit_test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum mr_status start(const char *words, struct mr_error *error)
{
    char folder[] = "/tmp/millrace-server-XXXXXX", endpoint[128];
    struct mr_words argv = {0};
    pid_t pid = 0;
    enum mr_status status;

    assert_non_null(mkdtemp(folder));
    mr_words_add(&argv, "millrace");
    mr_words_add(&argv, "%s", words);
    mr_error_clear(error);
    status =
        mr_server_run(folder, "master", &argv, &pid, endpoint, sizeof(endpoint), error);
    assert_int_equal(pid, 0);
    mr_words_fini(&argv);
    mr_folder_remove(folder); /* and the log with it */
    return status;
}

static void one_that_does_not_start_has_the_last_word(void **state)
{
    struct mr_error error;

    MR_UNUSED(state);
    assert_int_equal(start("fail", &error), MR_EIO);
    assert_string_equal(error.text, "the master did not start; it said the last word");
}

static void one_that_says_nothing_is_told_so(void **state)
{
    struct mr_error error;

    MR_UNUSED(state);
    assert_int_equal(start("silent", &error), MR_EIO);
    assert_non_null(strstr(error.text, "the master did not start; it said nothing"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_does_not_start_has_the_last_word),
        cmocka_unit_test(one_that_says_nothing_is_told_so),
    };

    if (argc > 1 && strcmp(argv[1], "fail") == 0)
        (void)fputs("a first word\nthe last word\n\n", stderr);
    if (argc > 1 && strcmp(argv[0], "millrace") == 0)
        return EXIT_FAILURE;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
