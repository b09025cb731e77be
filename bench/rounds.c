/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/rounds.h"

#include "base/assert.h"
#include "bench/machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* Fisher and Yates, from a fixed seed: a run can be repeated. */
static void shuffle(uint32_t *order, size_t count, uint64_t *state)
{
    for (size_t i = count; i > 1; i--) {
        uint64_t value = *state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
        uint32_t kept;
        size_t other;

        value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
        other = (size_t)((value ^ value >> 31) % i);
        kept = order[i - 1];
        order[i - 1] = order[other];
        order[other] = kept;
    }
}

static void tell(const struct mr_rounds *rounds, size_t done)
{
    if (!rounds->progress || !isatty(STDERR_FILENO))
        return;
    (void)fprintf(stderr, "\r%s: loop %" PRIu32 " of %" PRIu32 ", case %zu of %zu  ",
                  rounds->progress, rounds->kept + 1, rounds->loops, done + 1,
                  rounds->case_count);
}

static enum mr_status run_loop(struct mr_rounds *rounds, const uint32_t *order)
{
    enum mr_status status = MR_OK;

    for (size_t i = 0; i < rounds->case_count && status != MR_END; i++) {
        tell(rounds, i);
        status = rounds->measure(rounds->context, order[i], rounds->kept);
    }
    return status;
}

void mr_rounds_run(struct mr_rounds *rounds)
{
    uint32_t order[MR_ROUNDS_CASES_MAX];
    uint64_t random = 1;

    MR_ASSERT(rounds->case_count <= MR_ROUNDS_CASES_MAX && rounds->measure);
    rounds->kept = rounds->discarded = 0;
    rounds->steal_max = 0;
    rounds->is_partial = false;
    for (size_t i = 0; i < rounds->case_count; i++)
        order[i] = (uint32_t)i;
    while (rounds->kept < rounds->loops && rounds->discarded < rounds->loops) {
        struct mr_machine_ticks before, after;
        double steal;

        shuffle(order, rounds->case_count, &random);
        mr_machine_ticks(&before);
        if (run_loop(rounds, order) == MR_END) {
            rounds->is_partial = true;
            break;
        }
        mr_machine_ticks(&after);
        steal = mr_machine_steal(&before, &after);
        if (steal > MR_ROUNDS_STEAL_MAX) {
            rounds->discarded++;
            continue;
        }
        rounds->kept++;
        rounds->steal_max = steal > rounds->steal_max ? steal : rounds->steal_max;
    }
    if (rounds->progress && isatty(STDERR_FILENO))
        (void)fputc('\n', stderr);
}
