/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit_test.h"

#include <string.h>

#include "net/ids.h"
#include "pipeline/source.h"

static struct mr_source *make(bool group_by_host)
{
    char host[] = "host", app[] = "app";
    struct mr_hello hello = {.sender = {1, 2},
                             .oldest = 1,
                             .source = {.host = host,
                                        .app = app,
                                        .version = "2",
                                        .exe = "/bin/app",
                                        .clock = {.mult = 1, .realtime_ns = 5}}};
    struct mr_source *source;

    assert_int_equal(mr_source_new(&hello, group_by_host, &source), MR_OK);
    memset(host, 'x', 4); /* what it keeps is its own */
    memset(app, 'x', 3);
    return source;
}

static void a_source_keeps_copies_and_knows_its_scope(void **state)
{
    struct mr_source *source = make(false);

    (void)state;
    assert_string_equal(source->info.host, "host");
    assert_string_equal(source->info.app, "app");
    assert_true(mr_id_equal(source->scope, mr_id_scope("app", "2", "")));
    mr_source_free(source);
    source = make(true);
    assert_true(mr_id_equal(source->scope, mr_id_scope("app", "2", "host")));
    mr_source_free(source);
    mr_source_free(NULL);
}

static void a_stream_is_found_again_until_it_is_closed(void **state)
{
    struct mr_source *source = make(false);
    struct mr_stream *streams[100], *again;

    (void)state;
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(mr_source_stream(source, 1000 * (i + 1), 100, &streams[i]),
                         MR_OK);
        assert_int_equal(streams[i]->id, 1000 * (i + 1));
    }
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(mr_source_stream(source, 1000 * (i + 1), 100, &again), MR_OK);
        assert_ptr_equal(again, streams[i]);
    }
    /* That of no stream takes no place. */
    assert_int_equal(mr_source_stream(source, MR_STREAM_NONE, 101, &again), MR_OK);
    assert_int_equal(mr_source_stream(source, 7, 100, &again), MR_ELIMIT);
    mr_store_release(&streams[50]->is_closed, true);
    assert_int_equal(mr_source_stream(source, 7, 100, &again), MR_OK);
    assert_int_equal(mr_source_stream(source, 100000, 100, &again), MR_OK);
    assert_ptr_equal(again, streams[99]);
    mr_source_free(source);
}

/* Slots in use one behind the other: as many as a search may have to look at. */
static uint32_t longest_run(const struct mr_source *source)
{
    uint32_t longest = 0, run = 0;

    for (uint32_t i = 0; i < 2 * source->slot_count; i++) {
        run = source->slots[i % source->slot_count] ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

/* Their numbers come off the wire: whoever knows how they are hashed could choose those that meet in one slot. */
static void numbers_of_streams_that_a_stranger_chose_to_meet_do_not(void **state)
{
    const uint32_t inverse = UINT32_C(0x0e8b2f51);
    struct mr_source *source = make(false);
    struct mr_stream *stream;

    (void)state;
    assert_int_equal(UINT32_C(0x9e3779b1) * inverse, 1);
    for (uint32_t i = 1; i <= 4096; i++) {
        assert_int_equal(mr_source_stream(source, inverse * (i << 18), 1u << 20, &stream),
                         MR_OK);
        assert_int_equal(stream->id, inverse * (i << 18));
    }
    assert_in_range(longest_run(source), 1, 512);
    mr_source_free(source);
}

static void only_the_first_cause_is_kept(void **state)
{
    struct mr_source *source = make(false);

    (void)state;
    assert_false(mr_source_is_broken(source));
    mr_source_break(source, "first %d", 1);
    mr_source_break(source, "second");
    assert_true(mr_source_is_broken(source));
    assert_string_equal(mr_source_error(source), "first 1");
    mr_source_free(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_source_keeps_copies_and_knows_its_scope),
        cmocka_unit_test(a_stream_is_found_again_until_it_is_closed),
        cmocka_unit_test(numbers_of_streams_that_a_stranger_chose_to_meet_do_not),
        cmocka_unit_test(only_the_first_cause_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
