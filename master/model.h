/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model: what millrace knows, as immutable records under one root. One writer applies
 * DICT and DELTA payloads and publishes; readers take the root under a liburcu (memb)
 * read lock and see one consistent moment for as long as they hold it. They never block
 * the writer, and the writer never blocks them.
 *
 * Every table is an array of records by index; an index is given once, in the order in
 * which things were first seen, and never changes. `..._STAT` tables have the index of
 * the table they belong to. Records of another table are named by index.
 *
 * Threads: apply, add and publish belong to the writer, one thread at a time. Reading
 * threads call mr_model_thread_enter() once, then lock and unlock as often as they like;
 * a read section must end (old versions are kept while it lasts).
 *
 * Limits: struct mr_model_limits; what goes past one is refused and counted in the root's
 * `refused`, and the sums above it (path of the parent, totals) stay what was accepted.
 *
 * Use:
 *     mr_model_new(&limits, &model);
 *     status = mr_model_apply_delta(model, sender, payload, &error);
 *     mr_model_publish(model);
 *     ...
 *     const struct mr_model_root *root = mr_model_read_lock(model);
 *     const struct mr_model_site *site = mr_cow_get(&root->tables[MR_MODEL_SITE], 0);
 *     mr_model_read_unlock(model);
 */
#ifndef MR_MASTER_MODEL_H
#define MR_MASTER_MODEL_H

#include "base/error.h"
#include "base/id.h"
#include "base/span.h"
#include "base/status.h"
#include "master/cow.h"
#include "net/control.h"
#include "net/delta.h"
#include "pipeline/joiner.h"

#include <stdint.h>

#define MR_MODEL_NONE MR_COW_NONE

/* Name in code, name in metrics and JSON. */
#define MR_MODEL_TABLES(X)                                                               \
    X(SITE, "sites")                                                                     \
    X(SITE_STAT, "site_stats")                                                           \
    X(SCOPE, "scopes")                                                                   \
    X(SOURCE, "sources")                                                                 \
    X(STREAM, "streams")                                                                 \
    X(PATH, "paths")                                                                     \
    X(PATH_STAT, "path_stats")                                                           \
    X(ENTRY, "entries")                                                                  \
    X(NODE, "nodes")                                                                     \
    X(SHAPE, "shapes")                                                                   \
    X(SHAPE_STAT, "shape_stats")                                                         \
    X(OUTER, "outers")                                                                   \
    X(COUNTER, "counters")                                                               \
    X(SENDER, "senders")                                                                 \
    X(OPEN, "open")                                                                      \
    X(SPAN_COUNTER, "span_counters")                                                     \
    X(COUNTER_NOTE, "counter_notes")                                                     \
    X(PATH_COUNTER, "path_counters")                                                     \
    X(NOTE, "notes")                                                                     \
    X(JOINED, "joined_shapes")                                                           \
    X(JOINED_STAT, "joined_stats")                                                       \
    X(JOINED_EDGE, "joined_edges")                                                       \
    X(PART, "parts")                                                                     \
    X(EXEMPLAR, "exemplars")                                                             \
    X(SHAPE_PATH, "shape_paths")

enum mr_model_table {
#define X(name, text) MR_MODEL_##name,
    MR_MODEL_TABLES(X)
#undef X
        MR_MODEL_TABLE_COUNT
};

const char *mr_model_table_name(enum mr_model_table table);

/* Windowed statistics kept in memory: name, seconds per window, windows. */
#define MR_MODEL_SERIES(X)                                                               \
    X(ENTRY, 1, 600)                                                                     \
    X(SHAPE, 1, 600)                                                                     \
    X(PATH, 60, 60)

enum mr_model_series {
#define X(name, seconds, windows) MR_SERIES_##name,
    MR_MODEL_SERIES(X)
#undef X
        MR_SERIES_COUNT
};

uint32_t mr_model_series_seconds(enum mr_model_series series);
uint32_t mr_model_series_windows(enum mr_model_series series);

/* Kinds of records that are no table's: see model_private.h. */
#define MR_MODEL_KIND_WINDOW MR_MODEL_TABLE_COUNT
#define MR_MODEL_KIND_ENTRY_POINT (MR_MODEL_TABLE_COUNT + 1)

/* Texts lie behind the struct, in one allocation; never NULL. */
struct mr_model_site {
    struct mr_cow_head head;
    struct mr_id id;
    bool known; /* false: only its id was seen so far */
    enum mr_site_type type;
    enum mr_site_quality quality;
    uint64_t offset;
    uint32_t line;
    uint32_t build_id_size;
    uint8_t build_id[MR_BUILD_ID_MAX];
    const char *module, *name, *file;
};

/*
 * Over all paths of the site. `total` leaves out calls below another call of the same
 * site on their path (their time is in that one's), `self` and the counts do not.
 */
struct mr_model_site_stat {
    struct mr_cow_head head;
    uint64_t ok, failed, incomplete; /* min and max hold something if ok + failed > 0 */
    struct mr_times self, total;
};

struct mr_model_scope {
    struct mr_cow_head head;
    struct mr_id id;
    bool known;
    const char *app, *version, *host;
};

struct mr_model_source {
    struct mr_cow_head head;
    struct mr_id id, worker;
    bool known;
    uint32_t scope; /* MR_MODEL_NONE while unknown */
    uint32_t pid;
    uint64_t start_ns, end_ns;
    uint64_t taken_ns; /* when this was told, Unix; not stored */
    enum mr_clock_kind clock;
    enum mr_source_state state;
    enum mr_policy policy;
    const char *host, *app, *version, *exe;
};

/*
 * Streams past the limit have one row together, in each source: their sums, and `last` 0, as of the numbers of several
 * streams nothing follows. A source that has such a row gets no other, so that no stream is in two. It takes no room.
 */
#define MR_MODEL_STREAMS_REST UINT32_MAX

struct mr_model_stream { /* one row of the ledger */
    struct mr_cow_head head;
    uint32_t source;
    uint32_t stream; /* number within its source, or MR_MODEL_STREAMS_REST */
    struct mr_ledger_entry entry;
    /* Unix; not stored, so the load of the store at the earliest: */
    uint64_t taken_ns; /* when something of it came last, */
    uint64_t gap_ns;   /* and when mr_ledger_gap() changed last */
};

#define MR_MODEL_PATH_RECURSIVE                                                          \
    (1u << 16) /* flag: its site stands above it on the path */

struct mr_model_path {
    struct mr_cow_head head;
    struct mr_id id;
    uint32_t parent; /* MR_MODEL_NONE: an entry point, or the bottom outer frame */
    uint32_t scope, site;
    uint32_t flags; /* MR_DELTA_PATH_OUTER, MR_MODEL_PATH_RECURSIVE */
    uint32_t entry; /* index in ENTRY; MR_MODEL_NONE for outer paths */
    uint32_t depth; /* from 0 */
    uint32_t first_child, next_sibling;
};

struct mr_model_path_stat {
    struct mr_cow_head head;
    struct mr_path_stats stats;
};

struct mr_model_entry {
    struct mr_cow_head head;
    uint32_t path;
    uint32_t shapes; /* of this entry point */
    uint32_t paths;  /* with its own */
    struct mr_entry_stats stats;
};

struct mr_model_child {
    struct mr_id id;
    uint64_t repeat; /* 0: one or more */
};

struct mr_model_node {
    struct mr_cow_head head;
    struct mr_id id;
    uint32_t site;
    enum mr_exactness exactness;
    uint32_t child_count;
    struct mr_model_child children[];
};

struct mr_model_shape {
    struct mr_cow_head head;
    struct mr_id id; /* of its root node: the shape's id */
    uint32_t scope;
    uint32_t entry;     /* index in ENTRY */
    uint32_t next_same; /* shape of the same id in another scope */
};

struct mr_model_shape_stat {
    struct mr_cow_head head;
    struct mr_shape_stats stats;
};

struct mr_model_outer {
    struct mr_cow_head head;
    uint32_t scope, site;
    uint32_t why; /* 0 start of thread, 1 option, 2 learned */
};

struct mr_model_counter {
    struct mr_cow_head head;
    uint64_t value;
    char name[MR_DELTA_COUNTER_NAME_MAX];
};

struct mr_model_span_counter {
    struct mr_cow_head head;
    struct mr_id id;
    bool known;
    const char *name, *unit; /* unit: "1", "ns" */
};

struct mr_model_counter_note {
    struct mr_cow_head head;
    uint32_t scope, counter;
    const char *absent; /* why it does not count in some of the scope; "": it counts */
};

struct mr_model_note {
    struct mr_cow_head head;
    struct mr_id about, site; /* a source or scope; site zero: the whole of it */
    uint64_t version;
    uint64_t taken_ns; /* when it came, Unix; not stored */
    const char *key, *value;
};

struct mr_model_path_counter {
    struct mr_cow_head head;
    uint32_t path, counter;
    struct mr_counter_stats stats;
};

struct mr_model_joined { /* a trace of several parts: net/joined.h */
    struct mr_cow_head head;
    struct mr_id id;
    uint32_t node_count;
    struct mr_joined_node nodes[]; /* in preorder */
};

struct mr_model_joined_stat {
    struct mr_cow_head head;
    struct mr_joined_stats stats;
};

struct mr_model_joined_edge {
    struct mr_cow_head head;
    uint32_t joined, place; /* place: of the node that it leads to */
    struct mr_edge_stats stats;
};

struct mr_model_part { /* that waits to be joined */
    struct mr_cow_head head;
    uint32_t size; /* 0: none, its place is free */
    uint8_t bytes[];
};

/* For one reason; a trace that is kept for two has two. */
struct mr_model_exemplar {
    struct mr_cow_head head;
    uint32_t entry, shape, source;   /* shape: MR_MODEL_NONE: of none */
    struct mr_exemplar exemplar;     /* items: `calls` */
    struct mr_exemplar_call calls[]; /* site: index in SITE */
};

struct mr_model_shape_path {
    struct mr_cow_head head;
    uint32_t shape, path;
    struct mr_shape_path_stats stats;
};

struct mr_model_sender { /* not stored */
    struct mr_cow_head head;
    struct mr_id id;
    uint32_t level;
    uint64_t created_ns; /* of its newest delta */
    uint64_t deltas;
};

struct mr_model_open { /* not stored; see mr_model_open_is_current() */
    struct mr_cow_head head;
    uint32_t sender, path; /* path: of the entry point */
    uint32_t stack;        /* path of the oldest's innermost call; MR_MODEL_NONE */
    uint64_t created_ns, taken_ns; /* of the delta; when it came, Unix */
    struct mr_open_stats stats;
};

struct mr_model_entry_point {
    struct mr_cow_head head;
    struct mr_entry_stats stats;
};

/* The points of one window, by index of entry, shape or path. */
struct mr_model_window {
    struct mr_cow_head head;
    uint64_t window; /* Unix s */
    uint32_t count;
    bool closed; /* its points went for lack of room: the store alone has it */
    struct mr_cow_array points; /* entry points, shape stats or path stats */
};

struct mr_model_totals {
    uint64_t ok, failed, incomplete; /* calls, over all paths */
    uint64_t self_ns;                /* over all paths */
    uint64_t shape_traces;
    struct mr_entry_stats entries;
};

struct mr_model_root {
    struct mr_cow_head head;
    uint64_t journal; /* number of the last journal row in it (master/store.h) */
    uint64_t published_ns;
    struct mr_cow_array tables[MR_MODEL_TABLE_COUNT];
    struct mr_cow_map ids[MR_MODEL_TABLE_COUNT]; /* where a table has ids */
    struct mr_cow_map shape_nodes; /* id of a root node -> first shape of it */
    struct mr_cow_array series[MR_SERIES_COUNT]; /* of windows, by slot */
    uint64_t newest[MR_SERIES_COUNT];            /* window; 0: none */
    uint32_t points[MR_SERIES_COUNT];
    uint64_t refused[MR_MODEL_TABLE_COUNT];
    uint64_t late_points, refused_points, deltas, dicts, skipped_items;
    uint64_t collisions; /* nodes whose id is that of another one: the first holds */
    uint64_t node_children;
    uint64_t
        parts_waiting; /* of MR_PARTS_CAME; the rest is in one of the other accounts */
    struct mr_model_totals totals;
};

/*
 * The account of parts (net/part.h) at the master, the last level: what came waits, or is in one of the others. Number in code, name
 * in the ledger, counter of the model.
 */
#define MR_PARTS(X)                                                                      \
    X(CAME, "came", "join_parts_came")                                                   \
    X(JOINED, "joined", "join_parts_joined")        /* of traces that were whole here */ \
    X(LIMIT, "parts", "join_parts_ended_limit")     /* ended incomplete: --max-parts */  \
    X(TIMEOUT, "time-out", "join_parts_ended_time") /* --join-timeout */                 \
    X(CIRCLE, "circle", "join_parts_ended_circle")  /* without a root */
enum mr_parts {
#define X(name, text, counter) MR_PARTS_##name,
    MR_PARTS(X)
#undef X
        MR_PARTS_COUNT
};
extern const char *const mr_model_parts_counters[MR_PARTS_COUNT];

struct mr_model_limits {
    uint32_t sites, scopes, sources, streams, paths, shapes, nodes, counters, senders;
    uint32_t span_counters, counter_notes, path_counters, notes;
    uint32_t joined, joined_edges, parts;
    uint32_t exemplars, shape_paths; /* exemplars: per reason */
    size_t exemplar_bytes;           /* of their calls */
    uint32_t series_points;          /* per series */
};
#define MR_MODEL_LIMITS_DEFAULT                                                          \
    ((struct mr_model_limits){.sites = 1u << 20,                                         \
                              .scopes = 1u << 14,                                        \
                              .sources = 1u << 16,                                       \
                              .streams = 1u << 18,                                       \
                              .paths = 1u << 20,                                         \
                              .shapes = 1u << 18,                                        \
                              .nodes = 1u << 20,                                         \
                              .counters = 1u << 10,                                      \
                              .senders = 1u << 14,                                       \
                              .span_counters = 64,                                       \
                              .counter_notes = 1u << 14,                                 \
                              .path_counters = 1u << 20,                                 \
                              .exemplars = 1u << 10,                                     \
                              .exemplar_bytes = (size_t)64 << 20,                        \
                              .shape_paths = 1u << 18,                                   \
                              .notes = 1u << 16,                                         \
                              .joined = 1u << 14,                                        \
                              .joined_edges = 1u << 18,                                  \
                              .parts = MR_JOINER_PARTS_DEFAULT,                          \
                              .series_points = 1u << 18})
#define MR_MODEL_CHILDREN_PER_NODE 16 /* limit of all children = this x limit of nodes */
#define MR_MODEL_PATH_DEPTH_MAX 8192  /* deeper paths are refused */

struct mr_model;

enum mr_status mr_model_new(const struct mr_model_limits *limits,
                            struct mr_model **model);
/* No reader may be left. NULL allowed. */
void mr_model_free(struct mr_model *model);

/*
 * A payload of `sender`. All or nothing for DELTA: bytes that break the format change
 * nothing (MR_EFORMAT, place in `error`). A DICT may be taken in part: its items are
 * idempotent. MR_ENOMEM: the model cannot go on.
 */
enum mr_status mr_model_apply_delta(struct mr_model *model, struct mr_id sender,
                                    struct mr_span payload, struct mr_error *error);
enum mr_status mr_model_apply_dict(struct mr_model *model, struct mr_span payload,
                                   struct mr_error *error);
/* By frame type: MR_FRAME_DICT or MR_FRAME_DELTA. */
enum mr_status mr_model_apply(struct mr_model *model, struct mr_id sender, uint8_t type,
                              struct mr_span payload, struct mr_error *error);
/*
 * Traces to which no part came since `before_ns` (CLOCK_MONOTONIC) are counted as they are,
 * incomplete; *ended tells how many. MR_ENOMEM.
 */
enum mr_status mr_model_end_traces(struct mr_model *model, uint64_t before_ns,
                                   uint32_t *ended);
/* Journal number that the next publish tells. */
void mr_model_set_journal(struct mr_model *model, uint64_t number);
/* Makes what was applied visible. MR_ENOMEM. */
enum mr_status mr_model_publish(struct mr_model *model);
/*
 * Everything up to `generation` is in the store: the series may drop it when they are
 * full. Any thread. Never called: nothing is waited for.
 */
void mr_model_set_saved(struct mr_model *model, uint64_t generation);

/*
 * Who is told of each answer to a request for exemplars (net/wanted.h), with the sites of its calls by index; on the writer's
 * thread, borrowed during the call. Says whether it is to be kept, and which trace is no answer any more (`gone`, of which what
 * makes it the same is read; zero: none). Before the writer's thread starts; not called for what is loaded, which is kept.
 */
void mr_model_on_asked(struct mr_model *model,
                       bool (*on_asked)(void *context, struct mr_id request,
                                        const struct mr_exemplar *exemplar,
                                        struct mr_exemplar *gone),
                       void *context);

/* Once per reading thread, before its first lock and after its last. */
void mr_model_thread_enter(void);
void mr_model_thread_leave(void);
const struct mr_model_root *mr_model_read_lock(struct mr_model *model);
void mr_model_read_unlock(struct mr_model *model);

/* Shorthands: the record at `index`, or NULL. */
#define MR_MODEL_GET(name, TABLE)                                                        \
    static inline const struct mr_model_##name *mr_model_##name(                         \
        const struct mr_model_root *root, uint32_t index)                                \
    {                                                                                    \
        return mr_cow_get(&root->tables[MR_MODEL_##TABLE], index);                       \
    }
MR_MODEL_GET(site, SITE)
MR_MODEL_GET(site_stat, SITE_STAT)
MR_MODEL_GET(scope, SCOPE)
MR_MODEL_GET(source, SOURCE)
MR_MODEL_GET(stream, STREAM)
MR_MODEL_GET(path, PATH)
MR_MODEL_GET(path_stat, PATH_STAT)
MR_MODEL_GET(entry, ENTRY)
MR_MODEL_GET(node, NODE)
MR_MODEL_GET(shape, SHAPE)
MR_MODEL_GET(shape_stat, SHAPE_STAT)
MR_MODEL_GET(outer, OUTER)
MR_MODEL_GET(counter, COUNTER)
MR_MODEL_GET(sender, SENDER)
MR_MODEL_GET(open, OPEN)
MR_MODEL_GET(span_counter, SPAN_COUNTER)
MR_MODEL_GET(counter_note, COUNTER_NOTE)
MR_MODEL_GET(path_counter, PATH_COUNTER)
MR_MODEL_GET(note, NOTE)
MR_MODEL_GET(joined, JOINED)
MR_MODEL_GET(joined_stat, JOINED_STAT)
MR_MODEL_GET(joined_edge, JOINED_EDGE)
MR_MODEL_GET(part, PART)
MR_MODEL_GET(exemplar, EXEMPLAR)
MR_MODEL_GET(shape_path, SHAPE_PATH)
#undef MR_MODEL_GET

static inline uint32_t mr_model_count(const struct mr_model_root *root,
                                      enum mr_model_table table)
{
    return root->tables[table].count;
}

/* Index of an id, or MR_MODEL_NONE. Shapes: mr_model_find_shape(). */
static inline uint32_t mr_model_find(const struct mr_model_root *root,
                                     enum mr_model_table table, struct mr_id id)
{
    return mr_cow_map_find(&root->ids[table], id);
}
/* The first shape with this root node; follow next_same. MR_MODEL_NONE. */
static inline uint32_t mr_model_find_shape(const struct mr_model_root *root,
                                           struct mr_id node)
{
    return mr_cow_map_find(&root->shape_nodes, node);
}
/* What a path gained of a span counter, or NULL. */
const struct mr_counter_stats *mr_model_counter_of_path(const struct mr_model_root *root,
                                                        uint32_t path, uint32_t counter);
/* The id of the trace, equal everywhere. */
struct mr_id mr_model_exemplar_id(const struct mr_exemplar *exemplar);
/* The trace of that id, or NULL. Where it is kept for several reasons, the record that has most of its calls. */
const struct mr_model_exemplar *mr_model_find_exemplar(const struct mr_model_root *root,
                                                       struct mr_id id);
/* A note, or NULL; `site` zero: about the whole. */
const struct mr_model_note *mr_model_find_note(const struct mr_model_root *root,
                                               struct mr_id about, struct mr_id site,
                                               const char *key);
/* Its value, or NULL. */
const char *mr_model_note_of(const struct mr_model_root *root, struct mr_id about,
                             struct mr_id site, const char *key);
/* Whether it is what its sender's newest delta said, and that came a moment ago: told once a second. */
bool mr_model_open_is_current(const struct mr_model_root *root,
                              const struct mr_model_open *open, uint64_t now_ns);
/* The window's points, or NULL. */
const struct mr_model_window *mr_model_window_at(const struct mr_model_root *root,
                                                 enum mr_model_series series,
                                                 uint64_t window);

/* Counters, as those of workers: what is in no row, for that found no room. Traces of joined shapes; calls, and traces, of paths;
 * events of sources, reduced or lost; notes, so often as one came. Of streams: events that are in the row of the rest. */
#define MR_MODEL_TRACES_PAST_LIMIT "join_traces_past_limit"
#define MR_MODEL_PATH_CALLS_PAST_LIMIT "model_calls_past_limit"
#define MR_MODEL_PATH_TRACES_PAST_LIMIT "model_traces_past_limit"
#define MR_MODEL_STREAM_EVENTS_PAST_LIMIT "model_events_past_limit"
#define MR_MODEL_SOURCE_EVENTS_PAST_LIMIT "model_source_events_past_limit"
#define MR_MODEL_NOTES_PAST_LIMIT "model_notes_past_limit"

/* What is known of the edge to the node at `place` of a joined shape, or NULL. */
const struct mr_edge_stats *mr_model_edge_of(const struct mr_model_root *root,
                                             uint32_t joined, uint32_t place);

/* The ledger row's sum: held and all losses. Wraps like the counters it adds. */
uint64_t mr_ledger_lost(const struct mr_ledger_entry *entry);
/* Events told of by number and not in the sums: missing, or, below 0, counted too often. */
int64_t mr_ledger_gap(const struct mr_ledger_entry *entry);
/* last = reduced + held + lost. */
bool mr_ledger_is_balanced(const struct mr_ledger_entry *entry);

/*
 * The name to show for a site: its name, else module+0xoffset, else its id. Returns
 * `text` or a borrowed string.
 */
#define MR_SITE_LABEL_SIZE 160
const char *mr_model_site_label(const struct mr_model_site *site,
                                char text[MR_SITE_LABEL_SIZE]);

#endif
