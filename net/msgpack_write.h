/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msgpack-c's packers into memory of the caller. Inside net/ only. No malloc: of msgpack-c only inline functions are used.
 * An overflow is latched, the bytes are then worth nothing.
 *
 *     struct mr_packer packer;
 *     mr_packer_init(&packer, out, capacity);
 *     msgpack_pack_array(&packer.pack, 2);
 *     mr_pack_text(&packer, "name");
 *     ...
 *     size = packer.is_full ? 0 : packer.size;
 */
#ifndef MR_NET_MSGPACK_WRITE_H
#define MR_NET_MSGPACK_WRITE_H

#include <msgpack/pack.h>
#include <stdbool.h>
#include <string.h>

#include "net/control.h"
#include "net/ids.h"

struct mr_packer {
    msgpack_packer pack;
    uint8_t *out;
    size_t capacity, size;
    bool is_full;
};

static inline int mr_packer_write(void *context, const char *bytes, size_t size)
{
    struct mr_packer *packer = context;

    if (packer->is_full || size > packer->capacity - packer->size) {
        packer->is_full = true;
        return -1;
    }
    if (size)
        memcpy(packer->out + packer->size, bytes, size);
    packer->size += size;
    return 0;
}

static inline void mr_packer_init(struct mr_packer *packer, uint8_t *out, size_t capacity)
{
    *packer = (struct mr_packer){.out = out, .capacity = capacity};
    msgpack_packer_init(&packer->pack, packer, mr_packer_write);
}

/* Cut to MR_TEXT_MAX bytes, before a character of UTF-8 and not in it. */
void mr_pack_text(struct mr_packer *packer, const char *text);

static inline void mr_pack_key(struct mr_packer *packer, const char *key)
{
    size_t size = strlen(key);

    (void)msgpack_pack_str(&packer->pack, size);
    (void)msgpack_pack_str_body(&packer->pack, key, size);
}

static inline void mr_pack_bytes(struct mr_packer *packer, struct mr_span bytes)
{
    (void)msgpack_pack_bin(&packer->pack, bytes.size);
    (void)msgpack_pack_bin_body(&packer->pack, bytes.data, bytes.size);
}

static inline void mr_pack_id(struct mr_packer *packer, struct mr_id id)
{
    uint8_t bytes[16];

    mr_id_put(id, bytes);
    mr_pack_bytes(packer, mr_span_of(bytes, sizeof(bytes)));
}

static inline void mr_pack_uint(struct mr_packer *packer, uint64_t value)
{
    (void)msgpack_pack_uint64(&packer->pack, value);
}

static inline void mr_pack_key_text(struct mr_packer *packer, const char *key,
                                    const char *text)
{
    mr_pack_key(packer, key);
    mr_pack_text(packer, text);
}

static inline void mr_pack_key_uint(struct mr_packer *packer, const char *key,
                                    uint64_t value)
{
    mr_pack_key(packer, key);
    mr_pack_uint(packer, value);
}

#endif
