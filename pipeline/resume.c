/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream:  base_event, last, reduced, lost_sum, closed, last_ns u64; trace_count u32 (and UNSURE, LANDED, LISTS), that many u64; depth u32, that
 *          many {enter_ns, child_ns u64, site 16 bytes, flags u16}; of LANDED: count u32, that many {at u32, tag u16}; of LISTS: resume_lists.c;
 *          then resume_links.c, if it has any
 * site:    0, path, build-id, offset u64 (a function) or 1, app, name, file, line u32, flags u8 (a span); strings: size u32, bytes
 */
#include "pipeline/resume.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/bytes.h"
#include "net/ids.h"

#define CALL_SIZE 34u
#define STREAM_SIZE 56u
/* Of trace_count. An older version, which knows none of them, begins the stream anew. */
#define UNSURE (UINT32_C(1) << 31) /* the base is */
#define LANDED (UINT32_C(1) << 30) /* there are landings */
#define LISTS (UINT32_C(1) << 29)  /* there are lists */
#define LANDING_SIZE 6u
#define SITES_MAX (1u << 20)
#define SITE_BYTES_MAX (64u << 10)
#define KIND_FUNCTION 0u
#define KIND_SPAN 1u

struct mr_resume *mr_resume_new(const struct mr_resume_sites *sites)
{
    struct mr_resume *resume = calloc(1, sizeof(*resume));

    if (!resume)
        return NULL;
    mr_resume_sites_init(&resume->own_sites);
    resume->sites = sites ? sites : &resume->own_sites;
    return resume;
}

static void free_stream(struct mr_resume_stream *stream)
{
    free(stream->calls);
    mr_resume_free_lists(stream->lists);
    mr_resume_free_links(stream->links);
}

void mr_resume_free(struct mr_resume *resume)
{
    if (!resume)
        return;
    for (uint32_t i = 0; i < resume->stream_count; i++)
        free_stream(&resume->streams[i]);
    free(resume->streams);
    mr_resume_sites_fini(&resume->own_sites);
    free(resume);
}

enum mr_status mr_resume_put_source(struct mr_buffer *buffer,
                                    const struct mr_resume_source *source)
{
    return mr_buffer_append(buffer, source, sizeof(*source));
}

enum mr_status mr_resume_set_source(struct mr_resume *resume, struct mr_span bytes)
{
    if (bytes.size != sizeof(resume->source))
        return MR_EFORMAT;
    memcpy(&resume->source, bytes.data, bytes.size);
    resume->has_source = true;
    return MR_OK;
}

static size_t landings_size(const struct mr_resume_stream *stream)
{
    return stream->landing_count ? 4 + (size_t)LANDING_SIZE * stream->landing_count : 0;
}

static void put_landings(const struct mr_resume_stream *stream, uint8_t *at)
{
    if (stream->landing_count == 0)
        return;
    at = mr_put_u32(at, stream->landing_count);
    for (uint32_t i = 0; i < stream->landing_count; i++) {
        at = mr_put_u32(at, stream->landings[i].at);
        at = mr_put_u16(at, stream->landings[i].tag);
    }
}

enum mr_status mr_resume_put_stream(struct mr_buffer *buffer,
                                    const struct mr_resume_stream *stream)
{
    size_t size = STREAM_SIZE + sizeof(uint64_t) * stream->trace_count +
                  (size_t)CALL_SIZE * stream->depth + landings_size(stream);
    uint8_t *at;
    enum mr_status status = mr_buffer_reserve(buffer, size, &at);

    if (status != MR_OK)
        return status;
    at = mr_put_u64(at, stream->base_event);
    at = mr_put_u64(at, stream->last);
    at = mr_put_u64(at, stream->reduced);
    at = mr_put_u64(at, stream->lost_sum);
    at = mr_put_u64(at, stream->closed);
    at = mr_put_u64(at, stream->last_ns);
    at = mr_put_u32(at, stream->trace_count | (stream->is_base_unsure ? UNSURE : 0) |
                            (stream->landing_count ? LANDED : 0) |
                            (stream->lists ? LISTS : 0));
    for (uint32_t i = 0; i < stream->trace_count; i++)
        at = mr_put_u64(at, stream->trace_calls[i]);
    at = mr_put_u32(at, stream->depth);
    for (uint32_t i = 0; i < stream->depth; i++) {
        const struct mr_resume_call *call = &stream->calls[i];

        at = mr_put_u64(at, call->enter_ns);
        at = mr_put_u64(at, call->child_ns);
        mr_id_put(call->site_id, at);
        at = mr_put_u16(at + 16, call->flags);
    }
    put_landings(stream, at);
    mr_buffer_commit(buffer, size);
    if (stream->lists)
        status = mr_resume_put_lists(buffer, stream->lists);
    return status == MR_OK && stream->links ? mr_resume_put_links(buffer, stream->links)
                                            : status;
}

bool mr_resume_shorten(struct mr_span bytes, uint8_t out[MR_RESUME_SHORT_SIZE])
{
    const size_t ledger = STREAM_SIZE - 2 * sizeof(uint32_t);

    static_assert(MR_RESUME_SHORT_SIZE == STREAM_SIZE,
                  "a stream without traces and calls");
    if (bytes.size < STREAM_SIZE)
        return false;
    memcpy(out, bytes.data, ledger);
    (void)mr_put_u32(mr_put_u32(out + ledger, UNSURE), 0); /* traces, depth */
    return true;
}

static bool is_time(uint64_t ns)
{
    return ns >= MR_SECOND_NS && ns / MR_SECOND_NS < UINT32_MAX;
}

/* Until when children of the call at `at` can have ended. */
static uint64_t children_until(const struct mr_resume_stream *stream, uint32_t at)
{
    return at + 1 < stream->depth ? stream->calls[at + 1].enter_ns : stream->last_ns;
}

/* Times do not fall, and what children took is of the call's own time. */
static bool has_sound_times(const struct mr_resume_stream *stream)
{
    uint64_t before_ns = MR_SECOND_NS;

    for (uint32_t i = 0; i < stream->depth; i++) {
        const struct mr_resume_call *call = &stream->calls[i];

        if (call->enter_ns < before_ns || children_until(stream, i) < call->enter_ns ||
            children_until(stream, i) - call->enter_ns < call->child_ns)
            return false;
        before_ns = call->enter_ns;
    }
    return is_time(stream->last_ns);
}

/* What reconstruct makes: outer frames, then a root and what it calls, roots being as many as there are traces. */
static bool is_sound(struct mr_resume_stream *stream)
{
    uint32_t roots = 0;

    for (uint32_t i = 0; i < stream->depth; i++) {
        const struct mr_resume_call *call = &stream->calls[i];
        bool is_outer = call->flags & MR_EVENT_OUTER;
        bool is_root = call->flags & MR_EVENT_ROOT;

        if (call->flags & ~MR_RESUME_CALL_FLAGS ||
            (is_outer && (is_root || stream->outer_depth != i)) ||
            (!is_outer && roots == 0 && !is_root))
            return false;
        stream->outer_depth += is_outer;
        roots += is_root;
    }
    return roots == stream->trace_count && has_sound_times(stream) &&
           stream->base_event <= MR_EVENTS_LIMIT &&
           stream->last <= MR_EVENTS_LIMIT - stream->base_event &&
           stream->reduced <= stream->last &&
           stream->lost_sum <= stream->last - stream->reduced;
}

static bool take_calls(struct mr_resume_stream *stream, struct mr_span *bytes)
{
    for (uint32_t i = 0; i < stream->depth; i++) {
        struct mr_resume_call *call = &stream->calls[i];
        struct mr_span id;

        if (!mr_span_take_u64(bytes, &call->enter_ns) ||
            !mr_span_take_u64(bytes, &call->child_ns) || !mr_span_take(bytes, 16, &id) ||
            !mr_span_take_u16(bytes, &call->flags))
            return false;
        call->site_id = mr_id_get(id.data);
    }
    return true;
}

static bool take_landings(struct mr_resume_stream *stream, struct mr_span *bytes)
{
    if (!mr_span_take_u32(bytes, &stream->landing_count) || !stream->landing_count ||
        stream->landing_count > MR_RESUME_LANDINGS_MAX)
        return false;
    for (uint32_t i = 0; i < stream->landing_count; i++) {
        struct mr_resume_landing *landing = &stream->landings[i];

        if (!mr_span_take_u32(bytes, &landing->at) ||
            !mr_span_take_u16(bytes, &landing->tag) || landing->at >= stream->depth ||
            (i > 0 && landing->at <= stream->landings[i - 1].at))
            return false;
    }
    return true;
}

/* Of one call tree alone it is known which calls are inside. */
static enum mr_status take_lists(struct mr_resume_stream *stream, struct mr_span *bytes)
{
    uint32_t root = 0;

    if (stream->trace_count != 1)
        return MR_EFORMAT;
    while (!(stream->calls[root].flags & MR_EVENT_ROOT)) /* there is one: is_sound() */
        root++;
    return mr_resume_take_lists(bytes, stream->depth - root, &stream->lists);
}

static enum mr_status take_stream(struct mr_resume_stream *stream, struct mr_span bytes)
{
    enum mr_status status = MR_OK;
    bool has_landings, has_lists;

    if (!mr_span_take_u64(&bytes, &stream->base_event) ||
        !mr_span_take_u64(&bytes, &stream->last) ||
        !mr_span_take_u64(&bytes, &stream->reduced) ||
        !mr_span_take_u64(&bytes, &stream->lost_sum) ||
        !mr_span_take_u64(&bytes, &stream->closed) ||
        !mr_span_take_u64(&bytes, &stream->last_ns) ||
        !mr_span_take_u32(&bytes, &stream->trace_count))
        return MR_EFORMAT;
    stream->is_base_unsure = (stream->trace_count & UNSURE) != 0;
    has_landings = (stream->trace_count & LANDED) != 0;
    has_lists = (stream->trace_count & LISTS) != 0;
    stream->trace_count &= ~(UNSURE | LANDED | LISTS);
    if (stream->trace_count > MR_RESUME_TRACES_MAX)
        return MR_EFORMAT;
    for (uint32_t i = 0; i < stream->trace_count; i++)
        if (!mr_span_take_u64(&bytes, &stream->trace_calls[i]) ||
            stream->trace_calls[i] > stream->closed)
            return MR_EFORMAT;
    if (!mr_span_take_u32(&bytes, &stream->depth) ||
        stream->depth > MR_RESUME_CALLS_MAX ||
        bytes.size < (size_t)CALL_SIZE * stream->depth)
        return MR_EFORMAT;
    stream->calls = calloc((size_t)stream->depth + 1, sizeof(*stream->calls));
    if (!stream->calls)
        return MR_ENOMEM;
    if (!take_calls(stream, &bytes) || !is_sound(stream) ||
        (has_landings && !take_landings(stream, &bytes)))
        return MR_EFORMAT;
    if (has_lists)
        status = take_lists(stream, &bytes);
    return status == MR_OK && bytes.size ? mr_resume_take_links(bytes, &stream->links)
                                         : status;
}

enum mr_status mr_resume_add_stream(struct mr_resume *resume, uint32_t id,
                                    struct mr_span bytes)
{
    struct mr_resume_stream stream = {.id = id};
    enum mr_status status = take_stream(&stream, bytes);

    if (status == MR_OK && resume->stream_count == resume->stream_capacity) {
        uint32_t capacity = resume->stream_capacity ? 2 * resume->stream_capacity : 16;
        struct mr_resume_stream *grown =
            realloc(resume->streams, capacity * sizeof(*grown));

        status = grown ? MR_OK : MR_ENOMEM;
        if (grown) {
            resume->streams = grown;
            resume->stream_capacity = capacity;
        }
    }
    if (status == MR_OK)
        resume->streams[resume->stream_count++] = stream;
    else
        free_stream(&stream);
    return status;
}

void mr_resume_sites_init(struct mr_resume_sites *sites)
{
    *sites = (struct mr_resume_sites){0};
    mr_table_init(&sites->ids, SITES_MAX);
}

void mr_resume_sites_fini(struct mr_resume_sites *sites)
{
    for (uint32_t i = 0; i < sites->count; i++)
        mr_buffer_fini(&sites->items[i]);
    free(sites->items);
    mr_table_fini(&sites->ids);
}

enum mr_status mr_resume_sites_add(struct mr_resume_sites *sites, struct mr_id id,
                                   struct mr_span bytes)
{
    uint32_t index;
    enum mr_status status;

    if (sites->count == sites->capacity) {
        uint32_t capacity = sites->capacity ? 2 * sites->capacity : 64;
        struct mr_buffer *grown = realloc(sites->items, capacity * sizeof(*grown));

        if (!grown)
            return MR_ENOMEM;
        sites->items = grown;
        sites->capacity = capacity;
    }
    status = mr_table_find_or_add(&sites->ids, id, sites->count, &index);
    if (status != MR_OK || index < sites->count)
        return status;
    mr_buffer_init(&sites->items[sites->count++], SITE_BYTES_MAX);
    return mr_buffer_append(&sites->items[index], bytes.data, bytes.size);
}

enum mr_status mr_resume_add_site(struct mr_resume *resume, struct mr_id id,
                                  struct mr_span bytes)
{
    return mr_resume_sites_add(&resume->own_sites, id, bytes);
}

static enum mr_status put_text(struct mr_buffer *buffer, struct mr_span text)
{
    enum mr_status status = mr_buffer_append_le(buffer, text.size, 4);

    return status == MR_OK ? mr_buffer_append(buffer, text.data, text.size) : status;
}

static enum mr_status put_function(struct mr_buffer *buffer, const struct mr_site *site)
{
    enum mr_status status = mr_buffer_append_byte(buffer, KIND_FUNCTION);

    if (status == MR_OK)
        status = put_text(buffer, mr_span_of_text(site->module->path));
    if (status == MR_OK)
        status = put_text(buffer, site->module->build_id);
    return status == MR_OK ? mr_buffer_append_le(buffer, site->offset, 8) : status;
}

enum mr_status mr_resume_put_site(struct mr_buffer *buffer, const struct mr_site *site)
{
    enum mr_status status;

    if (site->module)
        return put_function(buffer, site);
    status = mr_buffer_append_byte(buffer, KIND_SPAN);
    if (status == MR_OK)
        status = put_text(buffer, mr_span_of_text(site->app));
    if (status == MR_OK)
        status = put_text(buffer, mr_span_of_text(site->name));
    if (status == MR_OK)
        status = put_text(buffer, mr_span_of_text(site->file));
    if (status == MR_OK)
        status = mr_buffer_append_le(buffer, site->line, 4);
    return status == MR_OK ? mr_buffer_append_byte(buffer, site->flags) : status;
}

static bool take_text(struct mr_span *rest, struct mr_span *text)
{
    uint32_t size;

    return mr_span_take_u32(rest, &size) && mr_span_take(rest, size, text);
}

/* As a string of its own; NULL: damaged, or too long. */
static const char *take_string(struct mr_span *rest, char *out, size_t capacity)
{
    struct mr_span text;

    if (!take_text(rest, &text) || text.size >= capacity)
        return NULL;
    if (text.size)
        memcpy(out, text.data, text.size);
    out[text.size] = '\0';
    return out;
}

static uint32_t take_function(struct mr_span rest, struct mr_sites *lane)
{
    char path[4096];
    const struct mr_site_module *module;
    struct mr_span build_id;
    uint64_t offset;

    if (!take_string(&rest, path, sizeof(path)) || !take_text(&rest, &build_id) ||
        !mr_span_take_u64(&rest, &offset))
        return MR_SITE_UNKNOWN;
    module = mr_sites_module(lane, path, build_id);
    return module ? mr_sites_add_function(lane, module, offset) : MR_SITE_UNKNOWN;
}

static uint32_t take_span(struct mr_span rest, struct mr_sites *lane)
{
    char app[1024], name[4096], file[4096];
    struct mr_dict_named_site span = {.name = name, .file = file};
    uint8_t flags;

    if (!take_string(&rest, app, sizeof(app)) ||
        !take_string(&rest, name, sizeof(name)) ||
        !take_string(&rest, file, sizeof(file)) || !mr_span_take_u32(&rest, &span.line) ||
        !mr_span_take_u8(&rest, &flags))
        return MR_SITE_UNKNOWN;
    span.flags = flags;
    return mr_sites_add_span(lane, app, &span);
}

uint32_t mr_resume_site(const struct mr_resume_sites *sites, struct mr_id id,
                        struct mr_sites *lane)
{
    uint32_t index = mr_table_find(&sites->ids, id);
    struct mr_span rest;
    uint8_t kind;

    if (index == MR_TABLE_NONE)
        return MR_SITE_UNKNOWN;
    rest = mr_buffer_span(&sites->items[index]);
    if (!mr_span_take_u8(&rest, &kind))
        return MR_SITE_UNKNOWN;
    index = kind == KIND_FUNCTION ? take_function(rest, lane) : take_span(rest, lane);
    /* Damaged in a way that can be read it would be another site, and its calls that one's. */
    return mr_id_equal(mr_sites_at(lane, index)->id, id) ? index : MR_SITE_UNKNOWN;
}
