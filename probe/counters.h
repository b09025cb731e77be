/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters on spans: what the kernel or the processor counts for a thread (page faults,
 * instructions, ...), read where a span begins and where it ends (MILLRACE_COUNTERS).
 *
 *     mr_counters_start(&probe->counters, names, complain);     // before threads run
 *     ...
 *     mr_counters_event(&mr_thread_self, mr_event_enter(site)); // instead of mr_ring_event()
 *     mr_counters_thread_end(&probe->counters);                 // closes what it opened
 *
 * At the start each counter is tried once: the kernel's reason why it cannot be had
 * travels in its place. Then every thread opens its own at its first counted event: all of
 * them or none, with the first such reason kept. Hardware events are read from the page
 * that the kernel maps (probe/counters_page.h); software events, and what cannot be read
 * there, by a system call each.
 *
 * Bounds: MR_COUNTERS_MAX counters; as many descriptors as a quarter of the limit that the
 * program has, so that it does not run out of its own; threads past that are not counted.
 *
 * start, after_fork: while one thread runs. event, thread_end: the thread itself, event in
 * signal handlers, too, and with errno preserved. item: the writer.
 */
#ifndef MR_PROBE_COUNTERS_H
#define MR_PROBE_COUNTERS_H

#include "probe/counters_names.h"
#include "probe/ring.h"

#define MR_COUNTERS_MAX 4
#define MR_COUNTERS_NAMES_MAX 16 /* told: those that count, and those that are absent */
#define MR_COUNTER_REASON_SIZE 200
#define MR_COUNTERS_DESCRIPTORS_MAX 4096
#define MR_COUNTERS_REASONS_MAX 4 /* kept of why threads went without */
/* As `refused`: no errno. */
#define MR_COUNTERS_BUDGET UINT32_MAX

/*
 * Which events go through mr_counters_event(): to have their counters read, or, with
 * MR_COUNTED_DEPTH, to be looked at by probe/depth.h. Bits of mr_hook_state.counted.
 */
enum mr_counted { MR_COUNTED_SPANS = 1, MR_COUNTED_FUNCTIONS = 2, MR_COUNTED_DEPTH = 4 };

struct mr_counter {
    struct mr_counter_event event;
    char absent[MR_COUNTER_REASON_SIZE]; /* "": it counts */
};

struct mr_counter_thread; /* probe/counters_thread.c */

struct mr_counters {
    /* Set at the start, then constant. Those that count come first. */
    uint32_t count, present;
    uint32_t threads_max;
    struct mr_counter items[MR_COUNTERS_NAMES_MAX];
    char budget[MR_COUNTER_REASON_SIZE]; /* why there are no more threads than that */
    struct mr_counter_thread *threads;   /* threads_max, in memory that a fork wipes */
    /* By thread and place, so that a forked child can close them. */
    _Atomic int32_t descriptors[MR_COUNTERS_DESCRIPTORS_MAX]; /* + 1 */
    uint64_t ids[MR_COUNTERS_DESCRIPTORS_MAX];
    /* Why threads went without, each errno once, in the order met; 0: no more of them. */
    _Atomic uint32_t refused[MR_COUNTERS_REASONS_MAX];
};

/*
 * Names with commas. What cannot be counted is absent with a reason; what is no name at
 * all has a line by `complain` as well. False: nothing counts.
 */
bool mr_counters_start(struct mr_counters *counters, const char *names,
                       void (*complain)(const char *text));
/* In a forked child: closes what counts its parent's threads. */
void mr_counters_after_fork(struct mr_counters *counters);

/* An enter or exit of the calling thread, with its counters and within the depth limit. */
MR_COLD MR_NOINLINE void mr_counters_event(struct mr_thread *thread, uint64_t bits);
/* With a depth limit: whether the event is above it. To be asked once for each event. */
MR_COLD MR_NOINLINE bool mr_counters_takes(struct mr_thread *thread, uint64_t bits);
/*
 * What the calling thread has counted so far, `present` values; opens its counters if it
 * has none. False: not to be had at this event. errno may change.
 */
bool mr_counters_read(struct mr_counters *counters, uint64_t values[MR_COUNTERS_MAX]);
/* The calling thread ends. Signals are blocked. */
void mr_counters_thread_end(struct mr_counters *counters);

/*
 * The item that tells of counter `index`; `text` is for its reason. With a `refusal` from 1
 * to MR_COUNTERS_REASONS_MAX, why it does not count on some threads: false when there are
 * not so many reasons.
 */
bool mr_counters_item(const struct mr_counters *counters, uint32_t index,
                      uint32_t refusal, char text[MR_COUNTER_REASON_SIZE],
                      struct mr_dict_item *item);

/* For probe/counters.c: memory for threads. */
bool mr_counters_map(struct mr_counters *counters);
/* For probe/counters.c: the event as a descriptor of the calling thread; -1 with errno. */
int mr_counters_open(const struct mr_counter_event *event);

#endif
