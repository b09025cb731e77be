/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field    written by       read by          access
 * entries  lanes, forward   lanes, forward   under lock
 * count    lanes, forward   lanes, forward   under lock
 * Progress: who holds the lock looks at MR_ASKS_MAX entries at most. Checked by: tests/unit/pipeline/test_asks.c
 */
#include "pipeline/asks.h"

#include "base/assert.h"

void mr_asks_init(struct mr_asks *asks, void (*wake)(void *context, uint32_t lane),
                  void *context)
{
    pthread_mutex_init(&asks->lock, NULL);
    asks->wake = wake;
    asks->context = context;
    asks->count = 0;
}

void mr_asks_fini(struct mr_asks *asks)
{
    pthread_mutex_destroy(&asks->lock);
}

static bool is_about(const struct mr_custody_ask *a, const struct mr_custody_ask *b)
{
    return a->epoch == b->epoch && mr_id_equal(a->subject, b->subject);
}

static bool is_same(const struct mr_ask *a, const struct mr_ask *b)
{
    return a->lane == b->lane && a->body.is_claim == b->body.is_claim &&
           mr_id_equal(a->asker, b->asker) && is_about(&a->body, &b->body);
}

static enum mr_status put(struct mr_asks *asks, const struct mr_ask *ask)
{
    bool is_own = mr_id_is_zero(ask->asker);
    uint32_t of_asker = 0;

    for (uint32_t i = 0; i < asks->count; i++) {
        if (is_same(&asks->entries[i].ask, ask))
            return MR_OK;
        of_asker += mr_id_equal(asks->entries[i].ask.asker, ask->asker);
    }
    if (asks->count == MR_ASKS_MAX || (!is_own && of_asker == MR_ASKS_OF_ONE_MAX))
        return MR_ELIMIT;
    asks->entries[asks->count++] = (struct mr_asks_entry){*ask, MR_ASK_WAITS};
    return MR_OK;
}

enum mr_status mr_asks_put(struct mr_asks *asks, const struct mr_ask *ask)
{
    enum mr_status status;

    pthread_mutex_lock(&asks->lock);
    status = put(asks, ask);
    pthread_mutex_unlock(&asks->lock);
    return status;
}

void mr_asks_forget(struct mr_asks *asks, struct mr_id asker)
{
    uint32_t kept = 0;

    MR_ASSERT(!mr_id_is_zero(asker));
    pthread_mutex_lock(&asks->lock);
    for (uint32_t i = 0; i < asks->count; i++) {
        const struct mr_asks_entry *entry = &asks->entries[i];

        if (entry->state != MR_ASK_WAITS || !mr_id_equal(entry->ask.asker, asker))
            asks->entries[kept++] = *entry;
    }
    asks->count = kept;
    pthread_mutex_unlock(&asks->lock);
}

bool mr_asks_next(struct mr_asks *asks, struct mr_custody_ask *body)
{
    const struct mr_asks_entry *next = NULL;
    uint32_t sent = 0;

    pthread_mutex_lock(&asks->lock);
    for (uint32_t i = 0; i < asks->count; i++) {
        const struct mr_asks_entry *entry = &asks->entries[i];

        sent += entry->state == MR_ASK_SENT;
        if (entry->state == MR_ASK_WAITS && !next)
            next = entry;
    }
    if (sent >= MR_ASKS_SENT_MAX)
        next = NULL;
    if (next)
        *body = next->ask.body;
    pthread_mutex_unlock(&asks->lock);
    return next != NULL;
}

void mr_asks_mark_sent(struct mr_asks *asks, const struct mr_custody_ask *body)
{
    pthread_mutex_lock(&asks->lock);
    for (uint32_t i = 0; i < asks->count; i++) {
        struct mr_asks_entry *entry = &asks->entries[i];

        if (entry->state == MR_ASK_WAITS && is_about(&entry->ask.body, body) &&
            entry->ask.body.is_claim == body->is_claim)
            entry->state = MR_ASK_SENT;
    }
    pthread_mutex_unlock(&asks->lock);
}

void mr_asks_mark_unsent(struct mr_asks *asks)
{
    pthread_mutex_lock(&asks->lock);
    for (uint32_t i = 0; i < asks->count; i++)
        if (asks->entries[i].state == MR_ASK_SENT)
            asks->entries[i].state = MR_ASK_WAITS;
    pthread_mutex_unlock(&asks->lock);
}

/* Marks one that asked and has no answer yet. */
static bool answer_next(struct mr_asks *asks, const struct mr_custody_ask *answer,
                        uint32_t *lane)
{
    for (uint32_t i = 0; i < asks->count; i++) {
        struct mr_asks_entry *entry = &asks->entries[i];

        if (entry->state == MR_ASK_ANSWERED || !is_about(&entry->ask.body, answer))
            continue;
        entry->ask.body.position = answer->position;
        entry->state = MR_ASK_ANSWERED;
        *lane = entry->ask.lane;
        return true;
    }
    return false;
}

void mr_asks_answer(struct mr_asks *asks, const struct mr_custody_ask *answer)
{
    uint32_t lane;

    pthread_mutex_lock(&asks->lock);
    while (answer_next(asks, answer, &lane)) {
        if (asks->wake)
            asks->wake(asks->context, lane);
    }
    pthread_mutex_unlock(&asks->lock);
}

void mr_asks_mute(struct mr_asks *asks)
{
    pthread_mutex_lock(&asks->lock);
    asks->wake = NULL;
    pthread_mutex_unlock(&asks->lock);
}

bool mr_asks_take(struct mr_asks *asks, uint32_t lane, struct mr_ask *answered)
{
    bool found = false;

    pthread_mutex_lock(&asks->lock);
    for (uint32_t i = 0; i < asks->count && !found; i++) {
        struct mr_asks_entry *entry = &asks->entries[i];

        found = entry->state == MR_ASK_ANSWERED && entry->ask.lane == lane;
        if (found) {
            *answered = entry->ask;
            *entry = asks->entries[--asks->count];
        }
    }
    pthread_mutex_unlock(&asks->lock);
    return found;
}
