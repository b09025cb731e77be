/* SPDX-License-Identifier: Apache-2.0 */
/* Exemplars that somebody asked for: what a lane keeps of them, and how answers merge. */
#include "../unit_test.h"

#include "base/clock.h"
#include "net/delta.h"
#include "net/ids.h"
#include "pipeline/accumulate.h"
#include "pipeline/resume.h"
#include "support_lane.h"
#include "support_model.h"

#include <stdlib.h>

#define LEFT_MS MR_WANTED_LEFT_MS_MAX /* no test waits for its end */

struct asked {
    struct mr_wanted_board board;
    struct mr_wanted_list list;
    struct mr_reduce_config reduce;
    struct test_lane lane;
    struct test_text text;
};

static struct mr_id entry_id(uint32_t function)
{
    return mr_id_path(test_scope_id(), test_site_id(function));
}

static struct asked *begin(size_t memory)
{
    struct asked *asked = calloc(1, sizeof(*asked));
    const struct test_options options = {.reduce = &asked->reduce};

    assert_non_null(asked);
    mr_wanted_board_init(&asked->board);
    asked->reduce = MR_REDUCE_CONFIG_DEFAULT;
    asked->reduce.wanted = &asked->board;
    asked->reduce.asked_calls = 1000;
    asked->reduce.asked_bytes = memory;
    test_lane_init(&asked->lane, &options);
    test_lane_announce(&asked->lane, 1, 0);
    return asked;
}

/* Request `number`, of traces of entry point f<function>; more may be set before tell(). */
static struct mr_wanted *want(struct asked *asked, uint64_t number, uint32_t function,
                              uint16_t count)
{
    struct mr_wanted *wanted = &asked->list.items[asked->list.count++];

    *wanted = (struct mr_wanted){.id = {7, number},
                                 .entry = entry_id(function),
                                 .left_ms = LEFT_MS,
                                 .count = count};
    return wanted;
}

/* As forward does what comes from above. */
static void tell(struct asked *asked)
{
    mr_wanted_board_ask_again(&asked->board, &asked->list, mr_clock_monotonic_ns());
    test_lane_tick(&asked->lane, MR_MILLISECOND_NS);
}

/* f<outer> calls each of `inner` ("23": f2, then f3), 10 ns all in all but what `extra` adds. */
static void run(struct asked *asked, uint32_t outer, const char *inner, uint64_t extra)
{
    struct test_lane *lane = &asked->lane;
    uint64_t at = lane->streams[1].time;

    test_lane_enter(lane, 1, outer, at + 1);
    for (uint64_t i = 0; inner[i]; i++) {
        test_lane_enter(lane, 1, (uint32_t)(inner[i] - '0'), at + 2 + 2 * i);
        test_lane_exit(lane, 1, (uint32_t)(inner[i] - '0'), at + 3 + 2 * i);
    }
    test_lane_exit(lane, 1, outer, at + 11 + extra);
}

static void end(struct asked *asked)
{
    test_lane_send(&asked->lane, 1, 0);
    test_lane_end(&asked->lane);
    test_model(&asked->lane, &asked->text);
    test_lane_fini(&asked->lane);
}

static uint32_t answers(const struct asked *asked, const char *of)
{
    char key[96];

    (void)snprintf(key, sizeof(key), "exemplar asked %s", of);
    return test_text_count(&asked->text, key);
}

static void done(struct asked *asked)
{
    test_text_fini(&asked->text);
    mr_wanted_board_fini(&asked->board);
    free(asked);
}

static void the_next_traces_of_an_entry_point_are_kept_up_to_the_count(void **state)
{
    struct asked *asked = begin(1 << 20);

    (void)state;
    for (int i = 0; i < 20; i++)
        run(asked, 1, "23", 0); /* before it was asked for */
    test_lane_send(&asked->lane, 1, 0);
    (void)want(asked, 5, 1, 2);
    tell(asked);
    for (int i = 0; i < 20; i++) {
        run(asked, 4, "23", 0); /* another one */
        run(asked, 1, "23", 0);
    }
    end(asked);
    assert_int_equal(answers(asked, "5/2 "), 2);
    assert_string_equal(
        test_text_find(&asked->text, "exemplar asked 5/2 at 63 f1 f1{f2 f3} = "),
        "0 1 63 232 3: 0 f1 0+10 0-0,0; 1 f2 1+1 0-0,0; 1 f3 3+1 0-0,0");
    assert_string_equal(test_text_find(&asked->text, "counter reduce_asked_kept = "),
                        "2");
    done(asked);
}

static void a_path_and_a_duration_choose_among_traces(void **state)
{
    struct asked *asked = begin(1 << 20);
    struct mr_wanted *by_path = want(asked, 1, 1, 30), *by_time = want(asked, 2, 1, 30);

    (void)state;
    by_path->depth = 1;
    by_path->sites[0] = test_site_id(3).lo;
    by_time->min_ns = 15;
    tell(asked);
    for (int i = 0; i < 4; i++) {
        run(asked, 1, "2", 0);
        run(asked, 1, "23", 0);
        run(asked, 1, "32", 5);
        run(asked, 3, "3", 9);
    }
    end(asked);
    assert_int_equal(answers(asked, "1/30 "), 8);
    assert_int_equal(answers(asked, "2/30 "), 4);
    assert_int_equal(test_text_count(&asked->text, "f1 f1{f2} = "), 0);
    done(asked);
}

static void a_shape_is_wanted_wherever_it_begins(void **state)
{
    struct mr_node_child child = {.repeat = 0};
    struct asked *asked = begin(1 << 20);
    struct mr_wanted *wanted = want(asked, 1, 1, 9);
    struct mr_buffer scratch;

    (void)state;
    mr_buffer_init(&scratch, 4096);
    wanted->entry = (struct mr_id){0, 0};
    assert_int_equal(
        mr_id_node(MR_EXACTNESS_FOLDED, test_site_id(2), NULL, 0, &scratch, &child.id),
        MR_OK);
    assert_int_equal(mr_id_node(MR_EXACTNESS_FOLDED, test_site_id(1), &child, 1, &scratch,
                                &wanted->node),
                     MR_OK);
    tell(asked);
    for (int i = 0; i < 3; i++) {
        run(asked, 1, "3", 0);
        run(asked, 1, "2", 0);
    }
    end(asked);
    assert_int_equal(answers(asked, "1/9 "), 3);
    assert_int_equal(test_text_count(&asked->text, "exemplar asked"), 3);
    mr_buffer_fini(&scratch);
    done(asked);
}

/* Past a limit of children, or incomplete: their calls tell whether the path was touched. */
static void traces_without_a_shape_are_kept_by_their_calls(void **state)
{
    struct asked *asked;
    struct mr_wanted *wanted;

    (void)state;
    asked = begin(1 << 20);
    wanted = want(asked, 1, 1, 9);
    wanted->depth = 1;
    wanted->sites[0] = test_site_id(3).lo;
    tell(asked);
    test_lane_enter(&asked->lane, 1, 1, 100); /* neither of them ends */
    test_lane_enter(&asked->lane, 1, 3, 107);
    test_lane_exit(&asked->lane, 1, 3, 109);
    test_lane_send(&asked->lane, 1, 0);
    end(asked);
    assert_string_equal(test_text_find(&asked->text, "exemplar asked 1/9 at 0 f1 - = "),
                        "2 1 0 100 2: 0 f1 0+9 2-0,0; 1 f3 7+2 0-0,0");
    done(asked);
}

static void a_trace_over_many_batches_is_whole(void **state)
{
    struct asked *asked = begin(1 << 20);

    (void)state;
    (void)want(asked, 1, 1, 1);
    tell(asked);
    test_lane_enter(&asked->lane, 1, 1, 1);
    for (uint64_t i = 0; i < 700;
         i++) { /* more calls than an exemplar of its shape has */
        test_lane_enter(&asked->lane, 1, 2, 2 + 2 * i);
        test_lane_exit(&asked->lane, 1, 2, 3 + 2 * i);
        if (i % 100 == 0)
            test_lane_send(&asked->lane, 1, 0);
    }
    test_lane_exit(&asked->lane, 1, 1, 5000);
    end(asked);
    assert_int_equal(
        strncmp(test_text_find(&asked->text, "exemplar asked 1/1 at 0 f1 f1{f2} = "),
                "0 1 0 1 701: 0 f1 0+4999 0-0,0;", 31),
        0);
    assert_int_equal(test_text_count(&asked->text, "counter reduce_asked_elided"), 0);
    done(asked);
}

static void a_trace_that_had_begun_is_passed_over_and_counted(void **state)
{
    struct asked *asked = begin(1 << 20);

    (void)state;
    test_lane_enter(&asked->lane, 1, 1, 1);
    test_lane_send(&asked->lane, 1, 0);
    (void)want(asked, 1, 1, 9);
    tell(asked);
    test_lane_exit(&asked->lane, 1, 1, 9);
    run(asked, 1, "2", 0);
    end(asked);
    assert_int_equal(answers(asked, "1/9 "), 1);
    assert_string_equal(
        test_text_find(&asked->text, "counter reduce_asked_begun_before = "), "1");
    done(asked);
}

static void what_does_not_fit_is_counted(void **state)
{
    struct asked *asked = begin(1);

    (void)state;
    (void)want(asked, 1, 1, 9);
    tell(asked);
    run(asked, 1, "2", 0);
    end(asked);
    assert_int_equal(answers(asked, ""), 0);
    assert_string_equal(
        test_text_find(&asked->text, "counter reduce_asked_without_memory = "), "1");
    done(asked);
}

static void past_the_calls_of_a_frame_the_shortest_are_elided_and_it_is_counted(
    void **state)
{
    struct asked *asked = begin(1 << 20);

    (void)state;
    asked->lane.reduce.asked_calls = 2;
    (void)want(asked, 1, 1, 1);
    tell(asked);
    run(asked, 1, "234", 0);
    end(asked);
    assert_string_equal(
        test_text_find(&asked->text, "exemplar asked 1/1 at 0 f1 f1{f2 f3 f4} = "),
        "0 1 0 1 4: 0 f1 0+10 0-2,2; 1 f2 1+1 0-0,0");
    assert_string_equal(test_text_find(&asked->text, "counter reduce_asked_elided = "),
                        "1");
    done(asked);
}

static void a_request_that_is_taken_back_gets_no_more(void **state)
{
    struct asked *asked = begin(1 << 20);

    (void)state;
    (void)want(asked, 1, 1, 9);
    (void)want(asked, 2, 1, 3);
    tell(asked);
    run(asked, 1, "2", 0);
    test_lane_send(&asked->lane, 1, 0);
    asked->list.items[0] = asked->list.items[1];
    asked->list.count = 1;
    tell(asked);
    for (int i = 0; i < 5; i++)
        run(asked, 1, "2", 0);
    end(asked);
    assert_int_equal(answers(asked, "1/9 "), 1);
    assert_int_equal(answers(asked, "2/3 "), 1 + 3); /* each list asks anew */
    done(asked);
}

/* A worker above that had the answers, and is no more, cannot say so. */
static void what_is_still_wanted_when_the_list_comes_again_is_answered_again(void **state)
{
    struct asked *asked = begin(1 << 20);

    (void)state;
    (void)want(asked, 1, 1, 2);
    for (int lists = 0; lists < 2; lists++) {
        tell(asked);
        for (int i = 0; i < 5; i++)
            run(asked, 1, "2", 0);
        test_lane_send(&asked->lane, 1, 0);
    }
    end(asked);
    assert_int_equal(answers(asked, "1/2 "), 4);
    done(asked);
}

/* The worker was killed while f1 was open, and heard of the request before it went on: which calls of f1 had ended is gone. */
static void a_trace_that_was_open_at_a_kill_is_passed_over_and_counted(void **state)
{
    struct mr_resume_call call = {.enter_ns = TEST_START_S * MR_SECOND_NS,
                                  .flags = MR_EVENT_ROOT};
    struct mr_resume_stream from = {.id = 1,
                                    .last = 3, /* f1, and a call in it */
                                    .reduced = 2,
                                    .last_ns = call.enter_ns,
                                    .trace_calls = {1},
                                    .trace_count = 1,
                                    .depth = 1,
                                    .calls = &call};
    struct asked *asked = begin(1 << 20);
    struct test_lane *lane = &asked->lane;
    struct mr_stream *stream;

    (void)state;
    call.site = mr_sites_add_function(
        lane->sites,
        mr_sites_module(lane->sites, "/lib/test.so", mr_span_of("0123456789", 10)), 16);
    assert_int_equal(mr_source_stream(lane->source, 1, TEST_STREAMS, &stream), MR_OK);
    stream->resume = &from;
    stream->is_started = true;
    stream->next_event = lane->streams[1].next_event = from.last;
    (void)want(asked, 1, 1, 1);
    tell(asked);
    test_lane_enter(lane, 1, 2, 3);
    test_lane_exit(lane, 1, 2, 5);
    test_lane_exit(lane, 1, 1, 9);
    run(asked, 1, "23", 0);
    end(asked);
    assert_int_equal(answers(asked, "1/1 "), 1);
    assert_int_equal(answers(asked, "1/1 at 2 f1 f1{f2 f3} = "), 1);
    assert_string_equal(
        test_text_find(&asked->text, "counter reduce_asked_begun_before = "), "1");
    done(asked);
}

/* A payload with one answer to request `request`, which asks for two, of a trace that began at `start_ns`. */
static void put_answer(struct mr_buffer *out, uint64_t request, uint64_t start_ns)
{
    const struct mr_exemplar_call call = {.total_ns = 10};
    const struct mr_exemplar exemplar = {.why = MR_EXEMPLAR_ASKED,
                                         .before = start_ns,
                                         .start_ns = start_ns,
                                         .calls = 1,
                                         .call_count = 1,
                                         .items = &call};
    struct mr_delta_writer w;
    uint32_t path, source;

    mr_buffer_clear(out);
    mr_delta_begin(&w, out);
    path = mr_delta_path(&w, MR_DELTA_NONE, mr_delta_scope(&w, test_scope_id()),
                         mr_delta_site(&w, test_site_id(1)), 0);
    source = mr_delta_source(&w, (struct mr_id){4, 4});
    mr_delta_asked(&w, (struct mr_id){7, request}, 2, path, MR_DELTA_NONE, source,
                   &exemplar);
    assert_int_equal(mr_delta_status(&w), MR_OK);
}

static void merge(struct mr_accumulator *acc, struct mr_span payload)
{
    struct mr_error error = MR_ERROR_NONE;

    mr_accumulator_open(acc, payload);
    assert_int_equal(mr_accumulator_merge(acc, &error), MR_OK);
}

static void write_all(struct mr_accumulator *acc, struct mr_buffer *out)
{
    mr_buffer_clear(out);
    assert_int_equal(mr_accumulator_write_begin(acc), MR_OK);
    assert_int_equal(mr_accumulator_write(acc, 2, 1, out), MR_OK);
}

/* The starts of what is there of a request, in any order, summed as bits. */
static uint64_t starts_of(struct mr_span payload, uint64_t request)
{
    struct mr_delta_reader reader;
    struct mr_delta_item item;
    uint64_t starts = 0;

    mr_delta_reader_init(&reader, payload);
    while (mr_delta_next(&reader, &item) == MR_OK)
        if (item.tag == MR_DELTA_ASKED && item.id.lo == request) {
            assert_int_equal(item.wanted, 2);
            assert_int_equal(item.exemplar->why, MR_EXEMPLAR_ASKED);
            starts += UINT64_C(1) << item.exemplar->start_ns;
        }
    mr_delta_reader_fini(&reader);
    return starts;
}

static void the_earliest_answers_stay_whatever_the_order(void **state)
{
    static const uint64_t orders[][6] = {
        {5, 3, 9, 3, 1, 5}, {1, 3, 5, 9, 9, 1}, {9, 5, 3, 1, 1, 3}};
    struct mr_buffer in, out, first;
    struct mr_accumulator *acc;

    (void)state;
    mr_buffer_init(&in, 1 << 20);
    mr_buffer_init(&out, 8 << 20);
    mr_buffer_init(&first, 8 << 20);
    for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
        assert_int_equal(mr_accumulator_new(NULL, &acc), MR_OK);
        for (size_t j = 0; j < 6; j++) {
            put_answer(&in, 1, orders[i][j]);
            merge(acc, mr_buffer_span(&in));
        }
        put_answer(&in, 2, 30); /* of another request: apart */
        merge(acc, mr_buffer_span(&in));
        write_all(acc, &out);
        assert_int_equal(starts_of(mr_buffer_span(&out), 1), 1u << 1 | 1u << 3);
        assert_int_equal(starts_of(mr_buffer_span(&out), 2), 1u << 30);
        if (i == 0)
            assert_int_equal(mr_buffer_append(&first, out.data, out.size), MR_OK);
        assert_true(mr_span_equal(mr_buffer_span(&first), mr_buffer_span(&out)));
        merge(acc, mr_buffer_span(&first)); /* once more: nothing changes */
        write_all(acc, &out);
        assert_true(mr_span_equal(mr_buffer_span(&first), mr_buffer_span(&out)));
        mr_accumulator_free(acc);
    }
    mr_buffer_fini(&in);
    mr_buffer_fini(&out);
    mr_buffer_fini(&first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_traces_of_an_entry_point_are_kept_up_to_the_count),
        cmocka_unit_test(a_path_and_a_duration_choose_among_traces),
        cmocka_unit_test(a_shape_is_wanted_wherever_it_begins),
        cmocka_unit_test(traces_without_a_shape_are_kept_by_their_calls),
        cmocka_unit_test(a_trace_over_many_batches_is_whole),
        cmocka_unit_test(a_trace_that_had_begun_is_passed_over_and_counted),
        cmocka_unit_test(what_does_not_fit_is_counted),
        cmocka_unit_test(
            past_the_calls_of_a_frame_the_shortest_are_elided_and_it_is_counted),
        cmocka_unit_test(a_request_that_is_taken_back_gets_no_more),
        cmocka_unit_test(
            what_is_still_wanted_when_the_list_comes_again_is_answered_again),
        cmocka_unit_test(a_trace_that_was_open_at_a_kill_is_passed_over_and_counted),
        cmocka_unit_test(the_earliest_answers_stay_whatever_the_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
