/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How chunks are written on their way from the rings into the outbox, and how that is chosen (net/encoding.h).
 *
 *     words      rings -> outbox
 *     compact    rings -> scratch.words -> outbox
 *     zstd       rings -> scratch.words -> scratch.packed -> outbox
 *
 * field        written by  read by             access
 * probe->link  we          mr_probe_link()     relaxed: numbers, each for itself
 */
#include "probe/writer.h"

#include "base/clock.h"
#include "net/chunk.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct mr_writer_scratch {
    uint8_t words[MR_WRITER_FRAME];
    uint8_t packed[MR_WRITER_FRAME];
    struct mr_compact_workspace compact;
    MR_ALIGNED(MR_CACHE_LINE) uint8_t zstd[]; /* mr_frame_compressor_size() */
};

static size_t scratch_size(void)
{
    return sizeof(struct mr_writer_scratch) +
           mr_frame_compressor_size(MR_FRAME_COMPRESS_LEVEL);
}

/* Pages of it that no encoding touches cost nothing. */
bool mr_writer_encode_init(struct mr_writer *writer)
{
    void *memory = mmap(NULL, scratch_size(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    writer->scratch = memory == MAP_FAILED ? NULL : memory;
    return writer->scratch != NULL;
}

void mr_writer_encode_after_fork(struct mr_writer *writer)
{
    (void)madvise(writer->scratch, scratch_size(), MADV_DONTNEED);
}

void mr_writer_tell_link(struct mr_writer *writer)
{
    struct mr_link *link = &writer->probe->link;

    /* Relaxed: numbers for people. */
    mr_store_relaxed(&link->encoding, (uint32_t)writer->choice.level);
    mr_store_relaxed(&link->reason, (uint32_t)writer->choice.reason);
    mr_store_relaxed(&link->changes, writer->choice_changes + writer->choice.changes);
    mr_store_relaxed(&link->events, writer->events);
    mr_store_relaxed(&link->bytes, writer->encoded_bytes);
    mr_store_relaxed(&link->encode_ns, writer->encode_ns);
}

static void choose_anew(struct mr_writer *writer, enum mr_encoding base,
                        enum mr_encoding limit, enum mr_encoding_reason reason)
{
    writer->choice_changes += writer->choice.changes;
    if (writer->choice.reason != MR_ENCODING_UNKNOWN)
        writer->choice_changes += writer->choice.level != base;
    mr_encoding_init(&writer->choice, base, limit, reason);
    writer->is_link_told = false;
    mr_writer_tell_link(writer);
}

/* Before there is a connection, by the address that it will be to, if that is known. */
void mr_writer_choose_first(struct mr_writer *writer)
{
    enum mr_encoding asked = writer->probe->config.encoding;

    if (!writer->probe->config.is_encoding_auto)
        choose_anew(writer, asked, asked, MR_ENCODING_ASKED);
    else
        choose_anew(writer, MR_ENCODING_WORDS, MR_ENCODING_COMPACT_ZSTD,
                    MR_ENCODING_UNKNOWN);
}

void mr_writer_choose_for_connection(struct mr_writer *writer)
{
    bool is_near = mr_sender_is_same_host(&writer->sender);
    enum mr_encoding base = is_near ? MR_ENCODING_WORDS : MR_ENCODING_COMPACT;

    writer->is_near = is_near;
    writer->is_link_told = false;
    if (!writer->probe->config.is_encoding_auto)
        return;
    if (writer->choice.reason == MR_ENCODING_UNKNOWN || writer->choice.base != base)
        choose_anew(writer, base, MR_ENCODING_COMPACT_ZSTD,
                    is_near ? MR_ENCODING_SAME_HOST : MR_ENCODING_NETWORK);
}

/* Of this thread. */
static uint64_t busy_ns(void)
{
    struct timespec time;

    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0)
        return 0;
    return (uint64_t)time.tv_sec * MR_SECOND_NS + (uint64_t)time.tv_nsec;
}

static uint64_t lost_for_room(const struct mr_writer *writer)
{
    return mr_load_relaxed(&writer->probe->lost[MR_LOSS_RING_FULL]) +
           mr_load_relaxed(&writer->probe->lost[MR_LOSS_BLOCK_TIMEOUT]);
}

/* Frames wait for the socket; or all were sent, and rings wait instead, see holds_back() in writer.c. */
static bool is_link_full(const struct mr_sender *sender)
{
    return mr_sender_is_stalled(sender) ||
           (sender->window > 0 && sender->send_sequence == sender->next_sequence);
}

void mr_writer_watch_link(struct mr_writer *writer, uint64_t now_ns)
{
    const struct mr_sender *sender = &writer->sender;
    struct mr_encoding_sample sample;

    if (writer->was_stalled && now_ns > writer->watched_ns)
        writer->stalled_ns += now_ns - writer->watched_ns;
    writer->was_stalled = is_link_full(sender);
    writer->watched_ns = now_ns;
    if (now_ns < writer->choose_at_ns || sender->state != MR_SENDER_OPEN)
        return;
    writer->choose_at_ns = now_ns + MR_ENCODING_PERIOD_NS;
    sample = (struct mr_encoding_sample){.now_ns = now_ns,
                                         .events = mr_writer_acked(writer),
                                         .bytes = sender->stats.bytes_sent,
                                         .stalled_ns = writer->stalled_ns,
                                         .busy_ns = busy_ns(),
                                         .lost = lost_for_room(writer),
                                         .acked = sender->oldest_sequence - 1,
                                         .made = sender->next_sequence - 1};
    if (mr_encoding_step(&writer->choice, &sample))
        writer->is_link_told = false;
    mr_writer_tell_link(writer);
}

/* The chunks of `frame` as compact ones to `out`; one that would not be smaller stays. Never more than they were. */
static size_t compact(struct mr_writer *writer, const struct mr_drain_frame *frame,
                      uint8_t *out)
{
    struct mr_span rest = mr_span_of(frame->out, frame->size);
    struct mr_chunk chunk;
    size_t at = 0;

    while (mr_chunk_next(&rest, &chunk) == MR_OK) {
        uint8_t *body = out + at + MR_CHUNK_HEADER_SIZE;
        struct mr_chunk packed = chunk;
        size_t size = chunk.records == 0
                          ? 0
                          : mr_chunk_compact(&chunk, &writer->scratch->compact, body,
                                             chunk.body.size, &packed.records);

        if (size > 0) {
            packed.encoding = MR_CHUNK_COMPACT;
            packed.body = mr_span_of(body, size);
        } else {
            packed.records = chunk.records;
            memcpy(body, chunk.body.data, chunk.body.size);
        }
        mr_chunk_put_header(&packed, out + at);
        at += MR_CHUNK_HEADER_SIZE + packed.body.size;
    }
    return at;
}

static size_t compress(struct mr_writer *writer, size_t packed_size, uint8_t *out,
                       uint16_t *flags)
{
    struct mr_writer_scratch *scratch = writer->scratch;
    struct mr_span packed = mr_span_of(scratch->packed, packed_size);
    size_t size = 0;

    if (writer->compressor.context ||
        mr_frame_compressor_init(&writer->compressor, MR_FRAME_COMPRESS_LEVEL,
                                 scratch->zstd,
                                 scratch_size() - sizeof(*scratch)) == MR_OK)
        size = mr_frame_compress(&writer->compressor, packed, out, MR_WRITER_FRAME);
    if (size == 0) {
        memcpy(out, packed.data, packed.size);
        return packed.size;
    }
    *flags = MR_WIRE_FLAG_ZSTD;
    return size;
}

static uint64_t ticks_of(const struct mr_clock_info *clock, uint64_t ns)
{
    mr_u128 ticks = ((mr_u128)ns << clock->shift) / clock->mult;

    return ticks < UINT64_MAX ? (uint64_t)ticks : UINT64_MAX;
}

/* Ticks of a microsecond tell nothing of single bodies that are cheap. */
static struct mr_site_stats *looked_at(const struct mr_writer *writer)
{
    struct mr_prune *prune = &writer->probe->prune;

    if (!writer->is_calibrated)
        return NULL;
    mr_site_stats_limit(&prune->stats,
                        ticks_of(&writer->clock, mr_load_relaxed(&prune->limit_ns)),
                        ticks_of(&writer->clock, MR_PRUNE_CHEAP_NS));
    return &prune->stats;
}

void mr_writer_open_frame(struct mr_writer *writer, uint8_t *payload)
{
    writer->payload = payload;
    mr_drain_begin(&writer->frame,
                   writer->choice.level == MR_ENCODING_WORDS ? payload
                                                             : writer->scratch->words,
                   mr_writer_frame_bytes(writer));
    writer->frame.stats = looked_at(writer);
    writer->frame.epochs = &writer->epochs;
    if (mr_writer_is_hybrid(writer)) {
        writer->frame.ticker = &writer->probe->ticker;
        writer->frame.is_flushing = writer->should_flush;
    }
}

size_t mr_writer_encode(struct mr_writer *writer, uint16_t *flags)
{
    const struct mr_drain_frame *frame = &writer->frame;
    uint64_t start_ns = mr_clock_monotonic_ns();
    size_t size = frame->size;

    *flags = 0;
    if (frame->out != writer->payload) {
        if (writer->choice.level == MR_ENCODING_COMPACT_ZSTD)
            size = compress(writer, compact(writer, frame, writer->scratch->packed),
                            writer->payload, flags);
        else
            size = compact(writer, frame, writer->payload);
        writer->encode_ns += mr_clock_monotonic_ns() - start_ns;
    }
    writer->encoded_bytes += MR_WIRE_HEADER_SIZE + size;
    return size;
}
