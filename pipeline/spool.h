/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool of a worker: what it has acknowledged and not yet passed on, kept outside the process, so that a worker which is
 * killed and started again goes on as if nothing had been (docs/why/2026-11-20-spool.md).
 *
 *     DIR/lock         flock: one worker at a time
 *     DIR/frames/N     frames that came and are not covered yet, as they came (pipeline/spool_log.h)
 *     DIR/spool.db     SQLite: all that is small. Who this worker is; senders; what their sources are and where their analysis
 *                      stands (pipeline/resume.h); the outbox
 *     DIR/reserve      room that is given up when the disk is full, so that what frees room can still be written
 *
 * One transaction (mr_spool_commit) keeps the frames of a delta and says which frames of senders they cover: from then on the
 * delta goes upward, whatever happens, and the frames are not needed. Before it, the frames are analysed again.
 *
 * Owned by the worker. Any thread; a lock, held for one small transaction. What it reads is checked, never trusted: a database
 * that is damaged is refused (MR_EFORMAT), an entry that is not sound is dropped with a line in the log.
 *
 *     status = mr_spool_open(&config, &spool, &error);        // MR_EBUSY-like failures are MR_EUSAGE with the reason
 *     self = mr_spool_self(spool);
 */
#ifndef MR_PIPELINE_SPOOL_H
#define MR_PIPELINE_SPOOL_H

#include "base/atomics.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/id.h"
#include "net/custody.h"
#include "pipeline/batch.h"
#include "pipeline/resume.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_SPOOL_FORMAT 1u

struct mr_spool;

struct mr_spool_config {
    const char *folder;
    uint64_t bytes_max; /* half for frames, half for the database */
};

/* Makes the folder where there is none. MR_EUSAGE (in use, not ours, of another format), MR_EFORMAT (damaged), MR_EIO, MR_ENOMEM. */
enum mr_status mr_spool_open(const struct mr_spool_config *config,
                             struct mr_spool **spool, struct mr_error *error);
/* What is in it stays. NULL allowed. */
void mr_spool_close(struct mr_spool *spool);
struct mr_id mr_spool_self(const struct mr_spool *spool);
const char *mr_spool_folder(const struct mr_spool *spool);

/* Of a sender, for its lane. */
struct mr_spool_sender {
    struct mr_id id;
    _Atomic uint64_t covered; /* every frame up to it is in a delta that is kept */
    _Atomic uint32_t over;    /* serial of the last source whose end is kept */
    _Atomic bool is_gone;     /* forgotten: nothing of it is needed */
    _Atomic uint64_t limit;   /* no frame past it counts any more */
    /* Its lane's: */
    uint32_t serial;     /* of its last source */
    uint64_t log_serial; /* spool_log.c: of the file that it has a share in last, */
    uint32_t log_index;  /* which one, */
    uint32_t shares;     /* and in how many */
    bool is_old;         /* files of the process before have shares of it */
    /* The spool's, of its dictionaries that are kept: */
    uint32_t dict_serial;    /* of the last source that has one, */
    uint64_t dict_bytes;     /* what it takes, */
    uint64_t old_dict_bytes; /* and what those of earlier sources do */
};
/* Made when new; NULL: no memory. Forgotten, it is freed with the last share that files of its lane have of it. */
struct mr_spool_sender *mr_spool_sender(struct mr_spool *spool, struct mr_id id);
/* Whether all of its frames up to `sequence` are in deltas that are kept. */
static inline bool mr_spool_covers(const struct mr_spool_sender *sender,
                                   uint64_t sequence)
{
    return mr_load_acquire(&sender->covered) >= sequence; /* [C] in spool.c */
}

/* Where a sender stands; written before anybody is told of it. */
struct mr_spool_position {
    struct mr_custody custody; /* state, epoch, settled, attempt */
    uint32_t serial;           /* of its source; 0: it has none */
    bool has_left;
    uint8_t bye_reason;
};
/* `hello`: the payload of its HELLO, without the token. `begins`: the epoch is new, and all up to custody.settled is covered. */
enum mr_status mr_spool_put_sender(struct mr_spool *spool, struct mr_spool_sender *sender,
                                   const struct mr_spool_position *position,
                                   struct mr_span hello, bool begins,
                                   struct mr_error *error);
/* The same without a HELLO, of a sender that was put. Its source stays: only a commit of its end takes it away. */
enum mr_status mr_spool_move_sender(struct mr_spool *spool,
                                    const struct mr_spool_sender *sender,
                                    const struct mr_spool_position *position,
                                    struct mr_error *error);
/* The sender is not to be used after it. */
enum mr_status mr_spool_forget_sender(struct mr_spool *spool,
                                      struct mr_spool_sender *sender,
                                      struct mr_error *error);
/*
 * A DICT payload of a probe, expanded; it stays until its source is over. Frame 0: out of custody, told again: of its items those
 * are kept that no earlier telling had. Past an eighth of `bytes_max` for a sender, or a quarter for all, it is not kept, with a line
 * in the log. MR_ELIMIT: no room; MR_EFORMAT: frame 0, and it is damaged.
 */
enum mr_status mr_spool_put_dict(struct mr_spool *spool, struct mr_spool_sender *sender,
                                 uint32_t serial, uint64_t sequence,
                                 struct mr_span payload, struct mr_error *error);

struct mr_dict_item;
/* Whether later frames need the item to be read; others tell only how a source is, and are not kept. */
bool mr_spool_keeps_item(const struct mr_dict_item *item);

/* The other end: forward. */
struct mr_spool_frame {
    uint64_t sequence;
    uint8_t type; /* enum mr_frame_type */
    struct mr_span payload;
};
struct mr_spool_upward {
    struct mr_custody_hello custody; /* was_shown: yes */
    uint64_t frame_count,
        frame_bytes; /* of the outbox: the frames behind custody.acked */
};
enum mr_status mr_spool_get_upward(struct mr_spool *spool, struct mr_spool_upward *upward,
                                   struct mr_error *error);
/* Calls `take` with every frame of the outbox, in order; what it returns ends the walk. */
enum mr_status mr_spool_each_frame(
    struct mr_spool *spool,
    enum mr_status (*take)(void *context, const struct mr_spool_frame *frame),
    void *context, struct mr_error *error);
/*
 * Keeps DICT and DELTA batches (linked by `next`) as frames numbered from `first_sequence` on, and what the marks say. All or
 * nothing. MR_ELIMIT: there is no room now; try again when something was acknowledged.
 */
enum mr_status mr_spool_commit(struct mr_spool *spool, uint64_t first_sequence,
                               const struct mr_batch *frames, struct mr_span marks,
                               struct mr_error *error);
/* What the receiver will take us to know: to be written before it is told. Frames up to `acked` are dropped. */
enum mr_status mr_spool_keep(struct mr_spool *spool,
                             const struct mr_custody_hello *custody, uint64_t acked,
                             struct mr_error *error);

/* What was found of a sender. */
struct mr_spool_found {
    struct mr_spool_sender *sender;
    struct mr_spool_position position; /* custody.taken: the last frame that is here */
    struct mr_span hello;
    struct mr_buffer
        frames; /* those not covered, as they came; give it away, or free it */
    struct mr_resume
        *resume;             /* NULL: no source, or not begun; give it away, or free it */
    struct mr_buffer *dicts; /* DICT payloads; borrowed */
    uint32_t dict_count;
};
/* Calls `take` for each sender. Once, before anything is put. */
enum mr_status mr_spool_recover(struct mr_spool *spool,
                                enum mr_status (*take)(void *context,
                                                       struct mr_spool_found *found),
                                void *context, struct mr_error *error);

#endif
