/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where measured programs send their events: a process of our own that takes every frame
 * as a worker does (checks it, counts, acknowledges) and forgets it. What came is counted
 * in memory that both processes share.
 *
 *     status = mr_receiver_start(&receiver, NULL, -1, &error);
 *     setenv("MILLRACE_ENDPOINT", receiver.endpoint, 1);  ... run a program ...
 *     mr_receiver_settle(&receiver);                      // its connection has ended
 *     events = mr_load_relaxed(&receiver.totals->events);
 *     mr_receiver_stop(&receiver);
 *
 * The receiver's process lives in a process group of its own and dies with its parent.
 */
#ifndef MR_BENCH_RECEIVER_H
#define MR_BENCH_RECEIVER_H

#include "base/atomics.h"
#include "base/error.h"
#include "bench/command.h"

#include <stdint.h>
#include <sys/types.h>

#define MR_RECEIVER_STAMPS_MAX 200000

/* Since the start; written by the receiver alone, but for what is asked of it. */
struct mr_receiver_totals {
    _Atomic uint64_t opened, closed; /* connections */
    _Atomic uint64_t bytes;          /* read from sockets */
    _Atomic uint64_t events;         /* as chunks tell them, lost ones included */
    _Atomic uint64_t lost;   /* of these, lost: told by the last chunk of a stream */
    _Atomic uint64_t faults; /* frames that break the format */
    /* Asked for by the harness: the full times of the enters that come, in ticks. */
    _Atomic uint64_t wants_stamps, stamp_count;
    uint64_t stamps[MR_RECEIVER_STAMPS_MAX];
};

struct mr_receiver {
    pid_t pid;
    char endpoint[64];
    struct mr_receiver_totals *totals;
    struct mr_usage usage; /* once it was stopped */
};

/*
 * It listens on `host`, an address of this machine, NULL: loopback; and never runs on processor `avoided_cpu`, if there is
 * another; -1: wherever.
 */
enum mr_status mr_receiver_start(struct mr_receiver *receiver, const char *host,
                                 int avoided_cpu, struct mr_error *error);
/*
 * The same, and payloads of HELLO, DICT and CHUNKS frames are appended to the file `path`, each behind a u32 with its
 * type and a u32 with its size; those of one connection, so run one program at a time.
 */
enum mr_status mr_receiver_start_recording(struct mr_receiver *receiver, const char *path,
                                           struct mr_error *error);
/* Waits until no connection is open, at most 5 s. */
void mr_receiver_settle(const struct mr_receiver *receiver);
/* Allowed on one that is all zero. */
void mr_receiver_stop(struct mr_receiver *receiver);

#endif
