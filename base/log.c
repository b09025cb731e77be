/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field              written by        read by       access
 * program, level     mr_log_init       every logger  plain: written once, before threads start
 * limit->next_ns     winner of a turn  every logger  relaxed; compare-exchange picks one winner
 *                                                    per interval
 * limit->suppressed  losers, winner    winner        relaxed: a count, ordered with nothing
 *
 * Progress: wait-free but for write(). Checked by: tests/unit/base/test_log.c
 */
#include "base/log.h"

#include "base/assert.h"
#include "base/atomics.h"
#include "base/clock.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The documented exception to "no mutable globals": see base/log.h. */
static struct {
    const char *program;
    enum mr_log_level level;
} settings = {NULL, MR_LOG_INFO};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void mr_log_init(const char *program, enum mr_log_level level)
{
    MR_ASSERT((size_t)level < MR_ARRAY_COUNT(level_names));
    settings.program = program;
    settings.level = level;
}

bool mr_log_enabled(enum mr_log_level level)
{
    return level <= settings.level;
}

/* The size of what snprintf() left in a field of `room` bytes. */
static size_t printed_size(int result, size_t room)
{
    if (result < 0)
        return 0;
    return (size_t)result < room ? (size_t)result : room - 1;
}

static void write_line(enum mr_log_level level, const char *suffix, const char *format,
                       va_list values)
{
    char line[MR_LOG_LINE_SIZE];
    const char *program = settings.program;
    int saved_errno = errno;
    size_t room = sizeof(line);
    size_t used =
        printed_size(snprintf(line, room, "millrace %s[%ld] %s: ", program ? program : "",
                              (long)getpid(), level_names[level]),
                     room);
    ssize_t ignored;

    used +=
        printed_size(vsnprintf(line + used, room - used, format, values), room - used);
    used += printed_size(snprintf(line + used, room - used, "%s", suffix), room - used);
    /* Text from the wire may stand in it: it must not drive the reader's terminal or forge a line. */
    used = mr_text_make_plain(line, used);
    line[used++] = '\n'; /* in place of the terminating zero */
    ignored = write(STDERR_FILENO, line, used);
    MR_UNUSED(ignored);
    errno = saved_errno;
}

void mr_log_write(enum mr_log_level level, const char *format, ...)
{
    va_list values;

    MR_ASSERT((size_t)level < MR_ARRAY_COUNT(level_names));
    if (!mr_log_enabled(level))
        return;
    va_start(values, format);
    write_line(level, "", format, values);
    va_end(values);
}

/*
 * Whether a line is due: next_ns is when it would be if all before it had come one interval behind the other, and `burst` lines may be ahead
 * of that (the generic cell rate algorithm, ITU-T I.371).
 */
static bool take_turn(struct mr_log_limit *limit)
{
    uint64_t now_ns = mr_clock_monotonic_ns();
    uint64_t next_ns = mr_load_relaxed(&limit->next_ns);

    while (next_ns <= now_ns + (limit->burst - 1) * limit->interval_ns) {
        uint64_t from_ns = next_ns > now_ns ? next_ns : now_ns;

        if (mr_compare_exchange_relaxed(&limit->next_ns, &next_ns,
                                        from_ns + limit->interval_ns))
            return true;
    }
    return false;
}

bool mr_log_limited(struct mr_log_limit *limit, enum mr_log_level level,
                    const char *format, ...)
{
    char suffix[64] = "";
    uint64_t suppressed;
    va_list values;

    MR_ASSERT((size_t)level < MR_ARRAY_COUNT(level_names));
    if (!mr_log_enabled(level))
        return false;
    if (!take_turn(limit)) {
        mr_add_relaxed(&limit->suppressed, UINT64_C(1));
        return false;
    }
    suppressed = atomic_exchange_explicit(&limit->suppressed, 0, memory_order_relaxed);
    if (suppressed)
        (void)snprintf(suffix, sizeof(suffix), " (and %" PRIu64 " more like it)",
                       suppressed);
    va_start(values, format);
    write_line(level, suffix, format, values);
    va_end(values);
    return true;
}
