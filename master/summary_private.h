/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What summary.c and summary_*.c share.
 *
 * Use: while the functions' `line` is still the index of their site,
 *     status = mr_summary_make_counters(root, arena, summary);
 */
#ifndef MR_MASTER_SUMMARY_PRIVATE_H
#define MR_MASTER_SUMMARY_PRIVATE_H

#include "base/arena.h"
#include "master/summary.h"

/* MR_ENOMEM. Nothing where the model has no counters on spans. */
enum mr_status mr_summary_make_counters(const struct mr_model_root *root,
                                        struct mr_arena *arena,
                                        struct mr_summary *summary);

/* MR_ENOMEM. Walks all paths, unless cheap_ns is 0. */
enum mr_status mr_summary_make_cheap(const struct mr_model_root *root, uint64_t cheap_ns,
                                     struct mr_summary *summary);

/* MR_ENOMEM. */
enum mr_status mr_summary_make_traces(const struct mr_model_root *root, size_t limit,
                                      struct mr_arena *arena, struct mr_summary *summary);

/* Of all sources, by their index; `ledgers` is zeroed, and has one each. */
void mr_summary_make_ledgers(const struct mr_model_root *root,
                             const struct mr_summary_time *time,
                             struct mr_summary_ledger *ledgers,
                             struct mr_summary_ledger *all);

/* MR_ENOMEM. */
enum mr_status mr_summary_make_open(const struct mr_model_root *root, uint64_t now_ns,
                                    size_t limit, struct mr_arena *arena,
                                    struct mr_summary *summary);

/* The build id of a site's file; "" without one, or without memory. */
const char *mr_summary_build_of(const struct mr_model_site *site, struct mr_arena *arena);
/* has_twin of all functions, which are named. MR_ENOMEM. */
enum mr_status mr_summary_find_twins(const struct mr_summary *summary);

/* MR_ENOMEM. */
enum mr_status mr_summary_make_kept(const struct mr_model_root *root,
                                    struct mr_arena *arena, struct mr_summary *summary);

#endif
