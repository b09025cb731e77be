/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where other monitoring systems send: a process of our own that takes all bytes and forgets them. One that speaks HTTP
 * answers each request with 200, and counts the spans of OTLP requests (protobuf). One thread; the process dies with its
 * parent.
 *
 *     status = mr_drain_start(&drain, MR_DRAIN_OTLP, &error);
 *     ... run a program that sends to 127.0.0.1:drain.port ...
 *     mr_drain_stop(&drain);
 *     ... drain.bytes, drain.spans, drain.usage ...
 */
#ifndef MR_BENCH_DRAIN_H
#define MR_BENCH_DRAIN_H

#include "base/error.h"
#include "bench/command.h"

#include <stdint.h>
#include <sys/types.h>

enum mr_drain_protocol {
    MR_DRAIN_NOTHING, /* not used */
    MR_DRAIN_BYTES,
    MR_DRAIN_OTLP /* HTTP with protobuf */
};

struct mr_drain_totals;

struct mr_drain {
    pid_t pid;
    uint16_t port;
    struct mr_drain_totals *totals; /* shared with the process */
    /* Once it was stopped. */
    uint64_t bytes, spans;
    struct mr_usage usage;
};

enum mr_status mr_drain_start(struct mr_drain *drain, enum mr_drain_protocol protocol,
                              struct mr_error *error);
/* Waits, at most 5 s, until all connections have ended. Allowed on all zeros. */
void mr_drain_stop(struct mr_drain *drain);

/* Spans in an ExportTraceServiceRequest: fields 1 (resource), 2 (scope), 2 (span). What breaks off is counted up to there. */
uint64_t mr_drain_count_spans(const uint8_t *data, size_t size);

#endif
