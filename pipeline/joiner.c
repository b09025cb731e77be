/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of parts; what a whole one comes to is joiner_shape.c's. */
#include "pipeline/joiner.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "pipeline/joiner_private.h"

enum mr_status mr_joiner_new(uint32_t parts_max, struct mr_joiner **out)
{
    struct mr_joiner *joiner = calloc(1, sizeof(*joiner));

    MR_ASSERT(parts_max > 0 && parts_max <= MR_JOINER_PARTS_LIMIT);
    if (!joiner)
        return MR_ENOMEM;
    joiner->parts_max = parts_max;
    joiner->free_slot = joiner->free_edge = MR_JOINER_NONE;
    joiner->oldest = joiner->newest = joiner->done = joiner->giving = MR_JOINER_NONE;
    mr_table_init(&joiner->keys, MR_TABLE_COUNT_MAX);
    *out = joiner;
    return MR_OK;
}

void mr_joiner_free(struct mr_joiner *joiner)
{
    if (!joiner)
        return;
    for (uint32_t i = 0; i < joiner->slot_count; i++)
        free(joiner->slots[i].out);
    free(joiner->slots);
    free(joiner->edges);
    free(joiner->given);
    mr_joiner_shape_fini(&joiner->shape);
    mr_table_fini(&joiner->keys);
    free(joiner);
}

static bool grow(void **items, uint32_t *capacity, uint32_t count, size_t size)
{
    uint32_t grown = *capacity ? 2 * *capacity : 64;
    void *moved;

    if (count < *capacity)
        return true;
    moved = realloc(*items, grown * size);
    if (!moved)
        return false;
    *items = moved;
    *capacity = grown;
    return true;
}

/* A slot of its own for the part; its edges are not known to others yet. */
static uint32_t take_slot(struct mr_joiner *joiner)
{
    void *slots = joiner->slots;
    uint32_t slot = joiner->free_slot;

    if (slot != MR_JOINER_NONE) {
        joiner->free_slot = joiner->slots[slot].next;
        return slot;
    }
    if (!grow(&slots, &joiner->slot_capacity, joiner->slot_count, sizeof(*joiner->slots)))
        return MR_JOINER_NONE;
    joiner->slots = slots;
    joiner->slots[joiner->slot_count].out = NULL;
    return joiner->slot_count++;
}

static void free_slot(struct mr_joiner *joiner, uint32_t slot)
{
    free(joiner->slots[slot].out);
    joiner->slots[slot] = (struct mr_joiner_slot){.next = joiner->free_slot};
    joiner->free_slot = slot;
    joiner->stats.waiting--;
}

static uint32_t take_edge(struct mr_joiner *joiner, struct mr_id key)
{
    void *edges = joiner->edges;
    uint32_t edge = joiner->free_edge;

    if (edge == MR_JOINER_NONE) {
        if (!grow(&edges, &joiner->edge_capacity, joiner->edge_count,
                  sizeof(*joiner->edges)))
            return MR_JOINER_NONE;
        joiner->edges = edges;
        edge = joiner->edge_count;
    }
    if (mr_table_put(&joiner->keys, key, edge) != MR_OK)
        return MR_JOINER_NONE;
    if (edge == joiner->edge_count)
        joiner->edge_count++;
    else
        joiner->free_edge = joiner->edges[edge].from;
    joiner->edges[edge] =
        (struct mr_joiner_edge){.from = MR_JOINER_NONE, .to = MR_JOINER_NONE};
    return edge;
}

/* Forgets one end; without any, the edge. */
static void leave_edge(struct mr_joiner *joiner, struct mr_id key, uint32_t slot,
                       bool is_from)
{
    uint32_t edge = mr_table_find(&joiner->keys, key);
    uint32_t *end;

    if (edge == MR_TABLE_NONE)
        return;
    end = is_from ? &joiner->edges[edge].from : &joiner->edges[edge].to;
    if (*end != slot)
        return; /* another's: this part came second */
    *end = MR_JOINER_NONE;
    if (joiner->edges[edge].from != MR_JOINER_NONE ||
        joiner->edges[edge].to != MR_JOINER_NONE)
        return;
    (void)mr_table_remove(&joiner->keys, key);
    joiner->edges[edge].from = joiner->free_edge;
    joiner->free_edge = edge;
}

static void leave_edges(struct mr_joiner *joiner, uint32_t slot)
{
    const struct mr_part *part = &joiner->slots[slot].part;

    if (part->in.kind != MR_EDGE_NONE)
        leave_edge(joiner, part->in.key, slot, false);
    for (uint32_t i = 0; i < part->out_count; i++)
        leave_edge(joiner, part->out[i].key, slot, true);
}

/*
 * Groups: a list of parts whose first one holds the numbers. Merging relabels the smaller
 * one: a part is relabelled at most log2(parts) times.
 */

static void unlink_group(struct mr_joiner *joiner, uint32_t group)
{
    struct mr_joiner_group *at = &joiner->slots[group].group;

    if (at->older == MR_JOINER_NONE)
        joiner->oldest = at->newer;
    else
        joiner->slots[at->older].group.newer = at->newer;
    if (at->newer == MR_JOINER_NONE)
        joiner->newest = at->older;
    else
        joiner->slots[at->newer].group.older = at->older;
}

static void link_newest(struct mr_joiner *joiner, uint32_t group)
{
    struct mr_joiner_group *at = &joiner->slots[group].group;

    at->older = joiner->newest;
    at->newer = MR_JOINER_NONE;
    if (joiner->newest == MR_JOINER_NONE)
        joiner->oldest = group;
    else
        joiner->slots[joiner->newest].group.newer = group;
    joiner->newest = group;
}

static void merge_groups(struct mr_joiner *joiner, uint32_t a, uint32_t b)
{
    struct mr_joiner_group *into, *from;

    if (a == b)
        return;
    if (joiner->slots[a].group.count < joiner->slots[b].group.count) {
        uint32_t kept = a;

        a = b;
        b = kept;
    }
    into = &joiner->slots[a].group;
    from = &joiner->slots[b].group;
    unlink_group(joiner, b);
    for (uint32_t i = b; i != MR_JOINER_NONE; i = joiner->slots[i].next)
        joiner->slots[i].of = a;
    joiner->slots[into->last].next = b;
    into->last = from->last;
    into->count += from->count;
    into->missing += from->missing;
    if (from->touched_ns > into->touched_ns)
        into->touched_ns = from->touched_ns;
}

/* One end of an edge. MR_OK; MR_ESTATE when another part has it; MR_ENOMEM. */
static enum mr_status meet_edge(struct mr_joiner *joiner, struct mr_id key, uint32_t slot,
                                bool is_from)
{
    uint32_t edge = mr_table_find(&joiner->keys, key), other;
    uint32_t *end;

    if (edge == MR_TABLE_NONE)
        edge = take_edge(joiner, key);
    if (edge == MR_JOINER_NONE)
        return MR_ENOMEM;
    end = is_from ? &joiner->edges[edge].from : &joiner->edges[edge].to;
    joiner->slots[joiner->slots[slot].of].group.missing++;
    if (*end != MR_JOINER_NONE)
        return MR_ESTATE; /* missing for good */
    *end = slot;
    other = is_from ? joiner->edges[edge].to : joiner->edges[edge].from;
    if (other == MR_JOINER_NONE)
        return MR_OK;
    merge_groups(joiner, joiner->slots[slot].of, joiner->slots[other].of);
    joiner->slots[joiner->slots[slot].of].group.missing -= 2;
    return MR_OK;
}

/* Whether the part is here already: a part has at least one edge, and has an end of it. */
static bool is_here(const struct mr_joiner *joiner, const struct mr_part *part)
{
    bool has_in = part->in.kind != MR_EDGE_NONE;
    uint32_t edge, slot;

    if (!has_in && part->out_count == 0)
        return false;
    edge = mr_table_find(&joiner->keys, has_in ? part->in.key : part->out[0].key);
    if (edge == MR_TABLE_NONE)
        return false;
    slot = has_in ? joiner->edges[edge].to : joiner->edges[edge].from;
    return slot != MR_JOINER_NONE && mr_id_equal(joiner->slots[slot].part.id, part->id);
}

static enum mr_status meet_edges(struct mr_joiner *joiner, uint32_t slot)
{
    const struct mr_part *part = &joiner->slots[slot].part; /* edges grow, slots do not */
    const struct mr_part_edge *out = joiner->slots[slot].out;
    uint32_t count = out ? part->out_count : 0;
    enum mr_status status = MR_OK;

    if (part->in.kind != MR_EDGE_NONE)
        status = meet_edge(joiner, part->in.key, slot, false);
    if (status == MR_ESTATE)
        joiner->slots[slot].is_second = true;
    for (uint32_t i = 0; i < count && status != MR_ENOMEM; i++) {
        status = meet_edge(joiner, out[i].key, slot, true);
        if (status == MR_ESTATE)
            joiner->slots[slot].second_outs |= UINT64_C(1) << i;
    }
    return status == MR_ENOMEM ? status : MR_OK;
}

static bool copy_part(struct mr_joiner_slot *slot, const struct mr_part *part)
{
    size_t size = part->out_count * sizeof(*slot->out);

    slot->out = size ? malloc(size) : NULL;
    if (size && !slot->out)
        return false;
    if (size)
        memcpy(slot->out, part->out, size);
    slot->part = *part;
    slot->part.out = slot->out;
    return true;
}

static void end_group(struct mr_joiner *joiner, uint32_t group)
{
    unlink_group(joiner, group);
    joiner->slots[group].group.newer = MR_JOINER_NONE;
    joiner->slots[group].group.older = joiner->done; /* here: the next that is done */
    joiner->done = group;
}

enum mr_status mr_joiner_add(struct mr_joiner *joiner, const struct mr_part *part,
                             uint64_t now_ns, uint32_t *number)
{
    struct mr_joiner_group *group;
    uint32_t slot;

    MR_ASSERT(joiner->done == MR_JOINER_NONE); /* all was taken */
    if (number)
        *number = MR_JOINER_NONE;
    if (is_here(joiner, part)) {
        joiner->stats.again++;
        return MR_OK;
    }
    if (joiner->stats.waiting == joiner->parts_max)
        return MR_ELIMIT;
    slot = take_slot(joiner);
    if (slot == MR_JOINER_NONE || !copy_part(&joiner->slots[slot], part))
        return MR_ENOMEM;
    joiner->stats.waiting++;
    joiner->stats.parts++;
    joiner->slots[slot].of = slot;
    joiner->slots[slot].next = MR_JOINER_NONE;
    joiner->slots[slot].is_second = false;
    joiner->slots[slot].second_outs = 0;
    joiner->slots[slot].group =
        (struct mr_joiner_group){.last = slot, .count = 1, .touched_ns = now_ns};
    link_newest(joiner, slot);
    if (meet_edges(joiner, slot) != MR_OK)
        return MR_ENOMEM;
    group = &joiner->slots[joiner->slots[slot].of].group;
    group->touched_ns = now_ns;
    unlink_group(joiner, joiner->slots[slot].of);
    link_newest(joiner, joiner->slots[slot].of);
    if (group->missing == 0)
        end_group(joiner, joiner->slots[slot].of);
    if (number)
        *number = slot;
    return MR_OK;
}

/* Counted where the trace ends, and so once: parts that are given away meet again there. */
static uint32_t count_doubles(const struct mr_joiner_slot *slot)
{
    uint32_t count = slot->is_second;

    for (uint32_t i = 0; i < slot->part.out_count; i++)
        count += (uint32_t)(slot->second_outs >> i & 1);
    return count;
}

/* Frees what take() lent the caller. */
static void free_lent(struct mr_joiner *joiner)
{
    for (uint32_t i = 0; i < joiner->lent_count; i++)
        free_slot(joiner, joiner->shape.slots[i]);
    joiner->lent_count = 0;
}

bool mr_joiner_take(struct mr_joiner *joiner, struct mr_joined *joined)
{
    uint32_t group = joiner->done;

    free_lent(joiner);
    if (group == MR_JOINER_NONE)
        return false;
    if (!mr_joiner_shape(joiner, group, joined))
        return false;
    joiner->done = joiner->slots[group].group.older;
    for (uint32_t i = 0; i < joined->part_count; i++) {
        joiner->stats.doubles += count_doubles(&joiner->slots[joined->slots[i]]);
        leave_edges(joiner, joined->slots[i]);
    }
    joiner->lent_count = joined->part_count;
    joiner->stats.joined += joined->status != MR_PART_INCOMPLETE;
    return true;
}

bool mr_joiner_end_oldest(struct mr_joiner *joiner)
{
    if (joiner->oldest == MR_JOINER_NONE)
        return false;
    end_group(joiner, joiner->oldest);
    return true;
}

uint32_t mr_joiner_end(struct mr_joiner *joiner, uint64_t before_ns)
{
    uint32_t count = 0;

    while (joiner->oldest != MR_JOINER_NONE &&
           joiner->slots[joiner->oldest].group.touched_ns < before_ns) {
        end_group(joiner, joiner->oldest);
        count++;
    }
    return count;
}

/* The next group to be given, part by part: out of the list, so that nothing joins it. */
static bool begin_giving(struct mr_joiner *joiner, uint64_t before_ns)
{
    uint32_t group = joiner->oldest;

    if (group == MR_JOINER_NONE || joiner->slots[group].group.touched_ns >= before_ns)
        return false;
    unlink_group(joiner, group);
    for (uint32_t i = group; i != MR_JOINER_NONE; i = joiner->slots[i].next)
        leave_edges(joiner, i);
    joiner->giving = group;
    return true;
}

bool mr_joiner_give(struct mr_joiner *joiner, uint64_t before_ns, struct mr_part *part)
{
    uint32_t slot = joiner->giving;

    free(joiner->given);
    joiner->given = NULL;
    if (slot == MR_JOINER_NONE) {
        if (!begin_giving(joiner, before_ns))
            return false;
        slot = joiner->giving;
    }
    joiner->giving = joiner->slots[slot].next;
    *part = joiner->slots[slot].part;
    joiner->given = joiner->slots[slot].out; /* the caller's until its next call */
    joiner->slots[slot].out = NULL;
    free_slot(joiner, slot);
    return true;
}

void mr_joiner_stats(const struct mr_joiner *joiner, struct mr_joiner_stats *stats)
{
    *stats = joiner->stats;
    stats->waiting -= joiner->lent_count;
}
