/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The master's HTTP server (libmicrohttpd): one thread of its own that reads the model
 * under RCU and so never delays ingest. Sizes, connections and times are bounded; when all places are taken, a slow client gives way
 * (master/http_clients.h). The page at / is compiled into the program (master/web/).
 *
 * Use:
 *     mr_http_start(listen_fd, &api, &http, &error);      // api is borrowed
 *     mr_http_stop(http);
 */
#ifndef MR_MASTER_HTTP_H
#define MR_MASTER_HTTP_H

#include "base/error.h"
#include "master/api.h"

#define MR_HTTP_CONNECTIONS_MAX 256u
#define MR_HTTP_CONNECTIONS_SPARE                                                        \
    32u /* of such as had to give way, until they are gone */
#define MR_HTTP_IDLE_S 30
#define MR_HTTP_REQUEST_BYTES ((size_t)32 << 10) /* of one connection's header memory */

struct mr_http;

/* Takes `listen_fd` (non-blocking), also when it fails; `api` is told how many had to give way. MR_ENOMEM, MR_EIO. */
enum mr_status mr_http_start(int listen_fd, struct mr_api *api, struct mr_http **http,
                             struct mr_error *error);
void mr_http_stop(struct mr_http *http); /* NULL allowed */

#endif
