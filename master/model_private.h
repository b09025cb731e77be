/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's side of the model, for the model_*.c files and the store's loader alone:
 * find or add a record, add statistics. All return MR_OK, MR_ELIMIT (counted in the
 * root's `refused`; the caller goes on) or MR_ENOMEM (the model cannot go on).
 *
 * Use:
 *     status = mr_model_add_site(model, id, &site);
 *     if (status == MR_OK)
 *         status = mr_model_add_path(model, parent, scope, site, flags, &path);
 */
#ifndef MR_MASTER_MODEL_PRIVATE_H
#define MR_MASTER_MODEL_PRIVATE_H

#include "base/table.h"
#include "master/model.h"
#include "pipeline/joined_rows.h"

#include <stdbool.h>

/* Indices of one delta's items in the model; MR_MODEL_NONE: refused. */
struct mr_model_indices {
    uint32_t *items;
    uint32_t count, capacity;
};

#define MR_MODEL_EXEMPLAR_REASONS (MR_EXEMPLAR_WHYS + 1) /* and asked for */

struct mr_model {
    struct mr_model_root *working; /* the writer's; a copy of it is published */
    struct mr_cow cow;
    struct mr_model_limits limits;
    struct mr_model_indices sites, scopes, sources, paths, shapes, span_counters, joined;
    uint32_t streams_beside; /* rows beside the limit: of the rest, and of no stream */
    struct mr_joiner *joiner;
    struct mr_joined_sums join_sums;      /* scratch */
    struct mr_joiner_stats join_told;     /* in counters already */
    uint64_t parts[MR_PARTS_COUNT];       /* since then: not in counters yet */
    struct mr_model_indices part_of_slot; /* the joiner's slot -> index in PART */
    struct mr_model_indices parts_free;   /* free indices in PART */
    struct mr_table exemplar_places;      /* place -> record */
    struct mr_table displaced;            /* traces that were answers; not stored */
    uint32_t exemplar_counts[MR_MODEL_EXEMPLAR_REASONS];
    uint32_t last_exemplar
        [MR_MODEL_EXEMPLAR_REASONS]; /* the worst; MR_MODEL_NONE: not known */
    size_t exemplar_bytes;
    size_t
        asked_bytes; /* of those that were asked for: apart, as nobody else may take their room */
    bool (*on_asked)(void *context, struct mr_id request,
                     const struct mr_exemplar *exemplar, struct mr_exemplar *gone);
    void *asked_context;
    struct mr_exemplar_call *calls; /* scratch of one that is applied */
    uint32_t call_capacity;
    _Atomic uint64_t saved_generation;
    bool waits_for_store; /* the series keep what is not saved */
    struct mr_model_root *_Atomic published;
};

extern const struct mr_cow_type mr_model_cow_type;

/* model_record.c */
void *mr_model_record_new(uint32_t kind, size_t size);
/* A record of `size` bytes with `count` texts behind it; texts[i] becomes the copy. */
void *mr_model_record_new_texts(uint32_t kind, size_t size, const char **texts,
                                uint32_t count);

/* model.c: the writer's own copy of a record; NULL: no memory. */
void *mr_model_edit(struct mr_model *model, enum mr_model_table table, uint32_t index);
/* Appends (takes) a record under `id` (NULL: none) unless the table is full. */
enum mr_status mr_model_append(struct mr_model *model, enum mr_model_table table,
                               const struct mr_id *id, void *record, uint32_t *index);
/* MR_ELIMIT, counted, when no more fit. */
enum mr_status mr_model_room(struct mr_model *model, enum mr_model_table table);

/* model_dict.c: things by id, with or without what is known of them. */
enum mr_status mr_model_add_site(struct mr_model *model, struct mr_id id,
                                 uint32_t *index);
enum mr_status mr_model_add_scope(struct mr_model *model, struct mr_id id,
                                  uint32_t *index);
enum mr_status mr_model_add_source(struct mr_model *model, struct mr_id id,
                                   uint32_t *index);
enum mr_status mr_model_put_site(struct mr_model *model, const struct mr_dict_site *site);
enum mr_status mr_model_put_scope(struct mr_model *model,
                                  const struct mr_dict_scope *scope);
enum mr_status mr_model_put_source(struct mr_model *model,
                                   const struct mr_dict_source *source);
enum mr_status mr_model_put_outer(struct mr_model *model,
                                  const struct mr_dict_outer *outer);
enum mr_status mr_model_put_node(struct mr_model *model, const struct mr_dict_node *node);

/* model_path.c */
enum mr_status mr_model_add_path(struct mr_model *model, uint32_t parent, uint32_t scope,
                                 uint32_t site, uint32_t flags, uint32_t *index);
/* window 0: into the totals alone (the loader's). */
enum mr_status mr_model_add_path_stats(struct mr_model *model, uint32_t path,
                                       const struct mr_path_stats *stats);
enum mr_status mr_model_add_entry_stats(struct mr_model *model, uint32_t entry,
                                        const struct mr_entry_stats *stats);

/* model_shape.c */
enum mr_status mr_model_add_shape(struct mr_model *model, uint32_t scope, uint32_t entry,
                                  struct mr_id node, uint32_t *index);
enum mr_status mr_model_add_shape_stats(struct mr_model *model, uint32_t shape,
                                        const struct mr_shape_stats *stats);

/* model_delta.c; MR_ELIMIT of a stream: not counted, its place is the row of the rest. */
enum mr_status mr_model_add_stream(struct mr_model *model, uint32_t source,
                                   uint32_t stream, const struct mr_ledger_entry *entry);
enum mr_status mr_model_add_counter(struct mr_model *model, const char *name,
                                    uint64_t value);

/* model_counters.c */
enum mr_status mr_model_add_span_counter(struct mr_model *model, struct mr_id id,
                                         uint32_t *index);
enum mr_status mr_model_name_span_counter(struct mr_model *model, uint32_t index,
                                          const char *name, const char *unit);
enum mr_status mr_model_put_span_counter(struct mr_model *model,
                                         const struct mr_dict_span_counter *counter);
enum mr_status mr_model_add_path_counter(struct mr_model *model, uint32_t path,
                                         uint32_t counter,
                                         const struct mr_counter_stats *stats);

/* model_joined.c */
enum mr_status mr_model_add_joined(struct mr_model *model, struct mr_id id,
                                   const struct mr_joined_node *nodes, uint32_t count,
                                   uint32_t *index);
/* Counts traces that are in no row, as their joined shape was refused. */
enum mr_status mr_model_refuse_joined(struct mr_model *model,
                                      const struct mr_joined_stats *stats);
enum mr_status mr_model_add_joined_stats(struct mr_model *model, uint32_t joined,
                                         const struct mr_joined_stats *stats);
enum mr_status mr_model_add_edge_stats(struct mr_model *model, uint32_t joined,
                                       uint32_t place, const struct mr_edge_stats *stats);
/* Joins it with what waits. */
enum mr_status mr_model_add_part(struct mr_model *model, const struct mr_part *part);
/* The loader: the next place in PART, a free one without bytes. MR_EFORMAT. */
enum mr_status mr_model_load_part(struct mr_model *model, struct mr_span bytes);
/*
 * The loader, behind a publish: all that was loaded waits again. Traces that a lower limit ends are a change of this generation, so the
 * next checkpoint saves them.
 */
enum mr_status mr_model_join_loaded(struct mr_model *model);
/* model_traces.c; the exemplar's sites are the model's. One that loses is forgotten, and MR_OK. */
enum mr_status mr_model_put_exemplar(struct mr_model *model, uint32_t entry,
                                     uint32_t shape, uint32_t source,
                                     const struct mr_exemplar *exemplar);
/* One that was asked for. The trace `gone`, if it is there, is no answer any more. */
enum mr_status mr_model_put_answer(struct mr_model *model, uint32_t entry, uint32_t shape,
                                   uint32_t source, const struct mr_exemplar *exemplar,
                                   struct mr_id gone);
enum mr_status mr_model_add_shape_path(struct mr_model *model, uint32_t shape,
                                       uint32_t path,
                                       const struct mr_shape_path_stats *stats);

/* model_notes.c */
enum mr_status mr_model_put_note(struct mr_model *model, const struct mr_dict_note *note);

/*
 * model_series.c: adds to the point (window, index) of a series. `stats` is of the
 * series' kind (mr_entry_stats, mr_shape_stats, mr_path_stats). Points that are too late,
 * too far in the future of `now_s`, or past the limit are counted, and MR_OK.
 */
enum mr_status mr_model_add_point(struct mr_model *model, enum mr_model_series series,
                                  uint64_t window, uint64_t now_s, uint32_t index,
                                  const void *stats);

#endif
