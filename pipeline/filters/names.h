/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names: watches DICT items of functions that have no name yet (type function, quality 0)
 * go by, looks them up in the ELF files of their modules (pipeline/symbols.h) and sends
 * better items after them. Everything passes through unchanged and at once.
 *
 *     process, tick, drain ---- todo ---->  thread that may wait for disks and debuginfod
 *                          <--- done -----
 *
 * The lookup has a thread of its own, owned by the filter, so the filter may be fused. It
 * stands before merge, whose dictionary then keeps
 * the better items for new receivers:   names -> merge -> forward.
 *
 * The module of a site item is the path as the probe told it. Where the file is not this
 * host's, build-ids see to it that a wrong one is not used. Functions that stay without a
 * name keep module and offset.
 *
 * drain() is given drain_ns to finish what waits, since the names of a short run come
 * last; a lookup that hangs longer than that holds up close().
 *
 *     static const struct mr_names_config config = {.drain_ns = 0};
 *     {&mr_names_filter, &config, MR_PLACE_FUSED}
 */
#ifndef MR_PIPELINE_FILTERS_NAMES_H
#define MR_PIPELINE_FILTERS_NAMES_H

#include <stdint.h>

#include "pipeline/filter.h"
#include "pipeline/symbols.h"

#define MR_NAMES_QUEUE_MAX (1u << 20)
#define MR_NAMES_DRAIN_NS UINT64_C(10000000000)

struct mr_names_config {
    struct mr_symbols_limits symbols; /* 0 each: the defaults */
    uint32_t queue_max; /* functions that wait or are done; 0: MR_NAMES_QUEUE_MAX */
    uint64_t drain_ns;  /* 0: MR_NAMES_DRAIN_NS */
};

/* Slots of its counters. */
enum mr_names_counter {
    MR_NAMES_FOUND,      /* functions */
    MR_NAMES_UNKNOWN,    /* functions that keep module and offset */
    MR_NAMES_QUEUE_FULL, /* functions that found no room: the same */
    MR_NAMES_LEFT,       /* functions that the drain had no time for: the same */
    MR_NAMES_BAD_DICT,   /* batches that broke the format; passed on */
    MR_NAMES_NO_FILE,    /* modules without a readable file */
    MR_NAMES_MISMATCHED, /* files of another build */
    MR_NAMES_STRIPPED,   /* modules without symbols */
};

extern const struct mr_filter_kind mr_names_filter;

#endif
