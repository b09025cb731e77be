/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stock of modules (probe/changes.h) that many threads take while libraries come and go, and
 * one reads. What the reader is told must always be a table: nothing comes that is there, nor
 * where something lies, and nothing goes that is not; and at rest it is what is loaded.
 */
#include "tests/unit/unit_test.h"

#include "probe/registry.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

/* Of the shared library's part that this test does without. */
void mr_interpose_after_fork(void);
void mr_interpose_after_fork(void)
{
}

#define ROUNDS 600

/* Of libc, in every program's reach and in none of ours. */
static const char *const libraries[] = {"libanl.so.1", "libBrokenLocale.so.1",
                                        "libutil.so.1"};

#define THREAD_COUNT (sizeof(libraries) / sizeof(libraries[0]))

struct race {
    struct mr_probe probe;
    struct mr_module_table table; /* the reader's: what it was told */
    _Atomic uint32_t running;
    uint64_t seed, told;
};

struct opener {
    struct race *race;
    const char *library;
    struct mr_test_random random;
};

static void dawdle(struct mr_test_random *random)
{
    if (mr_test_random_below(random, 3) == 0)
        (void)usleep((useconds_t)mr_test_random_below(random, 300));
}

/* As dlopen() and dlclose() of probe/interpose_load.c. */
static void *open_and_close(void *argument)
{
    struct opener *opener = argument;
    struct mr_probe *probe = &opener->race->probe;

    for (int i = 0; i < ROUNDS; i++) {
        void *handle;

        mr_store_relaxed(&probe->changes.opened_ns, mr_clock_monotonic_ns());
        handle = dlopen(opener->library, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(handle);
        dawdle(&opener->random);
        (void)mr_changes_look(probe, true);
        assert_int_equal(dlclose(handle), 0);
        (void)mr_changes_look(probe, true);
        dawdle(&opener->random);
    }
    (void)mr_sub_acq_rel(&opener->race->running, 1);
    return NULL;
}

/* The helper; and a thread that forks, on its parent's side. */
static void *look_on(void *argument)
{
    struct race *race = argument;
    struct mr_test_random random = {race->seed};

    while (mr_load_acquire(&race->running) > 0) {
        (void)mr_changes_look(&race->probe, false);
        dawdle(&random);
        if (mr_test_random_below(&random, 4) == 0) {
            mr_changes_before_fork(&race->probe.changes);
            mr_changes_after_fork(&race->probe.changes, false);
        }
    }
    return NULL;
}

static void add(struct mr_module_table *table, const struct mr_module *module)
{
    assert_true(table->count < MR_MODULES_MAX && module->size > 0);
    for (uint32_t i = 0; i < table->count; i++)
        assert_true(module->address >= table->items[i].address + table->items[i].size ||
                    table->items[i].address >= module->address + module->size);
    table->items[table->count++] = *module;
}

static void take_off(struct mr_module_table *table, const struct mr_module *module)
{
    uint32_t at = 0;

    while (at < table->count && table->items[at].address != module->address)
        at++;
    assert_true(at < table->count);
    assert_string_equal(table->items[at].path, module->path);
    table->items[at] = table->items[--table->count];
}

/* The writer. True: something was told. */
static bool take(struct race *race)
{
    struct mr_changes *changes = &race->probe.changes;
    const struct mr_module_change *change = mr_changes_next(changes);

    if (!change)
        return false;
    if (change->is_gone)
        take_off(&race->table, &change->module);
    else
        add(&race->table, &change->module);
    race->told++;
    mr_changes_taken(changes);
    return true;
}

static void check_loaded(const struct race *race)
{
    struct mr_module_table *now = calloc(1, sizeof(*now));

    assert_non_null(now);
    mr_modules_scan(now);
    assert_int_equal(race->table.count, now->count);
    for (uint32_t i = 0; i < now->count; i++) {
        uint32_t at = 0;

        while (at < race->table.count &&
               race->table.items[at].address != now->items[i].address)
            at++;
        assert_true(at < race->table.count);
        assert_string_equal(race->table.items[at].path, now->items[i].path);
    }
    free(now);
}

static struct race *race_new(void)
{
    struct race *race = calloc(1, sizeof(*race));

    assert_non_null(race);
    race->seed = mr_test_random_new().state;
    race->probe.clock.mode = MR_CLOCK_MODE_MONOTONIC;
    mr_changes_start(&race->probe.changes, &race->probe.windows);
    assert_int_equal(mr_changes_attach(&race->probe.changes, &race->table), MR_OK);
    return race;
}

static void the_reader_always_has_a_table(void **state)
{
    struct race *race = race_new();
    struct opener openers[THREAD_COUNT];
    pthread_t threads[THREAD_COUNT], helper;

    (void)state;
    mr_store_release(&race->running, (uint32_t)THREAD_COUNT);
    for (size_t i = 0; i < THREAD_COUNT; i++) {
        openers[i] = (struct opener){race, libraries[i], {race->seed + 1 + i}};
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, &openers[i]),
                         0);
    }
    assert_int_equal(pthread_create(&helper, NULL, look_on, race), 0);
    while (mr_load_acquire(&race->running) > 0)
        if (!take(race))
            (void)sched_yield();
    for (size_t i = 0; i < THREAD_COUNT; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(pthread_join(helper, NULL), 0);
    (void)mr_changes_look(&race->probe, false);
    while (take(race))
        ;
    printf("    %llu changes told\n", (unsigned long long)race->told);
    assert_true(race->told > 0);
    check_loaded(race);
    free(race);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reader_always_has_a_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
