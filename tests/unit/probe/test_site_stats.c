/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/site_stats.h"

#include "net/wire.h"
#include "tests/unit/unit_test.h"

#include <string.h>

#define SITE MR_SITE_FIRST_MODULE
#define BRIEF 100
#define CHEAP 40
#define LEAST 20 /* what an empty call takes here */
#define WORDS_MAX MR_SITE_STATS_LONG

struct words {
    struct mr_site_stats stats;
    uint64_t items[WORDS_MAX], ticks;
    size_t chunk; /* words */
    size_t count;
};

static struct words *words_new(void)
{
    struct words *words = calloc(1, sizeof(*words));

    assert_non_null(words);
    mr_site_stats_limit(&words->stats, BRIEF, CHEAP);
    words->ticks = UINT32_MAX - 500; /* low halves wrap */
    words->chunk = WORDS_MAX - 2;    /* no long one */
    return words;
}

static void look(struct words *words)
{
    mr_site_stats_look(&words->stats, (const uint8_t *)words->items, words->count);
    words->count = 0;
}

static void put(struct words *words, uint64_t word)
{
    if (words->count == words->chunk)
        look(words);
    words->items[words->count++] = word;
}

static void enter(struct words *words, uint32_t site)
{
    put(words, mr_word_event(site, 0, words->ticks));
}

static void leave(struct words *words, uint32_t site, uint64_t ticks)
{
    words->ticks += ticks;
    put(words, mr_word_event(site, MR_WORD_EXIT, words->ticks));
    words->ticks += 7;
}

/* A call without calls below, in one chunk with its exit. */
static void leaf(struct words *words, uint32_t site, uint64_t ticks)
{
    if (words->count + 2 > words->chunk)
        look(words);
    enter(words, site);
    leave(words, site, ticks);
}

static void look_at_leaves(struct words *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        leaf(words, SITE, LEAST);
    look(words);
}

/* So many that the shortest is known; then they are forgotten. */
static void learn(struct words *words)
{
    for (int i = 0; i < 5000; i++)
        leaf(words, SITE + 999, LEAST);
    look(words);
    mr_site_stats_reset(&words->stats);
}

static struct mr_site_stat stat_of(const struct words *words, uint32_t site)
{
    struct mr_site_stat stat;

    for (uint32_t i = 0; i < MR_SITE_STATS_SLOTS; i++)
        if (mr_site_stats_read(&words->stats, i, &stat) && stat.site == site)
            return stat;
    return (struct mr_site_stat){0};
}

static void expect(const struct words *words, uint32_t site, uint32_t calls,
                   uint32_t brief, uint32_t cheap)
{
    struct mr_site_stat stat = stat_of(words, site);

    assert_int_equal(stat.calls, calls);
    assert_int_equal(stat.brief, brief);
    assert_int_equal(stat.cheap, cheap);
}

static void calls_are_short_by_what_they_take_more_than_the_shortest(void **state)
{
    struct words *words = words_new();
    uint64_t calls, cheap;

    (void)state;
    learn(words);
    leaf(words, SITE, LEAST);
    leaf(words, SITE, LEAST + CHEAP);
    leaf(words, SITE, LEAST + CHEAP + 1);
    leaf(words, SITE, LEAST + BRIEF);
    leaf(words, SITE, LEAST + BRIEF + 1);
    leaf(words, SITE, UINT64_C(1) << 31);
    look(words);
    expect(words, SITE, 6, 4, 2);
    assert_true(mr_site_stats_total(&words->stats, &calls, &cheap));
    assert_int_equal(calls, 6);
    assert_int_equal(cheap, 2);
    free(words);
}

static void a_call_with_calls_below_is_never_short(void **state)
{
    struct words *words = words_new();

    (void)state;
    learn(words);
    enter(words, SITE);
    leaf(words, SITE + 1, LEAST);
    leave(words, SITE, 1);
    enter(words, SITE + 2); /* its exit comes in another chunk */
    look(words);
    leave(words, SITE + 2, 1);
    look(words);
    expect(words, SITE, 1, 0, 0);
    expect(words, SITE + 1, 1, 1, 1);
    expect(words, SITE + 2, 1, 0, 0);
    free(words);
}

static void spans_and_payloads_are_no_calls_of_functions(void **state)
{
    struct words *words = words_new();
    uint64_t calls, cheap;

    (void)state;
    learn(words);
    leaf(words, MR_SITE_FIRST_NAMED + 3, LEAST);
    put(words, mr_word_record(MR_RECORD_SYNC, 1, 0, words->ticks));
    put(words, mr_word_event(SITE + 5, 0, 1)); /* a payload that looks so */
    leaf(words, SITE, LEAST);
    look(words);
    assert_true(mr_site_stats_total(&words->stats, &calls, &cheap));
    assert_int_equal(calls, 1);
    expect(words, SITE + 5, 0, 0, 0);
    free(words);
}

static void nothing_is_told_before_the_shortest_is_known_and_after_a_reset(void **state)
{
    struct words *words = words_new();
    uint64_t calls, cheap;

    (void)state;
    leaf(words, SITE, LEAST);
    look(words);
    assert_false(mr_site_stats_total(&words->stats, &calls, &cheap));
    learn(words);
    assert_false(mr_site_stats_total(&words->stats, &calls, &cheap));
    leaf(words, SITE, LEAST);
    look(words);
    assert_true(mr_site_stats_total(&words->stats, &calls, &cheap));
    expect(words, SITE, 1, 1, 1);
    free(words);
}

static void where_no_call_is_short_the_shortest_is_at_most_what_is_cheap(void **state)
{
    struct words *words = words_new();

    (void)state;
    for (int i = 0; i < 5000; i++)
        leaf(words, SITE, 600);
    look(words);
    assert_int_equal(words->stats.least_ticks, CHEAP);
    free(words);
}

/* Of chunks of so many words one in `share`. */
static void check_share(size_t size, size_t share)
{
    struct words *words = words_new();
    uint64_t before, chunks = 1000;

    words->chunk = size;
    do {
        before = words->stats.looked;
        look_at_leaves(words, size / 2);
    } while (words->stats.looked > before);
    for (uint64_t i = 0; i < chunks; i++)
        look_at_leaves(words, size / 2);
    assert_in_range(words->stats.looked - before, (chunks / share - 2) * size,
                    (chunks / share + 2) * size);
    free(words);
}

static void later_one_chunk_in_some_is_looked_at(void **state)
{
    (void)state;
    check_share(2, MR_SITE_STATS_SHARE);
    check_share(MR_SITE_STATS_LONG - 2, MR_SITE_STATS_SHARE);
    check_share(WORDS_MAX, MR_SITE_STATS_LONG_SHARE);
}

/* More functions than there is room for: those called most are followed. */
static void what_is_called_often_keeps_its_place(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    struct words *words = words_new();

    (void)state;
    learn(words);
    for (int i = 0; i < 60000; i++) {
        leaf(words, SITE, LEAST);
        leaf(words, SITE + 1000 + (uint32_t)mr_test_random_below(&random, 200000), LEAST);
    }
    look(words);
    assert_true(mr_load_relaxed(&words->stats.replaced) > 0);
    assert_true(stat_of(words, SITE).calls > 10000);
    free(words);
}

static void old_calls_count_less_and_less(void **state)
{
    struct words *words = words_new();
    uint64_t calls, cheap;

    (void)state;
    learn(words);
    for (uint32_t i = 0; i < 50 * (1u << 20); i++)
        leaf(words, SITE + i / (25 * (1u << 20)), LEAST);
    look(words);
    assert_true(mr_site_stats_total(&words->stats, &calls, &cheap));
    assert_true(calls <= UINT64_C(1) << 22 && cheap == calls);
    assert_true(stat_of(words, SITE).calls < stat_of(words, SITE + 1).calls);
    free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_short_by_what_they_take_more_than_the_shortest),
        cmocka_unit_test(a_call_with_calls_below_is_never_short),
        cmocka_unit_test(spans_and_payloads_are_no_calls_of_functions),
        cmocka_unit_test(nothing_is_told_before_the_shortest_is_known_and_after_a_reset),
        cmocka_unit_test(where_no_call_is_short_the_shortest_is_at_most_what_is_cheap),
        cmocka_unit_test(later_one_chunk_in_some_is_looked_at),
        cmocka_unit_test(what_is_called_often_keeps_its_place),
        cmocka_unit_test(old_calls_count_less_and_less),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
