/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's prepared statements, in the words of this project: of the master's store and of a worker's spool.
 *
 * Use:
 *     struct mr_sql sql;
 *     status = mr_sql_prepare(db, "INSERT INTO t VALUES(?, ?)", &sql, error);
 *     mr_sql_u64(&sql, 7);
 *     mr_sql_text(&sql, "x");
 *     status = mr_sql_run(&sql, error);
 *     mr_sql_finish(&sql);
 *
 * One thread at a time for a connection.
 */
#ifndef MR_PIPELINE_SQL_H
#define MR_PIPELINE_SQL_H

#include "base/error.h"
#include "base/id.h"
#include "base/span.h"

#include <sqlite3.h>
#include <stdint.h>

#define MR_SQL_NONE UINT32_MAX /* an index that is NULL */

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
void mr_sql_index(struct mr_sql *sql, uint32_t index);  /* MR_SQL_NONE: NULL */
void mr_sql_text(struct mr_sql *sql, const char *text); /* borrowed until run */
void mr_sql_blob(struct mr_sql *sql, struct mr_span span); /* borrowed until run */
void mr_sql_id(struct mr_sql *sql, struct mr_id id);
/* A statement without rows; ready for the next values. MR_EIO. */
enum mr_status mr_sql_run(struct mr_sql *sql, struct mr_error *error);
/* The next row: MR_OK, MR_END, MR_EIO. */
enum mr_status mr_sql_row(struct mr_sql *sql, struct mr_error *error);
uint64_t mr_sql_get_u64(struct mr_sql *sql);
uint32_t mr_sql_get_index(struct mr_sql *sql);      /* NULL or too large: MR_SQL_NONE */
const char *mr_sql_get_text(struct mr_sql *sql);    /* "" for NULL; until the next row */
struct mr_span mr_sql_get_blob(struct mr_sql *sql); /* until the next row */
struct mr_id mr_sql_get_id(struct mr_sql *sql);     /* zero where it is no id */
/* One or more statements without parameters or rows. */
enum mr_status mr_sql_exec(sqlite3 *db, const char *text, struct mr_error *error);

#endif
