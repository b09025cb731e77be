/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/rounds.h"

#include "base/assert.h"
#include "base/clock.h"
#include "bench/machine.h"
#include "bench/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* Fisher and Yates, from a fixed seed: a run can be repeated. */
static void shuffle(uint32_t *order, size_t count, uint64_t *state)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = (size_t)(mr_random_next(state) % i);
        uint32_t kept = order[i - 1];

        order[i - 1] = order[other];
        order[other] = kept;
    }
}

/* On a terminal each case, in one line that is written over. */
static void tell_case(const struct mr_rounds *rounds, size_t done)
{
    if (!rounds->progress || !isatty(STDERR_FILENO))
        return;
    (void)fprintf(stderr, "\r%s: loop %" PRIu32 " of %" PRIu32 ", case %zu of %zu  ",
                  rounds->progress, rounds->kept + 1, rounds->loops, done + 1,
                  rounds->case_count);
}

static bool is_stolen(const struct mr_rounds *rounds, double steal)
{
    return steal > rounds->steal_percent / 100.0;
}

/* Each loop, and about how long the others will take. */
static void tell_loop(const struct mr_rounds *rounds, uint64_t started_ns, double steal)
{
    double seconds = (double)(mr_clock_monotonic_ns() - started_ns) / 1e9;
    uint32_t done = rounds->kept + rounds->discarded;

    if (!rounds->progress)
        return;
    (void)fprintf(stderr,
                  "%s%s: loop %" PRIu32 " of %" PRIu32 "%s, %zu cases, %.0f s so far",
                  isatty(STDERR_FILENO) ? "\r" : "", rounds->progress,
                  rounds->kept + (is_stolen(rounds, steal)), rounds->loops,
                  is_stolen(rounds, steal) ? " discarded for stolen time" : "",
                  rounds->case_count, seconds);
    if (rounds->kept < rounds->loops)
        (void)fprintf(stderr, ", about %.0f s more",
                      seconds / done * (rounds->loops - rounds->kept));
    (void)fputc('\n', stderr);
}

static enum mr_status run_loop(struct mr_rounds *rounds, const uint32_t *order)
{
    enum mr_status status = MR_OK;

    for (size_t i = 0; i < rounds->case_count && status != MR_END; i++) {
        tell_case(rounds, i);
        status = rounds->measure(rounds->context, order[i], rounds->kept);
    }
    return status;
}

void mr_rounds_run(struct mr_rounds *rounds)
{
    uint32_t order[MR_ROUNDS_CASES_MAX];
    uint64_t random = MR_ROUNDS_SEED, started_ns = mr_clock_monotonic_ns();

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
        if (is_stolen(rounds, steal)) {
            rounds->discarded++;
        } else {
            rounds->kept++;
            rounds->steal_max = steal > rounds->steal_max ? steal : rounds->steal_max;
        }
        tell_loop(rounds, started_ns, steal);
    }
}
