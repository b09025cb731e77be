/* SPDX-License-Identifier: Apache-2.0 */
/* The spool's folder: made, locked, and its database opened. */
#include "pipeline/spool_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/ids.h"

#define RESERVE_BYTES (2 << 20)
#define PAGE_BYTES 4096

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS upward(one INTEGER PRIMARY KEY, custodian BLOB, epoch,"
    " attempt, acked);"
    "CREATE TABLE IF NOT EXISTS outbox(sequence INTEGER PRIMARY KEY, type, payload BLOB);"
    "CREATE TABLE IF NOT EXISTS sender(id BLOB PRIMARY KEY, epoch, state, settled,"
    " attempt, serial, has_left, bye, covered, hello BLOB) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS dict(number INTEGER PRIMARY KEY, sender BLOB, serial,"
    " sequence, payload BLOB);"
    "CREATE INDEX IF NOT EXISTS dict_sender ON dict(sender);"
    "CREATE UNIQUE INDEX IF NOT EXISTS dict_once ON dict(sender, serial, sequence)"
    " WHERE sequence > 0;"
    "CREATE TABLE IF NOT EXISTS told(sender BLOB, serial, item BLOB,"
    " PRIMARY KEY(sender, serial, item)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS source(sender BLOB PRIMARY KEY, serial, state BLOB)"
    " WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS stream(sender BLOB, stream, serial, state BLOB,"
    " PRIMARY KEY(sender, stream)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS site(id BLOB PRIMARY KEY, item BLOB) WITHOUT ROWID;";

/* Anybody may make a folder there, and nobody but its owner take it away: /tmp, /dev/shm. */
static bool is_shared(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && (about.st_mode & S_ISVTX) &&
           (about.st_mode & S_IWOTH);
}

/* In a shared folder somebody else may have made it before us, with links in it through which we would write to files of our own. */
static bool is_ours(const char *path)
{
    struct stat about;

    if (lstat(path, &about) != 0)
        return true; /* it could not be made: who writes there finds out why */
    return S_ISDIR(about.st_mode) && (about.st_uid == geteuid() || about.st_uid == 0) &&
           (!(about.st_mode & 022) || (about.st_mode & S_ISVTX));
}

/* Makes what is missing of the path to the folder. False: a part of it is not to be trusted. */
static bool make_path(const char *folder)
{
    bool was_shared = false;
    const char *at = folder;
    char path[512];

    do {
        at = at + 1 + strcspn(at + 1, "/");
        (void)snprintf(path, sizeof(path), "%.*s", (int)(at - folder), folder);
        (void)mkdir(path, 0700);
        if (was_shared && !is_ours(path))
            return false;
        was_shared = is_shared(path);
    } while (*at);
    return true;
}

static enum mr_status refuse_folder(const struct mr_spool *spool, struct mr_error *error)
{
    return mr_error_set(error, MR_EUSAGE,
                        "--spool %s: it, or a folder above it, is another user's, or "
                        "others may write to it",
                        spool->folder);
}

static enum mr_status make_folder(const struct mr_spool *spool, struct mr_error *error)
{
    char path[512];
    struct stat about;

    if (!make_path(spool->folder))
        return refuse_folder(spool, error);
    (void)snprintf(path, sizeof(path), "%s/frames", spool->folder);
    (void)mkdir(path, 0700);
    if (stat(path, &about) != 0)
        return mr_error_set_errno(error, MR_EIO, errno, "--spool %s: cannot be made",
                                  spool->folder);
    if (about.st_uid != geteuid() || (about.st_mode & 022))
        return refuse_folder(spool, error);
    return MR_OK;
}

static enum mr_status take_lock(struct mr_spool *spool, struct mr_error *error)
{
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/lock", spool->folder);
    spool->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (spool->lock_fd < 0)
        return mr_error_set_errno(error, MR_EIO, errno, "--spool: %s", path);
    if (flock(spool->lock_fd, LOCK_EX | LOCK_NB) != 0)
        return mr_error_set(error, MR_EUSAGE,
                            "--spool %s: another worker uses it: give each its own",
                            spool->folder);
    return MR_OK;
}

static enum mr_status configure(struct mr_spool *spool, struct mr_error *error)
{
    char text[512];

    (void)snprintf(text, sizeof(text),
                   "PRAGMA page_size = %d; PRAGMA locking_mode = EXCLUSIVE;"
                   "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                   "PRAGMA cache_size = -1024; PRAGMA journal_size_limit = 4194304;"
                   "PRAGMA max_page_count = %" PRIu64 ";",
                   PAGE_BYTES, spool->config.bytes_max / 2 / PAGE_BYTES);
    return mr_sql_exec(spool->db, text, error);
}

static enum mr_status check_whole(struct mr_spool *spool, struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status =
        mr_sql_prepare(spool->db, "PRAGMA quick_check(1)", &sql, error);

    if (status != MR_OK)
        return status;
    status = mr_sql_row(&sql, error);
    if (status == MR_OK && strcmp(mr_sql_get_text(&sql), "ok") != 0)
        status = mr_error_set(error, MR_EFORMAT, "the database is damaged");
    mr_sql_finish(&sql);
    return status;
}

/* The format is that of this build: numbers of the analysis are kept as they lie in memory. */
static uint64_t format(void)
{
    return (uint64_t)MR_SPOOL_FORMAT << 32 | sizeof(struct mr_resume_source);
}

static enum mr_status read_meta(struct mr_spool *spool, struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status = mr_sql_prepare(
        spool->db,
        "SELECT (SELECT value FROM meta WHERE key = 'format'), (SELECT value FROM meta "
        "WHERE key = 'self')",
        &sql, error);
    uint64_t found = 0;

    if (status != MR_OK)
        return status;
    status = mr_sql_row(&sql, error);
    if (status == MR_OK) {
        found = mr_sql_get_u64(&sql);
        spool->self = mr_sql_get_id(&sql);
    }
    mr_sql_finish(&sql);
    if (status == MR_OK && found != 0 && found != format())
        return mr_error_set(
            error, MR_EUSAGE,
            "it is of another version's format: let that version drain it, "
            "or move it away");
    return status;
}

static enum mr_status write_meta(struct mr_spool *spool, struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status = mr_id_random(&spool->self);

    if (status != MR_OK)
        return mr_error_set(error, status, "no random numbers");
    status = mr_sql_prepare(
        spool->db, "INSERT INTO meta VALUES('format', ?), ('self', ?)", &sql, error);
    if (status != MR_OK)
        return status;
    mr_sql_u64(&sql, format());
    mr_sql_id(&sql, spool->self);
    status = mr_sql_run(&sql, error);
    mr_sql_finish(&sql);
    return status;
}

static enum mr_status open_database(struct mr_spool *spool, struct mr_error *error)
{
    struct mr_error why = MR_ERROR_NONE;
    char path[512];
    enum mr_status status = MR_OK;

    (void)snprintf(path, sizeof(path), "%s/spool.db", spool->folder);
    if (sqlite3_open_v2(path, &spool->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK)
        return mr_error_set(error, MR_EIO, "--spool: %s: %s", path,
                            sqlite3_errmsg(spool->db));
    status = configure(spool, &why);
    if (status == MR_OK)
        status = check_whole(spool, &why);
    if (status == MR_OK)
        status = mr_sql_exec(spool->db, schema, &why);
    if (status == MR_OK)
        status = read_meta(spool, &why);
    if (status == MR_OK && mr_id_is_zero(spool->self))
        status = write_meta(spool, &why);
    if (status == MR_OK)
        return MR_OK;
    return mr_error_set(error, status, "--spool %s: %s%s", spool->folder, why.text,
                        status == MR_EFORMAT
                            ? ": move the folder away and start again; what "
                              "was in it is lost"
                            : "");
}

void mr_spool_make_reserve(struct mr_spool *spool)
{
    char path[512];
    int fd;

    if (spool->has_reserve)
        return;
    (void)snprintf(path, sizeof(path), "%s/reserve", spool->folder);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    spool->has_reserve = posix_fallocate(fd, 0, RESERVE_BYTES) == 0;
    (void)close(fd);
    if (!spool->has_reserve)
        (void)unlink(path);
}

bool mr_spool_give_reserve(struct mr_spool *spool)
{
    char path[512];

    if (!spool->has_reserve)
        return false;
    (void)snprintf(path, sizeof(path), "%s/reserve", spool->folder);
    spool->has_reserve = false;
    return unlink(path) == 0;
}

enum mr_status mr_spool_open(const struct mr_spool_config *config, struct mr_spool **out,
                             struct mr_error *error)
{
    struct mr_spool *spool = calloc(1, sizeof(*spool));
    enum mr_status status;

    *out = NULL;
    if (!spool)
        return mr_error_set(error, MR_ENOMEM, "no memory");
    spool->config = *config;
    spool->stream_bytes = config->bytes_max; /* counted when it matters */
    spool->lock_fd = -1;
    mr_table_init(&spool->ids, MR_SPOOL_SENDERS_MAX);
    mr_resume_sites_init(&spool->sites);
    pthread_mutex_init(&spool->lock, NULL);
    if (config->folder[0] != '/' || strlen(config->folder) >= sizeof(spool->folder)) {
        mr_spool_close(spool);
        return mr_error_set(error, MR_EUSAGE,
                            "--spool %s: must be an absolute path of less than %zu bytes",
                            config->folder, sizeof(spool->folder));
    }
    memcpy(spool->folder, config->folder, strlen(config->folder) + 1);
    spool->config.folder = spool->folder;
    mr_store_relaxed(&spool->next_number, 1); /* nobody else has it yet */
    status = make_folder(spool, error);
    if (status == MR_OK)
        status = take_lock(spool, error);
    if (status == MR_OK)
        status = open_database(spool, error);
    if (status != MR_OK) {
        mr_spool_close(spool);
        return status;
    }
    mr_spool_make_reserve(spool);
    *out = spool;
    return MR_OK;
}

void mr_spool_close(struct mr_spool *spool)
{
    if (!spool)
        return;
    mr_spool_logs_free(spool);
    while (spool->old) {
        struct mr_spool_file *file = spool->old;

        spool->old = file->next;
        mr_spool_file_free(spool, file, false);
    }
    for (uint32_t i = 0; i < spool->sender_count; i++)
        free(spool->senders[i]);
    free(spool->senders);
    mr_table_fini(&spool->ids);
    mr_resume_sites_fini(&spool->sites);
    (void)sqlite3_close(spool->db);
    if (spool->lock_fd >= 0)
        (void)close(spool->lock_fd);
    pthread_mutex_destroy(&spool->lock);
    free(spool);
}
