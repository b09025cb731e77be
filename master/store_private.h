/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the store_*.c files alone: the database with its statements, and the queue
 * between ingest and commit thread.
 *
 * Use:
 *     struct mr_sql sql;
 *     status = mr_sql_prepare(db, "INSERT INTO t VALUES(?, ?)", &sql, error);
 *     mr_sql_u64(&sql, 7);
 *     mr_sql_text(&sql, "x");
 *     status = mr_sql_run(&sql, error);
 *     mr_sql_finish(&sql);
 */
#ifndef MR_MASTER_STORE_PRIVATE_H
#define MR_MASTER_STORE_PRIVATE_H

#include "base/buffer.h"
#include "base/table.h"
#include "master/model_private.h"
#include "master/store.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

/* One prepared statement; binds its parameters, or reads its columns, left to right. */
struct mr_sql {
    sqlite3 *db;
    sqlite3_stmt *statement;
    int at;
};

enum mr_status mr_sql_prepare(sqlite3 *db, const char *text, struct mr_sql *sql,
                              struct mr_error *error);
void mr_sql_finish(struct mr_sql *sql);
void mr_sql_u64(struct mr_sql *sql, uint64_t value);    /* stored as two's complement */
void mr_sql_index(struct mr_sql *sql, uint32_t index);  /* MR_MODEL_NONE: NULL */
void mr_sql_text(struct mr_sql *sql, const char *text); /* borrowed until run */
void mr_sql_blob(struct mr_sql *sql, struct mr_span span); /* borrowed until run */
void mr_sql_id(struct mr_sql *sql, struct mr_id id);
/* A statement without rows; ready for the next values. MR_EIO. */
enum mr_status mr_sql_run(struct mr_sql *sql, struct mr_error *error);
/* The next row: MR_OK, MR_END, MR_EIO. */
enum mr_status mr_sql_row(struct mr_sql *sql, struct mr_error *error);
uint64_t mr_sql_get_u64(struct mr_sql *sql);
uint32_t mr_sql_get_index(struct mr_sql *sql);      /* NULL or too large: MR_MODEL_NONE */
const char *mr_sql_get_text(struct mr_sql *sql);    /* "" for NULL; until the next row */
struct mr_span mr_sql_get_blob(struct mr_sql *sql); /* until the next row */
struct mr_id mr_sql_get_id(struct mr_sql *sql);     /* zero where it is no id */
/* One or more statements without parameters or rows. */
enum mr_status mr_sql_exec(sqlite3 *db, const char *text, struct mr_error *error);

extern const char mr_store_schema[]; /* store_schema.c: CREATE TABLE ... */
extern const char mr_store_additions[];

struct mr_store_row { /* in a batch's buffer, followed by `size` bytes */
    uint64_t number, sequence;
    struct mr_id sender;
    uint32_t size;
    uint8_t type;
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
    /* under mutex */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct mr_store_batch *filling, *done, **done_end, *spare;
    bool is_stopping;
    struct mr_store_stats stats;
    /* commit thread */
    struct mr_sql insert_row, insert_sender;
    uint64_t saved_generation, journal_bytes, checkpoint_ns;
    enum mr_status last_status;
};

/* store_commit.c */
void mr_store_batch_free(struct mr_store_batch *batch);
enum mr_status mr_store_set_position(struct mr_store *store, struct mr_id sender,
                                     uint64_t sequence);

/*
 * store_save.c: within a transaction of the caller, writes what changed in `root` after
 * generation `since`; *rows counts.
 */
enum mr_status mr_store_save(sqlite3 *db, const struct mr_model_root *root,
                             uint64_t since, uint64_t *rows, struct mr_error *error);

/* store_load.c: fills an empty model from the tables, without the journal. */
enum mr_status mr_store_load_tables(sqlite3 *db, struct mr_model *model,
                                    struct mr_error *error);
/* Applies the journal's rows; *last is the number of the last one, or unchanged. */
enum mr_status mr_store_load_journal(sqlite3 *db, struct mr_model *model, uint64_t *last,
                                     uint64_t *bytes, struct mr_error *error);

#endif
