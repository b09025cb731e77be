/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/ticks.h"

#include "base/assert.h"
#include "base/clock.h"
#include "net/wire.h"

bool mr_ticks_fit(const struct mr_clock_info *clock, uint64_t t)
{
    uint64_t ns;

    MR_ASSERT(clock->shift <= 63);
    if (t >= MR_TICKS_LIMIT)
        return false;
    ns = mr_clock_info_ns(clock, t); /* clamps to 0 and to 2^64 - 1 */
    return ns >= MR_SECOND_NS && ns / MR_SECOND_NS < UINT32_MAX;
}
