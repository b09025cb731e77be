/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dictionary: the newest DICT item (docs/FORMAT.md section 5, kinds 16 to 21) of every
 * site, scope, source, outer frame, node and span counter that went by, each with a mark whether it has
 * been sent. What is known is not sent twice, what is new or better is; a new receiver
 * gets everything again.
 *
 *     site     replaced by one of higher quality             scope, outer, node, counter  the first one holds
 *     source   replaced by one of higher state (live < finished < died)
 *     note     replaced by one of higher version
 *
 *     switch (mr_dictionary_take(dictionary, &item)) {
 *     case MR_OK: break;                                     // known, or kept as unsent
 *     case MR_ELIMIT: send_at_once(&item); break;            // news that it has no room for
 *     }
 *     while (mr_dictionary_peek(dictionary, &item)) {
 *         send(&item);
 *         mr_dictionary_mark_sent(dictionary);
 *     }
 *
 * Nodes are as many as there are ever new shapes. Past node_bytes_max, a node that was
 * sent is forgotten: should it come by again, it is sent again, and a new receiver does
 * not get it until then. (Who needs nodes is the master, and it keeps them.)
 *
 * One thread at a time. Owns copies of the items. Bounded by items and bytes.
 */
#ifndef MR_PIPELINE_DICTIONARY_H
#define MR_PIPELINE_DICTIONARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "net/control.h"

struct mr_dictionary_limits {
    uint32_t items_max;    /* 0: the default */
    size_t bytes_max;      /* of the copies; 0: the default */
    size_t node_bytes_max; /* of the nodes among them that were sent; 0: the default */
};
#define MR_DICTIONARY_ITEMS_MAX (1u << 20)
#define MR_DICTIONARY_BYTES_MAX ((size_t)128 << 20)
#define MR_DICTIONARY_NODE_BYTES_MAX ((size_t)2 << 20)

struct mr_dictionary_stats {
    uint32_t items, unsent;
    size_t bytes;
    uint64_t beyond;    /* news that found no room */
    uint64_t forgotten; /* nodes, once sent */
    uint64_t
        collisions; /* items whose id is that of another thing: the first one holds */
};

struct mr_dictionary;

/* NULL limits: the defaults. MR_ENOMEM. */
enum mr_status mr_dictionary_new(const struct mr_dictionary_limits *limits,
                                 struct mr_dictionary **dictionary);
void mr_dictionary_free(struct mr_dictionary *dictionary); /* NULL allowed */

/*
 * Copies `item` if it is new or better. MR_OK; MR_ELIMIT when it is, and there is no room
 * (counted); MR_EUSAGE for an item that is not about what goes upward; MR_ENOMEM.
 */
enum mr_status mr_dictionary_take(struct mr_dictionary *dictionary,
                                  const struct mr_dict_item *item);

/*
 * The item that has waited longest, borrowed until the next call; false when none waits.
 */
bool mr_dictionary_peek(const struct mr_dictionary *dictionary,
                        struct mr_dict_item *item);
/* The peeked one is sent. */
void mr_dictionary_mark_sent(struct mr_dictionary *dictionary);
/*
 * For a new receiver: all items wait again, in the order in which they were first taken.
 */
void mr_dictionary_mark_all_unsent(struct mr_dictionary *dictionary);

void mr_dictionary_stats(const struct mr_dictionary *dictionary,
                         struct mr_dictionary_stats *stats);

#endif
