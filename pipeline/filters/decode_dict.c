/* SPDX-License-Identifier: Apache-2.0 */
/* Dictionaries of a probe. */
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/encoding.h"
#include "net/ids.h"
#include "pipeline/filters/decode_private.h"

/* Losses that the source counted before the events had a stream: the item is cumulative, the ledger takes increments. */
static enum mr_status take_source_loss(struct mr_decode *decode, struct mr_source *source,
                                       const struct mr_dict_source_loss *loss,
                                       bool is_repetition)
{
    struct mr_stream *none;
    enum mr_status status;
    uint8_t reason = loss->reason > 0 && loss->reason < MR_LOSS_REASON_COUNT
                         ? (uint8_t)loss->reason
                         : MR_LOSS_FORMAT;
    uint64_t told = source->loss_told[reason];

    if (loss->events <= told)
        return MR_OK;
    source->loss_told[reason] = loss->events;
    status = mr_source_stream(source, MR_STREAM_NONE, UINT32_C(1) << 28, &none);
    if (status != MR_OK)
        return status;
    if (is_repetition) { /* another receiver accounts for them */
        none->base_event += none->is_started ? 0 : loss->events - told;
        return MR_OK;
    }
    none->is_started = true;
    return mr_decode_count(decode, none, loss->events - told, reason);
}

static enum mr_status take_stream(struct mr_decode *decode, struct mr_source *source,
                                  const struct mr_dict_stream *item)
{
    struct mr_stream *stream;
    enum mr_status status;

    if (item->stream == MR_STREAM_NONE)
        return MR_OK;
    status = mr_source_stream(source, item->stream, decode->config->streams_max, &stream);
    if (status == MR_ELIMIT)
        return MR_OK; /* its chunks are counted when they come */
    if (status == MR_OK)
        stream->start_wire = item->start_site;
    return status;
}

/* Upward goes what a counter is called, and why it does not count; only those that count have a place in records. */
static enum mr_status take_counter(struct mr_decode *decode, struct mr_source *source,
                                   const struct mr_dict_counter *counter)
{
    struct mr_id id = mr_id_span_counter(counter->name);
    struct mr_dict_item item = {.kind = MR_DICT_SPAN_COUNTER,
                                .span_counter = {.scope = source->scope,
                                                 .id = id,
                                                 .name = counter->name,
                                                 .unit = counter->unit,
                                                 .absent = counter->absent}};
    enum mr_status status;

    if (counter->absent[0] == '\0' && counter->counter == source->counter_count &&
        source->counter_count < MR_SOURCE_COUNTERS_MAX)
        source->counter_ids[source->counter_count++] = id;
    status = mr_dict_batch_put(&decode->dict, decode->filter, &item);
    return status == MR_OK ? mr_dict_batch_emit(&decode->dict, decode->filter) : status;
}

/*
 * For who reads the log, where it is not what was told at last, or what all do: words on the own host. Nor where there was no
 * connection to choose by, as of programs that end at once. The master is told all of it.
 */
static void log_link(struct mr_source *source, const struct mr_dict_link *link)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(MR_SECOND_NS);

    if (link->reason == MR_ENCODING_UNKNOWN ||
        (link->encoding == source->link_encoding && link->reason == source->link_reason))
        return;
    source->link_encoding = link->encoding;
    source->link_reason = link->reason;
    (void)mr_log_limited(
        &limit, MR_LOG_INFO,
        "%s[%u] on %s sends %s: %s (%" PRIu64 " events in %" PRIu64 " bytes before)",
        source->info.app, source->info.pid, source->info.host,
        mr_encoding_name(link->encoding), mr_encoding_reason_text(link->reason),
        link->events, link->bytes);
}

/* Modules, and named sites: what is refused by the table of all sites is counted there, once. */
static enum mr_status take_site_item(struct mr_decode *decode, struct mr_source *source,
                                     const struct mr_dict_item *item)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(MR_MINUTE_NS);
    uint64_t refused = decode->sites->refused;
    enum mr_status status = mr_source_add_site_item(source, decode->sites, item);

    if (status != MR_ELIMIT)
        return status;
    if (decode->sites->refused != refused)
        return MR_OK;
    mr_counters_add(&decode->counters, MR_DECODE_REFUSED_SITES, 1);
    (void)mr_log_limited(&limit, MR_LOG_WARN,
                         "%s[%u] on %s tells of more libraries or spans than there is "
                         "room for: functions of the others show as unknown "
                         "(docs/OPERATIONS.md, Bounds of a worker)",
                         source->info.app, source->info.pid, source->info.host);
    return MR_OK;
}

static enum mr_status take_item(struct mr_decode *decode, struct mr_source *source,
                                const struct mr_dict_item *item, bool is_repetition)
{
    switch (item->kind) {
    case MR_DICT_MODULE:
    case MR_DICT_MODULE_GONE:
    case MR_DICT_NAMED_SITE:
        return take_site_item(decode, source, item);
    case MR_DICT_STREAM:
        return take_stream(decode, source, &item->stream);
    case MR_DICT_SOURCE_LOSS:
        return take_source_loss(decode, source, &item->source_loss, is_repetition);
    case MR_DICT_COUNTER:
        return take_counter(decode, source, &item->counter);
    case MR_DICT_LINK:
        log_link(source, &item->link);
        return mr_decode_link(decode, source, &item->link);
    case MR_DICT_SYNC:
        return mr_decode_sync(decode, source, &item->sync);
    case MR_DICT_TICKER:
        return mr_decode_ticker(decode, source, &item->ticker);
    case MR_DICT_PRUNED:
        return mr_decode_pruned(decode, source, &item->pruned);
    case MR_DICT_NOTE:
        return mr_decode_depth(decode, source, &item->note);
    case MR_DICT_LABEL_KEY:
    case MR_DICT_STRING:
        return MR_OK; /* of records that nothing uses yet */
    case MR_DICT_SITE:
    case MR_DICT_SCOPE:
    case MR_DICT_SOURCE:
    case MR_DICT_OUTER:
    case MR_DICT_NODE:
    case MR_DICT_SPAN_COUNTER:
        break;
    }
    mr_decode_break(decode, source, "DICT frame: item %u is not a probe's",
                    (unsigned)item->kind);
    return MR_OK;
}

enum mr_status mr_decode_dict(struct mr_decode *decode, struct mr_source *source,
                              const struct mr_frame *frame)
{
    bool is_repetition = frame->sequence == 0;
    struct mr_error error = MR_ERROR_NONE;
    struct mr_dict_reader reader;
    struct mr_dict_item item;
    enum mr_status status = mr_dict_open(&reader, frame->payload, &error);

    if (status != MR_OK) {
        mr_decode_break(decode, source, "DICT frame: %s", error.text);
        return status == MR_ENOMEM ? status : MR_OK;
    }
    while (!mr_source_is_broken(source)) {
        status = mr_dict_next(&reader, &item, &error);
        if (status == MR_EFORMAT)
            mr_decode_break(decode, source, "DICT frame: %s", error.text);
        if (status != MR_OK)
            break;
        status = take_item(decode, source, &item, is_repetition);
        if (status == MR_EFORMAT)
            mr_decode_break(decode, source, "DICT frame: named site %u is out of range",
                            item.named_site.site);
        if (status != MR_OK)
            break;
    }
    mr_counters_add(&decode->counters, MR_DECODE_UNKNOWN_ITEMS, reader.unknown);
    mr_dict_close(&reader);
    return status == MR_OK || status == MR_END || status == MR_EFORMAT
               ? mr_decode_flush(decode)
               : status;
}
