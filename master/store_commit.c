/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue between ingest and commit thread, and the commit thread.
 *
 * field                 written by        read by           access
 * filling, done, spare  ingest, commit    ingest, commit    mutex
 * is_stopping           ingest            commit            mutex
 * stats                 ingest, commit    any               mutex
 * a batch               its holder        its holder        handed over under the mutex
 *
 * Invariant: a batch is in one place: filling (ingest appends), the commit thread's hand,
 * done (durable), or taking (ingest reads its positions). Progress: append waits for
 * nobody but the short critical sections; it refuses when too much is pending.
 * Checked by: tests/unit/master/test_store.c, tests/system/master/
 */
#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "master/store_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define RETRY_NS MR_SECOND_NS
#define IDLE_NS (200 * MR_MILLISECOND_NS) /* the longest sleep: progress is shown */
#define BATCH_MAX (MR_STORE_PENDING_MAX + (UINT64_C(16) << 20))
#define COMMIT_EARLY_BYTES (UINT64_C(8) << 20) /* do not wait for the interval */
#define SENDERS_MAX (1u << 20)

void mr_store_batch_free(struct mr_store_batch *batch)
{
    if (!batch)
        return;
    mr_buffer_fini(&batch->rows);
    mr_table_fini(&batch->senders);
    free(batch->positions);
    free(batch);
}

static struct mr_store_batch *new_batch(void)
{
    struct mr_store_batch *batch = calloc(1, sizeof(*batch));

    if (!batch)
        return NULL;
    mr_buffer_init(&batch->rows, BATCH_MAX);
    mr_table_init(&batch->senders, SENDERS_MAX);
    return batch;
}

static void clear_batch(struct mr_store_batch *batch)
{
    mr_buffer_clear(&batch->rows);
    mr_table_clear(&batch->senders);
    batch->position_count = 0;
    batch->taken = 0;
    batch->row_count = 0;
    batch->next = NULL;
}

static enum mr_status note_position(struct mr_store_batch *batch, struct mr_id sender,
                                    uint64_t sequence)
{
    uint32_t index;
    enum mr_status status =
        mr_table_find_or_add(&batch->senders, sender, batch->position_count, &index);

    if (status != MR_OK)
        return status;
    if (index == batch->position_capacity) {
        uint32_t capacity = index ? 2 * index : 64;
        struct mr_store_position *positions =
            realloc(batch->positions, capacity * sizeof(*positions));

        if (!positions)
            return MR_ENOMEM;
        batch->positions = positions;
        batch->position_capacity = capacity;
    }
    batch->positions[index] = (struct mr_store_position){sender, sequence};
    if (index == batch->position_count)
        batch->position_count++;
    return MR_OK;
}

static enum mr_status append_row(struct mr_store_batch *batch,
                                 const struct mr_store_row *row, struct mr_span payload)
{
    uint8_t *at;
    enum mr_status status =
        mr_buffer_reserve(&batch->rows, sizeof(*row) + payload.size, &at);

    if (status == MR_OK)
        status = note_position(batch, row->sender, row->sequence);
    if (status != MR_OK)
        return MR_ENOMEM;
    memcpy(at, row, sizeof(*row));
    if (payload.size)
        memcpy(at + sizeof(*row), payload.data, payload.size);
    mr_buffer_commit(&batch->rows, sizeof(*row) + payload.size);
    if (batch->row_count++ == 0)
        batch->first_ns = mr_clock_monotonic_ns();
    return MR_OK;
}

bool mr_store_has_room(struct mr_store *store, uint64_t size)
{
    pthread_mutex_lock(&store->mutex);
    bool has_room = store->stats.pending_bytes + size <= MR_STORE_PENDING_MAX;
    pthread_mutex_unlock(&store->mutex);
    return has_room;
}

static enum mr_status append_locked(struct mr_store *store,
                                    const struct mr_store_row *row,
                                    struct mr_span payload)
{
    uint64_t size = sizeof(*row) + payload.size;

    if (store->stats.pending_bytes &&
        store->stats.pending_bytes + size > MR_STORE_PENDING_MAX)
        return MR_AGAIN;
    if (!store->filling) {
        store->filling = store->spare ? store->spare : new_batch();
        store->spare = NULL;
    }
    if (!store->filling)
        return MR_ENOMEM;
    enum mr_status status = append_row(store->filling, row, payload);
    if (status != MR_OK)
        return status;
    store->stats.pending_bytes += size;
    if (store->filling->row_count == 1 || store->filling->rows.size > COMMIT_EARLY_BYTES)
        pthread_cond_signal(&store->wake);
    return MR_OK;
}

enum mr_status mr_store_append(struct mr_store *store, struct mr_id sender,
                               uint64_t sequence, uint8_t type, struct mr_span payload,
                               uint64_t *number)
{
    MR_ASSERT(payload.size <= UINT32_MAX && sequence > 0);
    const struct mr_store_row row = {.number = store->next_number,
                                     .sequence = sequence,
                                     .sender = sender,
                                     .size = (uint32_t)payload.size,
                                     .type = type};

    pthread_mutex_lock(&store->mutex);
    enum mr_status status = append_locked(store, &row, payload);
    pthread_mutex_unlock(&store->mutex);
    if (status == MR_OK)
        *number = store->next_number++;
    return status;
}

enum mr_status mr_store_set_position(struct mr_store *store, struct mr_id sender,
                                     uint64_t sequence)
{
    uint32_t index, count = store->senders.count;
    enum mr_status status = mr_table_find_or_add(&store->senders, sender, count, &index);

    if (status != MR_OK)
        return status;
    if (index == store->sequence_capacity) {
        uint32_t capacity = index ? 2 * index : 64;
        uint64_t *sequences = realloc(store->sequences, capacity * sizeof(*sequences));

        if (!sequences)
            return MR_ENOMEM;
        store->sequences = sequences;
        store->sequence_capacity = capacity;
    }
    store->sequences[index] = sequence;
    return MR_OK;
}

uint64_t mr_store_position(const struct mr_store *store, struct mr_id sender)
{
    uint32_t index = mr_table_find(&store->senders, sender);

    return index == MR_TABLE_NONE ? 0 : store->sequences[index];
}

int mr_store_event_fd(const struct mr_store *store)
{
    return store->event_fd;
}

/* The first of `done`, and what was taken becomes the spare, both under one lock. */
static struct mr_store_batch *pop_done(struct mr_store *store)
{
    struct mr_store_batch *used = store->taking;

    store->taking = NULL;
    pthread_mutex_lock(&store->mutex);
    struct mr_store_batch *batch = store->done;
    if (batch)
        store->done = batch->next;
    if (!store->done)
        store->done_end = &store->done;
    if (used && !store->spare) {
        clear_batch(used);
        store->spare = used;
        used = NULL;
    }
    pthread_mutex_unlock(&store->mutex);
    mr_store_batch_free(used);
    return batch;
}

/*
 * The next durable batch. The signal is taken back only when there was none, and then one looks again: a batch that became
 * durable between the two would have lost its signal, and nobody would be told until the next.
 */
static struct mr_store_batch *next_done(struct mr_store *store)
{
    struct mr_store_batch *batch = pop_done(store);
    uint64_t ignored;

    while (!batch && read(store->event_fd, &ignored, sizeof(ignored)) > 0)
        batch = pop_done(store);
    return batch;
}

bool mr_store_committed(struct mr_store *store, struct mr_store_position *position)
{
    while (!store->taking || store->taking->taken == store->taking->position_count) {
        store->taking = next_done(store);
        if (!store->taking)
            return false;
    }
    *position = store->taking->positions[store->taking->taken++];
    /* No room for another sender: it is told, and after a new connection sends again. */
    (void)mr_store_set_position(store, position->sender, position->sequence);
    return true;
}

static enum mr_status insert_row(struct mr_store *store, const struct mr_store_row *row,
                                 struct mr_span payload, struct mr_error *error)
{
    if (row->type == MR_STORE_ROW_DECISION)
        return mr_store_insert_decision(store, payload, error);
    mr_sql_u64(&store->insert_row, row->number);
    mr_sql_id(&store->insert_row, row->sender);
    mr_sql_u64(&store->insert_row, row->sequence);
    mr_sql_u64(&store->insert_row, row->type);
    mr_sql_blob(&store->insert_row, payload);
    return mr_sql_run(&store->insert_row, error);
}

static enum mr_status insert_rows(struct mr_store *store,
                                  const struct mr_store_batch *batch,
                                  struct mr_error *error)
{
    struct mr_span rest = mr_buffer_span(&batch->rows), head, payload;
    struct mr_store_row row;

    while (mr_span_take(&rest, sizeof(row), &head)) {
        memcpy(&row, head.data, sizeof(row));
        bool whole = mr_span_take(&rest, row.size, &payload);
        MR_ASSERT(whole);
        enum mr_status status = insert_row(store, &row, payload, error);
        if (status != MR_OK)
            return status;
    }
    return MR_OK;
}

static enum mr_status insert_positions(struct mr_store *store,
                                       const struct mr_store_batch *batch,
                                       struct mr_error *error)
{
    for (uint32_t i = 0; i < batch->position_count; i++) {
        mr_sql_id(&store->insert_sender, batch->positions[i].sender);
        mr_sql_u64(&store->insert_sender, batch->positions[i].sequence);
        mr_sql_u64(&store->insert_sender, mr_clock_realtime_ns());
        enum mr_status status = mr_sql_run(&store->insert_sender, error);
        if (status != MR_OK)
            return status;
    }
    return MR_OK;
}

static enum mr_status insert_batch(struct mr_store *store,
                                   const struct mr_store_batch *batch,
                                   struct mr_error *error)
{
    enum mr_status status = insert_rows(store, batch, error);

    return status == MR_OK ? insert_positions(store, batch, error) : status;
}

enum mr_status mr_store_end(struct mr_store *store, enum mr_status status,
                            struct mr_error *error)
{
    if (status == MR_OK)
        status = mr_sql_exec(store->db, "COMMIT", error);
    if (status != MR_OK)
        (void)mr_sql_exec(store->db, "ROLLBACK", NULL);
    return status;
}

/* A file that was removed, or put elsewhere, can be written on, and who starts again does not find what was. */
enum mr_status mr_store_begin(struct mr_store *store, struct mr_error *error)
{
    int has_moved = 0;

    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved) ==
            SQLITE_OK &&
        has_moved)
        return mr_error_set(error, MR_EIO,
                            "%s in %s was removed, or is another file now: put it back, "
                            "or start the master again",
                            MR_STORE_FILE, store->directory);
    return mr_sql_exec(store->db, "BEGIN IMMEDIATE", error);
}

static enum mr_status write_batch(struct mr_store *store,
                                  const struct mr_store_batch *batch,
                                  struct mr_error *error)
{
    enum mr_status status = mr_store_begin(store, error);

    if (status != MR_OK)
        return status;
    return mr_store_end(store, insert_batch(store, batch, error), error);
}

/* One transaction: the batch (NULL: none) and all that changed in `root`. */
static enum mr_status write_checkpoint(struct mr_store *store,
                                       const struct mr_store_batch *batch,
                                       const struct mr_model_root *root, uint64_t *rows,
                                       struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status = mr_store_begin(store, error);

    if (status != MR_OK)
        return status;
    status = batch ? insert_batch(store, batch, error) : MR_OK;
    if (status == MR_OK)
        status = mr_store_save(store->db, root, store->saved_generation, rows, error);
    if (status == MR_OK)
        status = mr_sql_prepare(store->db, "DELETE FROM journal WHERE number <= ?", &sql,
                                error);
    if (status == MR_OK) {
        mr_sql_u64(&sql, root->journal);
        status = mr_sql_run(&sql, error);
        mr_sql_finish(&sql);
    }
    return mr_store_end(store, status, error);
}

static void note_failure(struct mr_store *store, enum mr_status status,
                         const struct mr_error *error)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(10 * MR_SECOND_NS);

    pthread_mutex_lock(&store->mutex);
    store->stats.failures += status != MR_OK;
    if (status == MR_OK)
        store->stats.failing_ns = 0;
    else if (store->stats.failing_ns == 0)
        store->stats.failing_ns = mr_clock_monotonic_ns();
    pthread_mutex_unlock(&store->mutex);
    if (status != MR_OK)
        mr_log_limited(&limit, MR_LOG_ERROR,
                       "store: %s; nothing is acknowledged until it can be written",
                       error->text);
    store->last_status = status;
}

/* A durable batch goes back to the ingest thread. */
static void give_done(struct mr_store *store, struct mr_store_batch *batch,
                      uint64_t spent_ns)
{
    uint64_t one = 1;
    uint64_t latency_ns = mr_clock_monotonic_ns() - batch->first_ns;
    struct mr_store_stats *stats = &store->stats;

    store->journal_bytes += batch->rows.size;
    pthread_mutex_lock(&store->mutex);
    stats->commits++;
    stats->commit_rows += batch->row_count;
    stats->commit_bytes += batch->rows.size;
    stats->commit_ns_sum += spent_ns;
    stats->commit_ns_max =
        spent_ns > stats->commit_ns_max ? spent_ns : stats->commit_ns_max;
    stats->latency_ns_sum += latency_ns;
    stats->latency_ns_max =
        latency_ns > stats->latency_ns_max ? latency_ns : stats->latency_ns_max;
    stats->pending_bytes -= batch->rows.size;
    *store->done_end = batch;
    store->done_end = &batch->next;
    pthread_mutex_unlock(&store->mutex);
    if (write(store->event_fd, &one, sizeof(one)) < 0)
        MR_ASSERT(errno == EAGAIN); /* already readable */
}

static struct mr_store_batch *take_filling(struct mr_store *store)
{
    pthread_mutex_lock(&store->mutex);
    struct mr_store_batch *batch = store->filling;
    store->filling = NULL;
    pthread_mutex_unlock(&store->mutex);
    return batch;
}

/* Commits until it is done or the store is told to stop. False: not written. */
static bool commit(struct mr_store *store, struct mr_store_batch *batch)
{
    for (;;) {
        struct mr_error error = MR_ERROR_NONE;
        uint64_t start_ns = mr_clock_monotonic_ns();
        enum mr_status status = write_batch(store, batch, &error);

        note_failure(store, status, &error);
        if (status == MR_OK) {
            give_done(store, batch, mr_clock_monotonic_ns() - start_ns);
            return true;
        }
        pthread_mutex_lock(&store->mutex);
        bool is_stopping = store->is_stopping;
        pthread_mutex_unlock(&store->mutex);
        if (is_stopping)
            return false;
        const struct timespec pause = {.tv_sec = RETRY_NS / MR_SECOND_NS};
        nanosleep(&pause, NULL);
    }
}

static bool commit_filling(struct mr_store *store)
{
    struct mr_store_batch *batch = take_filling(store);

    if (!batch || commit(store, batch))
        return true;
    mr_store_batch_free(batch);
    return false;
}

static void note_checkpoint(struct mr_store *store, uint64_t rows, uint64_t spent_ns)
{
    struct mr_store_stats *stats = &store->stats;

    pthread_mutex_lock(&store->mutex);
    stats->checkpoints++;
    stats->checkpoint_rows += rows;
    stats->checkpoint_ns_sum += spent_ns;
    if (spent_ns > stats->checkpoint_ns_max)
        stats->checkpoint_ns_max = spent_ns;
    pthread_mutex_unlock(&store->mutex);
}

/*
 * The root is taken first and the queue after: all that the root holds was queued before
 * it was published, so every journal row that it makes needless is deleted with it. The
 * read lock is not held while a failure is waited out.
 */
static void checkpoint(struct mr_store *store)
{
    struct mr_error error = MR_ERROR_NONE;
    uint64_t rows = 0, start_ns = mr_clock_monotonic_ns();
    const struct mr_model_root *root = mr_model_read_lock(store->model);
    uint64_t generation = root->head.generation;

    store->checkpoint_ns = start_ns;
    if (generation == store->saved_generation) {
        mr_model_read_unlock(store->model);
        return;
    }
    struct mr_store_batch *batch = take_filling(store);
    enum mr_status status = write_checkpoint(store, batch, root, &rows, &error);
    mr_model_read_unlock(store->model);
    note_failure(store, status, &error);
    if (status != MR_OK) {
        if (batch && !commit(store, batch))
            mr_store_batch_free(batch);
        return;
    }
    uint64_t spent_ns = mr_clock_monotonic_ns() - start_ns;
    if (batch)
        give_done(store, batch, spent_ns);
    store->saved_generation = generation;
    store->journal_bytes = 0;
    store->is_trim_due = true;
    mr_model_set_saved(store->model, generation);
    note_checkpoint(store, rows, spent_ns);
}

/* Sleeps until there is something to do; true: stop. */
static bool wait_for_work(struct mr_store *store)
{
    uint64_t interval_ns = store->config.commit_interval_ns;
    uint64_t pause_ns = store->is_trim_due ? store->trim_pause_ns : IDLE_NS;
    uint64_t now_ns = mr_clock_monotonic_ns();
    uint64_t until_ns = now_ns + (pause_ns < IDLE_NS ? pause_ns : IDLE_NS);

    pthread_mutex_lock(&store->mutex);
    store->stats.progress_ns = now_ns;
    while (!store->is_stopping && now_ns < until_ns) {
        if (store->filling) {
            uint64_t due_ns = store->filling->first_ns + interval_ns;

            if (due_ns <= now_ns || store->filling->rows.size > COMMIT_EARLY_BYTES)
                break;
            until_ns = due_ns < until_ns ? due_ns : until_ns;
        }
        const struct timespec until = {.tv_sec = (time_t)(until_ns / MR_SECOND_NS),
                                       .tv_nsec = (long)(until_ns % MR_SECOND_NS)};
        pthread_cond_timedwait(&store->wake, &store->mutex, &until);
        now_ns = mr_clock_monotonic_ns();
    }
    bool is_stopping = store->is_stopping;
    pthread_mutex_unlock(&store->mutex);
    return is_stopping;
}

static bool is_commit_due(struct mr_store *store)
{
    uint64_t now_ns = mr_clock_monotonic_ns();

    pthread_mutex_lock(&store->mutex);
    bool is_due = store->filling && (now_ns >= store->filling->first_ns +
                                                   store->config.commit_interval_ns ||
                                     store->filling->rows.size > COMMIT_EARLY_BYTES);
    pthread_mutex_unlock(&store->mutex);
    return is_due;
}

static void *run(void *context)
{
    struct mr_store *store = context;

    mr_model_thread_enter();
    while (!wait_for_work(store)) {
        if (is_commit_due(store))
            commit_filling(store);
        if (mr_clock_monotonic_ns() - store->checkpoint_ns >=
                store->config.checkpoint_interval_ns ||
            store->journal_bytes >= store->config.checkpoint_bytes)
            checkpoint(store);
        if (store->is_trim_due)
            mr_store_trim(store);
    }
    if (commit_filling(store))
        checkpoint(store);
    mr_model_thread_leave();
    return NULL;
}

enum mr_status mr_store_start(struct mr_store *store, struct mr_error *error)
{
    store->checkpoint_ns = mr_clock_monotonic_ns();
    store->stats.progress_ns = store->checkpoint_ns;
    store->is_trim_due = true; /* the limit may be lower than it was */
    int failure = pthread_create(&store->thread, NULL, run, store);
    if (failure)
        return mr_error_set_errno(error, MR_ENOMEM, failure, "commit thread");
    store->is_started = true;
    return MR_OK;
}

enum mr_status mr_store_stop(struct mr_store *store)
{
    if (!store->is_started)
        return MR_OK;
    pthread_mutex_lock(&store->mutex);
    store->is_stopping = true;
    pthread_cond_signal(&store->wake);
    pthread_mutex_unlock(&store->mutex);
    pthread_join(store->thread, NULL);
    store->is_started = false;
    return store->last_status;
}

void mr_store_stats(struct mr_store *store, struct mr_store_stats *stats)
{
    pthread_mutex_lock(&store->mutex);
    *stats = store->stats;
    pthread_mutex_unlock(&store->mutex);
}
