/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms as bytes, FORMAT.md section 8. */
#include "net/histogram.h"

#include <stdlib.h>

#include "base/assert.h"
#include "net/bytes.h"
#include "net/varint.h"

#define RUN 8u /* counts that are read at once, where each is one byte */
#define MORE UINT64_C(0x8080808080808080) /* of each of RUN bytes: another follows */

uint8_t *mr_histogram_put_raw(const struct mr_histogram *h, uint8_t *at)
{
    MR_DEBUG_ASSERT(h->count == 0 || (h->counts[0] && h->counts[h->count - 1]));
    at = mr_varint_put(at, h->zero);
    at = mr_zigzag_put(at, h->count ? h->scale : 0);
    at = mr_zigzag_put(at, h->count ? h->first : 0);
    at = mr_varint_put(at, h->count);
    for (uint32_t i = 0; i < h->count; i++)
        at = mr_varint_put(at, h->counts[i]);
    return at;
}

enum mr_status mr_histogram_put(const struct mr_histogram *h, struct mr_buffer *out)
{
    uint8_t *at;
    enum mr_status status = mr_buffer_reserve(out, MR_HISTOGRAM_SIZE_MAX(h->count), &at);

    if (status == MR_OK)
        mr_buffer_commit(out, (size_t)(mr_histogram_put_raw(h, at) - at));
    return status;
}

struct range {
    int64_t scale, first;
    uint32_t count;
};

static bool is_sound(const struct range *range)
{
    if (range->count == 0)
        return range->scale == 0 && range->first == 0;
    return range->count <= MR_HISTOGRAM_BUCKETS_MAX && range->scale >= 0 &&
           range->scale <= MR_HISTOGRAM_SCALE_MAX && range->first >= -1 &&
           range->first <= INT16_MAX &&
           mr_histogram_is_canonical((int32_t)range->scale, (int32_t)range->first,
                                     range->count);
}

/* Whether RUN counts were there, each of one byte; else nothing is taken. */
static bool get_run(struct mr_span *in, uint64_t *counts)
{
    uint64_t run = in->size < RUN ? MORE : mr_get_u64(in->data);

    if (run & MORE)
        return false;
    for (uint32_t k = 0; k < RUN; k++)
        counts[k] = run >> 8 * k & 0x7f;
    *in = mr_span_of(in->data + RUN, in->size - RUN);
    return true;
}

static bool get_counts(struct mr_span *in, uint64_t *counts, uint32_t count)
{
    for (uint32_t i = 0; i < count;) {
        if (count - i >= RUN && get_run(in, &counts[i]))
            i += RUN;
        else if (!mr_varint_get(in, &counts[i++]))
            return false;
    }
    return count == 0 || (counts[0] && counts[count - 1]);
}

/* `count` is at most 512, so there is nothing to gain from growing in steps. */
static enum mr_status make_room(struct mr_histogram *h, uint32_t count)
{
    uint64_t *counts;

    if (count <= h->capacity)
        return MR_OK;
    counts = realloc(h->counts, count * sizeof(*counts));
    if (!counts)
        return MR_ENOMEM;
    h->counts = counts;
    h->capacity = count;
    return MR_OK;
}

enum mr_status mr_histogram_get(struct mr_histogram *h, struct mr_span *in)
{
    struct range range;
    uint64_t zero;
    enum mr_status status;

    mr_histogram_clear(h);
    if (!mr_varint_get(in, &zero) || !mr_zigzag_get(in, &range.scale) ||
        !mr_zigzag_get(in, &range.first) || !mr_varint_get_u32(in, &range.count) ||
        !is_sound(&range))
        return MR_EFORMAT;
    status = make_room(h, range.count);
    if (status != MR_OK)
        return status;
    if (!get_counts(in, h->counts, range.count))
        return MR_EFORMAT;
    h->zero = zero;
    h->scale = range.count ? (int32_t)range.scale : MR_HISTOGRAM_SCALE_MAX;
    h->first = (int32_t)range.first;
    h->count = range.count;
    return MR_OK;
}
