/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/standing.h"

void mr_standing_reset(struct mr_standing *standing)
{
    *standing = (struct mr_standing){.stands = false};
}

static bool is_fast(const struct mr_standing *standing,
                    const struct mr_standing_look *look)
{
    uint64_t us = (look->now_ns - standing->since_ns) / MR_MICROSECOND_NS;

    return look->acked - standing->acked_then >=
           us * (MR_STANDING_RATE * MR_MICROSECOND_NS / MR_SECOND_NS);
}

static void end_period(struct mr_standing *standing, const struct mr_standing_look *look)
{
    uint64_t ns = look->now_ns - standing->since_ns;
    bool fast = is_fast(standing, look);

    standing->long_ns = fast && standing->was_long ? standing->long_ns + ns : 0;
    if (!fast)
        standing->stands = false;
    else if (standing->long_ns >= look->patience_ns)
        standing->stands = true;
    standing->since_ns = look->now_ns;
    standing->acked_then = look->acked;
    standing->was_long = false;
}

bool mr_standing_step(struct mr_standing *standing, const struct mr_standing_look *look)
{
    if (standing->since_ns == 0) {
        standing->since_ns = look->now_ns;
        standing->acked_then = look->acked;
    }
    standing->was_long |= look->is_long;
    if (look->held >= MR_STANDING_WINDOW)
        standing->behind_ns = look->now_ns;
    else if (look->now_ns - standing->behind_ns >= MR_STANDING_RELIEF_NS)
        standing->stands = false;
    if (look->now_ns - standing->since_ns >= MR_STANDING_PERIOD_NS)
        end_period(standing, look);
    return standing->stands && look->held >= MR_STANDING_WINDOW;
}
