/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "net/msgpack_write.h"

static void put_clock(struct mr_packer *packer, const struct mr_clock_info *clock)
{
    mr_pack_key(packer, "clock");
    (void)msgpack_pack_map(&packer->pack, 5);
    mr_pack_key_text(packer, "kind", mr_clock_kind_name(clock->kind));
    mr_pack_key_uint(packer, "mult", clock->mult);
    mr_pack_key_uint(packer, "shift", clock->shift);
    mr_pack_key_uint(packer, "ticks", clock->ticks);
    mr_pack_key_uint(packer, "realtime_ns", clock->realtime_ns);
}

static void put_attributes(struct mr_packer *packer, const struct mr_source_info *source)
{
    MR_DEBUG_ASSERT(source->attribute_count <= MR_ATTRIBUTES_MAX);
    mr_pack_key(packer, "attributes");
    (void)msgpack_pack_map(&packer->pack, source->attribute_count);
    for (uint32_t i = 0; i < source->attribute_count; i++)
        mr_pack_key_text(packer, source->attributes[i].key, source->attributes[i].value);
}

static void put_source(struct mr_packer *packer, const struct mr_source_info *source)
{
    bool has_warning = source->clock_warning && *source->clock_warning;
    bool has_tick = source->tick_ns > 0;

    mr_pack_key(packer, "source");
    (void)msgpack_pack_map(&packer->pack, 9u + has_warning + (has_tick ? 2u : 0u));
    mr_pack_key_text(packer, "host", source->host);
    mr_pack_key_uint(packer, "pid", source->pid);
    mr_pack_key_text(packer, "app", source->app);
    mr_pack_key_text(packer, "version", source->version);
    mr_pack_key_text(packer, "exe", source->exe);
    mr_pack_key_uint(packer, "start_ns", source->start_ns);
    put_clock(packer, &source->clock);
    if (has_warning)
        mr_pack_key_text(packer, "clock_warning", source->clock_warning);
    if (has_tick) {
        mr_pack_key_uint(packer, "tick_ns", source->tick_ns);
        mr_pack_key_uint(packer, "tick_events", source->tick_events);
    }
    mr_pack_key_text(packer, "policy", mr_policy_name(source->policy));
    put_attributes(packer, source);
}

static void put_custody(struct mr_packer *packer, const struct mr_custody_hello *custody)
{
    mr_pack_key(packer, "custody");
    (void)msgpack_pack_map(&packer->pack, 6);
    mr_pack_key(packer, "custodian");
    mr_pack_id(packer, custody->custodian);
    mr_pack_key_uint(packer, "epoch", custody->epoch);
    mr_pack_key_uint(packer, "acked", custody->acked);
    mr_pack_key_uint(packer, "sent", custody->sent);
    mr_pack_key_uint(packer, "attempt", custody->attempt);
    mr_pack_key_uint(packer, "shown", custody->was_shown);
}

size_t mr_hello_put(const struct mr_hello *hello, uint8_t *out, size_t capacity)
{
    bool is_probe = hello->role == MR_ROLE_PROBE,
         has_token = hello->token && *hello->token;
    struct mr_packer packer;

    mr_packer_init(&packer, out, capacity);
    (void)msgpack_pack_map(&packer.pack,
                           4u + has_token + is_probe + hello->custody.is_told +
                               hello->takes_wanted + (hello->resume_max > 0));
    mr_pack_key(&packer, "sender");
    mr_pack_id(&packer, hello->sender);
    mr_pack_key_text(&packer, "role", is_probe ? "probe" : "worker");
    mr_pack_key_uint(&packer, "level", hello->level);
    mr_pack_key_uint(&packer, "oldest", hello->oldest);
    if (has_token)
        mr_pack_key_text(&packer, "token", hello->token);
    if (is_probe)
        put_source(&packer, &hello->source);
    if (hello->custody.is_told)
        put_custody(&packer, &hello->custody);
    if (hello->takes_wanted)
        mr_pack_key_uint(&packer, "wanted", 1);
    if (hello->resume_max)
        mr_pack_key_uint(&packer, "offers", hello->resume_max);
    return packer.is_full ? 0 : packer.size;
}
