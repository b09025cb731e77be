/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/compiler.h"
#include "net/frame.h"
#include "net/ids.h"
#include "net/msgpack_read.h"
#include "net/text_pool.h"
#include "net/wire.h"

/*
 * HELLO is maps of maps. Each map has a table of the keys that we know; a key has a function that reads its value into
 * the struct that the map fills. Unknown keys are skipped, of a key that comes twice the last counts.
 */
struct context {
    struct mr_text_pool pool;
    const char *wrong; /* the first key whose value breaks the format, or that misses */
};

struct key {
    const char *name;
    bool is_required;
    bool (*get)(struct mr_span *in, struct context *context, void *to);
};

static const struct key *find_key(const struct key *keys, uint32_t count,
                                  struct mr_span name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (mr_span_equal(mr_span_of_text(keys[i].name), name))
            return &keys[i];
    }
    return NULL;
}

static bool fail(struct context *context, const char *key)
{
    if (!context->wrong)
        context->wrong = key;
    return false;
}

static bool has_required(const struct key *keys, uint32_t count, uint32_t seen,
                         struct context *context)
{
    for (uint32_t i = 0; i < count; i++) {
        if (keys[i].is_required && !(seen & 1u << i))
            return fail(context, keys[i].name);
    }
    return true;
}

static bool get_map(struct mr_span *in, struct context *context, const struct key *keys,
                    uint32_t key_count, void *to)
{
    uint32_t pairs, seen = 0;

    if (!mr_msgpack_map(in, &pairs))
        return false;
    while (pairs-- > 0) {
        const struct key *key;
        struct mr_span name;

        if (!mr_msgpack_text(in, &name))
            return false;
        key = find_key(keys, key_count, name);
        if (key ? !key->get(in, context, to) : !mr_msgpack_skip(in))
            return fail(context, key ? key->name : "?");
        if (key)
            seen |= 1u << (key - keys);
    }
    return has_required(keys, key_count, seen, context);
}

static bool get_text(struct mr_span *in, struct context *context, const char **to)
{
    struct mr_span text;

    return mr_msgpack_text(in, &text) && mr_text_pool_add(&context->pool, text, to);
}

static bool get_u32(struct mr_span *in, uint32_t *to)
{
    uint64_t value;

    if (!mr_msgpack_uint(in, &value) || value > UINT32_MAX)
        return false;
    *to = (uint32_t)value;
    return true;
}

/* One of the words that name(0), name(1), ... name(count - 1) give. */
static bool get_word(struct mr_span *in, const char *const *words, uint32_t count,
                     uint32_t *to)
{
    struct mr_span text;

    if (!mr_msgpack_text(in, &text))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (mr_span_equal(mr_span_of_text(words[i]), text)) {
            *to = i;
            return true;
        }
    }
    return false;
}

/* KEY_GETTER(struct, field, function): a struct key's get that reads one field by a function above. */
#define KEY_TEXT(type, field)                                                            \
    static bool get_##field(struct mr_span *in, struct context *context, void *to)       \
    {                                                                                    \
        return get_text(in, context, &((struct type *)to)->field);                       \
    }
#define KEY_U32(type, field)                                                             \
    static bool get_##field(struct mr_span *in, struct context *context, void *to)       \
    {                                                                                    \
        MR_UNUSED(context);                                                              \
        return get_u32(in, &((struct type *)to)->field);                                 \
    }
#define KEY_U64(type, field)                                                             \
    static bool get_##field(struct mr_span *in, struct context *context, void *to)       \
    {                                                                                    \
        MR_UNUSED(context);                                                              \
        return mr_msgpack_uint(in, &((struct type *)to)->field);                         \
    }

KEY_U32(mr_clock_info, mult)
KEY_U64(mr_clock_info, ticks)
KEY_U64(mr_clock_info, realtime_ns)

static bool get_clock_kind(struct mr_span *in, struct context *context, void *to)
{
    const char *const words[] = {mr_clock_kind_name(MR_CLOCK_TSC),
                                 mr_clock_kind_name(MR_CLOCK_CNTVCT),
                                 mr_clock_kind_name(MR_CLOCK_MONOTONIC)};
    uint32_t kind;

    MR_UNUSED(context);
    if (!get_word(in, words, MR_ARRAY_COUNT(words), &kind))
        return false;
    ((struct mr_clock_info *)to)->kind = (enum mr_clock_kind)kind;
    return true;
}

static bool get_shift(struct mr_span *in, struct context *context, void *to)
{
    uint32_t shift;

    MR_UNUSED(context);
    if (!get_u32(in, &shift) || shift > 63)
        return false;
    ((struct mr_clock_info *)to)->shift = (uint8_t)shift;
    return true;
}

static const struct key clock_keys[] = {
    {"kind", true, get_clock_kind},
    {"mult", true, get_mult},
    {"shift", true, get_shift},
    {"ticks", true, get_ticks},
    {"realtime_ns", true, get_realtime_ns},
};

static bool get_clock(struct mr_span *in, struct context *context, void *to)
{
    struct mr_clock_info *clock = &((struct mr_source_info *)to)->clock;

    return get_map(in, context, clock_keys, MR_ARRAY_COUNT(clock_keys), clock) &&
           clock->mult != 0;
}

KEY_TEXT(mr_source_info, host)
KEY_TEXT(mr_source_info, app)
KEY_TEXT(mr_source_info, version)
KEY_TEXT(mr_source_info, exe)
KEY_U32(mr_source_info, pid)
KEY_U64(mr_source_info, start_ns)
KEY_TEXT(mr_source_info, clock_warning)
KEY_U32(mr_source_info, tick_ns)
KEY_U32(mr_source_info, tick_events)

static bool get_policy(struct mr_span *in, struct context *context, void *to)
{
    const char *const words[] = {mr_policy_name(MR_POLICY_DROP),
                                 mr_policy_name(MR_POLICY_BLOCK),
                                 mr_policy_name(MR_POLICY_OVERWRITE)};
    uint32_t policy;

    MR_UNUSED(context);
    if (!get_word(in, words, MR_ARRAY_COUNT(words), &policy))
        return false;
    ((struct mr_source_info *)to)->policy = (enum mr_policy)policy;
    return true;
}

static bool get_attributes(struct mr_span *in, struct context *context, void *to)
{
    struct mr_source_info *source = to;
    uint32_t count;

    if (!mr_msgpack_map(in, &count) || count > MR_ATTRIBUTES_MAX)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!get_text(in, context, &source->attributes[i].key) ||
            !get_text(in, context, &source->attributes[i].value))
            return false;
    }
    source->attribute_count = count;
    return true;
}

static const struct key source_keys[] = {
    {"host", true, get_host},        {"pid", true, get_pid},
    {"app", true, get_app},          {"version", false, get_version},
    {"exe", false, get_exe},         {"start_ns", true, get_start_ns},
    {"clock", true, get_clock},      {"clock_warning", false, get_clock_warning},
    {"tick_ns", false, get_tick_ns}, {"tick_events", false, get_tick_events},
    {"policy", false, get_policy},   {"attributes", false, get_attributes},
};

static bool get_id(struct mr_span *in, struct mr_id *id)
{
    struct mr_span bytes;

    if (!mr_msgpack_bytes(in, &bytes) || bytes.size != 16)
        return false;
    *id = mr_id_get(bytes.data);
    return true;
}

static bool get_sender(struct mr_span *in, struct context *context, void *to)
{
    MR_UNUSED(context);
    return get_id(in, &((struct mr_hello *)to)->sender);
}

static bool get_role(struct mr_span *in, struct context *context, void *to)
{
    static const char *const words[] = {"probe", "worker"};
    uint32_t role;

    MR_UNUSED(context);
    if (!get_word(in, words, MR_ARRAY_COUNT(words), &role))
        return false;
    ((struct mr_hello *)to)->role = (enum mr_role)role;
    return true;
}

static bool get_source(struct mr_span *in, struct context *context, void *to)
{
    return get_map(in, context, source_keys, MR_ARRAY_COUNT(source_keys),
                   &((struct mr_hello *)to)->source);
}

static bool get_custodian(struct mr_span *in, struct context *context, void *to)
{
    MR_UNUSED(context);
    return get_id(in, &((struct mr_custody_hello *)to)->custodian);
}

static bool get_shown(struct mr_span *in, struct context *context, void *to)
{
    uint32_t shown;

    MR_UNUSED(context);
    if (!get_u32(in, &shown) || shown > 1)
        return false;
    ((struct mr_custody_hello *)to)->was_shown = shown == 1;
    return true;
}

KEY_U64(mr_custody_hello, epoch)
KEY_U64(mr_custody_hello, acked)
KEY_U64(mr_custody_hello, sent)
KEY_U64(mr_custody_hello, attempt)

static const struct key custody_keys[] = {
    {"custodian", true, get_custodian}, {"epoch", true, get_epoch},
    {"acked", true, get_acked},         {"sent", true, get_sent},
    {"attempt", true, get_attempt},     {"shown", true, get_shown},
};

static bool get_custody(struct mr_span *in, struct context *context, void *to)
{
    struct mr_custody_hello *custody = &((struct mr_hello *)to)->custody;

    custody->is_told =
        get_map(in, context, custody_keys, MR_ARRAY_COUNT(custody_keys), custody);
    return custody->is_told;
}

static bool get_wanted(struct mr_span *in, struct context *context, void *to)
{
    uint32_t version;

    MR_UNUSED(context);
    if (!get_u32(in, &version))
        return false;
    ((struct mr_hello *)to)->takes_wanted = version >= 1;
    return true;
}

/* More than fits is as good as no limit. */
static bool get_offers(struct mr_span *in, struct context *context, void *to)
{
    uint64_t bytes;

    MR_UNUSED(context);
    if (!mr_msgpack_uint(in, &bytes))
        return false;
    ((struct mr_hello *)to)->resume_max =
        bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
    return true;
}

KEY_U32(mr_hello, level)
KEY_U64(mr_hello, oldest)
KEY_TEXT(mr_hello, token)

static const struct key hello_keys[] = {
    {"sender", true, get_sender},    {"role", true, get_role},
    {"level", true, get_level},      {"oldest", true, get_oldest},
    {"token", false, get_token},     {"source", false, get_source},
    {"custody", false, get_custody}, {"wanted", false, get_wanted},
    {"offers", false, get_offers},
};

static const struct mr_hello hello_defaults = {
    .token = "",
    .source = {.host = "", .app = "", .version = "", .exe = "", .clock_warning = ""},
};

static bool is_sound_custody(const struct mr_hello *hello)
{
    const struct mr_custody_hello *custody = &hello->custody;

    return custody->acked == hello->oldest - 1 && custody->sent >= custody->acked &&
           custody->sent <= MR_WIRE_SEQUENCE_MAX &&
           custody->epoch <= MR_WIRE_SEQUENCE_MAX;
}

/* What must hold of the values together. */
static bool is_sound(const struct mr_hello *hello, struct context *context)
{
    bool is_probe = hello->role == MR_ROLE_PROBE;

    if (is_probe && hello->source.clock.mult == 0)
        return fail(context, "source");
    if (is_probe != (hello->level == 0))
        return fail(context, "level");
    if (hello->oldest == 0 || hello->oldest > MR_WIRE_SEQUENCE_MAX)
        return fail(context, "oldest");
    if (hello->custody.is_told && !is_sound_custody(hello))
        return fail(context, "custody");
    return !mr_id_is_zero(hello->sender) || fail(context, "sender");
}

static bool get_hello(struct mr_span payload, struct context *context,
                      struct mr_hello *hello)
{
    *hello = hello_defaults;
    return get_map(&payload, context, hello_keys, MR_ARRAY_COUNT(hello_keys), hello) &&
           is_sound(hello, context);
}

/* A key that comes twice has its string twice in the pool: the payload's size suffices all the same. */
enum mr_status mr_hello_get(struct mr_span payload, struct mr_hello_message *message,
                            struct mr_error *error)
{
    struct context context = {.pool = {.size = payload.size}};
    struct mr_span rest = payload;

    message->memory = NULL;
    if (!mr_msgpack_skip(&rest) || rest.size)
        return mr_error_set(
            error, MR_EFORMAT,
            "HELLO: not one whole msgpack map, or nested more than 8 deep");
    message->memory = context.pool.memory = malloc(payload.size);
    if (!message->memory)
        return mr_error_set(error, MR_ENOMEM, "HELLO: no memory for %zu bytes",
                            payload.size);
    if (get_hello(payload, &context, &message->hello))
        return MR_OK;
    mr_hello_free(message);
    if (!context.wrong)
        return mr_error_set(error, MR_EFORMAT, "HELLO: no msgpack map from texts");
    return mr_error_set(error, MR_EFORMAT, "HELLO: key '%s' is missing or wrong",
                        context.wrong);
}

void mr_hello_free(struct mr_hello_message *message)
{
    free(message->memory);
    message->memory = NULL;
}
