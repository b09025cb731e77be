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
        cmocka_unit_test(only_the_first_cause_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
