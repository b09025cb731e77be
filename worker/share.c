/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/share.h"

/* What noise does not reach: utilisation is of a second or two. */
#define BUSY_MARGIN 0.15
#define SENDERS_MARGIN 2.0
#define SENDERS_MARGIN_SHARE 0.125
/* Equally busy, as far as one can tell. */
#define BUSY_SAME 0.05
/* 1.99999 is 2. */
#define ROUNDING 0.001

struct level {
    double utilisation, senders; /* means, of all that are up, us included */
};

static bool look(const struct mr_agent_view *own, const struct mr_agent_view *others,
                 uint32_t count, struct level *level)
{
    uint32_t up = 1;

    *level = (struct level){own->utilisation, own->senders};
    for (uint32_t i = 0; i < count; i++) {
        if (others[i].state != MR_WORKER_UP || others[i].level != own->level)
            continue;
        level->utilisation += others[i].utilisation;
        level->senders += others[i].senders;
        up++;
    }
    level->utilisation /= up;
    level->senders /= up;
    return up > 1;
}

static double excess_of_use(const struct mr_agent_view *own, const struct level *level)
{
    double above = own->utilisation - level->utilisation;

    return above < BUSY_MARGIN ? 0 : own->senders * above / own->utilisation;
}

static double excess_of_senders(const struct mr_agent_view *own,
                                const struct level *level)
{
    double above = own->senders - level->senders;
    double margin = level->senders * SENDERS_MARGIN_SHARE;

    if (own->utilisation < level->utilisation - BUSY_SAME || above < SENDERS_MARGIN ||
        above < margin)
        return 0;
    return above;
}

uint32_t mr_share_excess(const struct mr_agent_view *own,
                         const struct mr_agent_view *others, uint32_t count)
{
    struct level level;
    double by_use, by_senders, most;

    if (own->state != MR_WORKER_UP || own->senders < 2 ||
        !look(own, others, count, &level))
        return 0;
    by_use = excess_of_use(own, &level);
    by_senders = excess_of_senders(own, &level);
    most = by_use > by_senders ? by_use : by_senders;
    most += ROUNDING;
    return (uint32_t)(most > own->senders / 2.0 ? own->senders / 2.0 : most);
}
