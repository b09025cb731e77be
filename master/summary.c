/* SPDX-License-Identifier: Apache-2.0 */
#include "master/summary_private.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/sum.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_CHUNK ((size_t)64 << 10)
#define TEXT_MAX ((size_t)1 << 30)
#define RECENT_WINDOWS 10 /* of 1 s */

/* What the pieces of a summary are made with. */
struct make {
    const struct mr_model_root *root;
    uint64_t now_ns; /* Unix */
    const struct mr_summary_limits *limits;
    struct mr_summary *summary;
    struct mr_arena *arena;
    struct mr_summary_ledger *ledgers; /* by source index */
    uint64_t *open, *oldest;           /* by entry index */
    uint8_t *is_outer;                 /* by site index */
    struct mr_site_pruned *pruned;     /* by site, while functions are made; or NULL */
};

const char *mr_loss_reason_name(uint32_t reason)
{
    switch (reason) {
#define X(number, name, text, meaning)                                                   \
    case number:                                                                         \
        return text;
        MR_LOSS_REASONS(X)
#undef X
    default:
        return NULL;
    }
}

const char *mr_coverage_name(enum mr_coverage coverage)
{
    static const char *const names[] = {"whole", "folded", "paths", "incomplete"};

    MR_ASSERT((unsigned)coverage < MR_COVERAGE_COUNT);
    return names[coverage];
}

const char *mr_source_state_name(enum mr_source_state state)
{
    static const char *const names[] = {"live", "finished", "died"};

    return (unsigned)state < MR_ARRAY_COUNT(names) ? names[state] : "?";
}

static const char *keep(struct make *make, const char *text)
{
    const char *copy = mr_arena_copy(make->arena, mr_span_of_text(text));

    return copy ? copy : "";
}

static const char *label(struct make *make, const struct mr_model_site *site)
{
    char text[MR_SITE_LABEL_SIZE];

    return keep(make, mr_model_site_label(site, text));
}

static bool has_calls(const struct mr_model_site_stat *stat)
{
    return mr_sum3(stat->ok, stat->failed, stat->incomplete) > 0;
}

static void make_function(struct make *make, uint32_t index)
{
    struct mr_summary *summary = make->summary;
    const struct mr_model_site_stat *stat = mr_model_site_stat(make->root, index);
    struct mr_summary_function *function = &summary->functions[summary->function_count];

    summary->sites++;
    if (!has_calls(stat) && !mr_site_pruned_of(make->pruned, index))
        return;
    *function = (struct mr_summary_function){
        .line = index, /* until sorted and named */
        .calls = mr_sum3(stat->ok, stat->failed, stat->incomplete),
        .ok = stat->ok,
        .failed = stat->failed,
        .incomplete = stat->incomplete,
        .is_timed = mr_sum(stat->ok, stat->failed) > 0,
        .is_outer = make->is_outer[index],
        .self_ns = stat->self.sum,
        .self_min_ns = stat->self.min,
        .self_max_ns = stat->self.max,
        .total_ns = stat->total.sum,
        .total_min_ns = stat->total.min,
        .total_max_ns = stat->total.max,
    };
    if (function->total_ns < function->self_ns) /* of calls in one that has no end */
        function->total_ns = function->self_ns;
    if (make->pruned)
        function->pruned = make->pruned[index];
    summary->pruned_functions += function->pruned.was_pruned;
    mr_sum_add(&summary->pruned_calls, function->pruned.calls);
    summary->function_count++;
}

static int by_number(uint64_t a, uint64_t b)
{
    return a < b ? 1 : a > b ? -1 : 0; /* largest first */
}

static int by_self(const void *a, const void *b)
{
    const struct mr_summary_function *left = a, *right = b;
    int order = by_number(left->self_ns, right->self_ns);

    if (!order)
        order = by_number(left->calls, right->calls);
    return order ? order : -by_number(left->line, right->line);
}

/* Keeps those that are looked for. */
static void find_functions(struct make *make)
{
    struct mr_summary *summary = make->summary;
    const char *wanted = make->limits->find;
    size_t found = 0;

    for (size_t i = 0; wanted && i < summary->function_count; i++) {
        const struct mr_model_site *site =
            mr_model_site(make->root, summary->functions[i].line);
        char text[MR_SITE_LABEL_SIZE];

        if (strcasestr(mr_model_site_label(site, text), wanted) ||
            strcasestr(site->module, wanted))
            summary->functions[found++] = summary->functions[i];
    }
    if (wanted)
        summary->function_count = found;
    summary->function_found = summary->function_count;
}

static void name_function(struct make *make, struct mr_summary_function *function)
{
    const struct mr_model_site *site = mr_model_site(make->root, function->line);

    function->site = site->id;
    function->name = label(make, site);
    function->is_named = site->name[0] != '\0';
    function->module = keep(make, site->module);
    function->build = mr_summary_build_of(site, make->arena);
    function->file = keep(make, site->file);
    function->line = site->line;
}

static enum mr_status make_functions(struct make *make)
{
    struct mr_summary *summary = make->summary;
    uint32_t count = mr_model_count(make->root, MR_MODEL_SITE);

    summary->functions = calloc(count + 1, sizeof(*summary->functions));
    if (!summary->functions || mr_site_pruned_new(make->root, &make->pruned) != MR_OK)
        return MR_ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        make_function(make, i);
    free(make->pruned);
    qsort(summary->functions, summary->function_count, sizeof(*summary->functions),
          by_self);
    enum mr_status status =
        mr_summary_make_cheap(make->root, make->limits->cheap_ns, summary);
    summary->function_total = summary->function_count;
    find_functions(make);
    if (summary->function_count > make->limits->functions)
        summary->function_count = make->limits->functions;
    if (status == MR_OK)
        status = mr_summary_make_counters(make->root, make->arena, summary);
    for (size_t i = 0; i < summary->function_count; i++)
        name_function(make, &summary->functions[i]);
    return status == MR_OK ? mr_summary_find_twins(summary) : status;
}

static void set_quantile(const struct mr_histogram *h, double q,
                         struct mr_summary_quantile *quantile)
{
    (void)mr_histogram_quantile(h, q, &quantile->value, &quantile->low, &quantile->high);
}

void mr_summary_clamp(struct mr_summary_quantile *quantile, const struct mr_times *times)
{
    double min = (double)times->min, max = (double)times->max;

    if (quantile->low < min)
        quantile->low = min;
    if (quantile->high > max)
        quantile->high = max;
    if (quantile->value < quantile->low)
        quantile->value = quantile->low;
    if (quantile->value > quantile->high)
        quantile->value = quantile->high;
}

static uint64_t recent_of(const struct mr_model_root *root, uint32_t entry)
{
    uint64_t newest = mr_clock_realtime_ns() / MR_SECOND_NS, sum = 0;

    for (uint64_t i = 1; i <= RECENT_WINDOWS && i <= newest; i++) {
        const struct mr_model_window *window =
            mr_model_window_at(root, MR_SERIES_ENTRY, newest - i);
        const struct mr_model_entry_point *point =
            window ? mr_cow_get(&window->points, entry) : NULL;

        for (uint32_t c = 0; point && c < MR_COVERAGE_COUNT; c++)
            mr_sum_add(&sum, point->stats.traces[c]);
    }
    return sum;
}

static void time_entry(struct mr_summary_entry *entry, const struct mr_path_stats *stats)
{
    entry->count = mr_sum3(stats->ok, stats->failed, stats->incomplete);
    entry->ok = stats->ok;
    entry->failed = stats->failed;
    entry->incomplete = stats->incomplete;
    entry->is_timed = mr_sum(stats->ok, stats->failed) > 0;
    entry->time_ns = stats->total.sum;
    entry->min_ns = stats->total.min;
    entry->max_ns = stats->total.max;
    if (!entry->is_timed)
        return;
    struct mr_summary_quantile *all[] = {&entry->p50, &entry->p90, &entry->p99};
    const double q[] = {0.5, 0.9, 0.99};
    for (size_t i = 0; i < MR_ARRAY_COUNT(all); i++) {
        set_quantile(&stats->histogram, q[i], all[i]);
        mr_summary_clamp(all[i], &stats->total);
    }
}

static void make_entry(struct make *make, uint32_t index, struct mr_summary_entry *entry)
{
    const struct mr_model_entry *record = mr_model_entry(make->root, index);

    time_entry(entry, &mr_model_path_stat(make->root, record->path)->stats);
    memcpy(entry->traces, record->stats.traces, sizeof(entry->traces));
    entry->paths = record->paths;
    entry->shapes = record->shapes;
    entry->open = make->open[index];
    entry->oldest_open_ns = make->oldest[index];
    entry->recent = index; /* until sorted and named */
    mr_sum_add(&make->summary->traces, entry->count);
    mr_sum_add(&make->summary->open, entry->open);
}

static int by_time(const void *a, const void *b)
{
    const struct mr_summary_entry *left = a, *right = b;
    int order = by_number(left->time_ns, right->time_ns);

    if (!order)
        order = by_number(left->count, right->count);
    return order ? order : -by_number(left->recent, right->recent);
}

static void name_entry(struct make *make, struct mr_summary_entry *entry)
{
    uint32_t index = (uint32_t)entry->recent;
    const struct mr_model_path *path =
        mr_model_path(make->root, mr_model_entry(make->root, index)->path);
    const struct mr_model_site *site = mr_model_site(make->root, path->site);
    const struct mr_model_scope *scope = mr_model_scope(make->root, path->scope);

    entry->path = path->id;
    entry->site = site->id;
    entry->scope = scope->id;
    entry->name = label(make, site);
    entry->app = keep(make, scope->app);
    entry->version = keep(make, scope->version);
    entry->host = keep(make, scope->host);
    entry->recent = recent_of(make->root, index);
}

static enum mr_status make_entries(struct make *make)
{
    struct mr_summary *summary = make->summary;
    uint32_t count = mr_model_count(make->root, MR_MODEL_ENTRY);

    summary->entries = calloc(count + 1, sizeof(*summary->entries));
    if (!summary->entries)
        return MR_ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        make_entry(make, i, &summary->entries[i]);
    qsort(summary->entries, count, sizeof(*summary->entries), by_time);
    summary->entry_total = count;
    summary->entry_count =
        count > make->limits->entries ? make->limits->entries : (size_t)count;
    for (size_t i = 0; i < summary->entry_count; i++)
        name_entry(make, &summary->entries[i]);
    return MR_OK;
}

static enum mr_status make_ledger(struct make *make)
{
    const struct mr_summary_time time = {make->now_ns, make->limits->gone_ns};

    make->ledgers =
        calloc(mr_model_count(make->root, MR_MODEL_SOURCE) + 1, sizeof(*make->ledgers));
    if (!make->ledgers)
        return MR_ENOMEM;
    mr_summary_make_ledgers(make->root, &time, make->ledgers, &make->summary->ledger);
    return MR_OK;
}

static uint64_t number_of(const char *text)
{
    return text ? strtoull(text, NULL, 10) : 0;
}

/* What is said of clocks, over all sources. */
static void add_clock(struct make *make, struct mr_id id)
{
    const struct mr_id whole = {0, 0};
    struct mr_summary *summary = make->summary;
    uint64_t tick_ns =
        number_of(mr_model_note_of(make->root, id, whole, mr_note_name(MR_NOTE_TICK_NS)));

    if (tick_ns > summary->tick_ns)
        summary->tick_ns = tick_ns;
    mr_sum_add(&summary->times_clamped,
               number_of(mr_model_note_of(make->root, id, whole,
                                          mr_note_name(MR_NOTE_TIMES_CLAMPED))));
}

static void make_clock(struct make *make, const struct mr_model_source *record,
                       struct mr_summary_clock *clock)
{
    const struct mr_id whole = {0, 0};

    clock->kind = record->clock;
    for (uint32_t i = 0; i < MR_NOTE_COUNT; i++) {
        const char *value = mr_model_note_of(make->root, record->id, whole,
                                             mr_note_name((enum mr_note)i));

        clock->notes[i] = value ? keep(make, value) : NULL;
    }
}

static void make_source(struct make *make, uint32_t index,
                        struct mr_summary_source *source)
{
    const struct mr_model_source *record = mr_model_source(make->root, index);

    *source = (struct mr_summary_source){
        .id = record->id,
        .worker = record->worker,
        .is_known = record->known,
        .host = keep(make, record->host),
        .app = keep(make, record->app),
        .version = keep(make, record->version),
        .exe = keep(make, record->exe),
        .pid = record->pid,
        .start_ns = record->start_ns,
        .end_ns = record->end_ns,
        .state = record->state,
        .policy = record->policy,
        .ledger = make->ledgers[index],
    };
    make_clock(make, record, &source->clock);
}

/* Newest first: sources are indexed as they come. */
static enum mr_status make_sources(struct make *make)
{
    struct mr_summary *summary = make->summary;
    uint32_t count = mr_model_count(make->root, MR_MODEL_SOURCE);

    summary->source_total = count;
    summary->source_count =
        count > make->limits->sources ? make->limits->sources : (size_t)count;
    summary->sources = calloc(summary->source_count + 1, sizeof(*summary->sources));
    if (!summary->sources)
        return MR_ENOMEM;
    for (uint32_t i = 0; i < summary->source_count; i++)
        make_source(make, count - 1 - i, &summary->sources[i]);
    for (uint32_t i = 0; i < count; i++)
        add_clock(make, mr_model_source(make->root, i)->id);
    return MR_OK;
}

static void add_open(struct make *make, const struct mr_model_open *open)
{
    uint32_t entry = mr_model_path(make->root, open->path)->entry;

    if (entry == MR_MODEL_NONE ||
        !mr_model_open_is_current(make->root, open, make->now_ns))
        return;
    mr_sum_add(&make->open[entry], open->stats.count);
    if (make->oldest[entry] == 0 || open->stats.oldest_ns < make->oldest[entry])
        make->oldest[entry] = open->stats.oldest_ns;
}

static enum mr_status gather(struct make *make)
{
    const struct mr_model_root *root = make->root;
    uint32_t entries = mr_model_count(root, MR_MODEL_ENTRY);

    make->now_ns = mr_clock_realtime_ns();
    make->open = calloc(entries + 1, sizeof(*make->open));
    make->oldest = calloc(entries + 1, sizeof(*make->oldest));
    make->is_outer = calloc(mr_model_count(root, MR_MODEL_SITE) + 1, 1);
    if (!make->open || !make->oldest || !make->is_outer)
        return MR_ENOMEM;
    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_OPEN); i++)
        add_open(make, mr_model_open(root, i));
    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_OUTER); i++)
        make->is_outer[mr_model_outer(root, i)->site] = 1;
    return MR_OK;
}

static void make_totals(struct make *make)
{
    const struct mr_model_root *root = make->root;
    struct mr_summary *summary = make->summary;

    summary->generation = root->head.generation;
    summary->published_ns = root->published_ns;
    summary->calls =
        mr_sum3(root->totals.ok, root->totals.failed, root->totals.incomplete);
    summary->incomplete_calls = root->totals.incomplete;
    summary->self_ns = root->totals.self_ns;
    summary->paths = mr_model_count(root, MR_MODEL_PATH);
    summary->shapes = mr_model_count(root, MR_MODEL_SHAPE);
    summary->nodes = mr_model_count(root, MR_MODEL_NODE);
    summary->scopes = mr_model_count(root, MR_MODEL_SCOPE);
    memcpy(summary->coverage.traces, root->totals.entries.traces,
           sizeof(summary->coverage.traces));
    memcpy(summary->coverage.calls, root->totals.entries.calls,
           sizeof(summary->coverage.calls));
    memcpy(summary->coverage.time_ns, root->totals.entries.time_ns,
           sizeof(summary->coverage.time_ns));
    for (uint32_t i = 0; i < MR_MODEL_TABLE_COUNT; i++)
        summary->refused += root->refused[i];
    mr_summary_make_past_limit(root, &summary->past_limit);
    if (make->limits->has_shares)
        mr_summary_make_shares(root, &summary->shares);
}

static enum mr_status make_all(struct make *make)
{
    enum mr_status status = gather(make);

    make_totals(make);
    if (status == MR_OK)
        status = make_functions(make);
    if (status == MR_OK)
        status = make_entries(make);
    if (status == MR_OK)
        status = make_ledger(make);
    if (status == MR_OK)
        status = make_sources(make);
    if (status == MR_OK)
        status = mr_summary_make_traces(make->root, make->limits->traces, make->arena,
                                        make->summary);
    if (status == MR_OK)
        status = mr_summary_make_open(make->root, make->now_ns, make->limits->open,
                                      make->arena, make->summary);
    if (status == MR_OK)
        status = mr_summary_make_kept(make->root, make->arena, make->summary);
    free(make->open);
    free(make->oldest);
    free(make->is_outer);
    free(make->ledgers);
    return status;
}

enum mr_status mr_summary_of(const struct mr_model_root *root,
                             const struct mr_summary_limits *limits,
                             struct mr_summary **out)
{
    struct mr_summary *summary = calloc(1, sizeof(*summary));
    struct mr_arena *arena = malloc(sizeof(*arena));

    if (!summary || !arena) {
        free(summary);
        free(arena);
        return MR_ENOMEM;
    }
    mr_arena_init(arena, TEXT_CHUNK, TEXT_MAX);
    summary->memory = arena;
    struct make make = {
        .root = root, .limits = limits, .summary = summary, .arena = arena};
    enum mr_status status = make_all(&make);
    if (status != MR_OK) {
        mr_summary_free(summary);
        return status;
    }
    *out = summary;
    return MR_OK;
}

enum mr_status mr_summary_new(struct mr_model *model,
                              const struct mr_summary_limits *limits,
                              struct mr_summary **summary)
{
    const struct mr_model_root *root = mr_model_read_lock(model);
    enum mr_status status = mr_summary_of(root, limits, summary);

    mr_model_read_unlock(model);
    return status;
}

void mr_summary_free(struct mr_summary *summary)
{
    if (!summary)
        return;
    mr_arena_fini(summary->memory);
    free(summary->memory);
    free(summary->functions);
    free(summary->entries);
    free(summary->opens);
    free(summary->sources);
    free(summary->counters);
    free(summary->absences);
    free(summary->counts);
    free(summary->joined);
    free(summary);
}
