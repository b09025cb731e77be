/* SPDX-License-Identifier: Apache-2.0 */
#include "net/ids.h"

#include "base/hash.h"
#include "net/bytes.h"
#include "tests/unit/net/net_test.h"

/* An id is right when it is the hash of the bytes that FORMAT.md section 7 tells, and the digits here say that it stays. */
static void check(struct mr_id id, const void *bytes, size_t size, const char *hex)
{
    uint8_t out[16];

    mr_id_put(id, out);
    assert_hex(mr_span_of(out, sizeof(out)), hex);
    assert_true(mr_id_equal(id, mr_hash128(mr_span_of(bytes, size))));
    assert_true(mr_id_equal(mr_id_get(out), id));
}

#define CHECK(id, bytes, hex) check((id), (bytes), sizeof(bytes) - 1, (hex))

static const struct mr_id a = {UINT64_C(0x0102030405060708),
                               UINT64_C(0x090a0b0c0d0e0f10)};
static const struct mr_id b = {UINT64_C(0xf1f2f3f4f5f6f7f8),
                               UINT64_C(0xf9fafbfcfdfeff00)};
#define A "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10"
#define B "\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9\xfa\xfb\xfc\xfd\xfe\xff\x00"

static void sites_are_hashes_of_what_they_are(void **state)
{
    (void)state;
    CHECK(mr_id_function(mr_span_of("\xde\xad\xbe\xef", 4), "ignored", 0x1234),
          "mr-site-fn\0\xde\xad\xbe\xef\x34\x12\0\0\0\0\0\0",
          "071f0790 b37c97a5 f17ab5a7 b7b4f17c");
    CHECK(mr_id_function(mr_span_of(NULL, 0), "/bin/app", 0x1234),
          "mr-site-path\0/bin/app\0\x34\x12\0\0\0\0\0\0",
          "083e9895 942a2bd4 f21c23e1 5eb18189");
    CHECK(mr_id_span("shop", "checkout"), "mr-site-span\0shop\0checkout\0",
          "c88fd43d dcf7dcd7 2cc52377 d8683a55");
    CHECK(mr_id_unknown_site(), "mr-site-unknown\0",
          "2a072a03 ce27292a fe540bea 11f250cd");
}

static void scopes_and_paths_are_hashes_of_what_they_are(void **state)
{
    (void)state;
    CHECK(mr_id_scope("shop", "1.2", ""), "mr-scope\0shop\0001.2\0\0",
          "b6f1bafe ab119a61 706b7615 2b8a755f");
    CHECK(mr_id_scope("shop", "1.2", "web1"), "mr-scope\0shop\0001.2\0web1\0",
          "e841e799 8f8ec8a7 c6c80db6 21e1a79e");
    CHECK(mr_id_path(a, b), "mr-path\0" A B, "87c18589 c6e02b5d 7f032b8a 5dbd8c8d");
    CHECK(mr_id_outer_path(a, b), "mr-outer\0" A B,
          "f34db358 9fc673d5 0578a5bd 0b0ea656");
}

static void counters_are_hashes_of_their_names(void **state)
{
    (void)state;
    CHECK(mr_id_span_counter("page-faults"), "mr-counter\0page-faults\0",
          "df314146 ab3720d5 5a21cd2c 5afa6d95");
}

static void parts_and_edges_are_hashes_of_what_they_are(void **state)
{
    const uint64_t number = UINT64_C(0x1122334455667788);

    (void)state;
#define NUMBER "\x88\x77\x66\x55\x44\x33\x22\x11"
    CHECK(mr_id_message(a, number), "mr-message\0" A NUMBER,
          "354fda61 f227552d 48fbc01a 5d0d314f");
    CHECK(mr_id_hand_off(a, number), "mr-hand-off\0" A NUMBER,
          "61f0e235 f6033e64 b92c85cb a8a9b1fc");
    CHECK(mr_id_next(a), "mr-next\0" A "\0\0\0\0\0\0\0\0",
          "246e2584 c3c1695b 9b63dfca 02fc52fb");
    CHECK(mr_id_part(a, 0x01020304, number), "mr-part\0" A "\4\3\2\1\0\0\0\0" NUMBER,
          "666d027b 57a4dfd6 9bc1a0b8 135639b2");
}

/* Few children are hashed at once, more piece by piece: the same bytes. */
static void joined_shapes_are_hashes_of_what_hangs_on_them(void **state)
{
    struct mr_joined_child children[9];

    (void)state;
    for (uint32_t i = 0; i < 9; i++)
        children[i] = (struct mr_joined_child){
            .id = i % 2 ? a : b, .kind = (uint8_t)(1 + i % 3), .is_run = i % 2};
#define HEAD "mr-joined\0\2" A B
#define TWO "\1\0" B "\2\1" A
    CHECK(mr_id_joined(2, a, b, children, 0), HEAD,
          "2ffe7e78 2375c126 7caca6c7 337b6106");
    CHECK(mr_id_joined(2, a, b, children, 2), HEAD TWO,
          "ad148550 1f7d5e4a 5bb9acd5 82fdc4ca");
#define EIGHT TWO "\3\0" B "\1\1" A "\2\0" B "\3\1" A "\1\0" B "\2\1" A
    CHECK(mr_id_joined(2, a, b, children, 8), HEAD EIGHT,
          "c528e01a e1f3b639 13001c5c 7d594371");
    CHECK(mr_id_joined(2, a, b, children, 9), HEAD EIGHT "\3\0" B,
          "9810ce33 394fed36 54de37b0 40b47388");
}

static void nodes_are_hashes_of_their_children(void **state)
{
    const struct mr_node_child children[] = {{b, 0}, {a, 3}};
    struct mr_buffer scratch;
    struct mr_id id;

    (void)state;
    mr_buffer_init(&scratch, 4096);
    assert_int_equal(mr_id_node(MR_EXACTNESS_FOLDED, a, NULL, 0, &scratch, &id), MR_OK);
    CHECK(id, "mr-node\0\0" A, "4212d563 edd97c5a 17853cff 7e5065c7");
    assert_int_equal(mr_id_node(MR_EXACTNESS_EXACT, a, children, 2, &scratch, &id),
                     MR_OK);
    CHECK(id, "mr-node\0\1" A B "\0\0\0\0\0\0\0\0" A "\3\0\0\0\0\0\0\0",
          "1621bbe6 e774d2b7 db80c686 67940c6f");
    mr_buffer_fini(&scratch);
}

static void a_node_with_more_children_than_scratch_holds_is_refused(void **state)
{
    static const struct mr_node_child children[10];
    struct mr_buffer scratch;
    struct mr_id id;

    (void)state;
    mr_buffer_init(&scratch, 100);
    assert_int_equal(mr_id_node(MR_EXACTNESS_EXACT, a, children, 10, &scratch, &id),
                     MR_ELIMIT);
    mr_buffer_fini(&scratch);
}

static void texts_of_any_length_have_ids_of_their_own(void **state)
{
    static char text[5001];

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    for (size_t size = 0; size < 5000; size += 97) {
        struct mr_id shorter;

        text[size] = '\0';
        shorter = mr_id_span("app", text);
        text[size] = 'x';
        assert_false(mr_id_equal(shorter, mr_id_span("app", text)));
    }
    assert_false(mr_id_equal(mr_id_span("ab", "c"), mr_id_span("a", "bc")));
}

static void child_lists_come_back(void **state)
{
    const struct mr_node_child children[] = {{a, 0}, {b, 300}};
    struct mr_node_child read;
    struct mr_buffer buffer;
    struct mr_span span;

    (void)state;
    mr_buffer_init(&buffer, 100);
    assert_int_equal(mr_node_child_put(&buffer, &children[0]), MR_OK);
    assert_int_equal(mr_node_child_put(&buffer, &children[1]), MR_OK);
    span = mr_buffer_span(&buffer);
    assert_hex(
        span,
        "0102030405060708090a0b0c0d0e0f10 00 f1f2f3f4f5f6f7f8f9fafbfcfdfeff00 ac02");
    assert_int_equal(mr_node_child_next(&span, &read), MR_OK);
    assert_true(mr_id_equal(read.id, a));
    assert_int_equal(mr_node_child_next(&span, &read), MR_OK);
    assert_int_equal(read.repeat, 300);
    assert_int_equal(mr_node_child_next(&span, &read), MR_END);
    span = mr_span_of(buffer.data, 16);
    assert_int_equal(mr_node_child_next(&span, &read), MR_EFORMAT);
    mr_buffer_fini(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sites_are_hashes_of_what_they_are),
        cmocka_unit_test(scopes_and_paths_are_hashes_of_what_they_are),
        cmocka_unit_test(counters_are_hashes_of_their_names),
        cmocka_unit_test(parts_and_edges_are_hashes_of_what_they_are),
        cmocka_unit_test(joined_shapes_are_hashes_of_what_hangs_on_them),
        cmocka_unit_test(nodes_are_hashes_of_their_children),
        cmocka_unit_test(a_node_with_more_children_than_scratch_holds_is_refused),
        cmocka_unit_test(texts_of_any_length_have_ids_of_their_own),
        cmocka_unit_test(child_lists_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
