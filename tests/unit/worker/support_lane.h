/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane whose graph counts, a spool of its own, and a sender: the test, over a pair of sockets. What does not come is waited for;
 * CTest ends it.
 *
 *     lane_rig_start_with_sender(rig);
 *     lane_rig_send_chunks(rig, 1);
 *     lane_rig_settle(rig, 1);
 *     lane_rig_wait_for_frames(rig, 1);
 *     lane_rig_stop(rig);
 */
#ifndef MR_TESTS_UNIT_WORKER_SUPPORT_LANE_H
#define MR_TESTS_UNIT_WORKER_SUPPORT_LANE_H

#include "pipeline/handover.h"
#include "worker/lane.h"

#define LANE_MAX_FRAME (1u << 20)
#define LANE_SPOOL_BYTES (UINT64_C(4) << 20)
#define LANE_ANSWER_SIZE 4096

/* A graph of one filter, which counts what comes and what ends. */
struct lane_counting {
    _Atomic uint32_t frames, ends, ended_again; /* the last: streams that were resumed */
    uint32_t frame_us;     /* that a frame takes; set before the first comes */
    uint32_t more_streams; /* than one, that a source hands over; likewise */
    bool passes_on; /* likewise: to a filter on a thread, which takes none until it may */
    _Atomic bool may_take;
};

/* What its graph puts of a source that is handed over: streams without open calls, 1 and on. */
void lane_rig_put_streams(struct mr_handover *handover, uint32_t count);

struct lane_rig {
    char folder[64];
    struct lane_counting counting, *counting_config;
    struct mr_graph *graph;
    struct mr_asks asks;
    struct mr_spool *spool;
    struct mr_worker_counters counters;
    struct mr_driver driver;
    struct mr_lane lane;
    int fd; /* the sender's end of its last connection; -1 */
};

/* On the spool in `folder`. */
void lane_rig_start_on(struct lane_rig *rig, const char *folder, uint64_t grace_ns);
void lane_rig_start(struct lane_rig *rig); /* on a new one */
/* The spool stays. */
void lane_rig_leave(struct lane_rig *rig);
void lane_rig_remove_spool(const struct lane_rig *rig);
void lane_rig_stop(struct lane_rig *rig); /* both */
/* A new connection; the one before is left. */
void lane_rig_connect(struct lane_rig *rig, const struct mr_hello *hello);
/* With frames that have come together with HELLO. */
void lane_rig_connect_with(struct lane_rig *rig, const struct mr_hello *hello,
                           struct mr_span behind);
/* Into `bytes` of LANE_ANSWER_SIZE, which the frame borrows. */
void lane_rig_take_answer(struct lane_rig *rig, uint8_t *bytes, struct mr_frame *frame);
/* The type of the answer, which is WELCOME or ERROR. */
enum mr_frame_type lane_rig_answer(struct lane_rig *rig);
/* The answer is WELCOME: its flags. */
uint16_t lane_rig_welcome(struct lane_rig *rig);
/* The answer is WELCOME, and the sender is to repeat its dictionary. */
bool lane_rig_lacks_dictionary(struct lane_rig *rig);
/* As the sender shows it after `attempt` connections, with nothing in doubt. */
struct mr_hello lane_rig_hello(struct lane_rig *rig, uint64_t attempt);
void lane_rig_send(struct lane_rig *rig, enum mr_frame_type type, uint64_t sequence,
                   struct mr_span payload);
/* The next acknowledgement. */
struct mr_ack lane_rig_next_ack(struct lane_rig *rig);
void lane_rig_settle(struct lane_rig *rig, uint64_t sequence);
/* A frame, and waits until it is acknowledged. */
void lane_rig_send_chunks(struct lane_rig *rig, uint64_t sequence);
void lane_rig_wait_for_frames(struct lane_rig *rig, uint32_t count);
void lane_rig_start_with_sender(struct lane_rig *rig);
/* What forward keeps with its frame `sequence`: the first source of `id` is over, and its frames up to `covered` are in it. */
void lane_rig_commit_end(struct lane_rig *rig, uint64_t sequence, struct mr_id id,
                         uint64_t covered);

#endif
