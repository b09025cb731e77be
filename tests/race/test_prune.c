/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sites that are pruned and recorded again while threads call them (probe/prune.c), between
 * the pruner, the threads and the writer. The functions are switched as hooks are: by a flag
 * that a thread looks at at each end of a call, some time before its event is in the ring.
 * From the chunks alone: behind a mark no enter of its sites comes, behind the settled one no
 * exit. And every call that was made is in a stream or counted.
 */
#include "tests/unit/unit_test.h"

#include "net/chunk.h"
#include "probe/drain.h"
#include "probe/pruned.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#define SITE_COUNT 6
#define FRAME_SIZE 8192
#define THREAD_COUNT 4
#define RING_COUNT (THREAD_COUNT + 1)
#define LIVES 12
#define CALLS_PER_LIFE 6000
#define STREAMS_MAX (THREAD_COUNT * LIVES + 1)
#define DEPTH_MAX 3
#define COUNT_BYTES (MR_PRUNED_SLOTS * sizeof(uint64_t))

/* What a stream has told of a site. */
struct view {
    bool is_known, is_absent, is_settled;
    bool may_stray; /* exits of calls that were entered while it was off */
    uint64_t open;
};

struct race {
    struct mr_pool pool;
    uint32_t first_site;
    bool is_fast; /* marks do not wait until they are told */
    uint64_t seed;
    _Atomic uint32_t running;        /* owners */
    _Atomic uint32_t told;           /* marks that all streams have */
    _Atomic uint8_t off[SITE_COUNT]; /* what a thread looks at */
    _Atomic uint64_t made[SITE_COUNT];
    /* The reader's. */
    struct mr_drain_frame frame;
    uint8_t out[FRAME_SIZE];
    struct view views[STREAMS_MAX][SITE_COUNT];
    uint64_t enters[SITE_COUNT], marks, cuts;
};

struct owner {
    struct race *race;
    struct mr_thread thread;
    struct mr_test_random random;
    uint64_t made[SITE_COUNT];
};

static void dawdle(struct mr_test_random *random)
{
    if (mr_test_random_below(random, 400) == 0)
        (void)sched_yield();
    if (mr_test_random_below(random, 4000) == 0)
        (void)usleep((useconds_t)mr_test_random_below(random, 200));
}

/* One end of a call, as a hook has it: record_chosen() of probe/hook.c. */
static void come_by(struct owner *owner, uint32_t at, bool is_exit)
{
    struct race *race = owner->race;
    uint32_t site = race->first_site + at;
    bool is_off = mr_load_relaxed(&race->off[at]) != 0;

    dawdle(&owner->random);
    if (!is_off)
        mr_ring_event(&owner->thread,
                      is_exit ? mr_event_exit(site) : mr_event_enter(site));
    else
        mr_pruned_enter(&owner->thread,
                        is_exit ? mr_event_exit(site) : mr_event_enter(site));
}

static void call(struct owner *owner, uint32_t depth)
{
    uint32_t at = (uint32_t)mr_test_random_below(&owner->random, SITE_COUNT);

    owner->made[at]++;
    come_by(owner, at, false);
    if (depth < DEPTH_MAX && mr_test_random_below(&owner->random, 2) == 0)
        call(owner, depth + 1);
    come_by(owner, at, true);
}

static void live(struct owner *owner)
{
    struct race *race = owner->race;
    struct mr_ring *ring;

    while (!(ring = mr_pool_take(&race->pool)))
        (void)sched_yield();
    memset(&owner->thread, 0, sizeof(owner->thread));
    ring->start_ticks = mr_clock_ticks();
    ring->prunes_before = mr_load_acquire(&race->pool.shared.prunes.settled);
    mr_ring_attach(&owner->thread, ring);
    mr_pool_publish(ring);
    for (int i = 0; i < CALLS_PER_LIFE; i++)
        call(owner, 0);
    mr_ring_detach(&owner->thread);
}

static void *own(void *argument)
{
    struct owner *owner = argument;

    for (int i = 0; i < LIVES; i++)
        live(owner);
    for (uint32_t i = 0; i < SITE_COUNT; i++)
        (void)mr_add_relaxed(&owner->race->made[i], owner->made[i]);
    (void)mr_sub_acq_rel(&owner->race->running, 1);
    return NULL;
}

/* As note_marks() of probe/prune.c; marks are numbered from 1. */
static void note(struct race *race, const uint32_t *sites, uint32_t count, bool is_off)
{
    uint32_t first = mr_prune_marks_count(&race->pool.shared.prunes) + 1;

    for (uint32_t i = 0; i < count; i++) {
        struct mr_pruned_site *site = mr_pruned_at(mr_pruned_add(sites[i]));

        if (is_off) {
            mr_store_relaxed(&site->since, first);
            mr_store_relaxed(&site->settled, first + 1);
            mr_store_release(&site->until, 0);
        } else {
            mr_store_relaxed(&site->until, first + 1);
        }
    }
}

static void change(struct race *race, const uint32_t *sites, uint32_t count, bool is_off)
{
    struct mr_prune_marks *marks = &race->pool.shared.prunes;
    uint64_t what = is_off ? 0 : MR_PRUNE_ON_AGAIN;

    note(race, sites, count, is_off);
    mr_prune_marks_add(marks, mr_clock_ticks(), sites, count, what);
    if (!race->is_fast)
        (void)usleep(MR_CUT_MARGIN_NS / MR_MICROSECOND_NS);
    for (uint32_t i = 0; i < count; i++)
        mr_store_relaxed(&race->off[sites[i] - race->first_site], is_off);
    mr_prune_marks_add(marks, mr_clock_ticks(), sites, count, what | MR_PRUNE_SETTLED);
    mr_prune_marks_settle(marks);
}

/* As probe/prune.c: rings that wait for a slow reader may have taken all there is; then calls are counted in one place. */
static void give_counts(struct race *race)
{
    struct mr_ring *ring = mr_load_acquire(&race->pool.rings);

    for (; ring; ring = ring->next)
        (void)mr_pool_counts(&race->pool, ring, COUNT_BYTES);
}

/*
 * A site is pruned anew only on what the writer has seen of it since it was recorded again, so
 * streams know that long before. False: the owners have ended, and what they left may not be
 * read yet.
 */
static bool wait_until_told(struct race *race)
{
    uint32_t count = mr_prune_marks_count(&race->pool.shared.prunes);

    while (!race->is_fast && mr_load_acquire(&race->told) < count) {
        if (mr_load_acquire(&race->running) == 0)
            return false;
        (void)usleep(100);
    }
    return true;
}

static void *prune(void *argument)
{
    struct race *race = argument;
    struct mr_test_random random = {race->seed + 2};

    while (mr_load_acquire(&race->running) > 0) {
        bool is_off = mr_test_random_below(&random, 2) == 0;
        uint32_t sites[SITE_COUNT], count = 0;

        /* The first is always recorded: marks come into a stream with its events. */
        for (uint32_t i = 1; i < SITE_COUNT; i++)
            if (mr_test_random_below(&random, 2) == 0 &&
                (mr_load_relaxed(&race->off[i]) != 0) != is_off)
                sites[count++] = race->first_site + i;
        if (is_off && !wait_until_told(race))
            break;
        if (count > 0)
            change(race, sites, count, is_off);
        if (mr_test_random_below(&random, 4) == 0)
            give_counts(race);
        if (!race->is_fast || mr_test_random_below(&random, 8) == 0)
            (void)usleep((useconds_t)mr_test_random_below(&random, 500));
    }
    return NULL;
}

static void check_mark(struct race *race, struct view *views, uint64_t payload)
{
    struct view *view = &views[(uint32_t)payload - race->first_site];

    view->is_known = true;
    if (payload & MR_PRUNE_ON_AGAIN) {
        view->is_absent = view->is_settled = false;
        view->may_stray = true;
    } else {
        view->is_absent = true;
        view->is_settled = (payload & MR_PRUNE_SETTLED) != 0;
        if (view->is_settled)
            view->open = 0;
    }
    race->marks++;
}

/* More marks than are kept: what they told of is not known. */
static void check_cut(struct race *race, struct view *views)
{
    for (uint32_t i = 0; i < SITE_COUNT; i++)
        views[i] = (struct view){.may_stray = true};
    race->cuts++;
}

static void check_call(struct race *race, struct view *views,
                       const struct mr_record *record)
{
    uint32_t at = record->site - race->first_site;
    struct view *view = &views[at];

    assert_true(at < SITE_COUNT);
    if (!record->is_exit) {
        assert_true(race->is_fast || !view->is_known || !view->is_absent);
        race->enters[at]++;
        view->open++;
        return;
    }
    assert_true(race->is_fast || !view->is_known || !view->is_settled);
    assert_true(race->is_fast || view->open > 0 || view->may_stray);
    if (view->open > 0)
        view->open--;
}

static void check_record(struct race *race, uint32_t stream,
                         const struct mr_record *record)
{
    struct view *views = race->views[stream];

    if (record->site >= MR_SITE_FIRST_NAMED)
        check_call(race, views, record);
    else if (record->kind == MR_RECORD_PRUNE)
        check_mark(race, views, record->payload[0]);
    else if (record->kind == MR_RECORD_CUT)
        check_cut(race, views);
    else
        assert_int_equal(record->kind, MR_RECORD_SYNC);
}

static void check_frame(struct race *race)
{
    static struct mr_record_reader reader;
    static struct mr_record record;
    struct mr_span payload = mr_span_of(race->out, race->frame.size);
    struct mr_chunk chunk;
    enum mr_status status;

    while ((status = mr_chunk_next(&payload, &chunk)) == MR_OK) {
        assert_true(chunk.lost == 0 && chunk.stream < STREAMS_MAX);
        mr_record_reader_init(&reader, &chunk);
        while ((status = mr_record_next(&reader, &record)) == MR_OK)
            check_record(race, chunk.stream, &record);
        assert_int_equal(status, MR_END);
    }
    assert_int_equal(status, MR_END);
}

static bool is_in_use(const struct mr_ring *ring)
{
    uint32_t state = mr_load_acquire(&ring->state);

    return state == MR_RING_OWNED || state == MR_RING_CLOSED;
}

static void publish_told(struct race *race)
{
    uint32_t told = mr_prune_marks_count(&race->pool.shared.prunes);

    for (struct mr_ring *ring = mr_load_acquire(&race->pool.rings); ring;
         ring = ring->next)
        if (is_in_use(ring)) {
            uint32_t seen = ring->done.ticks ? ring->done.pruned.seen : 0;

            told = seen < told ? seen : told;
        }
    mr_store_release(&race->told, told);
}

/* Reads until the owners have ended and everything is read. */
static void read_all(struct race *race)
{
    struct mr_test_random random = {race->seed + 1};
    bool is_over = false;

    while (!is_over) {
        is_over = mr_load_acquire(&race->running) == 0;
        mr_drain_begin(&race->frame, race->out,
                       MR_DRAIN_ROOM_MIN +
                           mr_test_random_below(&random, FRAME_SIZE - MR_DRAIN_ROOM_MIN));
        for (struct mr_ring *ring = mr_load_acquire(&race->pool.rings); ring;
             ring = ring->next)
            if (is_in_use(ring))
                (void)mr_drain_ring(&race->frame, ring, 1, 0);
        check_frame(race);
        mr_drain_commit(&race->frame, &race->pool);
        is_over = is_over && race->frame.size == 0;
        publish_told(race);
        if (mr_test_random_below(&random, race->is_fast ? 10 : 100) == 0)
            (void)usleep((useconds_t)mr_test_random_below(&random, 3000));
    }
}

/* `number`: each case has sites of its own, as what is known of a site outlives it. */
static struct race *race_new(uint32_t number)
{
    struct race *race = calloc(1, sizeof(*race));
    uint64_t bytes = 4 * MR_RING_WORDS_MIN * sizeof(uint64_t);

    assert_non_null(race);
    race->seed = mr_test_random_new().state;
    race->first_site = MR_SITE_FIRST_MODULE + number * SITE_COUNT;
    mr_pool_init(&race->pool, bytes, 2 * RING_COUNT * (bytes + COUNT_BYTES + 4096));
    race->pool.shared.policy = MR_POLICY_BLOCK;
    race->pool.shared.block_timeout_ns = 60 * MR_SECOND_NS;
    mr_store_relaxed(&race->pool.shared.pid, (uint32_t)getpid());
    mr_store_relaxed(&race->pool.shared.draining, 1);
    return race;
}

static void run(struct race *race)
{
    static struct owner owners[THREAD_COUNT];
    pthread_t threads[THREAD_COUNT], pruner;

    memset(owners, 0, sizeof(owners));
    mr_store_release(&race->running, THREAD_COUNT);
    for (uint32_t i = 0; i < THREAD_COUNT; i++) {
        owners[i].race = race;
        owners[i].random.state = race->seed + 3 + i;
        assert_int_equal(pthread_create(&threads[i], NULL, own, &owners[i]), 0);
    }
    assert_int_equal(pthread_create(&pruner, NULL, prune, race), 0);
    read_all(race);
    for (uint32_t i = 0; i < THREAD_COUNT; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(pthread_join(pruner, NULL), 0);
}

static void check_sums(struct race *race)
{
    uint64_t counted = 0;

    for (uint32_t i = 0; i < SITE_COUNT; i++) {
        uint32_t slot = mr_pruned_add(race->first_site + i);
        uint64_t calls = mr_pruned_calls(&race->pool, slot);

        assert_true(race->enters[i] + calls == mr_load_relaxed(&race->made[i]));
        counted += calls;
    }
    printf("    %llu marks told, %llu calls counted, %llu cuts\n",
           (unsigned long long)race->marks, (unsigned long long)counted,
           (unsigned long long)race->cuts);
    assert_true(counted > 0 && race->marks > 0);
}

static void race_free(struct race *race)
{
    mr_pool_fini(&race->pool);
    free(race);
}

static void a_pruned_site_is_gone_behind_its_mark(void **state)
{
    struct race *race = race_new(0);

    (void)state;
    run(race);
    check_sums(race);
    race_free(race);
}

static void marks_faster_than_the_writer_lose_no_call(void **state)
{
    struct race *race = race_new(1);

    (void)state;
    race->is_fast = true;
    run(race);
    check_sums(race);
    race_free(race);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pruned_site_is_gone_behind_its_mark),
        cmocka_unit_test(marks_faster_than_the_writer_lose_no_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
