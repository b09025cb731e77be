/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field                          written by               read by             access
 * given, leaving, other          any thread               the driver's        under lock; wake_fd tells
 * is_stopping                    stop()                   the driver's        under lock; wake_fd tells
 * driven.busy_ns, .driver        the driver of it         any thread          relaxed: for measuring, and for deciding what is only asked for
 * the rest of what is driven     the driver that has it   it
 * Pairs: the lock of the driver that gets it: what the last driver did in its turns is done before the first turn there.
 * Progress: give and pass block for a moment at most. Checked by: tests/race/test_driver.c
 */
#include "worker/driver.h"

#include "base/assert.h"
#include "base/atomics.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS_MAX 64
#define WAIT_MAX_MS 1000

static void wake(struct mr_driver *driver)
{
    uint64_t one = 1;
    ssize_t ignored = write(driver->wake_fd, &one, sizeof(one));

    MR_UNUSED(ignored); /* full: it is awake */
}

static void add(struct mr_driver *driver, struct mr_driven *driven)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = driven}};

    MR_ASSERT(driven->kind && driven->kind->turn);
    driven->next = driver->first;
    driver->first = driven;
    driven->due_ns = 0;
    driven->waited_ns -= driver->waited_ns;
    mr_store_relaxed(&driven->driver, driver); /* whoever asks may be late */
    /* Where there is no room to watch it, it has its turns when they are due. */
    (void)epoll_ctl(driver->epoll_fd, EPOLL_CTL_ADD, driven->fd, &event);
    if (!driven->has_begun && driven->kind->begin)
        driven->kind->begin(driven->context);
    driven->has_begun = true;
}

/* False: it is not here. */
static bool take_off(struct mr_driver *driver, struct mr_driven *driven)
{
    struct mr_driven **at = &driver->first;

    while (*at && *at != driven)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = driven->next;
    driven->waited_ns += driver->waited_ns;
    mr_store_relaxed(&driven->driver, NULL); /* as above */
    (void)epoll_ctl(driver->epoll_fd, EPOLL_CTL_DEL, driven->fd, NULL);
    return true;
}

static struct mr_driven *take_given(struct mr_driver *driver)
{
    struct mr_driven *driven;

    (void)pthread_mutex_lock(&driver->lock);
    driven = driver->given;
    if (driven)
        driver->given = driven->next;
    (void)pthread_mutex_unlock(&driver->lock);
    return driven;
}

static struct mr_driven *take_leaving(struct mr_driver *driver, struct mr_driver **other)
{
    struct mr_driven *driven;

    (void)pthread_mutex_lock(&driver->lock);
    driven = driver->leaving;
    *other = driver->other;
    driver->leaving = NULL;
    (void)pthread_mutex_unlock(&driver->lock);
    return driven;
}

/* What others want of this driver. What is to leave has come before, if it comes at all. */
static void on_wake(struct mr_driver *driver)
{
    struct mr_driver *other;
    struct mr_driven *driven;
    uint64_t ignored;
    ssize_t size = read(driver->wake_fd, &ignored, sizeof(ignored));

    MR_UNUSED(size);
    while ((driven = take_given(driver)))
        add(driver, driven);
    driven = take_leaving(driver, &other);
    if (driven && take_off(driver, driven))
        mr_driver_give(other, driven);
}

/* Counts the time of it, from `start_ns` on; the end of it, which is the start of the next. */
static uint64_t turn(struct mr_driver *driver, struct mr_driven *driven,
                     uint64_t start_ns)
{
    uint64_t end_ns;

    driven->is_ready = false;
    driven->due_ns = driven->kind->turn(driven->context);
    end_ns = mr_clock_monotonic_ns();
    mr_add_relaxed(&driven->busy_ns, end_ns - start_ns);
    if (driven->due_ns == MR_DRIVEN_OVER) {
        (void)take_off(driver, driven);
        driven->kind->end(driven->context);
    }
    return end_ns;
}

static void turn_all(struct mr_driver *driver, uint64_t now_ns)
{
    struct mr_driven *next;

    for (struct mr_driven *at = driver->first; at; at = next) {
        next = at->next;
        if (at->is_ready || at->due_ns <= now_ns)
            now_ns = turn(driver, at, now_ns);
    }
}

/* Rounded up: rounded down it would look a few times before something is due. */
static int wait_ms(const struct mr_driver *driver, uint64_t now_ns)
{
    uint64_t wait_ns = WAIT_MAX_MS * MR_MILLISECOND_NS;

    for (const struct mr_driven *at = driver->first; at; at = at->next) {
        uint64_t left_ns = at->due_ns > now_ns ? at->due_ns - now_ns : 0;

        if (left_ns < wait_ns)
            wait_ns = left_ns;
    }
    return (int)((wait_ns + MR_MILLISECOND_NS - 1) / MR_MILLISECOND_NS);
}

/* True when somebody wants something of the driver. `*now_ns`: when that was. */
static bool wait_for_work(struct mr_driver *driver, uint64_t *now_ns)
{
    const uint64_t start_ns = mr_clock_monotonic_ns();
    struct epoll_event events[EVENTS_MAX];
    int ready =
        epoll_wait(driver->epoll_fd, events, EVENTS_MAX, wait_ms(driver, start_ns));
    bool is_woken = false;

    *now_ns = mr_clock_monotonic_ns();
    driver->waited_ns += *now_ns - start_ns;
    for (int i = 0; i < ready; i++) {
        struct mr_driven *driven = events[i].data.ptr;

        if (driven)
            driven->is_ready = true;
        else
            is_woken = true;
    }
    return is_woken;
}

static bool is_over(struct mr_driver *driver)
{
    bool is_over;

    (void)pthread_mutex_lock(&driver->lock);
    is_over = driver->is_stopping && !driver->first && !driver->given;
    (void)pthread_mutex_unlock(&driver->lock);
    return is_over;
}

static void *run(void *context)
{
    struct mr_driver *driver = context;

    (void)pthread_setname_np(pthread_self(), driver->name);
    while (driver->first || !is_over(driver)) {
        uint64_t now_ns;
        bool is_woken = wait_for_work(driver, &now_ns);

        turn_all(driver, now_ns);
        if (is_woken)
            on_wake(driver);
    }
    return NULL;
}

static void release(struct mr_driver *driver)
{
    (void)pthread_mutex_destroy(&driver->lock);
    if (driver->epoll_fd >= 0)
        (void)close(driver->epoll_fd);
    if (driver->wake_fd >= 0)
        (void)close(driver->wake_fd);
}

enum mr_status mr_driver_start(struct mr_driver *driver, const char *name,
                               struct mr_error *error)
{
    struct epoll_event event = {.events = EPOLLIN};
    enum mr_status status = MR_OK;

    MR_ASSERT(driver && name);
    memset(driver, 0, sizeof(*driver));
    (void)snprintf(driver->name, sizeof(driver->name), "%s", name);
    (void)pthread_mutex_init(&driver->lock, NULL);
    driver->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    driver->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (driver->epoll_fd < 0 || driver->wake_fd < 0 ||
        epoll_ctl(driver->epoll_fd, EPOLL_CTL_ADD, driver->wake_fd, &event) != 0) {
        status = mr_error_set_errno(error, MR_EIO, errno, "%s: cannot start", name);
    } else {
        errno = pthread_create(&driver->thread, NULL, run, driver);
        if (errno)
            status = mr_error_set_errno(error, MR_EIO, errno, "%s: no thread", name);
    }
    if (status != MR_OK)
        release(driver);
    return status;
}

void mr_driver_give(struct mr_driver *driver, struct mr_driven *driven)
{
    (void)pthread_mutex_lock(&driver->lock);
    driven->next = driver->given;
    driver->given = driven;
    (void)pthread_mutex_unlock(&driver->lock);
    wake(driver);
}

bool mr_driver_pass(struct mr_driver *driver, struct mr_driven *driven,
                    struct mr_driver *other)
{
    bool is_free;

    MR_ASSERT(driver != other);
    (void)pthread_mutex_lock(&driver->lock);
    is_free = !driver->leaving;
    if (is_free) {
        driver->leaving = driven;
        driver->other = other;
    }
    (void)pthread_mutex_unlock(&driver->lock);
    if (is_free)
        wake(driver);
    return is_free;
}

uint64_t mr_driven_waited_ns(const struct mr_driven *driven)
{
    const struct mr_driver *driver =
        mr_load_relaxed(&driven->driver); /* ours, in a turn */

    MR_ASSERT(driver);
    return driven->waited_ns + driver->waited_ns;
}

void mr_driver_wait(const struct mr_driver *driver)
{
    for (const struct mr_driven *at = driver->first; at; at = at->next)
        if (at->has_begun && at->kind->wait)
            at->kind->wait(at->context);
}

void mr_driver_stop(struct mr_driver *driver)
{
    (void)pthread_mutex_lock(&driver->lock);
    driver->is_stopping = true;
    (void)pthread_mutex_unlock(&driver->lock);
    wake(driver);
    (void)pthread_join(driver->thread, NULL);
    release(driver);
}
