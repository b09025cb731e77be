/* SPDX-License-Identifier: Apache-2.0 */
/* cli/run.h: what is kept of a run. */
#include "cli/run.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#include <string.h>
#include <unistd.h>

static char directory[64];

static int set_up(void **state)
{
    MR_UNUSED(state);
    (void)strcpy(directory, "/tmp/millrace-test-XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static int tear_down(void **state)
{
    char path[128];

    MR_UNUSED(state);
    (void)snprintf(path, sizeof(path), "%s/%s", directory, MR_RUN_FILE);
    (void)unlink(path);
    return rmdir(directory);
}

static void a_run_is_read_back_as_it_was_saved(void **state)
{
    char command[] = "./server --port 1 'a \"quoted\" word'";
    struct mr_run saved = {.command = command,
                           .started_ns = UINT64_C(1790000000123456789),
                           .wall_ns = 12,
                           .plain_ns = 3,
                           .exit_status = 139};
    struct mr_run loaded;

    MR_UNUSED(state);
    assert_int_equal(mr_run_save(&saved, directory, NULL), MR_OK);
    assert_int_equal(mr_run_load(&loaded, directory), MR_OK);
    assert_string_equal(loaded.command, command);
    assert_int_equal(loaded.started_ns, saved.started_ns);
    assert_int_equal(loaded.wall_ns, 12);
    assert_int_equal(loaded.plain_ns, 3);
    assert_int_equal(loaded.exit_status, 139);
    mr_run_fini(&loaded);
}

static void no_run_and_a_damaged_one_are_told_apart(void **state)
{
    char path[128];
    struct mr_run run;
    FILE *file;

    MR_UNUSED(state);
    assert_int_equal(mr_run_load(&run, directory), MR_ENOTFOUND);
    (void)snprintf(path, sizeof(path), "%s/%s", directory, MR_RUN_FILE);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("{\"command\":1}", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(mr_run_load(&run, directory), MR_EFORMAT);
    assert_null(run.command);
}

static void a_directory_that_is_not_there_is_named(void **state)
{
    char command[] = "x";
    struct mr_run run = {.command = command};
    struct mr_error error = MR_ERROR_NONE;

    MR_UNUSED(state);
    assert_int_equal(mr_run_save(&run, "/nowhere", &error), MR_EIO);
    assert_non_null(strstr(error.text, "/nowhere"));
}

static void words_are_quoted_where_a_shell_needs_it(void **state)
{
    char plain[] = "./a-b_c/d.e", space[] = "two words", quote[] = "it's", empty[] = "",
         star[] = "*", bytes[] = "\xff";
    char *const argv[] = {plain, space, quote, empty, star, bytes, NULL};
    char *line = mr_run_command_line(argv);

    MR_UNUSED(state);
    assert_non_null(line);
    assert_string_equal(line, "./a-b_c/d.e 'two words' 'it'\\''s' '' '*' '?'");
    free(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_is_read_back_as_it_was_saved, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(no_run_and_a_damaged_one_are_told_apart, set_up,
                                        tear_down),
        cmocka_unit_test(a_directory_that_is_not_there_is_named),
        cmocka_unit_test(words_are_quoted_where_a_shell_needs_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
