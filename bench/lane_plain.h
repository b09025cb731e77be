/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least that reconstruct and reduce could do, as one plain loop over words that trusts them: stack match, path tree
 * (count, sum, self, min, max, histogram at every exit), folded structural hash. Consed, it also interns the hash of every
 * distinct subtree, as whoever shares the nodes of shapes has to. It shares no code with pipeline/. Times stay ticks,
 * histograms have 8 linear parts per power of two, nothing is bounded or told: it is a bar, not a lane.
 *
 *     struct lane_plain *plain = lane_plain_new(false);
 *     lane_plain_run(plain, words, count);      // again and again
 *     lane_plain_calls(plain);                  // sum of all counts
 *     lane_plain_free(plain);
 */
#ifndef BENCH_LANE_PLAIN_H
#define BENCH_LANE_PLAIN_H

#include <stdbool.h>
#include <stdint.h>

struct lane_plain;

struct lane_plain *lane_plain_new(bool is_consed); /* aborts without memory */
/* The words that follow belong to another thread's stack: 0 at first, up to 63. */
void lane_plain_choose(struct lane_plain *plain, uint32_t number);
/* Nothing is open any more, on any stack. */
void lane_plain_reset(struct lane_plain *plain);
void lane_plain_run(struct lane_plain *plain, const uint64_t *words, uint64_t count);
uint64_t lane_plain_calls(const struct lane_plain *plain);
uint32_t lane_plain_paths(const struct lane_plain *plain);
/* After two million the hashes are forgotten: what comes again then counts again. */
uint64_t lane_plain_shapes(const struct lane_plain *plain);
uint64_t lane_plain_trees(const struct lane_plain *plain); /* the same; 0 if not consed */
void lane_plain_free(struct lane_plain *plain);            /* NULL allowed */

#endif
