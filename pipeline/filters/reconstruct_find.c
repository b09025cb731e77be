/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the call that an exit is of, when it is not the innermost. A sender whose exits match nothing on a deep stack would
 * have the whole stack searched for each; so whole blocks of calls that were searched once are remembered as sets of sites.
 *
 *     calls:  | block 0 ....M | block 1 ....M | block 2 ....M | not summed up ...... top
 *              `--------- summed ----------'
 *
 * A set may hold more than the block (a Bloom filter of two bits a site, so about 1 block in 60 is searched in vain) but
 * never less; what is found is the same. The last call of each block is marked (M): run() leaves a marked call to the slow
 * path, which takes the block back. So calls in order pay nothing, and a stray exit costs a bit test per block, and
 * at most two blocks whatever was popped before.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "pipeline/filters/reconstruct_private.h"

#define BLOCK 256u /* calls */
#define WORDS 64u  /* of 64 bits: 16 bits a call */

struct mr_call_block {
    bool has_unknown; /* a call that any exit may be of */
    uint64_t bits[WORDS];
};

static bool is_of(uint64_t call, uint32_t site)
{
    return (uint32_t)call == site || (call & MR_CALL(0, MR_EVENT_UNKNOWN));
}

/* No sender knows where a stream lies in memory, so none can choose sites that collide. */
static uint64_t hash_of(const struct mr_reconstruct_stream *stream, uint32_t site)
{
    uint64_t hash = (site ^ (uint64_t)(uintptr_t)stream) * UINT64_C(0x9e3779b97f4a7c15);

    return (hash ^ hash >> 32) * UINT64_C(0xff51afd7ed558ccd);
}

static void set_bit(struct mr_call_block *block, uint64_t bit)
{
    block->bits[bit / 64 % WORDS] |= UINT64_C(1) << bit % 64;
}

static bool has_bit(const struct mr_call_block *block, uint64_t bit)
{
    return block->bits[bit / 64 % WORDS] >> bit % 64 & 1;
}

static bool may_have(const struct mr_call_block *block, uint64_t hash)
{
    return block->has_unknown ||
           (has_bit(block, hash >> 52) && has_bit(block, hash >> 40));
}

/* From `to` down to `from`; MR_RECONSTRUCT_NOT_OPEN. */
static uint32_t search(const struct mr_reconstruct_stream *stream, uint32_t from,
                       uint32_t to, uint32_t site)
{
    while (to-- > from)
        if (is_of(stream->calls[to], site))
            return to;
    return MR_RECONSTRUCT_NOT_OPEN;
}

static void sum_up(struct mr_reconstruct_stream *stream, uint32_t number)
{
    struct mr_call_block *block = &stream->blocks[number];
    uint64_t *calls = stream->calls + (size_t)number * BLOCK;

    memset(block, 0, sizeof(*block));
    for (uint32_t i = 0; i < BLOCK; i++) {
        uint64_t hash = hash_of(stream, (uint32_t)calls[i]);

        block->has_unknown |= (calls[i] & MR_CALL(0, MR_EVENT_UNKNOWN)) != 0;
        set_bit(block, hash >> 52);
        set_bit(block, hash >> 40);
    }
    calls[BLOCK - 1] |= MR_CALL_MARK;
}

/* Without memory nothing is remembered. */
static void sum_all(struct mr_reconstruct_stream *stream)
{
    uint32_t count = stream->depth / BLOCK;

    if (count > stream->block_capacity) {
        uint32_t capacity = stream->capacity / BLOCK;
        struct mr_call_block *grown =
            realloc(stream->blocks, capacity * sizeof(*stream->blocks));

        MR_ASSERT(capacity >= count);
        if (!grown)
            return;
        stream->blocks = grown;
        stream->block_capacity = capacity;
    }
    while (stream->block_count < count)
        sum_up(stream, stream->block_count++);
}

uint32_t mr_reconstruct_find(struct mr_reconstruct_stream *stream, uint32_t site)
{
    uint32_t number = stream->block_count;
    uint32_t at = search(stream, number * BLOCK, stream->depth, site);
    uint64_t hash;

    if (at != MR_RECONSTRUCT_NOT_OPEN)
        return at;
    sum_all(stream);
    hash = hash_of(stream, site);
    while (number-- > 0 && at == MR_RECONSTRUCT_NOT_OPEN)
        if (may_have(&stream->blocks[number], hash))
            at = search(stream, number * BLOCK, (number + 1) * BLOCK, site);
    return at;
}

void mr_reconstruct_unmark(struct mr_reconstruct_stream *stream, uint32_t at)
{
    MR_ASSERT(at % BLOCK == BLOCK - 1 && stream->block_count == at / BLOCK + 1);
    stream->block_count = at / BLOCK;
}
