/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of an accumulator, shared by accumulate.c (merging), accumulate_joined.c,
 * accumulate_traces.c, accumulate_asked.c, accumulate_names.c, accumulate_set.c (storage) and
 * accumulate_write.c. Nobody else includes it.
 *
 * Everything is a set: items in an array, and a table from a 128-bit key to the item's
 * index.
 *
 *     set      key                         item
 *     SITE     id                          name
 *     SCOPE    id                          name
 *     SOURCE   id                          name
 *     SPAN_COUNTER  id                     name
 *     PATH     path id                     path: parent, scope, site
 *     SHAPE    hash of scope, path, node   shape
 *     JOINED   id                          joined shape
 *     PART     id                          its bytes
 *     ..._ROW  (index of its owner, window or stream)
 *     OPEN     (index of path, 0)
 *     COUNTER  hash of the name
 *     EXEMPLAR (index of path, reason; index of shape)
 *     SHAPE_PATH_ROW (index of shape, index of path)
 *     ASKED    hash of the request and the trace
 */
#ifndef MR_PIPELINE_ACCUMULATE_PRIVATE_H
#define MR_PIPELINE_ACCUMULATE_PRIVATE_H

#include "base/buffer.h"
#include "base/table.h"
#include "net/delta.h"
#include "pipeline/accumulate.h"

#define MR_ACC_NONE UINT32_MAX

enum mr_acc_set_kind {
    MR_ACC_SITE,
    MR_ACC_SCOPE,
    MR_ACC_SOURCE,
    MR_ACC_SPAN_COUNTER,
    MR_ACC_PATH,
    MR_ACC_SHAPE,
    MR_ACC_JOINED,
    MR_ACC_OPEN, /* from here on: rows, in the order in which they are written (open traces first: FORMAT.md section 8) */
    MR_ACC_PATH_ROW,
    MR_ACC_SHAPE_ROW,
    MR_ACC_ENTRY_ROW,
    MR_ACC_LEDGER_ROW,
    MR_ACC_COUNTER,
    MR_ACC_PATH_COUNTER_ROW,
    MR_ACC_JOINED_ROW,
    MR_ACC_JOINED_EDGE_ROW,
    MR_ACC_PART,
    MR_ACC_SHAPE_PATH_ROW,
    MR_ACC_EXEMPLAR,
    MR_ACC_ASKED,
    MR_ACC_SET_COUNT
};
#define MR_ACC_ROWS MR_ACC_OPEN /* the first kind of them */

struct mr_acc_set {
    struct mr_table table;
    uint8_t *items;
    size_t item_size;
    uint32_t count, capacity, limit;
};

/* Where an item stands in the payload that is written now. */
struct mr_acc_place {
    uint32_t part;  /* of this part number; 0: none */
    uint32_t index; /* its number there */
};
struct mr_acc_name {
    struct mr_id id;
    struct mr_acc_place place;
};
struct mr_acc_path {
    struct mr_id id;
    uint32_t parent; /* MR_ACC_NONE: below the scope */
    uint32_t scope;  /* of the whole chain */
    uint32_t site, flags, depth;
    struct mr_acc_place place;
};
struct mr_acc_shape {
    struct mr_id key, node;
    uint32_t scope, path;
    struct mr_acc_place place;
};
struct mr_acc_joined {
    struct mr_id id;
    uint32_t first, count; /* in the accumulator's nodes */
    struct mr_acc_place place;
};
struct mr_acc_path_row {
    uint64_t window;
    uint32_t path;
    struct mr_path_stats stats;
};
struct mr_acc_shape_row {
    uint64_t window;
    uint32_t shape;
    struct mr_shape_stats stats;
};
struct mr_acc_entry_row {
    uint64_t window;
    uint32_t path;
    struct mr_entry_stats stats;
};
struct mr_acc_ledger_row {
    uint32_t source, stream;
    struct mr_ledger_entry entry;
};
struct mr_acc_path_counter_row {
    uint64_t window;
    uint32_t path, counter;
    struct mr_counter_stats stats;
};
struct mr_acc_joined_row {
    uint64_t window;
    uint32_t joined;
    struct mr_joined_stats stats;
};
struct mr_acc_joined_edge_row {
    uint64_t window;
    uint32_t joined, place; /* place: of the node in its shape */
    struct mr_edge_stats stats;
};
struct mr_acc_part {
    struct mr_id id;
    size_t at, size; /* in part_bytes */
};

struct mr_acc_shape_path_row {
    uint32_t shape, path;
    struct mr_shape_path_stats stats;
};
struct mr_acc_exemplar {  /* for one reason */
    uint32_t path, shape; /* shape: MR_ACC_NONE */
    uint32_t source;
    struct mr_exemplar exemplar;
    struct mr_exemplar_call *calls; /* its items; sites by index; owned */
};
struct mr_acc_asked { /* an answer to a request */
    struct mr_id request;
    uint32_t wanted;              /* how many it asks for */
    struct mr_acc_exemplar trace; /* its `why` is MR_EXEMPLAR_ASKED */
};
struct mr_acc_open {
    uint32_t path, stack; /* stack: MR_ACC_NONE */
    struct mr_open_stats stats;
};
struct mr_acc_counter {
    struct mr_id key;
    char name[MR_DELTA_COUNTER_NAME_MAX];
    uint64_t value;
};

/*
 * The items of the payload that is merged now, by their number in it; looked up in the
 * sets when a row names them.
 */
struct mr_acc_local {
    struct mr_id id;                     /* site, scope, source; shape: node */
    uint32_t parent, scope, site, flags; /* path, shape: numbers in the payload */
    uint32_t depth;                      /* path: as far as MR_ACCUMULATOR_DEPTH_MAX */
    uint32_t path;                       /* shape */
    uint32_t first, count;               /* joined shape: in local_nodes */
    uint32_t index;                      /* in its set, if epoch is the accumulator's */
    uint32_t epoch;
};
struct mr_acc_locals {
    struct mr_acc_local *items;
    uint32_t count, capacity;
};

struct mr_acc_nodes {
    struct mr_joined_node *items;
    uint32_t count, capacity;
};

struct mr_acc_order { /* of rows: by a, b, c */
    uint64_t a, b, c;
    uint32_t index;
    uint32_t kind; /* enum mr_acc_set_kind */
};

struct mr_accumulator {
    struct mr_accumulator_limits limits;
    struct mr_acc_set sets[MR_ACC_SET_COUNT];
    uint64_t *windows; /* windows_max of them */
    uint32_t window_count;
    uint32_t epoch;        /* of the sets: one more at every reset, never 0 */
    uint32_t spare_resets; /* in a row, that found most of the rows unused */
    /* the payload that is merged */
    struct mr_delta_reader reader;
    struct mr_delta_item item; /* waits, if has_item */
    bool is_open, has_item;
    enum mr_accumulator_choice choice;
    struct mr_acc_locals locals[MR_ACC_ROWS]; /* by set kind, SITE .. SHAPE */
    struct mr_acc_nodes local_nodes;
    uint32_t *chain; /* scratch: a path and its ancestors */
    uint32_t chain_capacity;
    struct mr_acc_nodes nodes;   /* of joined shapes */
    struct mr_buffer part_bytes; /* of parts */
    /* the state that is written */
    struct mr_acc_order *order;
    uint32_t order_count, order_next, order_capacity;
    uint32_t part;
    struct mr_exemplar_call *calls; /* scratch: of an exemplar that is written */
    uint32_t call_capacity;
    size_t exemplar_bytes; /* of the calls of all exemplars */
    struct mr_accumulator_stats stats;
};

enum mr_status mr_acc_set_init(struct mr_acc_set *set, size_t item_size, uint32_t limit);
void mr_acc_set_fini(struct mr_acc_set *set);
/*
 * The item with `key`; a new one is as the last reset left its memory: all but
 * histograms' memory is to be set. MR_ELIMIT, MR_ENOMEM.
 */
enum mr_status mr_acc_set_take(struct mr_acc_set *set, struct mr_id key, uint32_t *index,
                               bool *is_new);
void mr_acc_set_clear(struct mr_acc_set *set);

static inline void *mr_acc_at(const struct mr_acc_set *set, uint32_t index)
{
    return set->items + index * set->item_size;
}

/*
 * accumulate_names.c: keeps what the open payload says of its next site, scope, source, path
 * or shape; and finds or makes the item of a number that was kept. MR_ELIMIT, MR_ENOMEM; of paths
 * and shapes also MR_EUSAGE: it is too deep for any state.
 */
enum mr_status mr_acc_add_local(struct mr_accumulator *acc, enum mr_acc_set_kind kind,
                                struct mr_acc_local local);
enum mr_status mr_acc_add_path(struct mr_accumulator *acc,
                               const struct mr_delta_item *item);
enum mr_status mr_acc_intern_name(struct mr_accumulator *acc, enum mr_acc_set_kind kind,
                                  uint32_t number, uint32_t *index);
enum mr_status mr_acc_intern_path(struct mr_accumulator *acc, uint32_t number,
                                  uint32_t *index);
enum mr_status mr_acc_intern_shape(struct mr_accumulator *acc, uint32_t number,
                                   uint32_t *index);

/* accumulate.c: for rows. A window label; MR_ELIMIT when too many are open. */
enum mr_status mr_acc_admit_window(struct mr_accumulator *acc, uint64_t window);
/* Empty, and with its memory only where that is worth keeping. */
struct mr_histogram mr_acc_cleared(struct mr_histogram *histogram);

/* accumulate_joined.c: items of traces of several parts. */
enum mr_status mr_acc_add_joined(struct mr_accumulator *acc,
                                 const struct mr_delta_item *item);
enum mr_status mr_acc_merge_joined_stat(struct mr_accumulator *acc,
                                        const struct mr_delta_item *item);
enum mr_status mr_acc_merge_joined_edge(struct mr_accumulator *acc,
                                        const struct mr_delta_item *item);
enum mr_status mr_acc_merge_part(struct mr_accumulator *acc,
                                 const struct mr_delta_item *item);
struct mr_acc_order mr_acc_joined_order(const struct mr_accumulator *acc,
                                        enum mr_acc_set_kind kind, const void *item);
void mr_acc_write_joined(struct mr_accumulator *acc, struct mr_delta_writer *w,
                         enum mr_acc_set_kind kind, const void *item);
/* The histograms in row memory; then all that the sets do not hold. */
void mr_acc_free_joined_histograms(struct mr_accumulator *acc);
void mr_acc_free_joined(struct mr_accumulator *acc);
/* accumulate_traces.c */
enum mr_status mr_acc_merge_exemplar(struct mr_accumulator *acc,
                                     const struct mr_delta_item *item);
enum mr_status mr_acc_merge_shape_path(struct mr_accumulator *acc,
                                       const struct mr_delta_item *item);
/* The item's trace in names of the sets; its calls are still the item's. MR_ELIMIT, MR_ENOMEM. */
enum mr_status mr_acc_exemplar_names(struct mr_accumulator *acc,
                                     const struct mr_delta_item *item,
                                     struct mr_acc_exemplar *row);
/* The trace's calls with sites of the set. MR_ELIMIT, MR_ENOMEM: nothing is left. */
enum mr_status mr_acc_copy_calls(struct mr_accumulator *acc,
                                 const struct mr_exemplar *exemplar,
                                 struct mr_exemplar_call **calls);
/* The row takes the copy; or gives it up. */
void mr_acc_hold_calls(struct mr_accumulator *acc, struct mr_acc_exemplar *row,
                       struct mr_exemplar_call *calls);
void mr_acc_forget_calls(struct mr_accumulator *acc, struct mr_acc_exemplar *row);
/* Before the sets are cleared: of exemplars, and answers too. */
void mr_acc_forget_exemplars(struct mr_accumulator *acc);
/* What it is written with: one that is there for two reasons is written once, for both; 0: not at all. */
uint32_t mr_acc_exemplar_reasons(const struct mr_accumulator *acc,
                                 const struct mr_acc_exemplar *row);
/* Of its shape under its entry point. */
struct mr_id mr_acc_exemplar_id(const struct mr_accumulator *acc,
                                const struct mr_acc_exemplar *row);

/* accumulate_asked.c */
enum mr_status mr_acc_merge_asked(struct mr_accumulator *acc,
                                  const struct mr_delta_item *item);
void mr_acc_forget_asked(struct mr_accumulator *acc);
/* Of the request and the trace. */
struct mr_id mr_acc_asked_id(const struct mr_acc_asked *row);

/* Grows `*array` to hold `needed` items of `size` bytes; new ones are zero. MR_ENOMEM. */
enum mr_status mr_acc_grow(void **array, uint32_t *capacity, uint32_t needed,
                           size_t size);

#endif
