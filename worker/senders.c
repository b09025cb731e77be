/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/senders.h"

#include "base/assert.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

static struct mr_lane_sender **bucket_of(struct mr_senders *senders, struct mr_id id)
{
    return &senders->buckets[mr_id_hash(id, senders->key) % MR_SENDERS_BUCKETS];
}

void mr_senders_init(struct mr_senders *senders, uint32_t limit)
{
    MR_ASSERT(limit > 0);
    memset(senders, 0, sizeof(*senders));
    senders->limit = limit;
    senders->key = mr_hash_key();
}

static bool forget(void *context, struct mr_lane_sender *sender)
{
    (void)context;
    (void)sender;
    return false;
}

void mr_senders_fini(struct mr_senders *senders)
{
    mr_senders_sweep(senders, forget, NULL);
    MR_ASSERT(senders->count == 0);
}

struct mr_lane_sender *mr_senders_find(const struct mr_senders *senders, struct mr_id id)
{
    struct mr_lane_sender *at =
        senders->buckets[mr_id_hash(id, senders->key) % MR_SENDERS_BUCKETS];

    while (at && !mr_id_equal(at->id, id))
        at = at->next;
    return at;
}

struct mr_lane_sender *mr_senders_add(struct mr_senders *senders, struct mr_id id)
{
    struct mr_lane_sender **bucket = bucket_of(senders, id);
    struct mr_lane_sender *sender;

    MR_DEBUG_ASSERT(!mr_senders_find(senders, id));
    if (senders->count >= senders->limit)
        return NULL;
    sender = calloc(1, sizeof(*sender));
    if (!sender)
        return NULL;
    sender->id = id;
    mr_buffer_init(&sender->held, SIZE_MAX);
    sender->next_sequence = 1;
    sender->next = *bucket;
    *bucket = sender;
    sender->behind = senders->first;
    senders->first = sender;
    senders->count++;
    return sender;
}

static void take_out(struct mr_senders *senders, struct mr_lane_sender *sender)
{
    struct mr_lane_sender **at = bucket_of(senders, sender->id);

    while (*at != sender)
        at = &(*at)->next;
    *at = sender->next;
    senders->count--;
}

void mr_senders_sweep(struct mr_senders *senders,
                      bool (*visit)(void *context, struct mr_lane_sender *sender),
                      void *context)
{
    struct mr_lane_sender **at = &senders->first;

    while (*at) {
        struct mr_lane_sender *sender = *at;

        if (visit(context, sender)) {
            at = &sender->behind;
            continue;
        }
        *at = sender->behind;
        take_out(senders, sender);
        mr_buffer_fini(&sender->held);
        free(sender);
    }
}
