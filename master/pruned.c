/* SPDX-License-Identifier: Apache-2.0 */
#include "master/pruned.h"

#include "base/compiler.h"
#include "base/sum.h"

#include <stdlib.h>
#include <string.h>

static uint64_t number_of(const char *text)
{
    return text ? strtoull(text, NULL, 10) : 0;
}

static bool is_key(const struct mr_model_note *note, enum mr_note key)
{
    return strcmp(note->key, mr_note_name(key)) == 0;
}

/* Of one source. Recorded again: its calls stand, but it is pruned no more. */
static void add_since(const struct mr_model_root *root, const struct mr_model_note *note,
                      struct mr_site_pruned *site)
{
    uint64_t since_ns = number_of(note->value);
    const char *until = mr_model_note_of(root, note->about, note->site,
                                         mr_note_name(MR_NOTE_PRUNED_UNTIL_NS));

    site->was_pruned = true;
    if (number_of(until) != 0)
        return;
    site->sources++;
    if (site->since_ns == 0 || since_ns < site->since_ns)
        site->since_ns = since_ns;
}

static void add_note(const struct mr_model_root *root, const struct mr_model_note *note,
                     struct mr_site_pruned *site)
{
    uint64_t value = number_of(note->value);

    if (is_key(note, MR_NOTE_PRUNED_SINCE_NS)) {
        add_since(root, note, site);
    } else if (is_key(note, MR_NOTE_PRUNED_CALLS)) {
        site->is_counted = true;
        site->calls = value < UINT64_MAX - site->calls ? site->calls + value : UINT64_MAX;
    } else if (is_key(note, MR_NOTE_PRUNED_BELOW_NS) && value > site->below_ns) {
        site->below_ns = value;
    }
}

static bool is_about_pruning(const struct mr_model_note *note)
{
    return !mr_id_is_zero(note->site) && strncmp(note->key, "pruned_", 7) == 0;
}

static void walk_paths(const struct mr_model_root *root, struct mr_site_pruned *by_site)
{
    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_PATH); i++) {
        const struct mr_model_path *path = mr_model_path(root, i);
        const struct mr_path_stats *stats = &mr_model_path_stat(root, i)->stats;

        if (!by_site[path->site].was_pruned)
            continue;
        mr_sum_add(&by_site[path->site].recorded,
                   mr_sum3(stats->ok, stats->failed, stats->incomplete));
        if (path->parent != MR_MODEL_NONE)
            by_site[mr_model_path(root, path->parent)->site].is_above = true;
    }
}

enum mr_status mr_site_pruned_new(const struct mr_model_root *root,
                                  struct mr_site_pruned **pruned)
{
    struct mr_site_pruned *by_site = NULL;

    *pruned = NULL;
    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_NOTE); i++) {
        const struct mr_model_note *note = mr_model_note(root, i);
        uint32_t site;

        if (!is_about_pruning(note))
            continue;
        site = mr_model_find(root, MR_MODEL_SITE, note->site);
        if (site == MR_MODEL_NONE)
            continue;
        if (!by_site)
            by_site = calloc(mr_model_count(root, MR_MODEL_SITE), sizeof(*by_site));
        if (!by_site)
            return MR_ENOMEM;
        add_note(root, note, &by_site[site]);
    }
    if (by_site)
        walk_paths(root, by_site);
    *pruned = by_site;
    return MR_OK;
}

uint64_t mr_site_pruned_estimate(const struct mr_site_pruned *site,
                                 uint64_t recorded_on_path)
{
    mr_u128 calls = (mr_u128)site->calls * recorded_on_path;

    return site->recorded ? (uint64_t)(calls / site->recorded) : 0;
}
