/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of docs/FORMAT.md: frame header, frame types, record kinds, loss reasons. Nothing here does anything.
 * Byte order is little-endian; millrace does not run on big-endian machines.
 */
#ifndef MR_NET_WIRE_H
#define MR_NET_WIRE_H

#include <stdint.h>

#define MR_WIRE_MAGIC UINT32_C(0x43524c4d) /* "MLRC" */
#define MR_WIRE_VERSION 1
#define MR_WIRE_HEADER_SIZE 24
#define MR_WIRE_MAX_FRAME_DEFAULT (UINT32_C(4) << 20)
#define MR_WIRE_MAX_FRAME_MIN (UINT32_C(64) << 10)
#define MR_WIRE_MAX_CONTROL                                                              \
    MR_WIRE_MAX_FRAME_MIN    /* of a control frame's payload, both ways */
#define MR_WIRE_FLAG_ZSTD 1u /* data frames only */
/* Of the number of a frame at which a sender begins, or up to which it sent: from there on no number runs over. */
#define MR_WIRE_SEQUENCE_MAX (UINT64_C(1) << 62)

#define MR_WIRE_HEARTBEAT_NS UINT64_C(1000000000)
#define MR_WIRE_SILENCE_NS UINT64_C(5000000000)

/* FORMAT.md section 2: number, name, 1 if it is a data frame. */
#define MR_FRAME_TYPES(X)                                                                \
    X(1, HELLO, 0)                                                                       \
    X(2, WELCOME, 0)                                                                     \
    X(3, ACK, 0)                                                                         \
    X(4, ERROR, 0)                                                                       \
    X(5, HEARTBEAT, 0)                                                                   \
    X(6, MOVE, 0)                                                                        \
    X(7, BYE, 0)                                                                         \
    X(8, SETTLE, 0)                                                                      \
    X(9, ASK, 0)                                                                         \
    X(10, ANSWER, 0)                                                                     \
    X(11, WANTED, 0)                                                                     \
    X(12, RESUME, 0)                                                                     \
    X(13, OFFER, 0)                                                                      \
    X(16, DICT, 1)                                                                       \
    X(17, CHUNKS, 1)                                                                     \
    X(18, DELTA, 1)

enum mr_frame_type {
#define X(number, name, data) MR_FRAME_##name = (number),
    MR_FRAME_TYPES(X)
#undef X
};

/* FORMAT.md section 6.1: number, name, payload words (255: up to MR_RECORD_WORDS_LIMIT), 1 if it counts as an event. */
#define MR_RECORD_KINDS(X)                                                               \
    X(1, SYNC, 1, 0)                                                                     \
    X(2, LOSS, 2, 0)                                                                     \
    X(3, WIDE, 1, 1)                                                                     \
    X(4, SEND, 4, 1)                                                                     \
    X(5, RECEIVE, 4, 1)                                                                  \
    X(6, CAPTURE, 1, 1)                                                                  \
    X(7, ATTACH, 1, 1)                                                                   \
    X(8, DETACH, 1, 1)                                                                   \
    X(9, STATUS, 1, 1)                                                                   \
    X(10, LABEL, 2, 1)                                                                   \
    X(11, MARK, 1, 1)                                                                    \
    X(12, PLOT, 2, 1)                                                                    \
    X(13, SWITCH, 1, 1)                                                                  \
    X(14, COUNTER, 255, 0)                                                               \
    X(15, UNWIND, 1, 1)                                                                  \
    X(16, PRUNE, 1, 0)                                                                   \
    X(17, CUT, 1, 0)                                                                     \
    X(18, LANDING, 255, 0)

/* Payload of a prune record, FORMAT.md section 6.1: the site in bits 0-29, and these. */
#define MR_PRUNE_ON_AGAIN (UINT64_C(1) << 32)
#define MR_PRUNE_SETTLED (UINT64_C(1) << 33)

enum mr_record_kind {
#define X(number, name, words, event) MR_RECORD_##name = (number),
    MR_RECORD_KINDS(X)
#undef X
};

/* FORMAT.md section 9: number, name in code, name shown, meaning. */
#define MR_LOSS_REASONS(X)                                                               \
    X(1, RING_FULL, "ring-full", "the ring was full, policy drop")                       \
    X(2, BLOCK_TIMEOUT, "block-timeout", "the ring stayed full past the block time-out") \
    X(3, OVERWRITTEN, "overwritten", "policy overwrite")                                 \
    X(4, BUDGET, "budget", "no memory for a ring, or a limit of a worker")               \
    X(5, SOURCE_DIED, "source-died", "the source ended with events in its rings")        \
    X(6, CLOCK, "clock", "a time more than a day off")                                   \
    X(7, FORMAT, "format", "missing between two chunks, or not decodable")               \
    X(8, NESTED, "nested", "recorded inside the probe's own slow path")                  \
    X(9, EXIT, "exit", "the program ended before they could be sent")

enum mr_loss_reason {
#define X(number, name, text, meaning) MR_LOSS_##name = (number),
    MR_LOSS_REASONS(X)
#undef X
        MR_LOSS_REASON_COUNT = 10 /* reasons are 1 .. 9; index 0 is never used */
};

/* How a sender writes its data frames, FORMAT.md section 5, link: number, name in code, name shown. */
#define MR_ENCODINGS(X)                                                                  \
    X(0, WORDS, "words")                                                                 \
    X(1, COMPACT, "compact")                                                             \
    X(2, COMPACT_ZSTD, "compact+zstd")

enum mr_encoding {
#define X(number, name, text) MR_ENCODING_##name = (number),
    MR_ENCODINGS(X)
#undef X
        MR_ENCODING_COUNT
};

/* Why it does so: number, name in code, text shown. */
#define MR_ENCODING_REASONS(X)                                                           \
    X(0, UNKNOWN, "no connection yet")                                                   \
    X(1, ASKED, "MILLRACE_ENCODING says so")                                             \
    X(2, SAME_HOST, "the receiver is on this host")                                      \
    X(3, NETWORK, "the receiver is on another host")                                     \
    X(4, LINK_FULL, "the link was full")                                                 \
    X(5, LINK_FREE, "the link has room")                                                 \
    X(6, NO_GAIN, "smaller was no faster: the receiver is what limits")                  \
    X(7, WRITER_BUSY, "the writer could not keep up")

enum mr_encoding_reason {
#define X(number, name, text) MR_ENCODING_##name = (number),
    MR_ENCODING_REASONS(X)
#undef X
};

/* FORMAT.md section 4. */
enum mr_wire_error {
    MR_WIRE_ERROR_FORMAT = 1,
    MR_WIRE_ERROR_VERSION = 2,
    MR_WIRE_ERROR_LIMIT = 3,
    MR_WIRE_ERROR_CHECKSUM = 4,
    MR_WIRE_ERROR_TOKEN = 5,
    MR_WIRE_ERROR_SEQUENCE = 6,
    MR_WIRE_ERROR_STATE = 7,
    MR_WIRE_ERROR_BUSY = 8,
    MR_WIRE_ERROR_LOOP = 9,
    MR_WIRE_ERROR_INTERNAL = 10
};

enum mr_welcome_flag {
    /* The receiver lacks what DICT frames told that it, or another, has acknowledged. */
    MR_WELCOME_WANTS_DICTIONARY = 1,
    /* It goes on with the streams of which another receiver had the beginning. */
    MR_WELCOME_TAKES_RESUME = 2
};

/* Of what is open in a sender that moves: OFFER, FORMAT.md section 4. */
enum mr_offer_step {
    MR_OFFER_MADE = 1, /* by the receiver that it leaves: all RESUME frames are said */
    MR_OFFER_ACCEPTED =
        2, /* by the sender: another receiver takes them, or none is there */
    MR_OFFER_GRANTED = 3 /* by the receiver: it has forgotten what they say */
};

enum mr_bye_reason { MR_BYE_FINISHED = 0, MR_BYE_MOVING = 1, MR_BYE_DRAINING = 2 };

/*
 * The event word, FORMAT.md section 6.1:
 *
 *     63    62    61 ......... 32  31 ....... 0
 *     lap   dir   site (30 bits)   time (low 32 bits of the ticks)
 */
#define MR_WORD_LAP (UINT64_C(1) << 63)
#define MR_WORD_EXIT (UINT64_C(1) << 62)
#define MR_WORD_SITE_SHIFT 32
#define MR_WORD_SITE_MASK UINT32_C(0x3fffffff)
#define MR_WORD_PAYLOAD_MASK (MR_WORD_LAP - 1)
#define MR_RECORD_WORDS_LIMIT 16 /* of a record whose words differ */
#define MR_RECORD_COUNTERS_MAX MR_RECORD_WORDS_LIMIT

/* A landing's payload: a head with the number of functions left, then one word for each frame. */
#define MR_LANDING_WORDS_MAX MR_RECORD_WORDS_LIMIT
#define MR_LANDING_LEFT_MASK UINT64_C(0xff)
#define MR_LANDING_TAG_SHIFT 48
#define MR_LANDING_TAG_MASK UINT64_C(0x3fff)
#define MR_LANDING_ABOVE (UINT64_C(1) << 62)
/* The events of a stream have numbers below: two years of one a nanosecond. So sums over streams stay numbers that add up. */
#define MR_EVENTS_LIMIT (UINT64_C(1) << 56)
#define MR_STREAM_LAST                                                                   \
    (UINT32_MAX - 1) /* of a source; UINT32_MAX is its rest, at the master */
#define MR_TICKS_LIMIT                                                                   \
    (UINT64_C(1) << 62) /* times in ticks are below, 48 years at 3 GHz */

#define MR_SITE_FIRST_NAMED UINT32_C(0x10000)
#define MR_SITE_FIRST_MODULE UINT32_C(0x1000000)
#define MR_SITE_LIMIT UINT32_C(0x40000000)

static inline uint64_t mr_word_event(uint32_t site, uint64_t dir, uint64_t ticks)
{
    return dir | (uint64_t)site << MR_WORD_SITE_SHIFT | (uint32_t)ticks;
}

/* The first word of a record that is no event: `words` payload words follow. */
static inline uint64_t mr_word_record(enum mr_record_kind kind, uint32_t words,
                                      uint64_t dir, uint64_t ticks)
{
    return mr_word_event((uint32_t)kind | words << 8, dir, ticks);
}

static inline uint32_t mr_word_site(uint64_t word)
{
    return (uint32_t)(word >> MR_WORD_SITE_SHIFT) & MR_WORD_SITE_MASK;
}

#endif
