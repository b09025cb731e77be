/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On and off while the program runs, for all sites or for chosen ones: what the control
 * socket and mr_probe_switch() do.
 *
 *     struct mr_switch_request request = {.is_on = true, .endpoint = "tcp://host:7410"};
 *     struct mr_switch_result result;
 *     status = mr_switch(probe, &request, &result, &error);
 *
 * The first `on` of a process that was started without an endpoint starts writer and
 * helper; before it there is no ring. Off leaves them running: the source stays known to
 * its receiver, and on costs nothing anew.
 *
 * A choice is made among patchable functions and those with hooks (probe/sites.h); spans
 * record while anything does.
 *
 * Every switch is cut into the streams (probe/cuts.h). mr_switch(): any thread of the
 * process but the writer, not in hooks or signal handlers; one at a time, the others
 * wait.
 */
#ifndef MR_PROBE_SWITCH_H
#define MR_PROBE_SWITCH_H

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "probe/sites.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_probe;

struct mr_switch_request {
    bool is_on;
    /*
     * Which functions; all without a choice, but where the environment made one
     * (MILLRACE_ONLY ...): then on is what it chose.
     */
    const char *const *only, *const *except;
    uint32_t only_count, except_count;
    uint64_t min_size;
    const char *endpoint; /* NULL: the one there is */
};

#define MR_SWITCH_UNMATCHED_MAX 16
#define MR_SWITCH_GLOB_SIZE 128

struct mr_switch_result {
    bool is_on, was_on; /* anything, after and before */
    bool has_choice;
    struct mr_sites_result sites;         /* zero where nothing had to be changed */
    char refused_why[MR_ERROR_TEXT_SIZE]; /* why sites stayed as they were, or "" */
    uint32_t unmatched_count;             /* globs of a choice that match no function */
    char unmatched[MR_SWITCH_UNMATCHED_MAX][MR_SWITCH_GLOB_SIZE];
};

/*
 * MR_OK, also when nothing had to be changed. MR_EUSAGE: no endpoint, another than there
 * is; MR_ELIMIT: too many globs; MR_EIO: code cannot be written; MR_ENOMEM; MR_ETIMEOUT: another switch does not end.
 */
MR_HIDDEN enum mr_status mr_switch(struct mr_probe *probe,
                                   const struct mr_switch_request *request,
                                   struct mr_switch_result *result,
                                   struct mr_error *error);

/* One switch, or change of what is pruned, at a time. False: not within the time. */
#define MR_SWITCH_LOCK_NS (10 * MR_SECOND_NS)
MR_HIDDEN bool mr_switch_lock(struct mr_probe *probe, uint64_t timeout_ns);
MR_HIDDEN void mr_switch_unlock(struct mr_probe *probe);
/* Until what any thread records has a later time than now. */
MR_HIDDEN void mr_switch_wait_margin(const struct mr_probe *probe);

/* fork(): no switch is under way at the moment of the copy, if that can be had. */
MR_HIDDEN void mr_switch_before_fork(struct mr_probe *probe);
MR_HIDDEN void mr_switch_after_fork(struct mr_probe *probe, bool is_child);
/* The end of the program: from here on there is no switch. */
MR_HIDDEN void mr_switch_end(struct mr_probe *probe);

#endif
