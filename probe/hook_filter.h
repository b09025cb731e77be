/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters of probe/sites.h for functions built with -finstrument-functions. Their hooks
 * are always called; which of them record is a bit per site, looked at only while a filter
 * is in force. Without one, a hook pays nothing for all this.
 *
 *     mr_hook_filter_apply(windows, rules, count, &result);     // after each switch
 *     mr_hook_set_clock(mode);                                  // recording begins, ends
 *
 * A bit says that the function is an exception from what the first rule makes of all
 * functions; so functions without a name, such as those of stripped programs, follow that
 * rule. The map of 2^30 bits is 128 MiB of address space, of which pages are there where
 * bits were set: an eighth of the code that is filtered, at most.
 *
 * apply: under the lock of probe/sites.c; takes the loader's lock, reads files. set_clock:
 * whoever switches recording; wait-free.
 */
#ifndef MR_PROBE_HOOK_FILTER_H
#define MR_PROBE_HOOK_FILTER_H

#include "base/compiler.h"
#include "probe/modules.h"
#include "probe/site_rule.h"

/*
 * The rules, in order, of which the first is of all functions; none of them: nothing is
 * filtered. Counts the functions that match the last one in result->hooked. MR_ENOMEM.
 */
enum mr_status mr_hook_filter_apply(const struct mr_windows *windows,
                                    struct mr_site_rule *rules, uint32_t count,
                                    struct mr_sites_result *result);

/* Functions were pruned (probe/prune.h), or are recorded again, under these rules. MR_ENOMEM. */
enum mr_status mr_hook_filter_prune(const struct mr_windows *windows,
                                    struct mr_site_rule *rules, uint32_t count);

/* enum mr_clock_mode, or 0: nothing is recorded. */
MR_HIDDEN void mr_hook_set_clock(uint32_t clock);

#endif
