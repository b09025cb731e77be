/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane for tests: one source whose events are written as records, chunks and frames, the filters decode, reconstruct and
 * reduce (or the first of them), and a last filter that keeps what comes out.
 *
 *     struct test_lane lane;
 *     test_lane_init(&lane, NULL);                    // or with options
 *     test_lane_announce(&lane, 1, 0);                // stream 1, no start site
 *     test_lane_enter(&lane, 1, SITE, ns); test_lane_exit(...);
 *     test_lane_send(&lane, 1, 0);                    // a frame with one chunk of what was written
 *     test_lane_end(&lane);                           // END, drain
 *     ... lane.out
 *     test_lane_fini(&lane);
 *
 * Times are ns after TEST_START_S; a tick is a ns. Functions are f1, f2, ...: site FIRST + 16 k, offset 16 k.
 */
#ifndef MR_TESTS_UNIT_PIPELINE_SUPPORT_LANE_H
#define MR_TESTS_UNIT_PIPELINE_SUPPORT_LANE_H

#include "net/chunk.h"
#include "pipeline/filters/decode.h"
#include "pipeline/filters/reconstruct.h"
#include "pipeline/filters/reduce.h"
#include "pipeline/graph.h"
#include "pipeline/resume.h"
#include "pipeline/source.h"

#define TEST_START_S UINT64_C(1700000000)
#define TEST_STREAMS 8u /* streams 1 .. 7 */
#define TEST_WORDS_MAX (1u << 20)
#define TEST_SITES 4096u

struct test_options {
    uint32_t stages; /* 1: decode, 2: and reconstruct, 3: and reduce; 0: 3 */
    uint64_t oldest; /* of HELLO; 0: 1 */
    const struct mr_reduce_config *reduce;
    const struct mr_reconstruct_config *reconstruct;
    uint32_t streams_max; /* 0: plenty */
    uint32_t sites_max;   /* the same */
    uint64_t clock_limit_ns;
    enum mr_place place; /* of reconstruct and reduce */
};

struct test_stream {
    uint64_t *words;
    uint32_t count;
    uint64_t time, chunk_time; /* of the last record, of the chunk's beginning */
    uint64_t next_event, events, lost;
};

struct test_out {
    struct mr_batch *first, **end;
    uint64_t dicts, deltas, events;
};

struct test_lane {
    struct mr_sites *sites;
    struct mr_source *source;
    struct mr_graph *graph;
    struct mr_decode_config decode;
    struct mr_reconstruct_config reconstruct;
    struct mr_reduce_config reduce;
    struct test_out *out;
    struct test_stream streams[TEST_STREAMS];
    uint32_t epoch;
    bool is_repeating; /* DICT frames go out of custody */
    uint64_t now_ns;   /* of ticks */
};

struct mr_id test_site_id(uint32_t function); /* f<function>; 0: the unknown site */
struct mr_id test_scope_id(void);

void test_lane_init(struct test_lane *lane, const struct test_options *options);
void test_lane_fini(struct test_lane *lane);

/* mr_outer_config.resolve: "function_N" of function N. */
const char *test_lane_function_name(void *context, const struct mr_site *site);

/* Any DICT item of a probe, in a frame of its own. The module of the functions is told by init. */
void test_lane_item(struct test_lane *lane, const struct mr_dict_item *item);
void test_lane_announce(struct test_lane *lane, uint32_t stream, uint32_t start_function);

/* Records of the chunk being written. */
void test_lane_enter(struct test_lane *lane, uint32_t stream, uint32_t function,
                     uint64_t ns);
void test_lane_exit(struct test_lane *lane, uint32_t stream, uint32_t function,
                    uint64_t ns);
void test_lane_word(struct test_lane *lane, uint32_t stream, uint64_t word);
void test_lane_record(struct test_lane *lane, uint32_t stream, enum mr_record_kind kind,
                      uint64_t ns, const uint64_t *payload, uint32_t count);
/* Prune record; `what`: MR_PRUNE_ON_AGAIN, MR_PRUNE_SETTLED or 0. */
void test_lane_prune(struct test_lane *lane, uint32_t stream, uint32_t function,
                     uint64_t ns, uint64_t what);
void test_lane_loss(struct test_lane *lane, uint32_t stream, uint64_t ns, uint64_t events,
                    uint32_t reason, uint32_t pops, uint32_t pushes);
void test_lane_status(struct test_lane *lane, uint32_t stream, uint64_t ns, bool failed);
void test_lane_unwind(struct test_lane *lane, uint32_t stream, uint64_t ns,
                      uint32_t depth);
/* A frame of a landing, as FORMAT.md has it; `flags`: MR_LANDING_ABOVE or 0. */
uint64_t test_lane_frame(uint32_t function, uint32_t tag, uint64_t flags);
/* A landing of `count` frames, of which the first `left` were left. */
void test_lane_landing(struct test_lane *lane, uint32_t stream, uint64_t ns,
                       uint32_t left, const uint64_t *frames, uint32_t count);
void test_lane_gap(struct test_lane *lane, uint32_t stream,
                   uint64_t events); /* between chunks */

/* Sends what was written as one chunk with these flags. */
void test_lane_send(struct test_lane *lane, uint32_t stream, uint8_t flags);
void test_lane_send_compact(struct test_lane *lane, uint32_t stream, uint8_t flags);
void test_lane_push(struct test_lane *lane, enum mr_frame_type type, const void *payload,
                    size_t size);
void test_lane_tick(struct test_lane *lane, uint64_t later_ns);
/* What the lane has told the spool, where it has marks, of stream 1: for the one that goes on. */
void test_lane_take_marks(const struct test_lane *from, struct mr_resume *resume,
                          struct mr_resume_sites *sites);
/* Of the counters of reduce that have a name (pipeline/filter.h). */
uint64_t test_lane_counter(const struct test_lane *lane, const char *name);
/* The same of decode. */
uint64_t test_lane_decode_counter(const struct test_lane *lane, const char *name);
void test_lane_end(struct test_lane *lane); /* END (finished), then drain; once */
/* Instead: its sender moves, and takes along so many bytes at most (pipeline/handover.h). */
void test_lane_hand_over(struct test_lane *lane, uint32_t payload_bytes);
/* A new lane is where it comes to. */
void test_lane_go_on(struct test_lane *lane, const struct test_lane *before);

#endif
