/* SPDX-License-Identifier: Apache-2.0 */
/* Condensing, held against a naive model that has the whole tree and sorts it. */
#include <stdlib.h>
#include <string.h>

#include "pipeline/condense.h"
#include "tests/unit/unit_test.h"

#define EVENTS_MAX 4000u
#define CALLS_MAX (EVENTS_MAX / 2)
#define PIECE_MAX 300u
#define LIMIT_MAX 400u

struct tree {
    struct mr_event events[EVENTS_MAX];
    uint16_t whole[EVENTS_MAX]; /* of all calls but the root */
    uint32_t event_count;
    /* By order of opening: what the naive model knows. */
    struct naive {
        uint64_t start_ns, total_ns;
        uint32_t parent, site, depth, opened; /* `opened`: its place among the events */
        bool is_kept;
    } calls[CALLS_MAX];
    uint32_t call_count;
};

static void put(struct tree *tree, uint16_t kind, uint32_t site, uint64_t ns,
                uint16_t flags)
{
    tree->whole[tree->event_count] = 0;
    tree->events[tree->event_count++] =
        (struct mr_event){.ns = ns, .site = site, .kind = kind, .flags = flags};
}

/* A random tree whose times are small, so that many are equal. */
static void grow_tree(struct tree *tree, struct mr_test_random *random)
{
    uint32_t stack[CALLS_MAX], depth = 0;
    uint64_t ns = 1000 + mr_test_random_below(random, 50);
    uint32_t most = 1 + (uint32_t)mr_test_random_below(random, CALLS_MAX - 1);

    tree->event_count = tree->call_count = 0;
    do {
        bool opens =
            depth == 0 || (tree->call_count < most &&
                           (depth == 1 || mr_test_random_below(random, 20) < 10));

        if (opens) {
            struct naive *call = &tree->calls[tree->call_count];

            *call = (struct naive){.start_ns = ns,
                                   .parent = depth ? stack[depth - 1] : 0,
                                   .opened = tree->event_count,
                                   .site = (uint32_t)mr_test_random_below(random, 9),
                                   .depth = depth};
            put(tree, MR_EVENT_OPEN, call->site, ns, depth ? 0 : MR_EVENT_ROOT);
            stack[depth++] = tree->call_count++;
        } else {
            struct naive *call = &tree->calls[stack[--depth]];

            call->total_ns = ns - call->start_ns;
            put(tree, MR_EVENT_CLOSE, call->site, ns, depth ? 0 : MR_EVENT_ROOT);
            tree->whole[call->opened] =
                depth ? (uint16_t)((tree->event_count - call->opened) / 2) : 0;
        }
        ns += mr_test_random_below(random, 4);
    } while (depth > 0);
}

/* Marks the `limit` longest, the earlier of equal ones first. */
static void choose(struct tree *tree, uint32_t limit)
{
    for (uint32_t i = 0; i < tree->call_count; i++) {
        uint32_t before = 0;

        for (uint32_t j = 0; j < tree->call_count; j++)
            before += tree->calls[j].total_ns > tree->calls[i].total_ns ||
                      (tree->calls[j].total_ns == tree->calls[i].total_ns && j < i);
        tree->calls[i].is_kept = before < limit;
    }
}

static uint32_t expect(struct tree *tree, struct mr_exemplar_call *calls)
{
    uint32_t at[CALLS_MAX], count = 0;

    for (uint32_t i = 0; i < tree->call_count; i++) {
        const struct naive *call = &tree->calls[i];
        uint32_t outer = call->parent;

        if (call->is_kept) {
            at[i] = count;
            calls[count++] = (struct mr_exemplar_call){
                .start_ns = call->start_ns - tree->calls[0].start_ns,
                .total_ns = call->total_ns,
                .site = call->site,
                .depth = call->depth};
            continue;
        }
        if (tree->calls[outer].is_kept)
            calls[at[outer]].elided_ns += call->total_ns;
        while (!tree->calls[outer].is_kept)
            outer = tree->calls[outer].parent;
        calls[at[outer]].elided_calls++;
    }
    return count;
}

/* What who follows the calls has to note of a piece. */
struct noting {
    struct mr_condense_noted ended[PIECE_MAX], open[CALLS_MAX];
    struct mr_condense_notes notes;
};

static void note_close(struct noting *noting, const struct tree *tree, uint32_t from,
                       uint32_t close, uint64_t least_ns)
{
    const struct mr_condense_noted *call = &noting->open[--noting->notes.open_count];
    uint64_t total_ns = tree->events[close].ns - tree->events[call->opened].ns;

    if (call->depth > 0)
        noting->open[call->depth - 1].child_ns += total_ns;
    if (close < from || total_ns < least_ns)
        return;
    noting->ended[noting->notes.ended_count] = *call;
    noting->ended[noting->notes.ended_count].closed = close - from;
    noting->ended[noting->notes.ended_count++].opened =
        call->opened < from ? MR_CONDENSE_BEFORE : call->opened - from;
}

static void note_piece(struct noting *noting, const struct tree *tree, uint32_t from,
                       uint32_t count, uint64_t least_ns)
{
    noting->notes = (struct mr_condense_notes){.events = tree->events + from,
                                               .count = count,
                                               .ended = noting->ended,
                                               .open = noting->open};
    for (uint32_t i = 0; i < from + count; i++) {
        uint32_t depth = noting->notes.open_count;

        if (tree->events[i].kind == MR_EVENT_CLOSE) {
            note_close(noting, tree, from, i, least_ns);
            continue;
        }
        noting->open[depth] = (struct mr_condense_noted){.opened = i, .depth = depth};
        noting->notes.open_count++;
    }
    for (uint32_t i = 0; i < noting->notes.open_count; i++)
        noting->open[i].opened = noting->open[i].opened < from
                                     ? MR_CONDENSE_BEFORE
                                     : noting->open[i].opened - from;
}

/* False: the piece must be fed. The end of the root, which has a flag, has to be. */
static bool feed_noted(struct mr_condense *condense, const struct tree *tree,
                       uint32_t from, uint32_t count)
{
    static struct noting noting;
    uint64_t least_ns = mr_condense_least_ns(condense);

    if (least_ns == UINT64_MAX || from + count == tree->event_count)
        return false;
    note_piece(&noting, tree, from, count, least_ns);
    if (noting.notes.open_count > MR_CONDENSE_NOTED_DEPTH)
        return false;
    mr_condense_feed_noted(condense, &noting.notes);
    return true;
}

/* How many pieces were noted, and how many guesses were right, or were not. */
struct fed {
    uint32_t noted, right, wrong;
};

static void feed_waiting(struct mr_condense *condense,
                         const struct mr_condense_piece *piece, struct fed *fed)
{
    bool was_waiting = condense->log_count > 0;
    uint64_t guess_ns = condense->budget->guess_ns;

    mr_condense_later(condense, piece);
    if (!was_waiting || condense->log_count > 0 || guess_ns == 0)
        return;
    fed->right += condense->is_full && condense->shortest_ns >= guess_ns;
    fed->wrong += !condense->is_full || condense->shortest_ns < guess_ns;
}

/* Of the calls that lie in the piece, where some of them end is known. */
static void feed_in_pieces(struct mr_condense *condense, const struct tree *tree,
                           struct mr_test_random *random, struct fed *fed)
{
    static const struct mr_condense_piece nothing;
    uint16_t whole[PIECE_MAX];
    uint32_t at = 0, copied = (uint32_t)mr_test_random_below(random, 17); /* mostly all */
    uint64_t piece_max = 1 + mr_test_random_below(random, PIECE_MAX);

    while (at < tree->event_count) {
        struct mr_condense_piece piece = {
            tree->events + at, whole,
            1 + (uint32_t)mr_test_random_below(random, piece_max)};

        if (piece.count > tree->event_count - at)
            piece.count = tree->event_count - at;
        for (uint32_t i = 0; i < piece.count; i++)
            whole[i] = i + 2u * tree->whole[at + i] <= piece.count &&
                               mr_test_random_below(random, 4) > 0
                           ? tree->whole[at + i]
                           : 0;
        if (mr_test_random_below(random, 3) > 0 &&
            feed_noted(condense, tree, at, piece.count))
            fed->noted++;
        else if (mr_test_random_below(random, 8) < copied)
            feed_waiting(condense, &piece, fed);
        else
            mr_condense_feed(condense, &piece);
        at += piece.count;
    }
    mr_condense_feed(condense, &nothing);
}

static void assert_same(const struct mr_exemplar_call *calls,
                        const struct mr_exemplar_call *expected, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(calls[i].start_ns, expected[i].start_ns);
        assert_int_equal(calls[i].total_ns, expected[i].total_ns);
        assert_int_equal(calls[i].elided_calls, expected[i].elided_calls);
        assert_int_equal(calls[i].elided_ns, expected[i].elided_ns);
        assert_int_equal(calls[i].site, expected[i].site);
        assert_int_equal(calls[i].depth, expected[i].depth);
    }
}

static void the_longest_calls_are_kept_however_the_tree_is_cut(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    struct tree *tree = calloc(1, sizeof(*tree));
    struct mr_condense_budget budget = {.limit = 1 << 20};
    struct fed fed = {0};

    (void)state;
    assert_non_null(tree);
    for (uint32_t round = 0; round < 60; round++) {
        uint32_t limit =
            1 + (uint32_t)mr_test_random_below(&random, round % 2 ? 40 : LIMIT_MAX);
        struct mr_exemplar_call calls[LIMIT_MAX] = {{0}}, expected[LIMIT_MAX] = {{0}};
        struct mr_condense condense;
        uint32_t count;

        grow_tree(tree, &random);
        choose(tree, limit);
        mr_condense_init(&condense, &budget, limit);
        for (int again = 0; again < 2; again++) {
            budget.log_most = 16 + (uint32_t)mr_test_random_below(&random, 1000);
            budget.guess_ns = again ? 1 + mr_test_random_below(&random, 12) : 0;
            feed_in_pieces(&condense, tree, &random, &fed);
            assert_false(condense.is_given_up);
            assert_int_equal(condense.closed, tree->call_count);
            count = mr_condense_finish(&condense, calls);
            memset(expected, 0, sizeof(expected));
            assert_int_equal(count, expect(tree, expected));
            assert_same(calls, expected, count);
            mr_condense_reset(&condense);
        }
        mr_condense_fini(&condense);
        assert_int_equal(budget.used, 0);
    }
    assert_true(fed.noted > 100 && fed.right > 2 && fed.wrong > 2);
    free(tree);
}

static void feed_one(struct mr_condense *condense, uint16_t kind, uint32_t site,
                     uint64_t ns, uint16_t flags)
{
    const struct mr_event event = {.ns = ns, .site = site, .kind = kind, .flags = flags};
    const uint16_t whole = 0;

    mr_condense_feed(condense, &(struct mr_condense_piece){&event, &whole, 1});
}

static void a_forced_root_inside_is_passed_over(void **state)
{
    struct mr_condense_budget budget = {.limit = 1 << 20};
    struct mr_condense condense;
    struct mr_exemplar_call calls[8];

    (void)state;
    mr_condense_init(&condense, &budget, 8);
    feed_one(&condense, MR_EVENT_OPEN, 1, 10, MR_EVENT_ROOT);
    feed_one(&condense, MR_EVENT_OPEN, 2, 11, MR_EVENT_ROOT);
    feed_one(&condense, MR_EVENT_OPEN, 3, 12, 0);
    feed_one(&condense, MR_EVENT_CLOSE, 3, 13, 0);
    feed_one(&condense, MR_EVENT_CLOSE, 2, 14, MR_EVENT_ROOT);
    feed_one(&condense, MR_EVENT_VALUE, 0, 14, 0);
    feed_one(&condense, MR_EVENT_OPEN, 4, 15, 0);
    feed_one(&condense, MR_EVENT_CLOSE, 4, 16, MR_EVENT_FAILED);
    assert_true(mr_condense_least_ns(&condense) == UINT64_MAX);
    feed_one(&condense, MR_EVENT_CLOSE, 1, 20, MR_EVENT_ROOT | MR_EVENT_UNWOUND);
    assert_int_equal(mr_condense_finish(&condense, calls), 2);
    assert_int_equal(condense.closed, 2);
    assert_int_equal(calls[0].total_ns, 10);
    assert_int_equal(calls[0].flags, MR_EXEMPLAR_CALL_UNWOUND);
    assert_int_equal(calls[1].site, 4);
    assert_int_equal(calls[1].start_ns, 5);
    assert_int_equal(calls[1].flags, MR_EXEMPLAR_CALL_FAILED);
    mr_condense_fini(&condense);
}

static void of_a_bottomless_tree_the_deep_calls_are_counted(void **state)
{
    enum { DEPTH = 3 * MR_CONDENSE_DEPTH_MAX };
    struct mr_condense_budget budget = {.limit = 1 << 20};
    struct mr_condense condense;
    struct mr_exemplar_call calls[16];
    uint32_t count;
    uint64_t elided = 0;

    (void)state;
    mr_condense_init(&condense, &budget, 16);
    for (uint32_t i = 0; i < DEPTH; i++)
        feed_one(&condense, MR_EVENT_OPEN, i % 5, i, i ? 0 : MR_EVENT_ROOT);
    for (uint32_t i = DEPTH; i-- > 0;)
        feed_one(&condense, MR_EVENT_CLOSE, i % 5, 2 * DEPTH - i, 0);
    count = mr_condense_finish(&condense, calls);
    assert_int_equal(count, 16);
    for (uint32_t i = 0; i < count; i++)
        elided += calls[i].elided_calls;
    assert_int_equal(elided, DEPTH - 16);
    assert_int_equal(calls[15].elided_ns, calls[15].total_ns - 2);
    mr_condense_fini(&condense);
    assert_int_equal(budget.used, 0);
}

#define PIECE 64u

/* A trace with `pieces` pieces of PIECE calls below its root, as of a trace that goes on and on. */
static void feed_later(struct mr_condense *condense, uint32_t pieces)
{
    struct mr_event events[2 * PIECE];
    const uint16_t whole[2 * PIECE] = {0};
    const struct mr_condense_piece piece = {events, whole, 2 * PIECE};
    uint64_t ns = 0;

    for (uint32_t i = 0; i < pieces; i++) {
        for (uint32_t j = 0; j < 2 * PIECE; j++)
            events[j] = (struct mr_event){.ns = ns += j % 7,
                                          .site = 2,
                                          .kind = j % 2 ? MR_EVENT_CLOSE : MR_EVENT_OPEN};
        if (i == 0) /* the root, and its first call has no exit */
            events[0] = (struct mr_event){
                .site = 1, .kind = MR_EVENT_OPEN, .flags = MR_EVENT_ROOT};
        if (i == 0)
            events[1].kind = MR_EVENT_OPEN;
        mr_condense_later(condense, &piece);
    }
    feed_one(condense, MR_EVENT_CLOSE, 2, ns, 0);
    feed_one(condense, MR_EVENT_CLOSE, 1, ns, MR_EVENT_ROOT);
}

static void a_copy_of_events_takes_a_part_of_the_budget_and_no_more(void **state)
{
    struct mr_event open[100] = {{.flags = MR_EVENT_ROOT}};
    const uint16_t whole[MR_ARRAY_COUNT(open)] = {0};
    const struct mr_condense_piece all = {open, whole, MR_ARRAY_COUNT(open)};
    const struct mr_condense_piece one = {open, whole, 1};
    struct mr_condense_budget budget = {.limit = (size_t)1 << 20};
    struct mr_condense condense;
    struct mr_exemplar_call calls[16];

    (void)state;
    for (uint32_t i = 0; i < MR_ARRAY_COUNT(open); i++)
        open[i].kind = MR_EVENT_OPEN;
    mr_condense_init(&condense, &budget, 16);
    mr_condense_later(&condense, &all);
    assert_int_equal(condense.opened, 0); /* nobody has looked at it */
    assert_true(budget.used > 0 && budget.used <= budget.limit / 4);
    mr_condense_reset(&condense);
    budget.limit = 4 * budget.used - 1;
    mr_condense_fini(&condense);
    mr_condense_init(&condense, &budget, 16);
    mr_condense_later(&condense, &all);
    assert_int_equal(condense.opened, MR_ARRAY_COUNT(open)); /* no room for a copy */
    assert_int_equal(budget.log_most, 0); /* which says nothing of how long traces are */
    mr_condense_reset(&condense);
    mr_condense_later(&condense, &one);
    assert_int_equal(condense.opened, 1); /* so small that a copy does not pay */
    mr_condense_reset(&condense);
    budget.limit = (size_t)1 << 24;
    feed_later(&condense, MR_CONDENSE_LOG_MAX / PIECE);
    assert_int_equal(condense.closed, MR_CONDENSE_LOG_MAX + 1);
    assert_int_equal(mr_condense_finish(&condense, calls), 16);
    assert_true(budget.used < MR_CONDENSE_LOG_MAX * sizeof(struct mr_event));
    mr_condense_fini(&condense);
    assert_int_equal(budget.used, 0);
}

/* A trace of so many calls that nobody wants. */
static void feed_unwanted(struct mr_condense *condense, uint32_t calls)
{
    struct mr_event events[2 * PIECE] = {{.flags = MR_EVENT_ROOT}};
    const uint16_t whole[2 * PIECE] = {0};
    const struct mr_condense_piece piece = {events, whole, 2 * PIECE};

    for (uint32_t i = 0; i < 2 * PIECE; i++)
        events[i].kind = i % 2 ? MR_EVENT_CLOSE : MR_EVENT_OPEN;
    for (uint32_t i = 0; i < calls; i += PIECE) {
        events[1].kind = i ? MR_EVENT_CLOSE : MR_EVENT_OPEN;
        mr_condense_later(condense, &piece);
        events[0].flags = 0;
    }
    mr_condense_reset(condense);
}

static void how_much_is_copied_goes_by_what_became_of_it_before(void **state)
{
    struct mr_condense_budget budget = {.limit = (size_t)1 << 26};
    struct mr_condense condense;

    (void)state;
    mr_condense_init(&condense, &budget, 16);
    feed_unwanted(&condense, 1024); /* says nothing */
    assert_int_equal(budget.log_most, 0);
    for (uint32_t most = 2 * MR_CONDENSE_LOG_MIN; most <= MR_CONDENSE_LOG_MAX;
         most *= 2) {
        feed_unwanted(&condense, MR_CONDENSE_LOG_MIN / 2 - PIECE);
        assert_int_equal(budget.log_most, most);
    }
    feed_unwanted(&condense, MR_CONDENSE_LOG_MAX / 2); /* just fits */
    assert_int_equal(budget.log_most, MR_CONDENSE_LOG_MAX);
    feed_unwanted(&condense, MR_CONDENSE_LOG_MAX); /* grows out of it, once */
    assert_int_equal(budget.log_most, MR_CONDENSE_LOG_MAX / 2);
    for (uint32_t i = 0; i < 4; i++)
        feed_unwanted(&condense, MR_CONDENSE_LOG_MAX);
    assert_int_equal(budget.log_most, MR_CONDENSE_LOG_MIN);
    mr_condense_fini(&condense);
    assert_int_equal(budget.used, 0);
}

static void a_long_trace_tells_how_long_a_call_of_the_next_one_takes_that_stays(
    void **state)
{
    enum {
        LIMIT = 16,
        SHORT = 4,
        LONG = 1024
    }; /* pieces; of a piece a seventh takes the longest time there is, 6 ns */
    struct mr_condense_budget budget = {.limit = (size_t)1 << 24};
    struct mr_condense condense;
    struct mr_exemplar_call calls[LIMIT], expected[LIMIT];

    (void)state;
    mr_condense_init(&condense, &budget, LIMIT);
    feed_later(&condense, SHORT);
    assert_int_equal(budget.guess_ns, 0);
    mr_condense_reset(&condense);
    feed_later(&condense, LONG); /* grows out of the log: 6 / 2 */
    assert_int_equal(budget.guess_ns, 3);
    assert_int_equal(mr_condense_finish(&condense, expected), LIMIT);
    mr_condense_reset(&condense);
    feed_later(&condense, SHORT); /* does not */
    assert_int_equal(budget.guess_ns, 3);
    for (uint64_t guess_ns = 3; guess_ns < 100;
         guess_ns += 90) { /* right, and too high */
        mr_condense_reset(&condense);
        budget.guess_ns = guess_ns;
        feed_later(&condense, LONG);
        assert_int_equal(budget.guess_ns, 3);
        assert_int_equal(mr_condense_finish(&condense, calls), LIMIT);
        assert_same(calls, expected, LIMIT);
    }
    mr_condense_fini(&condense);
    assert_int_equal(budget.used, 0);
}

static void past_the_budget_it_gives_up_and_says_so(void **state)
{
    struct mr_condense_budget budget = {.limit = 16 * sizeof(struct mr_condense_open)};
    struct mr_condense condense;

    (void)state;
    mr_condense_init(&condense, &budget, 8);
    feed_one(&condense, MR_EVENT_OPEN, 1, 10, MR_EVENT_ROOT);
    assert_false(condense.is_given_up);
    feed_one(&condense, MR_EVENT_CLOSE, 1, 10, MR_EVENT_ROOT);
    assert_true(condense.is_given_up);
    mr_condense_fini(&condense);
    assert_int_equal(budget.used, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_calls_are_kept_however_the_tree_is_cut),
        cmocka_unit_test(a_forced_root_inside_is_passed_over),
        cmocka_unit_test(of_a_bottomless_tree_the_deep_calls_are_counted),
        cmocka_unit_test(a_copy_of_events_takes_a_part_of_the_budget_and_no_more),
        cmocka_unit_test(how_much_is_copied_goes_by_what_became_of_it_before),
        cmocka_unit_test(
            a_long_trace_tells_how_long_a_call_of_the_next_one_takes_that_stays),
        cmocka_unit_test(past_the_budget_it_gives_up_and_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
