/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ingest: one thread that accepts workers, checks their HELLO, pushes their frames
 * through the graph into the model, queues them in the store, and acknowledges them when
 * the store has them. The only writer of the model.
 *
 *     frame -> seen before? drop : graph (repository) -> store queue ... committed -> ACK
 *
 * A frame counts once per (sender, sequence), also across restarts: WELCOME tells what is
 * durable, and what was applied but is not durable yet is recognised when it comes again.
 *
 * Use:
 *     mr_ingest_start(&config, &ingest, &error);
 *     mr_ingest_stop(ingest);           // no more frames; the model is published
 *     mr_store_stop(store);
 *     mr_ingest_free(ingest);           // last acknowledgements, closes
 */
#ifndef MR_MASTER_INGEST_H
#define MR_MASTER_INGEST_H

#include "base/error.h"
#include "master/model.h"
#include "master/store.h"
#include "master/wanted.h"
#include "pipeline/graph.h"

#include <stdatomic.h>
#include <stdint.h>

#define MR_INGEST_PUBLISH_NS                                                             \
    UINT64_C(100000000) /* readers see the model this late, or when it is acknowledged */
#define MR_INGEST_SENDERS_MAX (1u << 20)
#define MR_INGEST_ANSWERS_MAX 65536u /* questions to the register under way */

struct mr_ingest_config {
    int listen_fd;     /* taken */
    const char *token; /* "": none is asked for; borrowed */
    uint32_t max_frame;
    uint32_t max_connections;
    uint64_t credit; /* bytes that one sender may have sent without acknowledgement */
    uint64_t join_timeout_ns;      /* of traces to which no further part comes */
    struct mr_wanted_book *wanted; /* borrowed: requests for exemplars; NULL: none */
    struct mr_model *model;
    struct mr_store *store;
};

/* Written by the ingest thread, read by any: plain counters, relaxed. */
#define MR_INGEST_COUNTERS(X)                                                            \
    X(connections, "connections that are open")                                          \
    X(accepted, "connections that came")                                                 \
    X(refused, "connections that were refused or cut off, with an ERROR frame")          \
    X(frames, "data frames applied")                                                     \
    X(bytes, "bytes read from workers")                                                  \
    X(duplicates, "data frames that came again and were dropped")                        \
    X(bad_frames, "data frames that broke the format")                                   \
    X(gaps, "connections whose sender's oldest frame lay past our position")             \
    X(questions, "questions to the register of custody")                                 \
    X(wanted_told, "lists of requests for exemplars sent to workers")                    \
    X(looks, "connections looked at, in a turn, for something to tell them")             \
    X(pauses, "times that reading waited for the store")                                 \
    X(publishes, "versions of the model published")                                      \
    X(publish_ns, "time spent publishing")                                               \
    X(progress_ns, "monotonic time of the last turn")

struct mr_ingest_counters {
#define X(name, help) _Atomic uint64_t name;
    MR_INGEST_COUNTERS(X)
#undef X
};

struct mr_ingest;

enum mr_status mr_ingest_start(const struct mr_ingest_config *config,
                               struct mr_ingest **ingest, struct mr_error *error);
/* Ends the thread: no more frames are taken, all that were are published and queued. */
void mr_ingest_stop(struct mr_ingest *ingest);
/* After mr_store_stop(): acknowledges what became durable, closes all, frees. */
void mr_ingest_free(struct mr_ingest *ingest); /* NULL allowed */

const struct mr_ingest_counters *mr_ingest_counters(const struct mr_ingest *ingest);
const struct mr_graph *mr_ingest_graph(const struct mr_ingest *ingest);
/* False, with the reason, once ingest ended by itself. Any thread. */
bool mr_ingest_is_alive(struct mr_ingest *ingest);
/* Readable (poll) when ingest ended by itself. */
int mr_ingest_end_fd(const struct mr_ingest *ingest);

#endif
