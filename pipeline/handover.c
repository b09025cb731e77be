/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/handover.h"

#include "base/assert.h"
#include "net/bytes.h"
#include "net/ids.h"

#define HEAD_SIZE 5u /* of an entry: kind u8, size u32 of what follows */
#define KIND_SITE 1u
#define KIND_STREAM 2u
#define SITES_MAX (1u << 16)
/* About what a stream and a call of it take (pipeline/resume.c). */
#define STREAM_BYTES 96u
#define CALL_BYTES 34u
/* Two payloads in a row are more than one would hold: what their frames need beside, of so many bytes one, and of the last ones. */
#define FRAMES_SHARE 1024u
#define FRAMES_LAST 64u

void mr_handover_init(struct mr_handover *handover, uint32_t payload_bytes)
{
    uint32_t most =
        payload_bytes < MR_HANDOVER_BYTES_MAX ? payload_bytes : MR_HANDOVER_BYTES_MAX;
    uint32_t frames = most / FRAMES_SHARE + FRAMES_LAST;

    handover->bytes_max = most > frames ? most - frames : 0;
    mr_buffer_init(&handover->bytes, (size_t)2 * MR_HANDOVER_BYTES_MAX);
    mr_table_init(&handover->sites, SITES_MAX);
}

void mr_handover_fini(struct mr_handover *handover)
{
    mr_buffer_fini(&handover->bytes);
    mr_table_fini(&handover->sites);
}

bool mr_handover_promise(struct mr_handover *handover, uint32_t depth)
{
    uint32_t bytes = STREAM_BYTES + CALL_BYTES * depth;

    if (depth > MR_HANDOVER_CALLS_MAX ||
        bytes > handover->bytes_max / 2 - handover->promised)
        return false;
    handover->promised += bytes;
    return true;
}

static enum mr_status begin_entry(struct mr_buffer *bytes, uint8_t kind, size_t *at)
{
    enum mr_status status = mr_buffer_append_byte(bytes, kind);

    *at = bytes->size;
    return status == MR_OK ? mr_buffer_append_le(bytes, 0, sizeof(uint32_t)) : status;
}

static void end_entry(struct mr_buffer *bytes, size_t at)
{
    (void)mr_put_u32(bytes->data + at, (uint32_t)(bytes->size - at - sizeof(uint32_t)));
}

static enum mr_status put_site(struct mr_handover *handover, const struct mr_site *site)
{
    struct mr_buffer *bytes = &handover->bytes;
    const uint32_t here = (uint32_t)bytes->size;
    uint8_t id[16];
    uint32_t told;
    size_t at;
    enum mr_status status = mr_table_find_or_add(&handover->sites, site->id, here, &told);

    if (status != MR_OK || told != here)
        return status;
    mr_id_put(site->id, id);
    status = begin_entry(bytes, KIND_SITE, &at);
    if (status == MR_OK)
        status = mr_buffer_append(bytes, id, sizeof(id));
    if (status == MR_OK)
        status = mr_resume_put_site(bytes, site);
    if (status == MR_OK)
        end_entry(bytes, at);
    return status;
}

static enum mr_status put_sites(struct mr_handover *handover,
                                const struct mr_sites *sites,
                                const struct mr_resume_stream *stream)
{
    const struct mr_resume_lists *lists = stream->lists;
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; i < stream->depth && status == MR_OK; i++)
        if (stream->calls[i].site != MR_SITE_UNKNOWN)
            status = put_site(handover, mr_sites_at(sites, stream->calls[i].site));
    for (uint32_t i = 0; lists && i < lists->node_count && status == MR_OK; i++)
        status = put_site(handover, mr_sites_at(sites, lists->nodes[i].site));
    return status;
}

static enum mr_status put_stream(struct mr_handover *handover,
                                 const struct mr_resume_stream *stream)
{
    struct mr_buffer *bytes = &handover->bytes;
    size_t at;
    enum mr_status status = begin_entry(bytes, KIND_STREAM, &at);

    if (status == MR_OK)
        status = mr_buffer_append_le(bytes, stream->id, sizeof(stream->id));
    if (status == MR_OK)
        status = mr_resume_put_stream(bytes, stream);
    if (status == MR_OK)
        end_entry(bytes, at);
    return status;
}

/* No entry from `from` on is more than a payload, and all together are no more than the sender keeps. */
static bool fits(const struct mr_handover *handover, size_t from)
{
    const struct mr_buffer *bytes = &handover->bytes;

    while (from < bytes->size) {
        size_t size = HEAD_SIZE + mr_get_u32(bytes->data + from + 1);

        if (size > MR_HANDOVER_PAYLOAD_MAX)
            return false;
        from += size;
    }
    return bytes->size <= handover->bytes_max;
}

static void take_site_back(struct mr_handover *handover, size_t before, struct mr_id site)
{
    uint32_t told = mr_table_find(&handover->sites, site);

    if (told != MR_TABLE_NONE && told >= before)
        (void)mr_table_remove(&handover->sites, site);
}

/* As if it had not been put behind `before`. */
static void take_back(struct mr_handover *handover, size_t before,
                      const struct mr_resume_stream *stream)
{
    const struct mr_resume_lists *lists = stream->lists;

    for (uint32_t i = 0; i < stream->depth; i++)
        take_site_back(handover, before, stream->calls[i].site_id);
    for (uint32_t i = 0; lists && i < lists->node_count; i++)
        take_site_back(handover, before, lists->nodes[i].site_id);
    mr_buffer_truncate(&handover->bytes, before);
}

/* `*is_told` false: there was no room, and nothing is put. */
static enum mr_status try_to_put(struct mr_handover *handover,
                                 const struct mr_sites *sites,
                                 const struct mr_resume_stream *stream, bool *is_told)
{
    size_t before = handover->bytes.size;
    enum mr_status status = put_sites(handover, sites, stream);

    if (status == MR_OK)
        status = put_stream(handover, stream);
    *is_told = status == MR_OK && fits(handover, before);
    if (!*is_told)
        take_back(handover, before, stream);
    return status == MR_ELIMIT ? MR_OK : status;
}

enum mr_status mr_handover_put(struct mr_handover *handover, const struct mr_sites *sites,
                               const struct mr_resume_stream *stream,
                               enum mr_handover_told *told)
{
    struct mr_resume_stream shorter = *stream;
    bool is_told;
    enum mr_status status = try_to_put(handover, sites, stream, &is_told);

    *told = MR_HANDOVER_WHOLE;
    shorter.lists = NULL;
    if (status == MR_OK && !is_told && stream->lists)
        status = try_to_put(handover, sites, &shorter, &is_told);
    if (status != MR_OK || is_told)
        return status;
    shorter.depth = shorter.trace_count = shorter.landing_count = 0;
    shorter.links = NULL;
    shorter.is_base_unsure = true;
    status = try_to_put(handover, sites, &shorter, &is_told);
    *told = is_told ? MR_HANDOVER_SHORT : MR_HANDOVER_NONE;
    return status;
}

bool mr_handover_next(struct mr_span *rest, struct mr_span *payload)
{
    size_t size = 0;

    while (size < rest->size) {
        size_t entry = HEAD_SIZE + mr_get_u32(rest->data + size + 1);

        if (size + entry > MR_HANDOVER_PAYLOAD_MAX)
            break;
        size += entry;
    }
    MR_ASSERT(size > 0 || rest->size == 0);
    return mr_span_take(rest, size, payload) && size > 0;
}

static enum mr_status take_site(struct mr_resume *resume, struct mr_span entry)
{
    struct mr_span id;

    if (!mr_span_take(&entry, 16, &id))
        return MR_EFORMAT;
    return mr_resume_add_site(resume, mr_id_get(id.data), entry);
}

static enum mr_status take_stream(struct mr_resume *resume, struct mr_span entry)
{
    uint32_t id;

    if (!mr_span_take_u32(&entry, &id))
        return MR_EFORMAT;
    return mr_resume_add_stream(resume, id, entry);
}

enum mr_status mr_handover_take(struct mr_resume *resume, struct mr_span payload)
{
    enum mr_status status = MR_OK;

    while (status == MR_OK && payload.size) {
        struct mr_span entry;
        uint32_t size;
        uint8_t kind;

        if (!mr_span_take_u8(&payload, &kind) || !mr_span_take_u32(&payload, &size) ||
            !mr_span_take(&payload, size, &entry))
            return MR_EFORMAT;
        if (kind == KIND_SITE)
            status = take_site(resume, entry);
        else if (kind == KIND_STREAM)
            status = take_stream(resume, entry);
    }
    return status;
}
