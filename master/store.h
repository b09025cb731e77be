/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: a directory with one SQLite database (WAL) that holds the model.
 *
 *     ingest thread                 commit thread
 *     mr_store_append() --batch--> journal rows + sender positions   every commit interval
 *     mr_store_committed() <------ batch, durable                    -> acknowledge
 *                                  checkpoint: what changed in the   every few seconds, or
 *                                  model since the last one, and     by size of the journal
 *                                  the journal rows it holds go
 *
 *                                  trim: the oldest windows go        after a checkpoint that
 *                                  (max_bytes)                       leaves it too large
 *
 * A frame is durable when its journal row is; a checkpoint only moves it into tables that
 * can be asked. Load = tables, then the journal's rows in order: exactly what was there.
 * One process may have a store open for writing (lock file); reading needs no lock.
 *
 * Threads: append and committed belong to one thread (ingest); the store has its own
 * commit thread between start and stop; stats from any.
 *
 * Use:
 *     mr_store_open(&config, model, &store, &error);       // loads into model
 *     mr_store_start(store);
 *     mr_store_append(store, sender, sequence, type, payload);
 *     while (mr_store_committed(store, &position)) acknowledge(position.sender, ...);
 *     mr_store_stop(store);                                // last commit and checkpoint
 *     mr_store_close(store);
 */
#ifndef MR_MASTER_STORE_H
#define MR_MASTER_STORE_H

#include "base/error.h"
#include "base/id.h"
#include "base/span.h"
#include "base/status.h"
#include "master/model.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_STORE_SCHEMA_VERSION 1
#define MR_STORE_FILE "millrace.sqlite" /* in the directory */
#define MR_STORE_LOCK "lock"
#define MR_STORE_PENDING_MAX (UINT64_C(64) << 20) /* bytes not committed: then wait */
#define MR_STORE_SENDER_KEEP_DAYS                                                        \
    30 /* a sender's position, and what was decided about it, is forgotten after */
#define MR_STORE_DECISIONS_MAX (1u << 20)
/* The sender whose positions tell how much of the register is durable. */
#define MR_STORE_REGISTER ((struct mr_id){UINT64_MAX, UINT64_MAX})

enum mr_store_sync { MR_STORE_SYNC_FULL = 0, MR_STORE_SYNC_NORMAL = 1 };

struct mr_store_config {
    const char *directory; /* made if missing */
    enum mr_store_sync sync;
    uint64_t commit_interval_ns;
    uint64_t checkpoint_interval_ns;
    uint64_t checkpoint_bytes; /* of journal since the last one */
    /*
     * Of pages in use (the WAL comes on top), as the last checkpoint left them; past 9/10 of it the oldest windows go that no
     * series holds. Totals stay, whatever their size. 0: no limit.
     */
    uint64_t max_bytes;
};

/* Everything of `sender` up to `sequence` is durable. */
struct mr_store_position {
    struct mr_id sender;
    uint64_t sequence;
};

struct mr_store_stats {
    uint64_t commits, commit_rows, commit_bytes, commit_ns_sum, commit_ns_max;
    uint64_t latency_ns_sum, latency_ns_max; /* first append of a batch to durable */
    uint64_t checkpoints, checkpoint_rows, checkpoint_ns_sum, checkpoint_ns_max;
    /* Pages in use after the last checkpoint or trim; as configured. */
    uint64_t used_bytes, max_bytes;
    bool is_over_max; /* more than max_bytes are used, and nothing may go */
    /* Of old windows; the transactions that dropped them. */
    uint64_t trimmed_rows, trim_ns_sum, trim_ns_max;
    uint64_t failures;      /* transactions that failed and are tried again */
    uint64_t pending_bytes; /* appended, not yet durable */
    uint64_t progress_ns;   /* CLOCK_MONOTONIC of the commit thread's last turn */
    uint64_t
        failing_ns; /* CLOCK_MONOTONIC of the first of the failures without a success since; 0: none */
};

struct mr_store;

/*
 * Opens or makes the store and loads it into `model` (new and empty; it must live as long
 * as the store), which is published. MR_EIO: not writable, MR_EADDR: another process has
 * it, MR_EVERSION: made by another version, MR_EFORMAT: damaged; each with the place and
 * what to do in `error`.
 */
enum mr_status mr_store_open(const struct mr_store_config *config, struct mr_model *model,
                             struct mr_store **store, struct mr_error *error);
enum mr_status mr_store_start(struct mr_store *store, struct mr_error *error);
/* Commits and checkpoints what is there, and ends the thread. The last status. */
enum mr_status mr_store_stop(struct mr_store *store);
void mr_store_close(struct mr_store *store); /* NULL allowed */

/* The last committed sequence of a sender, 0 if none. Ingest thread. */
uint64_t mr_store_position(const struct mr_store *store, struct mr_id sender);
/*
 * Queues a frame for the next commit; its journal number comes back, for
 * mr_model_set_journal(). MR_AGAIN: too much is pending, nothing was taken; MR_ENOMEM.
 */
enum mr_status mr_store_append(struct mr_store *store, struct mr_id sender,
                               uint64_t sequence, uint8_t type, struct mr_span payload,
                               uint64_t *number);
/* Whether an append of `size` bytes would be taken. */
bool mr_store_has_room(struct mr_store *store, uint64_t size);
/*
 * The register of custody, net/custody.h: up to which frame the custodian of the sender's epoch has them. If that is not
 * decided yet, it is now, as *position; else *position is as decided. To be told only once mr_store_is_decided(*ticket).
 * MR_AGAIN, MR_ENOMEM as append; MR_ELIMIT: MR_STORE_DECISIONS_MAX of the last 30 days are there.
 */
enum mr_status mr_store_decide(struct mr_store *store, struct mr_id subject,
                               uint64_t epoch, uint64_t *position, uint64_t *ticket);
/* Whether it is durable; it is after mr_store_committed() told the position `ticket` of MR_STORE_REGISTER. */
bool mr_store_is_decided(const struct mr_store *store, uint64_t ticket);
/* Readable (poll) when positions wait for mr_store_committed(). */
int mr_store_event_fd(const struct mr_store *store);
/* Takes one position that became durable; false: none. */
bool mr_store_committed(struct mr_store *store, struct mr_store_position *position);
void mr_store_stats(struct mr_store *store, struct mr_store_stats *stats);
const char *mr_store_directory(const struct mr_store *store);

/*
 * Reads a store into `model` (new and empty) without changing it, also while a master
 * writes it, and publishes. For `millrace report`. The folder need not be writable, unless what a killed
 * master left in the journal is still to be read into the store (MR_EIO). MR_ENOTFOUND: no store there; else as
 * mr_store_open().
 */
enum mr_status mr_store_load(const char *directory, struct mr_model *model,
                             struct mr_error *error);

#endif
