/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over words against a naive one, which asks the sites of an array and tells each time by mr_ticks_ns(). */
#include "../unit_test.h"

#include <stdbool.h>
#include <string.h>

#include "net/bytes.h"
#include "net/wire.h"
#include "pipeline/filters/decode_run.h"

#define WORDS_MAX 300u
#define SITES 900u
#define SEPARATE 64u /* behind what may be written */
#define MARK 0xa5

struct fixture {
    struct mr_test_random random;
    struct mr_site_map map;
    uint32_t wires[SITES], lanes[SITES], count;
    struct mr_ticks clock;
    uint64_t ticks; /* of the beginning */
    uint8_t bytes[MR_WORD_SIZE * (WORDS_MAX + 2)];
};

struct result {
    struct mr_event events[WORDS_MAX + SEPARATE];
    struct mr_words words;
    uint32_t done;
};

static uint64_t below(struct fixture *fixture, uint64_t limit)
{
    return mr_test_random_below(&fixture->random, limit);
}

static bool is_known(const struct fixture *fixture, uint32_t wire)
{
    for (uint32_t i = 0; i < fixture->count; i++)
        if (fixture->wires[i] == wire)
            return true;
    return false;
}

static void add_site(struct fixture *fixture, uint32_t wire)
{
    uint32_t lane = (uint32_t)mr_test_random_next(&fixture->random);

    if (is_known(fixture, wire))
        return;
    lane = below(fixture, 50) ? lane : UINT32_MAX; /* of a site that nobody told */
    fixture->wires[fixture->count] = wire;
    fixture->lanes[fixture->count++] = lane;
    assert_int_equal(mr_site_map_put(&fixture->map, wire, lane), MR_OK);
}

/* Sites by chance, and some that differ from one before in one bit alone. */
static void make_sites(struct fixture *fixture, uint32_t count)
{
    mr_site_map_init(&fixture->map, SITES);
    fixture->count = 0;
    while (fixture->count < count) {
        uint32_t wire = (uint32_t)below(fixture, MR_SITE_LIMIT);

        if (fixture->count && below(fixture, 2))
            wire = fixture->wires[below(fixture, fixture->count)] ^
                   UINT32_C(1) << below(fixture, 30);
        if (wire >= MR_SITE_FIRST_NAMED)
            add_site(fixture, wire);
    }
}

static void make_clock(struct fixture *fixture)
{
    struct mr_clock_info info = {
        .ticks = mr_test_random_next(&fixture->random) >> (2 + below(fixture, 40)),
        .realtime_ns = UINT64_C(1700000000000000000),
        .mult = (uint32_t)mr_test_random_next(&fixture->random) | 1,
        .shift = (uint8_t)below(fixture, 64)};

    mr_ticks_init(&fixture->clock, &info);
    fixture->ticks = mr_test_random_next(&fixture->random) >> (2 + below(fixture, 40));
}

static uint32_t random_step(struct fixture *fixture, uint32_t oddness)
{
    static const uint32_t odd[] = {UINT32_MAX,     1u << 31,          INT32_MAX,
                                   (1u << 31) + 1, UINT32_C(3) << 30, 1u << 30};

    if (oddness && below(fixture, oddness) == 0)
        return odd[below(fixture, MR_ARRAY_COUNT(odd))];
    return (uint32_t)(below(fixture, 4) ? below(fixture, 1000) : 0);
}

static uint32_t random_wire(struct fixture *fixture, uint32_t oddness)
{
    if (!fixture->count || (oddness && below(fixture, oddness) == 0))
        return (uint32_t)below(fixture,
                               below(fixture, 2) ? MR_SITE_LIMIT : MR_SITE_FIRST_NAMED);
    return fixture->wires[below(fixture, fixture->count)];
}

/* One word in about `oddness` is no event of a known site, and as many times do what times do not; 0: none. */
static void make_words(struct fixture *fixture, uint8_t *at, uint32_t count,
                       uint32_t oddness)
{
    uint32_t now = (uint32_t)fixture->ticks;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t bits = mr_test_random_next(&fixture->random);

        now += random_step(fixture, oddness);
        mr_put_u64(at + (size_t)MR_WORD_SIZE * i,
                   mr_word_event(random_wire(fixture, oddness),
                                 bits & (MR_WORD_EXIT | MR_WORD_LAP), now));
    }
}

static void begin(const struct fixture *fixture, const uint8_t *at, struct result *result)
{
    memset(result, MARK, sizeof(*result));
    result->words = (struct mr_words){
        .at = at, .map = fixture->map, .clock = fixture->clock, .ticks = fixture->ticks};
}

static void read_naively(const struct fixture *fixture, const uint8_t *at, uint32_t count,
                         struct result *result)
{
    struct mr_words *words = &result->words;

    begin(fixture, at, result);
    for (result->done = 0; result->done < count; result->done++) {
        uint64_t word = mr_get_u64(words->at);
        int32_t step = (int32_t)((uint32_t)word - (uint32_t)words->ticks);
        uint32_t i = 0;

        while (i < fixture->count && fixture->wires[i] != mr_word_site(word))
            i++;
        if (i == fixture->count)
            return;
        words->at += MR_WORD_SIZE;
        words->inversions += step < 0;
        words->ticks += step < 0 ? 0 : (uint32_t)step;
        result->events[result->done] = (struct mr_event){
            .ns = mr_ticks_ns(&words->clock, words->ticks),
            .site = fixture->lanes[i],
            .kind = word & MR_WORD_EXIT ? MR_EVENT_EXIT : MR_EVENT_ENTER};
    }
}

/* Events behind the last one may have been written, but none past `count`. */
static void expect_same(const struct result *expected, const struct result *actual,
                        uint32_t count)
{
    assert_int_equal(actual->done, expected->done);
    assert_memory_equal(actual->events, expected->events,
                        expected->done * sizeof(struct mr_event));
    assert_memory_equal(actual->events + count, expected->events + count,
                        SEPARATE * sizeof(struct mr_event));
    assert_ptr_equal(actual->words.at, expected->words.at);
    assert_int_equal(actual->words.ticks, expected->words.ticks);
    assert_int_equal(actual->words.inversions, expected->words.inversions);
}

static void compare(const struct fixture *fixture, const uint8_t *at, uint32_t count,
                    bool is_wide)
{
    struct result expected, actual;

    read_naively(fixture, at, count, &expected);
    begin(fixture, at, &actual);
    actual.done = mr_words_read(&actual.words, actual.events, count, is_wide);
    expect_same(&expected, &actual, count);
}

static void compare_counts_and_places(bool is_wide, uint32_t sites)
{
    static const uint32_t oddness[] = {0, 2, 10, 100, 1000};
    struct fixture fixture = {.random = mr_test_random_new()};

    make_sites(&fixture, sites);
    for (uint32_t i = 0; i < MR_ARRAY_COUNT(oddness); i++)
        for (uint32_t count = 0; count <= 80; count++)
            for (uint32_t place = 0; place < 2 * MR_WORD_SIZE; place++) {
                make_clock(&fixture);
                make_words(&fixture, fixture.bytes + place, count, oddness[i]);
                compare(&fixture, fixture.bytes + place, count, is_wide);
            }
    for (uint32_t i = 0; i < 4000; i++) {
        uint32_t count = (uint32_t)below(&fixture, WORDS_MAX + 1);

        make_clock(&fixture);
        make_words(&fixture, fixture.bytes, count,
                   oddness[below(&fixture, MR_ARRAY_COUNT(oddness))]);
        compare(&fixture, fixture.bytes, count, is_wide);
    }
    mr_site_map_fini(&fixture.map);
}

/* At each place of a run in which all else is in order: a step of each odd kind, a record, a site that is in no map. */
static void compare_single_faults(bool is_wide)
{
    struct fixture fixture = {.random = mr_test_random_new()};

    make_sites(&fixture, 100);
    for (uint32_t fault = 0; fault < 140; fault++)
        for (uint32_t kind = 0; kind < 5; kind++) {
            uint8_t *at = fixture.bytes + (size_t)MR_WORD_SIZE * fault;
            uint64_t word;

            make_clock(&fixture);
            make_words(&fixture, fixture.bytes, 140, 0);
            word = mr_get_u64(at);
            if (kind < 2)
                word &= ~((uint64_t)MR_WORD_SITE_MASK << MR_WORD_SITE_SHIFT);
            if (kind == 1)
                word |= (uint64_t)1 << MR_WORD_SITE_SHIFT;
            if (kind >= 2)
                word = (word & ~(uint64_t)UINT32_MAX) |
                       (uint32_t)(word + (kind == 2   ? UINT32_C(0) - 200000
                                          : kind == 3 ? 1u << 31
                                                      : UINT32_MAX));
            mr_put_u64(at, word);
            compare(&fixture, fixture.bytes, 140, is_wide);
        }
    mr_site_map_fini(&fixture.map);
}

static void the_scalar_loop_is_the_naive_one(void **state)
{
    (void)state;
    compare_counts_and_places(false, 0);
    compare_counts_and_places(false, 5);
    compare_counts_and_places(false, SITES);
    compare_single_faults(false);
}

static void skip_unless_wide(void)
{
    if (MR_CPU_IS_WIDE())
        return;
    print_message("skipped: this processor, or its build, has no wide loop\n");
    skip();
}

static void the_wide_loop_is_the_naive_one(void **state)
{
    (void)state;
    skip_unless_wide();
    compare_counts_and_places(true, 0);
    compare_counts_and_places(true, 5);
    compare_counts_and_places(true, SITES);
    compare_single_faults(true);
}

/* Else a loop that never looks there would do. */
static void many_sites_lie_in_their_other_place(void **state)
{
    struct fixture fixture = {.random = mr_test_random_new()};
    uint32_t others = 0;

    (void)state;
    make_sites(&fixture, SITES);
    for (uint32_t i = 0; i < SITES; i++)
        others += fixture.map.slots[mr_site_map_place(fixture.wires[i], fixture.map.key,
                                                      fixture.map.shift)] >>
                      32 !=
                  fixture.wires[i];
    assert_in_range(others, 20, SITES);
    mr_site_map_fini(&fixture.map);
}

/* Else the comparison above would be of the scalar loop with itself. */
static void the_wide_loop_takes_all_groups_that_are_in_order(void **state)
{
    (void)state;
    skip_unless_wide();
#if MR_HAS_WIDE_BUILD
    {
        struct fixture fixture = {.random = mr_test_random_new()};
        struct result result;

        make_sites(&fixture, SITES);
        for (uint32_t count = 0; count <= 70; count++) {
            make_clock(&fixture);
            make_words(&fixture, fixture.bytes, count, 0);
            begin(&fixture, fixture.bytes, &result);
            assert_int_equal(mr_words_read_wide(&result.words, result.events, count),
                             count & ~3u);
        }
        mr_site_map_fini(&fixture.map);
    }
#endif
}

/* mr_words_times() as its header says it. */
static bool tell_naively(const struct mr_words_base *base, const uint32_t *wire,
                         const uint8_t *at, uint32_t count, uint32_t *past,
                         uint32_t *times)
{
    uint32_t before = *past;

    for (uint32_t i = 0; i < count; i++, at += MR_WORD_SIZE) {
        uint64_t word = mr_get_u64(at), ns;
        uint32_t now = (uint32_t)word - base->start;

        if (((uint32_t)(word >> 32) & INT32_MAX) != (wire[i] & INT32_MAX) ||
            now > INT32_MAX || now < before)
            return false;
        ns = (base->part + (uint64_t)now * base->mult) >> base->shift;
        if (ns > INT32_MAX)
            return false;
        times[i] = (uint32_t)ns;
        before = now;
    }
    *past = before;
    return true;
}

struct known_words {
    uint32_t wire[WORDS_MAX], past;
    struct mr_words_base base;
};

/* One word in about `oddness` is another one, or does what times do not; 0: none. */
static void make_known(struct fixture *fixture, struct known_words *known, uint8_t *at,
                       uint32_t count, uint32_t oddness)
{
    uint32_t now;

    make_clock(fixture);
    known->base = mr_words_base(&fixture->clock, fixture->ticks);
    known->past = (uint32_t)below(fixture, 1000);
    now = known->base.start + known->past;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bits = mr_test_random_next(&fixture->random);

        now += random_step(fixture, oddness);
        known->wire[i] = (uint32_t)(bits >> 32) & INT32_MAX;
        if (oddness && below(fixture, oddness) == 0)
            bits ^= UINT64_C(1) << (32 + below(fixture, 32)); /* the last: a lap */
        mr_put_u64(at + (size_t)MR_WORD_SIZE * i, (bits & ~(uint64_t)UINT32_MAX) | now);
    }
}

static bool compare_times(const struct known_words *known, const uint8_t *at,
                          uint32_t count, bool is_wide)
{
    uint32_t expected[WORDS_MAX], times[WORDS_MAX + SEPARATE], mark[SEPARATE];
    uint32_t expected_past = known->past, past = known->past;
    bool is_told =
        tell_naively(&known->base, known->wire, at, count, &expected_past, expected);

    memset(mark, MARK, sizeof(mark));
    memset(times, MARK, sizeof(times));
    assert_int_equal(
        mr_words_times(&known->base, known->wire, at, count, &past, times, is_wide),
        is_told);
    assert_int_equal(past, expected_past);
    if (is_told)
        assert_memory_equal(times, expected, count * sizeof(*times));
    assert_memory_equal(times + count, mark, sizeof(mark));
    return is_told;
}

static void compare_all_times(bool is_wide)
{
    static const uint32_t oddness[] = {0, 10, 100, 1000};
    struct fixture fixture = {.random = mr_test_random_new()};
    struct known_words known;
    uint32_t told = 0, all = 0;

    for (uint32_t i = 0; i < MR_ARRAY_COUNT(oddness); i++)
        for (uint32_t count = 1; count <= WORDS_MAX; count++)
            for (uint32_t place = 0; place < MR_WORD_SIZE; place++, all++) {
                make_known(&fixture, &known, fixture.bytes + place, count, oddness[i]);
                told += compare_times(&known, fixture.bytes + place, count, is_wide);
            }
    assert_in_range(told, all / 8, all - all / 8);
}

static void times_of_known_words_are_the_naive_ones(void **state)
{
    (void)state;
    compare_all_times(false);
    if (MR_CPU_IS_WIDE())
        compare_all_times(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_scalar_loop_is_the_naive_one),
        cmocka_unit_test(the_wide_loop_is_the_naive_one),
        cmocka_unit_test(times_of_known_words_are_the_naive_ones),
        cmocka_unit_test(many_sites_lie_in_their_other_place),
        cmocka_unit_test(the_wide_loop_takes_all_groups_that_are_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
