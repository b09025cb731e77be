/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing: directory, lock, schema, load. */
#include "master/store.h"

#include "base/assert.h"
#include "base/clock.h"
#include "master/store_private.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 4096
#define URI_SIZE ((size_t)3 * PATH_SIZE)
#define SENDERS_MAX (1u << 20)
#define BUSY_MS 5000 /* readers (millrace report) never hold the write lock for long */

static enum mr_status path_in(const char *directory, const char *name,
                              char path[PATH_SIZE], struct mr_error *error)
{
    int size = snprintf(path, PATH_SIZE, "%s/%s", directory, name);

    if (size < 0 || size >= PATH_SIZE)
        return mr_error_set(error, MR_EUSAGE, "store: the path is too long: %.100s",
                            directory);
    return MR_OK;
}

/* One master per store; the lock goes with the process, however it ends. */
static enum mr_status lock(struct mr_store *store, struct mr_error *error)
{
    char path[PATH_SIZE];
    enum mr_status status = path_in(store->directory, MR_STORE_LOCK, path, error);

    if (status != MR_OK)
        return status;
    store->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (store->lock_fd < 0)
        return mr_error_set_errno(error, MR_EIO, errno,
                                  "store %s is not writable (--store)", store->directory);
    if (flock(store->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return MR_OK;
    if (errno == EWOULDBLOCK)
        return mr_error_set(error, MR_EADDR,
                            "store %s is in use by another master; stop it or choose "
                            "another directory with --store",
                            store->directory);
    return mr_error_set_errno(error, MR_EIO, errno, "store %s: lock", store->directory);
}

static enum mr_status open_database(const char *path, int flags, sqlite3 **db,
                                    struct mr_error *error)
{
    if (sqlite3_open_v2(path, db, flags | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK) {
        sqlite3_busy_timeout(*db, BUSY_MS);
        return MR_OK;
    }
    enum mr_status status = mr_error_set(error, MR_EIO, "store: %s: %s", path,
                                         *db ? sqlite3_errmsg(*db) : "out of memory");
    sqlite3_close(*db);
    *db = NULL;
    return status;
}

/* The file's schema version; 0 for an empty database. */
static enum mr_status read_version(sqlite3 *db, uint64_t *version, struct mr_error *error)
{
    struct mr_sql sql;
    uint64_t tables = 0;
    enum mr_status status =
        mr_sql_prepare(db, "SELECT count(*) FROM sqlite_master", &sql, error);

    *version = 0;
    if (status == MR_OK && (status = mr_sql_row(&sql, error)) == MR_OK)
        tables = mr_sql_get_u64(&sql);
    mr_sql_finish(&sql);
    if (status != MR_OK || tables == 0)
        return status;
    status = mr_sql_prepare(db, "SELECT value FROM meta WHERE key = 'schema_version'",
                            &sql, error);
    if (status == MR_OK && (status = mr_sql_row(&sql, error)) == MR_OK)
        *version = mr_sql_get_u64(&sql);
    mr_sql_finish(&sql);
    return status;
}

static enum mr_status check_version(uint64_t version, struct mr_error *error)
{
    if (version == MR_STORE_SCHEMA_VERSION)
        return MR_OK;
    if (version == 0)
        return mr_error_set(error, MR_EVERSION,
                            "store holds nothing that says of which version it is: it is "
                            "empty, or damaged");
    return mr_error_set(error, MR_EVERSION,
                        "store has schema version %" PRIu64
                        ", this program reads %d; use "
                        "the millrace that made it, or another directory",
                        version, MR_STORE_SCHEMA_VERSION);
}

static enum mr_status make_schema(sqlite3 *db, struct mr_error *error)
{
    uint64_t version;
    enum mr_status status = read_version(db, &version, error);

    if (status == MR_OK && version == 0) {
        status = mr_sql_exec(db, "BEGIN IMMEDIATE", error);
        if (status == MR_OK)
            status = mr_sql_exec(db, mr_store_schema, error);
        if (status == MR_OK)
            status = mr_sql_exec(db, "COMMIT", error);
        version = MR_STORE_SCHEMA_VERSION;
    }
    if (status == MR_OK)
        status = check_version(version, error);
    for (size_t i = 0; mr_store_additions[i] && status == MR_OK; i++)
        status = mr_sql_exec(db, mr_store_additions[i], error);
    return status;
}

static enum mr_status prepare(struct mr_store *store, struct mr_error *error)
{
    enum mr_status status =
        mr_sql_exec(store->db,
                    store->config.sync == MR_STORE_SYNC_FULL
                        ? "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                        : "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;",
                    error);

    if (status == MR_OK)
        status = make_schema(store->db, error);
    if (status == MR_OK)
        status = mr_sql_prepare(store->db, "INSERT INTO journal VALUES(?, ?, ?, ?, ?)",
                                &store->insert_row, error);
    if (status == MR_OK)
        status = mr_sql_prepare(store->db, "REPLACE INTO sender VALUES(?, ?, ?)",
                                &store->insert_sender, error);
    if (status == MR_OK)
        status =
            mr_sql_prepare(store->db, "INSERT OR IGNORE INTO custody VALUES(?, ?, ?, ?)",
                           &store->insert_decision, error);
    return status;
}

/* Positions of senders that were heard of lately; the others are forgotten. */
static enum mr_status load_positions(struct mr_store *store, struct mr_error *error)
{
    struct mr_sql sql;
    uint64_t kept_ns = (uint64_t)MR_STORE_SENDER_KEEP_DAYS * 24 * MR_HOUR_NS;
    enum mr_status status =
        mr_sql_prepare(store->db, "DELETE FROM sender WHERE seen_ns < ?", &sql, error);

    if (status != MR_OK)
        return status;
    mr_sql_u64(&sql, mr_clock_realtime_ns() - kept_ns);
    status = mr_sql_run(&sql, error);
    mr_sql_finish(&sql);
    if (status == MR_OK)
        status =
            mr_sql_prepare(store->db, "SELECT id, sequence FROM sender", &sql, error);
    if (status != MR_OK)
        return status;
    while ((status = mr_sql_row(&sql, error)) == MR_OK) {
        struct mr_id sender = mr_sql_get_id(&sql);

        status = mr_store_set_position(store, sender, mr_sql_get_u64(&sql));
        if (status != MR_OK)
            break;
    }
    mr_sql_finish(&sql);
    return status == MR_END ? MR_OK : status;
}

/*
 * Tables, then what happens to parts of them, then journal; a publish in front of each, so that the next checkpoint saves what
 * these two changed. *saved is the generation that the tables hold.
 */
static enum mr_status load_model(sqlite3 *db, struct mr_model *model, uint64_t *saved,
                                 uint64_t *last, uint64_t *bytes, struct mr_error *error)
{
    enum mr_status status = mr_store_load_tables(db, model, error);

    *saved = model->cow.generation;
    if (status == MR_OK)
        status = mr_model_publish(model);
    if (status == MR_OK)
        status = mr_model_join_loaded(model);
    if (status == MR_OK)
        status = mr_model_publish(model);
    if (status == MR_OK)
        status = mr_store_load_journal(db, model, last, bytes, error);
    if (status == MR_OK && *bytes)
        status = mr_model_publish(model);
    return status;
}

static enum mr_status fill(struct mr_store *store, struct mr_error *error)
{
    uint64_t last = 0, bytes = 0, saved = 0;
    enum mr_status status = load_positions(store, error);

    if (status == MR_OK)
        status = mr_store_load_register(store, error);
    if (status == MR_OK)
        status = load_model(store->db, store->model, &saved, &last, &bytes, error);
    store->saved_generation = saved;
    store->journal_bytes = bytes;
    store->next_number = last + 1;
    store->model->waits_for_store = true;
    mr_model_set_saved(store->model, saved);
    return status;
}

static enum mr_status make_directory(const char *directory, struct mr_error *error)
{
    if (mkdir(directory, 0755) == 0 || errno == EEXIST)
        return MR_OK;
    return mr_error_set_errno(error, MR_EIO, errno, "store %s cannot be made (--store)",
                              directory);
}

static enum mr_status open_store(struct mr_store *store, struct mr_error *error)
{
    char path[PATH_SIZE];
    enum mr_status status = make_directory(store->directory, error);

    if (status == MR_OK)
        status = lock(store, error);
    if (status == MR_OK)
        status = path_in(store->directory, MR_STORE_FILE, path, error);
    if (status == MR_OK)
        status = open_database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                               &store->db, error);
    if (status == MR_OK)
        status = prepare(store, error);
    if (status == MR_OK)
        status = fill(store, error);
    return status;
}

static enum mr_status init_queue(struct mr_store *store, struct mr_error *error)
{
    pthread_condattr_t attributes;

    store->done_end = &store->done;
    store->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    mr_table_init(&store->senders, SENDERS_MAX);
    mr_table_init(&store->decided, MR_STORE_DECISIONS_MAX);
    pthread_mutex_init(&store->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&store->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    if (store->event_fd < 0)
        return mr_error_set_errno(error, MR_EIO, errno, "eventfd");
    return MR_OK;
}

enum mr_status mr_store_open(const struct mr_store_config *config, struct mr_model *model,
                             struct mr_store **out, struct mr_error *error)
{
    MR_ASSERT(config && config->directory && model);
    struct mr_store *store = calloc(1, sizeof(*store));

    if (!store || !(store->directory = strdup(config->directory))) {
        free(store);
        return mr_error_set(error, MR_ENOMEM, "store: out of memory");
    }
    store->config = *config;
    store->config.directory = store->directory;
    store->stats.max_bytes = config->max_bytes;
    store->model = model;
    store->lock_fd = -1;
    enum mr_status status = init_queue(store, error);
    if (status == MR_OK)
        status = open_store(store, error);
    if (status != MR_OK) {
        mr_store_close(store);
        return mr_error_set(error, status, "store %s could not be opened",
                            config->directory);
    }
    *out = store;
    return MR_OK;
}

void mr_store_close(struct mr_store *store)
{
    if (!store)
        return;
    MR_ASSERT(!store->is_started);
    mr_sql_finish(&store->insert_row);
    mr_sql_finish(&store->insert_sender);
    mr_sql_finish(&store->insert_decision);
    sqlite3_close(store->db);
    while (store->done) {
        struct mr_store_batch *next = store->done->next;

        mr_store_batch_free(store->done);
        store->done = next;
    }
    mr_store_batch_free(store->filling);
    mr_store_batch_free(store->taking);
    mr_store_batch_free(store->spare);
    mr_table_fini(&store->senders);
    mr_table_fini(&store->decided);
    free(store->decisions);
    pthread_cond_destroy(&store->wake);
    pthread_mutex_destroy(&store->mutex);
    if (store->event_fd >= 0)
        close(store->event_fd);
    if (store->lock_fd >= 0)
        close(store->lock_fd);
    free(store->sequences);
    free(store->directory);
    free(store);
}

const char *mr_store_directory(const struct mr_store *store)
{
    return store->directory;
}

static enum mr_status load_database(sqlite3 *db, struct mr_model *model,
                                    struct mr_error *error)
{
    uint64_t version, last = 0, bytes = 0, saved;
    enum mr_status status = mr_sql_exec(db, "BEGIN", error); /* one moment of the file */

    if (status == MR_OK)
        status = read_version(db, &version, error);
    if (status == MR_OK)
        status = check_version(version, error);
    if (status == MR_OK)
        status = load_model(db, model, &saved, &last, &bytes, error);
    return status;
}

static bool is_there(const char *path, const char *suffix, uint64_t *size)
{
    char file[PATH_SIZE];
    struct stat found;

    *size = 0;
    if (snprintf(file, sizeof(file), "%s%s", path, suffix) >= PATH_SIZE ||
        stat(file, &found) != 0)
        return false;
    *size = (uint64_t)found.st_size;
    return true;
}

/* Of SQLite: every byte that means something in one of its URIs, or might, by its number. */
static enum mr_status uri_of(const char *path, char uri[URI_SIZE])
{
    static const char digits[] = "0123456789abcdef", plain[] = "/._-";
    char *end = stpcpy(uri, "file:");

    for (; *path; path++) {
        unsigned char byte = (unsigned char)*path;

        if (end + sizeof("%00?immutable=1") > uri + URI_SIZE)
            return MR_ELIMIT;
        if (isalnum(byte) || strchr(plain, byte)) {
            *end++ = *path;
        } else {
            *end++ = '%';
            *end++ = digits[byte >> 4];
            *end++ = digits[byte & 15];
        }
    }
    (void)stpcpy(end, "?immutable=1");
    return MR_OK;
}

/*
 * A folder that we cannot write to, such as one of an image that is mounted: SQLite cannot make the index of its journal there. It
 * is not needed where the journal holds nothing, which is what a master that was stopped leaves. Where there is an index, a master may be
 * running; then that is read, and what is in the journal.
 */
static enum mr_status open_to_read(const char *directory, const char *path, sqlite3 **db,
                                   struct mr_error *error)
{
    char uri[URI_SIZE];
    uint64_t size;

    if (access(directory, W_OK) == 0 || is_there(path, "-shm", &size))
        return open_database(path, SQLITE_OPEN_READONLY, db, error);
    if (is_there(path, "-wal", &size) && size > 0)
        return mr_error_set(
            error, MR_EIO,
            "%s-wal holds what must be read into the store, and %s is not "
            "writable: copy it to where you may write",
            path, directory);
    if (uri_of(path, uri) != MR_OK)
        return mr_error_set(error, MR_EUSAGE, "store: the path is too long: %.100s",
                            directory);
    return open_database(uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, db, error);
}

enum mr_status mr_store_load(const char *directory, struct mr_model *model,
                             struct mr_error *error)
{
    char path[PATH_SIZE];
    sqlite3 *db = NULL;
    enum mr_status status = path_in(directory, MR_STORE_FILE, path, error);

    if (status != MR_OK)
        return status;
    if (access(path, R_OK) != 0)
        return mr_error_set_errno(error, MR_ENOTFOUND, errno, "no store in %s",
                                  directory);
    status = open_to_read(directory, path, &db, error);
    if (status == MR_OK)
        status = load_database(db, model, error);
    sqlite3_close(db);
    return status;
}
