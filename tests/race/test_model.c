/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One writer publishes as fast as it can, readers check that every moment they see is
 * whole: sums over paths are the root's sums, every index names a record, every child's
 * parent is there. Under ThreadSanitizer this also checks the annotations in model.c.
 */
#include "base/clock.h"
#include "master/model.h"
#include "master/summary.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
/* after the four above */
#include <cmocka.h>

#define READERS 3
#define DELTAS 600
#define PATHS_PER_DELTA 40

struct race {
    struct mr_model *model;
    _Atomic int is_over;
    _Atomic uint64_t reads, failures;
};

static void make_delta(struct mr_buffer *bytes, unsigned *random, uint64_t second)
{
    struct mr_delta_writer w;
    struct mr_path_stats stats = {
        .ok = 1, .incomplete = 1, .self = {3, 3, 3}, .total = {9, 9, 9}};

    stats.histogram = MR_HISTOGRAM_EMPTY;
    assert_int_equal(mr_histogram_add(&stats.histogram, 9, 1), MR_OK);
    mr_buffer_clear(bytes);
    mr_delta_begin(&w, bytes);
    mr_delta_head(&w, 1, second * MR_SECOND_NS);
    mr_delta_scope(&w, (struct mr_id){1, 1});
    uint32_t path = MR_DELTA_NONE;
    for (uint32_t i = 0; i < PATHS_PER_DELTA; i++) {
        *random = *random * 1103515245 + 12345;
        uint32_t site = mr_delta_site(&w, (struct mr_id){2, *random >> 8 & 63});

        if (i % 8 == 0)
            path = MR_DELTA_NONE;
        path = mr_delta_path(&w, path, 0, site, 0);
        mr_delta_path_stat(&w, path, second, &stats);
    }
    assert_int_equal(mr_delta_status(&w), MR_OK);
    mr_histogram_fini(&stats.histogram);
}

/* False when the moment is not whole. */
static bool check_paths(const struct mr_model_root *root)
{
    uint64_t ok = 0, incomplete = 0, self = 0;

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_PATH); i++) {
        const struct mr_model_path *path = mr_model_path(root, i);
        const struct mr_model_path_stat *stat = mr_model_path_stat(root, i);

        if (!path || !stat || !mr_model_site(root, path->site) ||
            (path->parent != MR_MODEL_NONE && path->parent >= i) ||
            mr_model_find(root, MR_MODEL_PATH, path->id) != i)
            return false;
        ok += stat->stats.ok;
        incomplete += stat->stats.incomplete;
        self += stat->stats.self.sum;
        if (mr_histogram_total(&stat->stats.histogram) != stat->stats.ok)
            return false;
    }
    return ok == root->totals.ok && incomplete == root->totals.incomplete &&
           self == root->totals.self_ns;
}

static bool check_summary(const struct mr_model_root *root)
{
    struct mr_summary_limits all = {.functions = SIZE_MAX,
                                    .entries = SIZE_MAX,
                                    .sources = SIZE_MAX,
                                    .traces = SIZE_MAX,
                                    .cheap_ns = 20,
                                    .has_shares = true};
    struct mr_summary *summary;
    uint64_t calls = 0;

    if (mr_summary_of(root, &all, &summary) != MR_OK)
        return false;
    for (size_t i = 0; i < summary->function_count; i++)
        calls += summary->functions[i].calls;
    bool is_whole = calls == root->totals.ok + root->totals.incomplete;
    mr_summary_free(summary);
    return is_whole;
}

static void *read_all_the_time(void *context)
{
    struct race *race = context;

    mr_model_thread_enter();
    while (!atomic_load(&race->is_over)) {
        const struct mr_model_root *root = mr_model_read_lock(race->model);

        if (!check_paths(root))
            atomic_fetch_add(&race->failures, 1);
        if (atomic_fetch_add(&race->reads, 1) % 3 == 0) {
            sched_yield(); /* let the writer go on while we hold this moment */
            if (!check_summary(root) || !check_paths(root))
                atomic_fetch_add(&race->failures, 1);
        }
        mr_model_read_unlock(race->model);
    }
    mr_model_thread_leave();
    return NULL;
}

static void readers_see_whole_moments(void **state)
{
    struct race race = {.model = NULL};
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;
    struct mr_buffer bytes;
    pthread_t threads[READERS];
    unsigned random = 7;

    (void)state;
    limits.series_points = 500; /* so that windows are dropped under the readers */
    assert_int_equal(mr_model_new(&limits, &race.model), MR_OK);
    mr_buffer_init(&bytes, 1 << 20);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_all_the_time, &race), 0);
    for (uint64_t i = 0; i < DELTAS; i++) {
        make_delta(&bytes, &random, 1700000000 + 20 * i);
        assert_int_equal(mr_model_apply_delta(race.model, (struct mr_id){1, 1},
                                              mr_buffer_span(&bytes), NULL),
                         MR_OK);
        assert_int_equal(mr_model_publish(race.model), MR_OK);
        if (i % 16 == 0)
            sched_yield();
    }
    while (atomic_load(&race.reads) < 10)
        sched_yield();
    atomic_store(&race.is_over, 1);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&race.failures), 0);
    mr_buffer_fini(&bytes);
    mr_model_free(race.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(readers_see_whole_moments)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
