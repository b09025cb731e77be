/* SPDX-License-Identifier: Apache-2.0 */
#include "base/compiler.h"
#include "base/sum.h"
#include "base/text.h"
#include "master/api_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *mr_json_u64(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

json_t *mr_json_u64_if(bool is_there, uint64_t value)
{
    return is_there ? mr_json_u64(value) : json_null();
}

json_t *mr_json_id(struct mr_id id)
{
    char text[MR_ID_TEXT_SIZE];

    return json_string(mr_id_format(id, text));
}

json_t *mr_json_text(const char *text)
{
    if (!*text)
        return json_null();
    json_t *string = json_string(text);
    if (string)
        return string;
    char *copy = strdup(text); /* what a hostile file name holds */
    if (copy)
        mr_text_make_valid(copy, strlen(copy));
    string = copy ? json_string(copy) : NULL;
    free(copy);
    return string;
}

void mr_json_merge(json_t *into, json_t *from)
{
    json_object_update(into, from);
    json_decref(from);
}

json_t *mr_json_quantile(bool is_there, const struct mr_summary_quantile *quantile)
{
    if (!is_there)
        return json_null();
    return json_pack("{s:f, s:f, s:f}", "value_ns", quantile->value, "low_ns",
                     quantile->low, "high_ns", quantile->high);
}

static json_t *quantile_of(const struct mr_histogram *histogram,
                           const struct mr_times *times, double q)
{
    struct mr_summary_quantile quantile;

    if (mr_histogram_quantile(histogram, q, &quantile.value, &quantile.low,
                              &quantile.high) != MR_OK)
        return json_null();
    mr_summary_clamp(&quantile, times);
    return mr_json_quantile(true, &quantile);
}

json_t *mr_json_quantiles(const struct mr_histogram *histogram,
                          const struct mr_times *times, bool is_timed)
{
    if (!is_timed)
        return json_null();
    return json_pack("{s:o, s:o, s:o}", "p50", quantile_of(histogram, times, 0.5), "p90",
                     quantile_of(histogram, times, 0.9), "p99",
                     quantile_of(histogram, times, 0.99));
}

json_t *mr_json_histogram(const struct mr_histogram *histogram)
{
    json_t *buckets = json_array();
    double step = ldexp(1, -histogram->scale);

    for (uint32_t i = 0; i < histogram->count; i++) {
        double index = (double)histogram->first + i;

        if (histogram->counts[i])
            json_array_append_new(buckets, json_pack("[f, f, o]", exp2(index * step),
                                                     exp2((index + 1) * step),
                                                     mr_json_u64(histogram->counts[i])));
    }
    return json_pack("{s:o, s:i, s:o}", "zero", mr_json_u64(histogram->zero), "scale",
                     histogram->scale, "buckets", buckets);
}

json_t *mr_json_site(const struct mr_model_site *site)
{
    char text[MR_SITE_LABEL_SIZE];

    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "id", mr_json_id(site->id), "name",
                     mr_json_text(mr_model_site_label(site, text)), "module",
                     mr_json_text(site->module), "file", mr_json_text(site->file), "line",
                     mr_json_u64_if(site->line > 0, site->line));
}

json_t *mr_json_ledger(const struct mr_summary_ledger *ledger)
{
    json_t *lost = json_object();

    for (uint32_t i = 0; i < MR_LOSS_REASON_COUNT; i++)
        if (ledger->lost[i] && mr_loss_reason_name(i))
            json_object_set_new(lost, mr_loss_reason_name(i),
                                mr_json_u64(ledger->lost[i]));
    json_t *object =
        json_pack("{s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:b}", "streams",
                  mr_json_u64(ledger->streams), "streams_balanced",
                  mr_json_u64(ledger->streams_balanced), "written",
                  mr_json_u64(ledger->last), "reduced", mr_json_u64(ledger->reduced),
                  "held", (json_int_t)ledger->held, "lost", mr_json_u64(ledger->lost_all),
                  "lost_by_reason", lost, "balanced", ledger->is_balanced);

    mr_json_merge(
        object,
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "sent",
                  mr_json_u64_if(ledger->sources_told > 0, ledger->sent), "past_limit",
                  mr_json_u64(ledger->past_limit), "missing",
                  mr_json_u64(ledger->missing), "host_gone",
                  mr_json_u64(ledger->host_gone), "missing_since_ns",
                  mr_json_u64_if(ledger->missing > 0, ledger->since_ns), "excess",
                  mr_json_u64(ledger->excess), "silent_since_ns",
                  mr_json_u64_if(ledger->sources_silent > 0, ledger->silent_since_ns)));
    return object;
}

json_t *mr_json_path_stats(const struct mr_path_stats *stats)
{
    bool timed = mr_sum(stats->ok, stats->failed) > 0;

    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "calls",
                     mr_json_u64(mr_sum3(stats->ok, stats->failed, stats->incomplete)),
                     "ok", mr_json_u64(stats->ok), "failed", mr_json_u64(stats->failed),
                     "incomplete", mr_json_u64(stats->incomplete), "self_ns",
                     mr_json_u64_if(timed, stats->self.sum), "self_min_ns",
                     mr_json_u64_if(timed, stats->self.min), "self_max_ns",
                     mr_json_u64_if(timed, stats->self.max), "total_ns",
                     mr_json_u64_if(timed, stats->total.sum), "total_min_ns",
                     mr_json_u64_if(timed, stats->total.min), "total_max_ns",
                     mr_json_u64_if(timed, stats->total.max), "total",
                     mr_json_quantiles(&stats->histogram, &stats->total, timed));
}
