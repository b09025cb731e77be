/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages for the person who runs a millrace command: one line to stderr each,
 *     millrace worker[4711] warn: 127.0.0.1:4000: checksum does not match at offset 96
 * written by one write(), so lines of several threads and processes do not mix. Never
 * used by the probe, which stays silent in other people's programs.
 *
 * Any thread may log. mr_log_init() is called once, before threads start. Level and
 * program name are the one process-wide setting of base (a documented exception to "no
 * mutable globals": a log argument through every function would serve nobody).
 *
 * Use:
 *     mr_log_init("worker", MR_LOG_INFO);
 *     mr_log_warn("%s: connection closed: %s", peer, error.text);
 *
 *     static struct mr_log_limit limit = MR_LOG_LIMIT(MR_SECOND_NS);
 *     mr_log_limited(&limit, MR_LOG_WARN, "%s: late data dropped", peer);
 */
#ifndef MR_BASE_LOG_H
#define MR_BASE_LOG_H

#include "base/compiler.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum mr_log_level { MR_LOG_ERROR, MR_LOG_WARN, MR_LOG_INFO, MR_LOG_DEBUG };

/* The levels as an options table's choices, in the order of enum mr_log_level. */
#define MR_LOG_CHOICES "error|warn|info|debug"

#define MR_LOG_LINE_SIZE 1024 /* bytes of one line; longer messages are cut */

/*
 * Sets the name that stands in each line ("worker"; borrowed, must outlive all logging)
 * and the last level that is shown. Before the call: no name, MR_LOG_INFO. Not safe while
 * other threads log.
 */
void mr_log_init(const char *program, enum mr_log_level level);

/* True when messages of `level` are shown: for guarding what is expensive to format. */
bool mr_log_enabled(enum mr_log_level level);

/*
 * Writes one line if `level` is shown. Keeps errno. What is not plain in it (base/text.h) becomes '?'.
 */
MR_PRINTF(2, 3) void mr_log_write(enum mr_log_level level, const char *format, ...);

#define mr_log_error(...) mr_log_write(MR_LOG_ERROR, __VA_ARGS__)
#define mr_log_warn(...) mr_log_write(MR_LOG_WARN, __VA_ARGS__)
#define mr_log_info(...) mr_log_write(MR_LOG_INFO, __VA_ARGS__)
#define mr_log_debug(...) mr_log_write(MR_LOG_DEBUG, __VA_ARGS__)

/*
 * One place's budget: at most one line per interval, and at first, or after some silence, `burst` at once; the next line says how
 * many were left out.
 */
struct mr_log_limit {
    uint64_t interval_ns, burst;
    _Atomic uint64_t next_ns;    /* monotonic; 0: the first line goes through */
    _Atomic uint64_t suppressed; /* lines left out since the last one shown */
};

#define MR_LOG_LIMIT(interval) MR_LOG_LIMIT_BURST(interval, 1)
#define MR_LOG_LIMIT_BURST(interval, lines)                                              \
    {                                                                                    \
        .interval_ns = (interval), .burst = (lines), .next_ns = 0, .suppressed = 0       \
    }

/* As mr_log_write(), within `limit`. Returns true if the line was written. Any thread. */
MR_PRINTF(3, 4)
bool mr_log_limited(struct mr_log_limit *limit, enum mr_log_level level,
                    const char *format, ...);

#endif
