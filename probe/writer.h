/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe's writer thread: drains rings into frames, sends them, answers requests.
 * It has every signal blocked, and memory of its own; it takes no lock and calls neither
 * malloc, stdio, the loader nor the resolver, because a thread of the program may hold
 * any of their locks while it waits for room in its ring.
 *
 * This header is what writer.c, writer_io.c, announce.c and repeat.c share; outside the probe's
 * writer only mr_writer_start() and its kin (probe/registry.h) are called.
 */
#ifndef MR_PROBE_WRITER_H
#define MR_PROBE_WRITER_H

#include "net/encoding.h"
#include "net/frame_compress.h"
#include "net/sender.h"
#include "probe/drain.h"
#include "probe/own_fd.h"
#include "probe/pace.h"
#include "probe/patience.h"
#include "probe/place.h"
#include "probe/registry.h"
#include "probe/standing.h"

/* Payload of our frames: what every receiver takes, so no hello has to come first. */
#define MR_WRITER_FRAME MR_WIRE_MAX_FRAME_MIN
/*
 * Of clock hybrid, whose ticks the writer gives while it copies: what it does then with a
 * frame, its checksum above all, should not take much longer than a tick.
 */
#define MR_WRITER_FRAME_HYBRID (MR_WRITER_FRAME / 8)
/* 140 ms of one thread at full speed (118 M events/s), or one round trip of many. */
#define MR_WRITER_OUTBOX (UINT64_C(16) << 20)
/* For what a receiver that moves us away has to say to the next one: open calls, and what they have so far. */
#define MR_WRITER_RESUME (UINT64_C(1) << 20)
/* Frames that may be in the outbox; for the sums behind them. A power of two. */
#define MR_WRITER_FRAMES_MAX 16384
/*
 * What a new receiver may still have to be told of frames that are held: the newest of
 * these. Of more modules closed, or threads ended, within one round trip the functions,
 * or start functions, would be unknown there.
 */
#define MR_WRITER_GONE_MAX 64
#define MR_WRITER_ENDED_MAX 4096

/* HELD: the rings wait for the receiver, see writer.c. */
enum mr_round { MR_ROUND_EMPTY, MR_ROUND_MOVED, MR_ROUND_FULL, MR_ROUND_HELD };

struct mr_gone_module {
    struct mr_module module;
    uint32_t epoch; /* the first without it */
    uint64_t
        until_sequence; /* of the first frame that cannot need it; UINT64_MAX: open */
};

struct mr_stream_note {
    uint32_t stream, tid, start_site;
    uint64_t sequence; /* of the frame with its end */
    char name[MR_RING_NAME_SIZE];
};

struct mr_writer {
    struct mr_probe *probe;
    struct mr_sender sender;
    uint8_t *outbox; /* mapped, and MR_WRITER_RESUME bytes behind it */
    struct mr_drain_frame frame;
    struct mr_ring *next_ring; /* where the next round begins */
    struct mr_clock_info clock;
    bool is_calibrated, has_sender;
    bool is_welcomed;                    /* by some receiver, ever */
    bool is_renewing;                    /* addresses: the helper looks them up */
    uint64_t renew_at_ns, renewed_ended; /* connections that had ended then */
    struct mr_patience end;              /* of mr_writer_may_wait() */
    struct mr_own_fd socket;
    struct mr_own_fd parting; /* the sender's, that it left */
    uint64_t sockets_ended;   /* of the sender, when `socket` was remembered */

    /* Announced so far; see announce.c. */
    struct mr_epochs epochs;
    bool are_modules_announced;
    uint32_t counters_announced;
    uint32_t refusals_announced; /* reasons */
    uint32_t named_announced, named_first;
    uint64_t source_lost[MR_LOSS_REASON_COUNT]; /* as of frame source_lost_sequence */
    uint64_t source_lost_acked[MR_LOSS_REASON_COUNT];
    uint64_t source_lost_sequence;
    uint64_t sync_at_ns;
    uint64_t depth_at_ns, depth_told; /* calls below the limit told, + 1 */
    uint64_t pruned_at_ns;
    uint32_t pruned_next;
    struct mr_dict_writer dict;
    bool is_dict_open;
    uint32_t next_module;
    struct mr_module_table modules;

    /* For a new receiver; see repeat.c. Rings of the newest. */
    uint32_t gone_count, gone_open, ended_count;
    struct mr_gone_module gone[MR_WRITER_GONE_MAX];
    struct mr_stream_note ended[MR_WRITER_ENDED_MAX];
    struct mr_ring *repeat_ring;

    /* events_until[n % MR_WRITER_FRAMES_MAX]: events in frames 1..n. */
    uint64_t events;
    uint64_t events_until[MR_WRITER_FRAMES_MAX];

    /* How frames are written; see writer_encode.c. */
    struct mr_writer_scratch *scratch; /* mapped */
    struct mr_frame_compressor compressor;
    struct mr_encoding_choice choice;
    uint8_t *payload; /* where the frame goes that is being drained */
    bool is_link_told, was_stalled;
    uint64_t link_events;    /* that were told with it */
    uint64_t choice_changes; /* before this `choice` */
    uint64_t choose_at_ns, watched_ns, stalled_ns;
    uint64_t encoded_bytes, encode_ns;

    uint32_t flush_started, flush_rounds_left;
    uint64_t flush_sequence, flush_started_ns;
    uint64_t moved_at_ns; /* when the last pass began that brought something */
    struct mr_pass pass;
    struct mr_pace pace;
    uint32_t frame_chunks; /* of the last frame */
    bool should_flush;     /* mr_arch_should_flush() */
    bool is_near;          /* the receiver is on this host */
    bool is_out_of_room;   /* since the last look of `standing` */
    struct mr_standing standing;
    uint64_t yield_until; /* clock hybrid, ticks: others want our processor */
    uint64_t idle_ns;
    struct mr_place place;
};

/* announce_modules.c: the modules, and what came and went since. False: no room. */
bool mr_announce_modules(struct mr_writer *writer);
/* announce.c: commits what the next CHUNKS frame may need. False: no room. */
bool mr_announce(struct mr_writer *writer, uint64_t now_ns);
/* announce.c: puts an item into the dictionary that goes next. False: no room. */
bool mr_announce_put(struct mr_writer *writer, const struct mr_dict_item *item);
/* announce_pruned.c: sites that are pruned, and how many calls of theirs were counted. */
bool mr_announce_pruned(struct mr_writer *writer, uint64_t now_ns);
/* Whether a site may have been named since. */
bool mr_announce_is_stale(const struct mr_writer *writer);
void mr_announce_module_item(const struct mr_module *module, struct mr_dict_item *item);
void mr_announce_named_item(const struct mr_named_entry *entry, uint32_t index,
                            struct mr_dict_item *item);
void mr_announce_sync_item(const struct mr_writer *writer, struct mr_dict_item *item);
/* Brings source_lost_acked up to date; false while source_lost is on its way. */
bool mr_announce_losses_acked(struct mr_writer *writer);

/* repeat.c: the `announce` of our mr_sender; `context` is the writer. */
size_t mr_repeat(void *context, uint64_t *cursor, uint8_t *out, size_t capacity);
/* A module that left the table in `epoch`. */
void mr_repeat_note_gone(struct mr_writer *writer, const struct mr_module *module,
                         uint32_t epoch);
/* All that is not committed yet is of epoch `oldest` or later. */
void mr_repeat_note_epoch(struct mr_writer *writer, uint32_t oldest);
/* The streams that end in the frame just committed, before their rings are given back. */
void mr_repeat_note_ended(struct mr_writer *writer);

/* writer_encode.c */
/* False: no memory. */
bool mr_writer_encode_init(struct mr_writer *writer);
void mr_writer_encode_after_fork(struct mr_writer *writer);
/* Before there is a connection, and for each new one. */
void mr_writer_choose_first(struct mr_writer *writer);
void mr_writer_choose_for_connection(struct mr_writer *writer);
/* After all input and output: measures, and chooses anew when it is time. */
void mr_writer_watch_link(struct mr_writer *writer, uint64_t now_ns);
/* For mr_probe_link(). */
void mr_writer_tell_link(struct mr_writer *writer);
/* Begins writer->frame, whose chunks mr_writer_encode() then puts at `payload`. */
void mr_writer_open_frame(struct mr_writer *writer, uint8_t *payload);
/* The size of the payload; *flags: of the frame. */
size_t mr_writer_encode(struct mr_writer *writer, uint16_t *flags);

static inline bool mr_writer_is_hybrid(const struct mr_writer *writer)
{
    return writer->probe->clock.mode == MR_CLOCK_MODE_HYBRID;
}

/* Words of rings go into frames of at most so many bytes. */
static inline uint32_t mr_writer_frame_bytes(const struct mr_writer *writer)
{
    /* A receiver that is behind gains more by large ones than ticks, beside it, are worth. */
    return mr_writer_is_hybrid(writer) && writer->sender.window == 0
               ? MR_WRITER_FRAME_HYBRID
               : MR_WRITER_FRAME;
}

/* Before the writer waits, or makes a system call that may take long: nobody ticks by it. */
static inline void mr_writer_rest(const struct mr_writer *writer)
{
    mr_tick_rest(&writer->probe->ticker, writer->frame.ticked);
}

/* writer_io.c */
/* Room for a frame in the outbox, or NULL. */
uint8_t *mr_writer_reserve(struct mr_writer *writer);
void mr_writer_commit(struct mr_writer *writer, enum mr_frame_type type, uint16_t flags,
                      size_t size, uint64_t events);
/* Connects once it can, then sends and receives what can be; true when something moved. */
bool mr_writer_io(struct mr_writer *writer, uint64_t now_ns, uint64_t timeout_ns);
/* In a forked child: gives up the copy of the parent's connection. */
void mr_writer_abandon(struct mr_writer *writer);
/* Events that the receiver has, or that were thrown away where there is to be none. */
uint64_t mr_writer_acked(const struct mr_writer *writer);
/* The same for mr_probe_stats(). */
void mr_writer_tell_acked(const struct mr_writer *writer);
/* The program ends, since writer->end began: whether not yet to give up. To be asked again and again (probe/patience.h). */
bool mr_writer_may_wait(struct mr_writer *writer);
/* The last of it: BYE, and a line to stderr if events could not be sent. */
void mr_writer_finish(struct mr_writer *writer);

#endif
