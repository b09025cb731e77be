/* SPDX-License-Identifier: Apache-2.0 */
/* The slowest trace that is kept with its calls: one line, in text and as JSON. */
#include "cli/summary_private.h"

static const char *status_text(enum mr_exemplar_status status)
{
    static const char *const texts[MR_EXEMPLAR_STATUS_COUNT] = {
        [MR_EXEMPLAR_OK] = "ok",
        [MR_EXEMPLAR_FAILED] = "failed",
        [MR_EXEMPLAR_INCOMPLETE] = "incomplete"};

    return texts[status];
}

enum mr_status mr_summary_put_kept(const struct mr_summary *summary,
                                   struct mr_buffer *out)
{
    const struct mr_summary_kept *kept = &summary->kept;
    char time[MR_RENDER_SIZE], count[MR_RENDER_SIZE];
    enum mr_status status;

    if (kept->shapes == 0)
        return MR_OK;
    status =
        mr_render_line(out, "Slowest   %s, %s, %s, %s calls: ", kept->name,
                       mr_summary_time(summary, kept->ns, 1, time),
                       status_text(kept->status), mr_render_count(kept->calls, count));
    for (uint32_t i = 0; status == MR_OK && i < kept->inner_count; i++)
        status =
            mr_render_line(out, "%s%s %s", i ? ", " : "", kept->inner[i].name,
                           mr_summary_time(summary, kept->inner[i].self_ns, 1, time));
    if (status == MR_OK && kept->elided_calls)
        status = mr_buffer_append_format(
            out, "; elided %s calls, %s", mr_render_count(kept->elided_calls, count),
            mr_summary_time(summary, kept->elided_ns, kept->elided_calls, time));
    return status == MR_OK
               ? mr_buffer_append_text(out, " (the calls that took longest themselves)\n")
               : status;
}

json_t *mr_summary_kept_json(const struct mr_summary *summary)
{
    const struct mr_summary_kept *kept = &summary->kept;
    char id[MR_ID_TEXT_SIZE];
    json_t *object = json_object(), *inner = json_array();

    for (uint32_t i = 0; i < kept->inner_count; i++)
        (void)json_array_append_new(
            inner,
            json_pack("{s:o, s:I}", "name", mr_summary_text_json(kept->inner[i].name),
                      "self_ns", mr_summary_number(kept->inner[i].self_ns)));
    (void)json_object_set_new(object, "id", json_string(mr_id_format(kept->id, id)));
    (void)json_object_set_new(object, "name", mr_summary_text_json(kept->name));
    (void)json_object_set_new(object, "status", json_string(status_text(kept->status)));
    (void)json_object_set_new(object, "start_ns",
                              json_integer(mr_summary_number(kept->start_ns)));
    (void)json_object_set_new(object, "time_ns",
                              json_integer(mr_summary_number(kept->ns)));
    (void)json_object_set_new(object, "calls",
                              json_integer(mr_summary_number(kept->calls)));
    (void)json_object_set_new(object, "elided_calls",
                              json_integer(mr_summary_number(kept->elided_calls)));
    (void)json_object_set_new(object, "elided_ns",
                              json_integer(mr_summary_number(kept->elided_ns)));
    (void)json_object_set_new(object, "longest", inner);
    return object;
}
