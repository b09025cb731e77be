/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a flight recorder (policy overwrite): all that a stranger needs to make
 * chunks and a dictionary of what a process recorded, whether it lives, hangs or is dead.
 * Written through a shared mapping by the process (probe/recorder.c, probe/ring.c), read
 * by `millrace record --dump` (probe/recorder_read.c).
 *
 *     0         header        below; pages are there from the start
 *     modules   table         MR_RECORDER_MODULES_MAX x struct mr_recorder_module
 *     named     table         struct mr_named_entry each, pages as they are used
 *     rings     table         struct mr_recorder_ring each
 *     words     rings         8-byte words, each ring at its own place
 *
 * The file is as long as all of it and sparse: what is not used takes no memory. It is
 * of one machine and one version of millrace: `version` changes with any layout here.
 *
 * The file is locked (flock) by the mapping itself as long as the process lives: who gets
 * the lock knows that it is dead, whatever its pid means by now.
 *
 * One ring:
 *
 *      words    ....|--- segment ---|--- segment ---|-- granted --|
 *      anchors      A               A               A
 *
 * An anchor tells of an index, always that of a record's first word: number of the event
 * there, its full time, the epoch. A reader begins at the oldest anchor whose words are
 * still there, so at most one segment (1/8 of the ring) cannot be read.
 */
#ifndef MR_PROBE_RECORDER_FORMAT_H
#define MR_PROBE_RECORDER_FORMAT_H

#include "base/compiler.h"
#include "net/wire.h"
#include "probe/cuts.h"
#include "probe/named.h"

#include <stdint.h>

#define MR_RECORDER_MAGIC UINT64_C(0x314345525f524c4d) /* "MLR_REC1" */
#define MR_RECORDER_VERSION 2
#define MR_RECORDER_MODULES_MAX 2048
#define MR_RECORDER_TEXT_SIZE 256
#define MR_RECORDER_PATH_SIZE 1024
#define MR_RECORDER_ATTRIBUTES_SIZE 4096
/* Name of the file: prefix, pid, '-', 16 digits, suffix. */
#define MR_RECORDER_PREFIX "millrace-"
#define MR_RECORDER_SUFFIX ".recorder"
#define MR_RECORDER_SUFFIX_NEW ".new" /* a forked child's, before its first event */
#define MR_RECORDER_NAME_SIZE 64
#define MR_RECORDER_SEGMENTS 8 /* of a ring */
#define MR_RECORDER_ANCHORS 16 /* two laps of them */
#define MR_RECORDER_STRIPES 8
#define MR_RECORDER_NONE UINT64_MAX

/* What one stripe lost before there was a stream; cumulative. */
struct mr_loss_stripe {
    MR_ALIGNED(MR_CACHE_LINE) _Atomic uint64_t lost[MR_LOSS_REASON_COUNT];
};

struct mr_recorder_module {
    /* Odd while it is being written. */
    _Atomic uint32_t version;
    _Atomic uint32_t epoch_gone; /* 0: it is there */
    uint32_t epoch, site_base, sites, is_executable, build_id_size;
    uint64_t address, size, bias;
    uint8_t build_id[32];
    char path[MR_RECORDER_PATH_SIZE];
};

/* All zero in an anchor that was never made but `index`, which is MR_RECORDER_NONE. */
struct mr_recorder_anchor {
    _Atomic uint64_t index; /* MR_RECORDER_NONE while the others change */
    _Atomic uint64_t event; /* number of the event at index */
    _Atomic uint64_t ticks;
    _Atomic uint64_t epoch;
};

/* Who has a ring. Two copies: the other one is filled, then `generation` moves on. */
struct mr_recorder_stream {
    _Atomic uint32_t stream, tid, start_site, reserved;
    _Atomic uint64_t start_ticks;
    _Atomic uint64_t first_index; /* of the ring's words */
    /* Streams that had the ring before, and all their events: overwritten. */
    _Atomic uint64_t streams_before, events_before;
    _Atomic uint64_t
        end_event;        /* with `end`: how many events there were, lost ones too */
    _Atomic uint64_t end; /* MR_RECORDER_NONE, or the thread has ended: its last index */
    _Atomic char name[MR_RECORDER_NAME_SIZE];
};

struct mr_recorder_ring {
    /* Constant once is_made. */
    _Atomic uint32_t is_made;
    uint32_t reserved;
    uint64_t words_offset, capacity; /* in words */
    /* Of the thread that takes it. */
    struct mr_recorder_stream streams[2]; /* [generation & 1] */
    _Atomic uint32_t generation;          /* 0: nobody had it */
    /* The owner's. */
    MR_ALIGNED(MR_CACHE_LINE) _Atomic uint64_t granted; /* words below may be written */
    _Atomic uint64_t
        writing; /* index of a record of several words, or MR_RECORDER_NONE */
    struct mr_recorder_anchor anchors[MR_RECORDER_ANCHORS];
};

/* Two pairs as in probe/clock.h. */
struct mr_recorder_sample {
    uint64_t raw_ticks, raw_ns, real_ticks, real_ns, error_ticks;
};

struct mr_recorder_header {
    _Atomic uint64_t magic; /* the last to be written of what is constant */
    uint32_t version, header_size;
    uint64_t file_size;
    uint64_t id_hi, id_lo;
    uint32_t pid, is_forked;
    uint64_t start_ns;
    uint32_t clock_mode; /* enum mr_clock_mode */
    /* Places; sizes of an element, and how many there are at most. */
    uint32_t module_size, named_size, ring_size;
    uint32_t module_max, named_max, ring_max, attribute_count;
    uint64_t modules_offset, named_offset, rings_offset, words_offset;
    char host[MR_RECORDER_TEXT_SIZE], app[MR_RECORDER_TEXT_SIZE];
    char program_version[MR_RECORDER_TEXT_SIZE];
    char exe[MR_RECORDER_PATH_SIZE];
    char clock_warning[MR_RECORDER_TEXT_SIZE];
    char attributes[MR_RECORDER_ATTRIBUTES_SIZE]; /* key \0 value \0 ... */
    /* Changing. */
    _Atomic uint32_t module_count, ring_count, epoch;
    _Atomic uint32_t is_ended;      /* the program came to its normal end */
    _Atomic uint32_t depth_limit;   /* levels; 0: none */
    _Atomic uint64_t depth_skipped; /* calls below it, as of some 100 ms ago */
    _Atomic uint64_t words_used;    /* bytes */
    struct mr_recorder_sample first_sample, last_samples[2]; /* [sample_count & 1] */
    _Atomic uint32_t sample_count;                           /* 0: none but the first */
    struct mr_cuts cuts; /* when recording was switched */
    struct mr_loss_stripe stripes[MR_RECORDER_STRIPES];
};

#endif
