/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 128-bit ids of docs/FORMAT.md section 7: XXH3_128 over canonical bytes, equal everywhere. All pure.
 */
#ifndef MR_NET_IDS_H
#define MR_NET_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/id.h"
#include "base/span.h"
#include "base/status.h"
#include "net/bytes.h"
#include "net/control.h"

struct mr_id mr_id_function(struct mr_span build_id, const char *path,
                            uint64_t offset); /* path where build_id is empty */
struct mr_id mr_id_span(const char *app, const char *name);
struct mr_id mr_id_unknown_site(void);
struct mr_id mr_id_scope(const char *app, const char *version, const char *host);
struct mr_id mr_id_path(struct mr_id parent, struct mr_id site);
struct mr_id mr_id_outer_path(struct mr_id parent, struct mr_id site);
struct mr_id mr_id_span_counter(const char *name);

/* Keys of edges between parts (net/part.h): of a message, of a hand-off, of what came next behind the part that has it. */
struct mr_id mr_id_message(struct mr_id trace, uint64_t span);
struct mr_id mr_id_hand_off(struct mr_id source, uint64_t number);
struct mr_id mr_id_next(struct mr_id part);
struct mr_id mr_id_part(struct mr_id source, uint32_t stream, uint64_t number);

struct mr_joined_child {
    struct mr_id id;
    uint8_t kind; /* enum mr_edge_kind */
    bool is_run;
};
/* Of a node of a joined shape (net/joined.h) with what is below it; `flags` without those of the edge above. */
struct mr_id mr_id_joined(uint8_t flags, struct mr_id path, struct mr_id node,
                          const struct mr_joined_child *children, uint32_t count);

struct mr_node_child {
    struct mr_id id;
    uint64_t repeat; /* 0: one or more */
};
/* `scratch` is cleared and used to lay out the bytes. */
enum mr_status mr_id_node(enum mr_exactness exactness, struct mr_id site,
                          const struct mr_node_child *children, uint32_t count,
                          struct mr_buffer *scratch, struct mr_id *id);
/* The child list of a node item. */
enum mr_status mr_node_child_put(struct mr_buffer *out,
                                 const struct mr_node_child *child);
enum mr_status mr_node_child_next(struct mr_span *children,
                                  struct mr_node_child *child); /* MR_END, MR_EFORMAT */

/* 16 bytes as on the wire: big-endian. By words, as ids are most of what deltas are made of. */
static inline void mr_id_put(struct mr_id id, uint8_t out[16])
{
    (void)mr_put_u64(mr_put_u64(out, MR_BYTE_SWAP64(id.hi)), MR_BYTE_SWAP64(id.lo));
}

static inline struct mr_id mr_id_get(const uint8_t in[16])
{
    return (struct mr_id){MR_BYTE_SWAP64(mr_get_u64(in)),
                          MR_BYTE_SWAP64(mr_get_u64(in + 8))};
}

/* 16 bytes off the front of `in`. False: there are fewer. */
static inline bool mr_id_take(struct mr_span *in, struct mr_id *id)
{
    struct mr_span bytes;

    if (!mr_span_take(in, 16, &bytes))
        return false;
    *id = mr_id_get(bytes.data);
    return true;
}

#endif
