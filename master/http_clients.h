/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is connected to the HTTP server. A client that is slow with its request, or with reading the answer, is not cut off for that; but once
 * all places are taken, the one that has been longest without a whole request or answer gives way to the next that comes. So no number of
 * clients that send a byte now and then can keep others out. The server's thread alone.
 *
 *     client = mr_http_clients_add(&clients, fd);         // it is connected
 *     mr_http_clients_moved(&clients, client);            // its request is here, or its answer was sent
 *     mr_http_clients_remove(&clients, client);           // it is not any more
 */
#ifndef MR_MASTER_HTTP_CLIENTS_H
#define MR_MASTER_HTTP_CLIENTS_H

#include <stdint.h>

struct mr_http_client {
    int fd; /* -1: it had to give way, and is still to be removed */
    struct mr_http_client *before, *after; /* who moved sooner, and later */
};

/* Zero, but for `max`: nobody is connected. */
struct mr_http_clients {
    uint32_t max, count;
    uint64_t gave_way; /* so many, since the start */
    struct mr_http_client *oldest, *newest;
};

/* Shuts the oldest one's socket down where all `max` places are taken. NULL without memory: then it is not counted among them. */
struct mr_http_client *mr_http_clients_add(struct mr_http_clients *clients, int fd);
/* `client` may be NULL. */
void mr_http_clients_moved(struct mr_http_clients *clients,
                           struct mr_http_client *client);
/* Frees `client`, which may be NULL. */
void mr_http_clients_remove(struct mr_http_clients *clients,
                            struct mr_http_client *client);

#endif
