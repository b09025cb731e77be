/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Endpoints as people write them: `tcp://host:port`, several with commas. Parsing touches nothing; resolving asks the
 * resolver (and so blocks and allocates: never on the probe's writer thread). Listening checks DESIGN section 5's rule that a
 * listener outside loopback needs a token or an explicit `--insecure`.
 */
#ifndef MR_NET_ENDPOINT_H
#define MR_NET_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/sender.h"

#define MR_ENDPOINTS_MAX 16

/*
 * Of a probe alone, which parses it: no receiver, what is recorded is thrown away. A host of that name is
 * tcp://discard:port.
 */
#define MR_ENDPOINT_DISCARD "discard"

struct mr_endpoint {
    char host[256]; /* without brackets for IPv6 */
    char port[8];
};

struct mr_endpoints {
    struct mr_endpoint items[MR_ENDPOINTS_MAX];
    uint32_t count;
};

/* MR_EUSAGE with the offending part named in `error`. `tcp://` may be left out. */
enum mr_status mr_endpoints_parse(const char *text, struct mr_endpoints *endpoints,
                                  struct mr_error *error);
/* Numeric addresses only, no resolver, no allocation; MR_EUSAGE when a host is a name. */
enum mr_status mr_endpoints_numeric(const struct mr_endpoints *endpoints,
                                    struct mr_sender_address *out, uint32_t *count,
                                    struct mr_error *error);
/* With getaddrinfo(): in the order of the endpoints, those of one name beginning at a random one. MR_ENOTFOUND when nothing resolves. */
enum mr_status mr_endpoints_resolve(const struct mr_endpoints *endpoints,
                                    struct mr_sender_address *out, uint32_t *count,
                                    struct mr_error *error);

/*
 * A non-blocking listening socket (SO_REUSEADDR). `has_token` or `insecure` allow an address outside loopback, else
 * MR_EUSAGE. MR_EADDR when the port is in use; the text says by what option to change it. *port is the bound port
 * (port 0 asks for any).
 */
enum mr_status mr_listen(const struct mr_endpoint *endpoint, bool has_token,
                         bool insecure, int *fd, uint16_t *port, struct mr_error *error);

#endif
