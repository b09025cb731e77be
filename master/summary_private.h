/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What summary.c and summary_counters.c share.
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

#endif
