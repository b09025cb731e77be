/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field             written by  read by    access
 * published         writer      readers    release store [P], acquire load [R]
 * records under it  writer      readers    before [P] only; never after
 * saved_generation  any thread  writer     relaxed: a bound that only grows
 *
 * Pairs: [P]-[R] contents of the root and all below it before the pointer.
 *        [U]-[F] a reader's last read before its unlock; the free after the grace period.
 *        [G]-[F] the garbage, given to call_rcu() by the writer and freed by its thread.
 * liburcu gives both; ThreadSanitizer cannot see into it, so they are annotated.
 * Invariant: what is reachable from a published root is never written again.
 * Progress: readers wait-free; the writer never waits for readers (call_rcu).
 * Checked by: tests/race/test_model.c
 */
#include "master/model.h"

#include "base/assert.h"
#include "base/atomics.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/sum.h"
#include "master/model_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIND_ROOT (MR_MODEL_KIND_ENTRY_POINT + 1)

/* What [U] and [F] name for ThreadSanitizer: one place for all models is enough. */
static const char grace_place = 0;

const char *mr_model_table_name(enum mr_model_table table)
{
    static const char *const names[] = {
#define X(name, text) text,
        MR_MODEL_TABLES(X)
#undef X
    };
    MR_ASSERT(table < MR_MODEL_TABLE_COUNT);
    return names[table];
}

static uint32_t limit_of(const struct mr_model_limits *limits, enum mr_model_table table)
{
    switch (table) {
    case MR_MODEL_SITE:
    case MR_MODEL_SITE_STAT:
        return limits->sites;
    case MR_MODEL_SCOPE:
        return limits->scopes;
    case MR_MODEL_SOURCE:
        return limits->sources;
    case MR_MODEL_STREAM:
        return limits->streams;
    case MR_MODEL_SHAPE:
    case MR_MODEL_SHAPE_STAT:
        return limits->shapes;
    case MR_MODEL_NODE:
        return limits->nodes;
    case MR_MODEL_COUNTER:
        return limits->counters;
    case MR_MODEL_SENDER:
        return limits->senders;
    case MR_MODEL_SPAN_COUNTER:
        return limits->span_counters;
    case MR_MODEL_COUNTER_NOTE:
        return limits->counter_notes;
    case MR_MODEL_PATH_COUNTER:
        return limits->path_counters;
    case MR_MODEL_NOTE:
        return limits->notes;
    case MR_MODEL_JOINED:
        return limits->joined;
    case MR_MODEL_JOINED_EDGE:
        return limits->joined_edges;
    case MR_MODEL_PART:
        return limits->parts;
    case MR_MODEL_EXEMPLAR:
        return MR_MODEL_EXEMPLAR_REASONS * limits->exemplars;
    case MR_MODEL_SHAPE_PATH:
        return limits->shape_paths;
    default:
        return limits->paths;
    }
}

enum mr_status mr_model_new(const struct mr_model_limits *limits, struct mr_model **out)
{
    MR_ASSERT(limits && out);
    struct mr_model *model = calloc(1, sizeof(*model));
    struct mr_model_root *working = calloc(1, sizeof(*working));

    if (!model || !working) {
        free(model);
        free(working);
        return MR_ENOMEM;
    }
    mr_cow_init(&model->cow, &mr_model_cow_type);
    mr_joined_sums_init(&model->join_sums);
    model->limits = *limits;
    model->working = working;
    mr_table_init(&model->exemplar_places,
                  MR_MODEL_EXEMPLAR_REASONS * (limits->exemplars + 1));
    mr_table_init(&model->displaced, limits->exemplars + 1);
    for (int i = 0; i < MR_MODEL_EXEMPLAR_REASONS; i++)
        model->last_exemplar[i] = MR_MODEL_NONE;
    if (mr_joiner_new(limits->parts, &model->joiner) != MR_OK ||
        mr_model_publish(model) != MR_OK) {
        mr_joiner_free(model->joiner);
        free(model);
        free(working);
        return MR_ENOMEM;
    }
    *out = model;
    return MR_OK;
}

void mr_model_on_asked(struct mr_model *model,
                       bool (*on_asked)(void *context, struct mr_id request,
                                        const struct mr_exemplar *exemplar,
                                        struct mr_exemplar *gone),
                       void *context)
{
    model->on_asked = on_asked;
    model->asked_context = context;
}

static void free_indices(struct mr_model_indices *indices)
{
    free(indices->items);
    *indices = (struct mr_model_indices){NULL, 0, 0};
}

static enum mr_status free_points(void *context, uint32_t index, const void *record)
{
    struct mr_cow_array points = ((const struct mr_model_window *)record)->points;

    MR_UNUSED(index);
    mr_cow_array_fini(context, &points);
    return MR_OK;
}

void mr_model_free(struct mr_model *model)
{
    if (!model)
        return;
    struct mr_model_root *working = model->working;

    rcu_barrier(); /* all call_rcu callbacks have run */
    for (uint32_t i = 0; i < MR_SERIES_COUNT; i++) {
        (void)mr_cow_walk(&working->series[i], 0, free_points, &model->cow);
        mr_cow_array_fini(&model->cow, &working->series[i]);
    }
    for (uint32_t i = 0; i < MR_MODEL_TABLE_COUNT; i++) {
        mr_cow_array_fini(&model->cow, &working->tables[i]);
        mr_cow_map_fini(&working->ids[i]);
    }
    mr_cow_map_fini(&working->shape_nodes);
    mr_cow_fini(&model->cow);
    free_indices(&model->sites);
    free_indices(&model->scopes);
    free_indices(&model->sources);
    free_indices(&model->paths);
    free_indices(&model->shapes);
    free_indices(&model->span_counters);
    free_indices(&model->joined);
    free_indices(&model->part_of_slot);
    free_indices(&model->parts_free);
    mr_joiner_free(model->joiner);
    mr_table_fini(&model->exemplar_places);
    mr_table_fini(&model->displaced);
    free(model->calls);
    mr_joined_sums_fini(&model->join_sums);
    free(mr_load_relaxed(&model->published)); /* no other thread any more */
    free(working);
    free(model);
}

void *mr_model_edit(struct mr_model *model, enum mr_model_table table, uint32_t index)
{
    return mr_cow_edit(&model->cow, &model->working->tables[table], index);
}

enum mr_status mr_model_room(struct mr_model *model, enum mr_model_table table)
{
    struct mr_model_root *root = model->working;

    if (root->tables[table].count < limit_of(&model->limits, table))
        return MR_OK;
    root->refused[table]++;
    return MR_ELIMIT;
}

enum mr_status mr_model_append(struct mr_model *model, enum mr_model_table table,
                               const struct mr_id *id, void *record, uint32_t *index)
{
    struct mr_cow_array *array = &model->working->tables[table];
    uint32_t at = array->count;

    if (!record)
        return MR_ENOMEM;
    if (mr_cow_put(&model->cow, array, at, record) != MR_OK) {
        free(record);
        return MR_ENOMEM;
    }
    if (id && mr_cow_map_add(&model->cow, &model->working->ids[table], *id, at) != MR_OK)
        return MR_ENOMEM;
    if (index)
        *index = at;
    return MR_OK;
}

static void free_garbage(struct rcu_head *head)
{
    MR_TSAN_ACQUIRE(&grace_place); /* [F] pairs with [G], [U] in publish, read_unlock */
    mr_cow_garbage_free(MR_CONTAINER_OF(head, struct mr_cow_garbage, rcu));
}

enum mr_status mr_model_publish(struct mr_model *model)
{
    struct mr_model_root *root = malloc(sizeof(*root));
    struct mr_model_root *old = mr_load_relaxed(&model->published); /* only we write it */

    if (!root)
        return MR_ENOMEM;
    /* The old root is of an earlier generation, so it waits with the other garbage. */
    if (old && mr_cow_retire(&model->cow, &old->head) != MR_OK) {
        free(root);
        return MR_ENOMEM;
    }
    model->working->head =
        (struct mr_cow_head){.generation = model->cow.generation, .kind = KIND_ROOT};
    model->working->published_ns = mr_clock_realtime_ns();
    *root = *model->working;
    struct mr_cow_garbage *garbage = mr_cow_publish(&model->cow);
    mr_store_release(&model->published, root); /* [P] pairs with [R] in read_lock() */
    if (garbage) {
        MR_TSAN_RELEASE(&grace_place); /* [G] pairs with [F] in free_garbage() */
        call_rcu(&garbage->rcu, free_garbage);
    }
    return MR_OK;
}

void mr_model_set_journal(struct mr_model *model, uint64_t number)
{
    model->working->journal = number;
}

void mr_model_set_saved(struct mr_model *model, uint64_t generation)
{
    /* Relaxed: a late value only keeps a window longer. */
    mr_store_relaxed(&model->saved_generation, generation);
}

void mr_model_thread_enter(void)
{
    rcu_register_thread();
}

void mr_model_thread_leave(void)
{
    rcu_unregister_thread();
}

const struct mr_model_root *mr_model_read_lock(struct mr_model *model)
{
    rcu_read_lock();
    return mr_load_acquire(&model->published); /* [R] pairs with [P] in publish() */
}

void mr_model_read_unlock(struct mr_model *model)
{
    MR_UNUSED(model);
    MR_TSAN_RELEASE(&grace_place); /* [U] pairs with [F] in free_garbage() */
    rcu_read_unlock();
}

uint64_t mr_ledger_lost(const struct mr_ledger_entry *entry)
{
    uint64_t lost = 0;

    for (uint32_t i = 0; i < MR_LOSS_REASON_COUNT; i++)
        mr_sum_add(&lost, entry->lost[i]);
    return lost;
}

int64_t mr_ledger_gap(const struct mr_ledger_entry *entry)
{
    return (int64_t)(entry->last - entry->reduced - (uint64_t)entry->held -
                     mr_ledger_lost(entry));
}

bool mr_ledger_is_balanced(const struct mr_ledger_entry *entry)
{
    return mr_ledger_gap(entry) == 0;
}

const char *mr_model_site_label(const struct mr_model_site *site,
                                char text[MR_SITE_LABEL_SIZE])
{
    char id[MR_ID_TEXT_SIZE];

    if (!site)
        return "?";
    if (site->name[0])
        return site->name;
    if (site->known && site->module[0])
        snprintf(text, MR_SITE_LABEL_SIZE, "%.120s+0x%" PRIx64, site->module,
                 site->offset);
    else
        snprintf(text, MR_SITE_LABEL_SIZE, "site %s", mr_id_format(site->id, id));
    return text;
}
