/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A summary: one consistent moment of the model in numbers for people, as plain structs
 * sorted by what matters. Made for the HTTP API, `millrace record` and `millrace report`.
 * It owns all it points to and outlives the model.
 *
 * Functions: one row per site with calls. `total` is the time between enter and exit
 * summed over calls that are not below another call of the same site on their path: a
 * recursive function's total is that of its outermost calls, so it never exceeds the
 * time in which it was on the stack. A site that is both an outer frame and called again
 * below a call tree counts in both trees.
 *
 * Threads: mr_summary_new() needs mr_model_thread_enter() on the calling thread.
 *
 * Use:
 *     mr_model_thread_enter();
 *     struct mr_summary *summary;
 *     if (mr_summary_new(model, &MR_SUMMARY_LIMITS_DEFAULT, &summary) == MR_OK)
 *         for (size_t i = 0; i < summary->function_count; i++)
 *             puts(summary->functions[i].name);
 *     mr_summary_free(summary);
 */
#ifndef MR_MASTER_SUMMARY_H
#define MR_MASTER_SUMMARY_H

#include "base/id.h"
#include "base/status.h"
#include "master/model.h"
#include "master/pruned.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mr_summary_limits {
    size_t functions, entries, sources, traces; /* rows at most; SIZE_MAX: all */
    uint64_t
        cheap_ns; /* count calls with bodies shorter than this; 0: none, no path is walked */
    bool has_shares; /* walks all shapes and paths */
    /* What is missing for longer was on a host that is gone; 0: it may come yet, and nothing is silent. */
    uint64_t gone_ns;
    /* Functions with this in their name or module alone, in letters of either case; NULL: all of them. */
    const char *find;
    size_t open; /* rows at most of what is open, with their stacks; 0: none */
};
#define MR_SUMMARY_LIMITS_DEFAULT                                                        \
    ((struct mr_summary_limits){                                                         \
        .functions = 1000, .entries = 1000, .sources = 1000, .traces = 1000})

/* ns. The true value lies in [low, high]; `value` is between them. */
struct mr_summary_quantile {
    double value, low, high;
};

struct mr_summary_function { /* largest self time first */
    struct mr_id site;
    const char *name; /* never empty: module+0xoffset or the id where no name is known */
    bool is_named;    /* by a symbol or a span, not by the above */
    const char *module; /* file the code lies in, or application of a span; may be "" */
    const char *build;  /* build id of that file, hexadecimal; "": it has none */
    bool has_twin; /* another of these rows, of another build, has its name and place */
    const char *file; /* of the source; may be "" */
    uint32_t line;    /* 0: unknown */
    uint64_t calls;   /* ok + failed + incomplete */
    uint64_t ok, failed, incomplete;
    bool is_timed; /* ok + failed > 0: the times below mean something */
    bool is_outer; /* an outer frame somewhere */
    uint64_t self_ns, self_min_ns, self_max_ns;
    uint64_t total_ns, total_min_ns,
        total_max_ns; /* total_ns: of outermost calls, self_ns at least */
    /*
     * MILLRACE_PRUNE, over all sources: calls that were counted and not recorded, since a
     * moment; sources in which it is so now, or was at their end (since_ns: the first of these), where its median
     * took less than below_ns. is_above: time of such calls is in its own.
     */
    struct mr_site_pruned pruned;
    uint64_t cheap_calls; /* with bodies below the limits' cheap_ns, see there */
    struct mr_counter_stats *counts; /* by the summary's counters; NULL: there are none */
};

struct mr_summary_entry { /* largest time first */
    struct mr_id path, site, scope;
    const char *name, *app, *version, *host;
    uint64_t count; /* traces: ok + failed + incomplete */
    uint64_t ok, failed, incomplete;
    uint64_t open, oldest_open_ns; /* open now; Unix ns, 0: none */
    uint64_t recent;               /* traces that ended in the last whole 10 s */
    bool is_timed;
    struct mr_summary_quantile p50, p90, p99;
    uint64_t time_ns, min_ns, max_ns;
    uint64_t traces[MR_COVERAGE_COUNT]; /* by enum mr_coverage */
    uint32_t paths, shapes;
};

/* A part of a joined shape, and the edge that leads to it. */
struct mr_summary_part {
    uint32_t depth;
    uint8_t kind, flags; /* enum mr_edge_kind, enum mr_joined_flag */
    const char *name;    /* "" where no call is known; and of its scope, likewise */
    const char *app, *version, *host;
    uint64_t count, clamped; /* of the edge; count 0: never seen, no times */
    struct mr_summary_quantile p50, p99;
    uint64_t max_ns;
};

#define MR_SUMMARY_STACK_MAX 256u

/* Traces of one entry point that have not ended; the entry point with the oldest of all first. */
struct mr_summary_open {
    const char *name, *app, *version, *host;
    uint64_t count;
    uint64_t oldest_for_ns, in_call_for_ns; /* when they were last told; 0: not known */
    const char **stack;                     /* of the oldest, outermost first */
    uint32_t stack_count, stack_elided;     /* elided: outermost ones past the limit */
};

struct mr_summary_trace {     /* most traces first */
    struct mr_id id, slowest; /* of the joined shape; trace id, zero: not known */
    uint64_t ok, failed, incomplete;
    bool is_timed; /* ok + failed > 0 */
    struct mr_summary_quantile p50, p99;
    uint64_t max_ns;
    struct mr_summary_part *parts; /* in preorder, the root first */
    size_t part_count;
};

/*
 * What is in no row of the model, since the store was made: calls and traces whose paths found no room (--max-paths,
 * --max-sites, --max-scopes); events, reduced or lost, whose streams found none (--max-streams), which are in the sums of
 * their source, and those whose source found none (--max-sources), which are in no sum; and notes (--max-notes), as often as one came.
 * Rows, and whole frames, of deltas that a worker lost, as the next level takes none so large (--max-frame).
 */
struct mr_summary_past_limit {
    uint64_t calls, traces, events, source_events, notes;
    uint64_t rows_too_large, frames_too_large;
};

struct mr_summary_coverage {
    uint64_t traces[MR_COVERAGE_COUNT], calls[MR_COVERAGE_COUNT],
        time_ns[MR_COVERAGE_COUNT];
};

/* Where traces, their calls and their time are. */
enum mr_share {
    MR_SHARE_RECURRING, /* in shapes of more than one trace */
    MR_SHARE_ONCE,      /* in shapes of one */
    MR_SHARE_NOT_KEPT,  /* in shapes past a limit of the model */
    MR_SHARE_PATHS,     /* in the paths alone: past a limit of the lane */
    MR_SHARE_INCOMPLETE,
    MR_SHARE_COUNT
};
struct mr_summary_share {
    uint64_t traces, calls, time_ns;
};
struct mr_summary_shares {
    struct mr_summary_share of[MR_SHARE_COUNT], all;
    uint64_t
        path_ns; /* self time of paths below entry points: attributable to a path; at most that of all */
};

struct mr_summary_parts { /* the account of parts */
    uint64_t of[MR_PARTS_COUNT];
    uint64_t waiting, incomplete; /* incomplete: all that were ended */
    bool is_balanced;             /* what came is somewhere */
};

struct mr_summary_ledger {
    uint64_t streams, streams_balanced;
    uint64_t last, reduced, lost_all;
    int64_t held;
    uint64_t lost[MR_LOSS_REASON_COUNT];
    uint64_t sources;
    uint64_t sources_told; /* of them, with an account of their own, */
    uint64_t
        sent; /* by these: events sent when they last told, at a connection or at their end */
    uint64_t
        numbered; /* of `last`, in streams with a number: what an account is held against */
    uint64_t
        past_limit; /* of `last`, in streams that have no row (--max-streams): the sums are all that is known */
    /*
     * Sent, or told of by a later number, and in no sum: on its way between workers and here, or gone with one of them. Of a
     * source that has ended also what is held, as its exits will not come.
     */
    uint64_t missing;
    uint64_t host_gone; /* of it, for longer than the limits' gone_ns */
    uint64_t excess;    /* in the sums, and nobody told of it: counted twice; always 0 */
    uint64_t
        since_ns; /* Unix: when the oldest of what is missing began to be; 0: nothing is */
    uint64_t
        sources_silent; /* live, and not heard of for half a minute: what it cost nobody knows */
    uint64_t silent_since_ns; /* Unix, the first of them; 0: none */
    /* Left without a goodbye: killed, crashed, out of time at its end. What it had not sent nobody knows: no loss, not missing. */
    uint64_t sources_died;
    uint64_t heard_ns; /* Unix; of one source */
    bool is_balanced;  /* every stream is, and nothing is missing */
};

struct mr_summary_time {
    uint64_t now_ns;  /* Unix */
    uint64_t gone_ns; /* of the limits */
};

/* Notes of sources: their clocks, and the depth limit. */
struct mr_summary_clock {
    enum mr_clock_kind kind;
    const char *notes[MR_NOTE_COUNT]; /* NULL: not told */
};

struct mr_summary_source { /* newest first */
    struct mr_id id, worker;
    bool is_known; /* false: only its ledger was seen */
    const char *host, *app, *version, *exe;
    uint32_t pid;
    uint64_t start_ns, end_ns; /* end 0: live */
    enum mr_source_state state;
    enum mr_policy policy;
    struct mr_summary_clock clock;
    struct mr_summary_ledger ledger;
};

/* A counter on spans. */
struct mr_summary_counter {
    struct mr_id id;
    const char *name, *unit; /* unit "ns" or "1" */
    bool is_counted;         /* somewhere */
};

#define MR_SUMMARY_INNER_MAX 3u
/* The slowest trace that is kept with its calls. */
struct mr_summary_kept {
    uint32_t
        shapes; /* that have a slowest trace; 0: none is kept, and the rest is empty */
    struct mr_id id;
    const char *name; /* of its root */
    enum mr_exemplar_status status;
    uint64_t ns, start_ns, calls, elided_calls, elided_ns;
    uint32_t inner_count;
    struct {
        const char *name;
        uint64_t self_ns;
    } inner[MR_SUMMARY_INNER_MAX]; /* the calls that took longest themselves */
};

struct mr_summary_absence { /* a counter that does not count somewhere */
    uint32_t counter;
    const char *app, *version, *host, *reason;
};

struct mr_summary {
    uint64_t generation, published_ns;
    struct mr_summary_function *functions;
    size_t function_count, function_total; /* rows here; rows there would be */
    size_t function_found;                 /* of these, what limits.find finds */
    struct mr_summary_entry *entries;
    size_t entry_count, entry_total;
    struct mr_summary_open *opens;
    size_t open_count;
    struct mr_summary_source *sources;
    size_t source_count, source_total;
    struct mr_summary_counter *counters;
    struct mr_summary_absence *absences;
    struct mr_summary_trace *joined; /* over several threads and processes */
    size_t trace_count, trace_total;
    uint64_t joined_ok, joined_failed, joined_incomplete; /* over all of them */
    uint64_t joined_past_limit;                           /* and those of no shape here */
    struct mr_summary_parts parts;
    struct mr_counter_stats *counts; /* private: those of the functions */
    size_t counter_count, absence_count;
    struct mr_summary_kept kept;
    struct mr_summary_coverage coverage;
    struct mr_summary_shares shares; /* all zero unless asked for */
    struct mr_summary_ledger ledger;
    uint64_t calls, incomplete_calls, self_ns; /* over all functions */
    uint64_t pruned_functions; /* of which calls were counted and not recorded */
    uint64_t pruned_calls;
    uint64_t
        tick_ns; /* the longest of clocks hybrid: a single time is off by up to this; 0 */
    uint64_t times_clamped;
    uint64_t cheap_ns, cheap_calls; /* of the limits; over all functions */
    uint64_t
        least_ns; /* the shortest call, at most cheap_ns: what tracing takes of each */
    uint64_t traces;
    uint64_t open;
    uint32_t paths, shapes, nodes, sites, scopes;
    uint64_t refused; /* things past a limit of the model, of this process */
    struct mr_summary_past_limit past_limit;
    void *memory; /* private: the texts */
};

/* MR_ENOMEM. Takes what a walk over sites, entries and streams takes: no path is walked, but for cheap_ns. */
enum mr_status mr_summary_new(struct mr_model *model,
                              const struct mr_summary_limits *limits,
                              struct mr_summary **summary);
/* As above, of a root that the caller holds. */
enum mr_status mr_summary_of(const struct mr_model_root *root,
                             const struct mr_summary_limits *limits,
                             struct mr_summary **summary);
void mr_summary_free(struct mr_summary *summary); /* NULL allowed */

/*
 * A quantile lies between the smallest and the largest value as well, which is often
 * closer than its bucket.
 */
void mr_summary_clamp(struct mr_summary_quantile *quantile, const struct mr_times *times);

/* One stream joins the ledger of its source. is_over: its source has ended. */
void mr_summary_add_stream(const struct mr_summary_time *time,
                           const struct mr_model_stream *row, bool is_over,
                           struct mr_summary_ledger *ledger);
bool mr_summary_is_over(const struct mr_model_source *source);
/* Of all sources, of a root that the caller holds. MR_ENOMEM. */
enum mr_status mr_summary_ledger_of(const struct mr_model_root *root, uint64_t gone_ns,
                                    struct mr_summary_ledger *all);

/* "ring-full" for MR_LOSS_RING_FULL; NULL for a number that is no reason. */
const char *mr_loss_reason_name(uint32_t reason);
/* "whole", "folded", "paths", "incomplete". */
const char *mr_coverage_name(enum mr_coverage coverage);
/* "recurring", "once", "not-kept", "paths", "incomplete". */
const char *mr_share_name(enum mr_share share);
/* "came", "joined"; of those that were ended, why: "parts" (--max-parts), "time-out", "circle". */
const char *mr_parts_name(enum mr_parts parts);
/* Of a root that the caller holds. */
void mr_summary_make_shares(const struct mr_model_root *root,
                            struct mr_summary_shares *shares);
/* Traces over several threads and processes that are in no row, for want of room (--max-joined). */
#define MR_SUMMARY_LEVEL_SIZE 8

/* "levelN_NAME", what workers of a level count (worker/graphs.c): N as text, and NAME; NULL: another counter. */
const char *mr_summary_level_counter(const char *name, char level[MR_SUMMARY_LEVEL_SIZE]);

uint64_t mr_summary_traces_past_limit(const struct mr_model_root *root);
void mr_summary_make_past_limit(const struct mr_model_root *root,
                                struct mr_summary_past_limit *past_limit);
void mr_summary_make_parts(const struct mr_model_root *root,
                           struct mr_summary_parts *parts);
/* "live", "finished", "died". */
const char *mr_source_state_name(enum mr_source_state state);

#endif
