/* SPDX-License-Identifier: Apache-2.0 */
#include "naive.h"

#include "master/summary.h"
#include "net/ids.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after the four above */
#include <cmocka.h>

#define ITEMS_PER_DELTA 30

uint64_t naive_random(struct naive *naive, uint64_t below)
{
    naive->random ^= naive->random << 13;
    naive->random ^= naive->random >> 7;
    naive->random ^= naive->random << 17;
    return naive->random % below;
}

void naive_init(struct naive *naive, uint64_t seed)
{
    memset(naive, 0, sizeof(*naive));
    naive->random = seed * 2654435761 + 88172645463325252;
    naive->paths = calloc(NAIVE_PATHS_MAX, sizeof(*naive->paths));
    naive->window = 1700000000;
    assert_non_null(naive->paths);
    for (uint64_t i = 0; i < NAIVE_SITES; i++)
        naive->sites[i] = mr_id_function(mr_span_of("build", 5), "", i);
    for (uint64_t i = 0; i < NAIVE_SCOPES; i++)
        naive->scopes[i] = (struct mr_id){100 + i, 1};
    for (uint64_t i = 0; i < NAIVE_SOURCES; i++)
        naive->sources[i] = (struct mr_id){200 + i, 1};
}

void naive_fini(struct naive *naive)
{
    free(naive->paths);
}

static uint32_t find_path(struct naive *naive, uint32_t parent, uint32_t scope,
                          uint32_t site, uint32_t flags)
{
    for (uint32_t i = 0; i < naive->path_count; i++) {
        const struct naive_path *path = &naive->paths[i];

        if (path->parent == parent && path->scope == scope && path->site == site &&
            path->flags == flags)
            return i;
    }
    assert_true(naive->path_count < NAIVE_PATHS_MAX);
    naive->paths[naive->path_count] = (struct naive_path){
        .parent = parent, .scope = scope, .site = site, .flags = flags};
    if (parent != MR_DELTA_NONE)
        naive->paths[naive->path_count].depth = naive->paths[parent].depth + 1;
    return naive->path_count++;
}

static void take_time(uint64_t *sum, uint64_t *min, uint64_t *max, uint64_t ns,
                      bool first)
{
    *sum += ns;
    *min = first || ns < *min ? ns : *min;
    *max = ns > *max ? ns : *max;
}

/* One more call of the path, here and in the statistics that go out. */
static void add_call(struct naive *naive, struct naive_path *path,
                     struct mr_path_stats *stats)
{
    uint64_t kind = naive_random(naive, 8);

    if (kind == 0) {
        path->incomplete++;
        stats->incomplete++;
        return;
    }
    uint64_t self = naive_random(naive, 1000);
    uint64_t total = self + naive_random(naive, kind == 1 ? 100000000 : 1000);
    bool path_first = path->ok + path->failed == 0,
         first = stats->ok + stats->failed == 0;
    take_time(&path->self_sum, &path->self_min, &path->self_max, self, path_first);
    take_time(&path->total_sum, &path->total_min, &path->total_max, total, path_first);
    take_time(&stats->self.sum, &stats->self.min, &stats->self.max, self, first);
    take_time(&stats->total.sum, &stats->total.min, &stats->total.max, total, first);
    assert_int_equal(mr_histogram_add(&stats->histogram, total, 1), MR_OK);
    path->times_counted++;
    path->ok += kind != 2;
    path->failed += kind == 2;
    stats->ok += kind != 2;
    stats->failed += kind == 2;
}

struct chain { /* of one random path: indices here and in the payload */
    uint32_t naive, payload, scope;
};

static void put_chain(struct naive *naive, struct mr_delta_writer *w)
{
    struct mr_entry_stats traces = {.traces = {0}};
    uint32_t scope = (uint32_t)naive_random(naive, NAIVE_SCOPES);
    uint32_t flags = naive_random(naive, 5) == 0 ? MR_DELTA_PATH_OUTER : 0;
    uint32_t at = MR_DELTA_NONE, out = MR_DELTA_NONE;
    uint64_t depth = 1 + naive_random(naive, NAIVE_DEPTH_MAX);

    for (uint64_t i = 0; i < depth; i++) {
        /* few sites far down, so that recursions happen and the tree stays small */
        uint32_t site = (uint32_t)naive_random(naive, i ? 3 : NAIVE_SITES / 4);

        at = find_path(naive, at, scope, site, flags);
        out = mr_delta_path(w, out, out == MR_DELTA_NONE ? scope : 0, site, flags);
        struct mr_path_stats stats = {.histogram = MR_HISTOGRAM_EMPTY};
        for (uint64_t calls = naive_random(naive, 3); calls > 0; calls--)
            add_call(naive, &naive->paths[at], &stats);
        mr_delta_path_stat(w, out, naive->window, &stats);
        mr_histogram_fini(&stats.histogram);
        if (i || flags)
            continue;
        uint64_t coverage = naive_random(naive, MR_COVERAGE_COUNT);
        traces.traces[coverage] = 1;
        naive->traces[coverage]++;
        mr_delta_entry_stat(w, out, naive->window, &traces);
    }
}

static void put_ledger(struct naive *naive, struct mr_delta_writer *w)
{
    uint64_t at = naive_random(naive, NAIVE_SOURCES), stream = naive_random(naive, 2);
    struct mr_ledger_entry *sum = &naive->ledger[at][stream];
    struct mr_ledger_entry entry = {.reduced = naive_random(naive, 50),
                                    .held = (int64_t)naive_random(naive, 9) - 4};

    entry.lost[1 + naive_random(naive, MR_LOSS_REASON_COUNT - 1)] =
        naive_random(naive, 3);
    entry.last =
        naive_random(naive, 2) ? sum->last + 10 : sum->last / 2; /* late ones too */
    sum->last = entry.last > sum->last ? entry.last : sum->last;
    sum->reduced += entry.reduced;
    sum->held += entry.held;
    for (int i = 0; i < MR_LOSS_REASON_COUNT; i++)
        sum->lost[i] += entry.lost[i];
    mr_delta_ledger(w, (uint32_t)at, (uint32_t)stream, &entry);
}

void naive_delta(struct naive *naive, struct mr_buffer *out)
{
    struct mr_delta_writer w;

    mr_buffer_clear(out);
    mr_delta_begin(&w, out);
    naive->window += naive_random(naive, 3);
    mr_delta_head(&w, 1, naive->window * 1000000000);
    for (uint32_t i = 0; i < NAIVE_SITES; i++)
        mr_delta_site(&w, naive->sites[i]);
    for (uint32_t i = 0; i < NAIVE_SCOPES; i++)
        mr_delta_scope(&w, naive->scopes[i]);
    for (uint32_t i = 0; i < NAIVE_SOURCES; i++)
        mr_delta_source(&w, naive->sources[i]);
    for (uint64_t i = naive_random(naive, ITEMS_PER_DELTA); i > 0; i--)
        put_chain(naive, &w);
    put_ledger(naive, &w);
    mr_delta_counter(&w, "naive", 3);
    naive->counter += 3;
    assert_int_equal(mr_delta_status(&w), MR_OK);
}

static struct mr_id path_id(const struct naive *naive, const struct naive_path *path)
{
    struct mr_id above = path->parent == MR_DELTA_NONE
                             ? naive->scopes[path->scope]
                             : path_id(naive, &naive->paths[path->parent]);
    struct mr_id site = naive->sites[path->site];

    return path->flags & MR_DELTA_PATH_OUTER ? mr_id_outer_path(above, site)
                                             : mr_id_path(above, site);
}

static void check_path(const struct naive *naive, const struct naive_path *path,
                       const struct mr_model_root *root)
{
    uint32_t index = mr_model_find(root, MR_MODEL_PATH, path_id(naive, path));

    assert_int_not_equal(index, MR_MODEL_NONE);
    const struct mr_path_stats *stats = &mr_model_path_stat(root, index)->stats;
    assert_int_equal(stats->ok, path->ok);
    assert_int_equal(stats->failed, path->failed);
    assert_int_equal(stats->incomplete, path->incomplete);
    assert_int_equal(stats->self.sum, path->self_sum);
    assert_int_equal(stats->self.min, path->self_min);
    assert_int_equal(stats->self.max, path->self_max);
    assert_int_equal(stats->total.sum, path->total_sum);
    assert_int_equal(stats->total.min, path->total_min);
    assert_int_equal(stats->total.max, path->total_max);
    assert_int_equal(mr_histogram_total(&stats->histogram), path->times_counted);
    assert_int_equal(mr_model_path(root, index)->depth, path->depth);
}

static bool is_recursive(const struct naive *naive, const struct naive_path *path)
{
    for (uint32_t at = path->parent; at != MR_DELTA_NONE; at = naive->paths[at].parent)
        if (naive->paths[at].site == path->site)
            return true;
    return false;
}

static void check_function(const struct naive *naive,
                           const struct mr_summary_function *function)
{
    uint64_t ok = 0, failed = 0, incomplete = 0, self = 0, total = 0;

    for (uint32_t i = 0; i < naive->path_count; i++) {
        const struct naive_path *path = &naive->paths[i];

        if (!mr_id_equal(naive->sites[path->site], function->site))
            continue;
        ok += path->ok;
        failed += path->failed;
        incomplete += path->incomplete;
        self += path->self_sum;
        total += is_recursive(naive, path) ? 0 : path->total_sum;
    }
    assert_int_equal(function->ok, ok);
    assert_int_equal(function->failed, failed);
    assert_int_equal(function->incomplete, incomplete);
    assert_int_equal(function->self_ns, self);
    assert_int_equal(function->total_ns, total < self ? self : total);
}

static void check_ledger(const struct naive *naive, const struct mr_summary *summary)
{
    struct mr_ledger_entry sum = {.last = 0};
    int64_t held = 0;

    for (uint32_t i = 0; i < NAIVE_SOURCES; i++)
        for (uint32_t j = 0; j < 2; j++) {
            sum.last += naive->ledger[i][j].last;
            sum.reduced += naive->ledger[i][j].reduced;
            held += naive->ledger[i][j].held;
            for (int k = 0; k < MR_LOSS_REASON_COUNT; k++)
                sum.lost[k] += naive->ledger[i][j].lost[k];
        }
    assert_int_equal(summary->ledger.last, sum.last);
    assert_int_equal(summary->ledger.reduced, sum.reduced);
    assert_true(summary->ledger.held == held);
    assert_memory_equal(summary->ledger.lost, sum.lost, sizeof(sum.lost));
}

static void check_shares(const struct naive *naive,
                         const struct mr_summary_shares *shares)
{
    uint64_t path_ns = 0, traces = 0, of_shares = 0, ns = 0;

    for (uint32_t i = 0; i < naive->path_count; i++)
        if (!(naive->paths[i].flags & MR_DELTA_PATH_OUTER))
            path_ns += naive->paths[i].self_sum;
    for (int i = 0; i < MR_COVERAGE_COUNT; i++)
        traces += naive->traces[i];
    ns = shares->all.time_ns;
    for (int i = 0; i < MR_SHARE_COUNT; i++)
        of_shares += shares->of[i].traces;
    assert_int_equal(shares->path_ns, path_ns < ns ? path_ns : ns);
    assert_int_equal(shares->all.traces, traces);
    assert_int_equal(of_shares, traces);
    assert_int_equal(shares->of[MR_SHARE_PATHS].traces, naive->traces[MR_COVERAGE_PATHS]);
    assert_int_equal(shares->of[MR_SHARE_INCOMPLETE].traces,
                     naive->traces[MR_COVERAGE_INCOMPLETE]);
}

void naive_check(const struct naive *naive, const struct mr_model_root *root)
{
    struct mr_summary_limits all = {.functions = SIZE_MAX,
                                    .entries = SIZE_MAX,
                                    .sources = SIZE_MAX,
                                    .traces = SIZE_MAX,
                                    .cheap_ns = 20,
                                    .has_shares = true};
    struct mr_summary *summary;

    assert_int_equal(mr_model_count(root, MR_MODEL_PATH), naive->path_count);
    for (uint32_t i = 0; i < naive->path_count; i++)
        check_path(naive, &naive->paths[i], root);
    assert_int_equal(mr_summary_of(root, &all, &summary), MR_OK);
    for (size_t i = 0; i < summary->function_count; i++)
        check_function(naive, &summary->functions[i]);
    check_ledger(naive, summary);
    check_shares(naive, &summary->shares);
    assert_memory_equal(summary->coverage.traces, naive->traces, sizeof(naive->traces));
    const struct mr_model_counter *counter = mr_model_counter(root, 0);
    assert_int_equal(counter ? counter->value : 0, naive->counter);
    mr_summary_free(summary);
}
