/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of which calls were counted and not recorded, in answers. */
#include "base/sum.h"
#include "master/api_private.h"

/* `calls`: under this name, where they were counted. */
static json_t *pruned_of(const struct mr_site_pruned *site, const char *name,
                         uint64_t calls)
{
    json_t *object;

    if (!site->was_pruned)
        return json_null();
    object = json_pack("{s:o, s:o, s:o}", "sources", mr_json_u64(site->sources),
                       "since_ns", mr_json_u64_if(site->since_ns > 0, site->since_ns),
                       "below_ns", mr_json_u64_if(site->below_ns > 0, site->below_ns));
    json_object_set_new(object, name, mr_json_u64_if(site->is_counted, calls));
    return object;
}

void mr_json_add_pruned(json_t *object, const struct mr_site_pruned *site)
{
    json_object_set_new(object, "pruned",
                        pruned_of(site, "calls_not_recorded", site->calls));
    json_object_set_new(object, "self_includes_pruned", json_boolean(site->is_above));
}

static bool has_pruned_child(const struct mr_site_pruned *pruned,
                             const struct mr_model_root *root, uint32_t path)
{
    uint32_t child = mr_model_path(root, path)->first_child;

    while (child != MR_MODEL_NONE &&
           !mr_site_pruned_of(pruned, mr_model_path(root, child)->site))
        child = mr_model_path(root, child)->next_sibling;
    return child != MR_MODEL_NONE;
}

void mr_json_add_path_pruned(json_t *object, const struct mr_site_pruned *pruned,
                             const struct mr_model_root *root, uint32_t path)
{
    const struct mr_path_stats *stats = &mr_model_path_stat(root, path)->stats;
    uint64_t recorded = mr_sum3(stats->ok, stats->failed, stats->incomplete);
    const struct mr_site_pruned *site =
        mr_site_pruned_of(pruned, mr_model_path(root, path)->site);

    if (!pruned)
        return;
    if (site)
        json_object_set_new(object, "pruned",
                            pruned_of(site, "calls_not_recorded_estimate",
                                      mr_site_pruned_estimate(site, recorded)));
    if (has_pruned_child(pruned, root, path))
        json_object_set_new(object, "self_includes_pruned", json_true());
}
