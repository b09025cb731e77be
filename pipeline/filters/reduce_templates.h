/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates: calls that come back exactly as they were are checked and counted in bulk. Not for others than reduce.
 *
 * A template is what a call and all below it once were: the codes of its events without their times, the paths that its calls
 * are on, its node; of a root also its shape. When a call opens on a path that has templates, the batch is compared ahead with
 * them; where one fits, nothing is kept of its calls but how long they took. Eight of them are then counted at once.
 *
 *     events    O0 O1 C1 O2 C2 C0          of a call
 *     codes     O0 O1 C1 O2 C2 C0          filters/reduce_codes.h
 *     calls     1 2 0                      in the order of their ends: path, places of both events, who called it,
 *                                          the totals that wait to be counted, and which totals may wait
 *
 * Of a call inside a call tree, the last MR_TEMPLATES_PER_PATH templates of its path are tried one after the other. Of a root there may be as many
 * as there are kinds of traces: one scan of the batch finds where it ends and makes a hash of all between, which finds the template.
 *
 * It is a cache: what comes out is what the calls one by one would have given, to the byte. A call waits only where counting it
 * cannot fail: its path is in the current window, and its histogram has the bin; `epoch` tells whether that was made sure since
 * the last delta or change of window. All that wait are counted (mr_templates_settle) before a delta, another window, and
 * when paths and nodes are forgotten, the templates with them.
 *
 * A template is made of a call that has just been counted one by one, lies whole in a batch, and whose node is older than it;
 * of a root if the same came some times lately, by its hash.
 * Memory is bounded; when it is used up all templates are dropped and learned again.
 *
 * A template that does not fit costs as much as counting some calls, so each path has a score: calls taken in bulk against
 * tries that failed. Where it gets too low, the path rests: its calls are counted one by one for a while. So has the lane, as
 * streams that never repeat have many paths, each with few calls: then no path is looked at, nor learned from. One thread.
 */
#ifndef MR_PIPELINE_FILTERS_REDUCE_TEMPLATES_H
#define MR_PIPELINE_FILTERS_REDUCE_TEMPLATES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "base/status.h"
#include "pipeline/batch.h"
#include "pipeline/filters/reduce.h"
#include "pipeline/filters/reduce_codes.h"

#define MR_TEMPLATE_NONE 0u
#define MR_TEMPLATE_PART_CALLS_MIN                                                       \
    4u /* of one that is no root: less are counted as fast as they are found */
#define MR_TEMPLATE_CALLS_MAX 128u
#define MR_TEMPLATE_EVENTS_MAX (2 * MR_TEMPLATE_CALLS_MAX)
#define MR_TEMPLATES_MAX (1u << 16)
#define MR_TEMPLATES_CALLS_MAX (1u << 18)
#define MR_TEMPLATES_FIRST                                                               \
    (1u << 12)                   /* at first; with calls and codes 1.13 MiB, all 18 */
#define MR_TEMPLATES_PER_PATH 8u /* but of roots */
#define MR_TEMPLATE_SLOTS_MAX ((size_t)2 * MR_TEMPLATES_MAX)
#define MR_TEMPLATE_SLOT_BITS 10u   /* at first */
#define MR_TEMPLATE_SEEN (1u << 10) /* roots that are remembered */
#define MR_TEMPLATE_BEGINNINGS 1024u
#define MR_TEMPLATE_PATH_BITS 24 /* all paths that have templates */
#define MR_TEMPLATE_PATH_MASK ((1u << MR_TEMPLATE_PATH_BITS) - 1)
#define MR_TEMPLATE_WAITING 8u /* totals of a call that are counted at once */
/* Bins whose totals are below 2^28 ns: only such wait, so that all that wait of a call sum up to 32 bits. */
#define MR_TEMPLATE_BINS 896u
#define MR_TEMPLATE_PARTS                                                                \
    (28 * 64u) /* of totals below 2^28: 64 of a power of two, narrower than a bin */

struct mr_template_call {
    uint32_t path : MR_TEMPLATE_PATH_BITS;
    uint32_t parent : 8;  /* place of its caller among the calls; of the last: `calls` */
    uint16_t enter, exit; /* its events, by how many bytes they stand behind the first */
    uint32_t low, width;  /* totals low .. low + width - 1 have a bin; and 0 needs none */
    int32_t totals[MR_TEMPLATE_WAITING];
};

/* Which event of the call that is, the first one being 0. */
static MR_ALWAYS_INLINE uint32_t mr_template_place(uint32_t offset)
{
    return offset / (uint32_t)sizeof(struct mr_event);
}

/* One cache line: of one that does not fit, mostly nothing else is touched. */
struct mr_template {
    MR_ALIGNED(MR_CACHE_LINE) uint64_t hash; /* of a root: mr_templates_key() */
    uint32_t path;
    uint32_t next; /* of the same path, but of roots */
    uint32_t calls;
    uint32_t first_code, first_call; /* in the pools */
    uint32_t node;
    uint32_t shape; /* of a root: its place in reduce's table + 1 */
    uint32_t
        peak; /* how far its lists reach on the child stack, before the last one ends */
    uint32_t epoch; /* in which its calls may wait */
    uint32_t waiting;
    bool is_folded;
    bool is_listed; /* among those that may have calls that wait */
};

/* What is known of a path. */
struct mr_template_path {
    uint32_t first; /* template, the last that fitted */
    uint8_t misses; /* in a row, at most 255 */
    uint8_t count;  /* of its templates, but of roots */
    int8_t score;
    uint8_t rest; /* calls that are not looked at */
};

/*
 * For vectors: of a power of two, but itself, which is in the bin before, the bin that begins before or with each of 64 equal
 * parts, the first being 0; and of each bin the last fraction (of 31 bits) in it.
 */
struct mr_template_parts {
    uint8_t below[64];
    uint32_t ends[32];
};

struct mr_templates {
    struct mr_template *items;
    uint32_t *codes;
    struct mr_template_call *calls;
    uint32_t count, code_count, call_count;
    uint32_t capacity; /* templates; calls and codes: reduce_templates_memory.c */
    uint32_t *listed;
    uint32_t listed_count;
    uint32_t *slots; /* those of roots, by hash: 2^slot_bits, at most half full */
    uint32_t slot_bits;
    uint16_t *seen; /* of roots that were counted one by one: see came_often() */
    /* Of roots, by how they begin: the place of the last event of the longest template. */
    uint8_t longest[MR_TEMPLATE_BEGINNINGS];
    /* Of hashes: mr_hash_key(). The first one is not of NH; the others are for two events each, from the second event of a call on. */
    uint64_t keys[1 + (MR_TEMPLATE_EVENTS_MAX + MR_CODE_BLOCK) / 2];
    struct mr_template_path *paths; /* by number, those below path_limit */
    uint32_t path_limit;
    uint32_t epoch;
    uint32_t generation;                 /* another one whenever they are forgotten */
    int32_t score;                       /* of all paths */
    uint32_t rest;                       /* calls that are not looked at, on any path */
    uint32_t lows[MR_TEMPLATE_BINS + 2]; /* the least total of each bin */
    uint16_t bins[MR_TEMPLATE_PARTS];    /* of the least total of each part */
    const struct mr_template_vectors *vectors; /* NULL: none */
    struct mr_template_parts parts;            /* for them */
};

/* What a call is, but for its times. */
struct mr_template_key {
    uint64_t hash; /* of its path, size, and all codes but the first and the last */
    uint32_t
        size; /* events to its end, an even number; 0: too many, or it does not end among those at hand, or not in order */
};

/* The time that the calls below each have taken, one for each that waits. */
typedef int32_t mr_template_below[MR_TEMPLATE_WAITING];
/* The bins of what waits, as places in the pool; somewhere for 0. They are asked for. */
typedef uint32_t mr_template_places[MR_TEMPLATE_WAITING];

struct mr_reduce;

/* What this processor has, at most as wide; NULL: none. */
const struct mr_template_vectors *mr_templates_vectors(enum mr_vectors most);

/* reduce_templates_memory.c, up to mr_templates_have_room(). MR_ENOMEM. Pages that are not used are not taken. `path_limit` 0: there will be none. `vectors` may be NULL. */
enum mr_status mr_templates_init(struct mr_templates *templates, uint32_t path_limit,
                                 const struct mr_template_vectors *vectors);
void mr_templates_fini(struct mr_templates *templates);
/* Forgets them all; none has calls that wait. */
void mr_templates_clear(struct mr_templates *templates);
/* The same, and gives their pages back to the system: between bursts. Nothing happens while calls wait. */
void mr_templates_release(struct mr_templates *templates);

/* Makes room for one more, of `calls` calls; pointers into the pools are then of no use. False: clear them first. */
bool mr_templates_have_room(struct mr_templates *templates, uint32_t calls);

/* Whether a call that opens on `path` is to be looked for: once for each. */
static MR_ALWAYS_INLINE bool mr_templates_try(struct mr_templates *templates,
                                              uint32_t path)
{
    struct mr_template_path *known;

    if (templates->rest) {
        templates->rest--;
        return false;
    }
    if (path >= templates->path_limit || !templates->paths[path].first)
        return false;
    known = &templates->paths[path];
    if (MR_LIKELY(known->rest == 0))
        return true;
    known->rest--;
    return false;
}

static MR_ALWAYS_INLINE uint32_t mr_templates_misses(const struct mr_templates *templates,
                                                     uint32_t path)
{
    return path < templates->path_limit ? templates->paths[path].misses : 0;
}

/* The bin of a total that may wait, but 0: what mr_bin_of() says, in half of the instructions. */
static MR_ALWAYS_INLINE uint32_t mr_templates_bin(const struct mr_templates *templates,
                                                  uint32_t total)
{
    double exact = (double)(int32_t)total;
    uint64_t bits;
    uint32_t bin;

    memcpy(&bits, &exact, sizeof(bits)); /* IEEE 754: power + 1023, 52 bits of fraction */
    bin = templates->bins[(uint32_t)(bits >> 46) - (1023 << 6)];
    return bin + (total >= templates->lows[bin + 1]);
}

/*
 * reduce_templates_find.c: the template of `path` that `count` codes begin with; NULL. Of a root; of another call. Behind the codes
 * there may be anything, but some memory: MR_CODE_BLOCK.
 */
struct mr_template *mr_templates_find_root(struct mr_reduce *reduce, uint32_t path,
                                           const uint32_t *codes, uint32_t count);
struct mr_template *mr_templates_find_part(struct mr_reduce *reduce, uint32_t path,
                                           const uint32_t *codes, uint32_t count);
/* Of the call that opens with the first of `codes`, on `path`. With vectors the same comes out as without. */
struct mr_template_key mr_templates_key(const struct mr_templates *templates,
                                        uint32_t path, const uint32_t *codes,
                                        uint32_t count);
/* Its calls, at these events, wait to be counted. False, with nothing changed, where one must take the slow path. */
bool mr_templates_keep(struct mr_reduce *reduce, struct mr_template *template,
                       const struct mr_event *events);
/*
 * Traces one after the other, at most MR_TEMPLATE_WAITING, told by the times of their events alone (pipeline/repeat.h): puts the
 * totals of their calls where totals wait, then counts them, with nothing in between. False, with nothing changed, where one
 * must take the slow path.
 */
bool mr_templates_fill(struct mr_reduce *reduce, struct mr_template *template,
                       const uint32_t *times, uint32_t traces);
void mr_templates_count(struct mr_reduce *reduce, struct mr_template *template,
                        uint32_t traces);
/* Counts all calls that wait, in the current window. */
void mr_templates_settle(struct mr_reduce *reduce);

/* reduce_templates_find.c: makes a template of a call on `path` that was counted: `count` events of the run, whose node is below `nodes_known`. */
void mr_templates_learn(struct mr_reduce *reduce, uint32_t path,
                        const struct mr_event *events, uint32_t count,
                        uint32_t nodes_known);

/*
 * What of all this is done with vectors that only some processors have: what comes out is the same. reduce_templates_wide.c,
 * for where MR_CPU_IS_WIDE() alone; reduce_templates_wider.c, where MR_CPU_IS_WIDER().
 */
struct mr_template_vectors {
    /*
     * Counts MR_TEMPLATE_WAITING of each call, but in their bins. `child` and `places` have room for `count` calls and one
     * more; how many `places` there are: of calls that did not all take no time.
     */
    uint32_t (*gain)(struct mr_reduce *reduce, const struct mr_template_call *calls,
                     uint32_t count, mr_template_below *child,
                     mr_template_places *places);
    struct mr_template *(*find_part)(struct mr_reduce *reduce, uint32_t path,
                                     const uint32_t *codes, uint32_t count);
    /* As mr_templates_key(), with the sum of all mr_template_product() in the place of the hash; `count` <= MR_TEMPLATE_EVENTS_MAX. */
    struct mr_template_key (*sum)(const struct mr_templates *templates,
                                  const uint32_t *codes, uint32_t count);
    /* mr_code_of() each; how many it made: not the last ones, where less than MR_CODE_BLOCK are left. */
    uint32_t (*make_codes)(const struct mr_event *events, uint32_t count,
                           uint32_t *codes);
    /*
     * The totals of `count` calls in MR_TEMPLATE_WAITING traces one after the other, whose events are theirs alone; behind `times`
     * there may be anything, but some memory: MR_TEMPLATE_WAITING. False when one may not wait.
     */
    bool (*fill)(struct mr_template_call *calls, uint32_t count, const uint32_t *times);
};

#if MR_HAS_WIDE_BUILD
extern const struct mr_template_vectors mr_template_vectors_wide;
extern const struct mr_template_vectors mr_template_vectors_wider;
#endif

/*
 * The share of two codes in the hash, by the key of their place: NH of UMAC (RFC 4418, 5.2.2), with as many keys as codes. Two
 * calls that differ meet in one in 2^32.
 */
static MR_ALWAYS_INLINE uint64_t mr_template_product(uint64_t key, uint64_t pair)
{
    uint32_t low = (uint32_t)key + (uint32_t)pair;
    uint32_t high = (uint32_t)(key >> 32) + (uint32_t)(pair >> 32);

    return (uint64_t)low * high;
}

/* reduce_templates_play.c: plays the events of one counted call again. False when they are anything else. */
bool mr_template_play(struct mr_reduce *reduce, uint32_t path,
                      const struct mr_event *events, uint32_t count,
                      struct mr_template *template, struct mr_template_call *calls);

#endif
