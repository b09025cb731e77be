/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call trees that a recorded program could have made, each of a shape that has not come before: a Markov chain of first
 * order over the recording's path tree. What follows an enter, and what follows the exit of a call, is drawn as often as it
 * was recorded there, so that paths, and what they call first and next, are as frequent as in the program. One thread.
 *
 *     struct mr_markov *markov = mr_markov_new();
 *     mr_markov_learn(markov, 0, words, count);           // again and again
 *     status = mr_markov_seal(markov, 4096);
 *     count = mr_markov_make(markov, &random, &steps);    // again and again
 *     mr_markov_free(markov);
 */
#ifndef MR_BENCH_MARKOV_H
#define MR_BENCH_MARKOV_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_MARKOV_STACKS 64u
#define MR_MARKOV_CALLS_MAX (UINT32_C(1) << 20) /* then calls only end */

struct mr_markov;

/* An enter or exit of function 0, 1 ... in the order in which the recording had them. */
struct mr_markov_step {
    uint32_t function;
    bool is_exit;
};

/* This and what follows abort without memory. */
struct mr_markov *mr_markov_new(void);
/* Enters and exits of whole call trees on stack `stack` (below MR_MARKOV_STACKS), as words (net/wire.h), which it trusts. */
void mr_markov_learn(struct mr_markov *markov, uint32_t stack, const uint64_t *words,
                     uint64_t count);
/* All is learned. MR_ELIMIT: of more than `functions` functions; MR_ENOTFOUND: no call tree was among it. */
enum mr_status mr_markov_seal(struct mr_markov *markov, uint32_t functions);
uint32_t mr_markov_paths(const struct mr_markov *markov);
/*
 * A call tree whose folded shape (equal calls in a row are one) was not made before; after two million trees all are forgotten. `random`:
 * state of splitmix64. The steps are the model's, until the next call. Aborts, too, where hardly any tree can be made that is not among those.
 */
uint32_t mr_markov_make(struct mr_markov *markov, uint64_t *random,
                        const struct mr_markov_step **steps);
void mr_markov_free(struct mr_markov *markov); /* NULL allowed */

#endif
