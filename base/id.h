/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A 128-bit id: of a source, a trace (random), a site or a shape (a hash). A plain value;
 * any thread.
 *
 * Use:
 *     struct mr_id id;
 *     char text[MR_ID_TEXT_SIZE];
 *     if (mr_id_random(&id) == MR_OK)
 *         puts(mr_id_format(id, text));
 */
#ifndef MR_BASE_ID_H
#define MR_BASE_ID_H

#include "base/compiler.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mr_id {
    uint64_t hi;
    uint64_t lo;
};

#define MR_ID_HEX_COUNT 32
#define MR_ID_TEXT_SIZE (MR_ID_HEX_COUNT + 1) /* with the terminating zero */

static inline bool mr_id_equal(struct mr_id a, struct mr_id b)
{
    return a.hi == b.hi && a.lo == b.lo;
}

/* The all-zero id stands for "none". */
static inline bool mr_id_is_zero(struct mr_id id)
{
    return (id.hi | id.lo) == 0;
}

/*
 * Below, equal, above 0 as `a` sorts before, with, after `b`: as 128-bit numbers, and as
 * their texts.
 */
static inline int mr_id_compare(struct mr_id a, struct mr_id b)
{
    if (a.hi != b.hi)
        return a.hi < b.hi ? -1 : 1;
    if (a.lo != b.lo)
        return a.lo < b.lo ? -1 : 1;
    return 0;
}

/*
 * A 64-bit hash for tables in memory: good low bits even for ids that count up (constants
 * of MurmurHash3's finaliser). The key is the table's own (mr_hash_key()): ids come off the
 * wire, and who does not know it cannot choose those that meet. Never store or send it.
 */
static inline uint64_t mr_id_hash(struct mr_id id, uint64_t key)
{
    mr_u128 product = (mr_u128)(id.lo ^ key) * (id.hi ^ (key << 32 | key >> 32));
    uint64_t mix = (uint64_t)product ^ (uint64_t)(product >> 64);

    mix = (mix ^ mix >> 33) * UINT64_C(0xff51afd7ed558ccd);
    mix = (mix ^ mix >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return mix ^ mix >> 33;
}

/* A random id, never zero, from the kernel's generator. MR_EIO if that fails. */
enum mr_status mr_id_random(struct mr_id *id);

/* Writes 32 lower-case hexadecimal digits, hi first, and a zero; returns `text`. */
char *mr_id_format(struct mr_id id, char text[MR_ID_TEXT_SIZE]);

/*
 * Reads exactly 32 hexadecimal digits of either case. MR_EFORMAT, with `id` unchanged,
 * for anything else.
 */
enum mr_status mr_id_parse(const char *text, size_t size, struct mr_id *id);

#endif
