/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of a request that has one, as libmicrohttpd hands it over in pieces: kept up to MR_HTTP_BODY_MAX bytes, what is
 * more is thrown away and said. One for each such request; the server's thread alone.
 *
 *     body = mr_http_body_new();                        // when its head has come
 *     mr_http_body_take(body, piece, size);             // each piece
 *     if (body->is_too_large) ... else use(body->data, body->size);
 *     free(body);
 */
#ifndef MR_MASTER_HTTP_BODY_H
#define MR_MASTER_HTTP_BODY_H

#include <stdbool.h>
#include <stddef.h>

#define MR_HTTP_BODY_MAX 4096u

struct mr_http_body {
    size_t size;
    bool is_too_large;
    char data[MR_HTTP_BODY_MAX];
};

struct mr_http_body *mr_http_body_new(void); /* NULL without memory */
void mr_http_body_take(struct mr_http_body *body, const char *piece, size_t size);

#endif
