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
#include "probe/registry.h"

/* Payload of our frames: what every receiver takes, so no hello has to come first. */
#define MR_WRITER_FRAME MR_WIRE_MAX_FRAME_MIN
/* 140 ms of one thread at full speed (118 M events/s), or one round trip of many. */
#define MR_WRITER_OUTBOX (UINT64_C(16) << 20)
/* Frames that may be in the outbox; for the sums behind them. A power of two. */
#define MR_WRITER_FRAMES_MAX 16384
/*
 * What a new receiver may still have to be told of frames that are held: the newest of
 * these. Of more modules closed, or threads ended, within one round trip the functions,
 * or start functions, would be unknown there.
 */
#define MR_WRITER_GONE_MAX 64
#define MR_WRITER_ENDED_MAX 4096

enum mr_round { MR_ROUND_EMPTY, MR_ROUND_MOVED, MR_ROUND_FULL };

struct mr_gone_module {
    struct mr_module module;
    uint64_t until_sequence; /* of the first frame that cannot need it */
};

struct mr_stream_note {
    uint32_t stream, tid, start_site;
    uint64_t sequence; /* of the frame with its end */
    char name[MR_RING_NAME_SIZE];
};

struct mr_writer {
    struct mr_probe *probe;
    struct mr_sender sender;
    uint8_t *outbox; /* mapped */
    struct mr_drain_frame frame;
    struct mr_ring *next_ring; /* where the next round begins */
    struct mr_clock_info clock;
    bool is_calibrated, has_sender;
    bool is_welcomed; /* by some receiver, ever */
    struct mr_own_fd socket;
    uint64_t sockets_ended; /* of the sender, when `socket` was remembered */

    /* Announced so far; see announce.c. */
    uint32_t epoch;
    bool are_modules_announced;
    uint32_t counters_announced;
    bool is_refusal_announced;
    /* Modules have gone: what is in the rings may be theirs, and is sent before. */
    uint32_t old_rounds_left;
    bool is_old_drained;
    uint32_t named_announced, named_first;
    uint64_t source_lost[MR_LOSS_REASON_COUNT]; /* as of frame source_lost_sequence */
    uint64_t source_lost_acked[MR_LOSS_REASON_COUNT];
    uint64_t source_lost_sequence;
    uint64_t sync_at_ns;
    uint64_t depth_at_ns, depth_told; /* calls below the limit told, + 1 */
    struct mr_dict_writer dict;
    bool is_dict_open;
    uint32_t next_module;
    struct mr_module_table modules;

    /* For a new receiver; see repeat.c. Rings of the newest. */
    uint32_t gone_count, ended_count;
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
    uint64_t choice_changes; /* before this `choice` */
    uint64_t choose_at_ns, watched_ns, stalled_ns;
    uint64_t encoded_bytes, encode_ns;

    uint32_t flush_started, flush_rounds_left;
    uint64_t flush_sequence;
    uint64_t moved_at_ns, moved_bytes; /* by the last pass */
    uint64_t idle_ns, nap_ns;
};

/* writer.c: frames that are enough to empty every ring as it is now, however threads go on. */
uint32_t mr_writer_flush_rounds(struct mr_writer *writer);

/* announce.c: commits what the next CHUNKS frame may need. False: no room. */
bool mr_announce(struct mr_writer *writer, uint64_t now_ns);
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
/* A module that is about to leave the table. */
void mr_repeat_note_gone(struct mr_writer *writer, const struct mr_module *module);
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

/* writer_io.c */
/* Room for a frame in the outbox, or NULL. */
uint8_t *mr_writer_reserve(struct mr_writer *writer);
void mr_writer_commit(struct mr_writer *writer, enum mr_frame_type type, uint16_t flags,
                      size_t size, uint64_t events);
/* Connects once it can, then sends and receives what can be; true when something moved. */
bool mr_writer_io(struct mr_writer *writer, uint64_t now_ns, uint64_t timeout_ns);
/* In a forked child: gives up the copy of the parent's connection. */
void mr_writer_abandon(struct mr_writer *writer);
/* Events that the receiver has. */
uint64_t mr_writer_acked(const struct mr_writer *writer);
/* When to give up, at the end of a program that began at `start_ns`. */
uint64_t mr_writer_deadline_ns(const struct mr_writer *writer, uint64_t start_ns);
/* The end of the program: BYE, and a line to stderr if events could not be sent. */
void mr_writer_finish(struct mr_writer *writer, uint64_t start_ns);

#endif
