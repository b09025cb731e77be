/* SPDX-License-Identifier: Apache-2.0 */
#include "master/http_body.h"

#include <stdlib.h>
#include <string.h>

struct mr_http_body *mr_http_body_new(void)
{
    return calloc(1, sizeof(struct mr_http_body));
}

void mr_http_body_take(struct mr_http_body *body, const char *piece, size_t size)
{
    if (size > sizeof(body->data) - body->size) {
        body->is_too_large = true;
        return;
    }
    memcpy(body->data + body->size, piece, size);
    body->size += size;
}
