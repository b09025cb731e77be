/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/pace.h"

static uint64_t within(uint64_t value, uint64_t low, uint64_t high)
{
    if (value < low)
        return low;
    return value < high ? value : high;
}

/*
 * With clock hybrid a thread fills a ring so fast that its writer, going on at once, comes
 * so near to it that both wait for each other's cache lines, and stays there.
 */
static uint64_t after_hybrid(struct mr_pace *pace, const struct mr_pass *pass)
{
    uint64_t nap_ns;

    if (pass->bytes >= MR_PACE_BYTES) {
        pace->nap_ns = MR_PACE_MIN_HYBRID_NS;
        if (pass->has_more)
            return 0;
    }
    nap_ns = pace->nap_ns;
    pace->nap_ns = within(2 * nap_ns, MR_PACE_MIN_HYBRID_NS, MR_PACE_MAX_NS);
    return nap_ns;
}

/* One busy ring: the next look finds as much again, so it is made at once. */
static uint64_t after_one(struct mr_pace *pace, const struct mr_pass *pass)
{
    uint64_t nap_ns = pace->nap_ns;

    if (pass->bytes >= MR_PACE_BYTES) {
        pace->nap_ns = MR_PACE_MIN_NS;
        return 0;
    }
    pace->nap_ns = within(2 * nap_ns, MR_PACE_MIN_NS, MR_PACE_MAX_NS);
    return nap_ns;
}

/*
 * Of several, a look that is made at once finds a little of each: after enough the nap is half as long, and not left out, unless
 * one of them fills soon.
 */
static uint64_t after_several(struct mr_pace *pace, const struct mr_pass *pass)
{
    bool is_enough = pass->fills_soon || pass->bytes / pass->rings >= MR_PACE_BYTES;
    uint64_t nap_ns;

    if (is_enough)
        pace->nap_ns = within(pace->nap_ns / 2, MR_PACE_MIN_NS, MR_PACE_MAX_NS);
    if (pass->fills_soon)
        return 0;
    nap_ns = pace->nap_ns;
    if (!is_enough)
        pace->nap_ns = within(2 * nap_ns, MR_PACE_MIN_NS, MR_PACE_MAX_NS);
    return nap_ns;
}

uint64_t mr_pace_after(struct mr_pace *pace, const struct mr_pass *pass, bool is_hybrid)
{
    if (pace->nap_ns == 0)
        pace->nap_ns = is_hybrid ? MR_PACE_MIN_HYBRID_NS : MR_PACE_MIN_NS;
    if (is_hybrid)
        return after_hybrid(pace, pass);
    if (pass->has_more)
        return 0;
    return pass->rings > 1 ? after_several(pace, pass) : after_one(pace, pass);
}
