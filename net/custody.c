/* SPDX-License-Identifier: Apache-2.0 */
#include "net/custody.h"

#include "base/assert.h"

static bool goes_on(const struct mr_custody *custody, struct mr_id self,
                    const struct mr_custody_hello *hello)
{
    return custody->state == MR_CUSTODY_BROKEN && mr_id_equal(hello->custodian, self) &&
           hello->epoch == custody->epoch && !hello->was_shown &&
           hello->acked <= custody->taken && custody->taken <= hello->sent;
}

enum mr_custody_step mr_custody_greet(struct mr_custody *custody, struct mr_id self,
                                      const struct mr_custody_hello *hello)
{
    MR_ASSERT(custody->state != MR_CUSTODY_OPEN);
    if (hello->attempt < custody->attempt)
        return MR_CUSTODY_STALE;
    custody->attempt = hello->attempt;
    if (goes_on(custody, self, hello)) {
        custody->state = MR_CUSTODY_OPEN;
        return MR_CUSTODY_GO_ON;
    }
    if (custody->state == MR_CUSTODY_BROKEN || custody->state == MR_CUSTODY_CLAIMING)
        return MR_CUSTODY_CLAIM_FIRST;
    return hello->acked == hello->sent ? MR_CUSTODY_BEGIN : MR_CUSTODY_ASK;
}

void mr_custody_begin(struct mr_custody *custody, const struct mr_custody_hello *hello,
                      uint64_t position)
{
    MR_ASSERT(custody->state == MR_CUSTODY_VOID || custody->state == MR_CUSTODY_CLOSED);
    MR_ASSERT(position >= hello->acked && position <= hello->sent);
    custody->epoch = hello->epoch + 1;
    custody->taken = custody->settled = position;
    custody->state = MR_CUSTODY_OPEN;
}

void mr_custody_take(struct mr_custody *custody, uint64_t sequence)
{
    MR_ASSERT(custody->state == MR_CUSTODY_OPEN && sequence == custody->taken + 1);
    custody->taken = sequence;
}

bool mr_custody_settle(struct mr_custody *custody, uint64_t sequence)
{
    if (sequence <= custody->settled || sequence > custody->taken)
        return false;
    custody->settled = sequence;
    return true;
}

void mr_custody_break(struct mr_custody *custody)
{
    MR_ASSERT(custody->state == MR_CUSTODY_OPEN);
    custody->state = MR_CUSTODY_BROKEN;
}

bool mr_custody_claim(struct mr_custody *custody)
{
    MR_ASSERT(custody->state == MR_CUSTODY_BROKEN);
    custody->state =
        custody->settled < custody->taken ? MR_CUSTODY_CLAIMING : MR_CUSTODY_CLOSED;
    return custody->state == MR_CUSTODY_CLAIMING;
}

void mr_custody_decide(struct mr_custody *custody, uint64_t position)
{
    MR_ASSERT(custody->state == MR_CUSTODY_CLAIMING);
    if (position > custody->settled)
        custody->settled = position < custody->taken ? position : custody->taken;
    custody->taken = custody->settled;
    custody->state = MR_CUSTODY_CLOSED;
}
