/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET of several HTTP servers side by side, as /metrics of workers and master are read: small texts, no redirects, no TLS.
 * Names are looked up one after the other; of the addresses of one, the first that takes a connection is asked, and each has its
 * part of the time for that. One thread.
 *
 *     struct mr_fetch fetches[2] = {{.address = "127.0.0.1:7481"}, {.address = "127.0.0.1:7482"}};
 *     mr_fetch_all(fetches, 2, "/metrics", 2 * MR_SECOND_NS);
 *     if (fetches[0].is_there) ... fetches[0].text ...; else ... fetches[0].error.text
 *     mr_fetch_free(fetches, 2);
 */
#ifndef MR_SCALE_FETCH_H
#define MR_SCALE_FETCH_H

#include "base/buffer.h"
#include "base/error.h"
#include "net/sender.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_FETCH_BYTES_MAX ((size_t)4 << 20)
#define MR_FETCH_ADDRESS_MAX 288

struct mr_fetch {
    char address[MR_FETCH_ADDRESS_MAX]; /* HOST:PORT */
    bool is_there;                      /* answered with 200 */
    const char *text;                   /* the body, if so; valid until free */
    struct mr_error error;              /* why not, else */
    /* Inside fetch.c. */
    struct mr_sender_address addresses[MR_SENDER_ADDRESSES_MAX]; /* of the name */
    uint32_t address_count, next;
    uint64_t wait_ns, next_at_ns; /* how long one may take; until when this one may */
    int fd;
    bool has_asked;
    struct mr_buffer answer;
};

void mr_fetch_all(struct mr_fetch *fetches, uint32_t count, const char *path,
                  uint64_t timeout_ns);
void mr_fetch_free(struct mr_fetch *fetches, uint32_t count);

/* The value of a metric that has exactly these labels ("" for none, else "{...}"); false: it is not there. */
bool mr_fetch_value(const char *text, const char *name, const char *labels,
                    double *value);
/* The largest value of a metric, over all labels. */
bool mr_fetch_largest(const char *text, const char *name, double *value);

#endif
