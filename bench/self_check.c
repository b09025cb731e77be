/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/self_check.h"

#include "base/assert.h"

#include <stdio.h>

enum mr_self_check mr_self_check_judge(const struct mr_stats *measured)
{
    const double least = MR_SELF_CHECK_NS * (1 - MR_SELF_CHECK_SHARE);
    const double most = MR_SELF_CHECK_NS * (1 + MR_SELF_CHECK_SHARE);

    MR_ASSERT(measured);
    if (measured->count == 0)
        return MR_SELF_CHECK_NOISY;
    if (measured->low >= least && measured->high <= most)
        return MR_SELF_CHECK_PASS;
    return measured->high < least || measured->low > most ? MR_SELF_CHECK_FAIL
                                                          : MR_SELF_CHECK_NOISY;
}

bool mr_self_check_tell(const char *command, const char *what,
                        const struct mr_stats *measured)
{
    static const char *const verdicts[] = {
        [MR_SELF_CHECK_PASS] = "pass: within 5 %",
        [MR_SELF_CHECK_FAIL] = "FAIL: more than 5 % off",
        [MR_SELF_CHECK_NOISY] =
            "too noisy: the interval is wider than 5 %; more loops, or a quieter machine",
    };
    enum mr_self_check verdict = mr_self_check_judge(measured);

    (void)fprintf(stderr,
                  "%s: %.0f ns added to %s are measured as %.2f ns (%.2f .. %.2f): %s\n",
                  command, MR_SELF_CHECK_NS, what, measured->median, measured->low,
                  measured->high, verdicts[verdict]);
    return verdict == MR_SELF_CHECK_PASS;
}
