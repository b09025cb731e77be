/* SPDX-License-Identifier: Apache-2.0 */
/* Templates of roots are found by a key (filters/reduce_templates_find.c): what it says of a call, and what it finds. */
#include "../unit_test.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/filters/reduce_private.h"
#include "support_lane.h"
#include "support_vectors.h"

#define EVENTS (MR_TEMPLATE_EVENTS_MAX + 64)
#define SITES 3u /* few, so that calls lie in calls of the same site */
#define ROOT 1u
#define PATH 7u
#define BITS 10u
#define KINDS (1u << BITS) /* so many that the table of roots grows */
#define TRACES 40000u

struct fixture {
    struct mr_reduce reduce;
    struct mr_templates *templates;
    struct mr_test_random random;
    struct mr_event events[EVENTS];
    uint32_t codes[EVENTS + MR_CODE_BLOCK];
};

static struct fixture *fixture_new(void)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_non_null(fixture);
    fixture->templates = &fixture->reduce.templates;
    fixture->random = mr_test_random_new();
    assert_int_equal(mr_templates_init(fixture->templates, 2 * PATH, NULL), MR_OK);
    return fixture;
}

static void fixture_free(struct fixture *fixture)
{
    mr_templates_fini(fixture->templates);
    free(fixture);
}

static uint32_t below(struct fixture *fixture, uint32_t limit)
{
    return (uint32_t)mr_test_random_below(&fixture->random, limit);
}

/* Enters and exits of few sites in any order, seldom with a flag or of another kind. */
static void make_events(struct fixture *fixture)
{
    for (uint32_t i = 0; i < EVENTS; i++) {
        uint32_t dice = below(fixture, 40);

        fixture->events[i] =
            (struct mr_event){.ns = 1000 + i,
                              .site = below(fixture, SITES),
                              .kind = below(fixture, 2) ? MR_EVENT_OPEN : MR_EVENT_CLOSE,
                              .flags = dice == 0 ? MR_EVENT_ROOT : 0};
        if (dice == 1)
            fixture->events[i].kind = MR_EVENT_STATUS;
        if (dice == 2)
            fixture->events[i].flags = MR_EVENT_FAILED;
    }
    fixture->events[0] = (struct mr_event){.site = ROOT, .kind = MR_EVENT_OPEN};
}

/* To the exit that leaves as many of the site open as there were; that of a root may be marked. 0: there is none, or what lies between is in no order. */
static uint32_t naive_size(const struct mr_event *events, uint32_t count)
{
    int open = 1;

    for (uint32_t i = 1; i < count && i < MR_TEMPLATE_EVENTS_MAX; i++) {
        const struct mr_event *event = &events[i];

        if (event->site != ROOT)
            continue;
        open += event->kind == MR_EVENT_OPEN && event->flags == 0;
        open -= event->kind == MR_EVENT_CLOSE &&
                (event->flags | MR_EVENT_ROOT) == MR_EVENT_ROOT;
        if (open == 0)
            return i % 2 ? i + 1 : 0;
    }
    return 0;
}

/* Of so many events; behind them is what was there. */
static const uint32_t *codes_of(struct fixture *fixture, const struct mr_event *events,
                                uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        fixture->codes[i] = mr_code_of(&events[i]);
    return fixture->codes;
}

static struct mr_template_key key_of(struct fixture *fixture, uint32_t count,
                                     const struct mr_template_vectors *vectors)
{
    fixture->templates->vectors = vectors;
    return mr_templates_key(fixture->templates, PATH,
                            codes_of(fixture, fixture->events, count), count);
}

static void a_key_says_where_a_call_ends_with_and_without_vectors(void **state)
{
    struct fixture *fixture = fixture_new();
    uint32_t ended = 0;

    (void)state;
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t count = 1 + below(fixture, EVENTS);
        struct mr_template_key key;

        make_events(fixture);
        if (below(fixture, 2)) /* a long one: no exits of its site for a while */
            for (uint32_t at = 1 + below(fixture, EVENTS - 1); at > 0; at--)
                if (fixture->events[at].site == ROOT)
                    fixture->events[at].site++;
        key = key_of(fixture, count, NULL);
        assert_int_equal(key.size, naive_size(fixture->events, count));
        ended += key.size > 0;
        for (int which = 1; which < TEST_VECTORS; which++) {
            struct mr_template_key wide = key_of(fixture, count, test_vectors(which));

            assert_int_equal(wide.size, key.size);
            if (key.size)
                assert_int_equal(wide.hash, key.hash);
        }
    }
    assert_in_range(ended, 6000, 7400); /* a third, by a deviation of 70 */
    fixture_free(fixture);
}

static void the_hash_is_of_all_but_the_times_and_of_the_path(void **state)
{
    struct fixture *fixture = fixture_new();

    (void)state;
    for (uint32_t i = 0; i < 2000; i++) {
        struct mr_template_key key, other;
        struct mr_event *event;

        make_events(fixture);
        key = key_of(fixture, EVENTS, NULL);
        if (key.size < 3)
            continue;
        for (uint32_t at = 0; at < EVENTS; at++)
            fixture->events[at].ns += 1 + at * at;
        other = key_of(fixture, key.size, NULL);
        assert_int_equal(other.size, key.size);
        assert_int_equal(other.hash, key.hash);
        assert_int_not_equal(
            mr_templates_key(fixture->templates, PATH + 1,
                             codes_of(fixture, fixture->events, key.size), key.size)
                .hash,
            key.hash);
        event = &fixture->events[1 + below(fixture, key.size - 2)];
        if (mr_code_of(event) == MR_CODE_OTHER) /* no call: whatever it is */
            continue;
        event->site += SITES;
        assert_int_not_equal(key_of(fixture, EVENTS, NULL).hash, key.hash);
    }
    fixture_free(fixture);
}

static void codes_are_of_calls_with_and_without_vectors(void **state)
{
    struct fixture *fixture = fixture_new();

    (void)state;
    for (uint32_t i = 0; i < 2000; i++) {
        uint32_t count = below(fixture, EVENTS + 1), codes[EVENTS], done;

        make_events(fixture);
        for (uint32_t at = 0; at < count; at++) {
            struct mr_event *event = &fixture->events[at];

            if (below(fixture, 4))
                continue;
            event->kind = (uint16_t)below(fixture, 1u << below(fixture, 17));
            event->flags = (uint16_t)below(fixture, 1u << below(fixture, 17));
        }
        for (int which = 1; which < TEST_VECTORS; which++) {
            if (!test_vectors(which))
                continue;
            done = test_vectors(which)->make_codes(fixture->events, count, codes);
            assert_int_equal(done, count / MR_CODE_BLOCK * MR_CODE_BLOCK);
            assert_memory_equal(codes, codes_of(fixture, fixture->events, count),
                                done * sizeof(*codes));
        }
    }
    fixture_free(fixture);
}

/* A template that is told to have that hash: of `size` events, from `events` on. */
static void place_template(struct fixture *fixture, struct mr_template_key key,
                           const struct mr_event *events)
{
    struct mr_templates *templates = fixture->templates;
    struct mr_template *template = &templates->items[templates->count];
    uint32_t slot = (uint32_t)(key.hash >> (64 - templates->slot_bits));

    *template = (struct mr_template){.hash = key.hash,
                                     .path = PATH,
                                     .calls = key.size / 2,
                                     .first_code = templates->code_count};
    for (uint32_t i = 0; i < key.size; i++)
        templates->codes[templates->code_count++] = mr_code_of(&events[i]);
    while (templates->slots[slot])
        slot = (slot + 1) % (1u << templates->slot_bits);
    templates->slots[slot] = templates->count++;
}

/* The root calls so many functions, `odd` is of another site. */
static uint32_t make_call(struct mr_event *events, uint32_t calls, uint32_t odd)
{
    uint32_t count = 0;

    events[count++] = (struct mr_event){.site = ROOT, .kind = MR_EVENT_OPEN};
    for (uint32_t i = 0; i < calls; i++)
        for (int end = 0; end < 2; end++)
            events[count++] =
                (struct mr_event){.site = ROOT + (i == odd ? 2 : 1),
                                  .kind = end ? MR_EVENT_CLOSE : MR_EVENT_OPEN};
    events[count++] = (struct mr_event){.site = ROOT, .kind = MR_EVENT_CLOSE};
    return count;
}

static const struct mr_template *find_root(struct fixture *fixture,
                                           const struct mr_event *events, uint32_t count)
{
    return mr_templates_find_root(&fixture->reduce, PATH,
                                  codes_of(fixture, events, count), count);
}

static void what_meets_in_one_hash_is_told_apart(void **state)
{
    (void)state;
    for (uint32_t calls = 2; calls < MR_TEMPLATE_CALLS_MAX; calls++) {
        struct fixture *fixture = fixture_new();
        struct mr_templates *templates = fixture->templates;
        struct mr_event others[EVENTS];
        uint32_t count = make_call(fixture->events, calls, below(fixture, calls));
        struct mr_template_key key = key_of(fixture, count, NULL);

        assert_int_equal(key.size, count);
        (void)make_call(others, calls, calls); /* none is odd */
        place_template(fixture, key, others);
        templates->paths[PATH].first = templates->count - 1;
        memset(templates->longest, (int)count - 1, sizeof(templates->longest));
        for (int which = 0; which < TEST_VECTORS; which++) {
            templates->vectors = test_vectors(which);
            assert_null(find_root(fixture, fixture->events, count));
            assert_ptr_equal(find_root(fixture, others, count), &templates->items[1]);
        }
        place_template(fixture, key, fixture->events);
        for (int which = 0; which < TEST_VECTORS; which++) {
            templates->vectors = test_vectors(which);
            templates->paths[PATH].first = 1;
            assert_ptr_equal(find_root(fixture, fixture->events, count),
                             &templates->items[2]);
        }
        fixture_free(fixture);
    }
}

/* Which of the path's two templates fits: 1, 2, or 0. */
static long find_part(struct fixture *fixture, uint32_t count)
{
    struct mr_templates *templates = fixture->templates;
    const struct mr_template *found;

    templates->paths[PATH].first = 1;
    templates->items[1].next = 2;
    templates->items[2].next = MR_TEMPLATE_NONE;
    found = mr_templates_find_part(&fixture->reduce, PATH, fixture->codes, count);
    return found ? found - templates->items : 0;
}

/* One code is another in the first of two templates; the second one fits. */
static void check_part(struct fixture *fixture, uint32_t calls)
{
    struct mr_templates *templates = fixture->templates;
    uint32_t count = make_call(fixture->events, calls - 1, calls);

    (void)codes_of(fixture, fixture->events, count);
    templates->count = 1;
    templates->code_count = 0;
    for (int i = 0; i < 2; i++)
        place_template(fixture, (struct mr_template_key){0, count}, fixture->events);
    for (uint32_t at = 1; at < count - 1; at++) {
        templates->codes[at] ^= 1u << below(fixture, 32);
        for (int which = 0; which < TEST_VECTORS; which++) {
            templates->vectors = test_vectors(which);
            assert_int_equal(find_part(fixture, count), 2);
            assert_int_equal(find_part(fixture, count - 1), 0);
        }
        templates->codes[at] = fixture->codes[at];
        assert_int_equal(find_part(fixture, count), 1);
    }
}

static void a_part_is_told_apart_by_any_of_its_events(void **state)
{
    struct fixture *fixture = fixture_new();

    (void)state;
    for (uint32_t calls = MR_TEMPLATE_PART_CALLS_MIN; calls <= MR_TEMPLATE_CALLS_MAX;
         calls++)
        check_part(fixture, calls);
    fixture_free(fixture);
}

/* A trace of that kind: which functions the root calls are the bits of its number. */
static void write_trace(struct test_lane *lane, uint32_t kind, uint64_t *ns)
{
    test_lane_enter(lane, 1, ROOT, *ns += 10);
    for (uint32_t bit = 0; bit < BITS; bit++) {
        uint32_t function = 2 + 2 * bit + (kind >> bit & 1);

        test_lane_enter(lane, 1, function, *ns += 10);
        test_lane_exit(lane, 1, function, *ns += 10);
    }
    test_lane_exit(lane, 1, ROOT, *ns += 10);
    if (lane->streams[1].count > 4000)
        test_lane_send(lane, 1, 0);
}

/* More kinds than are tried one after the other, in any order: nearly all are counted in bulk. */
static void check_kinds(enum mr_vectors vectors)
{
    struct mr_test_random random = mr_test_random_new();
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct test_lane lane;
    uint64_t ns = 0;

    reduce.shape_calls_s = 0;
    reduce.vectors = vectors;
    test_lane_init(&lane, &options);
    test_lane_announce(&lane, 1, 0);
    for (uint32_t i = 0; i < TRACES; i++)
        write_trace(&lane, (uint32_t)mr_test_random_below(&random, KINDS), &ns);
    test_lane_send(&lane, 1, MR_CHUNK_LAST);
    test_lane_end(&lane);
    assert_false(mr_source_is_broken(lane.source));
    assert_in_range(test_lane_counter(&lane, "in_bulk"),
                    (uint64_t)TRACES * (BITS + 1) * 8 / 10,
                    (uint64_t)TRACES * (BITS + 1));
    test_lane_fini(&lane);
}

static void roots_of_many_kinds_are_counted_in_bulk(void **state)
{
    (void)state;
    for (uint32_t vectors = MR_VECTORS_NONE; vectors <= MR_VECTORS_WIDER; vectors++)
        check_kinds(vectors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_says_where_a_call_ends_with_and_without_vectors),
        cmocka_unit_test(the_hash_is_of_all_but_the_times_and_of_the_path),
        cmocka_unit_test(what_meets_in_one_hash_is_told_apart),
        cmocka_unit_test(codes_are_of_calls_with_and_without_vectors),
        cmocka_unit_test(a_part_is_told_apart_by_any_of_its_events),
        cmocka_unit_test(roots_of_many_kinds_are_counted_in_bulk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
