/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The register of custody (net/custody.h): written once per sender and epoch, and kept with the positions of senders. A
 * decision goes through the commit queue like a frame of a sender of its own, MR_STORE_REGISTER, so that it is durable
 * before any frame that was taken because of it. Ingest thread; mr_store_insert_decision(): commit thread.
 */
#include "base/assert.h"
#include "base/clock.h"
#include "base/hash.h"
#include "master/store_private.h"
#include "net/ids.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_SIZE = 24, ROW_SIZE = 32 };

static void put_le64(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get_le64(const uint8_t *at)
{
    uint64_t value = 0;

    for (int i = 8; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

static void put_key(struct mr_id subject, uint64_t epoch, uint8_t out[KEY_SIZE])
{
    mr_id_put(subject, out);
    put_le64(out + 16, epoch);
}

static struct mr_id key_of(struct mr_id subject, uint64_t epoch)
{
    uint8_t bytes[KEY_SIZE];

    put_key(subject, epoch, bytes);
    return mr_hash128(mr_span_of(bytes, sizeof(bytes)));
}

static enum mr_status add(struct mr_store *store, struct mr_id key, uint64_t position,
                          uint64_t ticket)
{
    uint32_t index = store->decided.count;

    if (index == store->decision_capacity) {
        uint32_t capacity = index ? 2 * index : 64;
        struct mr_store_decision *decisions =
            realloc(store->decisions, capacity * sizeof(*decisions));

        if (!decisions)
            return MR_ENOMEM;
        store->decisions = decisions;
        store->decision_capacity = capacity;
    }
    store->decisions[index] = (struct mr_store_decision){position, ticket};
    return mr_table_put(&store->decided, key, index);
}

static enum mr_status append(struct mr_store *store, struct mr_id subject, uint64_t epoch,
                             uint64_t position)
{
    uint8_t row[ROW_SIZE];
    uint64_t number;
    enum mr_status status;

    put_key(subject, epoch, row);
    put_le64(row + KEY_SIZE, position);
    status =
        mr_store_append(store, MR_STORE_REGISTER, store->ticket + 1,
                        MR_STORE_ROW_DECISION, mr_span_of(row, sizeof(row)), &number);
    if (status == MR_OK)
        store->ticket++;
    return status;
}

enum mr_status mr_store_decide(struct mr_store *store, struct mr_id subject,
                               uint64_t epoch, uint64_t *position, uint64_t *ticket)
{
    struct mr_id key = key_of(subject, epoch);
    uint32_t index = mr_table_find(&store->decided, key);
    enum mr_status status;

    if (index != MR_TABLE_NONE) {
        *position = store->decisions[index].position;
        *ticket = store->decisions[index].ticket;
        return MR_OK;
    }
    if (store->decided.count >= MR_STORE_DECISIONS_MAX)
        return MR_ELIMIT;
    status = append(store, subject, epoch, *position);
    if (status == MR_OK)
        status = add(store, key, *position, store->ticket);
    *ticket = store->ticket;
    return status;
}

bool mr_store_is_decided(const struct mr_store *store, uint64_t ticket)
{
    return mr_store_position(store, MR_STORE_REGISTER) >= ticket;
}

enum mr_status mr_store_insert_decision(struct mr_store *store, struct mr_span row,
                                        struct mr_error *error)
{
    struct mr_sql *sql = &store->insert_decision;

    MR_ASSERT(row.size == ROW_SIZE);
    mr_sql_id(sql, mr_id_get(row.data));
    mr_sql_u64(sql, get_le64(row.data + 16));
    mr_sql_u64(sql, get_le64(row.data + KEY_SIZE));
    mr_sql_u64(sql, mr_clock_realtime_ns());
    return mr_sql_run(sql, error);
}

static enum mr_status forget_old(struct mr_store *store, struct mr_error *error)
{
    uint64_t kept_ns = (uint64_t)MR_STORE_SENDER_KEEP_DAYS * 24 * MR_HOUR_NS;
    struct mr_sql sql;
    enum mr_status status = mr_sql_prepare(
        store->db, "DELETE FROM custody WHERE decided_ns < ?", &sql, error);

    if (status != MR_OK)
        return status;
    mr_sql_u64(&sql, mr_clock_realtime_ns() - kept_ns);
    status = mr_sql_run(&sql, error);
    mr_sql_finish(&sql);
    return status;
}

enum mr_status mr_store_load_register(struct mr_store *store, struct mr_error *error)
{
    struct mr_sql sql;
    enum mr_status status = forget_old(store, error);

    store->ticket = mr_store_position(store, MR_STORE_REGISTER);
    if (status == MR_OK)
        status = mr_sql_prepare(store->db, "SELECT subject, epoch, position FROM custody",
                                &sql, error);
    if (status != MR_OK)
        return status;
    while ((status = mr_sql_row(&sql, error)) == MR_OK) {
        struct mr_id subject = mr_sql_get_id(&sql);
        uint64_t epoch = mr_sql_get_u64(&sql);

        status = add(store, key_of(subject, epoch), mr_sql_get_u64(&sql), 0);
        if (status != MR_OK)
            break;
    }
    mr_sql_finish(&sql);
    return status == MR_END ? MR_OK : status;
}
