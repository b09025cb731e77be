/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sites of manual spans: name, file and line, copied when a site is first met, because
 * the module that holds them may be unloaded before the writer sends them.
 *
 *     uint32_t site = mr_named_add(&named, "parse", "parse.c", 42, 0);
 *
 * add: any thread, async-signal-safe, lock-free. Reading (mr_named_at()): the writer.
 */
#ifndef MR_PROBE_NAMED_H
#define MR_PROBE_NAMED_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_NAMED_MAX (UINT32_C(1) << 16)
#define MR_NAMED_NAME_SIZE 128 /* with the zero; longer names are cut */
#define MR_NAMED_FILE_SIZE 112 /* with the zero; the end of longer ones is kept */

struct mr_named_entry {
    _Atomic uint32_t is_ready;
    uint32_t line, flags;
    uint32_t is_announced; /* the writer's */
    char name[MR_NAMED_NAME_SIZE];
    char file[MR_NAMED_FILE_SIZE];
};

struct mr_recorder;

struct mr_named {
    struct mr_named_entry *entries; /* mapped: MR_NAMED_MAX, pages as they are used */
    struct mr_recorder *recorder;   /* whose memory they lie in, or NULL */
    _Atomic uint32_t next;
    _Atomic uint32_t ready_count;
};

/* MR_ENOMEM. */
enum mr_status mr_named_init(struct mr_named *named);
void mr_named_fini(struct mr_named *named);
/*
 * Puts the entries into the recorder's memory, with those that there are; what was mapped
 * before is unmapped but where it was a recorder's. One thread.
 */
enum mr_status mr_named_move(struct mr_named *named, struct mr_recorder *recorder);
/*
 * A site number (MR_SITE_FIRST_NAMED and up). Past MR_NAMED_MAX all names share the
 * first, which says so.
 */
uint32_t mr_named_add(struct mr_named *named, const char *name, const char *file,
                      uint32_t line, uint32_t flags);
/* In a forked child: nothing is announced; what other threads were adding never comes. */
void mr_named_after_fork(struct mr_named *named);
/* How many entries may be looked at. */
uint32_t mr_named_count(const struct mr_named *named);
/* The entry of site MR_SITE_FIRST_NAMED + index, or NULL while it is being written. */
struct mr_named_entry *mr_named_at(struct mr_named *named, uint32_t index);

#endif
