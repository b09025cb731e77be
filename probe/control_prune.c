/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a running probe answers about functions that are called too often for what they do:
 * those that it prunes, and those that it would be worth leaving out (probe/prune.h).
 */
#include "probe/control.h"

#include "probe/pruned.h"
#include "probe/registry.h"
#include "probe/symbols.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORST_COUNT 10
#define TOLD_MAX 64
#define NAME_SIZE 256

/* By its symbol, or where it has none, by its place. Asks the loader, reads files. */
static void name_of(const struct mr_probe *probe, uint32_t site, char name[NAME_SIZE])
{
    uint64_t address = mr_windows_address(&probe->windows, site);
    struct mr_symbols symbols;
    struct mr_module module;
    uint32_t at;

    (void)snprintf(name, NAME_SIZE, "site-%" PRIu32, site);
    if (!mr_modules_find(address, &module))
        return;
    (void)snprintf(name, NAME_SIZE, "%.200s+0x%" PRIx64, module.path,
                   address - module.bias);
    if (mr_symbols_open(&symbols, &module) != MR_OK)
        return;
    at = mr_symbols_first(&symbols, address);
    if (at < symbols.count && symbols.items[at].address == address)
        (void)snprintf(name, NAME_SIZE, "%s", symbols.items[at].name);
    mr_symbols_close(&symbols);
}

static void put_pruned(const struct mr_probe *probe, struct mr_attach_writer *answer)
{
    uint32_t count = mr_load_acquire(&mr_pruned.count), told = 0;

    mr_attach_put(answer, "pruned", "%" PRIu32, mr_pruned_now());
    for (uint32_t i = 0; i < count && told < TOLD_MAX; i++) {
        uint32_t slot = mr_pruned_slot(i);
        uint64_t calls = mr_pruned_calls(&probe->pool, slot);
        char name[NAME_SIZE];

        if (!mr_load_relaxed(&mr_pruned_at(slot)->is_pruned) && calls == 0)
            continue;
        name_of(probe, mr_load_relaxed(&mr_pruned.sites[slot]), name);
        mr_attach_put(
            answer, "pruned-function", "%" PRIu64 " %s%s", calls, name,
            mr_load_relaxed(&mr_pruned_at(slot)->is_pruned) ? "" : " (recorded again)");
        told++;
    }
}

struct worst {
    uint32_t count;
    struct mr_site_stat items[WORST_COUNT]; /* most cheap calls first */
};

static void add_worst(struct worst *worst, const struct mr_site_stat *stat)
{
    uint32_t at = worst->count;

    if (stat->cheap == 0 ||
        (at == WORST_COUNT && worst->items[--at].cheap >= stat->cheap))
        return;
    for (; at > 0 && worst->items[at - 1].cheap < stat->cheap; at--)
        worst->items[at] = worst->items[at - 1];
    worst->items[at] = *stat;
    worst->count += worst->count < WORST_COUNT;
}

/* Only where it is over half of all calls, as `millrace report` has it. */
static void put_worst(const struct mr_probe *probe, struct mr_attach_writer *answer)
{
    const struct mr_site_stats *stats = &probe->prune.stats;
    struct worst worst = {.count = 0};
    struct mr_site_stat stat;
    uint64_t calls, cheap;

    if (probe->clock.mode == MR_CLOCK_MODE_HYBRID ||
        !mr_site_stats_total(stats, &calls, &cheap) || calls < MR_PRUNE_CALLS_MIN ||
        cheap <= calls / 2)
        return;
    for (uint32_t i = 0; i < MR_SITE_STATS_SLOTS; i++)
        if (mr_site_stats_read(stats, i, &stat))
            add_worst(&worst, &stat);
    mr_attach_put(answer, "short-calls",
                  "%" PRIu64 " %% of those looked at have bodies under %d ns",
                  cheap * 100 / calls, MR_PRUNE_CHEAP_NS);
    for (uint32_t i = 0; i < worst.count; i++) {
        char name[NAME_SIZE];

        name_of(probe, worst.items[i].site, name);
        mr_attach_put(answer, "short-function", "%" PRIu64 " %% %s",
                      (uint64_t)worst.items[i].cheap * 100 / calls, name);
    }
}

void mr_control_put_prune(struct mr_probe *probe, struct mr_attach_writer *answer)
{
    uint64_t limit_ns = mr_load_relaxed(&probe->prune.limit_ns);

    if (limit_ns > 0)
        mr_attach_put(answer, "prune-ns", "%" PRIu64, limit_ns);
    if (limit_ns > 0 || mr_load_acquire(&mr_pruned.count) > 0)
        put_pruned(probe, answer);
    put_worst(probe, answer);
}

enum mr_status mr_control_prune(struct mr_probe *probe,
                                const struct mr_control_request *request,
                                struct mr_attach_writer *answer, struct mr_error *error)
{
    const char *text = mr_attach_get(request->message, "limit-ns");
    enum mr_status status;
    uint64_t limit_ns;

    if (!text || !mr_attach_get_u64(request->message, "limit-ns", &limit_ns) ||
        limit_ns > MR_PRUNE_NS_MAX)
        return mr_error_set(error, MR_EUSAGE,
                            "limit-ns %.40s: expected 0, which is off, to %" PRIu64,
                            text ? text : "", MR_PRUNE_NS_MAX);
    status = mr_prune_set(probe, limit_ns, error);
    if (status != MR_OK)
        return status;
    mr_attach_put(answer, "pid", "%" PRIu32, probe->source.pid);
    mr_attach_put(answer, "app", "%s", probe->config.app);
    mr_attach_put(answer, "state", "%s", mr_load_relaxed(&probe->is_on) ? "on" : "off");
    mr_control_put_prune(probe, answer);
    return MR_OK;
}
