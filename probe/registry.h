/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe of this process: the one mutable global of the library, mapped when tracing
 * is asked for and never freed, because hooks may come until the very end.
 *
 *     struct mr_probe *probe = mr_probe;               // NULL: not traced
 *
 * `mr_probe_active` (public header) is set after everything here stands, and cleared at
 * the end of the program; who sees it set may use `mr_probe`.
 */
#ifndef MR_PROBE_REGISTRY_H
#define MR_PROBE_REGISTRY_H

#include "base/id.h"
#include "probe/changes.h"
#include "probe/clock.h"
#include "probe/config.h"
#include "probe/counters.h"
#include "probe/depth.h"
#include "probe/modules.h"
#include "probe/named.h"
#include "probe/own_fd.h"
#include "probe/pool.h"
#include "probe/prune.h"
#include "probe/recorder.h"
#include "probe/tick.h"

#include <pthread.h>

#define MR_LOSS_STRIPES MR_RECORDER_STRIPES
#define MR_TEXT_SIZE 256

/* Constant but in a forked child, which sets it anew. */
struct mr_source {
    struct mr_id id;
    uint32_t pid;
    bool is_forked; /* connects only once it has something to send */
    uint64_t start_ns;
    struct mr_clock_sample first_sample;
    char host[MR_TEXT_SIZE];
};

struct mr_control;
struct mr_writer;

/* The writer's numbers of its link, for mr_probe_link(). */
struct mr_link {
    _Atomic uint32_t encoding, reason; /* enum mr_encoding, enum mr_encoding_reason */
    _Atomic uint64_t changes, events, bytes, encode_ns;
};

#define MR_OWN_THREADS_MAX 4 /* writer, helper, ticker, control */

struct mr_probe {
    struct mr_config config; /* its endpoints may be set by the first switch */
    struct mr_pool pool;
    struct mr_named named;
    struct mr_windows windows;
    struct mr_source source;
    struct mr_probe_clock clock;
    struct mr_ticker ticker; /* of clock hybrid */
    uint64_t main_address;
    uint32_t main_tid;
    struct mr_own_fd error_output; /* as it was at the start */
    pthread_key_t thread_key;
    struct mr_counters counters;
    struct mr_depth depth;
    _Atomic uint64_t context_ids; /* given to threads so far, probe/context.c */
    struct mr_prune prune;
    /*
     * Events lost before they had a stream; striped, so that threads do not share a line.
     * The recorder's, where there is one.
     */
    struct mr_loss_stripe *stripes, own_stripes[MR_LOSS_STRIPES];
    struct mr_recorder recorder; /* policy overwrite */

    /* See probe/switch.c. */
    _Atomic uint32_t switching, is_on;
    _Atomic uint32_t is_running; /* writer and helper were started in this process */
    bool is_whole;               /* all that can be on is; who switches */
    bool is_unusable;            /* a forked child that could not begin anew */
    struct mr_control *control;  /* NULL: not asked for */

    /* Requests to the writer and its answers; futexes. */
    _Atomic uint32_t flush_wanted, flush_done;
    _Atomic uint32_t stop_wanted, stopped;
    /* The writer's counts for mr_probe_stats(). */
    _Atomic uint64_t events_written, events_acked, events_discarded;
    _Atomic uint64_t lost[MR_LOSS_REASON_COUNT];
    struct mr_link link;
    struct mr_writer *writer;

    /*
     * From helper to writer. Addresses belong to the helper while has_addresses is 0, to the
     * writer while it is 1; who wants them renewed gives them back.
     */
    struct mr_sender_address addresses[MR_SENDER_ADDRESSES_MAX];
    uint32_t address_count;
    bool has_names; /* not all hosts are numeric: addresses may change */
    _Atomic uint32_t has_addresses;
    _Atomic uint32_t is_full; /* the writer has no room: who waits for it gives up */
    _Atomic uint32_t is_helper_done; /* the last look at the modules is over */
    /* Keep the helper out of the loader while the program forks; see helper.c. */
    _Atomic uint32_t is_scanning, is_forking;
    _Atomic uint32_t own_started, own_begun; /* threads of ours, own_thread.c */
    _Atomic uint32_t own_tids[MR_OWN_THREADS_MAX], own_next; /* last_thread.c */
    _Atomic uint32_t is_over; /* the program has no thread any more; the same */
    uint64_t generation;      /* of modules at the helper's last look */
    struct mr_changes changes;
};

MR_HIDDEN extern struct mr_probe *mr_probe;

/* The state of the calling thread. */
MR_HIDDEN extern _Thread_local struct mr_thread mr_thread_self MR_TLS_INITIAL_EXEC;

/*
 * The cold way of an event on a thread without a ring: gives it one, or counts the event
 * as lost. errno is preserved.
 */
MR_COLD MR_NOINLINE MR_HIDDEN void mr_thread_event(struct mr_thread *thread,
                                                   const struct mr_event *event);
/* Cuts (probe/cuts.h) before the thread began, as far as that is known. thread_began.c */
MR_HIDDEN uint32_t mr_thread_cuts_before(const struct mr_probe *probe,
                                         const struct mr_thread *thread, uint32_t tid);
/* A ring for the calling thread, if there can be one. */
MR_HIDDEN bool mr_thread_meet(struct mr_thread *thread);
MR_HIDDEN void mr_thread_key_init(struct mr_probe *probe);
/* In a forked child: the thread that forked has no ring yet. */
MR_HIDDEN void mr_thread_after_fork(struct mr_thread *thread);
/* Events lost so far for this reason, wherever they are counted. */
MR_HIDDEN uint64_t mr_probe_lost(const struct mr_probe *probe, uint32_t reason);
/* Sum over the stripes. */
MR_HIDDEN uint64_t mr_probe_source_lost(const struct mr_probe *probe, uint32_t reason);

/* Starts writer and helper. MR_ENOMEM. */
MR_HIDDEN enum mr_status mr_probe_run(struct mr_probe *probe, struct mr_error *error);
/* Whether spans and patchable functions that are on record, and whether hooks do. */
MR_HIDDEN void mr_probe_set_active(bool is_active);
/* As mr_probe_flush(), also while recording is off. False: not within the time. */
MR_HIDDEN bool mr_probe_flush_within(struct mr_probe *probe, uint64_t timeout_ns);

/* The start of writer and helper. Signals are blocked in both. MR_ENOMEM. */
MR_HIDDEN enum mr_status mr_writer_start(struct mr_probe *probe);
MR_HIDDEN enum mr_status mr_helper_start(struct mr_probe *probe);
/* In a forked child, before a new start. */
MR_HIDDEN void mr_writer_after_fork(struct mr_probe *probe);
/* The writer: some words wait for a look at the modules. */
MR_HIDDEN void mr_helper_ask(struct mr_probe *probe);
MR_HIDDEN void mr_helper_before_fork(struct mr_probe *probe);
MR_HIDDEN void mr_helper_after_fork(struct mr_probe *probe, bool is_child);

/* In a forked child: no thread is being started. */
MR_HIDDEN void mr_interpose_after_fork(void);

/* Starts one of our own threads: all signals blocked, detached. own_thread.c */
MR_HIDDEN enum mr_status mr_own_thread(struct mr_probe *probe, void *(*start)(void *));
/* The first that `start` does. `name`: 15 bytes at most, as tools show it. */
MR_HIDDEN void mr_own_thread_begin(struct mr_probe *probe, const char *name);
/* The last that one does which may end before the process: its number may be that of a thread of the program later. */
MR_HIDDEN void mr_own_thread_end(struct mr_probe *probe);
MR_HIDDEN void mr_own_threads_before_fork(struct mr_probe *probe);
/* In a forked child, before a new start. */
MR_HIDDEN void mr_own_threads_after_fork(struct mr_probe *probe);

/* Our own threads, now and then: where none but they are left, the process ends. last_thread.c */
MR_HIDDEN void mr_last_thread_look(struct mr_probe *probe);
/* Of this process. False also where that is not known. thread_began.c */
MR_HIDDEN bool mr_thread_has_ended(uint32_t tid);

#endif
