/* SPDX-License-Identifier: Apache-2.0 */
/* mr_probe_nops(): a compiler's assembly with its calls made nops. */
#include "bench/probe.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char from[64], to[64];

static void write_text(const char *text)
{
    FILE *file;

    (void)snprintf(from, sizeof(from), "/tmp/millrace-nops-%ld.s", (long)getpid());
    (void)snprintf(to, sizeof(to), "/tmp/millrace-nops-%ld.out", (long)getpid());
    file = fopen(from, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void remove_files(void)
{
    (void)unlink(from);
    (void)unlink(to);
}

static void calls_become_as_many_bytes(void **state)
{
    char text[1000] = "";
    FILE *file;

    MR_UNUSED(state);
    write_text("f:\n1:\tcall\t*__fentry__@GOTPCREL(%rip)\n\tcall\tg\n\tcall\t__return__\n"
               "\tret\n");
    assert_int_equal(mr_probe_nops(from, to, NULL), MR_OK);
    file = fopen(to, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, "f:\n\t.byte 0xa9,0x10,0x20,0x30,0,0x90\n\tcall\tg\n"
                              "\t.byte 0xa9,0x10,0x20,0x30,0\n\tret\n");
    remove_files();
}

static void assembly_without_them_is_refused(void **state)
{
    struct mr_error error = MR_ERROR_NONE;

    MR_UNUSED(state);
    write_text("f:\n\tret\n");
    assert_int_equal(mr_probe_nops(from, to, &error), MR_ENOTFOUND);
    remove_files();
    mr_error_clear(&error);
    assert_int_equal(mr_probe_nops(from, to, &error), MR_EIO);
    remove_files();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_become_as_many_bytes),
        cmocka_unit_test(assembly_without_them_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
