/* SPDX-License-Identifier: Apache-2.0 */
/* bench/pipeline_replay.c: a stream that is sent again is a source that lived later. */
#include "bench/pipeline.h"

#include "base/compiler.h"
#include "net/chunk.h"
#include "tests/unit/unit_test.h"

#include <stdlib.h>

#define EVENTS 20000
#define SYNC_NS UINT64_C(1800000000000000000)

static struct mr_bench_stream make_stream(void)
{
    const struct mr_made_config config = {
        .kind = MR_MADE_RECURSION, .number = 10, .events = EVENTS};
    struct mr_bench_stream stream;

    mr_bench_make(&config, &stream);
    return stream;
}

/* The times of day that a source tells: the first event's and the last one's. */
static uint64_t begin_ns(const struct mr_bench_replay *replay)
{
    const struct mr_hello hello = mr_bench_replay_hello(replay);

    return mr_clock_info_ns(&hello.source.clock, replay->stream->first_ticks);
}

static uint64_t end_ns(const struct mr_bench_replay *replay)
{
    const struct mr_hello hello = mr_bench_replay_hello(replay);

    return mr_clock_info_ns(&hello.source.clock, replay->stream->last_ticks);
}

static void each_time_is_another_source_behind_the_one_before(void **state)
{
    struct mr_bench_stream stream = make_stream();
    struct mr_bench_replay replay = {.plays = 0};
    uint64_t ended_ns = 0, sender = 0;

    MR_UNUSED(state);
    for (int i = 0; i < 5; i++) {
        mr_bench_begin_anew(&replay, &stream);
        assert_true(end_ns(&replay) > begin_ns(&replay));
        if (i == 0) /* the first is as it was recorded */
            assert_int_equal(
                begin_ns(&replay),
                mr_clock_info_ns(&stream.hello.source.clock, stream.first_ticks));
        else
            assert_true(begin_ns(&replay) > ended_ns);
        assert_true(mr_bench_replay_hello(&replay).sender.lo != sender);
        sender = mr_bench_replay_hello(&replay).sender.lo;
        ended_ns = end_ns(&replay);
    }
    mr_bench_stream_free(&stream);
}

static struct mr_chunk first_chunk(const struct mr_bench_stream *stream)
{
    struct mr_span payload = stream->frames[1].payload; /* behind the dictionary */
    struct mr_chunk chunk;

    assert_int_equal(stream->frames[1].type, MR_FRAME_CHUNKS);
    assert_int_equal(mr_chunk_next(&payload, &chunk), MR_OK);
    return chunk;
}

static void a_made_stream_that_goes_on_is_behind_as_well(void **state)
{
    struct mr_bench_stream stream = make_stream();
    struct mr_bench_replay replay = {.plays = 0};
    struct mr_chunk chunk;
    uint64_t ended_ns;

    MR_UNUSED(state);
    mr_bench_begin_anew(&replay, &stream);
    ended_ns = end_ns(&replay);
    mr_bench_advance(&stream);
    mr_bench_begin_anew(&replay, &stream);
    assert_true(begin_ns(&replay) > ended_ns);
    chunk = first_chunk(&stream);
    assert_true(chunk.flags & MR_CHUNK_FIRST && chunk.first_event == 0);
    mr_bench_advance(&stream); /* for who plays all loops as one source */
    chunk = first_chunk(&stream);
    assert_false(chunk.flags & MR_CHUNK_FIRST);
    assert_int_equal(chunk.first_event, 2 * stream.events);
    mr_bench_stream_free(&stream);
}

/* A worker takes no time that is more than a day off. */
static void no_time_leaves_the_day(void **state)
{
    struct mr_bench_stream stream = make_stream();
    struct mr_bench_replay replay = {.plays = 0};

    MR_UNUSED(state);
    for (int i = 0; i < 100000; i++) {
        mr_bench_begin_anew(&replay, &stream);
        assert_true(replay.later_ns <= 12 * MR_HOUR_NS);
    }
    assert_int_equal(replay.plays, 100000);
    mr_bench_stream_free(&stream);
}

static size_t write_dict(uint8_t *out, size_t capacity)
{
    const struct mr_dict_item items[] = {
        {.kind = MR_DICT_STRING, .string = {.index = 7, .text = "before"}},
        {.kind = MR_DICT_SYNC, .sync = {.ticks = 5, .realtime_ns = SYNC_NS}},
        {.kind = MR_DICT_STRING, .string = {.index = 8, .text = "behind"}}};
    struct mr_dict_writer writer;

    mr_dict_writer_init(&writer, out, capacity);
    for (size_t i = 0; i < MR_ARRAY_COUNT(items); i++)
        assert_int_equal(mr_dict_put(&writer, &items[i]), MR_OK);
    return mr_dict_writer_finish(&writer);
}

static void expect_dict(struct mr_span payload, uint64_t realtime_ns)
{
    struct mr_dict_reader reader;
    struct mr_dict_item item;

    assert_int_equal(mr_dict_open(&reader, payload, NULL), MR_OK);
    assert_int_equal(mr_dict_next(&reader, &item, NULL), MR_OK);
    assert_string_equal(item.string.text, "before");
    assert_int_equal(mr_dict_next(&reader, &item, NULL), MR_OK);
    assert_int_equal(item.kind, MR_DICT_SYNC);
    assert_int_equal(item.sync.ticks, 5);
    assert_int_equal(item.sync.realtime_ns, realtime_ns);
    assert_int_equal(mr_dict_next(&reader, &item, NULL), MR_OK);
    assert_int_equal(item.string.index, 8);
    assert_int_equal(mr_dict_next(&reader, &item, NULL), MR_END);
    mr_dict_close(&reader);
}

/* Else a worker would see a wall clock that was set back, and label by that. */
static void the_wall_clock_of_sync_items_goes_along(void **state)
{
    struct mr_bench_stream stream = make_stream();
    struct mr_bench_replay replay = {.plays = 0};
    uint8_t dict[512], out[512 + MR_BENCH_REPLAY_SPARE];
    const struct mr_bench_frame frame = {
        MR_FRAME_DICT, mr_span_of(dict, write_dict(dict, sizeof(dict)))};
    size_t size;

    MR_UNUSED(state);
    assert_true(mr_bench_replay_room(&frame) <= sizeof(out));
    for (int i = 0; i < 3; i++) {
        mr_bench_begin_anew(&replay, &stream);
        assert_int_equal(mr_bench_replay_frame(&replay, &frame, out, &size), MR_OK);
        expect_dict(mr_span_of(out, size), SYNC_NS + replay.later_ns);
        assert_int_equal(replay.later_ns > 0, i > 0);
    }
    dict[0] = 0xc1; /* no msgpack */
    assert_int_equal(mr_bench_replay_frame(&replay, &frame, out, &size), MR_EFORMAT);
    mr_bench_stream_free(&stream);
}

static void events_are_sent_as_they_are(void **state)
{
    struct mr_bench_stream stream = make_stream();
    struct mr_bench_replay replay = {.plays = 0};
    uint8_t *out = NULL;
    size_t size;

    MR_UNUSED(state);
    mr_bench_begin_anew(&replay, &stream);
    mr_bench_begin_anew(&replay, &stream);
    for (uint32_t i = 0; i < stream.frame_count; i++) {
        const struct mr_bench_frame *frame = &stream.frames[i];

        if (frame->type != MR_FRAME_CHUNKS)
            continue;
        out = malloc(mr_bench_replay_room(frame));
        assert_non_null(out);
        assert_int_equal(mr_bench_replay_frame(&replay, frame, out, &size), MR_OK);
        assert_int_equal(size, frame->payload.size);
        assert_memory_equal(out, frame->payload.data, size);
        free(out);
    }
    assert_non_null(out);
    mr_bench_stream_free(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_time_is_another_source_behind_the_one_before),
        cmocka_unit_test(a_made_stream_that_goes_on_is_behind_as_well),
        cmocka_unit_test(no_time_leaves_the_day),
        cmocka_unit_test(the_wall_clock_of_sync_items_goes_along),
        cmocka_unit_test(events_are_sent_as_they_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
