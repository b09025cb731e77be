/* SPDX-License-Identifier: Apache-2.0 */
#include "net/ids.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "net/bytes.h"
#include "net/varint.h"

#define ID_SIZE ((size_t)16)
#define DOMAIN_MAX 16
#define NUMBERS_MAX 2
#define JOINED_CHILD_SIZE (2 + ID_SIZE)
#define CHILDREN_AT_ONCE 8u
#define DOMAIN(text) mr_span_of((text), sizeof(text)) /* with its zero byte */

/* Strings have any length, so they are hashed as a stream; the state lies on the stack. */
static void add_text(XXH3_state_t *state, const char *text)
{
    (void)XXH3_128bits_update(state, text, strlen(text) + 1); /* with its zero byte */
}

static void add_u64(XXH3_state_t *state, uint64_t value)
{
    (void)XXH3_128bits_update(state, &value,
                              sizeof(value)); /* little-endian, net/bytes.h */
}

static struct mr_id digest(const XXH3_state_t *state)
{
    XXH128_hash_t hash = XXH3_128bits_digest(state);

    return (struct mr_id){.hi = hash.high64, .lo = hash.low64};
}

struct mr_id mr_id_function(struct mr_span build_id, const char *path, uint64_t offset)
{
    XXH3_state_t state;

    (void)XXH3_128bits_reset(&state);
    if (build_id.size) {
        add_text(&state, "mr-site-fn");
        (void)XXH3_128bits_update(&state, build_id.data, build_id.size);
    } else {
        add_text(&state, "mr-site-path");
        add_text(&state, path);
    }
    add_u64(&state, offset);
    return digest(&state);
}

struct mr_id mr_id_span(const char *app, const char *name)
{
    XXH3_state_t state;

    (void)XXH3_128bits_reset(&state);
    add_text(&state, "mr-site-span");
    add_text(&state, app);
    add_text(&state, name);
    return digest(&state);
}

struct mr_id mr_id_unknown_site(void)
{
    return mr_hash128(DOMAIN("mr-site-unknown"));
}

struct mr_id mr_id_scope(const char *app, const char *version, const char *host)
{
    XXH3_state_t state;

    (void)XXH3_128bits_reset(&state);
    add_text(&state, "mr-scope");
    add_text(&state, app);
    add_text(&state, version);
    add_text(&state, host);
    return digest(&state);
}

struct mr_id mr_id_span_counter(const char *name)
{
    XXH3_state_t state;

    (void)XXH3_128bits_reset(&state);
    add_text(&state, "mr-counter");
    add_text(&state, name);
    return digest(&state);
}

/* `domain` with its zero byte, then two ids. */
static struct mr_id id_of_pair(struct mr_span domain, struct mr_id parent,
                               struct mr_id site)
{
    uint8_t bytes[DOMAIN_MAX + 2 * ID_SIZE];

    memcpy(bytes, domain.data, domain.size);
    mr_id_put(parent, bytes + domain.size);
    mr_id_put(site, bytes + domain.size + ID_SIZE);
    return mr_hash128(mr_span_of(bytes, domain.size + 2 * ID_SIZE));
}

struct mr_id mr_id_path(struct mr_id parent, struct mr_id site)
{
    return id_of_pair(DOMAIN("mr-path"), parent, site);
}

struct mr_id mr_id_outer_path(struct mr_id parent, struct mr_id site)
{
    return id_of_pair(DOMAIN("mr-outer"), parent, site);
}

/* `domain` with its zero byte, an id, `count` numbers: of parts and their edges, of which each call tree has some, so they are laid out and hashed at once. */
static MR_ALWAYS_INLINE struct mr_id id_of_numbers(struct mr_span domain, struct mr_id id,
                                                   const uint64_t *numbers,
                                                   uint32_t count)
{
    uint8_t bytes[DOMAIN_MAX + ID_SIZE + NUMBERS_MAX * sizeof(uint64_t)];
    uint8_t *at = bytes + domain.size;

    memcpy(bytes, domain.data, domain.size);
    mr_id_put(id, at);
    at += ID_SIZE;
    for (uint32_t i = 0; i < count; i++)
        at = mr_put_u64(at, numbers[i]);
    return mr_hash128(mr_span_of(bytes, (size_t)(at - bytes)));
}

struct mr_id mr_id_message(struct mr_id trace, uint64_t span)
{
    return id_of_numbers(DOMAIN("mr-message"), trace, &span, 1);
}

struct mr_id mr_id_hand_off(struct mr_id source, uint64_t number)
{
    return id_of_numbers(DOMAIN("mr-hand-off"), source, &number, 1);
}

struct mr_id mr_id_next(struct mr_id part)
{
    const uint64_t none = 0;

    return id_of_numbers(DOMAIN("mr-next"), part, &none, 1);
}

struct mr_id mr_id_part(struct mr_id source, uint32_t stream, uint64_t number)
{
    const uint64_t numbers[] = {stream, number};

    return id_of_numbers(DOMAIN("mr-part"), source, numbers, MR_ARRAY_COUNT(numbers));
}

static uint8_t *put_joined_child(uint8_t *at, const struct mr_joined_child *child)
{
    at = mr_put_u8(mr_put_u8(at, child->kind), child->is_run);
    mr_id_put(child->id, at);
    return at + ID_SIZE;
}

/* Of few children at once, of more piece by piece. */
struct mr_id mr_id_joined(uint8_t flags, struct mr_id path, struct mr_id node,
                          const struct mr_joined_child *children, uint32_t count)
{
    const struct mr_span domain = DOMAIN("mr-joined");
    uint8_t bytes[DOMAIN_MAX + 1 + 2 * ID_SIZE + CHILDREN_AT_ONCE * JOINED_CHILD_SIZE];
    uint8_t *at = mr_put_u8(bytes + domain.size, flags);
    XXH3_state_t state;

    memcpy(bytes, domain.data, domain.size);
    mr_id_put(path, at);
    mr_id_put(node, at + ID_SIZE);
    at += 2 * ID_SIZE;
    if (count <= CHILDREN_AT_ONCE) {
        for (uint32_t i = 0; i < count; i++)
            at = put_joined_child(at, &children[i]);
        return mr_hash128(mr_span_of(bytes, (size_t)(at - bytes)));
    }
    (void)XXH3_128bits_reset(&state);
    (void)XXH3_128bits_update(&state, bytes, (size_t)(at - bytes));
    for (uint32_t i = 0; i < count; i++) {
        (void)put_joined_child(bytes, &children[i]);
        (void)XXH3_128bits_update(&state, bytes, JOINED_CHILD_SIZE);
    }
    return digest(&state);
}

enum mr_status mr_id_node(enum mr_exactness exactness, struct mr_id site,
                          const struct mr_node_child *children, uint32_t count,
                          struct mr_buffer *scratch, struct mr_id *id)
{
    size_t size = sizeof("mr-node") + 1 + ID_SIZE + (size_t)count * (ID_SIZE + 8);
    enum mr_status status;
    uint8_t *at;

    mr_buffer_clear(scratch);
    status = mr_buffer_reserve(scratch, size, &at);
    if (status != MR_OK)
        return status;
    memcpy(at, "mr-node", sizeof("mr-node"));
    at = mr_put_u8(at + sizeof("mr-node"), (uint8_t)exactness);
    mr_id_put(site, at);
    at += ID_SIZE;
    for (uint32_t i = 0; i < count; i++) {
        mr_id_put(children[i].id, at);
        at = mr_put_u64(at + ID_SIZE, children[i].repeat);
    }
    mr_buffer_commit(scratch, size);
    *id = mr_hash128(mr_buffer_span(scratch));
    return MR_OK;
}

enum mr_status mr_node_child_put(struct mr_buffer *out, const struct mr_node_child *child)
{
    uint8_t bytes[ID_SIZE + MR_VARINT_MAX];

    mr_id_put(child->id, bytes);
    return mr_buffer_append(
        out, bytes, (size_t)(mr_varint_put(bytes + ID_SIZE, child->repeat) - bytes));
}

enum mr_status mr_node_child_next(struct mr_span *children, struct mr_node_child *child)
{
    struct mr_span id, rest = *children;

    if (rest.size == 0)
        return MR_END;
    if (!mr_span_take(&rest, ID_SIZE, &id) || !mr_varint_get(&rest, &child->repeat))
        return MR_EFORMAT;
    child->id = mr_id_get(id.data);
    *children = rest;
    return MR_OK;
}
