/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "reference.h"

/* The bytes of an id are put together here, whatever their number. */
struct bytes {
    uint8_t *data;
    size_t size;
};

static void add(struct bytes *bytes, const void *data, size_t size)
{
    bytes->data = realloc(bytes->data, bytes->size + size + 1);
    if (!bytes->data)
        abort();
    if (size)
        memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
}

static void add_text(struct bytes *bytes, const char *text)
{
    add(bytes, text, strlen(text) + 1);
}

static void add_u64(struct bytes *bytes, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        add(bytes, &(uint8_t){(uint8_t)(value >> 8 * i)}, 1);
}

static struct ref_id finish(struct bytes *bytes)
{
    XXH128_hash_t hash = XXH3_128bits(bytes->data, bytes->size);
    XXH128_canonical_t canonical;
    struct ref_id id;

    XXH128_canonicalFromHash(&canonical, hash); /* big-endian */
    memcpy(id.bytes, canonical.digest, sizeof(id.bytes));
    free(bytes->data);
    return id;
}

struct ref_id ref_id_function(const char *build_id, uint64_t offset)
{
    struct bytes bytes = {NULL, 0};

    add_text(&bytes, "mr-site-fn");
    add(&bytes, build_id, strlen(build_id));
    add_u64(&bytes, offset);
    return finish(&bytes);
}

struct ref_id ref_id_span(const char *app, const char *name)
{
    struct bytes bytes = {NULL, 0};

    add_text(&bytes, "mr-site-span");
    add_text(&bytes, app);
    add_text(&bytes, name);
    return finish(&bytes);
}

struct ref_id ref_id_unknown(void)
{
    struct bytes bytes = {NULL, 0};

    add_text(&bytes, "mr-site-unknown");
    return finish(&bytes);
}

struct ref_id ref_id_scope(const char *app, const char *version)
{
    struct bytes bytes = {NULL, 0};

    add_text(&bytes, "mr-scope");
    add_text(&bytes, app);
    add_text(&bytes, version);
    add_text(&bytes, "");
    return finish(&bytes);
}

/* Of an id and a number. */
static struct ref_id id_of(const char *kind, struct ref_id id, uint64_t number)
{
    struct bytes bytes = {NULL, 0};

    add_text(&bytes, kind);
    add(&bytes, id.bytes, sizeof(id.bytes));
    add_u64(&bytes, number);
    return finish(&bytes);
}

struct ref_id ref_id_message(struct ref_id trace, uint64_t span)
{
    return id_of("mr-message", trace, span);
}

struct ref_id ref_id_hand_off(struct ref_id source, uint64_t number)
{
    return id_of("mr-hand-off", source, number);
}

struct ref_id ref_id_next(struct ref_id part)
{
    return id_of("mr-next", part, 0);
}

struct ref_id ref_id_part(struct ref_id source, uint32_t stream, uint64_t number)
{
    struct bytes bytes = {NULL, 0};

    add_text(&bytes, "mr-part");
    add(&bytes, source.bytes, sizeof(source.bytes));
    add_u64(&bytes, stream);
    add_u64(&bytes, number);
    return finish(&bytes);
}

struct ref_id ref_id_joined(uint8_t flags, struct ref_id path, struct ref_id node,
                            const struct ref_joined_child *children, size_t count)
{
    struct bytes bytes = {NULL, 0};

    add_text(&bytes, "mr-joined");
    add(&bytes, &flags, 1);
    add(&bytes, path.bytes, sizeof(path.bytes));
    add(&bytes, node.bytes, sizeof(node.bytes));
    for (size_t i = 0; i < count; i++) {
        add(&bytes, &children[i].kind, 1);
        add(&bytes, &(uint8_t){children[i].is_run}, 1);
        add(&bytes, children[i].id.bytes, sizeof(children[i].id.bytes));
    }
    return finish(&bytes);
}

bool ref_id_is_zero(const struct ref_id *id)
{
    return ref_id_compare(id, &(struct ref_id){{0}}) == 0;
}

struct ref_id ref_id_path(struct ref_id parent, struct ref_id site, bool is_outer)
{
    struct bytes bytes = {NULL, 0};

    add_text(&bytes, is_outer ? "mr-outer" : "mr-path");
    add(&bytes, parent.bytes, sizeof(parent.bytes));
    add(&bytes, site.bytes, sizeof(site.bytes));
    return finish(&bytes);
}

struct ref_id ref_id_node(uint8_t exactness, struct ref_id site,
                          const struct ref_child *children, size_t count)
{
    struct bytes bytes = {NULL, 0};

    add_text(&bytes, "mr-node");
    add(&bytes, &exactness, 1);
    add(&bytes, site.bytes, sizeof(site.bytes));
    for (size_t i = 0; i < count; i++) {
        add(&bytes, children[i].id.bytes, sizeof(children[i].id.bytes));
        add_u64(&bytes, children[i].repeat);
    }
    return finish(&bytes);
}

int ref_id_compare(const struct ref_id *a, const struct ref_id *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

const char *ref_id_text(struct ref_id id, char out[REF_ID_TEXT])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < sizeof(id.bytes); i++) {
        out[2 * i] = digits[id.bytes[i] >> 4];
        out[2 * i + 1] = digits[id.bytes[i] & 15];
    }
    out[REF_ID_TEXT - 1] = '\0';
    return out;
}
