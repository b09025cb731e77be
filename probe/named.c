/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field        written by          read by  access
 * next         adding threads      writer   relaxed: gives numbers, publishes nothing
 * is_ready     the entry's thread  writer   release store [P], acquire load [C]
 * ready_count  adding threads      writer   release add [P], acquire load [C] in
 *                                           probe/announce.c
 * Pairs: [P]-[C] the texts before they are read; and with [W]-[S] of the ring: who sees
 * an event of a site sees its entry.
 * Progress: wait-free.
 */
#include "probe/named.h"

#include "base/atomics.h"
#include "base/compiler.h"
#include "net/wire.h"
#include "probe/recorder.h"

#include <sys/mman.h>

#define MAP_BYTES (MR_NAMED_MAX * sizeof(struct mr_named_entry))

enum mr_status mr_named_init(struct mr_named *named)
{
    void *memory = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        return MR_ENOMEM;
    named->entries = memory;
    named->recorder = NULL;
    mr_store_relaxed(&named->next, 0);
    mr_store_relaxed(&named->ready_count, 0);
    (void)mr_named_add(named, "(names past the limit)", "", 0, 0);
    return MR_OK;
}

void mr_named_fini(struct mr_named *named)
{
    if (!named->recorder)
        (void)munmap(named->entries, MAP_BYTES);
    named->entries = NULL;
}

/* Byte by byte: libc's functions use vector registers. */
static void copy_front(char *out, size_t capacity, const char *text)
{
    size_t size = 0;

    for (; size < capacity - 1 && text[size]; size++) {
        out[size] = text[size];
        MR_KEEP_LOOP(size);
    }
    out[size] = '\0';
}

static void copy_back(char *out, size_t capacity, const char *text)
{
    size_t size = 0;

    for (; text[size]; size++)
        MR_KEEP_LOOP(size);
    copy_front(out, capacity, size < capacity ? text : text + size - (capacity - 1));
}

uint32_t mr_named_add(struct mr_named *named, const char *name, const char *file,
                      uint32_t line, uint32_t flags)
{
    uint32_t index = mr_load_relaxed(&named->next);
    struct mr_named_entry *entry;

    do
        if (index >= MR_NAMED_MAX)
            return MR_SITE_FIRST_NAMED;
    while (!mr_compare_exchange_relaxed(&named->next, &index, index + 1));
    entry = &named->entries[index];
    if (named->recorder && !mr_recorder_reserve(named->recorder, entry, sizeof(*entry)))
        return MR_SITE_FIRST_NAMED;
    copy_front(entry->name, sizeof(entry->name), name ? name : "");
    copy_back(entry->file, sizeof(entry->file), file ? file : "");
    entry->line = line;
    entry->flags = flags;
    mr_store_release(&entry->is_ready, 1);        /* [P] */
    (void)mr_add_acq_rel(&named->ready_count, 1); /* [P] */
    return MR_SITE_FIRST_NAMED + index;
}

uint32_t mr_named_count(const struct mr_named *named)
{
    return mr_load_relaxed(&named->next);
}

struct mr_named_entry *mr_named_at(struct mr_named *named, uint32_t index)
{
    struct mr_named_entry *entry = &named->entries[index];

    return mr_load_acquire(&entry->is_ready) ? entry : NULL; /* [C] */
}

enum mr_status mr_named_move(struct mr_named *named, struct mr_recorder *recorder)
{
    uint32_t count = mr_named_count(named);
    struct mr_named_entry *to = mr_recorder_named(recorder);

    if (!mr_recorder_reserve(recorder, to, count * sizeof(*to)))
        return MR_ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        const struct mr_named_entry *from = mr_named_at(named, i);

        if (!from) /* its thread is in another process, and will never end it */
            continue;
        to[i].line = from->line;
        to[i].flags = from->flags;
        copy_front(to[i].name, sizeof(to[i].name), from->name);
        copy_front(to[i].file, sizeof(to[i].file), from->file);
        mr_store_release(&to[i].is_ready, 1); /* [P] */
    }
    if (!named->recorder)
        (void)munmap(named->entries, MAP_BYTES);
    named->entries = to;
    named->recorder = recorder;
    return MR_OK;
}

void mr_named_after_fork(struct mr_named *named)
{
    uint32_t count = mr_named_count(named), ready = 0;

    for (uint32_t i = 0; i < count; i++) {
        named->entries[i].is_announced = 0;
        ready += mr_load_relaxed(&named->entries[i].is_ready) != 0;
    }
    mr_store_relaxed(&named->ready_count, ready);
}
