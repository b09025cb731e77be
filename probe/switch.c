/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field       written by           read by        access
 * switching   who switches         who wants to   compare-exchange [A], release [F]; a
 *                                                 futex. Waits are bounded
 * is_on       who switches         any thread     relaxed: what the last switch said
 * endpoints   who switches, before writer,        before the threads start
 *              the writer starts   helper
 * Pairs: [F]-[A] all that a switch does.
 */
#include "probe/switch.h"

#include "base/clock.h"
#include "probe/futex.h"
#include "probe/include/millrace/probe.h"
#include "probe/patience.h"
#include "probe/registry.h"
#include "probe/sites.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* As the helper does for forks: who forks inside a switch must not wait for itself. */
#define FORK_LOCK_NS (200 * MR_MILLISECOND_NS)
#define LOCK_POLL_NS (10 * MR_MILLISECOND_NS)

bool mr_switch_lock(struct mr_probe *probe, uint64_t timeout_ns)
{
    struct mr_patience patience = mr_patience_begin();
    uint32_t is_taken = 0;

    while (!mr_compare_exchange_acq_rel(&probe->switching, &is_taken, 1)) { /* [A] */
        if (mr_patience_left(&patience, timeout_ns) == 0 ||
            mr_load_relaxed(&probe->stop_wanted))
            return false;
        mr_futex_wait(&probe->switching, 1, LOCK_POLL_NS);
        is_taken = 0;
    }
    return true;
}

void mr_switch_unlock(struct mr_probe *probe)
{
    mr_store_release(&probe->switching, 0); /* [F] */
    mr_futex_wake(&probe->switching);
}

static bool is_same_endpoint(const struct mr_endpoints *a, const struct mr_endpoints *b)
{
    bool is_same = a->count == b->count;

    for (uint32_t i = 0; is_same && i < a->count; i++)
        is_same = strcmp(a->items[i].host, b->items[i].host) == 0 &&
                  strcmp(a->items[i].port, b->items[i].port) == 0;
    return is_same;
}

static enum mr_status refuse_other(const struct mr_config *there, const char *text,
                                   struct mr_error *error)
{
    const struct mr_endpoint *first = &there->endpoints.items[0];

    if (there->is_discarding)
        return mr_error_set(error, MR_EUSAGE,
                            "--endpoint %.100s: the program was told to discard its "
                            "events, for as long as it runs",
                            text);
    return mr_error_set(error, MR_EUSAGE,
                        "--endpoint %.100s: the program sends to tcp://%.80s:%s "
                        "already, for as long as it runs",
                        text, first->host, first->port);
}

static enum mr_status set_endpoint(struct mr_probe *probe, const char *text,
                                   struct mr_error *error)
{
    struct mr_config *there = &probe->config;
    struct mr_endpoints wanted;
    bool is_discarding;

    if (there->policy == MR_POLICY_OVERWRITE)
        return mr_error_set(error, MR_EUSAGE,
                            "--endpoint: a flight recorder (MILLRACE_POLICY=overwrite) "
                            "sends nothing");
    if (!text && mr_config_has_endpoint(there))
        return MR_OK;
    if (!text)
        return mr_error_set(error, MR_EUSAGE,
                            "the program was started without MILLRACE_ENDPOINT: say "
                            "where events go with --endpoint tcp://host:port");
    if (mr_config_parse_endpoint(text, &wanted, &is_discarding) != MR_OK)
        return mr_error_set(error, MR_EUSAGE,
                            "--endpoint %.100s: expected tcp://host:port, several with "
                            "commas, or discard alone",
                            text);
    if (mr_config_has_endpoint(there) && (there->is_discarding != is_discarding ||
                                          !is_same_endpoint(&there->endpoints, &wanted)))
        return refuse_other(there, text, error);
    there->endpoints = wanted;
    there->is_discarding = is_discarding;
    return MR_OK;
}

/* The first time; later ones find everything running. */
static enum mr_status prepare(struct mr_probe *probe, const char *endpoint,
                              struct mr_error *error)
{
    enum mr_status status;

    if (probe->is_unusable)
        return mr_error_set(error, MR_EUSAGE,
                            "this forked process has no means to record");
    status = probe->config.policy == MR_POLICY_OVERWRITE && !endpoint
                 ? MR_OK
                 : set_endpoint(probe, endpoint, error);
    if (status != MR_OK || mr_load_relaxed(&probe->is_running))
        return status;
    return mr_probe_run(probe, error);
}

static bool has_choice(const struct mr_switch_request *request)
{
    return request->only_count || request->except_count || request->min_size;
}

void mr_switch_wait_margin(const struct mr_probe *probe)
{
    bool is_hybrid = probe->clock.mode == MR_CLOCK_MODE_HYBRID;
    uint64_t margin_ns = is_hybrid ? MR_CUT_MARGIN_HYBRID_NS : MR_CUT_MARGIN_NS;
    uint64_t until_ns = mr_clock_monotonic_ns() + margin_ns, now_ns;

    while ((now_ns = mr_clock_monotonic_ns()) < until_ns)
        mr_sleep_ns(until_ns - now_ns);
}

static void cut(struct mr_probe *probe)
{
    uint64_t ticks = mr_clock_read(probe->clock.mode);

    mr_cuts_add(&probe->pool.shared.cuts, ticks);
    if (probe->recorder.header)
        mr_cuts_add(&probe->recorder.header->cuts, ticks);
}

/* Everything means: what the environment chose, where it did. */
static struct mr_site_filter filter_of(const struct mr_probe *probe,
                                       const struct mr_switch_request *request,
                                       bool has_choice)
{
    const struct mr_config *config = &probe->config;

    if (has_choice || !request->is_on)
        return (struct mr_site_filter){.only = request->only,
                                       .except = request->except,
                                       .only_count = request->only_count,
                                       .except_count = request->except_count,
                                       .min_size = request->min_size};
    return (struct mr_site_filter){.only = config->only.items,
                                   .except = config->except.items,
                                   .only_count = config->only.count,
                                   .except_count = config->except.count,
                                   .min_size = config->min_size};
}

static void list_unmatched(struct mr_switch_result *result)
{
    uint32_t at = 0;

    while (result->unmatched_count < MR_SWITCH_UNMATCHED_MAX &&
           mr_sites_unmatched(&at, result->unmatched[result->unmatched_count],
                              MR_SWITCH_GLOB_SIZE))
        result->unmatched_count++;
}

/*
 * Off: the code first, so that nothing is called in vain; on: the gate first. What cannot
 * be patched does not keep spans and hooks from being switched.
 */
static enum mr_status change_all(struct mr_probe *probe, bool is_on,
                                 const struct mr_site_filter *filter,
                                 struct mr_switch_result *result)
{
    struct mr_error error = MR_ERROR_NONE;

    if (is_on)
        mr_probe_set_active(true);
    if (mr_sites_switch(filter, is_on, &result->sites, &error) != MR_OK)
        (void)snprintf(result->refused_why, sizeof(result->refused_why), "%s",
                       error.text);
    if (!is_on)
        mr_probe_set_active(false);
    mr_store_relaxed(&probe->is_on, is_on);
    return MR_OK;
}

/* Spans are switched all together: on with the first choice. */
static enum mr_status change_some(struct mr_probe *probe, bool is_on,
                                  const struct mr_site_filter *filter,
                                  struct mr_switch_result *result, struct mr_error *error)
{
    static const struct mr_site_filter all;
    bool was_off = !result->was_on;
    enum mr_status status;

    if (is_on && was_off)
        mr_probe_set_active(true);
    status = mr_sites_switch(filter, is_on, &result->sites, error);
    if (status == MR_OK)
        list_unmatched(result);
    if (is_on && was_off &&
        (status != MR_OK || result->sites.matched + result->sites.hooked == 0)) {
        (void)mr_sites_switch(&all, false, NULL, NULL);
        mr_probe_set_active(false);
    } else if (is_on) {
        mr_store_relaxed(&probe->is_on, 1);
    }
    return status;
}

static bool is_nothing_to_do(const struct mr_probe *probe,
                             const struct mr_switch_request *request,
                             const struct mr_switch_result *result)
{
    if (result->has_choice || request->is_on != result->was_on)
        return false;
    return !request->is_on || probe->is_whole;
}

static enum mr_status change(struct mr_probe *probe,
                             const struct mr_switch_request *request,
                             struct mr_switch_result *result, struct mr_error *error)
{
    struct mr_site_filter filter = filter_of(probe, request, result->has_choice);
    enum mr_status status;

    if (is_nothing_to_do(probe, request, result))
        return MR_OK;
    cut(probe);
    mr_switch_wait_margin(probe);
    if (result->has_choice)
        status = change_some(probe, request->is_on, &filter, result, error);
    else
        status = change_all(probe, request->is_on, &filter, result);
    probe->is_whole = !result->has_choice && request->is_on;
    cut(probe);
    mr_cuts_settle(&probe->pool.shared.cuts);
    mr_ring_wake_writer(&probe->pool.shared);
    return status;
}

enum mr_status mr_switch(struct mr_probe *probe, const struct mr_switch_request *request,
                         struct mr_switch_result *result, struct mr_error *error)
{
    int saved_errno = errno;
    enum mr_status status = MR_OK;

    memset(result, 0, sizeof(*result));
    if (!mr_switch_lock(probe, MR_SWITCH_LOCK_NS))
        return mr_error_set(error, MR_ETIMEOUT,
                            mr_load_relaxed(&probe->stop_wanted)
                                ? "the program ends"
                                : "another switch does not end");
    result->was_on = mr_load_relaxed(&probe->is_on);
    result->has_choice = has_choice(request);
    if (request->is_on)
        status = prepare(probe, request->endpoint, error);
    if (status == MR_OK)
        status = change(probe, request, result, error);
    result->is_on = mr_load_relaxed(&probe->is_on);
    mr_switch_unlock(probe);
    errno = saved_errno;
    return status;
}

/* Of the forking thread: others may fork at the same time. */
static _Thread_local bool is_fork_locked MR_TLS_INITIAL_EXEC;

void mr_switch_before_fork(struct mr_probe *probe)
{
    is_fork_locked = mr_switch_lock(probe, FORK_LOCK_NS);
}

void mr_switch_after_fork(struct mr_probe *probe, bool is_child)
{
    if (is_fork_locked || is_child) /* in the child nobody else can hold it */
        mr_switch_unlock(probe);
    is_fork_locked = false;
}

void mr_switch_end(struct mr_probe *probe)
{
    (void)mr_switch_lock(probe, FORK_LOCK_NS);
}

MR_EXPORT int mr_probe_switch(int is_on, const struct mr_probe_filter *filter)
{
    struct mr_switch_request request = {.is_on = is_on != 0};
    struct mr_switch_result result;

    if (!mr_probe)
        return -1;
    if (filter) {
        request.only = filter->only;
        request.except = filter->except;
        request.min_size = filter->min_size;
        while (filter->only && filter->only[request.only_count])
            request.only_count++;
        while (filter->except && filter->except[request.except_count])
            request.except_count++;
    }
    return mr_switch(mr_probe, &request, &result, NULL) == MR_OK ? 0 : -1;
}
