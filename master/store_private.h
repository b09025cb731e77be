/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the store_*.c files alone: the database with its statements, and the queue
 * between ingest and commit thread.
 */
#ifndef MR_MASTER_STORE_PRIVATE_H
#define MR_MASTER_STORE_PRIVATE_H

#include "base/buffer.h"
#include "base/table.h"
#include "master/model_private.h"
#include "master/store.h"
#include "pipeline/sql.h"

#include <pthread.h>
#include <stdatomic.h>

extern const char mr_store_schema[];           /* store_schema.c: CREATE TABLE ... */
extern const char *const mr_store_additions[]; /* up to NULL */

struct mr_store_row { /* in a batch's buffer, followed by `size` bytes */
    uint64_t number, sequence;
    struct mr_id sender;
    uint32_t size;
    uint8_t type;
};

#define MR_STORE_ROW_DECISION 0u /* a type that no frame has */

struct mr_store_decision {
    uint64_t position;
    uint64_t ticket; /* the sequence of MR_STORE_REGISTER with which it is durable */
};

struct mr_store_batch {
    struct mr_buffer rows;
    struct mr_table senders; /* id -> index in positions */
    struct mr_store_position *positions;
    uint32_t position_count, position_capacity, taken;
    uint64_t row_count, first_ns;
    struct mr_store_batch *next;
};

struct mr_store {
    struct mr_store_config config;
    char *directory;
    struct mr_model *model;
    sqlite3 *db; /* opening thread, then commit thread */
    int lock_fd, event_fd;
    pthread_t thread;
    bool is_started;
    /* ingest thread */
    uint64_t next_number;
    struct mr_table senders; /* id -> index in sequences */
    uint64_t *sequences;     /* committed */
    uint32_t sequence_capacity;
    struct mr_store_batch *taking; /* positions being handed out */
    struct mr_table decided;       /* sender and epoch -> index in decisions */
    struct mr_store_decision *decisions;
    uint32_t decision_capacity;
    uint64_t ticket; /* the last that was given */
    /* under mutex */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct mr_store_batch *filling, *done, **done_end, *spare;
    bool is_stopping;
    struct mr_store_stats stats;
    /* commit thread */
    struct mr_sql insert_row, insert_sender, insert_decision;
    uint64_t saved_generation, journal_bytes, checkpoint_ns;
    uint64_t trim_pause_ns; /* until the next step, if one is due */
    bool is_trim_due, is_over_max_told;
    enum mr_status last_status;
};

/* store_commit.c */
void mr_store_batch_free(struct mr_store_batch *batch);
enum mr_status mr_store_set_position(struct mr_store *store, struct mr_id sender,
                                     uint64_t sequence);
/* A transaction for writing. MR_EIO: SQLite's reason, or the file is not the one that was opened. Commit thread. */
enum mr_status mr_store_begin(struct mr_store *store, struct mr_error *error);
/* Ends it as `status` came out in it: all of it or nothing. */
enum mr_status mr_store_end(struct mr_store *store, enum mr_status status,
                            struct mr_error *error);

/* store_register.c */
enum mr_status mr_store_insert_decision(struct mr_store *store, struct mr_span row,
                                        struct mr_error *error);
enum mr_status mr_store_load_register(struct mr_store *store, struct mr_error *error);

/*
 * store_save.c: within a transaction of the caller, writes what changed in `root` after
 * generation `since`; *rows counts.
 */
enum mr_status mr_store_save(sqlite3 *db, const struct mr_model_root *root,
                             uint64_t since, uint64_t *rows, struct mr_error *error);

/*
 * store_trim.c: one step of dropping old windows, if there are more bytes in use than may be; store->is_trim_due tells
 * whether another is to follow. Commit thread, outside a transaction.
 */
void mr_store_trim(struct mr_store *store);

/* store_load.c: fills an empty model from the tables, without the journal. */
enum mr_status mr_store_load_tables(sqlite3 *db, struct mr_model *model,
                                    struct mr_error *error);
/* Applies the journal's rows; *last is the number of the last one, or unchanged. */
enum mr_status mr_store_load_journal(sqlite3 *db, struct mr_model *model, uint64_t *last,
                                     uint64_t *bytes, struct mr_error *error);

#endif
