/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of templates: one block for all three pools, which doubles when it is full, so that a lane that knows many has
 * them on large pages (base/pages.h), and one that knows few takes little.
 *
 *     block:  items[capacity] | calls[CALLS_EACH * capacity] | codes, two of each call
 */
#include "pipeline/filters/reduce_templates.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/pages.h"
#include "net/histogram.h"
#include "pipeline/bins.h"

#define PATHS_MAX (1u << 20)
#define TOTAL_LIMIT (UINT64_C(1) << 28)
#define CALLS_EACH (MR_TEMPLATES_CALLS_MAX / MR_TEMPLATES_MAX)

static_assert(sizeof(struct mr_template) == MR_CACHE_LINE, "see there");
static_assert(PATHS_MAX <= 1u << MR_TEMPLATE_PATH_BITS, "all paths have a number");
static_assert(MR_TEMPLATES_FIRST >= 2 &&
                  MR_TEMPLATES_FIRST * CALLS_EACH >= MR_TEMPLATE_CALLS_MAX,
              "one of any size has room");

/* The least total below 2^28 that is in bin `bin` or a later one. */
static uint32_t low_of(uint32_t bin)
{
    uint64_t low = 0;

    for (uint64_t step = TOTAL_LIMIT / 2; step; step /= 2)
        if (mr_histogram_index5(low + step) + 1 < (int32_t)bin)
            low += step;
    return (uint32_t)low + 1;
}

static void make_bins(struct mr_templates *templates)
{
    struct mr_bin_index index;

    mr_bin_index_init(&index);
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t bin =
            i ? index.below[i] - 1u : 0; /* a power of two is in none of them */

        templates->parts.below[i] = (uint8_t)bin;
        if (i)
            templates->parts.ends[bin] = (uint32_t)(index.bounds[i] >> 33);
    }
    for (uint32_t i = 0; i <= MR_TEMPLATE_BINS + 1; i++)
        templates->lows[i] = low_of(i);
    for (uint32_t i = 0; i < MR_TEMPLATE_PARTS; i++) {
        uint64_t low = (((uint64_t)64 + i % 64) << (i / 64)) + 63;

        templates->bins[i] = (uint16_t)(mr_histogram_index5(low / 64) + 1);
    }
}

static size_t block_size(uint32_t capacity)
{
    const size_t calls = (size_t)CALLS_EACH * capacity;

    return capacity * sizeof(struct mr_template) +
           calls * sizeof(struct mr_template_call) + 2 * calls * sizeof(uint32_t);
}

/* The pools lie in `block` from now on. */
static void use_block(struct mr_templates *templates, void *block, uint32_t capacity)
{
    templates->items = block;
    templates->calls = (void *)(templates->items + capacity);
    templates->codes = (void *)(templates->calls + (size_t)CALLS_EACH * capacity);
    templates->capacity = capacity;
}

static bool grow(struct mr_templates *templates)
{
    const struct mr_templates before = *templates;
    const uint32_t capacity = 2 * before.capacity;
    void *block =
        capacity <= MR_TEMPLATES_MAX ? mr_pages_alloc(block_size(capacity)) : NULL;

    if (!block)
        return false;
    use_block(templates, block, capacity);
    memcpy(templates->items, before.items, before.count * sizeof(*before.items));
    memcpy(templates->calls, before.calls, before.call_count * sizeof(*before.calls));
    memcpy(templates->codes, before.codes, before.code_count * sizeof(*before.codes));
    mr_pages_free(before.items, block_size(before.capacity));
    return true;
}

bool mr_templates_have_room(struct mr_templates *templates, uint32_t calls)
{
    while (templates->count == templates->capacity ||
           templates->call_count + calls > CALLS_EACH * templates->capacity)
        if (!grow(templates))
            return false;
    return true;
}

enum mr_status mr_templates_init(struct mr_templates *templates, uint32_t path_limit,
                                 const struct mr_template_vectors *vectors)
{
    void *block;

    *templates = (struct mr_templates){
        .listed = malloc(MR_TEMPLATES_MAX * sizeof(*templates->listed)),
        .slots = calloc(MR_TEMPLATE_SLOTS_MAX, sizeof(*templates->slots)),
        .seen = calloc(MR_TEMPLATE_SEEN, sizeof(*templates->seen)),
        .path_limit = path_limit < PATHS_MAX ? path_limit : PATHS_MAX};
    templates->paths = calloc(templates->path_limit + 1u, sizeof(*templates->paths));
    block = mr_pages_alloc(block_size(MR_TEMPLATES_FIRST));
    if (block)
        use_block(templates, block, MR_TEMPLATES_FIRST);
    if (!block || !templates->listed || !templates->paths || !templates->slots ||
        !templates->seen) {
        mr_templates_fini(templates);
        return MR_ENOMEM;
    }
    templates->count = 1; /* 0 is none */
    templates->slot_bits = MR_TEMPLATE_SLOT_BITS;
    for (uint32_t i = 0; i < MR_ARRAY_COUNT(templates->keys); i++)
        templates->keys[i] = mr_hash_key();
    templates->epoch = 1;
    templates->generation = 1;
    templates->vectors = vectors;
    make_bins(templates);
    return MR_OK;
}

void mr_templates_fini(struct mr_templates *templates)
{
    mr_pages_free(templates->items, block_size(templates->capacity));
    free(templates->listed);
    free(templates->slots);
    free(templates->seen);
    free(templates->paths);
    *templates = (struct mr_templates){0};
}

void mr_templates_clear(struct mr_templates *templates)
{
    MR_ASSERT(templates->listed_count == 0);
    if (templates->count == 1)
        return;
    memset(templates->paths, 0, templates->path_limit * sizeof(*templates->paths));
    memset(templates->slots, 0, sizeof(*templates->slots) << templates->slot_bits);
    memset(templates->longest, 0, sizeof(templates->longest));
    templates->slot_bits = MR_TEMPLATE_SLOT_BITS;
    templates->count = 1;
    templates->code_count = 0;
    templates->call_count = 0;
    templates->generation++;
}

/* Whole pages of it; they read as zero, if ever again. */
static void give_back(void *memory, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)memory + page - 1) & ~(page - 1);
    uintptr_t to = ((uintptr_t)memory + size) & ~(page - 1);

    if (from < to)
        (void)madvise((uint8_t *)memory + (from - (uintptr_t)memory), to - from,
                      MADV_DONTNEED);
}

/* It is as large as at first. */
static void give_block_back(struct mr_templates *templates)
{
    void *block = templates->capacity > MR_TEMPLATES_FIRST
                      ? mr_pages_alloc(block_size(MR_TEMPLATES_FIRST))
                      : NULL;

    if (!block) {
        give_back(templates->items, block_size(templates->capacity));
        return;
    }
    mr_pages_free(templates->items, block_size(templates->capacity));
    use_block(templates, block, MR_TEMPLATES_FIRST);
}

void mr_templates_release(struct mr_templates *templates)
{
    if (templates->count == 1 || templates->listed_count > 0)
        return;
    mr_templates_clear(templates);
    give_block_back(templates);
    give_back(templates->listed, MR_TEMPLATES_MAX * sizeof(*templates->listed));
    give_back(templates->slots, MR_TEMPLATE_SLOTS_MAX * sizeof(*templates->slots));
    give_back(templates->paths, templates->path_limit * sizeof(*templates->paths));
}
