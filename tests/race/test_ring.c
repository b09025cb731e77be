/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe's ring between its thread and the writer, and the pool between many threads
 * and the writer. The owner numbers its events in their sites; the reader's account,
 * from the chunks alone, must give each event the number that it carries, losses
 * included.
 */
#include "tests/unit/unit_test.h"

#include "net/chunk.h"
#include "probe/drain.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#define SITE MR_SITE_FIRST_MODULE
#define SITE_COUNT UINT32_C(0x1000000)
#define EVENT_COUNT 2000000
#define FRAME_SIZE 8192
#define THREAD_COUNT 8
#define LIVES_PER_THREAD 150
#define EVENTS_PER_LIFE 400

struct race {
    struct mr_pool pool;
    _Atomic uint32_t running; /* owners */
    uint64_t seed, slow_reader;
    bool is_late; /* the reader begins when something was lost */
    struct mr_drain_frame frame;
    uint8_t out[FRAME_SIZE];
    uint64_t events, lost, losses, last_chunks, counted;
};

/* Every fifth event has the values of counters: the first is its number. */
static void put(struct mr_thread *thread, uint64_t bits, uint64_t number)
{
    const uint64_t values[] = {number, UINT64_MAX, 0, 1};

    if (number % 5)
        mr_ring_event(thread, bits);
    else
        mr_ring_event_counted(thread, bits, mr_clock_ticks(), values,
                              1 + (uint32_t)(number % 4));
}

/* One life of a ring: taken, written, given back. False if there was no ring. */
static bool live(struct race *race, struct mr_test_random *random, uint64_t count)
{
    struct mr_thread thread;
    struct mr_ring *ring = mr_pool_take(&race->pool);

    if (!ring)
        return false;
    memset(&thread, 0, sizeof(thread));
    ring->start_ticks = mr_clock_ticks();
    mr_ring_attach(&thread, ring);
    mr_pool_publish(ring);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t site = SITE + (uint32_t)(i % SITE_COUNT);

        put(&thread, i & 1 ? mr_event_exit(site) : mr_event_enter(site), i);
        if (mr_test_random_below(random, 5000) == 0)
            (void)usleep((useconds_t)mr_test_random_below(random, 50));
        if (mr_test_random_below(random, 500) == 0)
            (void)sched_yield();
    }
    mr_ring_detach(&thread);
    return true;
}

static void *own_one(void *argument)
{
    struct race *race = argument;
    struct mr_test_random random = {race->seed};

    assert_true(live(race, &random, EVENT_COUNT));
    (void)mr_sub_acq_rel(&race->running, 1);
    return NULL;
}

static void *own_many(void *argument)
{
    struct race *race = argument;
    struct mr_test_random random = {race->seed ^ (uint64_t)(uintptr_t)&random};

    for (int lives = 0; lives < LIVES_PER_THREAD;) {
        if (live(race, &random, EVENTS_PER_LIFE))
            lives++;
        else
            (void)sched_yield();
    }
    (void)mr_sub_acq_rel(&race->running, 1);
    return NULL;
}

static void check_record(struct race *race, const struct mr_record *record,
                         uint64_t *number)
{
    if (record->site >= MR_SITE_FIRST_NAMED) {
        assert_true(record->site == SITE + *number % SITE_COUNT);
        assert_int_equal(record->is_exit, *number & 1);
        ++*number;
        race->events++;
    } else if (record->kind == MR_RECORD_LOSS) {
        *number += record->payload[0] & 0xffffffff;
        race->lost += record->payload[0] & 0xffffffff;
        race->losses++;
    } else if (record->kind == MR_RECORD_COUNTER) {
        assert_true(record->payload[0] == *number - 1);
        assert_int_equal(record->words, 1 + (*number - 1) % 4);
        race->counted++;
    } else {
        assert_int_equal(record->kind, MR_RECORD_SYNC);
    }
}

static void check_frame(struct race *race)
{
    static struct mr_record_reader reader;
    static struct mr_record record;
    struct mr_span payload = mr_span_of(race->out, race->frame.size);
    struct mr_chunk chunk;
    enum mr_status status;

    while ((status = mr_chunk_next(&payload, &chunk)) == MR_OK) {
        uint64_t number = chunk.first_event;

        mr_record_reader_init(&reader, &chunk);
        while ((status = mr_record_next(&reader, &record)) == MR_OK)
            check_record(race, &record, &number);
        assert_int_equal(status, MR_END);
        assert_true(number == chunk.first_event + chunk.events);
        race->last_chunks += (chunk.flags & MR_CHUNK_LAST) != 0;
    }
    assert_int_equal(status, MR_END);
}

static void wait_for_loss(struct race *race)
{
    struct mr_ring *ring;

    do {
        (void)usleep(100);
        ring = mr_load_acquire(&race->pool.rings);
    } while (!ring || mr_load_relaxed(&ring->pending[MR_LOSS_BLOCK_TIMEOUT]) == 0);
}

/* Reads until the owners have ended and everything is read. */
static void read_all(struct race *race)
{
    struct mr_test_random random = {race->seed + 1};
    bool is_over = false;

    if (race->is_late)
        wait_for_loss(race);
    while (!is_over) {
        struct mr_ring *ring;

        is_over = mr_load_acquire(&race->running) == 0;
        mr_drain_begin(&race->frame, race->out,
                       MR_DRAIN_ROOM_MIN +
                           mr_test_random_below(&random, FRAME_SIZE - MR_DRAIN_ROOM_MIN));
        for (ring = mr_load_acquire(&race->pool.rings); ring; ring = ring->next) {
            uint32_t ring_state = mr_load_acquire(&ring->state);

            if (ring_state == MR_RING_OWNED || ring_state == MR_RING_CLOSED)
                (void)mr_drain_ring(&race->frame, ring, 1, 0);
        }
        check_frame(race);
        mr_drain_commit(&race->frame, &race->pool);
        is_over = is_over && race->frame.size == 0;
        if (mr_test_random_below(&random, race->slow_reader) == 0)
            (void)usleep((useconds_t)mr_test_random_below(&random, 300));
    }
}

static struct race *race_new(uint64_t ring_count)
{
    struct race *race = calloc(1, sizeof(*race));
    uint64_t bytes = MR_RING_WORDS_MIN * sizeof(uint64_t);

    assert_non_null(race);
    race->seed = mr_test_random_new().state;
    race->slow_reader = 100;
    mr_pool_init(&race->pool, bytes, ring_count * (bytes + 4096));
    mr_store_relaxed(&race->pool.shared.pid, (uint32_t)getpid());
    mr_store_relaxed(&race->pool.shared.draining, 1);
    return race;
}

static void race_free(struct race *race)
{
    mr_pool_fini(&race->pool);
    free(race);
}

static void run(struct race *race, void *(*owner)(void *), uint32_t count)
{
    pthread_t threads[THREAD_COUNT];

    mr_store_release(&race->running, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, owner, race), 0);
    read_all(race);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void dropped_events_are_counted_where_they_were_lost(void **state)
{
    struct race *race = race_new(1);

    (void)state;
    race->slow_reader = 3;
    run(race, own_one, 1);
    assert_true(race->lost > 0);
    assert_true(race->events + race->lost == EVENT_COUNT);
    assert_true(race->last_chunks == 1);
    race_free(race);
}

static void block_loses_nothing_while_the_reader_reads(void **state)
{
    struct race *race = race_new(1);

    (void)state;
    race->pool.shared.policy = MR_POLICY_BLOCK;
    race->pool.shared.block_timeout_ns = 60 * MR_SECOND_NS;
    run(race, own_one, 1);
    assert_true(race->lost == 0);
    assert_true(race->events == EVENT_COUNT);
    race_free(race);
}

static void block_loses_what_is_made_while_the_reader_stands_still(void **state)
{
    struct race *race = race_new(1);

    (void)state;
    race->is_late = true;
    race->slow_reader = 2; /* and then reads as slowly as it can */
    race->pool.shared.policy = MR_POLICY_BLOCK;
    race->pool.shared.block_timeout_ns = MR_SECOND_NS;
    run(race, own_one, 1);
    assert_true(race->lost > 0);
    assert_true(race->losses == 1);
    assert_true(race->events + race->lost == EVENT_COUNT);
    race_free(race);
}

static void rings_pass_from_thread_to_thread(void **state)
{
    struct race *race = race_new(5); /* fewer than threads */

    (void)state;
    run(race, own_many, THREAD_COUNT);
    assert_true(race->events + race->lost ==
                UINT64_C(1) * THREAD_COUNT * LIVES_PER_THREAD * EVENTS_PER_LIFE);
    assert_true(race->last_chunks == THREAD_COUNT * LIVES_PER_THREAD);
    assert_true(mr_load_relaxed(&race->pool.mapped_bytes) <= race->pool.ceiling_bytes);
    race_free(race);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropped_events_are_counted_where_they_were_lost),
        cmocka_unit_test(block_loses_nothing_while_the_reader_reads),
        cmocka_unit_test(block_loses_what_is_made_while_the_reader_stands_still),
        cmocka_unit_test(rings_pass_from_thread_to_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
