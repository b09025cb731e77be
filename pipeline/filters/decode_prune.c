/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sites that a probe records no more because they are called often and do little. From where
 * on, each stream says itself; what is told here is for people: since when, and how many
 * calls nobody recorded. Upward it goes as notes about the site, of this source.
 */
#include "pipeline/filters/decode_private.h"

#include <inttypes.h>
#include <stdio.h>

static enum mr_status put_number(struct mr_decode *decode, struct mr_source *source,
                                 struct mr_id site, enum mr_note note, uint64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    return mr_decode_put_note(decode, source, site, note, text);
}

static enum mr_status put_notes(struct mr_decode *decode, struct mr_source *source,
                                struct mr_id site, const struct mr_dict_pruned *pruned)
{
    uint64_t ns = mr_ticks_ns(&source->ticks, pruned->ticks);
    enum mr_status status;

    mr_decode_next_version(source, source->drift.last_ns);
    if (pruned->flags & MR_PRUNED_NOW) {
        status = put_number(decode, source, site, MR_NOTE_PRUNED_SINCE_NS, ns);
        if (status == MR_OK)
            status = put_number(decode, source, site, MR_NOTE_PRUNED_BELOW_NS,
                                pruned->limit_ns);
        ns = 0;
    } else {
        status = MR_OK;
    }
    if (status == MR_OK)
        status = put_number(decode, source, site, MR_NOTE_PRUNED_UNTIL_NS, ns);
    if (status == MR_OK && pruned->flags & MR_PRUNED_COUNTED)
        status = put_number(decode, source, site, MR_NOTE_PRUNED_CALLS, pruned->calls);
    return status == MR_OK ? mr_dict_batch_emit(&decode->dict, decode->filter) : status;
}

enum mr_status mr_decode_pruned(struct mr_decode *decode, struct mr_source *source,
                                const struct mr_dict_pruned *pruned)
{
    uint32_t site = mr_source_look_up(source, decode->sites, pruned->epoch, pruned->site);

    if (site == MR_SITE_UNKNOWN || !mr_ticks_fit(&source->info.clock, pruned->ticks))
        return MR_OK;
    return put_notes(decode, source, mr_sites_at(decode->sites, site)->id, pruned);
}
