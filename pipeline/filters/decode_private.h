/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of decode: decode.c is the filter, decode_chunk.c reads chunks (decode_run.c and decode_run_wide.c their hot part,
 * decode_repeat.c what repeats), decode_dict.c dictionaries, decode_clock.c clocks. Not for others.
 */
#ifndef MR_PIPELINE_FILTERS_DECODE_PRIVATE_H
#define MR_PIPELINE_FILTERS_DECODE_PRIVATE_H

#include "pipeline/counters.h"
#include "pipeline/dict_batch.h"
#include "pipeline/filters/decode.h"

enum mr_decode_counter {
    MR_DECODE_BROKEN,        /* sources cut off */
    MR_DECODE_DISCARDED,     /* frames of broken or ended sources */
    MR_DECODE_INVERSIONS,    /* times clamped */
    MR_DECODE_UNKNOWN_SITES, /* events of sites that nobody told */
    MR_DECODE_UNKNOWN_RECORDS,
    MR_DECODE_CUTS,          /* records of a switch of the probe */
    MR_DECODE_UNKNOWN_ITEMS, /* of DICT and DELTA payloads */
    MR_DECODE_GAPS,          /* runs of events missing between chunks */
    MR_DECODE_REFUSED_SITES, /* past a limit */
    MR_DECODE_REFUSED_STREAMS,
    MR_DECODE_UNKNOWN_VALUES, /* of counters that nobody told */
    MR_DECODE_NOT_RESUMED,    /* streams told twice, or at a time that no clock tells */
    /* Of chunks as they came, expanded; headers among the bytes. */
    MR_DECODE_WORDS_EVENTS,
    MR_DECODE_WORDS_BYTES,
    MR_DECODE_COMPACT_EVENTS,
    MR_DECODE_COMPACT_BYTES,
    MR_DECODE_COUNTERS,
    MR_DECODE_SUM_LOST =
        MR_DECODE_COUNTERS /* as reduce has it, for the metrics of this process alone */
};

struct mr_decode {
    struct mr_filter *filter;
    const struct mr_decode_config *config;
    struct mr_sites *sites;
    struct mr_counters counters;
    struct mr_dict_batch dict;
    struct mr_batch *out; /* EVENTS being filled, or NULL */
    uint32_t announced;   /* sites below this number were told upward */
    uint64_t refused_told;
    uint64_t sequence; /* of the frame at hand */
    /* The chunk being read. */
    struct mr_source *source;
    struct mr_stream *stream;
    uint32_t epoch;
    uint64_t counted;                   /* its events so far, lost ones included */
    uint64_t unknown_records;           /* in this chunk */
    uint64_t inversions, unknown_sites; /* gathered here, counted once a chunk */
    uint64_t safe_ticks;                /* times up to this one can be told in ns */
    bool is_clock_off;                  /* a time of the chunk is not */
    struct mr_record_reader reader;
    struct mr_record record;
};

/* Gives a source up: breaks it and counts. */
MR_PRINTF(3, 4)
void mr_decode_break(struct mr_decode *decode, struct mr_source *source,
                     const char *format, ...);
/* Tells new sites upward, then emits `out`. */
enum mr_status mr_decode_flush(struct mr_decode *decode);
/* Makes `out` a batch of this stream with room for at least one event. */
enum mr_status mr_decode_reserve(struct mr_decode *decode, struct mr_stream *stream);
enum mr_status mr_decode_add(struct mr_decode *decode, struct mr_stream *stream,
                             const struct mr_event *event);
/* Accounts for events that are no calls; `reason` 0: reduced, else lost. */
enum mr_status mr_decode_count(struct mr_decode *decode, struct mr_stream *stream,
                               uint64_t events, uint8_t reason);

/* decode_clock.c: what a source's hello told of its clock; a sync, a ticker; the last of it. */
enum mr_status mr_decode_clock_facts(struct mr_decode *decode, struct mr_source *source);
enum mr_status mr_decode_sync(struct mr_decode *decode, struct mr_source *source,
                              const struct mr_dict_sync *sync);
enum mr_status mr_decode_ticker(struct mr_decode *decode, struct mr_source *source,
                                const struct mr_dict_ticker *ticker);
enum mr_status mr_decode_depth(struct mr_decode *decode, struct mr_source *source,
                               const struct mr_dict_note *note);
/* A note about the source; `site` zero: about the whole of it. */
enum mr_status mr_decode_put_note(struct mr_decode *decode, struct mr_source *source,
                                  struct mr_id site, enum mr_note note,
                                  const char *value);
/* Later notes hold, also over those that another worker made of this source before. */
void mr_decode_next_version(struct mr_source *source, uint64_t wall_ns);
enum mr_status mr_decode_link(struct mr_decode *decode, struct mr_source *source,
                              const struct mr_dict_link *link);
enum mr_status mr_decode_clock_end(struct mr_decode *decode, struct mr_source *source);

/* decode_run.c: turns the next records into events while they are enters and exits of known sites. Returns how many. */
uint32_t mr_decode_run(struct mr_decode *decode, struct mr_event *out, uint32_t capacity);
/*
 * decode_repeat.c: takes what the next words repeat of the stream's call tree, in batches of their own. `*look_at`: so many words
 * further on it is worth looking again, at most as many as a batch has; 0: now. MR_ENOMEM, or what emitting returns.
 */
enum mr_status mr_decode_repeats(struct mr_decode *decode, uint32_t *look_at);
/* The last `count` words, from `words` on, were these events: the stream's repeat may be among them. */
void mr_decode_learn_wire(struct mr_decode *decode, const uint8_t *words,
                          const struct mr_event *events, uint32_t count);
/* The stream has ended, or its repeat is of no use. */
void mr_decode_drop_repeat(struct mr_stream *stream);
/* decode_prune.c: a site that is not recorded, or again: notes about it. */
enum mr_status mr_decode_pruned(struct mr_decode *decode, struct mr_source *source,
                                const struct mr_dict_pruned *pruned);

/* decode_resume.c: the streams of a source that goes on where another process stood, before its first new frame. */
enum mr_status mr_decode_resume(struct mr_decode *decode, struct mr_source *source);
/* Behind a frame (sequence 0: out of custody) or the end of the source. */
enum mr_status mr_decode_mark(struct mr_decode *decode, struct mr_source *source,
                              uint64_t sequence);

/* A CHUNKS payload. */
enum mr_status mr_decode_chunks(struct mr_decode *decode, struct mr_source *source,
                                struct mr_span payload);
/* A DICT frame of a probe; one of sequence 0 repeats what an earlier receiver acknowledged. */
enum mr_status mr_decode_dict(struct mr_decode *decode, struct mr_source *source,
                              const struct mr_frame *frame);

#endif
