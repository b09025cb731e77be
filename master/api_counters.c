/* SPDX-License-Identifier: Apache-2.0 */
/* Counters on spans as JSON: there only where there are any. */
#include "master/api_private.h"

static json_t *stats(const struct mr_counter_stats *stats)
{
    bool counted = stats->calls > 0;

    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "calls",
                     mr_json_u64(stats->calls), "backward", mr_json_u64(stats->backward),
                     "self", mr_json_u64_if(counted, stats->self.sum), "self_min",
                     mr_json_u64_if(counted, stats->self.min), "self_max",
                     mr_json_u64_if(counted, stats->self.max), "total",
                     mr_json_u64_if(counted, stats->total.sum), "total_min",
                     mr_json_u64_if(counted, stats->total.min), "total_max",
                     mr_json_u64_if(counted, stats->total.max));
}

void mr_json_add_path_counters(json_t *object, const struct mr_model_root *root,
                               uint32_t path)
{
    json_t *all = NULL;

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_SPAN_COUNTER); i++) {
        const struct mr_counter_stats *of_path = mr_model_counter_of_path(root, path, i);
        const struct mr_model_span_counter *counter = mr_model_span_counter(root, i);
        char text[MR_ID_TEXT_SIZE];

        if (!of_path)
            continue;
        if (!all)
            all = json_object();
        json_object_set_new(
            all, counter->known ? counter->name : mr_id_format(counter->id, text),
            stats(of_path));
    }
    if (all)
        json_object_set_new(object, "counters", all);
}

void mr_json_add_function_counters(json_t *object, const struct mr_summary *summary,
                                   const struct mr_summary_function *row)
{
    json_t *all = NULL;

    for (size_t i = 0; row->counts && i < summary->counter_count; i++) {
        if (row->counts[i].calls + row->counts[i].backward == 0)
            continue;
        if (!all)
            all = json_object();
        json_object_set_new(all, summary->counters[i].name, stats(&row->counts[i]));
    }
    if (all)
        json_object_set_new(object, "counters", all);
}

static json_t *absences(const struct mr_model_root *root, uint32_t counter)
{
    json_t *rows = json_array();

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_COUNTER_NOTE); i++) {
        const struct mr_model_counter_note *note = mr_model_counter_note(root, i);
        const struct mr_model_scope *scope = mr_model_scope(root, note->scope);

        if (note->counter == counter && note->absent[0])
            json_array_append_new(rows, json_pack("{s:o, s:o, s:o, s:o}", "app",
                                                  mr_json_text(scope->app), "version",
                                                  mr_json_text(scope->version), "host",
                                                  mr_json_text(scope->host), "reason",
                                                  mr_json_text(note->absent)));
    }
    return rows;
}

static bool is_counted(const struct mr_model_root *root, uint32_t counter)
{
    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_COUNTER_NOTE); i++) {
        const struct mr_model_counter_note *note = mr_model_counter_note(root, i);

        if (note->counter == counter && note->absent[0] == '\0')
            return true;
    }
    return false;
}

void mr_json_add_counters(json_t *body, const struct mr_model_root *root)
{
    uint32_t count = mr_model_count(root, MR_MODEL_SPAN_COUNTER);
    json_t *rows;

    if (count == 0)
        return;
    rows = json_array();
    for (uint32_t i = 0; i < count; i++) {
        const struct mr_model_span_counter *counter = mr_model_span_counter(root, i);

        json_array_append_new(
            rows,
            json_pack("{s:o, s:o, s:o, s:b, s:o}", "id", mr_json_id(counter->id), "name",
                      mr_json_text(counter->name), "unit", mr_json_text(counter->unit),
                      "counted", is_counted(root, i), "absent", absences(root, i)));
    }
    json_object_set_new(body, "counters", rows);
}
