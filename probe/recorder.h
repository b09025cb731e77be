/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder of this process (policy overwrite): a file that holds its rings and
 * all that names them, mapped shared, so that it outlives the process
 * (probe/recorder_format.h says what is in it; docs/why/2026-11-20-flight-recorder.md why).
 *
 *     status = mr_recorder_open(&recorder, &config, &source, exe, &error);
 *     pool->recorder = &recorder;                     // rings come from it from here on
 *     mr_recorder_modules(&recorder, &table);         // when it changed: what is loaded
 *     mr_recorder_sample(&recorder);                  // now and then: the clock
 *     mr_recorder_end(&recorder);                     // the program's normal end
 *
 * The file is DIR/millrace-PID-xxxxxxxxxxxxxxxx.recorder, mode 0600. It goes when the
 * program ends by itself; it stays when the program is killed, crashes, calls _exit() or
 * execs, until `millrace record --recover` takes it, or mr_recorder_prune() of any other
 * recorded program of this user finds more than MILLRACE_RECORDER_KEEP of them.
 *
 * Memory: rings under the pool's ceiling, and some 100 KiB of tables (256 bytes a named
 * site, 1 KiB a module). Every page is there before it is written to: a full file system
 * costs rings, counted as `budget`, and never a SIGBUS.
 *
 * ring_new and use: any thread, signals blocked, async-signal-safe. The rest: one thread
 * at a time; modules beside the others, under the lock of probe/changes.h.
 */
#ifndef MR_PROBE_RECORDER_H
#define MR_PROBE_RECORDER_H

#include "probe/config.h"
#include "probe/depth.h"
#include "probe/modules.h"
#include "probe/own_fd.h"
#include "probe/recorder_format.h"

struct mr_source;

struct mr_recorder {
    struct mr_recorder_header *header; /* NULL: none */
    uint64_t size;
    _Atomic uint32_t is_full;      /* no more rings: the file system has no room */
    _Atomic uint32_t is_named;     /* the file has its last name */
    _Atomic uint32_t *is_original; /* 1; in a copy of the process, 0. NULL: not known */
    struct mr_own_fd fd;           /* only where the kernel needs it to reserve pages */
    char path[MR_RECORDER_PATH_SIZE];
};

/*
 * Makes the file. MR_EIO, and which places were tried, when it can lie nowhere. In a
 * forked child it has another name until its first ring is taken.
 */
enum mr_status mr_recorder_open(struct mr_recorder *recorder,
                                const struct mr_config *config,
                                const struct mr_source *source, const char *exe,
                                struct mr_error *error);
/* Why it is not the clock that was asked for. Right after open. */
void mr_recorder_warn(struct mr_recorder *recorder, const char *clock_warning);
/* In a forked child: lets go of the parent's. */
void mr_recorder_abandon(struct mr_recorder *recorder);
/* The end: the file is removed; what is mapped stays. */
void mr_recorder_end(struct mr_recorder *recorder);

/* Words for a ring of `bytes`, prefaulted, and its place; NULL when there is no room. */
struct mr_recorder_ring *mr_recorder_ring_new(struct mr_recorder *recorder,
                                              uint64_t bytes, _Atomic uint64_t **words);
/* Makes sure of pages of the mapping before they are written to. */
bool mr_recorder_reserve(struct mr_recorder *recorder, const void *at, uint64_t bytes);

/* The table as it is now: what came, and what is gone, begin a new epoch. */
void mr_recorder_modules(struct mr_recorder *recorder,
                         const struct mr_module_table *table);
/* How many calls were not recorded for a depth limit. */
void mr_recorder_depth(struct mr_recorder *recorder, const struct mr_depth *depth);
void mr_recorder_sample(struct mr_recorder *recorder);
/* The memory of named sites, for mr_named_init_at(). */
void *mr_recorder_named(struct mr_recorder *recorder);

/* Removes what dead programs of this user left in `directory`, but for the newest. */
void mr_recorder_prune(const char *directory, uint32_t keep);
/* In the directory of this one. */
void mr_recorder_prune_beside(const struct mr_recorder *recorder, uint32_t keep);

#endif
