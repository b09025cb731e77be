/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver: a thread that turns lanes, each in its turn. What is driven belongs to one driver at a time; it may be passed
 * to another while it runs, between two turns and whole: nothing of it is copied, translated or cut
 * (docs/why/2026-11-23-lanes.md).
 *
 *     mr_driver_start(&driver, "driver0", &error);
 *     lane->driven = (struct mr_driven){.kind = &kind, .context = lane, .fd = lane->epoll_fd};
 *     mr_driver_give(&driver, &lane->driven);                  // from here on the driver's, until its end()
 *     mr_driver_pass(&driver, &lane->driven, &other);          // any time
 *     mr_driver_stop(&driver);                                 // all that it was given has ended, or been passed on
 *
 * give, pass and stop: any thread. The calls of a kind: the driver's thread. How many: no limit; each wakes up at its own times, and waits while another has its turn.
 */
#ifndef MR_WORKER_DRIVER_H
#define MR_WORKER_DRIVER_H

#include "base/error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define MR_DRIVEN_OVER UINT64_MAX

struct mr_driver;

struct mr_driven_kind {
    /* Once, before the first turn. */
    void (*begin)(void *context);
    /*
     * What there is to do, without waiting for more of it. CLOCK_MONOTONIC ns until which the next turn can wait if the
     * descriptor does not become readable; MR_DRIVEN_OVER: no turn follows.
     */
    uint64_t (*turn)(void *context);
    /* Some turn of the driver takes long, perhaps this one's own, inside of which it is: others are to hear that it lives. NULL allowed. */
    void (*wait)(void *context);
    /* Once, after the last turn: the driver knows nothing of it any more, its memory may go. */
    void (*end)(void *context);
};

struct mr_driven {
    const struct mr_driven_kind *kind;
    void *context;
    int fd; /* readable: it wants a turn. Borrowed */
    /* The driver's. */
    uint64_t due_ns;
    bool is_ready, has_begun;
    uint64_t
        waited_ns; /* see mr_driven_waited_ns(); while it has a driver: less what that had waited before */
    struct mr_driven *next;
    _Atomic uint64_t busy_ns; /* time of its turns so far; any thread */
    struct mr_driver
        *_Atomic driver; /* who has it, NULL: nobody yet, or no more; any thread */
};

struct mr_driver {
    char name[16];
    pthread_t thread;
    int epoll_fd, wake_fd;
    struct mr_driven *first;
    uint64_t waited_ns;   /* for work, so far */
    pthread_mutex_t lock; /* protects what follows */
    struct mr_driven *given;
    struct mr_driven *leaving; /* to `other`; NULL: nothing */
    struct mr_driver *other;
    bool is_stopping;
};

/* Starts the thread. `name`: of the thread, copied. MR_EIO: nothing is left of it. */
enum mr_status mr_driver_start(struct mr_driver *driver, const char *name,
                               struct mr_error *error);
/* The driver borrows it until its end(). */
void mr_driver_give(struct mr_driver *driver, struct mr_driven *driven);
/*
 * To `other`, after the turn at hand. Nothing happens if it ends before, or has not come to `driver` yet: driven->driver
 * tells. False: another is about to leave; ask again.
 */
bool mr_driver_pass(struct mr_driver *driver, struct mr_driven *driven,
                    struct mr_driver *other);
/* How long its drivers have waited for work since they have it, ns: they had nothing else to do, either. In a turn of it. */
uint64_t mr_driven_waited_ns(const struct mr_driven *driven);
/* From inside a turn that waits: calls wait() of all that the driver has. */
void mr_driver_wait(const struct mr_driver *driver);
/* Waits until nothing is left to drive, ends the thread, frees what start took. */
void mr_driver_stop(struct mr_driver *driver);

#endif
