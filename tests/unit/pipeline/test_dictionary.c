/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "pipeline/dictionary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mr_dict_item site_item(uint64_t number, enum mr_site_quality quality,
                                     const char *name)
{
    return (struct mr_dict_item){
        .kind = MR_DICT_SITE,
        .site = {.id = {0, number},
                 .module = "/usr/bin/program",
                 .build_id = mr_span_of("\1\2\3\4", 4),
                 .offset = number * 16,
                 .name = name,
                 .file = quality == MR_QUALITY_DEBUG ? "file.c" : "",
                 .line = 7,
                 .quality = quality}};
}

static struct mr_dictionary *new_dictionary(const struct mr_dictionary_limits *limits)
{
    struct mr_dictionary *dictionary = NULL;

    assert_int_equal(mr_dictionary_new(limits, &dictionary), MR_OK);
    return dictionary;
}

static uint32_t send_all(struct mr_dictionary *dictionary)
{
    struct mr_dict_item item;
    uint32_t count = 0;

    while (mr_dictionary_peek(dictionary, &item)) {
        mr_dictionary_mark_sent(dictionary);
        count++;
    }
    return count;
}

static void what_is_known_is_not_sent_twice(void **state)
{
    struct mr_dictionary *dictionary = new_dictionary(NULL);
    struct mr_dict_item item = site_item(1, MR_QUALITY_OFFSET, ""), out;

    (void)state;
    assert_false(mr_dictionary_peek(dictionary, &out));
    assert_int_equal(mr_dictionary_take(dictionary, &item), MR_OK);
    assert_int_equal(mr_dictionary_take(dictionary, &item), MR_OK);
    assert_true(mr_dictionary_peek(dictionary, &out));
    assert_int_equal(out.kind, MR_DICT_SITE);
    assert_int_equal(out.site.id.lo, 1);
    assert_string_equal(out.site.module, "/usr/bin/program");
    assert_int_equal(out.site.build_id.size, 4);
    assert_memory_equal(out.site.build_id.data, "\1\2\3\4", 4);
    assert_int_equal(send_all(dictionary), 1);
    assert_int_equal(mr_dictionary_take(dictionary, &item), MR_OK);
    assert_int_equal(send_all(dictionary), 0);
    mr_dictionary_free(dictionary);
    mr_dictionary_free(NULL);
}

static void a_better_site_replaces_and_a_worse_one_does_not(void **state)
{
    struct mr_dictionary *dictionary = new_dictionary(NULL);
    struct mr_dict_item plain = site_item(1, MR_QUALITY_OFFSET, ""),
                        symbol = site_item(1, MR_QUALITY_SYMBOL, "f"),
                        debug = site_item(1, MR_QUALITY_DEBUG, "f(int)"), out;

    (void)state;
    assert_int_equal(mr_dictionary_take(dictionary, &plain), MR_OK);
    assert_int_equal(mr_dictionary_take(dictionary, &symbol),
                     MR_OK); /* before it was sent: one item */
    assert_true(mr_dictionary_peek(dictionary, &out));
    assert_string_equal(out.site.name, "f");
    assert_int_equal(send_all(dictionary), 1);
    assert_int_equal(mr_dictionary_take(dictionary, &debug), MR_OK);
    assert_int_equal(mr_dictionary_take(dictionary, &plain), MR_OK);
    assert_true(mr_dictionary_peek(dictionary, &out));
    assert_string_equal(out.site.name, "f(int)");
    assert_string_equal(out.site.file, "file.c");
    assert_int_equal(send_all(dictionary), 1);
    mr_dictionary_free(dictionary);
}

static void a_source_only_goes_forward_in_its_states(void **state)
{
    struct mr_dictionary *dictionary = new_dictionary(NULL);
    struct mr_dict_item source = {.kind = MR_DICT_SOURCE,
                                  .source = {.id = {1, 2},
                                             .host = "h",
                                             .app = "a",
                                             .version = "",
                                             .exe = "/a",
                                             .state = MR_SOURCE_DIED}};
    struct mr_dict_item out;

    (void)state;
    assert_int_equal(mr_dictionary_take(dictionary, &source), MR_OK);
    assert_int_equal(send_all(dictionary), 1);
    source.source.state = MR_SOURCE_LIVE;
    assert_int_equal(mr_dictionary_take(dictionary, &source), MR_OK);
    assert_int_equal(send_all(dictionary), 0);
    source.source.state = MR_SOURCE_FINISHED; /* it had gone to another worker */
    source.source.end_ns = 77;
    assert_int_equal(mr_dictionary_take(dictionary, &source), MR_OK);
    assert_true(mr_dictionary_peek(dictionary, &out));
    assert_int_equal(out.source.state, MR_SOURCE_FINISHED);
    assert_int_equal(out.source.end_ns, 77);
    assert_string_equal(out.source.exe, "/a");
    assert_int_equal(send_all(dictionary), 1);
    source.source.state = MR_SOURCE_DIED;
    assert_int_equal(mr_dictionary_take(dictionary, &source), MR_OK);
    assert_int_equal(send_all(dictionary), 0);
    mr_dictionary_free(dictionary);
}

static void every_kind_that_goes_upward_is_kept_and_no_other(void **state)
{
    struct mr_dictionary *dictionary = new_dictionary(NULL);
    struct mr_dict_item scope = {.kind = MR_DICT_SCOPE,
                                 .scope = {{1, 1}, "app", "1.0", "host"}};
    struct mr_dict_item outer = {.kind = MR_DICT_OUTER, .outer = {{1, 1}, {1, 2}, 2}};
    struct mr_dict_item node = {
        .kind = MR_DICT_NODE,
        .node = {
            {1, 1}, {1, 2}, MR_EXACTNESS_FOLDED, mr_span_of("0123456789abcdef\0", 17)}};
    struct mr_dict_item module = {.kind = MR_DICT_MODULE, .module = {.path = "/x"}}, out;

    (void)state;
    assert_int_equal(mr_dictionary_take(dictionary, &scope), MR_OK);
    assert_int_equal(mr_dictionary_take(dictionary, &outer), MR_OK);
    assert_int_equal(mr_dictionary_take(dictionary, &node),
                     MR_OK); /* the scope's id, and yet another item */
    assert_int_equal(mr_dictionary_take(dictionary, &module), MR_EUSAGE);
    assert_true(mr_dictionary_peek(dictionary, &out));
    assert_string_equal(out.scope.version, "1.0");
    mr_dictionary_mark_sent(dictionary);
    assert_true(mr_dictionary_peek(dictionary, &out));
    assert_int_equal(out.outer.why, 2);
    mr_dictionary_mark_sent(dictionary);
    assert_true(mr_dictionary_peek(dictionary, &out));
    assert_int_equal(out.node.children.size, 17);
    mr_dictionary_mark_sent(dictionary);
    assert_false(mr_dictionary_peek(dictionary, &out));
    mr_dictionary_free(dictionary);
}

static void a_new_receiver_gets_everything_in_the_first_order(void **state)
{
    struct mr_dictionary *dictionary = new_dictionary(NULL);
    struct mr_dict_item out;

    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        struct mr_dict_item item = site_item(i, MR_QUALITY_OFFSET, "");

        assert_int_equal(mr_dictionary_take(dictionary, &item), MR_OK);
        if (i == 30)
            assert_int_equal(send_all(dictionary), 31);
    }
    mr_dictionary_mark_all_unsent(dictionary);
    for (uint64_t i = 0; i < 100; i++) {
        assert_true(mr_dictionary_peek(dictionary, &out));
        assert_int_equal(out.site.id.lo, i);
        mr_dictionary_mark_sent(dictionary);
    }
    assert_false(mr_dictionary_peek(dictionary, &out));
    mr_dictionary_free(dictionary);
}

static void past_its_bounds_it_says_so_and_counts(void **state)
{
    const struct mr_dictionary_limits two = {.items_max = 2}, small = {.bytes_max = 400};
    struct mr_dictionary *dictionary = new_dictionary(&two);
    struct mr_dict_item a = site_item(1, MR_QUALITY_OFFSET, ""),
                        b = site_item(2, MR_QUALITY_OFFSET, ""),
                        c = site_item(3, MR_QUALITY_OFFSET, ""), big;
    struct mr_dictionary_stats stats;
    char name[600];

    (void)state;
    assert_int_equal(mr_dictionary_take(dictionary, &a), MR_OK);
    assert_int_equal(mr_dictionary_take(dictionary, &b), MR_OK);
    assert_int_equal(mr_dictionary_take(dictionary, &c), MR_ELIMIT);
    assert_int_equal(mr_dictionary_take(dictionary, &a), MR_OK); /* known */
    mr_dictionary_stats(dictionary, &stats);
    assert_int_equal(stats.items, 2);
    assert_int_equal(stats.unsent, 2);
    assert_int_equal(stats.beyond, 1);
    mr_dictionary_free(dictionary);

    dictionary = new_dictionary(&small);
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    big = site_item(1, MR_QUALITY_SYMBOL, name);
    assert_int_equal(mr_dictionary_take(dictionary, &big), MR_ELIMIT);
    assert_int_equal(mr_dictionary_take(dictionary, &a), MR_OK);
    assert_int_equal(mr_dictionary_take(dictionary, &big),
                     MR_ELIMIT); /* better, and too big */
    mr_dictionary_stats(dictionary, &stats);
    assert_int_equal(stats.beyond, 2);
    assert_true(stats.bytes <= 400);
    mr_dictionary_free(dictionary);
}

static void nodes_past_their_budget_are_forgotten_once_sent(void **state)
{
    const struct mr_dictionary_limits limits = {.node_bytes_max = 2000};
    struct mr_dictionary *dictionary = new_dictionary(&limits);
    struct mr_dictionary_stats stats;
    struct mr_dict_item item = {.kind = MR_DICT_NODE};
    struct mr_dict_item site = site_item(1, MR_QUALITY_OFFSET, "");
    static const uint8_t children[680]; /* two of them pass the budget */

    (void)state;
    assert_int_equal(mr_dictionary_take(dictionary, &site), MR_OK);
    for (uint64_t i = 0; i < 10; i++) {
        item.node = (struct mr_dict_node){
            .id = {1, i}, .children = mr_span_of(children, sizeof(children))};
        assert_int_equal(mr_dictionary_take(dictionary, &item), MR_OK);
    }
    assert_int_equal(send_all(dictionary), 11);
    mr_dictionary_stats(dictionary, &stats);
    assert_int_equal(stats.items, 3);
    assert_int_equal(stats.forgotten, 8);
    assert_true(stats.bytes < 2500);
    mr_dictionary_mark_all_unsent(dictionary);
    assert_int_equal(send_all(dictionary), 3); /* the site, two nodes */
    assert_int_equal(mr_dictionary_take(dictionary, &item), MR_OK); /* the last one */
    assert_int_equal(send_all(dictionary), 1);
    item.node.id.lo = 1; /* one that was kept */
    assert_int_equal(mr_dictionary_take(dictionary, &item), MR_OK);
    assert_int_equal(send_all(dictionary), 0);
    mr_dictionary_stats(dictionary, &stats);
    assert_int_equal(stats.forgotten, 9);
    mr_dictionary_free(dictionary);
}

/* However many nodes go by, sites among them are found, and what waits is told in its order. */
static void what_is_forgotten_leaves_no_trace(void **state)
{
    const struct mr_dictionary_limits limits = {.node_bytes_max = 100, .items_max = 2000};
    struct mr_dictionary *dictionary = new_dictionary(&limits);
    static const uint8_t children[100];
    struct mr_dictionary_stats stats;
    uint64_t told = 0;

    (void)state;
    for (uint64_t i = 0; i < 50000; i++) {
        struct mr_dict_item item = {.kind = MR_DICT_NODE}, out;

        if (i % 50 == 0)
            item = site_item(i, MR_QUALITY_SYMBOL, "name");
        else
            item.node = (struct mr_dict_node){
                .id = {1, i}, .children = mr_span_of(children, sizeof(children))};
        assert_int_equal(mr_dictionary_take(dictionary, &item), MR_OK);
        while (i % 97 == 0 && mr_dictionary_peek(dictionary, &out)) {
            assert_int_equal(out.kind == MR_DICT_SITE ? out.site.id.lo : out.node.id.lo,
                             told++);
            mr_dictionary_mark_sent(dictionary);
        }
    }
    for (uint64_t i = 0; i < 50000; i += 50) {
        struct mr_dict_item site = site_item(i, MR_QUALITY_SYMBOL, "name");

        mr_dictionary_stats(dictionary, &stats);
        told = stats.items;
        assert_int_equal(mr_dictionary_take(dictionary, &site), MR_OK);
        mr_dictionary_stats(dictionary, &stats);
        assert_int_equal(stats.items, told); /* it was known */
    }
    assert_true(stats.items < 1000 + 100);
    assert_int_equal(stats.beyond, 0);
    mr_dictionary_free(dictionary);
}

/* The naive model: for each of 50 sites the best quality seen and the best sent. */
static void random_sequences_agree_with_an_array_model(void **state)
{
    struct mr_dictionary *dictionary = new_dictionary(NULL);
    int seen[50], sent[50];
    unsigned seed = (unsigned)mr_clock_realtime_ns();

    (void)state;
    print_message("seed %u\n", seed);
    for (int i = 0; i < 50; i++)
        seen[i] = sent[i] = -1;
    for (int round = 0; round < 5000; round++) {
        int number = rand_r(&seed) % 50, quality = rand_r(&seed) % 3;
        struct mr_dict_item item = site_item((uint64_t)number,
                                             (enum mr_site_quality)quality, "name"),
                            out;

        assert_int_equal(mr_dictionary_take(dictionary, &item), MR_OK);
        seen[number] = quality > seen[number] ? quality : seen[number];
        if (rand_r(&seed) % 500 == 0) {
            mr_dictionary_mark_all_unsent(dictionary);
            for (int i = 0; i < 50; i++)
                sent[i] = -1;
        }
        while (rand_r(&seed) % 10 == 0 && mr_dictionary_peek(dictionary, &out)) {
            assert_true((int)out.site.quality > sent[out.site.id.lo]);
            assert_int_equal(out.site.quality, seen[out.site.id.lo]);
            sent[out.site.id.lo] = (int)out.site.quality;
            mr_dictionary_mark_sent(dictionary);
        }
    }
    mr_dictionary_free(dictionary);
}

static struct mr_dict_item node_item(uint64_t number, const char *children)
{
    return (struct mr_dict_item){
        .kind = MR_DICT_NODE,
        .node = {.id = {0, number},
                 .site = {0, 1},
                 .children = mr_span_of(children, strlen(children))}};
}

static void two_things_of_one_id_are_a_collision(void **state)
{
    struct mr_dictionary *dictionary = new_dictionary(NULL);
    struct mr_dict_item node = node_item(1, "0123456789abcdef0"),
                        other = node_item(1, "0123456789abcdef1");
    struct mr_dict_item site = site_item(1, MR_QUALITY_OFFSET, ""),
                        named = site_item(1, MR_QUALITY_DEBUG, "f"),
                        moved = site_item(1, MR_QUALITY_OFFSET, ""), elsewhere = named,
                        out;
    struct mr_dictionary_stats stats;

    (void)state;
    moved.site.module = "/opt/program"; /* of the same build: no other function */
    elsewhere.site.offset = 8;
    assert_int_equal(mr_dictionary_take(dictionary, &node), MR_OK);
    assert_int_equal(mr_dictionary_take(dictionary, &node), MR_OK);
    assert_int_equal(mr_dictionary_take(dictionary, &site), MR_OK);
    assert_int_equal(mr_dictionary_take(dictionary, &named), MR_OK);
    assert_int_equal(mr_dictionary_take(dictionary, &moved), MR_OK);
    mr_dictionary_stats(dictionary, &stats);
    assert_int_equal(stats.collisions, 0);
    assert_int_equal(mr_dictionary_take(dictionary, &other), MR_OK);
    assert_int_equal(mr_dictionary_take(dictionary, &elsewhere), MR_OK);
    mr_dictionary_stats(dictionary, &stats);
    assert_int_equal(stats.collisions, 2);
    assert_true(mr_dictionary_peek(dictionary, &out));
    assert_memory_equal(out.node.children.data, "0123456789abcdef0", 17);
    mr_dictionary_free(dictionary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_things_of_one_id_are_a_collision),
        cmocka_unit_test(what_is_known_is_not_sent_twice),
        cmocka_unit_test(a_better_site_replaces_and_a_worse_one_does_not),
        cmocka_unit_test(a_source_only_goes_forward_in_its_states),
        cmocka_unit_test(every_kind_that_goes_upward_is_kept_and_no_other),
        cmocka_unit_test(a_new_receiver_gets_everything_in_the_first_order),
        cmocka_unit_test(past_its_bounds_it_says_so_and_counts),
        cmocka_unit_test(nodes_past_their_budget_are_forgotten_once_sent),
        cmocka_unit_test(what_is_forgotten_leaves_no_trace),
        cmocka_unit_test(random_sequences_agree_with_an_array_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
