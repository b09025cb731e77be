/* SPDX-License-Identifier: Apache-2.0 */
/* Which share of calls and of time lies in shapes that recur, in those seen once, in the paths alone; and the account of parts. */
#include "master/summary_private.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/sum.h"

#include <string.h>

const char *mr_share_name(enum mr_share share)
{
    static const char *const names[MR_SHARE_COUNT] = {"recurring", "once", "not-kept",
                                                      "paths", "incomplete"};

    MR_ASSERT((unsigned)share < MR_SHARE_COUNT);
    return names[share];
}

const char *mr_parts_name(enum mr_parts parts)
{
    static const char *const names[MR_PARTS_COUNT] = {
#define X(name, text, counter) [MR_PARTS_##name] = (text),
        MR_PARTS(X)
#undef X
    };

    MR_ASSERT((unsigned)parts < MR_PARTS_COUNT);
    return names[parts];
}

static uint64_t above(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static void take_coverage(const struct mr_entry_stats *stats,
                          struct mr_summary_shares *shares)
{
    const enum mr_coverage from[] = {MR_COVERAGE_PATHS, MR_COVERAGE_INCOMPLETE};
    struct mr_summary_share *of = shares->of;

    for (int i = 0; i < 2; i++)
        of[MR_SHARE_PATHS + i] =
            (struct mr_summary_share){.traces = stats->traces[from[i]],
                                      .calls = stats->calls[from[i]],
                                      .time_ns = stats->time_ns[from[i]]};
    for (int i = 0; i < MR_COVERAGE_COUNT; i++) {
        mr_sum_add(&shares->all.traces, stats->traces[i]);
        mr_sum_add(&shares->all.calls, stats->calls[i]);
        mr_sum_add(&shares->all.time_ns, stats->time_ns[i]);
    }
    of[MR_SHARE_NOT_KEPT] = shares->all;
    for (int i = 0; i < MR_SHARE_COUNT; i++) {
        struct mr_summary_share *rest = &of[MR_SHARE_NOT_KEPT];

        if (i == MR_SHARE_NOT_KEPT)
            continue;
        rest->traces = above(rest->traces, of[i].traces);
        rest->calls = above(rest->calls, of[i].calls);
        rest->time_ns = above(rest->time_ns, of[i].time_ns);
    }
}

void mr_summary_make_shares(const struct mr_model_root *root,
                            struct mr_summary_shares *shares)
{
    *shares = (struct mr_summary_shares){.path_ns = 0};
    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_SHAPE); i++) {
        const struct mr_shape_stats *stats = &mr_model_shape_stat(root, i)->stats;
        uint64_t traces = mr_sum(stats->ok, stats->failed);
        struct mr_summary_share *share =
            &shares->of[traces > 1 ? MR_SHARE_RECURRING : MR_SHARE_ONCE];

        mr_sum_add(&share->traces, traces);
        mr_sum_add(&share->calls, stats->calls);
        mr_sum_add(&share->time_ns, stats->time.sum);
    }
    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_PATH); i++)
        if (!(mr_model_path(root, i)->flags & MR_DELTA_PATH_OUTER))
            mr_sum_add(&shares->path_ns, mr_model_path_stat(root, i)->stats.self.sum);
    take_coverage(&root->totals.entries, shares);
    /* Of a call tree that is open calls have ended, and are on their paths; of its time nothing is known yet. */
    if (shares->path_ns > shares->all.time_ns)
        shares->path_ns = shares->all.time_ns;
}

static uint64_t counter(const struct mr_model_root *root, const char *name)
{
    uint32_t at =
        mr_model_find(root, MR_MODEL_COUNTER, mr_hash128(mr_span_of_text(name)));

    return at == MR_MODEL_NONE ? 0 : mr_model_counter(root, at)->value;
}

const char *mr_summary_level_counter(const char *name, char level[MR_SUMMARY_LEVEL_SIZE])
{
    static const char prefix[] = "level";
    size_t start = sizeof(prefix) - 1, digits;

    if (strncmp(name, prefix, start) != 0)
        return NULL;
    digits = strspn(name + start, "0123456789");
    if (digits == 0 || digits >= MR_SUMMARY_LEVEL_SIZE || name[start + digits] != '_')
        return NULL;
    memcpy(level, name + start, digits);
    level[digits] = '\0';
    return name + start + digits + 1;
}

/* Of all levels. */
static uint64_t level_counters(const struct mr_model_root *root, const char *name)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_COUNTER); i++) {
        const struct mr_model_counter *counter = mr_model_counter(root, i);
        char level[MR_SUMMARY_LEVEL_SIZE];
        const char *of = mr_summary_level_counter(counter->name, level);

        if (of && strcmp(of, name) == 0)
            mr_sum_add(&sum, counter->value);
    }
    return sum;
}

uint64_t mr_summary_traces_past_limit(const struct mr_model_root *root)
{
    return counter(root, MR_MODEL_TRACES_PAST_LIMIT);
}

void mr_summary_make_past_limit(const struct mr_model_root *root,
                                struct mr_summary_past_limit *past_limit)
{
    *past_limit = (struct mr_summary_past_limit){
        .calls = counter(root, MR_MODEL_PATH_CALLS_PAST_LIMIT),
        .traces = counter(root, MR_MODEL_PATH_TRACES_PAST_LIMIT),
        .events = counter(root, MR_MODEL_STREAM_EVENTS_PAST_LIMIT),
        .source_events = counter(root, MR_MODEL_SOURCE_EVENTS_PAST_LIMIT),
        .notes = counter(root, MR_MODEL_NOTES_PAST_LIMIT),
        .rows_too_large = level_counters(root, "rows_too_large"),
        .frames_too_large = level_counters(root, "frames_too_large"),
    };
}

void mr_summary_make_parts(const struct mr_model_root *root,
                           struct mr_summary_parts *parts)
{
    uint64_t sum = root->parts_waiting;

    *parts = (struct mr_summary_parts){.waiting = root->parts_waiting};
    for (int i = 0; i < MR_PARTS_COUNT; i++) {
        parts->of[i] = counter(root, mr_model_parts_counters[i]);
        if (i != MR_PARTS_CAME)
            mr_sum_add(&sum, parts->of[i]);
        if (i > MR_PARTS_JOINED)
            mr_sum_add(&parts->incomplete, parts->of[i]);
    }
    parts->is_balanced = parts->of[MR_PARTS_CAME] == sum;
}
