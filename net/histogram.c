/* SPDX-License-Identifier: Apache-2.0 */
#include "net/histogram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/sum.h"

/* Indices at scale 5 of 64-bit values: 1 is in bucket -1, 2^64 - 1 in bucket 2047. */
enum { INDEX_FIRST = -1, INDEX_LAST = 2047, SUB_BUCKETS = 32 };

/*
 * Sub-bucket k of a power of two ends at 2^63 * 2^(k/32), here rounded down. But for k = 0 these are no integers, so
 * for an integer m: m > 2^63 * 2^(k/32) is the same as m > boundaries[k]. The last entry is above all.
 */
static const uint64_t boundaries[33] = {
    UINT64_C(0x8000000000000000), UINT64_C(0x82cd8698ac2ba1d7),
    UINT64_C(0x85aac367cc487b14), UINT64_C(0x88980e8092da8527),
    UINT64_C(0x8b95c1e3ea8bd6e6), UINT64_C(0x8ea4398b45cd53c0),
    UINT64_C(0x91c3d373ab11c336), UINT64_C(0x94f4efa8fef70961),
    UINT64_C(0x9837f0518db8a96f), UINT64_C(0x9b8d39b9d54e5538),
    UINT64_C(0x9ef5326091a111ad), UINT64_C(0xa27043030c496818),
    UINT64_C(0xa5fed6a9b15138ea), UINT64_C(0xa9a15ab4ea7c0ef8),
    UINT64_C(0xad583eea42a14ac6), UINT64_C(0xb123f581d2ac258f),
    UINT64_C(0xb504f333f9de6484), UINT64_C(0xb8fbaf4762fb9ee9),
    UINT64_C(0xbd08a39f580c36be), UINT64_C(0xc12c4cca66709456),
    UINT64_C(0xc5672a115506dadd), UINT64_C(0xc9b9bd866e2f27a2),
    UINT64_C(0xce248c151f8480e3), UINT64_C(0xd2a81d91f12ae45a),
    UINT64_C(0xd744fccad69d6af4), UINT64_C(0xdbfbb797daf23755),
    UINT64_C(0xe0ccdeec2a94e111), UINT64_C(0xe5b906e77c8348a8),
    UINT64_C(0xeac0c6e7dd24392e), UINT64_C(0xefe4b99bdcdaf5cb),
    UINT64_C(0xf5257d152486cc2c), UINT64_C(0xfa83b2db722a033a),
    UINT64_C(0xffffffffffffffff),
};

/*
 * Of the 64 equal parts of [2^63, 2^64): how many boundaries lie below its start. The parts are narrower than the
 * narrowest sub-bucket (1/64 < 2^(1/32) - 1), so at most one more boundary is to be compared.
 */
static const uint8_t below[64] = {
    0,  1,  2,  3,  3,  4,  5,  5,  6,  7,  7,  8,  8,  9,  10, 10,
    11, 11, 12, 13, 13, 14, 14, 15, 15, 16, 16, 17, 17, 18, 18, 19,
    19, 20, 20, 21, 21, 22, 22, 22, 23, 23, 24, 24, 25, 25, 26, 26,
    26, 27, 27, 28, 28, 28, 29, 29, 30, 30, 30, 31, 31, 31, 32, 32,
};

int32_t mr_histogram_index5(uint64_t value)
{
    int zeros = MR_LEADING_ZEROS64(value), exponent = 63 - zeros;
    uint64_t mantissa = value << zeros;
    uint32_t count = below[mantissa >> 57 & 63];

    MR_DEBUG_ASSERT(value != 0);
    count += mantissa > boundaries[count];
    return exponent * SUB_BUCKETS + (int32_t)count - 1;
}

/* Division by 2^shift towards minus infinity: the index at a scale lower by `shift`. */
static int32_t index_down(int32_t index, int32_t shift)
{
    return index >= 0 ? index >> shift : ~(~index >> shift);
}

static int32_t last_of(const struct mr_histogram *h)
{
    return h->first + (int32_t)h->count - 1;
}

/* The least shift from here at which first .. last fit. */
static int32_t shift_to_fit(int32_t first, int32_t last)
{
    int32_t shift = 0;

    while (index_down(last, shift) - index_down(first, shift) >= MR_HISTOGRAM_BUCKETS_MAX)
        shift++;
    return shift;
}

static void scale_down(struct mr_histogram *h, int32_t shift)
{
    int32_t first = index_down(h->first, shift);
    uint32_t count = 0;

    if (shift == 0 || h->count == 0)
        return;
    for (uint32_t i = 0; i < h->count; i++) {
        uint32_t to = (uint32_t)(index_down(h->first + (int32_t)i, shift) - first);
        uint64_t value = h->counts[i];

        if (to >= count) { /* `to` is never behind i, so this entry was read already */
            h->counts[to] = 0;
            count = to + 1;
        }
        h->counts[to] = mr_sum(h->counts[to], value);
    }
    h->scale -= shift;
    h->first = first;
    h->count = count;
}

static enum mr_status grow(struct mr_histogram *h, uint32_t count)
{
    uint32_t capacity = h->capacity ? h->capacity : 16;
    uint64_t *counts;

    if (count <= h->capacity)
        return MR_OK;
    MR_ASSERT(count <= MR_HISTOGRAM_BUCKETS_MAX);
    while (capacity < count)
        capacity *= 2;
    counts = realloc(h->counts, capacity * sizeof(*counts));
    if (!counts)
        return MR_ENOMEM;
    h->counts = counts;
    h->capacity = capacity;
    return MR_OK;
}

/* Makes the range first .. last at the current scale part of the occupied one. */
static enum mr_status widen(struct mr_histogram *h, int32_t first, int32_t last)
{
    uint32_t before, count;
    enum mr_status status;

    if (h->count == 0)
        h->first = first;
    if (h->count && last < last_of(h))
        last = last_of(h);
    before = first < h->first ? (uint32_t)(h->first - first) : 0;
    count = (uint32_t)(last - h->first + 1) + before;
    status = grow(h, count);
    if (status != MR_OK)
        return status;
    if (before && h->count)
        memmove(h->counts + before, h->counts, h->count * sizeof(*h->counts));
    memset(h->counts, 0, before * sizeof(*h->counts));
    memset(h->counts + before + h->count, 0,
           (count - before - h->count) * sizeof(*h->counts));
    h->first -= (int32_t)before;
    h->count = count;
    return MR_OK;
}

/* Chooses the scale for the union of what is held and first .. last at `scale`, and makes room for it. */
static enum mr_status make_room(struct mr_histogram *h, int32_t scale, int32_t first,
                                int32_t last)
{
    int32_t low, high, shift;

    if (h->count == 0)
        h->scale = scale;
    if (scale < h->scale)
        scale_down(h, h->scale - scale);
    low = index_down(first, scale - h->scale);
    high = index_down(last, scale - h->scale);
    if (h->count && h->first < low)
        low = h->first;
    if (h->count && last_of(h) > high)
        high = last_of(h);
    shift = shift_to_fit(low, high);
    if (h->count == 0)
        h->scale -= shift;
    scale_down(h, shift);
    return widen(h, index_down(low, shift), index_down(high, shift));
}

static void count_at(struct mr_histogram *h, int32_t scale, int32_t index, uint64_t count)
{
    uint64_t *at = &h->counts[index_down(index, scale - h->scale) - h->first];

    *at = mr_sum(*at, count);
}

/* `first` at the histogram's own scale, as mostly. */
static void count_all(struct mr_histogram *h, int32_t first, const uint64_t *counts,
                      uint32_t n)
{
    uint64_t *at = &h->counts[first - h->first];

    for (uint32_t i = 0; i < n; i++)
        at[i] = mr_sum(at[i], counts[i]);
}

enum mr_status mr_histogram_add(struct mr_histogram *h, uint64_t value, uint64_t count)
{
    int32_t index;
    enum mr_status status;

    if (value == 0 || count == 0) {
        h->zero = value ? h->zero : mr_sum(h->zero, count);
        return MR_OK;
    }
    index = mr_histogram_index5(value);
    status = make_room(h, MR_HISTOGRAM_SCALE_MAX, index, index);
    if (status != MR_OK)
        return status;
    count_at(h, MR_HISTOGRAM_SCALE_MAX, index, count);
    return MR_OK;
}

/* At one scale more the range would have at most 2 * count buckets: a lower scale was needed only if those are too many. */
bool mr_histogram_is_canonical(int32_t scale, int32_t first, uint64_t count)
{
    if (scale < 0 || scale > MR_HISTOGRAM_SCALE_MAX ||
        count > INDEX_LAST - INDEX_FIRST + 1)
        return false;
    if (scale < MR_HISTOGRAM_SCALE_MAX && 2 * count <= MR_HISTOGRAM_BUCKETS_MAX)
        return false;
    return first >= INDEX_FIRST &&
           first + (int64_t)count - 1 <= INDEX_LAST >> (MR_HISTOGRAM_SCALE_MAX - scale);
}

enum mr_status mr_histogram_add_buckets(struct mr_histogram *h, int32_t scale,
                                        int32_t first, const uint64_t *counts, uint32_t n)
{
    enum mr_status status;

    while (n && counts[n - 1] == 0)
        n--;
    for (; n && counts[0] == 0; counts++, first++)
        n--;
    if (n == 0)
        return MR_OK;
    if (!mr_histogram_is_canonical(scale, first, n))
        return MR_EFORMAT;
    status = make_room(h, scale, first, first + (int32_t)n - 1);
    if (status != MR_OK)
        return status;
    if (scale == h->scale)
        count_all(h, first, counts, n);
    else
        for (uint32_t i = 0; i < n; i++)
            count_at(h, scale, first + (int32_t)i, counts[i]);
    return MR_OK;
}

enum mr_status mr_histogram_merge(struct mr_histogram *into,
                                  const struct mr_histogram *from)
{
    enum mr_status status = mr_histogram_add_buckets(into, from->scale, from->first,
                                                     from->counts, from->count);

    if (status == MR_OK)
        into->zero = mr_sum(into->zero, from->zero);
    return status;
}

uint64_t mr_histogram_total(const struct mr_histogram *h)
{
    uint64_t total = h->zero;

    for (uint32_t i = 0; i < h->count; i++)
        total = mr_sum(total, h->counts[i]);
    return total;
}

/* The bucket that holds the value of rank `rank` (from 1, zeros not counted). */
static int32_t bucket_of_rank(const struct mr_histogram *h, uint64_t rank)
{
    uint32_t i = 0;

    while (i + 1 < h->count && rank > h->counts[i])
        rank -= h->counts[i++];
    return h->first + (int32_t)i;
}

static void bounds_of(int32_t scale, int32_t index, double *low, double *high)
{
    double buckets = (double)(1 << scale);

    *high = exp2((index + 1) / buckets);
    *low = index < 0 ? *high
                     : exp2(index / buckets); /* 1 is the only integer in bucket -1 */
}

enum mr_status mr_histogram_quantile(const struct mr_histogram *h, double q,
                                     double *value, double *low, double *high)
{
    uint64_t total = mr_histogram_total(h), rank;

    MR_ASSERT(q >= 0 && q <= 1);
    *value = *low = *high = 0;
    if (total == 0)
        return MR_ENOTFOUND;
    rank = (uint64_t)fmin(ceil(q * (double)total), 0x1p63);
    rank = rank == 0 ? 1 : rank > total ? total : rank;
    if (rank <= h->zero)
        return MR_OK;
    bounds_of(h->scale, bucket_of_rank(h, rank - h->zero), low, high);
    *value = sqrt(*low * *high);
    return MR_OK;
}

void mr_histogram_clear(struct mr_histogram *h)
{
    h->zero = 0;
    h->scale = MR_HISTOGRAM_SCALE_MAX;
    h->first = 0;
    h->count = 0;
}

void mr_histogram_fini(struct mr_histogram *h)
{
    free(h->counts);
    *h = MR_HISTOGRAM_EMPTY;
}
