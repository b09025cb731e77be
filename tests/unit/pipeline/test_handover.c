/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream whose sender moves from one worker to another (pipeline/handover.h): what both lanes tell is what one would.
 */
#include "pipeline/handover.h"

#include "../unit_test.h"
#include "support_events.h"
#include "support_model.h"

#include <string.h>

#define PLENTY (256u << 10)

/* What `second` told is behind what `first` did. */
static void append(struct test_lane *first, struct test_lane *second)
{
    *first->out->end = second->out->first;
    if (second->out->first)
        first->out->end = second->out->end;
    second->out->first = NULL;
    second->out->end = &second->out->first;
}

/* All but what may differ: what is kept of single traces, who was told of when, names. */
static void drop_what_differs(struct test_text *text)
{
    static const char *const kinds[] = {"counter ", "exemplar ", "open ",
                                        "outer ",   "source ",   "shape path "};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        test_text_drop(text, kinds[i]);
    test_text_sort(text);
}

static void begin(struct test_lane *lane, enum mr_exactness exactness)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    const struct test_options options = {.reduce = &reduce};

    reduce.exactness = exactness;
    test_lane_init(lane, &options);
}

static void one_lane(struct test_text *text, const char *events,
                     enum mr_exactness exactness)
{
    struct test_lane lane;

    begin(&lane, exactness);
    test_lane_announce(&lane, 1, 9);
    test_events_write(&lane, events);
    test_lane_send(&lane, 1, MR_CHUNK_FIRST | MR_CHUNK_LAST);
    test_lane_end(&lane);
    test_model(&lane, text);
    drop_what_differs(text);
    test_lane_fini(&lane);
}

/* One behind the other, which took along so many bytes each time. */
static void some_lanes_of(struct test_text *text, const char *const *events,
                          uint32_t count, uint32_t payload_bytes,
                          enum mr_exactness exactness)
{
    struct test_lane lanes[4];

    assert_true(count > 0 && count <= 4);
    for (uint32_t i = 0; i < count; i++) {
        begin(&lanes[i], exactness);
        if (i)
            test_lane_go_on(&lanes[i], &lanes[i - 1]);
        lanes[i].is_repeating = i > 0;
        test_lane_announce(&lanes[i], 1, 9);
        lanes[i].is_repeating = false;
        test_events_write(&lanes[i], events[i]);
        test_lane_send(&lanes[i], 1,
                       (i ? 0 : MR_CHUNK_FIRST) | (i + 1 == count ? MR_CHUNK_LAST : 0));
        if (i + 1 < count)
            test_lane_hand_over(&lanes[i], payload_bytes);
        else
            test_lane_end(&lanes[i]);
    }
    for (uint32_t i = 1; i < count; i++)
        append(&lanes[0], &lanes[i]);
    test_model(&lanes[0], text);
    drop_what_differs(text);
    for (uint32_t i = 0; i < count; i++)
        test_lane_fini(&lanes[i]);
}

static void some_lanes(struct test_text *text, const char *const *events, uint32_t count,
                       uint32_t payload_bytes)
{
    some_lanes_of(text, events, count, payload_bytes, MR_EXACTNESS_FOLDED);
}

/* "+1 | -1": a lane for each part. "t0" is the ns that the next lane waits. */
static void expect_as_one_of(const char *text, enum mr_exactness exactness)
{
    struct test_text one = {0}, some = {0};
    char all[4096] = "", parts[4][4096];
    const char *events[4];
    uint32_t count = 0;

    for (const char *rest = text; *rest;) {
        size_t size = strcspn(rest, "|");

        assert_true(count < 4 && strlen(text) < sizeof(all) / 2);
        (void)snprintf(parts[count], sizeof(parts[count]), "%s%.*s", count ? "t0 " : "",
                       (int)size, rest);
        (void)snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%.*s",
                       count ? "t0 " : "", (int)size, rest);
        events[count] = parts[count];
        count++;
        rest += size;
        rest += strspn(rest, "| ");
    }
    one_lane(&one, all, exactness);
    some_lanes_of(&some, events, count, PLENTY, exactness);
    test_text_compare(&one, &some);
    test_text_fini(&one);
    test_text_fini(&some);
}

static void expect_as_one(const char *text)
{
    expect_as_one_of(text, MR_EXACTNESS_FOLDED);
}

static void a_call_that_is_open_is_counted_by_the_next_one(void **state)
{
    (void)state;
    expect_as_one("+9 +1 +2 -2 +3 | -3 -1 -9");
    expect_as_one("+9 +1 +2 -2 -1 | +1 +2 -2 -1 -9");
    expect_as_one("+9 +1 +2 | | -2 | -1 -9");
    expect_as_one("+9 | +1 +2 -2 -1 -9");
    expect_as_one("+9 +1 s1 | -1 -9");
    expect_as_one("+9 +1 +2 +3 | u2 -1 -9");
    expect_as_one("+9 +1 l3,0,1 | +2 -2 -5 -1 -9");
    expect_as_one("+9 +1 c1 | +3 -3 -1 -9 +4 -4");
    expect_as_one("+9 +1 +2 +2 L/2:5 +3 | -3 -2 L2:5/2:6 +3 -3 -2 L2:6/1:7 +4 -4 -1 -9");
    expect_as_one("-4 -3 +9 | -9");
    expect_as_one("+9 +1 +2 -2 +3 | t0"); /* the next one ends with all of it open */
}

static void add(char *text, size_t capacity, const char *event, uint32_t function)
{
    size_t size = strlen(text);

    assert_true(size + 16 < capacity);
    (void)snprintf(text + size, capacity - size, "%s%u ", event, function);
}

/* Calls in order mostly; statuses, losses, cuts, unwound calls, exits of nothing; up to three moves. */
static void make_events(struct mr_test_random *random, char *text, size_t capacity)
{
    uint32_t stack[64], depth = 0, moves = 0, count;

    count = 4 + (uint32_t)mr_test_random_below(random, 60);
    *text = '\0';
    for (uint32_t i = 0; i < count; i++) {
        uint64_t kind = mr_test_random_below(random, 100);

        if (kind < 8 && moves < 3) {
            (void)strcat(text, "| ");
            moves++;
        } else if (kind < 50 && depth < 60) {
            stack[depth] = depth ? 1 + (uint32_t)mr_test_random_below(random, 5) : 9;
            add(text, capacity, "+", stack[depth++]);
        } else if (kind < 90 && depth) {
            add(text, capacity, "-", stack[--depth]);
        } else if (kind < 94 && depth) {
            add(text, capacity, "s", kind & 1);
        } else if (kind < 96) {
            (void)strcat(text, "l2,0,0 ");
        } else if (kind < 97) {
            add(text, capacity, "c", 1);
        } else if (kind < 98 && depth > 1) {
            depth = 1 + (uint32_t)mr_test_random_below(random, depth - 1);
            add(text, capacity, "u", depth);
        } else if (kind < 99) {
            add(text, capacity, "-", 8); /* of no call */
        }
    }
    (void)strcat(text, "+7 -7");
}

static void random_streams_are_as_one(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    char text[2048];

    (void)state;
    for (uint32_t i = 0; i < 400 / MR_TEST_FEWER; i++) {
        make_events(&random, text, sizeof(text));
        expect_as_one_of(text, (enum mr_exactness)(i % 3));
    }
}

static void what_has_ended_of_an_open_call_is_of_its_shape(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        enum mr_exactness exactness = (enum mr_exactness)i;

        expect_as_one_of("+9 +1 +2 +3 -3 +3 -3 -2 +2 +3 | -3 +3 -3 -2 -1 -9", exactness);
        expect_as_one_of("+9 +1 +4 -4 +2 +3 -3 -2 +2 +3 -3 -2 | +2 | +3 -3 -2 -1 -9",
                         exactness);
        expect_as_one_of("+9 +1 +2 -2 +5 -5 +2 | -2 +5 | -5 +2 -2 | -1 +1 -1 -9",
                         exactness);
    }
}

static const char *ledger(const struct test_text *text)
{
    return test_text_find(text, "ledger 1 = ");
}

/* As if it did not move: what is open ends incomplete, and who goes on with it does not know of it. Nothing is lost, nothing held. */
static void without_room_what_is_open_ends(void **state)
{
    const char *const events[] = {"+9 +1 +2 +3 -3", "-2 -1 +4 -4 -9"};
    struct test_text whole = {0}, none = {0};

    (void)state;
    some_lanes(&whole, events, 2, PLENTY);
    assert_string_equal(ledger(&whole), "10 10 0");
    some_lanes(&none, events, 2, 0);
    assert_string_equal(ledger(&none), "10 10 0");
    assert_non_null(
        strstr(test_text_find(&none, "path f1/f2 @0 = "), "0 0 1 ")); /* incomplete */
    assert_non_null(strstr(test_text_find(&whole, "path f1/f2 @0 = "), "1 0 0 "));
    test_text_fini(&whole);
    test_text_fini(&none);
}

static void a_stack_that_is_too_deep_ends(void **state)
{
    char *deep = test_events_repeat("+9", " +1", MR_HANDOVER_CALLS_MAX - 1, ""),
         *deeper = test_events_repeat("+9", " +1", MR_HANDOVER_CALLS_MAX, "");
    const char *const fits[] = {deep, "-1"}, *const is_too_deep[] = {deeper, "-1"};
    struct test_text text = {0};

    (void)state;
    some_lanes(&text, fits, 2, PLENTY);
    assert_int_equal(test_text_count(&text, "path (f9) @0 = 0 0 1 "), 1);
    assert_string_equal(ledger(&text), "1701 1701 0");
    test_text_fini(&text);
    some_lanes(&text, is_too_deep, 2, PLENTY);
    assert_string_equal(ledger(&text), "1702 1702 0");
    test_text_fini(&text);
    free(deep);
    free(deeper);
}

/* Of so many functions that the innermost of some calls of f1 calls, once each, then another worker goes on: what is told. */
static void trace_of(struct test_text *text, uint32_t depth, uint32_t functions)
{
    struct test_lane first, second;

    test_lane_init(&first, NULL);
    test_lane_announce(&first, 1, 0);
    for (uint32_t i = 0; i < depth; i++)
        test_lane_enter(&first, 1, 1, 1);
    for (uint32_t i = 0; i < functions; i++) {
        test_lane_enter(&first, 1, 2 + i, 2 + 2 * i);
        test_lane_exit(&first, 1, 2 + i, 3 + 2 * i);
    }
    test_lane_send(&first, 1, MR_CHUNK_FIRST);
    test_lane_hand_over(&first, PLENTY);
    test_lane_init(&second, NULL);
    test_lane_go_on(&second, &first);
    for (uint32_t i = 0; i < depth; i++)
        test_lane_exit(&second, 1, 1, 10000);
    test_lane_send(&second, 1, MR_CHUNK_LAST);
    test_lane_end(&second);
    append(&first, &second);
    test_model(&first, text);
    test_lane_fini(&first);
    test_lane_fini(&second);
}

/* Of 1,500 nodes it is told what has ended, as far as a payload goes: else the trace is incomplete, and its calls and times are right. */
static void a_tree_of_too_many_nodes_is_incomplete(void **state)
{
    struct test_text text = {0};

    (void)state;
    trace_of(&text, 1, 1400);
    assert_int_equal(
        test_text_count(&text, "entry f1 @0 = 1,1401,9999 0,0,0 0,0,0 0,0,0"), 1);
    assert_int_equal(test_text_count(&text, "path f1 @0 = 1 0 0 self=8599,"), 1);
    assert_int_equal(test_text_count(&text, "exemplar "),
                     0); /* nobody has all of its calls */
    test_text_fini(&text);
    trace_of(&text, 1, 1600);
    assert_int_equal(
        test_text_count(&text, "entry f1 @0 = 0,0,0 0,0,0 0,0,0 1,1601,9999"), 1);
    assert_int_equal(test_text_count(&text, "path f1 @0 = 1 0 0 self=8399,"), 1);
    test_text_fini(&text);
    trace_of(&text, 1000, 1400);
    assert_int_equal(
        test_text_count(&text, "entry f1 @0 = 0,0,0 0,0,0 0,0,0 1,2400,9999"), 1);
    assert_string_equal(ledger(&text), "4800 4800 0");
    test_text_fini(&text);
}

static void write_calls(struct test_lane *lane, uint32_t stream, const char *text)
{
    for (; *text; text += 2) {
        uint64_t ns = lane->streams[stream].time + 1;

        if (*text == '+')
            test_lane_enter(lane, stream, (uint32_t)(text[1] - '0'), ns);
        else
            test_lane_exit(lane, stream, (uint32_t)(text[1] - '0'), ns);
    }
}

/* The next worker has such calls of others already: there they end in the hot loop, by the hash of their list. */
static void it_is_of_the_shape_of_others_there(void **state)
{
    struct test_lane first, second;
    struct test_text text = {0};

    (void)state;
    test_lane_init(&first, NULL);
    test_lane_announce(&first, 1, 0);
    write_calls(&first, 1, "+1+2+3-3+4");
    test_lane_send(&first, 1, MR_CHUNK_FIRST);
    test_lane_hand_over(&first, PLENTY);
    test_lane_init(&second, NULL);
    test_lane_announce(&second, 2, 0);
    for (uint32_t i = 0; i < 10; i++)
        write_calls(&second, 2, "+1+2+3-3+4-4-2-1");
    test_lane_send(&second, 2, MR_CHUNK_FIRST);
    test_lane_go_on(&second, &first);
    write_calls(&second, 1, "-4-2-1");
    test_lane_send(&second, 1, MR_CHUNK_LAST);
    test_lane_end(&second);
    append(&first, &second);
    test_model(&first, &text);
    assert_int_equal(test_text_count(&text, "shape f1 @0 f1{f2{f3 f4}} = 11 0 44 "), 1);
    test_text_fini(&text);
    test_lane_fini(&first);
    test_lane_fini(&second);
}

/* Two streams of the same functions, and many that wait. */
static void begin_streams(struct test_lane *lane, uint32_t depth)
{
    test_lane_init(lane, NULL);
    for (uint32_t stream = 1; stream < TEST_STREAMS; stream++) {
        test_lane_announce(lane, stream, 9);
        for (uint32_t i = 0; i < depth; i++)
            test_lane_enter(lane, stream, 1 + i % 50, 10 + i);
        test_lane_send(lane, stream, MR_CHUNK_FIRST);
    }
}

static void what_is_told_is_cut_into_payloads(void **state)
{
    struct test_lane lane;
    struct mr_resume *resume = mr_resume_new(NULL);
    struct mr_span rest, payload;
    uint32_t payloads = 0;

    (void)state;
    begin_streams(&lane, 1000); /* of 38 bytes a call */
    test_lane_hand_over(&lane, 1u << 20);
    rest = mr_buffer_span(&lane.source->handover.bytes);
    assert_true(rest.size > 7 * 38000 && rest.size < 7 * 38000 + 50 * 100 + 1000);
    while (mr_handover_next(&rest, &payload)) {
        payloads++;
        assert_true(payload.size <= MR_HANDOVER_PAYLOAD_MAX);
        assert_int_equal(mr_handover_take(resume, payload), MR_OK);
    }
    assert_true(payloads >= 4);
    assert_int_equal(resume->stream_count, 7);
    assert_int_equal(resume->streams[6].depth, 1000);
    assert_int_equal(resume->own_sites.count, 50);
    mr_resume_free(resume);
    test_lane_fini(&lane);
}

/* All of what there is no room for is told short, and what comes behind it, which fits, is told whole. */
static void a_stream_that_fits_is_told_whole_behind_one_that_does_not(void **state)
{
    struct mr_sites *sites;
    struct mr_resume_call calls[4] = {0};
    struct mr_resume_stream stream = {
        .id = 1, .calls = calls, .depth = 4, .last = 4, .last_ns = 2 * MR_SECOND_NS};
    struct mr_handover handover;
    enum mr_handover_told told;

    (void)state;
    assert_int_equal(mr_sites_new(100, &sites), MR_OK);
    mr_handover_init(&handover, 64 + 200);
    assert_int_equal(mr_handover_put(&handover, sites, &stream, &told), MR_OK);
    assert_int_equal(told, MR_HANDOVER_SHORT);
    stream.depth = 1;
    assert_int_equal(mr_handover_put(&handover, sites, &stream, &told), MR_OK);
    assert_int_equal(told, MR_HANDOVER_WHOLE);
    assert_int_equal(mr_handover_put(&handover, sites, &stream, &told), MR_OK);
    assert_int_equal(told, MR_HANDOVER_NONE);
    assert_int_equal(handover.bytes.size, 2 * (5 + 4 + 56) + 34);
    mr_handover_fini(&handover);
    mr_sites_free(sites);
}

/* What did not fit is not told, nor are its sites: who has room behind it tells them. */
static void sites_are_told_with_the_stream_that_fits(void **state)
{
    static struct mr_resume_call calls[3000];
    struct mr_resume_stream stream = {
        .id = 1, .calls = calls, .last = 4000, .last_ns = 2 * MR_SECOND_NS};
    struct test_lane lane;
    struct mr_resume *resume = mr_resume_new(NULL);
    enum mr_handover_told told;

    (void)state;
    begin_streams(&lane, 2);
    for (uint32_t i = 0; i < 3000; i++) {
        calls[i].site = 1 + i % 2;
        calls[i].site_id = mr_sites_at(lane.sites, calls[i].site)->id;
    }
    mr_handover_init(&lane.source->handover, PLENTY);
    stream.depth = 3000;
    assert_int_equal(mr_handover_put(&lane.source->handover, lane.sites, &stream, &told),
                     MR_OK);
    assert_int_equal(told, MR_HANDOVER_SHORT);
    test_lane_hand_over(&lane, PLENTY);
    assert_int_equal(
        mr_handover_take(resume, mr_buffer_span(&lane.source->handover.bytes)), MR_OK);
    assert_int_equal(resume->stream_count, 1 + 7);
    assert_int_equal(resume->streams[1].depth, 2);
    assert_int_equal(resume->own_sites.count, 2);
    mr_resume_free(resume);
    test_lane_fini(&lane);
}

/* Whatever a sender brings, it is taken or it is damaged; what is of a later version is passed over. */
static void damaged_bytes_are_refused(void **state)
{
    const uint8_t later[] = {77, 3, 0, 0, 0, 1, 2, 3};
    struct mr_test_random random = mr_test_random_new();
    struct test_lane lane;
    struct mr_resume *resume = mr_resume_new(NULL);
    struct mr_span whole;
    uint8_t *bytes;

    (void)state;
    assert_int_equal(mr_handover_take(resume, mr_span_of(later, sizeof(later))), MR_OK);
    assert_int_equal(mr_handover_take(resume, mr_span_of(later, sizeof(later) - 1)),
                     MR_EFORMAT);
    assert_int_equal(resume->stream_count, 0);
    mr_resume_free(resume);
    begin_streams(&lane, 3);
    test_lane_hand_over(&lane, PLENTY);
    whole = mr_buffer_span(&lane.source->handover.bytes);
    bytes = malloc(whole.size);
    assert_non_null(bytes);
    for (uint32_t i = 0; i < 8000 / MR_TEST_FEWER; i++) {
        enum mr_status status;

        memcpy(bytes, whole.data, whole.size);
        bytes[mr_test_random_below(&random, whole.size)] ^=
            (uint8_t)(1u << mr_test_random_below(&random, 8));
        resume = mr_resume_new(NULL);
        status = mr_handover_take(
            resume, mr_span_of(bytes, mr_test_random_below(&random, whole.size + 1)));
        assert_true(status == MR_OK || status == MR_EFORMAT);
        mr_resume_free(resume);
    }
    free(bytes);
    test_lane_fini(&lane);
}

/* What one lane hands over of these calls, and of messages and hand-offs in them. */
static struct mr_span make_told(struct mr_test_random *random, struct test_lane *lane)
{
    static const char *const calls[] = {
        "+9 +1 +2 -2 +3", "+9 +1 c1 +3 -3 +4 s1",       "+9 +9 l3,0,2 +4",
        "+1 -1",          "+9 +1 +2 +2 L/2:5 +3 L/3:6", "-4 +9 +1 +2"};
    static const enum mr_record_kind links[] = {MR_RECORD_SEND, MR_RECORD_RECEIVE,
                                                MR_RECORD_CAPTURE, MR_RECORD_ATTACH,
                                                MR_RECORD_DETACH};

    test_lane_init(lane, NULL);
    test_lane_announce(lane, 1, 9);
    for (uint64_t i = mr_test_random_below(random, 3); i < 4; i++) {
        enum mr_record_kind kind = links[mr_test_random_below(random, 5)];
        uint64_t words[4] = {1 + mr_test_random_below(random, 9), 2, 3, 1};
        uint32_t count = kind == MR_RECORD_SEND || kind == MR_RECORD_RECEIVE ? 4 : 1;

        test_events_write(lane, calls[mr_test_random_below(random, 6)]);
        test_lane_record(lane, 1, kind, lane->streams[1].time + 1, words, count);
        lane->streams[1].events++;
    }
    test_lane_send(lane, 1, MR_CHUNK_FIRST);
    test_lane_hand_over(lane, PLENTY);
    return mr_buffer_span(&lane->source->handover.bytes);
}

/* A lane that is told this goes on, whatever it is; MR_EFORMAT: its sender is cut off instead. */
static enum mr_status go_on_from(struct mr_span told, const struct test_lane *before)
{
    struct test_lane lane;
    struct mr_resume *resume = mr_resume_new(NULL);
    enum mr_status status = mr_handover_take(resume, told);

    test_lane_init(&lane, NULL);
    lane.source->is_continuation = true;
    lane.source->resume = resume;
    lane.streams[1].next_event = before->streams[1].next_event;
    lane.streams[1].time = lane.streams[1].chunk_time = before->streams[1].time;
    if (status != MR_OK)
        lane.source->resume = NULL;
    test_events_write(&lane, "-3 -2 +4 -4 L2:5/1:7 -1 -9 +1 u0 +9 +1 -1");
    test_lane_send(&lane, 1, 0);
    test_lane_tick(&lane, MR_SECOND_NS);
    if (mr_test_random_below(&(struct mr_test_random){told.size}, 2))
        test_lane_hand_over(&lane, PLENTY);
    else
        test_lane_end(&lane);
    if (status != MR_OK)
        mr_resume_free(resume);
    test_lane_fini(&lane);
    return status;
}

/* Senders may be anyone. */
static void a_lane_goes_on_from_whatever_it_is_told(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    uint32_t taken = 0, rounds = 1000 / MR_TEST_FEWER;

    (void)state;
    for (uint32_t i = 0; i < rounds; i++) {
        struct test_lane before;
        struct mr_span told = make_told(&random, &before);
        uint8_t *bytes = malloc(told.size);

        assert_non_null(bytes);
        memcpy(bytes, told.data, told.size);
        for (uint64_t changes = mr_test_random_below(&random, 3); changes > 0; changes--)
            bytes[mr_test_random_below(&random, told.size)] =
                (uint8_t)mr_test_random_next(&random);
        taken += go_on_from(mr_span_of(bytes, told.size), &before) == MR_OK;
        free(bytes);
        test_lane_fini(&before);
    }
    assert_true(taken > rounds / 3 && taken < rounds);
}

/* Another lane is told of stream 1, whose calls are open, as often as that, at `last_ns` if it is not 0: how many it has no use for. */
static uint64_t not_resumed(uint32_t times, uint64_t last_ns, struct test_text *text)
{
    struct test_lane before, lane;
    struct mr_resume *resume = mr_resume_new(NULL);
    struct mr_span rest, told;
    uint64_t count;

    begin(&before, MR_EXACTNESS_FOLDED);
    test_lane_announce(&before, 1, 9);
    test_events_write(&before, "+9 +1 +2");
    test_lane_send(&before, 1, MR_CHUNK_FIRST);
    test_lane_hand_over(&before, PLENTY);
    for (uint32_t i = 0; i < times; i++) {
        rest = mr_buffer_span(&before.source->handover.bytes);
        while (mr_handover_next(&rest, &told))
            assert_int_equal(mr_handover_take(resume, told), MR_OK);
    }
    assert_int_equal(resume->stream_count, times);
    for (uint32_t i = 0; last_ns && i < times; i++)
        resume->streams[i].last_ns = last_ns;
    begin(&lane, MR_EXACTNESS_FOLDED);
    lane.source->is_continuation = true;
    lane.source->resume = resume;
    lane.streams[1].next_event = before.streams[1].next_event;
    lane.streams[1].time = lane.streams[1].chunk_time = before.streams[1].time;
    lane.is_repeating = true;
    test_lane_announce(&lane, 1, 9);
    lane.is_repeating = false;
    test_events_write(&lane, "-2 -1 -9");
    test_lane_send(&lane, 1, MR_CHUNK_LAST);
    test_lane_end(&lane);
    assert_false(mr_source_is_broken(lane.source));
    count = test_lane_decode_counter(&lane, "decode_streams_not_resumed");
    append(&before, &lane);
    test_model(&before, text);
    drop_what_differs(text);
    test_lane_fini(&before);
    test_lane_fini(&lane);
    return count;
}

static void what_is_of_no_use_is_counted(void **state)
{
    struct test_text once = {0}, twice = {0}, never = {0};

    (void)state;
    assert_int_equal(not_resumed(1, 0, &once), 0);
    assert_int_equal(not_resumed(2, 0, &twice), 1);
    test_text_compare(&once, &twice); /* the first one was taken */
    assert_string_equal(ledger(&once), "6 6 0");
    assert_int_equal(not_resumed(1, UINT64_MAX, &never), 1);
    assert_string_equal(ledger(&never),
                        "6 3 3"); /* the enters of what was open are held */
    test_text_fini(&once);
    test_text_fini(&twice);
    test_text_fini(&never);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_is_open_is_counted_by_the_next_one),
        cmocka_unit_test(what_has_ended_of_an_open_call_is_of_its_shape),
        cmocka_unit_test(random_streams_are_as_one),
        cmocka_unit_test(without_room_what_is_open_ends),
        cmocka_unit_test(a_stack_that_is_too_deep_ends),
        cmocka_unit_test(a_tree_of_too_many_nodes_is_incomplete),
        cmocka_unit_test(it_is_of_the_shape_of_others_there),
        cmocka_unit_test(what_is_told_is_cut_into_payloads),
        cmocka_unit_test(a_stream_that_fits_is_told_whole_behind_one_that_does_not),
        cmocka_unit_test(sites_are_told_with_the_stream_that_fits),
        cmocka_unit_test(damaged_bytes_are_refused),
        cmocka_unit_test(a_lane_goes_on_from_whatever_it_is_told),
        cmocka_unit_test(what_is_of_no_use_is_counted)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
