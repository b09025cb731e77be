/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/sql.h"
#include "base/assert.h"
#include "net/ids.h"

/* What SQLite does not say: what to do. */
static const char *way_out_of(int code)
{
    switch (code) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return ": it is damaged, or no database: move its folder away, or give another "
               "one";
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
        return ": who opens it must be allowed to write in its folder, or copies it";
    default:
        return "";
    }
}

static enum mr_status fail(sqlite3 *db, struct mr_error *error)
{
    int code = sqlite3_errcode(db);
    enum mr_status status = code == SQLITE_NOMEM ? MR_ENOMEM : MR_EIO;

    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        status = MR_EFORMAT;
    const char *name = sqlite3_db_filename(db, "main");
    return mr_error_set(error, status, "%s: %s%s", name ? name : "store",
                        sqlite3_errmsg(db), way_out_of(code));
}

enum mr_status mr_sql_prepare(sqlite3 *db, const char *text, struct mr_sql *sql,
                              struct mr_error *error)
{
    *sql = (struct mr_sql){.db = db};
    if (sqlite3_prepare_v2(db, text, -1, &sql->statement, NULL) != SQLITE_OK)
        return fail(db, error);
    return MR_OK;
}

void mr_sql_finish(struct mr_sql *sql)
{
    sqlite3_finalize(sql->statement);
    sql->statement = NULL;
}

void mr_sql_u64(struct mr_sql *sql, uint64_t value)
{
    sqlite3_bind_int64(sql->statement, ++sql->at, (sqlite3_int64)value);
}

void mr_sql_index(struct mr_sql *sql, uint32_t index)
{
    if (index == MR_SQL_NONE)
        sqlite3_bind_null(sql->statement, ++sql->at);
    else
        mr_sql_u64(sql, index);
}

void mr_sql_text(struct mr_sql *sql, const char *text)
{
    sqlite3_bind_text(sql->statement, ++sql->at, text, -1, SQLITE_STATIC);
}

void mr_sql_blob(struct mr_sql *sql, struct mr_span span)
{
    sqlite3_bind_blob64(sql->statement, ++sql->at,
                        span.size ? (const void *)span.data : "", span.size,
                        SQLITE_STATIC);
}

void mr_sql_id(struct mr_sql *sql, struct mr_id id)
{
    uint8_t bytes[16];

    mr_id_put(id, bytes);
    sqlite3_bind_blob(sql->statement, ++sql->at, bytes, sizeof(bytes), SQLITE_TRANSIENT);
}

enum mr_status mr_sql_run(struct mr_sql *sql, struct mr_error *error)
{
    enum mr_status status = MR_OK;

    MR_ASSERT(sql->at == sqlite3_bind_parameter_count(sql->statement));
    if (sqlite3_step(sql->statement) != SQLITE_DONE)
        status = fail(sql->db, error);
    sqlite3_reset(sql->statement);
    sql->at = 0;
    return status;
}

enum mr_status mr_sql_row(struct mr_sql *sql, struct mr_error *error)
{
    int code = sqlite3_step(sql->statement);

    sql->at = 0;
    if (code == SQLITE_ROW)
        return MR_OK;
    return code == SQLITE_DONE ? MR_END : fail(sql->db, error);
}

uint64_t mr_sql_get_u64(struct mr_sql *sql)
{
    return (uint64_t)sqlite3_column_int64(sql->statement, sql->at++);
}

uint32_t mr_sql_get_index(struct mr_sql *sql)
{
    if (sqlite3_column_type(sql->statement, sql->at) == SQLITE_NULL) {
        sql->at++;
        return MR_SQL_NONE;
    }
    uint64_t value = mr_sql_get_u64(sql);
    return value < MR_SQL_NONE ? (uint32_t)value : MR_SQL_NONE;
}

const char *mr_sql_get_text(struct mr_sql *sql)
{
    const unsigned char *text = sqlite3_column_text(sql->statement, sql->at++);

    return text ? (const char *)text : "";
}

struct mr_span mr_sql_get_blob(struct mr_sql *sql)
{
    const void *data = sqlite3_column_blob(sql->statement, sql->at);
    int size = sqlite3_column_bytes(sql->statement, sql->at);

    sql->at++;
    return mr_span_of(data, data && size > 0 ? (size_t)size : 0);
}

struct mr_id mr_sql_get_id(struct mr_sql *sql)
{
    struct mr_span bytes = mr_sql_get_blob(sql);

    return bytes.size == 16 ? mr_id_get(bytes.data) : (struct mr_id){0, 0};
}

enum mr_status mr_sql_exec(sqlite3 *db, const char *text, struct mr_error *error)
{
    return sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK ? MR_OK
                                                                 : fail(db, error);
}
