/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules that came and went, from whoever sees it to the writer. Stock is taken
 *
 *     in a module with patchable sites   by its constructor: nothing ran in it yet
 *     in dlclose(), before and after     what goes was known, and when it went
 *     by the helper                      ten times a second, and when the writer asks
 *
 * and what is other than the last time goes into a queue, with the time from which on it
 * holds. The writer gives each such moment an epoch of the module table, and cuts each
 * stream there (probe/epochs.h); so nobody waits for it.
 *
 *     mr_changes_look(probe, is_patient);                     // any thread
 *     mr_changes_attach(changes, &table);                     // before there is a writer
 *     while ((change = mr_changes_next(changes)) != NULL) {   // the writer
 *         ...
 *         mr_changes_taken(changes);
 *     }
 *
 * field          written by         read by    access
 * holder         who looks          the same   compare-exchange [A], release [F]; waits are bounded
 * known, fresh,  who looks          who looks  under holder
 *  generation
 * begun, done    who looks          writer     release [B] [D], acquire [E]
 * queue, head    who looks          writer     release [P], acquire [C]
 * tail           writer             who looks  release [T], acquire [R]
 * opened_ns      who calls dlopen() writer     relaxed: from about when on to be careful
 * Checked by: tests/unit/probe/test_epochs.c, tests/race/test_changes.c,
 * tests/system/plugins
 */
#ifndef MR_PROBE_CHANGES_H
#define MR_PROBE_CHANGES_H

#include "base/atomics.h"
#include "base/status.h"
#include "probe/modules.h"

#include <stddef.h>

/* A power of two; pages of those that were never waiting are never there. */
#define MR_CHANGES_MAX 512

struct mr_probe;

struct mr_module_change {
    uint64_t ticks; /* from then on */
    bool is_gone;
    struct mr_module module;
};

struct mr_changes {
    _Atomic uint32_t holder;
    _Atomic bool is_forking_locked; /* by who forks */
    bool has_writer;
    uint64_t generation;  /* of the loader, when `known` was made */
    uint64_t site_beyond; /* next one for a module outside both windows */
    struct mr_module_table known, fresh;
    bool is_there[MR_MODULES_MAX]; /* of `known`: seen this time */
    _Atomic uint32_t begun, done;  /* looks */
    _Atomic uint64_t opened_ns;    /* last dlopen() */
    _Atomic uint32_t head, tail;
    struct mr_module_change queue[MR_CHANGES_MAX];
};

/* At the start of the probe, which is still alone; sets the windows, too. */
void mr_changes_start(struct mr_changes *changes, struct mr_windows *windows);
/*
 * Takes stock. `is_patient`: waits, a second at most, where the queue is full. False:
 * nothing came or went. Any thread but the writer; signals are blocked meanwhile.
 */
bool mr_changes_look(struct mr_probe *probe, bool is_patient);
/* `table`: the modules of now, numbered from 0, of epoch 1. What comes is queued from here on. */
enum mr_status mr_changes_attach(struct mr_changes *changes,
                                 struct mr_module_table *table);
void mr_changes_before_fork(struct mr_changes *changes);
void mr_changes_after_fork(struct mr_changes *changes, bool is_child);

/* The writer's. NULL: none waits. */
static inline const struct mr_module_change *mr_changes_next(
    const struct mr_changes *changes)
{
    uint32_t tail = mr_load_relaxed(&changes->tail); /* our own */

    if (mr_load_acquire(&changes->head) == tail) /* [C] */
        return NULL;
    return &changes->queue[tail % MR_CHANGES_MAX];
}

static inline void mr_changes_taken(struct mr_changes *changes)
{
    mr_store_release(&changes->tail, mr_load_relaxed(&changes->tail) + 1); /* [T] */
}

#endif
