/* SPDX-License-Identifier: Apache-2.0 */
#include "net/wanted.h"

#include "net/bytes.h"
#include "net/control.h"
#include "net/ids.h"
#include "net/wire.h"
#include "tests/unit/net/hop.h"

#include <stdlib.h>

static const struct mr_id entry = {1, 2}, node = {3, 4};

static struct mr_wanted wanted_of(uint64_t number, uint16_t depth)
{
    struct mr_wanted wanted = {.id = {9, number},
                               .entry = entry,
                               .min_ns = 5000,
                               .left_ms = 60000,
                               .count = 3,
                               .depth = depth};

    for (uint16_t i = 0; i < depth; i++)
        wanted.sites[i] = 100u + i;
    return wanted;
}

/* A payload of one request, to be spoilt. */
static size_t one(uint16_t depth, uint8_t *out)
{
    struct mr_wanted_list *list = calloc(1, sizeof(*list));
    size_t size;

    assert_non_null(list);
    list->count = 1;
    list->items[0] = wanted_of(1, depth);
    size = mr_wanted_put(list, out);
    free(list);
    return size;
}

static enum mr_status read_back(const uint8_t *bytes, size_t size)
{
    struct mr_wanted_list *list = calloc(1, sizeof(*list));
    uint8_t *exact = malloc(size ? size : 1); /* so that a read past it is seen */
    enum mr_status status;

    assert_non_null(list);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    status = mr_wanted_get(mr_span_of(exact, size), list);
    free(exact);
    free(list);
    return status;
}

static void a_list_is_read_as_it_was_written(void **state)
{
    static struct mr_wanted_list list, again;
    static uint8_t bytes[MR_WANTED_SIZE_MAX];
    size_t size;

    (void)state;
    list.count = MR_WANTED_MAX;
    for (uint32_t i = 0; i < MR_WANTED_MAX; i++)
        list.items[i] = wanted_of(i + 1, MR_WANTED_DEPTH_MAX);
    list.items[3].entry = (struct mr_id){0, 0}; /* a shape, wherever it begins */
    list.items[3].node = node;
    list.items[3].depth = 0;
    size = mr_wanted_put(&list, bytes);
    assert_int_equal(size, MR_WANTED_SIZE_MAX - 8 * MR_WANTED_DEPTH_MAX);
    assert_int_equal(mr_wanted_get(mr_span_of(bytes, size), &again), MR_OK);
    assert_int_equal(again.count, list.count);
    for (uint32_t i = 0; i < list.count; i++) {
        assert_true(mr_wanted_is_same(&list.items[i], &again.items[i]));
        assert_int_equal(again.items[i].left_ms, 60000);
    }
    list.count = 0;
    assert_int_equal(mr_wanted_put(&list, bytes), MR_WANTED_HEAD_SIZE);
    assert_int_equal(read_back(bytes, MR_WANTED_HEAD_SIZE), MR_OK);
}

/* FORMAT.md section 4; a change of these bytes is a new version. */
static void the_layout_is_the_documented_one(void **state)
{
    uint8_t bytes[MR_WANTED_SIZE_MAX];

    (void)state;
    assert_int_equal(one(1, bytes), 8 + 72 + 8);
    assert_int_equal(mr_get_u32(bytes), 1);
    assert_int_equal(mr_get_u32(bytes + 4), 0);
    assert_int_equal(mr_get_u32(bytes + 8), 80);     /* size */
    assert_int_equal(mr_get_u16(bytes + 12), 3);     /* count */
    assert_int_equal(mr_get_u16(bytes + 14), 1);     /* depth */
    assert_int_equal(mr_get_u32(bytes + 16), 60000); /* left */
    assert_int_equal(mr_get_u32(bytes + 20), 0);
    assert_int_equal(mr_get_u64(bytes + 24), 5000); /* min_ns */
    assert_true(mr_id_equal(mr_id_get(bytes + 32), (struct mr_id){9, 1}));
    assert_true(mr_id_equal(mr_id_get(bytes + 48), entry));
    assert_true(mr_id_is_zero(mr_id_get(bytes + 64)));
    assert_int_equal(mr_get_u64(bytes + 80), 100);
    assert_int_equal(MR_FRAME_WANTED, 11);
}

static void fields_behind_the_known_ones_are_passed_over(void **state)
{
    uint8_t bytes[MR_WANTED_SIZE_MAX];
    size_t size = one(1, bytes);

    (void)state;
    mr_put_u32(bytes + 8, 80 + 5);
    memset(bytes + size, 0xee, 9);
    assert_int_equal(read_back(bytes, size + 5), MR_OK);
    assert_int_equal(read_back(bytes, size + 9), MR_OK); /* and behind the list */
    assert_int_equal(read_back(bytes, size + 4), MR_EFORMAT);
}

static void what_is_cut_off_is_refused(void **state)
{
    uint8_t bytes[MR_WANTED_SIZE_MAX];
    size_t size = one(2, bytes);

    (void)state;
    for (size_t i = 0; i < size; i++)
        assert_int_equal(read_back(bytes, i), MR_EFORMAT);
}

static void values_out_of_range_are_refused(void **state)
{
    static const struct {
        size_t at, size;
        uint64_t value;
    } bad[] = {
        {0, 4, MR_WANTED_MAX + 1},
        {8, 4, 79},
        {8, 4, UINT32_MAX},
        {12, 2, 0},
        {12, 2, MR_WANTED_COUNT_MAX + 1},
        {14, 2, MR_WANTED_DEPTH_MAX + 1},
        {16, 4, 0},
        {16, 4, MR_WANTED_LEFT_MS_MAX + 1},
    };
    uint8_t bytes[MR_WANTED_SIZE_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        size_t size = one(1, bytes);

        memcpy(bytes + bad[i].at, &bad[i].value, bad[i].size);
        assert_int_equal(read_back(bytes, size), MR_EFORMAT);
    }
    for (size_t at = 32; at <= 48;
         at += 16) { /* no request's id; a path of no entry point */
        size_t size = one(1, bytes);

        memset(bytes + at, 0, 16);
        assert_int_equal(read_back(bytes, size), MR_EFORMAT);
    }
    memset(bytes + 48, 0, 16);
    mr_put_u16(bytes + 14, 0); /* neither path nor shape */
    assert_int_equal(read_back(bytes, one(0, bytes)), MR_OK);
    memset(bytes + 48, 0, 16);
    assert_int_equal(read_back(bytes, 80), MR_EFORMAT);
}

static void a_request_twice_is_refused(void **state)
{
    static struct mr_wanted_list list;
    static uint8_t bytes[MR_WANTED_SIZE_MAX];

    (void)state;
    list.count = 2;
    list.items[0] = wanted_of(7, 0);
    list.items[1] = wanted_of(7, 1);
    assert_int_equal(read_back(bytes, mr_wanted_put(&list, bytes)), MR_EFORMAT);
}

static void requests_differ_by_all_but_their_time(void **state)
{
    struct mr_wanted a = wanted_of(1, 2), b = a;

    (void)state;
    b.left_ms = 1;
    assert_true(mr_wanted_is_same(&a, &b));
    b.sites[2] = 77; /* behind its depth */
    assert_true(mr_wanted_is_same(&a, &b));
    b.sites[1] = 77;
    assert_false(mr_wanted_is_same(&a, &b));
    b = a;
    b.min_ns++;
    assert_false(mr_wanted_is_same(&a, &b));
    b = a;
    b.count++;
    assert_false(mr_wanted_is_same(&a, &b));
    b = a;
    b.node = node;
    assert_false(mr_wanted_is_same(&a, &b));
}

static void hello_says_whether_a_sender_takes_it(void **state)
{
    struct mr_hello hello = {
        .sender = {5, 6}, .role = MR_ROLE_WORKER, .level = 1, .oldest = 1, .token = ""};
    struct mr_hello_message message;
    uint8_t bytes[512];

    (void)state;
    for (int takes = 0; takes < 2; takes++) {
        hello.takes_wanted = takes;
        assert_int_equal(
            mr_hello_get(mr_span_of(bytes, mr_hello_put(&hello, bytes, sizeof(bytes))),
                         &message, NULL),
            MR_OK);
        assert_int_equal(message.hello.takes_wanted, takes);
        mr_hello_free(&message);
    }
}

/* The requests in the last list that came. */
static bool take_list(void *context, struct mr_span payload)
{
    static struct mr_wanted_list list;
    uint32_t *count = context;

    if (mr_wanted_get(payload, &list) != MR_OK)
        return false;
    *count = list.count;
    return true;
}

static void a_sender_is_handed_the_list_and_breaks_off_at_a_bad_one(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();
    static uint8_t bytes[MR_WANTED_SIZE_MAX];
    size_t size = one(2, bytes);
    uint32_t count = 0;

    (void)state;
    hop->config.wanted = take_list;
    hop->config.context = &count;
    mr_test_hop_start(hop);
    mr_test_hop_open(hop);
    assert_int_equal(mr_conn_wanted(&hop->conn, mr_span_of(bytes, size)), MR_OK);
    for (int i = 0; i < 1000 && count == 0; i++)
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
    assert_int_equal(count, 1);
    assert_int_equal(hop->sender.state, MR_SENDER_OPEN);
    assert_int_equal(mr_conn_wanted(&hop->conn, mr_span_of(bytes, size - 1)), MR_OK);
    for (int i = 0; i < 1000 && hop->sender.stats.failures == 0; i++)
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
    assert_non_null(strstr(hop->sender.last_error.text, "bad WANTED"));
    mr_test_hop_free(hop);
}

/* As a probe: it is never sent one, but would not mind. */
static void a_sender_that_asks_for_no_lists_passes_one_over(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();
    static uint8_t bytes[MR_WANTED_SIZE_MAX];
    size_t size = one(1, bytes);

    (void)state;
    mr_test_hop_start(hop);
    mr_test_hop_open(hop);
    assert_int_equal(mr_conn_wanted(&hop->conn, mr_span_of(bytes, size)), MR_OK);
    (void)mr_test_hop_send(hop, 10, 7);
    assert_int_equal(mr_test_hop_take(hop).sequence, 1);
    assert_int_equal(mr_conn_ack(&hop->conn, 1, 0), MR_OK);
    for (int i = 0; i < 1000 && hop->sender.oldest_sequence == 1; i++)
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
    assert_int_equal(hop->sender.oldest_sequence, 2); /* behind the list */
    assert_int_equal(hop->sender.stats.failures, 0);
    mr_test_hop_free(hop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_read_as_it_was_written),
        cmocka_unit_test(the_layout_is_the_documented_one),
        cmocka_unit_test(fields_behind_the_known_ones_are_passed_over),
        cmocka_unit_test(what_is_cut_off_is_refused),
        cmocka_unit_test(values_out_of_range_are_refused),
        cmocka_unit_test(a_request_twice_is_refused),
        cmocka_unit_test(requests_differ_by_all_but_their_time),
        cmocka_unit_test(a_sender_is_handed_the_list_and_breaks_off_at_a_bad_one),
        cmocka_unit_test(a_sender_that_asks_for_no_lists_passes_one_over),
        cmocka_unit_test(hello_says_whether_a_sender_takes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
