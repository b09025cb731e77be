/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where events are on their way from probes to here, all sources together. What nobody has told is null: a probe tells when it
 * connects and when it ends, workers tell in their deltas, once a second.
 */
#include "base/atomics.h"
#include "base/compiler.h"
#include "base/sum.h"
#include "master/api_private.h"

#include <string.h>

/* What the decode filters of level 1 have counted, however it was encoded. */
static json_t *received(const struct mr_model_root *root)
{
    static const char *const names[] = {"decode_words_events", "decode_compact_events"};
    uint64_t events = 0;
    bool is_told = false;

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_COUNTER); i++) {
        const struct mr_model_counter *counter = mr_model_counter(root, i);

        for (size_t n = 0; n < MR_ARRAY_COUNT(names); n++) {
            if (strcmp(counter->name, names[n]) != 0)
                continue;
            is_told = true;
            mr_sum_add(&events, counter->value);
        }
    }
    return mr_json_u64_if(is_told, events);
}

/* What workers did with frames, summed by level; a level that told nothing is not there. */
static json_t *levels(const struct mr_model_root *root)
{
    json_t *object = json_object();

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_COUNTER); i++) {
        const struct mr_model_counter *counter = mr_model_counter(root, i);
        char level[MR_SUMMARY_LEVEL_SIZE];
        const char *name = mr_summary_level_counter(counter->name, level);

        if (!name)
            continue;
        if (!json_object_get(object, level))
            json_object_set_new(object, level, json_object());
        json_object_set_new(json_object_get(object, level), name,
                            mr_json_u64(counter->value));
    }
    return object;
}

/* At the master: frames applied, frames that had come before, and whether all that is shown is durable. */
static json_t *here(const struct mr_api *api)
{
    const struct mr_ingest_counters *counters = mr_ingest_counters(api->ingest);
    struct mr_store_stats stats;

    mr_store_stats(api->store, &stats);
    /* Relaxed: each is a number of its own. */
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:b}", "frames",
        mr_json_u64(mr_load_relaxed(&counters->frames)), "duplicates",
        mr_json_u64(mr_load_relaxed(&counters->duplicates)), "register_questions",
        mr_json_u64(mr_load_relaxed(&counters->questions)), "pending_bytes",
        mr_json_u64(stats.pending_bytes), "durable", stats.pending_bytes == 0);
}

json_t *mr_api_stages(struct mr_api_request *request,
                      const struct mr_summary_ledger *ledger)
{
    const struct mr_api *api = request->api;
    json_t *object = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "sources",
        mr_json_u64(ledger->sources), "sources_told", mr_json_u64(ledger->sources_told),
        "sources_silent", mr_json_u64(ledger->sources_silent), "sources_died",
        mr_json_u64(ledger->sources_died), "sent",
        mr_json_u64_if(ledger->sources_told > 0, ledger->sent), "received",
        received(request->root), "reduced", mr_json_u64(ledger->reduced), "held",
        (json_int_t)ledger->held, "lost", mr_json_u64(ledger->lost_all));

    mr_json_merge(object, json_pack("{s:o, s:o, s:o, s:o, s:o}", "levels",
                                    levels(request->root), "in_custody",
                                    mr_json_u64(ledger->missing - ledger->host_gone),
                                    "host_gone", mr_json_u64(ledger->host_gone), "excess",
                                    mr_json_u64(ledger->excess), "master",
                                    api->ingest && api->store ? here(api) : json_null()));
    return object;
}
