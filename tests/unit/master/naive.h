/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model done naively, for comparison: flat arrays searched from the front, numbers
 * added one by one, functions summed by walking all paths. It makes random deltas and
 * takes them in itself while writing them, so that it shares no code with the model.
 *
 * Use:
 *     struct naive naive;
 *     naive_init(&naive, seed);
 *     naive_delta(&naive, &buffer);                // a random delta, taken in
 *     mr_model_apply_delta(model, sender, span_of(buffer), NULL);
 *     naive_check(&naive, root);                   // cmocka assertions
 */
#ifndef MR_TESTS_UNIT_MASTER_NAIVE_H
#define MR_TESTS_UNIT_MASTER_NAIVE_H

#include "base/buffer.h"
#include "master/model.h"
#include "net/delta.h"

#define NAIVE_SITES 40
#define NAIVE_SCOPES 3
#define NAIVE_SOURCES 4
#define NAIVE_PATHS_MAX 8000
#define NAIVE_DEPTH_MAX 5

struct naive_path {
    uint32_t parent, scope, site, flags, depth; /* parent MR_DELTA_NONE: a top */
    uint64_t ok, failed, incomplete;
    uint64_t self_sum, self_min, self_max, total_sum, total_min, total_max;
    uint64_t times_counted; /* into the histogram */
};

struct naive {
    uint64_t random;
    struct mr_id sites[NAIVE_SITES], scopes[NAIVE_SCOPES], sources[NAIVE_SOURCES];
    struct naive_path *paths;
    uint32_t path_count;
    uint64_t traces[MR_COVERAGE_COUNT];
    struct mr_ledger_entry ledger[NAIVE_SOURCES][2];
    uint64_t counter, window;
};

void naive_init(struct naive *naive, uint64_t seed);
void naive_fini(struct naive *naive);
uint64_t naive_random(struct naive *naive, uint64_t below);
/* Writes a random delta to `out` (cleared before) and takes it in. */
void naive_delta(struct naive *naive, struct mr_buffer *out);
/* Everything in `root` is as it is here. */
void naive_check(const struct naive *naive, const struct mr_model_root *root);

#endif
