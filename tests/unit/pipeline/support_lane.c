/* SPDX-License-Identifier: Apache-2.0 */
#include "support_lane.h"

#include "../unit_test.h"

#include <stdio.h>
#include <string.h>

#include "net/ids.h"
#include "pipeline/mark.h"

#define ADDRESS UINT64_C(0x400000) /* of the module */
#define BUILD_ID "0123456789"
#define NS_0 (TEST_START_S * MR_SECOND_NS)

/* The last filter: keeps every batch, in order. */
static enum mr_status keep_open(struct mr_filter *filter, const void *config,
                                struct mr_error *error)
{
    struct test_out **state = mr_filter_state(filter);
    struct test_out *out = *(struct test_out *const *)config;

    (void)error;
    *state = out;
    return MR_OK;
}

static enum mr_status keep_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct test_out *out = *(struct test_out **)mr_filter_state(filter);

    out->dicts += batch->kind == MR_BATCH_DICT;
    out->deltas += batch->kind == MR_BATCH_DELTA;
    out->events += batch->kind == MR_BATCH_EVENTS;
    batch->next = NULL;
    *out->end = batch;
    out->end = &batch->next;
    return MR_OK;
}

static const struct mr_filter_kind keep_filter = {.name = "keep",
                                                  .state_size = sizeof(struct test_out *),
                                                  .open = keep_open,
                                                  .process = keep_process};

struct mr_id test_site_id(uint32_t function)
{
    if (function == 0)
        return mr_id_unknown_site();
    return mr_id_function(mr_span_of(BUILD_ID, 10), "/lib/test.so",
                          (uint64_t)function * 16);
}

struct mr_id test_scope_id(void)
{
    return mr_id_scope("app", "1", "");
}

static void make_source(struct test_lane *lane, uint64_t oldest)
{
    struct mr_hello hello = {.sender = {1, 2},
                             .role = MR_ROLE_PROBE,
                             .oldest = oldest ? oldest : 1,
                             .token = "",
                             .source = {.host = "host",
                                        .app = "app",
                                        .version = "1",
                                        .exe = "/bin/app",
                                        .pid = 7,
                                        .start_ns = NS_0,
                                        .clock = {.kind = MR_CLOCK_MONOTONIC,
                                                  .mult = 1,
                                                  .shift = 0,
                                                  .ticks = 0,
                                                  .realtime_ns = NS_0}}};

    assert_int_equal(mr_source_new(&hello, false, &lane->source), MR_OK);
}

const char *test_lane_function_name(void *context, const struct mr_site *site)
{
    static char name[32];

    (void)context;
    (void)snprintf(name, sizeof(name), "function_%u", (unsigned)(site->offset / 16));
    return name;
}

static void set_configs(struct test_lane *lane, const struct test_options *options)
{
    lane->decode = (struct mr_decode_config){
        .sites = lane->sites,
        .worker = {3, 4},
        .level = 1,
        .streams_max = options->streams_max ? options->streams_max : 1000,
        .clock_limit_ns = options->clock_limit_ns};
    lane->reconstruct = (struct mr_reconstruct_config){
        .level = 1,
        .depth_max = MR_RECONSTRUCT_DEPTH_DEFAULT,
        .learn_ns = MR_RECONSTRUCT_LEARN_NS_DEFAULT,
        .learn_children = MR_RECONSTRUCT_LEARN_CHILDREN_DEFAULT};
    if (options->reconstruct)
        lane->reconstruct = *options->reconstruct;
    lane->reconstruct.outer.sites = lane->sites;
    lane->reduce = options->reduce ? *options->reduce : MR_REDUCE_CONFIG_DEFAULT;
    lane->reduce.sites = lane->sites;
    lane->reduce.level = 1;
}

static void tell_module(struct test_lane *lane)
{
    struct mr_dict_item item = {.kind = MR_DICT_MODULE,
                                .module = {.site_base = MR_SITE_FIRST_MODULE,
                                           .size = 16 * TEST_SITES,
                                           .address = ADDRESS,
                                           .bias = ADDRESS,
                                           .build_id = mr_span_of(BUILD_ID, 10),
                                           .path = "/lib/test.so"}};

    test_lane_item(lane, &item);
}

void test_lane_init(struct test_lane *lane, const struct test_options *options)
{
    static const struct test_options plain;
    struct mr_graph_node nodes[4];
    struct mr_error error = MR_ERROR_NONE;
    uint32_t stages;

    options = options ? options : &plain;
    stages = options->stages ? options->stages : 3;
    memset(lane, 0, sizeof(*lane));
    assert_int_equal(
        mr_sites_new(options->sites_max ? options->sites_max : MR_SITES_LIMIT_DEFAULT,
                     &lane->sites),
        MR_OK);
    make_source(lane, options->oldest);
    set_configs(lane, options);
    lane->out = calloc(1, sizeof(*lane->out));
    assert_non_null(lane->out);
    lane->out->end = &lane->out->first;
    nodes[0] = (struct mr_graph_node){&mr_decode_filter, &lane->decode, MR_PLACE_FUSED};
    nodes[1] = (struct mr_graph_node){&mr_reconstruct_filter, &lane->reconstruct,
                                      options->place};
    nodes[2] = (struct mr_graph_node){&mr_reduce_filter, &lane->reduce, options->place};
    nodes[stages] = (struct mr_graph_node){&keep_filter, &lane->out, MR_PLACE_FUSED};
    assert_int_equal(mr_graph_new(nodes, stages + 1, "lane", &lane->graph, &error),
                     MR_OK);
    assert_int_equal(mr_graph_start(lane->graph), MR_OK);
    for (uint32_t i = 1; i < TEST_STREAMS; i++) {
        lane->streams[i].words = malloc(TEST_WORDS_MAX * sizeof(uint64_t));
        assert_non_null(lane->streams[i].words);
    }
    tell_module(lane);
}

void test_lane_fini(struct test_lane *lane)
{
    mr_graph_free(lane->graph);
    mr_source_free(lane->source);
    mr_sites_free(lane->sites);
    while (lane->out->first) {
        struct mr_batch *batch = lane->out->first;

        lane->out->first = batch->next;
        mr_batch_free(batch);
    }
    free(lane->out);
    for (uint32_t i = 1; i < TEST_STREAMS; i++)
        free(lane->streams[i].words);
}

void test_lane_push(struct test_lane *lane, enum mr_frame_type type, const void *payload,
                    size_t size)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_FRAME);

    assert_non_null(batch);
    batch->source = lane->source;
    batch->frame.type = (uint8_t)type;
    batch->frame.sequence = lane->is_repeating && type == MR_FRAME_DICT ? 0 : 1;
    batch->frame.payload = mr_span_of(payload, size);
    assert_int_equal(mr_graph_push(lane->graph, batch), MR_OK);
}

void test_lane_item(struct test_lane *lane, const struct mr_dict_item *item)
{
    uint8_t payload[65536];
    struct mr_dict_writer writer;

    mr_dict_writer_init(&writer, payload, sizeof(payload));
    assert_int_equal(mr_dict_put(&writer, item), MR_OK);
    test_lane_push(lane, MR_FRAME_DICT, payload, mr_dict_writer_finish(&writer));
}

static uint32_t wire_site(uint32_t function)
{
    return MR_SITE_FIRST_MODULE + 16 * function;
}

void test_lane_announce(struct test_lane *lane, uint32_t stream, uint32_t start_function)
{
    struct mr_dict_item item = {
        .kind = MR_DICT_STREAM,
        .stream = {.stream = stream,
                   .tid = 100 + stream,
                   .name = "thread",
                   .start_site = start_function ? wire_site(start_function) : 0}};

    test_lane_item(lane, &item);
}

void test_lane_word(struct test_lane *lane, uint32_t stream, uint64_t word)
{
    struct test_stream *at = &lane->streams[stream];

    assert_true(at->count < TEST_WORDS_MAX);
    at->words[at->count++] = word;
}

/* A sync record where the step would not fit. */
static void step_to(struct test_lane *lane, uint32_t stream, uint64_t ns)
{
    struct test_stream *at = &lane->streams[stream];

    if (ns > at->time && ns - at->time >= INT32_MAX) {
        test_lane_word(lane, stream, mr_word_record(MR_RECORD_SYNC, 1, 0, ns));
        test_lane_word(lane, stream, ns);
    }
    at->time = ns > at->time ? ns : at->time;
}

static void event(struct test_lane *lane, uint32_t stream, uint32_t function,
                  uint64_t dir, uint64_t ns)
{
    step_to(lane, stream, ns);
    test_lane_word(lane, stream, mr_word_event(wire_site(function), dir, ns));
    lane->streams[stream].events++;
}

void test_lane_enter(struct test_lane *lane, uint32_t stream, uint32_t function,
                     uint64_t ns)
{
    event(lane, stream, function, 0, ns);
}

void test_lane_exit(struct test_lane *lane, uint32_t stream, uint32_t function,
                    uint64_t ns)
{
    event(lane, stream, function, MR_WORD_EXIT, ns);
}

void test_lane_record(struct test_lane *lane, uint32_t stream, enum mr_record_kind kind,
                      uint64_t ns, const uint64_t *payload, uint32_t count)
{
    step_to(lane, stream, ns);
    test_lane_word(lane, stream, mr_word_record(kind, count, 0, ns));
    for (uint32_t i = 0; i < count; i++)
        test_lane_word(lane, stream, payload[i] & MR_WORD_PAYLOAD_MASK);
}

void test_lane_loss(struct test_lane *lane, uint32_t stream, uint64_t ns, uint64_t events,
                    uint32_t reason, uint32_t pops, uint32_t pushes)
{
    uint64_t payload[2] = {events | (uint64_t)reason << 48,
                           pops | (uint64_t)pushes << 31};

    test_lane_record(lane, stream, MR_RECORD_LOSS, ns, payload, 2);
    lane->streams[stream].events += events;
}

void test_lane_status(struct test_lane *lane, uint32_t stream, uint64_t ns, bool failed)
{
    uint64_t payload = failed;

    test_lane_record(lane, stream, MR_RECORD_STATUS, ns, &payload, 1);
    lane->streams[stream].events++;
}

void test_lane_unwind(struct test_lane *lane, uint32_t stream, uint64_t ns,
                      uint32_t depth)
{
    uint64_t payload = depth;

    test_lane_record(lane, stream, MR_RECORD_UNWIND, ns, &payload, 1);
    lane->streams[stream].events++;
}

void test_lane_prune(struct test_lane *lane, uint32_t stream, uint32_t function,
                     uint64_t ns, uint64_t what)
{
    uint64_t payload = (MR_SITE_FIRST_MODULE + 16 * function) | what;

    test_lane_record(lane, stream, MR_RECORD_PRUNE, ns, &payload, 1);
}

uint64_t test_lane_frame(uint32_t function, uint32_t tag, uint64_t flags)
{
    return (ADDRESS + 16 * (uint64_t)function) | (uint64_t)tag << MR_LANDING_TAG_SHIFT |
           flags;
}

void test_lane_landing(struct test_lane *lane, uint32_t stream, uint64_t ns,
                       uint32_t left, const uint64_t *frames, uint32_t count)
{
    uint64_t payload[MR_LANDING_WORDS_MAX] = {left};

    assert_true(count < MR_LANDING_WORDS_MAX);
    if (count > 0)
        memcpy(payload + 1, frames, count * sizeof(*frames));
    test_lane_record(lane, stream, MR_RECORD_LANDING, ns, payload, count + 1);
}

void test_lane_gap(struct test_lane *lane, uint32_t stream, uint64_t events)
{
    assert_int_equal(lane->streams[stream].count, 0);
    lane->streams[stream].next_event += events;
}

static struct mr_chunk chunk_of(const struct test_lane *lane, uint32_t stream,
                                uint8_t flags)
{
    const struct test_stream *at = &lane->streams[stream];

    return (struct mr_chunk){.encoding = MR_CHUNK_WORDS,
                             .flags = flags,
                             .stream = stream,
                             .epoch = lane->epoch,
                             .first_event = at->next_event,
                             .events = at->events,
                             .ticks = at->chunk_time,
                             .records = at->count,
                             .body = mr_span_of(at->words, at->count * sizeof(uint64_t))};
}

static void send_chunk(struct test_lane *lane, const struct mr_chunk *chunk)
{
    struct test_stream *at = &lane->streams[chunk->stream];
    uint8_t *payload = malloc(MR_CHUNK_HEADER_SIZE + chunk->body.size + 1);

    assert_non_null(payload);
    mr_chunk_put_header(chunk, payload);
    if (chunk->body.size)
        memcpy(payload + MR_CHUNK_HEADER_SIZE, chunk->body.data, chunk->body.size);
    at->next_event += at->events;
    at->events = 0;
    at->count = 0;
    at->chunk_time = at->time;
    test_lane_push(lane, MR_FRAME_CHUNKS, payload,
                   MR_CHUNK_HEADER_SIZE + chunk->body.size);
    free(payload);
}

void test_lane_send(struct test_lane *lane, uint32_t stream, uint8_t flags)
{
    struct mr_chunk chunk = chunk_of(lane, stream, flags);

    send_chunk(lane, &chunk);
}

void test_lane_send_compact(struct test_lane *lane, uint32_t stream, uint8_t flags)
{
    static struct mr_compact_workspace workspace;
    struct mr_chunk chunk = chunk_of(lane, stream, flags);
    size_t capacity = 16 * chunk.body.size + 64, size;
    uint8_t *body = malloc(capacity);
    uint32_t records;

    assert_non_null(body);
    size = mr_chunk_compact(&chunk, &workspace, body, capacity, &records);
    if (size) {
        chunk.encoding = MR_CHUNK_COMPACT;
        chunk.records = records;
        chunk.body = mr_span_of(body, size);
    }
    send_chunk(lane, &chunk);
    free(body);
}

void test_lane_tick(struct test_lane *lane, uint64_t later_ns)
{
    lane->now_ns =
        lane->now_ns ? lane->now_ns + later_ns : mr_clock_monotonic_ns() + later_ns;
    assert_int_equal(mr_graph_tick(lane->graph, lane->now_ns), MR_OK);
}

static void end(struct test_lane *lane, enum mr_source_state state, bool is_handed_over)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_END);
    struct mr_error error = MR_ERROR_NONE;

    assert_non_null(batch);
    batch->source = lane->source;
    batch->end_state = state;
    batch->is_handed_over = is_handed_over;
    assert_int_equal(mr_graph_push(lane->graph, batch), MR_OK);
    assert_int_equal(mr_graph_drain(lane->graph), MR_OK);
    assert_int_equal(mr_graph_status(lane->graph, &error), MR_OK);
}

void test_lane_end(struct test_lane *lane)
{
    end(lane, MR_SOURCE_FINISHED, false);
}

void test_lane_hand_over(struct test_lane *lane, uint32_t payload_bytes)
{
    if (lane->source->handover.bytes_max == 0)
        mr_handover_init(&lane->source->handover, payload_bytes);
    end(lane, MR_SOURCE_LIVE, true);
}

void test_lane_go_on(struct test_lane *lane, const struct test_lane *before)
{
    struct mr_span rest = mr_buffer_span(&before->source->handover.bytes), payload;

    lane->source->is_continuation = true;
    lane->source->resume = mr_resume_new(NULL);
    assert_non_null(lane->source->resume);
    while (mr_handover_next(&rest, &payload))
        assert_int_equal(mr_handover_take(lane->source->resume, payload), MR_OK);
    for (uint32_t i = 1; i < TEST_STREAMS; i++) {
        lane->streams[i].next_event = before->streams[i].next_event;
        lane->streams[i].time = lane->streams[i].chunk_time = before->streams[i].time;
    }
}

void test_lane_take_marks(const struct test_lane *from, struct mr_resume *resume,
                          struct mr_resume_sites *sites)
{
    struct mr_span stream = {0};
    struct mr_mark mark;

    for (const struct mr_batch *batch = from->out->first; batch; batch = batch->next) {
        struct mr_span rest = mr_buffer_span(&batch->bytes);

        while (batch->kind == MR_BATCH_MARK && mr_mark_next(&rest, &mark)) {
            if (mark.kind == MR_MARK_SITE)
                assert_int_equal(mr_resume_sites_add(sites, mark.id, mark.bytes), MR_OK);
            if (mark.kind == MR_MARK_STREAM && mark.stream == 1)
                stream = mark.bytes;
        }
    }
    assert_non_null(stream.data);
    assert_int_equal(mr_resume_add_stream(resume, 1, stream), MR_OK);
}

/* Of the filter at that place of the lane. */
static uint64_t counter_at(const struct test_lane *lane, uint32_t place, const char *name)
{
    struct mr_filter_stats stats[4];

    assert_true(mr_graph_stats(lane->graph, stats, 4) > place);
    for (uint32_t i = 0; i < MR_FILTER_COUNTERS; i++)
        if (stats[place].counter_names[i] &&
            strcmp(stats[place].counter_names[i], name) == 0)
            return stats[place].counters[i];
    fail_msg("filter %u has no counter %s", place, name);
    return 0;
}

uint64_t test_lane_counter(const struct test_lane *lane, const char *name)
{
    return counter_at(lane, 2, name);
}

uint64_t test_lane_decode_counter(const struct test_lane *lane, const char *name)
{
    return counter_at(lane, 0, name);
}
