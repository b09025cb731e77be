/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder between the threads that write it and a stranger who reads it while
 * they do. Each event carries its number in its site; whatever is read, the chunks alone
 * must give each event the number that it carries, wherever the reader came in.
 */
#include "tests/unit/unit_test.h"

#include "net/chunk.h"
#include "probe/recorder.h"
#include "probe/recorder_read.h"
#include "probe/registry.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SITE MR_SITE_FIRST_MODULE
#define SITE_COUNT UINT32_C(0x1000000)
#define FRAME_SIZE 65536
#define THREAD_COUNT 4

struct race {
    struct mr_recorder recorder;
    struct mr_pool pool;
    _Atomic uint32_t running;
    uint64_t seed, events_per_life;
    uint32_t lives;
    bool has_wides; /* records of two words among the others */
    /* The reader's. */
    uint64_t copies, again, events, lost, wides;
    uint8_t out[FRAME_SIZE];
};

static void record(struct race *race, struct mr_thread *thread, uint64_t number)
{
    uint32_t site = SITE + (uint32_t)(number % SITE_COUNT);

    if (race->has_wides && number % 7 == 3)
        mr_ring_wide(thread, number & 1 ? MR_WORD_EXIT : 0, number, mr_clock_ticks());
    else
        mr_ring_event(thread, number & 1 ? mr_event_exit(site) : mr_event_enter(site));
}

static bool live(struct race *race, struct mr_test_random *random)
{
    struct mr_thread thread;
    struct mr_ring *ring = mr_pool_take(&race->pool);

    if (!ring)
        return false;
    memset(&thread, 0, sizeof(thread));
    ring->start_ticks = mr_clock_ticks();
    mr_ring_attach(&thread, ring);
    mr_pool_publish(ring);
    for (uint64_t i = 0; i < race->events_per_life; i++) {
        record(race, &thread, i);
        if (mr_test_random_below(random, 3000) == 0)
            (void)usleep((useconds_t)mr_test_random_below(random, 100));
    }
    mr_ring_detach(&thread);
    return true;
}

static void *own(void *argument)
{
    struct race *race = argument;
    struct mr_test_random random = {race->seed ^ (uint64_t)(uintptr_t)&random};

    for (uint32_t lives = 0; lives < race->lives;) {
        if (live(race, &random))
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
        assert_int_equal(record->site, SITE + *number % SITE_COUNT);
        assert_int_equal(record->is_exit, *number & 1);
        race->events++;
        ++*number;
    } else if (record->kind == MR_RECORD_WIDE) {
        assert_int_equal(record->payload[0], *number);
        assert_int_equal(record->is_exit, *number & 1);
        race->wides++;
        ++*number;
    } else if (record->kind == MR_RECORD_LOSS) {
        /* Nobody is interrupted here, so nothing is torn. */
        assert_int_equal(record->payload[0] >> 48, MR_LOSS_OVERWRITTEN);
        *number += record->payload[0] & UINT32_MAX;
        race->lost += record->payload[0] & UINT32_MAX;
    } else {
        assert_true(record->kind == MR_RECORD_SYNC || record->kind == MR_RECORD_CUT);
    }
}

static uint64_t check_chunk(struct race *race, size_t size, uint64_t number)
{
    static struct mr_record_reader reader;
    static struct mr_record record;
    struct mr_span payload = mr_span_of(race->out, size);
    struct mr_chunk chunk;
    enum mr_status status;

    assert_int_equal(mr_chunk_next(&payload, &chunk), MR_OK);
    assert_int_equal(payload.size, 0);
    assert_int_equal(chunk.first_event, number);
    mr_record_reader_init(&reader, &chunk);
    while ((status = mr_record_next(&reader, &record)) == MR_OK)
        check_record(race, &record, &number);
    assert_int_equal(status, MR_END);
    assert_int_equal(number, chunk.first_event + chunk.events);
    return number;
}

static void check_copy(struct race *race, struct mr_recorder_copy *copy)
{
    uint64_t number = 0;
    size_t size;

    assert_true(copy->torn == 0);
    while ((size = mr_recorder_chunk(copy, race->out, sizeof(race->out))) > 0)
        number = check_chunk(race, size, number);
    assert_int_equal(number, copy->events);
    if (copy->is_ended)
        assert_int_equal(number, race->events_per_life);
    assert_int_equal(copy->events_before, copy->streams_before * race->events_per_life);
    race->copies++;
}

static void read_once(struct race *race)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_recorder_view view;
    struct mr_recorder_copy copy;

    assert_int_equal(
        mr_recorder_view_open(&view, race->recorder.header, race->recorder.size, &error),
        MR_OK);
    for (uint32_t i = 0; i < mr_recorder_view_rings(&view); i++) {
        enum mr_status status = mr_recorder_copy_ring(&view, i, &copy);

        race->again += status == MR_AGAIN;
        if (status != MR_OK)
            continue;
        check_copy(race, &copy);
        mr_recorder_copy_fini(&copy);
    }
}

/* At rest: every event of every life is read, or told as overwritten. */
static void check_sum(struct race *race, uint32_t threads)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_recorder_view view;
    struct mr_recorder_copy copy;
    uint64_t sum = 0;

    assert_int_equal(
        mr_recorder_view_open(&view, race->recorder.header, race->recorder.size, &error),
        MR_OK);
    for (uint32_t i = 0; i < mr_recorder_view_rings(&view); i++) {
        assert_int_equal(mr_recorder_copy_ring(&view, i, &copy), MR_OK);
        assert_true(copy.is_ended);
        check_copy(race, &copy);
        sum += copy.events + copy.events_before;
        mr_recorder_copy_fini(&copy);
    }
    assert_true(sum == race->events_per_life * race->lives * threads);
}

static struct race *race_new(uint64_t rings, uint64_t ring_bytes)
{
    struct race *race = calloc(1, sizeof(*race));
    struct mr_error error = MR_ERROR_NONE;
    struct mr_config config = {.clock = MR_CLOCK_MODE_COUNTER,
                               .memory_bytes = rings * (ring_bytes + 4096)};
    struct mr_source source = {.pid = (uint32_t)getpid()};

    assert_non_null(race);
    assert_int_equal(mr_id_random(&source.id), MR_OK);
    race->seed = mr_test_random_new().state;
    mr_clock_sample(MR_CLOCK_MODE_COUNTER, &source.first_sample);
    assert_int_equal(mr_recorder_open(&race->recorder, &config, &source, "", &error),
                     MR_OK);
    mr_pool_init(&race->pool, ring_bytes, config.memory_bytes);
    race->pool.shared.policy = MR_POLICY_OVERWRITE;
    race->pool.shared.epoch = &race->recorder.header->epoch;
    race->pool.recorder = &race->recorder;
    mr_store_relaxed(&race->pool.shared.pid, source.pid);
    return race;
}

static void run(struct race *race, uint32_t count)
{
    struct mr_test_random random = {race->seed + 1};
    pthread_t threads[THREAD_COUNT];

    mr_store_release(&race->running, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, own, race), 0);
    while (mr_load_acquire(&race->running) > 0) {
        read_once(race);
        if (mr_test_random_below(&random, 4) == 0)
            (void)usleep((useconds_t)mr_test_random_below(&random, 500));
    }
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    check_sum(race, count);
    assert_true(race->copies > 0 && race->events > 0);
    assert_true(mr_load_relaxed(&race->pool.mapped_bytes) <= race->pool.ceiling_bytes);
}

static void race_free(struct race *race)
{
    printf("    %llu copies, %llu to be tried again, %llu events\n",
           (unsigned long long)race->copies, (unsigned long long)race->again,
           (unsigned long long)(race->events + race->wides));
    mr_pool_fini(&race->pool);
    mr_recorder_end(&race->recorder);
    mr_recorder_abandon(&race->recorder);
    free(race);
}

static void a_busy_ring_is_read_as_it_was(void **state)
{
    struct race *race = race_new(4, 65536);

    (void)state;
    race->lives = 1;
    race->events_per_life = 3000000;
    run(race, 2);
    assert_true(race->lost > 0);
    race_free(race);
}

static void records_of_several_words_are_read_whole(void **state)
{
    struct race *race = race_new(4, 4096);

    (void)state;
    race->lives = 1;
    race->events_per_life = 400000;
    race->has_wides = true;
    run(race, 2);
    assert_true(race->wides > 0);
    race_free(race);
}

static void rings_that_change_hands_tell_of_one_thread(void **state)
{
    struct race *race = race_new(6, 4096);

    (void)state;
    race->lives = 300;
    race->events_per_life = 700;
    race->has_wides = true;
    run(race, THREAD_COUNT);
    race_free(race);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_ring_is_read_as_it_was),
        cmocka_unit_test(records_of_several_words_are_read_whole),
        cmocka_unit_test(rings_that_change_hands_tell_of_one_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
