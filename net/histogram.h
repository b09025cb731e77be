/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base-2 exponential histogram with OpenTelemetry's boundaries (data model, "ExponentialHistogram"): bucket i of scale s
 * holds integers v with 2^(i/2^s) < v <= 2^((i+1)/2^s). The scale is the largest <= 5 at which the occupied range fits 512
 * buckets, so it is a function of the data alone, and merging is exact in any order. Zero has a counter of its own. Counts stop at 2^64 - 1.
 *
 *     struct mr_histogram h = MR_HISTOGRAM_EMPTY;
 *     mr_histogram_add(&h, latency_ns, 1);
 *     mr_histogram_quantile(&h, 0.99, &value, &low, &high);   // the true value lies in [low, high]
 *     mr_histogram_fini(&h);
 *
 * Owns its buckets (malloc); one thread at a time. The hot path has mr_histogram_index5() to count into storage of its own.
 */
#ifndef MR_NET_HISTOGRAM_H
#define MR_NET_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/span.h"
#include "base/status.h"

#define MR_HISTOGRAM_SCALE_MAX 5
#define MR_HISTOGRAM_BUCKETS_MAX 512

struct mr_histogram {
    uint64_t zero;
    int32_t scale; /* 5 when empty; 0 .. 5 for 64-bit values */
    int32_t first; /* index of counts[0] at this scale; -1 is the bucket of the value 1 */
    uint32_t count; /* occupied range */
    uint32_t capacity;
    uint64_t *counts;
};
#define MR_HISTOGRAM_EMPTY ((struct mr_histogram){0, MR_HISTOGRAM_SCALE_MAX, 0, 0, 0, 0})

/* Index at scale 5 of an integer value >= 1; 1 gives -1, 2 gives 31. Exact for all 64-bit values. */
int32_t mr_histogram_index5(uint64_t value);

enum mr_status mr_histogram_add(struct mr_histogram *h, uint64_t value, uint64_t count);
/*
 * Adds `n` counts whose first is bucket `first` at `scale`: at scale 5 any, below only what the rule of the largest scale
 * allows. Zeros at the ends are left out. MR_EFORMAT for buckets that no 64-bit value has, MR_ENOMEM.
 */
enum mr_status mr_histogram_add_buckets(struct mr_histogram *h, int32_t scale,
                                        int32_t first, const uint64_t *counts,
                                        uint32_t n);
/* Whether the range `first`, `count` at `scale` can come from 64-bit values under the rule of the largest scale. */
bool mr_histogram_is_canonical(int32_t scale, int32_t first, uint64_t count);
enum mr_status mr_histogram_merge(struct mr_histogram *into,
                                  const struct mr_histogram *from);
uint64_t mr_histogram_total(const struct mr_histogram *h);
/* MR_ENOTFOUND when empty. low/high bound the true quantile; value is their geometric middle. q in [0, 1]. */
enum mr_status mr_histogram_quantile(const struct mr_histogram *h, double q,
                                     double *value, double *low, double *high);
void mr_histogram_clear(struct mr_histogram *h); /* keeps the memory */
void mr_histogram_fini(struct mr_histogram *h);

/*
 * As on the wire (FORMAT.md section 8, histogram). get() replaces what *h holds and leaves it empty on an error:
 * MR_EFORMAT for what breaks a rule, MR_ENOMEM. put_raw() needs MR_HISTOGRAM_SIZE_MAX(h->count) bytes and returns the
 * byte behind the last.
 */
#define MR_HISTOGRAM_SIZE_MAX(count) (10 * (4 + (size_t)(count)))
uint8_t *mr_histogram_put_raw(const struct mr_histogram *h, uint8_t *at);
enum mr_status mr_histogram_put(const struct mr_histogram *h, struct mr_buffer *out);
enum mr_status mr_histogram_get(struct mr_histogram *h, struct mr_span *in);

#endif
