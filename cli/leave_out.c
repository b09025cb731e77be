/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/leave_out.h"

#include "cli/render.h"

#include <stdbool.h>
#include <string.h>

#define ANONYMOUS "(anonymous namespace)"

/* Where the parameters of a C++ function begin, or something a list of globs cannot hold. */
static size_t bare_size(const char *name)
{
    size_t size = strcspn(name, "(,'");

    while (strncmp(name + size, ANONYMOUS, sizeof(ANONYMOUS) - 1) == 0) {
        size += sizeof(ANONYMOUS) - 1;
        size += strcspn(name + size, "(,'");
    }
    return size;
}

/* Whether a name before number `at` makes the same glob: it is of another build, or has other parameters. */
static bool is_again(const char *const *names, size_t at)
{
    size_t size = bare_size(names[at]);

    for (size_t i = 0; i < at; i++)
        if (bare_size(names[i]) == size && strncmp(names[i], names[at], size) == 0 &&
            !names[i][size] == !names[at][size])
            return true;
    return false;
}

/*
 * The names as globs: of a C++ function, without its parameters. "(unknown)" has none: "*" are
 * all functions.
 */
static enum mr_status put_globs(const char *const *names, size_t count,
                                struct mr_buffer *out)
{
    enum mr_status status = MR_OK;
    const char *comma = "";

    for (size_t i = 0; i < count && status == MR_OK; i++) {
        size_t size = bare_size(names[i]);

        if (size == 0 || is_again(names, i))
            continue;
        status = mr_render_line(out, "%s%.*s%s", comma, (int)size, names[i],
                                names[i][size] ? "*" : "");
        comma = ",";
    }
    return status;
}

static bool is_any_named(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bare_size(names[i]) > 0)
            return true;
    return false;
}

static enum mr_status put_by_name(const char *const *names, size_t count,
                                  struct mr_buffer *out)
{
    enum mr_status status;

    if (!is_any_named(names, count))
        return mr_buffer_append_text(out, "By name they cannot be left out, as there "
                                          "are no symbols of them.\nCount them only: ");
    status = mr_buffer_append_text(out, "Leave them out: MILLRACE_EXCEPT='");
    if (status == MR_OK)
        status = put_globs(names, count, out);
    if (status == MR_OK)
        status = mr_buffer_append_text(
            out, "'\n"
                 "or, while it runs: millrace attach PID --off --only NAME;\n"
                 "or count them only: ");
    return status;
}

enum mr_status mr_leave_out_put(const char *const *names, size_t count,
                                struct mr_buffer *out)
{
    enum mr_status status = put_by_name(names, count, out);

    if (status == MR_OK)
        status = mr_buffer_append_text(
            out,
            "MILLRACE_PRUNE=20ns, millrace attach PID --prune 20ns, "
            "millrace record --prune 20ns;\n"
            "or for good: MR_NEVER_TRACE before each, and with -finstrument-functions "
            "gcc's\n"
            "-finstrument-functions-exclude-file-list=PART_OF_PATH,... or clang's "
            "-finstrument-functions-after-inlining.\n");
    return status;
}
