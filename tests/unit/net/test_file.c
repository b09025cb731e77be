/* SPDX-License-Identifier: Apache-2.0 */
/* net/file.h: files written whole. */
#include "net/file.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[64];
static char path[96];

static int set_up(void **state)
{
    MR_UNUSED(state);
    (void)strcpy(directory, "/tmp/millrace-test-XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    (void)snprintf(path, sizeof(path), "%s/file", directory);
    return 0;
}

static int tear_down(void **state)
{
    MR_UNUSED(state);
    (void)unlink(path);
    return rmdir(directory); /* fails if a temporary file was left */
}

static void write_text(const char *text)
{
    assert_int_equal(mr_file_replace(path, text, strlen(text), NULL), MR_OK);
}

static void assert_holds(const char *expected)
{
    char text[256] = "";
    FILE *file = fopen(path, "r");
    size_t size;

    assert_non_null(file);
    size = fread(text, 1, sizeof(text) - 1, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(size, strlen(expected));
    assert_string_equal(text, expected);
}

static void a_file_is_made_and_replaced(void **state)
{
    MR_UNUSED(state);
    write_text("the first, which is longer");
    assert_holds("the first, which is longer");
    write_text("second");
    assert_holds("second");
}

static void a_path_that_cannot_be_written_is_named(void **state)
{
    struct mr_error error = MR_ERROR_NONE;

    MR_UNUSED(state);
    assert_int_equal(mr_file_replace("/nowhere/at/all", "x", 1, &error), MR_EIO);
    assert_non_null(strstr(error.text, "/nowhere/at/all"));
}

/* As root it would be gone, for everybody: /dev/null is a regular file then. */
static void what_is_no_regular_file_stays(void **state)
{
    struct mr_error error = MR_ERROR_NONE;
    struct stat there;

    MR_UNUSED(state);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(mr_file_replace(path, "x", 1, &error), MR_EIO);
    assert_non_null(strstr(error.text, "no regular file"));
    assert_int_equal(lstat(path, &there), 0);
    assert_true(S_ISFIFO(there.st_mode));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("nowhere", path), 0);
    assert_int_equal(mr_file_replace(path, "x", 1, &error), MR_EIO);
    assert_int_equal(lstat(path, &there), 0);
    assert_true(S_ISLNK(there.st_mode));
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_made_and_replaced, set_up, tear_down),
        cmocka_unit_test(a_path_that_cannot_be_written_is_named),
        cmocka_unit_test_setup_teardown(what_is_no_regular_file_stays, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
