/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker reads back from its spool of a source, a stream or a site: the first byte says which. What was accepted is written as the
 * same bytes; a site is the one that its id names, or none.
 */
#include "base/assert.h"
#include "pipeline/resume.h"

#define SOURCE 0
#define STREAM 1
#define SITES_LIMIT 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_source(struct mr_span bytes)
{
    struct mr_resume *resume = mr_resume_new(NULL);
    struct mr_buffer again;

    MR_ASSERT(resume);
    mr_buffer_init(&again, SIZE_MAX);
    if (mr_resume_set_source(resume, bytes) == MR_OK) {
        MR_ASSERT(mr_resume_put_source(&again, &resume->source) == MR_OK);
        MR_ASSERT(mr_span_equal(mr_buffer_span(&again), bytes));
    }
    mr_buffer_fini(&again);
    mr_resume_free(resume);
}

static void try_stream(struct mr_span bytes)
{
    struct mr_resume *resume = mr_resume_new(NULL);
    struct mr_buffer again;

    MR_ASSERT(resume);
    mr_buffer_init(&again, SIZE_MAX);
    if (mr_resume_add_stream(resume, 7, bytes) == MR_OK) {
        const struct mr_resume_stream *stream = resume->streams;

        MR_ASSERT(resume->stream_count == 1 && stream->id == 7);
        MR_ASSERT(stream->trace_count <= MR_RESUME_TRACES_MAX &&
                  stream->outer_depth <= stream->depth);
        MR_ASSERT(mr_resume_put_stream(&again, stream) == MR_OK);
        MR_ASSERT(mr_span_equal(mr_buffer_span(&again), bytes));
    } else {
        MR_ASSERT(resume->stream_count == 0);
    }
    mr_buffer_fini(&again);
    mr_resume_free(resume);
}

static uint32_t resolve(struct mr_id id, struct mr_span bytes, struct mr_sites *lane)
{
    struct mr_resume_sites sites;
    uint32_t site = MR_SITE_UNKNOWN;

    mr_resume_sites_init(&sites);
    if (mr_resume_sites_add(&sites, id, bytes) == MR_OK)
        site = mr_resume_site(&sites, id, lane);
    mr_resume_sites_fini(&sites);
    return site;
}

/* The lane's table tells what the bytes were taken for; by that id, and by no other, they are the site. */
static void try_site(struct mr_span bytes)
{
    const struct mr_id other = {1, 2};
    struct mr_sites *lane;
    struct mr_buffer again;
    uint32_t last;

    MR_ASSERT(mr_sites_new(SITES_LIMIT, &lane) == MR_OK);
    MR_ASSERT(resolve(other, bytes, lane) == MR_SITE_UNKNOWN);
    mr_buffer_init(&again, SIZE_MAX);
    last = lane->count - 1;
    if (last != MR_SITE_UNKNOWN) {
        const struct mr_site *site = mr_sites_at(lane, last);

        MR_ASSERT(resolve(site->id, bytes, lane) == last);
        MR_ASSERT(mr_resume_put_site(&again, site) == MR_OK);
        MR_ASSERT(resolve(site->id, mr_buffer_span(&again), lane) == last);
    }
    mr_buffer_fini(&again);
    mr_sites_free(lane);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_span bytes = mr_span_of(data, size);
    uint8_t kind;

    if (!mr_span_take_u8(&bytes, &kind))
        return 0;
    if (kind == SOURCE)
        try_source(bytes);
    else if (kind == STREAM)
        try_stream(bytes);
    else
        try_site(bytes);
    return 0;
}
