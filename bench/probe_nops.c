/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference for "off" of door patchable: the compiler's own assembly with each call to
 * __fentry__ and __return__ replaced by the very bytes that the patcher leaves there when a
 * site is off. No probe is linked, nothing is patched; what differs from plain is these
 * bytes alone.
 */
#include "bench/probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_SIZE 4096

/*
 * How a call is written, and as many bytes in the patcher's off form (probe/patch.h):
 * test $imm32, %eax, and a one-byte nop behind it where the call has six bytes.
 */
static const struct {
    const char *call, *nops;
} forms[] = {
    {"\tcall\t__fentry__\n", "\t.byte 0xa9,0x10,0x20,0x30,0\n"},
    {"\tcall\t__return__\n", "\t.byte 0xa9,0x10,0x20,0x30,0\n"},
    {"\tcall\t*__fentry__@GOTPCREL(%rip)\n", "\t.byte 0xa9,0x10,0x20,0x30,0,0x90\n"},
    {"\tcall\t*__return__@GOTPCREL(%rip)\n", "\t.byte 0xa9,0x10,0x20,0x30,0,0x90\n"},
};

/* Behind a label: "1:\tcall\t__fentry__". */
static const char *after_label(const char *line)
{
    size_t digits = strspn(line, "0123456789");

    return digits > 0 && line[digits] == ':' ? line + digits + 1 : line;
}

static bool replace(const char *line, FILE *out)
{
    for (size_t i = 0; i < MR_ARRAY_COUNT(forms); i++)
        if (strcmp(after_label(line), forms[i].call) == 0)
            return fputs(forms[i].nops, out) >= 0;
    return false;
}

enum mr_status mr_probe_nops(const char *from, const char *to, struct mr_error *error)
{
    FILE *in = fopen(from, "re"), *out = fopen(to, "we");
    char line[LINE_MAX_SIZE];
    uint32_t replaced = 0;
    bool is_good = in && out;

    while (is_good && fgets(line, sizeof(line), in)) {
        if (replace(line, out))
            replaced++;
        else
            is_good = fputs(line, out) >= 0;
    }
    if (in)
        (void)fclose(in);
    if (out && fclose(out) != 0)
        is_good = false;
    if (!is_good)
        return mr_error_set_errno(error, MR_EIO, errno, "cannot make %s", to);
    if (replaced == 0)
        return mr_error_set(error, MR_ENOTFOUND,
                            "the compiler's assembly has no call that is known");
    return MR_OK;
}
