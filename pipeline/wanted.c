/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field     written by         read by                access
 * revision  who puts           all                    relaxed, and under lock: a sign that there is something to take
 * the rest  who puts           who takes              under lock
 * Progress: who holds the lock copies MR_WANTED_SIZE_MAX bytes. Checked by: tests/unit/pipeline/test_wanted.c
 */
#include "pipeline/wanted.h"

#include "base/assert.h"
#include "base/clock.h"

void mr_wanted_board_init(struct mr_wanted_board *board)
{
    pthread_mutex_init(&board->lock, NULL);
    mr_store_relaxed(&board->revision, 0); /* before any other thread */
    board->list.count = 0;
}

void mr_wanted_board_fini(struct mr_wanted_board *board)
{
    pthread_mutex_destroy(&board->lock);
}

static bool is_same(const struct mr_wanted_list *a, const struct mr_wanted_list *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!mr_wanted_is_same(&a->items[i], &b->items[i]))
            return false;
    return true;
}

/* Each request is copied without the sites that it does not have. */
static void copy(struct mr_wanted *to, const struct mr_wanted *from)
{
    memcpy(to, from,
           offsetof(struct mr_wanted, sites) + from->depth * sizeof(*from->sites));
}

static void put(struct mr_wanted_board *board, const struct mr_wanted_list *list,
                uint64_t now_ns, bool is_news)
{
    uint32_t revision;

    MR_ASSERT(list->count <= MR_WANTED_MAX);
    pthread_mutex_lock(&board->lock);
    revision = mr_load_relaxed(&board->revision);
    if (revision == 0 || is_news || !is_same(&board->list, list)) {
        board->list.count = list->count;
        for (uint32_t i = 0; i < list->count; i++)
            copy(&board->list.items[i], &list->items[i]);
        if (++revision == 0)
            revision = 1;
        mr_store_relaxed(&board->revision, revision);
    }
    for (uint32_t i = 0; i < list->count; i++)
        board->until_ns[i] = now_ns + list->items[i].left_ms * MR_MILLISECOND_NS;
    pthread_mutex_unlock(&board->lock);
}

void mr_wanted_board_put(struct mr_wanted_board *board, const struct mr_wanted_list *list,
                         uint64_t now_ns)
{
    put(board, list, now_ns, false);
}

void mr_wanted_board_ask_again(struct mr_wanted_board *board,
                               const struct mr_wanted_list *list, uint64_t now_ns)
{
    put(board, list, now_ns, true);
}

uint32_t mr_wanted_board_take(struct mr_wanted_board *board, uint64_t now_ns,
                              struct mr_wanted_list *list)
{
    uint32_t revision;

    list->count = 0;
    pthread_mutex_lock(&board->lock);
    for (uint32_t i = 0; i < board->list.count; i++) {
        struct mr_wanted *taken = &list->items[list->count];
        uint64_t until_ns = board->until_ns[i];

        if (until_ns < now_ns + MR_MILLISECOND_NS)
            continue;
        copy(taken, &board->list.items[i]);
        taken->left_ms = (uint32_t)((until_ns - now_ns) / MR_MILLISECOND_NS);
        list->count++;
    }
    revision = mr_load_relaxed(&board->revision);
    pthread_mutex_unlock(&board->lock);
    return revision;
}
