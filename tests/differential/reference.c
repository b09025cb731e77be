/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of each stream, as a tree of structs. */
#include <stdlib.h>
#include <string.h>

#include "reference_private.h"

#define MODULES_FROM (UINT32_C(1) << 24)
#define PUSHES_MAX 4096u

enum { WHY_START, WHY_OPTION, WHY_LEARNED };

static void *need(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static uint32_t add_site(struct ref *ref, struct ref_id id, uint32_t flags)
{
    for (uint32_t i = 0; i < ref->site_count; i++)
        if (ref_id_compare(&ref->sites[i].id, &id) == 0) {
            ref->sites[i].flags |= flags;
            return i;
        }
    ref->sites = need(realloc(ref->sites, (ref->site_count + 1) * sizeof(*ref->sites)));
    ref->sites[ref->site_count] = (struct ref_site){.id = id, .flags = flags};
    return ref->site_count++;
}

struct ref *ref_new(const struct ref_options *options)
{
    struct ref *ref = need(calloc(1, sizeof(*ref)));

    ref->options = *options;
    (void)add_site(ref, ref_id_unknown(), 0);
    ref->rows = ref_rows_new();
    ref->parts_end = &ref->parts;
    return ref;
}

void ref_module(struct ref *ref, uint32_t epoch, uint32_t site_base, uint64_t address,
                uint32_t size, uint64_t bias, const char *build_id)
{
    if (ref->module_count == 64)
        abort();
    ref->modules[ref->module_count++] =
        (struct ref_module){epoch, site_base, size, address, bias, build_id};
}

static void name_wire(struct ref *ref, uint32_t wire, uint32_t site)
{
    ref->names = need(realloc(ref->names, (ref->name_count + 1) * sizeof(*ref->names)));
    ref->names[ref->name_count++] = (struct ref_wire_name){wire, site};
}

void ref_named(struct ref *ref, uint32_t wire, const char *name, uint32_t flags)
{
    uint32_t site = add_site(ref, ref_id_span(ref->options.app, name), flags);

    ref->sites[site].is_span = true;
    name_wire(ref, wire, site);
}

static uint32_t site_in(struct ref *ref, const struct ref_module *module, uint64_t offset)
{
    uint64_t address = module->address + offset;

    return add_site(ref, ref_id_function(module->build_id, address - module->bias), 0);
}

/* Of the chunk's epoch, or told later. */
uint32_t ref_site_of(struct ref *ref, uint32_t epoch, uint32_t wire)
{
    (void)epoch; /* modules of the test never go */
    for (uint32_t i = 0; i < ref->name_count; i++)
        if (ref->names[i].wire == wire)
            return ref->names[i].site;
    for (uint32_t i = 0; i < ref->module_count && wire >= MODULES_FROM; i++) {
        const struct ref_module *module = &ref->modules[i];

        if (wire >= module->site_base && wire - module->site_base < module->size) {
            uint32_t site = site_in(ref, module, wire - module->site_base);

            name_wire(ref, wire, site);
            return site;
        }
    }
    return REF_SITE_UNKNOWN;
}

uint32_t ref_site_at(struct ref *ref, uint32_t epoch, uint64_t address)
{
    (void)epoch;
    for (uint32_t i = 0; i < ref->module_count; i++) {
        const struct ref_module *module = &ref->modules[i];

        if (address >= module->address && address - module->address < module->size)
            return site_in(ref, module, address - module->address);
    }
    return REF_SITE_UNKNOWN;
}

struct ref_stream *ref_stream_of(struct ref *ref, uint32_t number)
{
    struct ref_stream **at = &ref->streams;

    while (*at && (*at)->number != number)
        at = &(*at)->next;
    if (!*at) {
        *at = need(calloc(1, sizeof(**at)));
        (*at)->number = number;
        (*at)->open = &(*at)->forest;
    }
    return *at;
}

void ref_stream(struct ref *ref, uint32_t stream, uint32_t start_site)
{
    ref_stream_of(ref, stream)->start_wire = start_site;
}

uint64_t ref_ns(const struct ref *ref, uint64_t ticks)
{
    const struct ref_options *options = &ref->options;
    uint64_t since, whole, low;

    if (ticks < options->clock_ticks)
        abort(); /* the test's clocks begin with the source */
    /* since * mult >> shift, the two halves of since apart */
    since = ticks - options->clock_ticks;
    low = (since & 0xffffffff) * options->clock_mult;
    whole = (since >> 32) * options->clock_mult + (low >> 32);
    return options->clock_realtime_ns +
           (options->clock_shift >= 32 ? whole >> (options->clock_shift - 32)
                                       : whole << (32 - options->clock_shift) |
                                             (low & 0xffffffff) >> options->clock_shift);
}

/* Where the stream stands. */

static bool is_base(const struct ref_stream *stream, const struct ref_call *call)
{
    return call == &stream->forest || call->is_outer;
}

static bool has_forced(const struct ref_stream *stream)
{
    for (const struct ref_call *call = stream->open; call != &stream->forest;
         call = call->parent)
        if (call->is_forced)
            return true;
    return false;
}

/* Every call tree that is open lost something. */
static void break_trees(struct ref_stream *stream)
{
    for (struct ref_call *call = stream->open; call != &stream->forest;
         call = call->parent)
        if (call->is_root)
            call->is_broken = true;
}

static bool is_long(const struct ref *ref, uint64_t since, uint64_t ns, uint64_t count)
{
    return count >= ref->options.learn_children && ns - since > ref->options.learn_ns;
}

static void announce(struct ref *ref, uint32_t site, uint32_t why)
{
    if (ref->sites[site].is_announced)
        return;
    ref->sites[site].is_announced = true;
    if (ref->outer_count == 256)
        abort();
    ref->outers[ref->outer_count++] = (struct ref_outer_told){site, why};
}

static bool is_place(const struct ref_stream *stream, uint32_t site)
{
    for (uint32_t i = 0; i < stream->place_count; i++)
        if (stream->places[i].site == site && stream->places[i].depth == stream->depth)
            return true;
    return false;
}

/* What a new call below `parent` is. */
static void classify(struct ref *ref, struct ref_stream *stream, struct ref_call *call)
{
    const struct ref_site *site = &ref->sites[call->site];
    bool is_known = call->site != REF_SITE_UNKNOWN;
    bool is_bottom = is_base(stream, call->parent);

    bool is_attached = !is_bottom && call->parent == stream->attach_call;

    if (((is_known && (site->flags & 1)) || is_attached) && !has_forced(stream)) {
        call->is_root = call->is_forced = true;
    } else if (is_bottom && is_known && (site->flags & 2)) {
        call->is_outer = true;
        announce(ref, call->site, WHY_OPTION);
    } else if (is_bottom && is_known && is_place(stream, call->site)) {
        call->is_outer = true;
    } else if (is_bottom && is_known && call->parent == &stream->forest &&
               call->site == stream->start) {
        call->is_outer = true;
        announce(ref, call->site, WHY_START);
    } else {
        call->is_root = is_bottom;
    }
    if (is_bottom && !call->is_outer && stream->is_unsure)
        call->is_broken = true;
}

static void enter(struct ref *ref, struct ref_stream *stream, uint32_t site,
                  bool is_unknown)
{
    struct ref_call *call = need(calloc(1, sizeof(*call)));
    struct ref_call *parent = stream->open;

    call->parent = parent;
    call->site = site;
    call->is_unknown = is_unknown;
    call->enter = ref_ns(ref, stream->ticks);
    classify(ref, stream, call);
    if (parent->last)
        parent->last->next = call;
    else
        parent->first = call;
    parent->last = call;
    if (!stream->began)
        stream->began = call->enter;
    if (is_base(stream, parent) && !call->is_outer)
        stream->heard = call->watched = call->enter;
    stream->open = call;
    stream->depth++;
    call->before = stream->ended;
    for (const struct ref_call *outer = parent; outer != &stream->forest;
         outer = outer->parent)
        call->before += !outer->is_outer;
    if (call->is_root)
        ref_link_root(ref, stream, call);
}

/* How many calls lie around it, up to the outer frames. */
static uint32_t level_of(const struct ref_stream *stream, const struct ref_call *call)
{
    uint32_t level = 0;

    for (; !is_base(stream, call->parent); call = call->parent)
        level++;
    return level;
}

/* A call begins or ends now: if nothing was heard of those that are watched, the innermost that may be is one of them. */
static void look(const struct ref *ref, struct ref_stream *stream)
{
    uint64_t ns = ref_ns(ref, stream->ticks);
    struct ref_call *call = stream->open;

    if (!ref->options.learns || is_base(stream, call) || ns <= stream->heard ||
        ns - stream->heard <= ref->options.learn_ns / 8)
        return;
    for (uint32_t level = level_of(stream, call); level >= REF_LEVELS; level--)
        call = call->parent;
    if (!call->watched)
        stream->heard = call->watched = ns;
}

static bool is_loop(const struct ref *ref, const struct ref_stream *stream,
                    const struct ref_call *call, uint64_t ns)
{
    if (!ref->options.learns || !is_long(ref, call->watched, ns, call->ended_children))
        return false;
    if (level_of(stream, call) > 0 && ns - call->watched <= call->watched - stream->began)
        return false;
    for (; !is_base(stream, call); call = call->parent)
        if (call->is_unknown || call->is_forced)
            return false;
    return true;
}

/* What ended in it is told, though there will be no trace of it. */
static void learn_root(struct ref *ref, struct ref_stream *stream, struct ref_call *root,
                       uint64_t ns)
{
    root->learned_at = ns;
    root->was_root = true;
    root->ended_calls = ref_count_ended(root);
    for (struct ref_call *call = stream->open; call != root->parent; call = call->parent)
        for (const struct ref_call *child = call->first; child; child = child->next)
            if (child->leave && ref_is_timed(child))
                root->ended_ns += child->leave - child->enter;
    ref_link_learned(ref, stream, root);
    if (root == stream->open && stream->place_count < REF_PLACES)
        stream->places[stream->place_count++] =
            (struct ref_place){stream->depth - 1, root->site};
}

static void learn(struct ref *ref, struct ref_stream *stream, uint64_t ns)
{
    uint32_t level = level_of(stream, stream->open);

    for (uint32_t i = 0; i <= level; i++) {
        struct ref_call *call = stream->open;

        for (uint32_t above = level; above > i; above--)
            call = call->parent;
        if (i == 0)
            learn_root(ref, stream, call, ns);
        call->is_learned = call->is_outer = true;
        call->is_root = false;
        announce(ref, call->site, WHY_LEARNED);
    }
}

/* `call` has ended in a call tree; what called it is innermost now. */
static void end_child(struct ref *ref, struct ref_stream *stream,
                      const struct ref_call *call, uint64_t ns)
{
    struct ref_call *parent = call->parent;

    if (!parent->watched) {
        if (!call->watched)
            return;
        parent->watched = call->watched;
        parent->ended_children = 0;
    }
    parent->ended_children++;
    stream->heard = ns;
    if (is_loop(ref, stream, parent, ns))
        learn(ref, stream, ns);
}

static uint32_t count_roots(const struct ref_stream *stream, const struct ref_call *call)
{
    uint32_t count = 0;

    for (; call != &stream->forest; call = call->parent)
        count += call->is_root;
    return count;
}

/* The innermost call ends. */
static void leave(struct ref *ref, struct ref_stream *stream)
{
    struct ref_call *call = stream->open;
    uint64_t ns = ref_ns(ref, stream->ticks);

    call->leave = ns;
    stream->ended += !call->is_outer;
    if (call->is_root)
        ref_link_root_over(ref, stream, call, count_roots(stream, call->parent));
    stream->open = call->parent;
    stream->depth--;
    if (call == stream->attach_call)
        ref_lose_links(ref, stream);
    if (call->is_outer) {
        if (!call->is_unwound && !call->is_incomplete)
            stream->is_unsure = false;
    } else if (is_base(stream, call->parent)) {
        if (stream->is_unsure) {
            stream->unsure_roots++;
            if (is_long(ref, stream->unsure_ns, ns, stream->unsure_roots))
                stream->is_unsure = false;
        }
    } else {
        end_child(ref, stream, call, ns);
    }
}

static void cut_to(struct ref *ref, struct ref_stream *stream, uint32_t depth,
                   bool is_unwound)
{
    while (stream->depth > depth) {
        if (is_unwound && !stream->open->is_unknown)
            stream->open->is_unwound = true;
        else
            stream->open->is_incomplete = true;
        leave(ref, stream);
    }
}

static bool is_full(const struct ref *ref, const struct ref_stream *stream)
{
    return stream->too_deep > 0 || stream->depth >= ref->options.depth_max;
}

static void go_too_deep(struct ref_stream *stream)
{
    if (stream->too_deep++ == 0)
        break_trees(stream);
}

/* Events. */

static void take_enter(struct ref *ref, struct ref_stream *stream, uint32_t site)
{
    look(ref, stream);
    if (!is_full(ref, stream)) {
        enter(ref, stream, site, false);
        return;
    }
    go_too_deep(stream);
    stream->lost[REF_BUDGET]++;
}

static void take_exit(struct ref *ref, struct ref_stream *stream, uint32_t site)
{
    struct ref_call *call = stream->open;

    look(ref, stream);
    if (stream->too_deep) {
        stream->too_deep--;
        stream->lost[REF_BUDGET]++;
        return;
    }
    while (call != &stream->forest && call->site != site && !call->is_unknown)
        call = call->parent;
    if (call == &stream->forest) {
        stream->unsure_ns = ref_ns(ref, stream->ticks);
        stream->unsure_roots = 0;
        return;
    }
    while (stream->open != call)
        cut_to(ref, stream, stream->depth - 1, true);
    call->site = site;
    leave(ref, stream);
}

/* Closes what is above the outer frames as they are now: what is learned while that is closed is closed, too. */
static void take_blind_loss(struct ref *ref, struct ref_stream *stream)
{
    const struct ref_call *call = stream->open;
    uint32_t base = stream->depth;

    for (; !is_base(stream, call); call = call->parent)
        base--;
    stream->too_deep = 0;
    stream->is_unsure = true;
    stream->unsure_ns = ref_ns(ref, stream->ticks);
    stream->unsure_roots = 0;
    cut_to(ref, stream, base, false);
}

static void take_loss(struct ref *ref, struct ref_stream *stream,
                      const struct ref_event *event)
{
    uint64_t pops = event->pops, depth;

    stream->lost[event->reason] += event->events;
    ref_lose_links(ref, stream);
    ref_lose_received(ref, stream);
    break_trees(stream);
    if (pops == REF_NESTING_UNKNOWN) {
        take_blind_loss(ref, stream);
        return;
    }
    for (; pops > 0 && stream->too_deep > 0; pops--)
        stream->too_deep--;
    depth = stream->depth;
    cut_to(ref, stream, (uint32_t)(depth > pops ? depth - pops : 0), false);
    for (uint64_t i = 0; i < event->pushes; i++) {
        if (i < PUSHES_MAX && !is_full(ref, stream)) {
            enter(ref, stream, REF_SITE_UNKNOWN, true);
            break_trees(stream);
        } else {
            go_too_deep(stream);
        }
    }
}

static void take_unwind(struct ref *ref, struct ref_stream *stream, uint64_t remains)
{
    uint64_t depth = stream->depth;

    if (stream->is_unsure || remains >= depth + stream->too_deep)
        return;
    stream->too_deep = remains > depth ? remains - depth : 0;
    if (remains < depth)
        cut_to(ref, stream, (uint32_t)remains, true);
}

void ref_take(struct ref *ref, struct ref_stream *stream, const struct ref_event *event)
{
    stream->last += event->kind == REF_LOSS    ? event->events
                    : event->kind == REF_OTHER ? event->value
                                               : 1;
    switch (event->kind) {
    case REF_ENTER:
        take_enter(ref, stream, event->site);
        break;
    case REF_EXIT:
        take_exit(ref, stream, event->site);
        break;
    case REF_LOSS:
        take_loss(ref, stream, event);
        break;
    case REF_STATUS:
        if (stream->open != &stream->forest && stream->too_deep == 0)
            stream->open->is_failed = event->value != 0;
        break;
    case REF_UNWIND:
        take_unwind(ref, stream, event->value);
        break;
    case REF_OTHER:
        break;
    }
}

static struct ref_call *call_at(struct ref_stream *stream, uint32_t depth)
{
    struct ref_call *call = stream->open;

    for (uint32_t above = stream->depth; above > depth + 1; above--)
        call = call->parent;
    return call;
}

/* The depth of the innermost open call that may be of the site. */
static bool find_open(struct ref_stream *stream, uint32_t site, uint32_t *depth)
{
    *depth = stream->depth;
    for (struct ref_call *call = stream->open; call != &stream->forest;
         call = call->parent) {
        --*depth;
        if (call->site == site || call->is_unknown)
            return true;
    }
    return false;
}

static bool is_landed_call(struct ref_stream *stream, const struct ref_landing *landing)
{
    if (landing->depth >= stream->depth)
        return false;
    const struct ref_call *call = call_at(stream, landing->depth);

    return call->was_landed_in && call->site == landing->site;
}

static bool forget_landing(struct ref_stream *stream, const struct ref_landing *frame,
                           uint32_t *depth)
{
    for (uint32_t i = stream->landing_count; i > 0; i--) {
        struct ref_landing found = stream->landings[i - 1];

        if (found.site != frame->site || found.tag != frame->tag)
            continue;
        for (uint32_t k = i; k < stream->landing_count; k++)
            stream->landings[k - 1] = stream->landings[k];
        stream->landing_count--;
        *depth = found.depth;
        return true;
    }
    return false;
}

void ref_leave_frame(struct ref *ref, struct ref_stream *stream,
                     const struct ref_landing *frame)
{
    uint32_t depth, landed;
    bool is_open = find_open(stream, frame->site, &depth);
    bool was_landed_in = forget_landing(stream, frame, &landed);

    if (stream->too_deep > 0) {
        stream->too_deep--;
        return;
    }
    if (was_landed_in && landed == stream->depth)
        return; /* its exit came */
    if (is_open)
        cut_to(ref, stream, depth, true);
}

static void keep_landing(struct ref_stream *stream, const struct ref_landing *frame,
                         uint32_t depth)
{
    uint32_t ignored, open = 0;

    (void)forget_landing(stream, frame, &ignored);
    for (uint32_t i = 0; i < stream->landing_count; i++)
        if (is_landed_call(stream, &stream->landings[i]))
            stream->landings[open++] = stream->landings[i];
    stream->landing_count = open;
    call_at(stream, depth)->was_landed_in = true;
    while (stream->landing_count > 0 &&
           stream->landings[stream->landing_count - 1].depth >= depth)
        stream->landing_count--;
    stream->landings[stream->landing_count++] =
        (struct ref_landing){frame->site, frame->tag, depth};
    if (stream->landing_count <= REF_LANDINGS)
        return;
    stream->landing_count--;
    for (uint32_t i = 0; i < REF_LANDINGS; i++)
        stream->landings[i] = stream->landings[i + 1];
}

bool ref_land(struct ref *ref, struct ref_stream *stream, const struct ref_landing *frame,
              bool is_all_above_left, bool is_first)
{
    uint32_t depth, left;

    if (!find_open(stream, frame->site, &depth))
        return false;
    if (is_all_above_left) {
        stream->too_deep = 0;
        for (left = depth + 1; left < stream->depth; left++)
            if (!ref->sites[call_at(stream, left)->site].is_span)
                break;
        cut_to(ref, stream, left, true);
    }
    if (is_first)
        keep_landing(stream, frame, depth);
    return true;
}

static void free_calls(struct ref_call *call)
{
    /* Not by recursion: a stream may be one call in the other for a million levels. */
    struct ref_call *at = call;

    while (at != call || call->first) {
        struct ref_call *child = at->first;

        if (child) {
            at->first = child->next;
            at = child;
            continue;
        }
        child = at;
        at = at->parent;
        free(child);
    }
}

void ref_end_stream(struct ref *ref, struct ref_stream *stream)
{
    stream->is_ended = true;
    stream->too_deep = 0;
    break_trees(stream);
    cut_to(ref, stream, 0, false);
    ref_end_links(ref, stream);
    ref_count_stream(ref, stream);
    ref_settle_parts(ref, stream);
    free_calls(&stream->forest);
    stream->forest.first = stream->forest.last = NULL;
}

void ref_open(struct ref *ref, struct test_text *text)
{
    ref_open_rows(ref, text);
}

void ref_end(struct ref *ref, struct test_text *text)
{
    for (struct ref_stream *stream = ref->streams; stream; stream = stream->next)
        if (stream->is_used && !stream->is_ended)
            ref_end_stream(ref, stream);
    ref_write_rows(ref, text);
    ref_write_parts(ref, text);
    while (ref->streams) {
        struct ref_stream *next = ref->streams->next;

        free(ref->streams);
        ref->streams = next;
    }
    free(ref->sites);
    free(ref->names);
    free(ref);
}
