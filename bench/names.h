/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that choose among names: "hooks,manual", "all", "none". Any thread.
 *
 *     status = mr_names_choose("--door", "hooks,manual", names, count, &mask, &error);
 */
#ifndef MR_BENCH_NAMES_H
#define MR_BENCH_NAMES_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Bit i of *mask: names[i] was chosen. A name that is "all" or "none" itself is the name. MR_EUSAGE names the word that is none of them, the
 * nearest one and all there are; also for an empty list.
 */
enum mr_status mr_names_choose(const char *option, const char *text,
                               const char *const *names, size_t count, uint32_t *mask,
                               struct mr_error *error);

/* Numbers from 1 to `max`: "1,2,8" or "1-8"; at most `room`. MR_EUSAGE. */
enum mr_status mr_names_numbers(const char *option, const char *text, uint32_t max,
                                uint32_t *numbers, size_t room, size_t *count,
                                struct mr_error *error);

#endif
