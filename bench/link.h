/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slow link: a network namespace of our own, joined to this one by a pair of virtual interfaces whose far end sends at
 * a limited rate (tc, token bucket). Programs run inside it, servers outside. Needs root and iproute2. One thread.
 *
 *     status = mr_link_up(&link, 500, &error);
 *     mr_link_words(&link, &argv);        // before the program's own words
 *     ... servers listen on link.host ...
 *     mr_link_down(&link);
 */
#ifndef MR_BENCH_LINK_H
#define MR_BENCH_LINK_H

#include "base/error.h"
#include "bench/command.h"

#include <stdbool.h>

struct mr_link {
    bool is_up;
    char name[16]; /* of the namespace */
    char host[20]; /* our end's address */
};

/* MR_ENOTFOUND where this machine has no such thing, or we may not; nothing is left behind then. */
enum mr_status mr_link_up(struct mr_link *link, unsigned mbit_s, struct mr_error *error);
void mr_link_words(const struct mr_link *link, struct mr_words *argv);
void mr_link_down(struct mr_link *link); /* allowed on all zeros */

#endif
