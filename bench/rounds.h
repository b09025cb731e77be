/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops of a benchmark, interleaved: each loop measures every case once, in an order drawn
 * anew, so that whatever the machine does in between meets all of them. A loop during which
 * the hypervisor took more of the processors' time than was allowed is discarded, counted, and made
 * again, at most as many as loops were asked for. One thread.
 *
 *     struct mr_rounds rounds = {.loops = 10, .steal_percent = 1, .case_count = n,
 *                                .measure = measure, .context = &bench};
 *     mr_rounds_run(&rounds);
 *     ... rounds.kept loops hold values; rounds.discarded; rounds.is_partial after Ctrl-C ...
 */
#ifndef MR_BENCH_ROUNDS_H
#define MR_BENCH_ROUNDS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_ROUNDS_CASES_MAX 512
#define MR_ROUNDS_SEED 1 /* of the orders drawn */

struct mr_rounds {
    uint32_t loops;
    uint32_t steal_percent; /* that a loop may have; 100: all are kept */
    size_t case_count;
    /*
     * Measures case `index` for loop `loop`; a loop that is made again has the same number.
     * What fails is the callee's to remember. MR_END: Ctrl-C came.
     */
    enum mr_status (*measure)(void *context, size_t index, uint32_t loop);
    void *context;
    const char *progress; /* name in a line per loop on stderr; NULL: none */
    /* Results. */
    uint32_t kept, discarded;
    double steal_max; /* of the loops kept */
    bool is_partial;
};

void mr_rounds_run(struct mr_rounds *rounds);

#endif
