/* SPDX-License-Identifier: Apache-2.0 */
/* What a running probe answers to status, on, off and flush. */
#include "probe/control.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "probe/hook.h"
#include "probe/include/millrace/probe.h"
#include "probe/registry.h"
#include "probe/sites.h"
#include "probe/switch.h"

#include <inttypes.h>
#include <string.h>

#define CHOICES_MAX 64
#define FLUSH_MS 10000
#define FLUSH_MS_MAX 60000

static void put_endpoints(const struct mr_probe *probe, struct mr_attach_writer *answer)
{
    const struct mr_endpoints *endpoints = &probe->config.endpoints;

    if (probe->config.is_discarding)
        mr_attach_put(answer, "endpoint", "%s", MR_ENDPOINT_DISCARD);
    for (uint32_t i = 0; i < endpoints->count; i++)
        mr_attach_put(answer, "endpoint",
                      strchr(endpoints->items[i].host, ':') ? "tcp://[%s]:%s"
                                                            : "tcp://%s:%s",
                      endpoints->items[i].host, endpoints->items[i].port);
}

static void put_state(const struct mr_probe *probe, struct mr_attach_writer *answer)
{
    mr_attach_put(answer, "state", "%s", mr_load_relaxed(&probe->is_on) ? "on" : "off");
}

static void put_losses(const struct mr_probe *probe, struct mr_attach_writer *answer)
{
    static const char *const names[MR_LOSS_REASON_COUNT] = {
#define X(number, name, text, meaning) [number] = (text),
        MR_LOSS_REASONS(X)
#undef X
    };

    for (uint32_t i = 1; i < MR_LOSS_REASON_COUNT; i++) {
        uint64_t lost = mr_probe_lost(probe, i);

        if (lost > 0)
            mr_attach_put(answer, "lost", "%" PRIu64 " %s", lost, names[i]);
    }
}

static void put_sites(struct mr_attach_writer *answer)
{
    struct mr_sites_counts counts;

    mr_sites_count(&counts);
    mr_attach_put(answer, "hooks", "%s",
                  mr_load_relaxed(&mr_hook_state.hook_clock) ? "on" : "off");
    if (counts.modules > 0) {
        mr_attach_put(answer, "functions", "%" PRIu32, counts.sites);
        mr_attach_put(answer, "functions-on", "%" PRIu32, counts.on);
    }
    if (counts.modules_refused > 0)
        mr_attach_put(answer, "refused", "%" PRIu32 " modules: %s",
                      counts.modules_refused, counts.refused_why);
}

static void put_switched(const struct mr_switch_result *result,
                         struct mr_attach_writer *answer)
{
    const struct mr_sites_result *sites = &result->sites;

    if (result->has_choice || sites->matched > 0)
        mr_attach_put(answer, "matched", "%" PRIu32, sites->matched);
    if (result->has_choice || sites->switched > 0)
        mr_attach_put(answer, "switched", "%" PRIu32, sites->switched);
    if (sites->refused > 0)
        mr_attach_put(answer, "refused",
                      "%" PRIu32 " functions: their code is not what it was, or is not "
                      "to be written",
                      sites->refused);
    if (result->refused_why[0])
        mr_attach_put(answer, "refused", "%s", result->refused_why);
    if (result->has_choice && sites->hooked > 0)
        mr_attach_put(answer, "matched-hooks", "%" PRIu32, sites->hooked);
    for (uint32_t i = 0; i < result->unmatched_count; i++)
        mr_attach_put(answer, "unmatched", "%s", result->unmatched[i]);
}

static const char *clock_name(enum mr_clock_mode mode)
{
    if (mode == MR_CLOCK_MODE_HYBRID)
        return "hybrid";
    return mr_clock_ticks_name(mode == MR_CLOCK_MODE_MONOTONIC ? MR_CLOCK_TICKS_MONOTONIC
                                                               : mr_clock_ticks_kind());
}

/* Of a process that never recorded there are none: absent, not 0. */
static void put_events(struct mr_probe *probe, struct mr_attach_writer *answer)
{
    if (!mr_load_acquire(&probe->is_running))
        return;
    mr_attach_put(answer, "streams", "%" PRIu32,
                  mr_load_relaxed(&probe->pool.next_stream) - 1);
    mr_attach_put(answer, "ring-bytes", "%" PRIu64,
                  mr_load_relaxed(&probe->pool.mapped_bytes));
    mr_attach_put(answer, "events-written", "%" PRIu64,
                  mr_load_acquire(&probe->events_written));
    mr_attach_put(answer, "events-acked", "%" PRIu64,
                  mr_load_acquire(&probe->events_acked));
    if (probe->config.is_discarding)
        mr_attach_put(answer, "events-discarded", "%" PRIu64,
                      mr_load_acquire(&probe->events_discarded));
    put_losses(probe, answer);
}

enum mr_status mr_control_status(struct mr_probe *probe,
                                 const struct mr_control_request *request,
                                 struct mr_attach_writer *answer, struct mr_error *error)
{
    char id[MR_ID_TEXT_SIZE];

    MR_UNUSED(request);
    MR_UNUSED(error);
    mr_attach_put(answer, "pid", "%" PRIu32, probe->source.pid);
    mr_attach_put(answer, "app", "%s", probe->config.app);
    mr_attach_put(answer, "host", "%s", probe->source.host);
    mr_attach_put(answer, "source", "%s", mr_id_format(probe->source.id, id));
    mr_attach_put(answer, "library", "%s", MR_VERSION);
    put_state(probe, answer);
    put_sites(answer);
    mr_attach_put(answer, "spans", "%" PRIu32,
                  mr_named_count(&probe->named) - 1); /* the first is no span */
    put_endpoints(probe, answer);
    mr_attach_put(answer, "policy", "%s", mr_policy_name(probe->config.policy));
    mr_attach_put(answer, "clock", "%s", clock_name(probe->clock.mode));
    if (probe->depth.limit > 0) {
        mr_attach_put(answer, "depth", "%" PRIu32, probe->depth.limit);
        mr_attach_put(answer, "calls-below", "%" PRIu64, mr_depth_skipped(&probe->depth));
    }
    mr_attach_put(answer, "memory", "%" PRIu64, probe->config.memory_bytes);
    put_events(probe, answer);
    mr_control_put_prune(probe, answer);
    return MR_OK;
}

/* All values of a key. */
static uint32_t choices_of(const struct mr_attach_message *message, const char *key,
                           const char **out)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < message->count; i++)
        if (strcmp(message->fields[i].key, key) == 0 && count++ < CHOICES_MAX)
            out[count - 1] = message->fields[i].value;
    return count;
}

static enum mr_status read_choice(const struct mr_attach_message *message,
                                  const char **only, const char **except,
                                  struct mr_switch_request *wanted,
                                  struct mr_error *error)
{
    wanted->only = only;
    wanted->except = except;
    wanted->only_count = choices_of(message, "only", only);
    wanted->except_count = choices_of(message, "except", except);
    wanted->endpoint = mr_attach_get(message, "endpoint");
    if (wanted->only_count > CHOICES_MAX || wanted->except_count > CHOICES_MAX)
        return mr_error_set(error, MR_EUSAGE, "more than %d globs", CHOICES_MAX);
    if (mr_attach_get(message, "min-size") &&
        !mr_attach_get_u64(message, "min-size", &wanted->min_size))
        return mr_error_set(error, MR_EUSAGE, "min-size %.40s: expected a number",
                            mr_attach_get(message, "min-size"));
    return MR_OK;
}

static enum mr_status switch_sites(struct mr_probe *probe, bool is_on,
                                   const struct mr_control_request *request,
                                   struct mr_attach_writer *answer,
                                   struct mr_error *error)
{
    const char *only[CHOICES_MAX], *except[CHOICES_MAX];
    struct mr_switch_request wanted = {.is_on = is_on};
    struct mr_switch_result result;
    enum mr_status status = read_choice(request->message, only, except, &wanted, error);

    if (status == MR_OK)
        status = mr_switch(probe, &wanted, &result, error);
    if (status != MR_OK)
        return status;
    mr_attach_put(answer, "pid", "%" PRIu32, probe->source.pid);
    mr_attach_put(answer, "app", "%s", probe->config.app);
    mr_attach_put(answer, "was", "%s", result.was_on ? "on" : "off");
    put_state(probe, answer);
    put_switched(&result, answer);
    put_sites(answer);
    put_endpoints(probe, answer);
    return MR_OK;
}

enum mr_status mr_control_on(struct mr_probe *probe,
                             const struct mr_control_request *request,
                             struct mr_attach_writer *answer, struct mr_error *error)
{
    return switch_sites(probe, true, request, answer, error);
}

enum mr_status mr_control_off(struct mr_probe *probe,
                              const struct mr_control_request *request,
                              struct mr_attach_writer *answer, struct mr_error *error)
{
    return switch_sites(probe, false, request, answer, error);
}

enum mr_status mr_control_flush(struct mr_probe *probe,
                                const struct mr_control_request *request,
                                struct mr_attach_writer *answer, struct mr_error *error)
{
    uint64_t timeout_ms = FLUSH_MS;

    if (mr_attach_get(request->message, "timeout-ms") &&
        (!mr_attach_get_u64(request->message, "timeout-ms", &timeout_ms) ||
         timeout_ms > FLUSH_MS_MAX))
        return mr_error_set(error, MR_EUSAGE, "timeout-ms %.40s: expected 0 to %d",
                            mr_attach_get(request->message, "timeout-ms"), FLUSH_MS_MAX);
    if (!mr_load_acquire(&probe->is_running))
        return mr_error_set(error, MR_EUSAGE, "the program never recorded");
    if (!mr_probe_flush_within(probe, timeout_ms * MR_MILLISECOND_NS))
        return mr_error_set(error, MR_ETIMEOUT,
                            "not all events are in custody after %" PRIu64 " ms",
                            timeout_ms);
    mr_attach_put(answer, "pid", "%" PRIu32, probe->source.pid);
    put_events(probe, answer);
    return MR_OK;
}
