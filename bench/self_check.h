/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a harness sees what is there: a known time is added to what it measures, and it must find just that. Three answers, as
 * one on a noisy machine cannot tell, and says so. One thread.
 *
 *     which.added_ns = MR_SELF_CHECK_NS;                       // and the same case without
 *     passed = mr_self_check_tell("millrace bench probe", "each call", &difference);
 */
#ifndef MR_BENCH_SELF_CHECK_H
#define MR_BENCH_SELF_CHECK_H

#include "bench/stats.h"

#include <stdbool.h>

#define MR_SELF_CHECK_NS 100.0
#define MR_SELF_CHECK_SHARE 0.05 /* it may be off by so much */

enum mr_self_check { MR_SELF_CHECK_PASS, MR_SELF_CHECK_FAIL, MR_SELF_CHECK_NOISY };

/* Pass: the whole interval is near enough; fail: none of it is; noisy: the rest, and no value at all. */
enum mr_self_check mr_self_check_judge(const struct mr_stats *measured);

/* One line on stderr: what was measured of the time added to `what`, and the verdict. True: it passed. */
bool mr_self_check_tell(const char *command, const char *what,
                        const struct mr_stats *measured);

#endif
