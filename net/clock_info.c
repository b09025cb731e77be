/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of a source, FORMAT.md section 3; and the names of the words that HELLO carries as text. */
#include "base/assert.h"
#include "base/compiler.h"
#include "net/control.h"

static const char *const clock_names[] = {"tsc", "cntvct", "monotonic"};
static const char *const policy_names[] = {"drop", "block", "overwrite"};

const char *mr_clock_kind_name(enum mr_clock_kind kind)
{
    MR_ASSERT((unsigned)kind < MR_ARRAY_COUNT(clock_names));
    return clock_names[kind];
}

const char *mr_policy_name(enum mr_policy policy)
{
    MR_ASSERT((unsigned)policy < MR_ARRAY_COUNT(policy_names));
    return policy_names[policy];
}

/* A time before 1970 or after 2554 comes out as the nearest that can be told. */
uint64_t mr_clock_info_ns(const struct mr_clock_info *clock, uint64_t ticks)
{
    mr_u128 ns, round_up = ((mr_u128)1 << clock->shift) - 1;

    if (ticks >= clock->ticks) {
        ns = (mr_u128)(ticks - clock->ticks) * clock->mult >> clock->shift;
        return ns > UINT64_MAX - clock->realtime_ns ? UINT64_MAX
                                                    : clock->realtime_ns + (uint64_t)ns;
    }
    ns = ((mr_u128)(clock->ticks - ticks) * clock->mult + round_up) >> clock->shift;
    return ns > clock->realtime_ns ? 0 : clock->realtime_ns - (uint64_t)ns;
}

const char *mr_note_name(enum mr_note note)
{
    static const char *const names[] = {
#define X(name, text, is_number) text,
        MR_NOTES(X)
#undef X
    };

    MR_ASSERT((unsigned)note < MR_ARRAY_COUNT(names));
    return names[note];
}

bool mr_note_is_number(enum mr_note note)
{
    static const bool are_numbers[] = {
#define X(name, text, is_number) is_number,
        MR_NOTES(X)
#undef X
    };

    MR_ASSERT((unsigned)note < MR_ARRAY_COUNT(are_numbers));
    return are_numbers[note];
}
