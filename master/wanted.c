/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field       written by     read by        access
 * all but     HTTP, ingest   HTTP, ingest   under lock
 * board       HTTP, ingest   ingest         pipeline/wanted.h; put under our lock, so that the newest list stays
 * Progress: who holds the lock looks at MR_WANTED_BOOK_MAX requests. Checked by: tests/unit/master/test_wanted.c
 */
#include "master/wanted.h"

#include "base/assert.h"
#include "base/clock.h"

const char *mr_wanted_state_name(enum mr_wanted_state state)
{
    static const char *const names[] = {
        [MR_WANTED_OPEN] = "open",
        [MR_WANTED_DONE] = "done",
        [MR_WANTED_EXPIRED] = "expired",
    };

    return names[state];
}

void mr_wanted_book_init(struct mr_wanted_book *book)
{
    pthread_mutex_init(&book->lock, NULL);
    mr_wanted_board_init(&book->board);
    book->count = book->open = 0;
    book->strangers = 0;
    /* Told at once: what senders have of an earlier master is over. */
    book->list.count = 0;
    mr_wanted_board_put(&book->board, &book->list, 0);
}

void mr_wanted_book_fini(struct mr_wanted_book *book)
{
    mr_wanted_board_fini(&book->board);
    pthread_mutex_destroy(&book->lock);
}

/* What senders are told from now on. */
static void tell(struct mr_wanted_book *book, uint64_t now_ns)
{
    book->list.count = 0;
    for (uint32_t i = 0; i < book->count; i++) {
        const struct mr_wanted_request *request = &book->requests[i];
        struct mr_wanted *wanted = &book->list.items[book->list.count];

        if (request->state != MR_WANTED_OPEN ||
            request->until_ns < now_ns + MR_MILLISECOND_NS)
            continue;
        *wanted = request->wanted;
        wanted->left_ms = (uint32_t)((request->until_ns - now_ns) / MR_MILLISECOND_NS);
        book->list.count++;
    }
    mr_wanted_board_put(&book->board, &book->list, now_ns);
}

static void end(struct mr_wanted_book *book, struct mr_wanted_request *request,
                enum mr_wanted_state state)
{
    MR_ASSERT(request->state == MR_WANTED_OPEN && book->open > 0);
    request->state = state;
    request->ended_ns = mr_clock_realtime_ns();
    book->open--;
}

static void take_out(struct mr_wanted_book *book, uint32_t index)
{
    MR_ASSERT(index < book->count);
    book->open -= book->requests[index].state == MR_WANTED_OPEN;
    book->count--;
    memmove(&book->requests[index], &book->requests[index + 1],
            (book->count - index) * sizeof(*book->requests));
}

static uint32_t oldest_ended(const struct mr_wanted_book *book)
{
    uint32_t at = 0;

    while (book->requests[at].state == MR_WANTED_OPEN)
        at++; /* there is one: fewer may be open than the book holds */
    MR_ASSERT(at < book->count);
    return at;
}

enum mr_status mr_wanted_book_add(struct mr_wanted_book *book,
                                  const struct mr_wanted_request *request,
                                  uint64_t now_ns)
{
    enum mr_status status = MR_ELIMIT;

    pthread_mutex_lock(&book->lock);
    if (book->open < MR_WANTED_MAX) {
        struct mr_wanted_request *added;

        if (book->count == MR_WANTED_BOOK_MAX)
            take_out(book, oldest_ended(book));
        added = &book->requests[book->count++];
        *added = *request;
        added->created_ns = mr_clock_realtime_ns();
        added->until_ns = now_ns + request->wanted.left_ms * MR_MILLISECOND_NS;
        added->state = MR_WANTED_OPEN;
        added->ended_ns = added->beyond = added->came = 0;
        book->open++;
        tell(book, now_ns);
        status = MR_OK;
    }
    pthread_mutex_unlock(&book->lock);
    return status;
}

/* MR_WANTED_BOOK_MAX: there is none. */
static uint32_t find(const struct mr_wanted_book *book, struct mr_id id)
{
    for (uint32_t i = 0; i < book->count; i++)
        if (mr_id_equal(book->requests[i].wanted.id, id))
            return i;
    return MR_WANTED_BOOK_MAX;
}

bool mr_wanted_book_remove(struct mr_wanted_book *book, struct mr_id id, uint64_t now_ns)
{
    uint32_t index;

    pthread_mutex_lock(&book->lock);
    index = find(book, id);
    if (index < MR_WANTED_BOOK_MAX) {
        take_out(book, index);
        tell(book, now_ns);
    }
    pthread_mutex_unlock(&book->lock);
    return index < MR_WANTED_BOOK_MAX;
}

/* Whether the trace is one of those that came, now. `gone`: the one that it has put out of them. */
static bool insert(struct mr_wanted_request *request, const struct mr_exemplar *exemplar,
                   struct mr_exemplar *gone)
{
    uint32_t at = request->came;

    for (uint32_t i = 0; i < request->came; i++)
        if (mr_exemplar_is_same(&request->got[i], exemplar))
            return false;
    while (at > 0 &&
           mr_exemplar_is_before(exemplar, &request->got[at - 1], MR_EXEMPLAR_ASKED))
        at--;
    if (request->came == request->wanted.count)
        request->beyond++;
    if (at == request->wanted.count)
        return false;
    if (request->came == request->wanted.count)
        *gone = request->got[request->came - 1];
    request->came += request->came < request->wanted.count;
    memmove(&request->got[at + 1], &request->got[at],
            (request->came - 1 - at) * sizeof(*request->got));
    request->got[at] = *exemplar;
    request->got[at].items = NULL;
    return true;
}

static bool is_answer(const struct mr_wanted_book *book,
                      const struct mr_exemplar *exemplar)
{
    for (uint32_t i = 0; i < book->count; i++)
        for (uint32_t j = 0; j < book->requests[i].came; j++)
            if (mr_exemplar_is_same(&book->requests[i].got[j], exemplar))
                return true;
    return false;
}

static bool take(struct mr_wanted_book *book, struct mr_wanted_request *request,
                 const struct mr_exemplar *exemplar, struct mr_exemplar *gone)
{
    /* After its end, too: of those on their way then, an earlier one may be among them. */
    if (!insert(request, exemplar, gone))
        return false;
    if (is_answer(book, gone))
        *gone = (struct mr_exemplar){.items = NULL};
    if (request->state == MR_WANTED_OPEN && request->came == request->wanted.count) {
        end(book, request, MR_WANTED_DONE);
        tell(book, mr_clock_monotonic_ns());
    }
    return true;
}

bool mr_wanted_book_came(struct mr_wanted_book *book, struct mr_id id,
                         const struct mr_exemplar *exemplar, struct mr_exemplar *gone)
{
    bool is_kept = true;
    uint32_t index;

    *gone = (struct mr_exemplar){.items = NULL};
    pthread_mutex_lock(&book->lock);
    index = find(book, id);
    if (index == MR_WANTED_BOOK_MAX)
        book->strangers++;
    else
        is_kept = take(book, &book->requests[index], exemplar, gone);
    pthread_mutex_unlock(&book->lock);
    return is_kept;
}

void mr_wanted_book_tick(struct mr_wanted_book *book, uint64_t now_ns)
{
    bool has_ended = false;

    pthread_mutex_lock(&book->lock);
    for (uint32_t i = 0; i < book->count; i++) {
        struct mr_wanted_request *request = &book->requests[i];

        if (request->state != MR_WANTED_OPEN || now_ns < request->until_ns)
            continue;
        end(book, request, MR_WANTED_EXPIRED);
        has_ended = true;
    }
    if (has_ended)
        tell(book, now_ns);
    pthread_mutex_unlock(&book->lock);
}

bool mr_wanted_book_at(struct mr_wanted_book *book, uint32_t index,
                       struct mr_wanted_request *request)
{
    bool is_there;

    pthread_mutex_lock(&book->lock);
    is_there = index < book->count;
    if (is_there)
        *request = book->requests[book->count - 1 - index];
    pthread_mutex_unlock(&book->lock);
    return is_there;
}
