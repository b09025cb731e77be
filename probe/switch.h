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
 * Every switch is cut into the streams (probe/cuts.h). mr_switch(): any thread of the
 * process but the writer, not in hooks or signal handlers; one at a time, the others
 * wait.
 */
#ifndef MR_PROBE_SWITCH_H
#define MR_PROBE_SWITCH_H

#include "base/compiler.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_probe;

struct mr_switch_request {
    bool is_on;
    /* Which functions (probe/sites.h); all without a choice. */
    const char *const *only, *const *except;
    uint32_t only_count, except_count;
    uint64_t min_size;
    const char *endpoint; /* NULL: the one there is */
};

struct mr_switch_result {
    bool is_on, was_on; /* anything, after and before */
    bool has_choice;
};

/*
 * MR_OK, also when nothing had to be changed. MR_EUSAGE: no endpoint, another than there
 * is, a choice that cannot be made; MR_ENOMEM; MR_ETIMEOUT: another switch does not end.
 */
MR_HIDDEN enum mr_status mr_switch(struct mr_probe *probe,
                                   const struct mr_switch_request *request,
                                   struct mr_switch_result *result,
                                   struct mr_error *error);

/* fork(): no switch is under way at the moment of the copy, if that can be had. */
MR_HIDDEN void mr_switch_before_fork(struct mr_probe *probe);
MR_HIDDEN void mr_switch_after_fork(struct mr_probe *probe, bool is_child);
/* The end of the program: from here on there is no switch. */
MR_HIDDEN void mr_switch_end(struct mr_probe *probe);

#endif
