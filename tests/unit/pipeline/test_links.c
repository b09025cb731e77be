/* SPDX-License-Identifier: Apache-2.0 */
/* Sends, receives and hand-offs through decode, reconstruct and reduce: the parts that come out. */
#include "../unit_test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/delta.h"
#include "net/ids.h"
#include "pipeline/resume.h"
#include "support_lane.h"

#define TEXT_SIZE 8192

static const uint64_t trace_hi = UINT64_C(0x4bf92f3577b34da6);
static const uint64_t trace_lo = UINT64_C(0xe3ce929d0e0e4736);
#define SPAN(number) (UINT64_C(0xc0f067aa00000000) + (number))

static void message(struct test_lane *lane, uint32_t stream, enum mr_record_kind kind,
                    uint64_t number)
{
    const uint64_t low = (UINT64_C(1) << 62) - 1, span = number ? SPAN(number) : 0;
    const uint64_t words[4] = {trace_lo & low, (trace_hi << 2 | trace_lo >> 62) & low,
                               trace_hi >> 60 | (span & ((UINT64_C(1) << 58) - 1)) << 4,
                               span >> 58 | 1 << 8};

    test_lane_record(lane, stream, kind, lane->streams[stream].time + 10, words, 4);
    lane->streams[stream].events++;
}

static void hand_off(struct test_lane *lane, uint32_t stream, enum mr_record_kind kind,
                     uint64_t token)
{
    test_lane_record(lane, stream, kind, lane->streams[stream].time + 10, &token, 1);
    lane->streams[stream].events++;
}

/*
 * Each step takes 10 ns. "+1" enters f1, "-1" exits it; with numbers of messages and tokens: "s1" sends, "r1" receives,
 * "c1" captures, "a1" attaches, "d" detaches, "e" ends what was received; "F": the innermost call has failed; "l" loses an event of unknown nesting;
 * "x": what is open nobody knows;
 * "2:" the rest is on stream 2.
 */
static void write_text(struct test_lane *lane, const char *text)
{
    uint32_t stream = 1;

    for (; *text; text += strcspn(text, " "), text += *text == ' ') {
        uint64_t ns = lane->streams[stream].time + 10;
        unsigned long number = strtoul(text + 1, NULL, 10);

        if (text[1] == ':')
            stream = (uint32_t)strtoul(text, NULL, 10);
        else if (*text == '+')
            test_lane_enter(lane, stream, (uint32_t)number, ns);
        else if (*text == '-')
            test_lane_exit(lane, stream, (uint32_t)number, ns);
        else if (*text == 's')
            message(lane, stream, MR_RECORD_SEND, number);
        else if (*text == 'r')
            message(lane, stream, MR_RECORD_RECEIVE, number);
        else if (*text == 'c')
            hand_off(lane, stream, MR_RECORD_CAPTURE, number);
        else if (*text == 'a')
            hand_off(lane, stream, MR_RECORD_ATTACH, number);
        else if (*text == 'd')
            hand_off(lane, stream, MR_RECORD_DETACH, 1);
        else if (*text == 'e')
            hand_off(lane, stream, MR_RECORD_DETACH, 0);
        else if (*text == 'F')
            test_lane_status(lane, stream, ns, true);
        else if (*text == 'l')
            test_lane_loss(lane, stream, ns, 1, MR_LOSS_RING_FULL, INT32_MAX, 0);
        else if (*text == 'x')
            test_lane_record(lane, stream, MR_RECORD_CUT, ns, &(uint64_t){1}, 1);
        else
            fail_msg("what is %s", text);
    }
}

/* The name of an edge's key: m1 of a message, h1 of a hand-off, n of what comes next. */
static void put_key(const struct test_lane *lane, const struct mr_part_edge *edge,
                    char *text)
{
    struct mr_id trace = {trace_hi, trace_lo};

    for (uint64_t i = 1; i < 200; i++) {
        bool is_message = mr_id_equal(edge->key, mr_id_message(trace, SPAN(i)));

        if (!is_message && !mr_id_equal(edge->key, mr_id_hand_off(lane->source->id, i)))
            continue;
        assert_int_equal(edge->kind, is_message ? MR_EDGE_MESSAGE : MR_EDGE_HAND_OFF);
        (void)sprintf(text + strlen(text), "%c%" PRIu64, is_message ? 'm' : 'h', i);
        return;
    }
    assert_int_equal(edge->kind, MR_EDGE_NEXT);
    (void)strcat(text, "n");
}

static void put_time(uint64_t ns, char *text)
{
    (void)sprintf(text + strlen(text), "@%" PRIu64, ns - TEST_START_S * MR_SECOND_NS);
}

static void put_name(const struct mr_part *part, char *text)
{
    struct mr_id scope = test_scope_id();

    if (mr_id_is_zero(part->path)) {
        (void)strcat(text, "nowhere");
        return;
    }
    for (uint32_t i = 1; i < 20; i++) {
        bool is_entry = mr_id_equal(part->path, mr_id_path(scope, test_site_id(i)));

        if (is_entry || mr_id_equal(part->path, mr_id_outer_path(scope, test_site_id(i))))
            (void)sprintf(text + strlen(text), "%s%u", is_entry ? "f" : "outer", i);
    }
}

static void put_part(const struct test_lane *lane, const struct mr_part *part, char *text)
{
    static const char *const statuses[] = {"", " failed", " incomplete"};

    put_name(part, text);
    (void)strcat(text, part->flags & MR_PART_STUB ? "()" : "");
    (void)strcat(text, part->flags & MR_PART_CUT ? " cut" : "");
    assert_int_equal(mr_id_is_zero(part->node),
                     part->flags & MR_PART_STUB || (part->status == MR_PART_INCOMPLETE &&
                                                    !(part->flags & MR_PART_CUT)));
    put_time(part->start_ns, text);
    (void)sprintf(text + strlen(text), "+%" PRIu64 "%s", part->end_ns - part->start_ns,
                  statuses[part->status]);
    if (part->in.kind) {
        (void)strcat(text, " <");
        put_key(lane, &part->in, text);
        put_time(part->in.ns, text);
    }
    for (uint32_t i = 0; i < part->out_count && i < 8; i++) {
        (void)strcat(text, " >");
        put_key(lane, &part->out[i], text);
        put_time(part->out[i].ns, text);
    }
    (void)strcat(text, "\n");
}

struct outcome {
    char text[TEXT_SIZE];
    struct mr_id ids[8]; /* of the first parts */
    uint64_t last, reduced, lost, parts, malformed, unmatched, past_limit, traces, told;
    uint64_t incomplete; /* parts */
    bool is_balanced;
};

static void take_item(const struct test_lane *lane, const struct mr_delta_item *item,
                      struct outcome *outcome)
{
    if (item->tag == MR_DELTA_PART) {
        if (outcome->told < 8)
            outcome->ids[outcome->told++] = item->part->id;
        if (strlen(outcome->text) < TEXT_SIZE / 2)
            put_part(lane, item->part, outcome->text);
        outcome->incomplete += item->part->status == MR_PART_INCOMPLETE;
        assert_true(mr_id_equal(item->part->source, lane->source->id));
    } else if (item->tag == MR_DELTA_ENTRY_STAT) {
        for (int i = 0; i < MR_COVERAGE_COUNT; i++)
            outcome->traces += item->entry_stats->traces[i];
    } else if (item->tag == MR_DELTA_LEDGER) {
        outcome->last += item->ledger->last;
        outcome->reduced += item->ledger->reduced;
        for (uint32_t i = 0; i < MR_LOSS_REASON_COUNT; i++)
            outcome->lost += item->ledger->lost[i];
    } else if (item->tag == MR_DELTA_COUNTER) {
        if (strcmp(item->name, "reduce_parts") == 0)
            outcome->parts += item->value;
        if (strcmp(item->name, "reduce_links_malformed") == 0)
            outcome->malformed += item->value;
        if (strcmp(item->name, "reduce_links_unmatched") == 0)
            outcome->unmatched += item->value;
        if (strcmp(item->name, "reduce_links_past_limit") == 0)
            outcome->past_limit += item->value;
    }
}

static void collect(const struct test_lane *lane, struct outcome *outcome)
{
    struct mr_delta_reader reader;
    struct mr_delta_item item;

    *outcome = (struct outcome){.last = 0};
    for (const struct mr_batch *batch = lane->out->first; batch; batch = batch->next) {
        if (batch->kind != MR_BATCH_DELTA)
            continue;
        mr_delta_reader_init(&reader, mr_buffer_span(&batch->bytes));
        while (mr_delta_next(&reader, &item) == MR_OK)
            take_item(lane, &item, outcome);
        mr_delta_reader_fini(&reader);
    }
}

static void finish(struct test_lane *lane, struct outcome *outcome)
{
    const struct mr_resume *resume = lane->source->resume;
    uint64_t before =
        resume ? resume->streams[0].reduced + resume->streams[0].lost_sum : 0;

    for (uint32_t i = 1; i <= 2; i++)
        if (lane->streams[i].count)
            test_lane_send(lane, i, MR_CHUNK_LAST);
    test_lane_end(lane);
    assert_false(mr_source_is_broken(lane->source));
    collect(lane, outcome);
    assert_int_equal(outcome->last, before + outcome->reduced + outcome->lost);
}

/* The parts that `events` make, in the order in which they are told. `options` may be NULL. */
static struct outcome run_with(const char *events, const struct test_options *options)
{
    struct test_lane lane;
    struct outcome outcome;

    test_lane_init(&lane, options);
    test_lane_announce(&lane, 1, 9); /* f9: where threads start */
    test_lane_announce(&lane, 2, 9);
    write_text(&lane, events);
    finish(&lane, &outcome);
    test_lane_fini(&lane);
    return outcome;
}

static struct outcome run(const char *events)
{
    return run_with(events, NULL);
}

static void expect_with(const char *events, const struct test_options *options,
                        const char *parts)
{
    struct outcome outcome = run_with(events, options);

    if (strcmp(outcome.text, parts) != 0)
        fail_msg("%s\n  gives\n%s  not\n%s", events, outcome.text, parts);
}

static void expect(const char *events, const char *parts)
{
    expect_with(events, NULL, parts);
}

static void call_trees_without_links_are_no_parts(void **state)
{
    (void)state;
    expect("+1 +2 -2 -1 +1 -1", "");
}

static void a_call_tree_that_sends_or_receives_is_a_part(void **state)
{
    (void)state;
    expect("+1 s1 +2 s2 -2 -1 +3 -3", "f1@10+50 >m1@20 >m2@40\n");
    expect("+1 r1 +2 s2 -2 -1", "f1@10+50 <m1@20 >m2@40\n");
    expect("+1 F r1 -1", "f1@10+30 failed <m1@30\n");
}

static void a_receive_before_a_call_tree_is_that_of_the_next(void **state)
{
    (void)state;
    expect("r1 +1 -1 +2 -2", "f1@20+10 <m1@10\n");
    expect("+9 r1 +1 -1 +2 s2 -2 -9", "f1@30+10 <m1@20\nf2@50+20 >m2@60\n");
}

static void a_receive_that_is_over_is_that_of_no_later_call_tree(void **state)
{
    (void)state;
    expect("r1 e +1 s2 -1", "nowhere()@10+10 <m1@10\nf1@30+20 >m2@40\n");
    expect("+9 r1 e r2 +1 -1 e +2 s3 -2 -9",
           "outer9()@20+10 <m1@20\nf1@50+10 <m2@40\nf2@80+20 >m3@90\n");
    expect("r1 r0 +1 s2 -1", "nowhere()@10+0 <m1@10\nf1@30+20 >m2@40\n");
    /* its call tree may be among what was lost */
    expect("r1 l +1 s2 -1", "nowhere()@10+0 <m1@10\nf1@30+20 >m2@40\n");
    /* one that is open goes on, and so does what is attached meanwhile */
    expect("r1 +1 e s2 -1", "f1@20+30 <m1@10 >m2@40\n");
    expect("a1 +1 e s2 -1 d", "f1@20+30 <h1@10 >m2@40\n");
    expect("r1 a2 e d +1 -1", "nowhere()@20+20 <h2@20\nf1@50+10 <m1@10\n");
    assert_int_equal(run("r1 e +1 -1 e").unmatched, 0);
}

/* The first one's is missing; so the thread's next detach is of that, although what it ends was received. */
static void a_detach_of_nothing_ends_what_was_received(void **state)
{
    const char *events = "a1 a2 d r3 d +1 s4 -1";

    (void)state;
    expect(events, "nowhere()@10+0 <h1@10\nnowhere()@20+10 <h2@20\n"
                   "nowhere()@40+10 <m3@40\nf1@60+20 >m4@70\n");
    assert_int_equal(run(events).unmatched, 1);
}

static void what_comes_in_after_something_went_out_ends_in_a_stub(void **state)
{
    (void)state;
    expect("+1 s1 r2 -1", "f1()@30+0 <m2@30\nf1@10+30 >m1@20\n");
    expect("+1 r1 r2 -1", "f1()@30+0 <m2@30\nf1@10+30 <m1@20\n");
}

static void links_outside_of_call_trees_are_stubs(void **state)
{
    (void)state;
    expect("s1 +1 -1", "nowhere()@10+0 >m1@10\n");
    expect("+9 c1 c2 -9", "outer9()@20+0 >h1@20\nouter9()@30+0 >h2@30\n");
    expect("r1 r2 +1 -1", "nowhere()@10+0 <m1@10\nf1@30+10 <m2@20\n");
    expect("r1", "nowhere()@10+0 <m1@10\n");
}

/* As at a worker that a stream came to when its own was killed: it may be in a call tree that began there. */
static void a_stub_of_a_base_that_is_not_sure_is_incomplete(void **state)
{
    (void)state;
    expect("+9 x s1 c2 +1 s3 -1 -9 s4", "outer9()@30+0 incomplete >m1@30\n"
                                        "outer9()@40+0 incomplete >h2@40\n"
                                        "f1@50+20 incomplete >m3@60\n"
                                        "nowhere()@90+0 >m4@90\n");
    expect("+9 x r1 e a2 d a3 a4 d d -9 r5", "outer9()@30+10 incomplete <m1@30\n"
                                             "outer9()@50+10 incomplete <h2@50\n"
                                             "outer9()@70+0 incomplete <h3@70\n"
                                             "outer9()@80+10 incomplete <h4@80\n"
                                             "nowhere()@120+0 <m5@120\n");
}

static void an_attachment_is_the_call_trees_below_it(void **state)
{
    (void)state;
    expect("+1 c1 -1 2: a1 +2 -2 d", "f1@10+20 >h1@20\nf2@20+10 <h1@10\n");
    expect("+9 a1 +2 s3 -2 d +4 -4 -9", "f2@30+20 <h1@20 >m3@40\n");
    expect("a1 d", "nowhere()@10+10 <h1@10\n");
}

static void further_call_trees_of_an_attachment_hang_on_the_one_before(void **state)
{
    (void)state;
    expect("a1 +1 -1 +2 -2 +1 -1 d +3 -3", "f1@20+10 <h1@10 >n@30\n"
                                           "f2@40+10 <n@40 >n@50\n"
                                           "f1@60+10 <n@60\n");
    expect("a1 +1 -1 c7 d", "f1@20+10 <h1@10 >h7@40\n");
}

static void within_a_call_tree_an_attachment_has_call_trees_of_its_own(void **state)
{
    (void)state;
    expect("+1 +2 a1 +3 +4 -4 -3 d +5 -5 -2 s2 -1",
           "f3@40+30 <h1@30\nf1@10+120 >m2@120\n");
    /* its caller leaves without a detach */
    expect("+1 +2 a1 +3 -3 -2 +5 s2 -5 -1", "f3@40+10 <h1@30\nf1@10+90 >m2@80\n");
    expect("+1 +2 a1 -2 +5 s2 -5 -1", "f1()@30+10 <h1@30\nf1@10+70 >m2@60\n");
    /* what is sent between attach and detach belongs to what was attached */
    expect("+1 a1 s2 d -1", "f1()@20+20 <h1@20 >m2@30\n");
}

static const char *name_of(void *context, const struct mr_site *site)
{
    (void)context;
    return site->offset == 16 * 3 ? "three" : "other";
}

/* A call that attached and leaves without a detach ends that also where its calls are no roots. */
static void no_attachment_outlives_the_call_that_attached(void **state)
{
    static const char *const globs[] = {"three"};
    struct mr_reconstruct_config reconstruct = {
        .depth_max = 100,
        .learns_nothing = true,
        .outer = {.root_globs = globs, .root_glob_count = 1, .resolve = name_of}};
    const struct test_options options = {.reconstruct = &reconstruct};

    (void)state;
    /* in a call tree of --root */
    expect_with("+3 +4 a1 -4 s2 -3 +3 s5 -3", &options,
                "f3()@30+10 <h1@30\nf3@10+50 >m2@50\nf3@70+20 >m5@80\n");
    expect_with("+3 a1 +4 -4 -3 +3 s5 -3", &options,
                "nowhere()@20+30 <h1@20\nf3@60+20 >m5@70\n");
    /* in such a one within another: what is attached behind it has call trees again */
    expect_with("+1 +3 a1 -3 a2 +4 -4 d -1", &options,
                "f3@20+20 <h1@30\nf4@60+10 <h2@50\n");
    assert_int_equal(run_with("+1 +3 a1 -3 d -1", &options).unmatched, 1);
    /* deeper than calls are followed: with the deepest that is */
    reconstruct = (struct mr_reconstruct_config){.depth_max = 2, .learns_nothing = true};
    expect_with("+1 +2 +3 a1 -3 -2 s2 -1 +1 s3 -1", &options,
                "f1()@40+20 <h1@40\nf1@10+70 incomplete >m2@70\nf1@90+20 >m3@100\n");
}

static void a_detach_within_a_call_tree_leaves_it_what_it_is(void **state)
{
    (void)state;
    expect("a1 +1 d s2 -1 +2 -2", "f1@20+30 <h1@10 >m2@40\n");
}

static void an_attach_within_another_ends_in_a_stub(void **state)
{
    (void)state;
    expect("a1 +1 a2 s3 d s4 -1 d", "f1()@30+0 <h2@30\nf1@20+50 <h1@10 >m3@40 >m4@60\n");
    assert_int_equal(run("a1 +1 a2 s3 d s4 -1 d").unmatched, 0);
    assert_int_equal(run("d d").unmatched, 2);
}

/* A detach is missing: what follows is not the old one's. */
static void an_attach_outside_of_what_was_called_takes_the_place_of_the_one_before(
    void **state)
{
    (void)state;
    expect("a1 +1 -1 a2 +2 -2 d +3 s4 -3",
           "f1@20+10 <h1@10\nf2@50+10 <h2@40\nf3@80+20 >m4@90\n");
    expect("a1 a2 +2 -2 d", "nowhere()@10+0 <h1@10\nf2@30+10 <h2@20\n");
    /* of one within a call tree, too, and of one within that */
    expect("+1 a1 +2 -2 a2 +3 -3 d -1", "f2@30+10 <h1@20\nf3@60+10 <h2@50\n");
    expect("a1 +1 a2 -1 a3 +3 -3 d +4 s5 -4",
           "f1()@30+0 <h2@30\nf1@20+20 <h1@10\nf3@60+10 <h3@50\nf4@90+20 >m5@100\n");
    /* left at the base, one within a call tree has call trees of its own again */
    expect("a1 +1 -1 a2 +2 -2 d +3 a4 +4 -4 -3",
           "f1@20+10 <h1@10\nf2@50+10 <h2@40\nf4@100+10 <h4@90\n");
}

static void a_loss_ends_what_is_attached_and_makes_parts_incomplete(void **state)
{
    (void)state;
    expect("+1 s1 l +2 -2 -1", "f1@10+20 incomplete >m1@20\n");
    expect("a1 l +2 -2", "nowhere()@10+10 <h1@10\n");
}

static void zero_ids_are_counted_and_join_nothing(void **state)
{
    struct outcome outcome = run("+1 r0 s0 -1");

    (void)state;
    assert_string_equal(outcome.text, "");
    assert_int_equal(outcome.malformed, 2);
    assert_int_equal(outcome.last, 4);
    assert_int_equal(outcome.reduced, 4);
}

static void a_part_of_too_many_edges_says_so(void **state)
{
    char events[TEXT_SIZE] = "+1";
    struct outcome outcome;

    (void)state;
    for (int i = 1; i <= 70; i++)
        (void)sprintf(events + strlen(events), " s%d", i);
    (void)strcat(events, " -1");
    outcome = run(events);
    assert_int_equal(outcome.parts, 1);
    assert_int_equal(outcome.past_limit, 70 - MR_PART_EDGES_MAX);
    assert_int_equal(outcome.lost, 70 - MR_PART_EDGES_MAX);
    assert_non_null(strstr(outcome.text, "f1 cut@10+710 incomplete >m1"));
}

static void an_attachment_of_too_many_call_trees_ends(void **state)
{
    char events[TEXT_SIZE] = "a1";
    struct outcome outcome;

    (void)state;
    for (int i = 0; i < 300; i++)
        (void)strcat(events, " +1 -1");
    outcome = run(events);
    assert_int_equal(outcome.parts, 257);
    assert_int_equal(outcome.incomplete, 1);
    assert_int_equal(outcome.past_limit, 1);
}

/* Call trees large enough to be counted in bulk, the same again and again: links make no difference to that. */
/* As a worker does that finds in its spool how far another one was with stream 1: `last` events. */
static void resume(struct test_lane *lane, struct mr_resume_sites *sites, uint64_t last)
{
    const struct mr_resume_stream stream = {
        .id = 1, .last = last, .reduced = last, .last_ns = TEST_START_S * MR_SECOND_NS};
    struct mr_buffer bytes;

    mr_buffer_init(&bytes, SIZE_MAX);
    mr_resume_sites_init(sites);
    lane->source->resume = mr_resume_new(sites);
    assert_non_null(lane->source->resume);
    assert_int_equal(mr_resume_put_stream(&bytes, &stream), MR_OK);
    assert_int_equal(
        mr_resume_add_stream(lane->source->resume, 1, mr_buffer_span(&bytes)), MR_OK);
    mr_buffer_fini(&bytes);
    lane->streams[1].next_event = last;
}

static void parts_after_a_restart_have_ids_of_their_own(void **state)
{
    struct outcome before = run("+1 s1 -1 +1 s2 -1"), after;
    struct mr_resume_sites sites;
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, NULL);
    resume(&lane, &sites, before.last);
    test_lane_announce(&lane, 1, 9);
    write_text(&lane, "+1 s3 -1 +1 s4 -1");
    finish(&lane, &after);
    test_lane_fini(&lane);
    mr_resume_sites_fini(&sites);
    assert_int_equal(before.told, 2);
    assert_int_equal(after.told, 2);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            assert_false(mr_id_equal(before.ids[i], after.ids[j]));
}

static void strip(char *text, const char *word)
{
    for (char *at = text; (at = strstr(at, word));)
        memmove(at, at + strlen(word), strlen(at + strlen(word)) + 1);
}

/* Call trees open at a restart are incomplete, whatever they were else: the only thing that it changes. */
static void strip_status(char *text)
{
    strip(text, " incomplete");
    strip(text, " failed");
}

/* The parts that `events` make in two lanes, of which the second goes on behind the first `size` bytes of them. */
static void run_in_two(const char *events, size_t size, uint64_t unmatched,
                       char text[TEXT_SIZE])
{
    struct test_lane before, after;
    struct mr_resume_sites sites;
    struct outcome first, second;
    char begin[TEXT_SIZE];

    (void)snprintf(begin, sizeof(begin), "%.*s", (int)size, events);
    mr_resume_sites_init(&sites);
    test_lane_init(&before, NULL);
    before.decode.has_marks = before.reduce.has_marks = true;
    test_lane_announce(&before, 1, 9);
    write_text(&before, begin);
    test_lane_send(&before, 1, MR_CHUNK_FIRST);
    test_lane_tick(&before, MR_SECOND_NS);
    collect(&before, &first);

    test_lane_init(&after, NULL);
    after.source->resume = mr_resume_new(&sites);
    assert_non_null(after.source->resume);
    test_lane_take_marks(&before, after.source->resume, &sites);
    test_lane_announce(&after, 1, 9);
    after.streams[1].next_event = before.streams[1].next_event;
    after.streams[1].time = after.streams[1].chunk_time = before.streams[1].time;
    test_lane_fini(&before);
    write_text(&after, events + size);
    finish(&after, &second);
    (void)snprintf(text, TEXT_SIZE, "%.4000s%.4000s", first.text, second.text);
    assert_true(second.unmatched <= unmatched);
    test_lane_fini(&after);
    mr_resume_sites_fini(&sites);
}

static void a_restart_at_any_event_leaves_every_part_its_edges(void **state)
{
    static const char *const runs[] = {
        "+1 s1 +2 c2 -2 -1 +1 s3 -1",
        "r1 +1 s2 -1 d +1 -1 r3 r4 +1 -1 d",
        "a1 +1 c2 -1 d a3 +1 F s4 -1 d",
        "a1 +1 -1 +2 s2 -2 +1 -1 d +1 s3 -1",
        "+1 s1 +2 a2 +3 s3 +4 s4 -4 -3 +3 a5 d -3 d s6 +4 -4 -2 r7 -1 +5 s8 -5",
        "a1 +1 a2 s3 -1 d +2 s4 -2 d +1 s5 -1",
        "a1 d a2 a3 d d s4 c5 r6 +1 -1",
        "+9 +1 s1 -1 a2 +1 s3 -1 +1 -1 d r4 +1 -1 -9",
    };
    char wanted[TEXT_SIZE], got[TEXT_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct outcome whole = run(runs[i]);

        (void)strcpy(wanted, whole.text);
        strip_status(wanted);
        for (const char *at = strchr(runs[i], ' '); at; at = strchr(at + 1, ' ')) {
            run_in_two(runs[i], (size_t)(at + 1 - runs[i]), whole.unmatched, got);
            strip_status(got);
            if (strcmp(got, wanted) != 0)
                fail_msg("%s\n  with a restart before \"%s\" gives\n%s  not\n%s", runs[i],
                         at + 1, got, wanted);
        }
    }
}

static void call_trees_that_come_back_are_parts_where_they_have_links(void **state)
{
    char *events = calloc(1, 1 << 20), *at = events;
    struct outcome outcome;
    uint32_t links = 0, plain = 0;

    (void)state;
    for (int i = 0; i < 200; i++) {
        bool has_link = i % 3 == 0, is_attached = i % 5 == 0;

        links += has_link || is_attached;
        plain += !has_link && !is_attached;
        at += sprintf(at, is_attached ? "a7 +1 " : "+1 ");
        for (int j = 0; j < 20; j++)
            at += sprintf(at, "+2 +3 -3 -2 ");
        at += sprintf(at, has_link ? "s1 -1 " : "-1 ");
        at += sprintf(at, is_attached ? "d " : "");
    }
    *--at = '\0';
    outcome = run(events);
    assert_int_equal(outcome.parts, links);
    assert_int_equal(outcome.lost, 0);
    assert_int_equal(outcome.traces, links + plain);
    free(events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_trees_without_links_are_no_parts),
        cmocka_unit_test(a_call_tree_that_sends_or_receives_is_a_part),
        cmocka_unit_test(a_receive_before_a_call_tree_is_that_of_the_next),
        cmocka_unit_test(a_receive_that_is_over_is_that_of_no_later_call_tree),
        cmocka_unit_test(a_detach_of_nothing_ends_what_was_received),
        cmocka_unit_test(what_comes_in_after_something_went_out_ends_in_a_stub),
        cmocka_unit_test(links_outside_of_call_trees_are_stubs),
        cmocka_unit_test(a_stub_of_a_base_that_is_not_sure_is_incomplete),
        cmocka_unit_test(an_attachment_is_the_call_trees_below_it),
        cmocka_unit_test(further_call_trees_of_an_attachment_hang_on_the_one_before),
        cmocka_unit_test(within_a_call_tree_an_attachment_has_call_trees_of_its_own),
        cmocka_unit_test(no_attachment_outlives_the_call_that_attached),
        cmocka_unit_test(a_detach_within_a_call_tree_leaves_it_what_it_is),
        cmocka_unit_test(an_attach_within_another_ends_in_a_stub),
        cmocka_unit_test(
            an_attach_outside_of_what_was_called_takes_the_place_of_the_one_before),
        cmocka_unit_test(a_loss_ends_what_is_attached_and_makes_parts_incomplete),
        cmocka_unit_test(zero_ids_are_counted_and_join_nothing),
        cmocka_unit_test(a_part_of_too_many_edges_says_so),
        cmocka_unit_test(an_attachment_of_too_many_call_trees_ends),
        cmocka_unit_test(parts_after_a_restart_have_ids_of_their_own),
        cmocka_unit_test(a_restart_at_any_event_leaves_every_part_its_edges),
        cmocka_unit_test(call_trees_that_come_back_are_parts_where_they_have_links),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
