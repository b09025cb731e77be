/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field             written by        read by           access
 * addresses, count  the thread        sender's thread   while is_new is 0 the thread's, while it is 1 the sender's: [P]-[C], [R]-[F]
 * is_new            both              both              release store 1 [P], acquire load [C]; release store 0 [R], acquire load [F]
 * is_wanted         sender's thread   the thread        relaxed: a wish; wake_fd tells
 * is_ending         stop()            the thread        release store, acquire load; wake_fd tells
 * Progress: serve() is wait-free but for a write to an eventfd.
 */
#include "net/resolver.h"

#include "base/assert.h"
#include "base/atomics.h"
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PERIOD_MS 30000
#define PAUSE_MS 1000

struct mr_resolver {
    struct mr_endpoints endpoints;
    pthread_t thread;
    int wake_fd;
    struct mr_sender_address addresses[MR_SENDER_ADDRESSES_MAX];
    uint32_t count;
    _Atomic bool is_new, is_wanted, is_ending;
    bool was_open; /* the sender's thread's: when it was served last */
};

static void resolve(struct mr_resolver *resolver)
{
    struct mr_error error = MR_ERROR_NONE;

    if (mr_load_acquire(&resolver->is_new)) /* [F] nobody has come for the last ones */
        return;
    if (mr_endpoints_resolve(&resolver->endpoints, resolver->addresses, &resolver->count,
                             &error) == MR_OK)
        mr_store_release(&resolver->is_new, true); /* [P] */
}

/* Until somebody wants something, or `ms` have passed. */
static void sleep_for(struct mr_resolver *resolver, int ms)
{
    struct pollfd wake = {.fd = resolver->wake_fd, .events = POLLIN};
    uint64_t ignored;

    if (poll(&wake, 1, ms) > 0)
        (void)!read(resolver->wake_fd, &ignored, sizeof(ignored));
}

static void *run(void *context)
{
    struct mr_resolver *resolver = context;

    (void)pthread_setname_np(pthread_self(), "resolver");
    while (!mr_load_acquire(&resolver->is_ending)) {
        sleep_for(resolver, PERIOD_MS);
        if (mr_load_acquire(&resolver->is_ending))
            break;
        mr_store_relaxed(&resolver->is_wanted, false); /* a wish */
        resolve(resolver);
        sleep_for(resolver, PAUSE_MS); /* a sender that finds nobody wants all the time */
    }
    return NULL;
}

static void wake(struct mr_resolver *resolver)
{
    const uint64_t one = 1;

    (void)!write(resolver->wake_fd, &one, sizeof(one));
}

enum mr_status mr_resolver_start(const struct mr_endpoints *endpoints,
                                 struct mr_resolver **out, struct mr_error *error)
{
    struct mr_sender_address addresses[MR_SENDER_ADDRESSES_MAX];
    struct mr_resolver *resolver;
    uint32_t count;
    int failure = ENOMEM;

    *out = NULL;
    if (mr_endpoints_numeric(endpoints, addresses, &count, NULL) == MR_OK)
        return MR_OK;
    resolver = calloc(1, sizeof(*resolver));
    if (!resolver)
        return mr_error_set(error, MR_ENOMEM, "no memory for a resolver");
    resolver->endpoints = *endpoints;
    resolver->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    failure = resolver->wake_fd < 0
                  ? errno
                  : pthread_create(&resolver->thread, NULL, run, resolver);
    if (failure == 0) {
        *out = resolver;
        return MR_OK;
    }
    if (resolver->wake_fd >= 0)
        (void)close(resolver->wake_fd);
    free(resolver);
    return mr_error_set_errno(error, MR_EIO, failure, "cannot start a resolver");
}

static void want(struct mr_resolver *resolver)
{
    if (mr_load_relaxed(&resolver->is_wanted)) /* a wish: it is awake */
        return;
    mr_store_relaxed(&resolver->is_wanted, true);
    wake(resolver);
}

void mr_resolver_serve(struct mr_resolver *resolver, struct mr_sender *sender)
{
    bool is_open = sender->state == MR_SENDER_OPEN;

    if (!resolver)
        return;
    if (mr_load_acquire(&resolver->is_new)) { /* [C] */
        mr_sender_set_addresses(sender, resolver->addresses, resolver->count);
        mr_store_release(&resolver->is_new, false); /* [R] */
    }
    if (!is_open && (resolver->was_open || sender->fd < 0))
        want(resolver);
    resolver->was_open = is_open;
}

void mr_resolver_stop(struct mr_resolver *resolver)
{
    if (!resolver)
        return;
    mr_store_release(&resolver->is_ending, true);
    wake(resolver);
    (void)pthread_join(resolver->thread, NULL);
    (void)close(resolver->wake_fd);
    free(resolver);
}
