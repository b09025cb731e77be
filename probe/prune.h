/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pruning (MILLRACE_PRUNE, `millrace attach --prune`): functions that are called often and
 * do little are recorded no more, but counted (probe/pruned.h). Off unless asked for.
 *
 *     mr_prune_start(probe, remark);                   // the constructor
 *     mr_prune_look(probe);                            // the helper, ten times a second
 *     status = mr_prune_set(probe, 50, &error);        // a request: median below 50 ns
 *     status = mr_prune_set(probe, 0, &error);         // off: all are recorded again
 *
 * A function is pruned where two looks running find that of the calls that the writer looked
 * at (probe/site_stats.h) at least MR_PRUNE_CALLS_MIN, and one in MR_PRUNE_SHARE, are its
 * own, and more than five in eight of those take less than the limit, so that its median
 * does. It stays so until it is taken back by request; then its statistics begin anew. So
 * nothing flaps. MR_PRUNE_MARK_SITES functions at most are pruned per look, those called
 * most first; MR_PRUNED_MAX in the life of a process.
 *
 * Never pruned: manual spans, whose cost is their record, not a call; patchable functions
 * with MR_ALWAYS_TRACE; names that match MILLRACE_PRUNE_EXCEPT; functions outside every
 * window of sites.
 *
 * look: the helper, with the loader kept for it. set: any thread but the writer and the
 * helper, not in hooks or signal handlers. One change at a time, of these and of switches.
 */
#ifndef MR_PROBE_PRUNE_H
#define MR_PROBE_PRUNE_H

#include "base/compiler.h"
#include "base/error.h"
#include "probe/prune_marks.h"
#include "probe/site_rule.h"
#include "probe/site_stats.h"

#define MR_PRUNE_CALLS_MIN 2000
#define MR_PRUNE_SHARE 256
/* Bodies shorter than this cost more to trace than to run; as `millrace report` has it. */
#define MR_PRUNE_CHEAP_NS 20

#define MR_PRUNE_NS_MAX UINT64_C(1000000000)

struct mr_probe;

struct mr_prune {
    _Atomic uint64_t limit_ns; /* 0: off */
    struct mr_site_stats stats;
    struct mr_site_rule except;
    bool has_except;
    uint64_t generation; /* of modules at the last look; the helper's */
    uint32_t seen_count, seen[MR_PRUNE_MARK_SITES]; /* by the last look; the helper's */
};

/* Says by `remark` what was asked for and cannot be had. */
MR_HIDDEN void mr_prune_start(struct mr_probe *probe, void (*remark)(const char *text));
MR_HIDDEN void mr_prune_look(struct mr_probe *probe);
/*
 * MR_EUSAGE: a flight recorder, or a clock too coarse for that limit; MR_ETIMEOUT: a switch
 * is under way that does not end; MR_EIO: code cannot be written; MR_ENOMEM.
 */
MR_HIDDEN enum mr_status mr_prune_set(struct mr_probe *probe, uint64_t limit_ns,
                                      struct mr_error *error);
/* In a forked child, whose code is as its parent's: statistics and counts begin anew. */
MR_HIDDEN void mr_prune_after_fork(struct mr_probe *probe);

#endif
