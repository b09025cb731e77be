/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/node_budget.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/clock.h"

void mr_node_budget_init(struct mr_node_budget *budget, uint64_t rate, uint64_t most)
{
    MR_ASSERT(rate <= UINT64_C(1000000000));
    *budget = (struct mr_node_budget){.rate = rate, .most = most, .credit = most};
}

void mr_node_budget_fini(struct mr_node_budget *budget)
{
    free(budget->marks);
    budget->marks = NULL;
}

void mr_node_budget_refill(struct mr_node_budget *budget, uint64_t now_ns)
{
    uint64_t since_ns = now_ns > budget->told_ns ? now_ns - budget->told_ns : 0, more;

    if (since_ns > MR_SECOND_NS)
        since_ns = MR_SECOND_NS;
    if (budget->told_ns == 0)
        since_ns = 0;
    more = budget->rate * (since_ns / 1000) / (MR_SECOND_NS / 1000);
    if (budget->told_ns && more == 0)
        return; /* so that frequent calls add up */
    budget->credit =
        more < budget->most - budget->credit ? budget->credit + more : budget->most;
    budget->told_ns = now_ns;
}

/* Leaves a mark. Whether it was there, and nothing has come over it. Without memory: never. */
static bool is_met(struct mr_node_budget *budget, uint64_t hash)
{
    uint64_t mixed = hash * UINT64_C(0x9e3779b97f4a7c15);
    uint16_t mark = (uint16_t)(mixed >> 32 | 1), *at;

    if (!budget->marks)
        budget->marks = calloc(MR_NODE_BUDGET_MARKS, sizeof(*budget->marks));
    if (!budget->marks)
        return false;
    at = &budget->marks[mixed >> 48];
    if (*at == mark)
        return true;
    *at = mark;
    return false;
}

bool mr_node_budget_takes(struct mr_node_budget *budget, uint64_t hash)
{
    if (budget->credit <= budget->most / 2 &&
        (!is_met(budget, hash) || budget->credit == 0))
        return false;
    budget->credit--;
    return true;
}

void mr_node_budget_pay(struct mr_node_budget *budget, uint64_t nodes)
{
    budget->credit -= nodes < budget->credit ? nodes : budget->credit;
}
