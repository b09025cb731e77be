/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/program.h on real files: this very test (no probe), a program with the hooks, and one linked
 * with the probe. The environment names the last two.
 */
#include "cli/program.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
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
    MR_UNUSED(state);
    return rmdir(directory);
}

static enum mr_program_probe probe_of(const char *path)
{
    struct mr_program program;

    assert_int_equal(mr_program_inspect(path, &program, NULL), MR_OK);
    return program.probe;
}

static void a_program_without_hooks_has_no_probe(void **state)
{
    struct mr_program program;

    MR_UNUSED(state);
    assert_int_equal(mr_program_inspect("/proc/self/exe", &program, NULL), MR_OK);
    assert_int_equal(program.probe, MR_PROBE_NONE);
    assert_false(program.is_static);
}

static void the_hooks_alone_are_seen(void **state)
{
    MR_UNUSED(state);
    assert_int_equal(probe_of(MR_HOOKED_PROGRAM), MR_PROBE_HOOKS);
}

static void the_library_is_seen(void **state)
{
    MR_UNUSED(state);
    assert_int_equal(probe_of(MR_LINKED_PROGRAM), MR_PROBE_LINKED);
}

static void make_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_EXCL | O_CLOEXEC, mode);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

static void of_a_script_and_of_a_broken_file_nothing_is_known(void **state)
{
    static const char *const texts[] = {"#!/bin/sh\n", "", "\177ELF", "\177ELF\2\1\1"};
    char path[96];

    MR_UNUSED(state);
    (void)snprintf(path, sizeof(path), "%s/file", directory);
    for (size_t i = 0; i < MR_ARRAY_COUNT(texts); i++) {
        enum mr_program_probe probe;

        make_file(path, texts[i], 0700);
        probe = probe_of(path);
        assert_true(probe == MR_PROBE_UNKNOWN || (i >= 2 && probe == MR_PROBE_NONE));
        assert_int_equal(unlink(path), 0);
    }
}

static void a_name_is_looked_up_as_a_shell_does(void **state)
{
    char path[PATH_MAX];
    char *saved = getenv("PATH");
    char list[128];
    char file[96];

    MR_UNUSED(state);
    saved = saved ? strdup(saved) : NULL;
    (void)snprintf(list, sizeof(list), "/nowhere:%s:/also/nowhere", directory);
    (void)snprintf(file, sizeof(file), "%s/a-program", directory);
    make_file(file, "#!/bin/sh\n", 0700);
    assert_int_equal(setenv("PATH", list, 1), 0);
    assert_int_equal(mr_program_find("a-program", path, NULL), MR_OK);
    assert_string_equal(path, file);
    assert_int_equal(mr_program_find("another", path, NULL), MR_ENOTFOUND);
    assert_int_equal(mr_program_find("", path, NULL), MR_ENOTFOUND);
    assert_int_equal(mr_program_find(file, path, NULL), MR_OK);
    if (saved)
        assert_int_equal(setenv("PATH", saved, 1), 0);
    free(saved);
    assert_int_equal(unlink(file), 0);
}

static void what_cannot_be_executed_is_named(void **state)
{
    struct mr_error error = MR_ERROR_NONE;
    char path[PATH_MAX];
    char file[96];

    MR_UNUSED(state);
    (void)snprintf(file, sizeof(file), "%s/data", directory);
    make_file(file, "text", 0600);
    assert_int_equal(mr_program_find(file, path, &error), MR_EREFUSED);
    assert_non_null(strstr(error.text, file));
    assert_int_equal(mr_program_find(directory, path, NULL), MR_EREFUSED);
    assert_int_equal(mr_program_find("./no/such/file", path, NULL), MR_ENOTFOUND);
    assert_int_equal(unlink(file), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_without_hooks_has_no_probe),
        cmocka_unit_test(the_hooks_alone_are_seen),
        cmocka_unit_test(the_library_is_seen),
        cmocka_unit_test_setup_teardown(of_a_script_and_of_a_broken_file_nothing_is_known,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_name_is_looked_up_as_a_shell_does, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_executed_is_named, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
