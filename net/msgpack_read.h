/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msgpack off the front of a span, object by object; inside net/ only. It is our own because the bytes are hostile: it
 * allocates nothing (msgpack-c 4.0 asks for 128 GiB when the bytes dd ff ff ff ff come), checks every size against what is
 * there, and goes 8 levels deep. The tests hold it against msgpack-c.
 *
 * All functions: true and moved on, or false and `in` is left anywhere.
 */
#ifndef MR_NET_MSGPACK_READ_H
#define MR_NET_MSGPACK_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

#define MR_MSGPACK_DEPTH_MAX 8

/* One object with all that is in it, of whatever type. */
bool mr_msgpack_skip(struct mr_span *in);
bool mr_msgpack_uint(struct mr_span *in, uint64_t *value);
bool mr_msgpack_text(struct mr_span *in, struct mr_span *text);
bool mr_msgpack_bytes(struct mr_span *in, struct mr_span *bytes);
/* The head only; `count` objects follow (of a map: pairs). It is never more than bytes are left. */
bool mr_msgpack_array(struct mr_span *in, uint32_t *count);
bool mr_msgpack_map(struct mr_span *in, uint32_t *count);

#endif
