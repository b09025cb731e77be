/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/filters/account.h"

#include "base/atomics.h"
#include "pipeline/counters.h"

struct account {
    const struct mr_account_config *config;
    struct mr_counters counters;
    uint64_t told[MR_FILTER_COUNTERS];
};

static enum mr_status account_open(struct mr_filter *filter, const void *config,
                                   struct mr_error *error)
{
    struct account *account = mr_filter_state(filter);

    account->config = config;
    if (!account->config || account->config->count > MR_FILTER_COUNTERS)
        return mr_error_set(error, MR_EUSAGE, "account: needs at most %d counters",
                            MR_FILTER_COUNTERS);
    mr_counters_init(&account->counters, filter, account->config->names,
                     account->config->count);
    return MR_OK;
}

static enum mr_status account_process(struct mr_filter *filter, struct mr_batch *batch)
{
    return mr_filter_emit(filter, batch);
}

static void look(struct account *account)
{
    for (uint32_t i = 0; i < account->config->count; i++) {
        uint64_t now = mr_load_relaxed(account->config->values[i]);

        mr_counters_add(&account->counters, i, now - account->told[i]);
        account->told[i] = now;
    }
}

static enum mr_status account_tick(struct mr_filter *filter, uint64_t now_ns)
{
    struct account *account = mr_filter_state(filter);

    look(account);
    return mr_counters_tick(&account->counters, account->config->level, now_ns);
}

static enum mr_status account_drain(struct mr_filter *filter)
{
    struct account *account = mr_filter_state(filter);

    look(account);
    return mr_counters_emit(&account->counters, account->config->level);
}

const struct mr_filter_kind mr_account_filter = {.name = "account",
                                                 .state_size = sizeof(struct account),
                                                 .open = account_open,
                                                 .process = account_process,
                                                 .tick = account_tick,
                                                 .drain = account_drain};
