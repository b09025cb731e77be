/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "pipeline/filters/reduce_private.h"

struct open_call {
    uint32_t path, site, first_child;
    uint16_t enter;
};

struct player {
    struct mr_reduce *reduce;
    struct mr_template *template;
    struct mr_template_call *calls;
    struct open_call open[MR_TEMPLATE_CALLS_MAX];
    uint32_t depth;
    uint64_t children[MR_TEMPLATE_CALLS_MAX]; /* as on a stream's child stack */
    uint32_t child_count;
    /* Calls that have ended, but not their callers: place, and depth. */
    uint8_t ended[MR_TEMPLATE_CALLS_MAX], ended_depths[MR_TEMPLATE_CALLS_MAX];
    uint32_t ended_count;
};

static uint16_t offset_of(uint32_t place)
{
    return (uint16_t)(place * sizeof(struct mr_event));
}

static bool play_open(struct player *player, const struct mr_event *event, uint32_t at)
{
    struct open_call *call = &player->open[player->depth];

    if (player->depth == MR_TEMPLATE_CALLS_MAX)
        return false;
    if (player->depth)
        call->path = mr_paths_find(&player->reduce->paths, call[-1].path, event->site, 0);
    call->site = event->site;
    call->first_child = player->child_count;
    call->enter = offset_of(at);
    player->depth++;
    return call->path != MR_PATH_NONE;
}

/* The list of the call at open[depth] becomes a node, which joins its caller's. False when it is new: it was not counted. */
static bool play_node(struct player *player)
{
    const struct open_call *call = &player->open[player->depth];
    const uint64_t *list = player->children + call->first_child;
    struct mr_template *template = player->template;
    struct mr_nodes *nodes = &player->reduce->nodes;
    uint32_t first = call->first_child, count = player->child_count - first;
    uint32_t known = nodes->count;

    template->node = mr_nodes_intern_hashed(
        nodes, mr_node_hash(nodes, call->site, list, count), call->site, list, count);
    if (template->node == MR_NODE_NONE || template->node >= known)
        return false;
    player->child_count = first;
    if (player->depth == 0)
        return true;
    template->peak = first > template->peak ? first : template->peak;
    if (first > call[-1].first_child && player->children[first - 1] == template->node)
        template->is_folded = true;
    else
        player->children[player->child_count++] = template->node;
    return true;
}

static bool play_close(struct player *player, const struct mr_event *event, uint32_t at)
{
    uint8_t place = (uint8_t)player->template->calls++;
    const struct open_call *call = &player->open[--player->depth];

    player->calls[place] =
        (struct mr_template_call){.path = call->path & MR_TEMPLATE_PATH_MASK,
                                  .enter = call->enter,
                                  .exit = offset_of(at)};
    while (player->ended_count &&
           player->ended_depths[player->ended_count - 1] > player->depth)
        player->calls[player->ended[--player->ended_count]].parent = place;
    player->ended[player->ended_count] = place;
    player->ended_depths[player->ended_count++] = (uint8_t)player->depth;
    return call->site == event->site && play_node(player);
}

/* Only the events of the whole call are marked, with what `flags` says. */
static bool play_event(struct player *player, const struct mr_event *event, uint32_t at,
                       uint16_t flags)
{
    if (event->kind == MR_EVENT_OPEN)
        return event->flags == (at == 0 ? flags : 0) && (at == 0 || player->depth) &&
               play_open(player, event, at);
    return event->kind == MR_EVENT_CLOSE && player->depth &&
           event->flags == (player->depth == 1 ? flags : 0) &&
           play_close(player, event, at);
}

bool mr_template_play(struct mr_reduce *reduce, uint32_t path,
                      const struct mr_event *events, uint32_t count,
                      struct mr_template *template, struct mr_template_call *calls)
{
    uint16_t flags = reduce->paths.nodes[path].flags & MR_PATH_ROOT ? MR_EVENT_ROOT : 0;
    struct player player;

    MR_ASSERT(count > 0 && count <= MR_TEMPLATE_EVENTS_MAX);
    *template = (struct mr_template){.node = MR_NODE_NONE};
    player.reduce = reduce;
    player.template = template;
    player.calls = calls;
    player.open[0].path = path;
    player.depth = player.child_count = player.ended_count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!play_event(&player, &events[i], i, flags))
            return false;
    if (player.depth)
        return false;
    calls[template->calls - 1].parent = (uint8_t) template->calls;
    return true;
}
