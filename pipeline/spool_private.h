/* SPDX-License-Identifier: Apache-2.0 */
/* What spool.c (the database), spool_open.c (its folder), spool_recover.c (what is in it) and spool_log.c (the frames) share. Not for others. */
#ifndef MR_PIPELINE_SPOOL_PRIVATE_H
#define MR_PIPELINE_SPOOL_PRIVATE_H

#include "pipeline/spool.h"
#include "pipeline/spool_log.h"
#include "pipeline/sql.h"

#include <pthread.h>

#define MR_SPOOL_RECORD_SIZE 56u
#define MR_SPOOL_FILE_HEAD 16u
#define MR_SPOOL_SENDERS_MAX (1u << 20)

/* The records of one file of frames that a sender has in it. */
struct mr_spool_share {
    struct mr_spool_sender *sender;
    uint64_t last; /* sequence */
};

struct mr_mark;

/* One file of frames. */
struct mr_spool_file {
    uint64_t number;     /* its name */
    uint64_t generation; /* 0: nothing was written */
    uint64_t serial;     /* of what is in it now, for mr_spool_sender.log_serial */
    size_t size, allocated;
    struct mr_spool_share *shares;
    uint32_t share_count, share_capacity;
    uint32_t unused; /* tidies since something of it was needed */
    bool is_old;     /* of the process before: nothing is appended */
    int fd;
    struct mr_spool_file *next;
};

struct mr_spool {
    struct mr_spool_config config;
    char folder[256];
    int lock_fd;
    struct mr_id self;
    pthread_mutex_t lock; /* of all below but what is atomic or of a log */
    sqlite3 *db;
    bool has_reserve;
    struct mr_table ids; /* -> senders */
    struct mr_spool_sender **senders;
    uint32_t sender_count, sender_capacity;
    struct mr_resume_sites sites;
    uint64_t dict_bytes;   /* of all senders' */
    uint64_t stream_bytes; /* of long states of streams, at least; see spool_stream.c */
    bool is_stream_bytes_counted; /* in this transaction: once is enough */
    struct mr_spool_file *old;    /* files of the worker before; then of the first log */
    struct mr_spool_log *logs;
    _Atomic uint64_t next_number, next_serial; /* relaxed: they count */
    _Atomic uint64_t frame_bytes;              /* allocated; relaxed: a measure */
};

/* With the lock held. A transaction; end() commits it, or undoes all of it where `status` is none of MR_OK. */
enum mr_status mr_spool_begin(struct mr_spool *spool, struct mr_error *error);
enum mr_status mr_spool_end(struct mr_spool *spool, enum mr_status status,
                            struct mr_error *error);
/* spool_open.c: a file as room for what frees room; best effort, now and then. False: there was none. */
void mr_spool_make_reserve(struct mr_spool *spool);
bool mr_spool_give_reserve(struct mr_spool *spool);
/* With the lock held. */
struct mr_spool_sender *mr_spool_find_or_add(struct mr_spool *spool, struct mr_id id);

/* With the lock held. Dictionaries of a sender's sources up to `serial` are gone. */
void mr_spool_dict_over(struct mr_spool *spool, struct mr_spool_sender *sender,
                        uint32_t serial);
/* Counts what is there; `serial`: of its source. */
enum mr_status mr_spool_dict_recover(struct mr_spool *spool,
                                     struct mr_spool_sender *sender, uint32_t serial,
                                     struct mr_error *error);

/*
 * spool_stream.c. With the lock held, in a transaction: the state of a stream as it is to be kept, in `bytes` of MR_RESUME_SHORT_SIZE where there is no
 * room for all of it.
 */
enum mr_status mr_spool_fit_stream(struct mr_spool *spool, struct mr_mark *mark,
                                   uint8_t *bytes, struct mr_error *error);

void mr_spool_file_path(const struct mr_spool *spool, uint64_t number, char *path,
                        size_t size);
/* Notes that a file holds a frame. False: no memory. */
bool mr_spool_file_share(struct mr_spool_file *file, struct mr_spool_sender *sender,
                         uint64_t sequence);
/* Closes it; `unlinks`: and it is gone. */
void mr_spool_file_free(struct mr_spool *spool, struct mr_spool_file *file, bool unlinks);
void mr_spool_logs_free(struct mr_spool *spool);

struct mr_spool_record {
    uint64_t generation, epoch;
    struct mr_id sender;
    uint32_t size;
};
void mr_spool_record_put(const struct mr_spool_record *record,
                         uint8_t out[MR_SPOOL_RECORD_SIZE]);
/* False: damaged, or none. */
bool mr_spool_record_get(const uint8_t in[MR_SPOOL_RECORD_SIZE],
                         struct mr_spool_record *record);

#endif
