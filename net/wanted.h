/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests for exemplars: "keep the next traces of this entry point, path or shape whole" (docs/FORMAT.md section 4, WANTED).
 * The master tells its senders the whole list of open ones, they pass it on, and first-level workers answer with exemplars
 * that name the request (section 8, tag 23). A list replaces the one before it; what is no longer in it is not wanted any more.
 *
 *     request 7f..: 3 traces of entry point "GET /cart" that call parse > decode, of 20 ms or more, for the next 60 s
 *         entry = path of "GET /cart", node = zero, sites = {parse, decode}, depth = 2, min_ns = 20000000, count = 3
 *
 *     size = mr_wanted_put(&list, out);                 // out: MR_WANTED_SIZE_MAX
 *     if (mr_wanted_get(payload, &list) != MR_OK) ...   // bad bytes: nothing of it may be used
 *
 * Plain values, no memory of their own, no clock: `left_ms` is what is left of a request's time as it is sent, so that clocks
 * of hosts need not agree. Limits: MR_WANTED_MAX requests. All pure.
 */
#ifndef MR_NET_WANTED_H
#define MR_NET_WANTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id.h"
#include "base/span.h"
#include "base/status.h"

#define MR_WANTED_MAX 64u               /* open at a time */
#define MR_WANTED_COUNT_MAX 32u         /* traces of one request */
#define MR_WANTED_DEPTH_MAX 96u         /* calls of a path below its entry point */
#define MR_WANTED_LEFT_MS_MAX 86400000u /* a day */

struct mr_wanted {
    struct mr_id id;    /* of the request: 128 random bits */
    struct mr_id entry; /* path of the entry point; zero: any */
    struct mr_id node;  /* root node of the shape; zero: any */
    uint64_t min_ns;    /* the root call took at least so long */
    uint32_t left_ms;   /* 1 .. MR_WANTED_LEFT_MS_MAX */
    uint16_t count;     /* 1 .. MR_WANTED_COUNT_MAX */
    uint16_t depth;     /* of `sites`; more than 0 only where entry is given */
    /* The path below the entry point, outermost first: low halves of the sites' ids. */
    uint64_t sites[MR_WANTED_DEPTH_MAX];
};

struct mr_wanted_list {
    uint32_t count;
    struct mr_wanted items[MR_WANTED_MAX];
};

#define MR_WANTED_HEAD_SIZE 8u
#define MR_WANTED_ITEM_SIZE 72u /* without its sites, of 8 bytes each */
#define MR_WANTED_SIZE_MAX                                                               \
    (MR_WANTED_HEAD_SIZE +                                                               \
     MR_WANTED_MAX * (MR_WANTED_ITEM_SIZE + 8u * MR_WANTED_DEPTH_MAX))

/* The payload of a list that is sound, into `out`, which has room for it; its size. */
size_t mr_wanted_put(const struct mr_wanted_list *list, uint8_t *out);
/* MR_OK; MR_EFORMAT: a rule of FORMAT.md is broken, and `list` holds nothing of use. */
enum mr_status mr_wanted_get(struct mr_span payload, struct mr_wanted_list *list);
/* Whether both ask for the same, whatever is left of their time. */
bool mr_wanted_is_same(const struct mr_wanted *a, const struct mr_wanted *b);

#endif
