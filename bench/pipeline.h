/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `millrace bench pipeline`, inside: streams of events, and what each part of a worker costs on them.
 *
 *     pipeline.c         the command: options, order of work
 *     pipeline_streams.c the table of streams: made ones, recorded ones
 *     pipeline_made.c    makes streams: recursions, shapes as often as wanted, ones that never come back
 *     markov.c           call trees that a recorded program could have made
 *     pipeline_record.c  builds a program with the probe, runs it, keeps what it sends
 *     pipeline_lane.c    a lane of the worker, fed with a stream
 *     pipeline_parts.c   one loop over one stream: memcpy, the plain loop (lane_plain.h), filters
 *     pipeline_worker.c  the same through a socket and a real worker
 *     pipeline_replay.c  a stream that is sent again, later
 *     pipeline_threads.c lanes side by side, and filters on threads of their own
 *     pipeline_runner.c  pipes, graphs, merging, names: what is not per event
 *     pipeline_share.c   which share of a stream its shapes and paths tell
 *     pipeline_end.c     a program, its writer, a worker and a master, end to end
 *     pipeline_report.c  numbers of all loops -> results, tables, files
 *
 * A new stream: a line in pipeline_streams.c. One thread, where nothing else is said.
 */
#ifndef MR_BENCH_PIPELINE_H
#define MR_BENCH_PIPELINE_H

#include "base/buffer.h"
#include "base/clock.h"
#include "base/options.h"
#include "bench/build.h"
#include "bench/report.h"
#include "bench/result.h"
#include "bench/rounds.h"
#include "net/control.h"
#include "net/frame.h"
#include "pipeline/graph.h"

#include <limits.h>

struct mr_pipeline_options {
#define MR_OPTION MR_OPTION_FIELD
#include "bench/pipeline_options.def"
#undef MR_OPTION
};

/* What one source sends, as data frames. */
struct mr_bench_frame {
    uint8_t type; /* enum mr_frame_type: DICT or CHUNKS */
    struct mr_span payload;
};

/* Enters and exits as words, for the plain loop: `count` of them, on stack number `stack`. */
struct mr_bench_run {
    uint64_t *words;
    uint32_t count, stack;
};

/* Where messages tell trace ids, in the bytes of a recorded stream: each time that it is sent they are others. */
struct mr_bench_traces {
    size_t *words; /* where a word begins that has 62 bits of one */
    uint32_t count, capacity, generation;
};

struct mr_bench_stream {
    struct mr_hello
        hello; /* of a made stream: constants; of a recorded one: owned by `message` */
    struct mr_hello_message message;
    struct mr_bench_frame *frames;
    uint32_t frame_count, frame_capacity;
    uint64_t events; /* as chunks tell them */
    uint64_t first_ticks,
        last_ticks; /* full times; of a made stream those of the next loop */
    struct mr_bench_run *runs;
    uint32_t run_count, run_capacity, stacks;
    bool
        is_recorded; /* each loop is a new source; of a made one, the next loop goes on where the last one ended */
    struct mr_bench_made *made;     /* of a made stream */
    struct mr_markov *markov;       /* the same: what it is made by, if it is its own */
    uint8_t *bytes;                 /* of a recorded one: what lies in frames */
    struct mr_bench_traces *traces; /* the same */
    const char *const *outer;       /* globs of outer frames; of static life */
    uint32_t outer_count;
};

/* pipeline_made.c */
enum mr_made_kind {
    MR_MADE_RECURSION, /* `number`: depth */
    MR_MADE_MIXED, /* `number` random trees of 200 functions, by Zipf: shapes and paths grow together */
    MR_MADE_SQLITE, /* like speedtest1's, without having it */
    MR_MADE_SHAPES, /* `number` shapes by Zipf over few paths; 0: each trace is like none before */
    MR_MADE_MARKOV /* each trace is like none before, over the paths of a program, as frequent as there: markov.h */
};
#define MR_MADE_FUNCTIONS 4096u /* at most */
struct mr_made_config {
    enum mr_made_kind kind;
    uint64_t number, events;
    uint32_t streams;         /* whole traces take turns on them; 0: one */
    uint32_t levels;          /* MR_MADE_SHAPES: how deep calls nest, 1 .. 5; 0: 5 */
    struct mr_markov *markov; /* MR_MADE_MARKOV: sealed; borrowed */
};
/* About `events`, whole traces. Aborts without memory. */
void mr_bench_make(const struct mr_made_config *config, struct mr_bench_stream *stream);
/*
 * Of a stream whose traces never come back, one like it that is about `events` long, for who is sent it alone; it must be freed before
 * the other. Of another stream nothing, and false: it can be sent again.
 */
bool mr_bench_make_unheard(const struct mr_bench_stream *stream, uint64_t events,
                           struct mr_bench_stream *unheard);
/* The next loop: the clock goes on; streams that never repeat are made anew. */
void mr_bench_advance(struct mr_bench_stream *stream);
/* The loop at hand as the first of a source: its streams begin with event 0. Until the next advance. */
void mr_bench_from_first(struct mr_bench_stream *stream);
void mr_bench_stream_free(struct mr_bench_stream *stream);
void mr_bench_add_frame(struct mr_bench_stream *stream, uint8_t type,
                        struct mr_span payload);
void mr_bench_add_run(struct mr_bench_stream *stream, const struct mr_bench_run *run);

/* pipeline_record.c: runs a program (with `argv` behind it) and keeps what it sends. MR_EIO ... */
struct mr_pipeline_bench;
enum mr_status mr_bench_record(struct mr_pipeline_bench *bench, const char *name,
                               const struct mr_words *argv,
                               struct mr_bench_stream *stream, struct mr_error *error);

/* pipeline_streams.c */
struct mr_stream_kind {
    const char *name;
    enum mr_status (*make)(struct mr_pipeline_bench *bench,
                           const struct mr_stream_kind *kind,
                           struct mr_bench_stream *stream, struct mr_error *error);
    struct mr_made_config made;
    uint32_t in; /* enum mr_stream_group, ored */
};
enum mr_stream_group {
    MR_STREAMS_MAIN = 1, /* all parts; with --quick, those that need no compiler */
    MR_STREAMS_RECORDED = 2,
    MR_STREAMS_SHAPES = 4, /* sweeps: lane and what it is compared with */
    MR_STREAMS_DEPTH = 8,
    MR_STREAMS_COUNT = 16,
};
extern const struct mr_stream_kind mr_stream_kinds[];
extern const size_t mr_stream_kind_count;

/* What is measured on a stream, ns an event. */
enum mr_bench_part {
    MR_BENCH_PART_MEMCPY,
    MR_BENCH_PART_PLAIN,
    MR_BENCH_PART_CONSED, /* the same, subtrees interned */
    MR_BENCH_PART_DECODE,
    MR_BENCH_PART_RECONSTRUCT, /* what the lane costs more with it */
    MR_BENCH_PART_REDUCE,
    MR_BENCH_PART_ANALYSIS, /* reconstruct + reduce */
    MR_BENCH_PART_LANE,
    MR_BENCH_PART_DELTA,  /* deltas, which `lane` is without */
    MR_BENCH_PART_WORKER, /* CPU time of a worker's process, from socket to delta */
    MR_BENCH_PART_COUNT
};
extern const char *const mr_bench_part_names[MR_BENCH_PART_COUNT];

#define MR_BENCH_LOOPS_MAX 1000
#define MR_BENCH_STAGES 3

/* pipeline_lane.c */
struct mr_bench_lane;
/* The first `stages` of decode, reconstruct, reduce. `keep`: NULL, or the kind of one more filter behind them. */
struct mr_bench_lane *mr_bench_lane_new(const struct mr_bench_stream *stream,
                                        uint32_t stages, enum mr_place place,
                                        const struct mr_graph_node *keep);
/* All frames of the stream; of one that was recorded as a source of its own, which lived later than the one before. */
void mr_bench_lane_play(struct mr_bench_lane *lane, const struct mr_bench_stream *stream);
/* From one delta to the next where `paths` have gained, as in a worker whose shortest period is `least_ns`. */
uint64_t mr_bench_lane_period(const struct mr_bench_lane *lane, uint64_t least_ns,
                              uint32_t paths);
/* Plays make deltas, too, one each `period_ns` of the lane's time; 0: none, as at first. */
void mr_bench_lane_set_period(struct mr_bench_lane *lane, uint64_t period_ns);
/* Processor time that it has had; deltas that it made, and what of that was for them. */
uint64_t mr_bench_lane_spent_ns(const struct mr_bench_lane *lane);
uint64_t mr_bench_lane_ticks(const struct mr_bench_lane *lane);
uint64_t mr_bench_lane_ticks_ns(const struct mr_bench_lane *lane);
/* Makes a delta now. */
void mr_bench_lane_tick(struct mr_bench_lane *lane);
void mr_bench_lane_drain(struct mr_bench_lane *lane);
/* Of the last filter's account: "reduced", "lost" ... */
uint64_t mr_bench_lane_counter(const struct mr_bench_lane *lane, const char *name);
void mr_bench_lane_free(struct mr_bench_lane *lane);
/* CPU time of this thread. */
uint64_t mr_bench_cpu_ns(void);

struct mr_pipeline_bench {
    struct mr_pipeline_options options;
    struct mr_build build;
    bool has_build; /* it can compile */
    char sqlite[PATH_MAX];
    char scratch[PATH_MAX]; /* removed at the end */
    bool has_worker;        /* streams are sent to a worker, too */
    uint32_t discarded;
    bool is_partial;
    struct mr_results results;
    struct mr_bench_report report;
};

/* pipeline_parts.c: all loops over one stream, into results. */
enum mr_status mr_pipeline_measure(struct mr_pipeline_bench *bench,
                                   const struct mr_stream_kind *kind,
                                   struct mr_error *error);

/*
 * pipeline_replay.c: streams that are sent again and again. Each time is a source of its own, which lived later than the one
 * before: no time of day runs back. Zero: nothing was sent yet.
 *
 *     mr_bench_begin_anew(&replay, stream);
 *     hello = mr_bench_replay_hello(&replay);
 *     status = mr_bench_replay_frame(&replay, &stream->frames[i], room, &size);     // room: mr_bench_replay_room()
 */
struct mr_bench_replay {
    const struct mr_bench_stream *stream; /* of this time */
    uint64_t plays, later_ns, length_ns;
};
#define MR_BENCH_REPLAY_SPARE 64
void mr_bench_begin_anew(struct mr_bench_replay *replay, struct mr_bench_stream *stream);
/* The same, of a stream that was recorded, whose traces have new ids from now on: nobody may still read its frames. */
void mr_bench_replay_later(struct mr_bench_replay *replay,
                           const struct mr_bench_stream *stream);
/* Borrows the stream's strings. */
struct mr_hello mr_bench_replay_hello(const struct mr_bench_replay *replay);
size_t mr_bench_replay_room(const struct mr_bench_frame *frame);
/* MR_EFORMAT, MR_ENOMEM. A size of 0: there is nothing to be sent. */
enum mr_status mr_bench_replay_frame(const struct mr_bench_replay *replay,
                                     const struct mr_bench_frame *frame, uint8_t *out,
                                     size_t *size);

/* pipeline_worker.c: a real worker that is sent streams. */
struct mr_bench_worker;
enum mr_status mr_bench_worker_start(struct mr_pipeline_bench *bench,
                                     struct mr_bench_worker **worker,
                                     struct mr_error *error);
/*
 * Sends the whole stream, anew until at least `events` went (at least once); the CPU time that its process took for it, ns
 * an event, its deltas included.
 */
enum mr_status mr_bench_worker_play(struct mr_bench_worker *worker,
                                    struct mr_bench_stream *stream, uint64_t events,
                                    double *ns_per_event, struct mr_error *error);
/* Ends it, and gives how many of the events that were sent it did not reduce. MR_EIO: it does not tell. NULL: 0. */
enum mr_status mr_bench_worker_end(struct mr_bench_worker *worker, uint64_t *lost,
                                   struct mr_error *error);
void mr_bench_worker_stop(struct mr_bench_worker *worker); /* NULL allowed */
/* CPU time of a process so far, ns; 0 where /proc does not say. */
uint64_t mr_bench_process_ns(pid_t pid);

/* pipeline_threads.c, pipeline_runner.c, pipeline_share.c, pipeline_end.c: into results. */
enum mr_status mr_pipeline_runner(struct mr_pipeline_bench *bench,
                                  struct mr_error *error);
enum mr_status mr_pipeline_threads(struct mr_pipeline_bench *bench,
                                   struct mr_error *error);
enum mr_status mr_pipeline_share(struct mr_pipeline_bench *bench,
                                 const struct mr_stream_kind *kind,
                                 const struct mr_bench_stream *stream);
enum mr_status mr_pipeline_end(struct mr_pipeline_bench *bench, struct mr_error *error);

/* pipeline_report.c */
enum mr_status mr_pipeline_add(struct mr_pipeline_bench *bench, const char *name,
                               const char *metric, const char *unit, const double *values,
                               size_t count, const char *ratio_to, const double *bottom);
enum mr_status mr_pipeline_write(struct mr_pipeline_bench *bench, struct mr_error *error);

#endif
