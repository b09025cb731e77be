/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deltas as bytes (docs/FORMAT.md section 8). The payload is the only representation of a delta between filters, processes and
 * the store's journal: reduce writes it, merge reads several and writes one, the repository reads it.
 *
 * Writer:  mr_delta_begin(&w, &buffer); site = mr_delta_site(&w, id); scope = mr_delta_scope(&w, id);
 *          path = mr_delta_path(&w, MR_DELTA_NONE, scope, site, 0); mr_delta_path_stat(&w, path, window, &stats); ...
 *          if (mr_delta_status(&w) != MR_OK) ...           // first error is latched (MR_ELIMIT: buffer's limit)
 * Reader:  mr_delta_reader_init(&r, payload); while ((status = mr_delta_next(&r, &item)) == MR_OK) switch (item.tag) ...
 *
 * One thread at a time; the writer appends to a buffer of the caller. The reader checks that every index names an item that
 * came before. Histograms in items are owned by the reader and overwritten by the next call.
 */
#ifndef MR_NET_DELTA_H
#define MR_NET_DELTA_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/id.h"
#include "base/status.h"
#include "net/exemplar.h"
#include "net/histogram.h"
#include "net/joined.h"
#include "net/part.h"
#include "net/wire.h"

#define MR_DELTA_NONE UINT32_MAX
#define MR_DELTA_PATH_OUTER 1u
#define MR_DELTA_COUNTER_NAME_MAX 64

enum mr_delta_tag {
    MR_DELTA_HEAD = 1,
    MR_DELTA_SITE = 2,
    MR_DELTA_SCOPE = 3,
    MR_DELTA_PATH = 4,
    MR_DELTA_PATH_STAT = 5,
    MR_DELTA_SOURCE = 6,
    MR_DELTA_SHAPE = 7,
    MR_DELTA_SHAPE_STAT = 8,
    MR_DELTA_ENTRY_STAT = 9,
    MR_DELTA_LEDGER = 10,
    MR_DELTA_OPEN = 11,
    MR_DELTA_EXEMPLAR = 12,
    MR_DELTA_PART = 13,
    MR_DELTA_COUNTER = 14,
    MR_DELTA_SPAN_COUNTER = 15,
    MR_DELTA_PATH_COUNTER = 16,
    MR_DELTA_SHAPE_PATH = 17,
    MR_DELTA_JOINED = 20,
    MR_DELTA_JOINED_STAT = 21,
    MR_DELTA_JOINED_EDGE = 22,
    MR_DELTA_ASKED = 23,
};

enum mr_coverage { /* of a trace; DESIGN section 6, FORMAT.md "entry stat" */
                   MR_COVERAGE_WHOLE =
                       0, /* its shape says everything: no run was folded */
                   MR_COVERAGE_FOLDED = 1,
                   MR_COVERAGE_PATHS = 2, /* past a limit: path tree only */
                   MR_COVERAGE_INCOMPLETE = 3,
                   MR_COVERAGE_COUNT = 4
};

struct mr_times { /* ns; min and max are 0 where nothing was timed */
    uint64_t sum, min, max;
};
struct mr_path_stats {
    uint64_t ok, failed, incomplete; /* calls */
    struct mr_times self, total;
    struct mr_histogram histogram; /* of totals */
};
struct mr_shape_stats {
    uint64_t ok, failed;        /* traces */
    uint64_t calls, folded;     /* calls in them; traces in which a run was folded */
    uint64_t first_ns, last_ns; /* Unix time of the first and last trace's end */
    struct mr_times time;       /* of the root call */
    struct mr_histogram histogram;
};
struct mr_entry_stats {
    uint64_t traces[MR_COVERAGE_COUNT], calls[MR_COVERAGE_COUNT],
        time_ns[MR_COVERAGE_COUNT];
};
struct mr_counter_stats { /* of one counter on one path; units are the counter's */
    uint64_t calls;       /* that were counted */
    uint64_t backward;    /* that were not, because the counter ran backwards */
    struct mr_times self, total;
};
/* Of traces of several parts; times and histogram: end to end, of those that are whole. */
struct mr_joined_stats {
    uint64_t ok, failed, incomplete;
    uint64_t first_ns, last_ns; /* Unix time of the first and last trace's end */
    struct mr_times time;
    struct mr_id slowest; /* trace id of the one that took time.max; zero: it has none */
    struct mr_histogram histogram;
};
struct mr_edge_stats { /* from send to receive, from capture to attach */
    uint64_t count;
    uint64_t clamped; /* of these, came before they were sent by the clocks: 0 ns */
    struct mr_times time;
    struct mr_histogram histogram;
};

struct mr_shape_path_stats { /* of one path, in traces of one shape alone */
    uint64_t ok, failed;     /* calls */
    struct mr_times self, total;
};
#define MR_OPEN_AGES 5
/* They are told every second; of who tells nothing for so long, none is taken for open any more. */
#define MR_OPEN_TOLD_FOR_NS UINT64_C(5000000000)
struct mr_open_stats { /* the traces of an entry point that are open now */
    uint64_t count;
    uint64_t ages[MR_OPEN_AGES]; /* of them, for up to 1 s, 10 s, 1 min, 10 min, longer */
    uint64_t oldest_ns;          /* Unix time at which the oldest began */
    uint64_t since_ns; /* and at which its innermost open call did; 0: not known */
};
struct mr_ledger_entry {
    uint64_t last, reduced;
    int64_t held;
    uint64_t lost[MR_LOSS_REASON_COUNT]; /* by enum mr_loss_reason */
};

void mr_times_add(struct mr_times *into, uint64_t ns, bool first);
void mr_times_merge(struct mr_times *into, const struct mr_times *from, bool into_empty,
                    bool from_empty);
enum mr_status mr_path_stats_merge(struct mr_path_stats *into,
                                   const struct mr_path_stats *from);
enum mr_status mr_shape_stats_merge(struct mr_shape_stats *into,
                                    const struct mr_shape_stats *from);
void mr_entry_stats_merge(struct mr_entry_stats *into, const struct mr_entry_stats *from);
void mr_counter_stats_merge(struct mr_counter_stats *into,
                            const struct mr_counter_stats *from);
enum mr_status mr_joined_stats_merge(struct mr_joined_stats *into,
                                     const struct mr_joined_stats *from);
enum mr_status mr_edge_stats_merge(struct mr_edge_stats *into,
                                   const struct mr_edge_stats *from);
void mr_shape_path_stats_merge(struct mr_shape_path_stats *into,
                               const struct mr_shape_path_stats *from);
/* Whether `from` has the oldest trace, whose stack is the one to keep; of two that began at once, the later call. */
bool mr_open_stats_merge(struct mr_open_stats *into, const struct mr_open_stats *from);
/* The class in `ages` of a trace that is open for that long. */
uint32_t mr_open_age(uint64_t open_ns);
void mr_ledger_entry_merge(struct mr_ledger_entry *into,
                           const struct mr_ledger_entry *from);

struct mr_delta_writer {
    struct mr_buffer *out;
    enum mr_status status;
    uint32_t sites, scopes, paths, sources, shapes, span_counters, joined;
};
void mr_delta_begin(struct mr_delta_writer *w,
                    struct mr_buffer *out); /* appends to out */
void mr_delta_head(struct mr_delta_writer *w, uint32_t level, uint64_t created_ns);
/* Each returns the item's index in this payload. */
uint32_t mr_delta_site(struct mr_delta_writer *w, struct mr_id id);
uint32_t mr_delta_scope(struct mr_delta_writer *w, struct mr_id id);
uint32_t mr_delta_source(struct mr_delta_writer *w, struct mr_id id);
uint32_t mr_delta_path(struct mr_delta_writer *w, uint32_t parent, uint32_t scope,
                       uint32_t site, uint32_t flags);
uint32_t mr_delta_shape(struct mr_delta_writer *w, uint32_t scope, uint32_t path,
                        struct mr_id node);
void mr_delta_path_stat(struct mr_delta_writer *w, uint32_t path, uint64_t window,
                        const struct mr_path_stats *stats);
void mr_delta_shape_stat(struct mr_delta_writer *w, uint32_t shape, uint64_t window,
                         const struct mr_shape_stats *stats);
void mr_delta_entry_stat(struct mr_delta_writer *w, uint32_t path, uint64_t window,
                         const struct mr_entry_stats *stats);
void mr_delta_ledger(struct mr_delta_writer *w, uint32_t source, uint32_t stream,
                     const struct mr_ledger_entry *entry);
/* `stack`: path of the innermost open call of the oldest trace; MR_DELTA_NONE: not known. */
void mr_delta_open(struct mr_delta_writer *w, uint32_t path, uint32_t stack,
                   const struct mr_open_stats *stats);
void mr_delta_counter(struct mr_delta_writer *w, const char *name, uint64_t value);
uint32_t mr_delta_span_counter(struct mr_delta_writer *w, struct mr_id id);
void mr_delta_path_counter(struct mr_delta_writer *w, uint32_t path, uint64_t window,
                           uint32_t counter, const struct mr_counter_stats *stats);
void mr_delta_part(struct mr_delta_writer *w, const struct mr_part *part);
/* `id`: mr_joined_id() of the nodes. */
uint32_t mr_delta_joined(struct mr_delta_writer *w, struct mr_id id,
                         const struct mr_joined_node *nodes, uint32_t count);
void mr_delta_joined_stat(struct mr_delta_writer *w, uint32_t joined, uint64_t window,
                          const struct mr_joined_stats *stats);
/* `place`: of the node that the edge leads to, from 1. */
void mr_delta_joined_edge(struct mr_delta_writer *w, uint32_t joined, uint64_t window,
                          uint32_t place, const struct mr_edge_stats *stats);
/* `path`: of its entry point; `shape`: MR_DELTA_NONE: of none. Its calls' sites are numbers of this payload. */
void mr_delta_exemplar(struct mr_delta_writer *w, uint32_t path, uint32_t shape,
                       uint32_t source, const struct mr_exemplar *exemplar);
/* The same, as the answer to a request (net/wanted.h) for up to `wanted` traces; its reasons are not told. */
void mr_delta_asked(struct mr_delta_writer *w, struct mr_id request, uint32_t wanted,
                    uint32_t path, uint32_t shape, uint32_t source,
                    const struct mr_exemplar *exemplar);
void mr_delta_shape_path(struct mr_delta_writer *w, uint32_t shape, uint32_t path,
                         const struct mr_shape_path_stats *stats);
enum mr_status mr_delta_status(const struct mr_delta_writer *w);

struct mr_delta_item {
    enum mr_delta_tag tag;
    uint32_t
        index; /* SITE, SCOPE, PATH, SOURCE, SHAPE, SPAN_COUNTER, JOINED: its own number */
    struct mr_id id;     /* SITE, SCOPE, SOURCE, SPAN_COUNTER, JOINED; SHAPE: root node */
    uint32_t level;      /* HEAD */
    uint64_t created_ns; /* HEAD */
    uint32_t parent, scope, site; /* PATH; SHAPE: scope */
    uint32_t flags;               /* PATH */
    uint32_t
        path; /* PATH_STAT, ENTRY_STAT, OPEN, PATH_COUNTER, SHAPE_PATH; SHAPE, EXEMPLAR, ASKED: of its entry point */
    uint32_t shape;  /* SHAPE_STAT, SHAPE_PATH; EXEMPLAR, ASKED: MR_DELTA_NONE: of none */
    uint32_t source; /* LEDGER, EXEMPLAR, ASKED */
    uint32_t stream; /* LEDGER */
    uint64_t window; /* ..._STAT */
    const struct mr_path_stats *path_stats;
    const struct mr_shape_stats *shape_stats;
    const struct mr_entry_stats *entry_stats;
    const struct mr_ledger_entry *ledger;
    const struct mr_open_stats *open;     /* OPEN */
    uint32_t stack;                       /* OPEN; MR_DELTA_NONE: not known */
    char name[MR_DELTA_COUNTER_NAME_MAX]; /* COUNTER */
    uint64_t value;                       /* COUNTER */
    uint32_t counter;                     /* PATH_COUNTER */
    const struct mr_counter_stats *counter_stats;
    const struct mr_part *part;         /* PART; its edges are the reader's too */
    const struct mr_joined_node *nodes; /* JOINED */
    uint32_t node_count;
    uint32_t joined, place; /* JOINED_STAT, JOINED_EDGE */
    const struct mr_joined_stats *joined_stats;
    const struct mr_edge_stats *edge_stats;
    const struct mr_exemplar *exemplar; /* EXEMPLAR, ASKED; without the source's id */
    uint32_t wanted; /* ASKED: traces that the request, whose id is `id`, asks for */
    const struct mr_shape_path_stats *shape_path_stats; /* SHAPE_PATH */
};

struct mr_delta_reader {
    struct mr_span all, rest;
    uint32_t sites, scopes, paths, sources, shapes, span_counters;
    uint32_t joined;
    uint64_t unknown; /* items of unknown tags, skipped */
    struct mr_path_stats path_stats;
    struct mr_shape_stats shape_stats;
    struct mr_entry_stats entry_stats;
    struct mr_ledger_entry ledger;
    struct mr_open_stats open;
    struct mr_counter_stats counter_stats;
    struct mr_part part;
    struct mr_part_edge part_edges[MR_PART_EDGES_MAX];
    struct mr_joined_node nodes[MR_JOINED_NODES_MAX];
    struct mr_joined_stats joined_stats;
    struct mr_edge_stats edge_stats;
    struct mr_shape_path_stats shape_path_stats;
    struct mr_exemplar exemplar;
    struct mr_exemplar_call *calls; /* of that */
    uint32_t call_capacity;
    struct mr_error error; /* what and at which offset */
};
void mr_delta_reader_init(struct mr_delta_reader *r, struct mr_span payload);
enum mr_status mr_delta_next(struct mr_delta_reader *r,
                             struct mr_delta_item *item); /* MR_END at the end */
void mr_delta_reader_fini(struct mr_delta_reader *r);

/*
 * Changes the head of a payload: its created_ns. False, with nothing changed: it does not begin with one, or its number takes
 * another size (none does that lies between 1972 and 2262).
 */
bool mr_delta_restamp(uint8_t *payload, size_t size, uint64_t created_ns);

/*
 * Takes the next item off the front without reading it: `whole` with tag and size, `fields`
 * without. False: nothing whole is left, and `rest` stays where it was.
 */
bool mr_delta_skip(struct mr_span *rest, uint64_t *tag, struct mr_span *whole,
                   struct mr_span *fields);

#endif
