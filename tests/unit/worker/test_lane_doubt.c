/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames between real senders (net/sender.h) and real lanes, over connections that break all the time, at any byte, with what is
 * under way lost or late in each direction: every frame reaches one graph, once, and none comes before the dictionary items that it
 * takes for granted. The register is played by its rule: who asks first about an epoch decides. Answers are late, or lost.
 *
 * The relay between them, and the register, are in the test's thread; the lanes are passed between threads of their own.
 */
#include "worker/lane.h"

#include "base/clock.h"
#include "net/bytes.h"
#include "net/frame_compress.h"
#include "net/sender.h"
#include "pipeline/source.h"
#include "tests/unit/unit_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SENDERS 8u
#define RECEIVERS 2u
#define FRAMES 1000u
#define WINDOW 12u /* frames */
#define PAYLOAD_MAX 400u
#define DICT_EVERY 25u  /* frames, of which one is an item */
#define CUT_AFTER 3000u /* bytes, on average */
#define ROUND_US 50     /* so that lanes have their say */
#define RELAYS_MAX 256u
#define DECISIONS_MAX 65536u
#define ANSWERS_MAX 256u
#define HELLO_MAX (MR_WIRE_HEADER_SIZE + MR_WIRE_MAX_CONTROL)
#define TYPE_AT 5 /* in a header, as the length */
#define LENGTH_AT 8
#define SETTLE_SIZE (MR_WIRE_HEADER_SIZE + MR_SETTLE_SIZE)
#define MAX_FRAME (1u << 16)
#define OUTBOX_SIZE (4u * MAX_FRAME)
#define PATIENCE_NS MR_MINUTE_NS
/* A deaf sender is cut off when so long nothing has come of it. */
#define DEAF_NS (20 * MR_MILLISECOND_NS)

/* What reached the graph of one receiver; its lane's thread. */
struct taken {
    struct chain *chain;
    struct {
        const struct mr_source *source;
        uint32_t items; /* 1 to it are known */
    } known[SENDERS];
};

struct receiver {
    struct taken taken, *taken_config;
    struct mr_graph *graph;
    struct mr_asks asks;
    struct mr_worker_counters counters;
    struct mr_lane lane;
};

struct source {
    struct mr_sender sender;
    uint8_t *outbox;
    struct mr_frame_compressor compressor;
    void *compressor_memory;
    uint32_t index;
    uint64_t quiet_until_ns;                         /* it has nothing to send */
    uint32_t items;                                  /* numbered so far */
    uint64_t item_sequence[FRAMES / DICT_EVERY + 2]; /* their frames */
};

/* One connection. It is cut when it has passed so many bytes, or at a time; before, the sender may become deaf. */
struct relay {
    int front, back; /* -1: closed, or not there yet */
    struct receiver *target;
    uint8_t hello[HELLO_MAX];
    size_t hello_size;
    uint64_t give_at_ns, cut_at_ns, end_at_ns, heard_ns;
    size_t passed, cut_after, deaf_after;
    bool is_used, is_late; /* what is under way at the cut arrives */
    uint32_t sloth;        /* in so many rounds, one looks at what comes down */
    uint8_t late[4096];
    size_t late_size;
};

struct decision {
    struct mr_id subject;
    uint64_t epoch, position;
};

struct chain {
    struct mr_test_random random;
    struct receiver receivers[RECEIVERS];
    struct mr_driver drivers[RECEIVERS];
    uint32_t passes;
    struct source sources[SENDERS];
    struct relay relays[RELAYS_MAX];
    struct decision decisions[DECISIONS_MAX];
    uint32_t decision_count;
    struct {
        uint64_t due_ns;
        struct receiver *receiver;
        struct mr_custody_ask ask;
    } answers[ANSWERS_MAX];
    uint32_t answer_count;
    int listener;
    struct sockaddr_in address;
    bool has_custody, is_calm;
    uint32_t cuts;
    _Atomic uint8_t used[SENDERS][FRAMES + 1];
    _Atomic uint32_t lacking;
};

static uint64_t below(struct chain *chain, uint64_t limit)
{
    return mr_test_random_below(&chain->random, limit);
}

/* The graph. */

static enum mr_status taken_open(struct mr_filter *filter, const void *config,
                                 struct mr_error *error)
{
    MR_UNUSED(error);
    memcpy(mr_filter_state(filter), config, sizeof(struct taken *));
    return MR_OK;
}

static void take(struct taken *taken, const struct mr_batch *batch)
{
    uint64_t index = batch->source->id.lo - 1;
    const struct mr_frame *frame = &batch->frame;
    uint32_t item, *known = &taken->known[index].items;

    assert_true(index < SENDERS && frame->payload.size >= sizeof(item));
    memcpy(&item, frame->payload.data, sizeof(item));
    if (taken->known[index].source != batch->source) {
        taken->known[index].source = batch->source;
        *known = 0;
    }
    if (frame->type == MR_FRAME_DICT && frame->sequence == 0 && item > *known)
        *known = item; /* a repetition has them all, from the first on */
    else if (frame->type == MR_FRAME_DICT && item == *known + 1)
        *known = item;
    if (item > *known)
        mr_add_relaxed(&taken->chain->lacking, 1);
    if (frame->sequence)
        mr_add_relaxed(&taken->chain->used[index][frame->sequence], 1);
}

static enum mr_status taken_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct taken **taken = mr_filter_state(filter);

    if (batch->kind == MR_BATCH_FRAME)
        take(*taken, batch);
    if (batch->kind == MR_BATCH_END) {
        (*taken)->known[batch->source->id.lo - 1].source = NULL;
        mr_store_release(&batch->source->is_done, true);
    }
    mr_batch_free(batch);
    return MR_OK;
}

static const struct mr_filter_kind taken_filter = {
    .name = "taken",
    .state_size = sizeof(struct taken *),
    .open = taken_open,
    .process = taken_process,
};

/* The receivers. */

static void wake(void *context, uint32_t lane)
{
    struct receiver *receiver = context;

    MR_UNUSED(lane);
    mr_lane_wake(&receiver->lane);
}

static void start_receiver(struct chain *chain, uint32_t index)
{
    struct receiver *receiver = &chain->receivers[index];
    const struct mr_graph_node node = {&taken_filter, &receiver->taken_config,
                                       MR_PLACE_FUSED};
    struct mr_error error = MR_ERROR_NONE;
    struct mr_lane_config config = {.name = "lane",
                                    .credit = MAX_FRAME,
                                    .source_grace_ns = MR_MINUTE_NS,
                                    .max_senders = SENDERS,
                                    .max_frame = MAX_FRAME,
                                    .counters = &receiver->counters,
                                    .has_custody = chain->has_custody,
                                    .self = {7, index + 1},
                                    .asks = &receiver->asks,
                                    .driver = &chain->drivers[index]};

    receiver->taken.chain = chain;
    receiver->taken_config = &receiver->taken;
    mr_asks_init(&receiver->asks, wake, receiver);
    assert_int_equal(mr_graph_new(&node, 1, "lane", &receiver->graph, &error), MR_OK);
    assert_int_equal(mr_graph_start(receiver->graph), MR_OK);
    config.graph = receiver->graph;
    assert_int_equal(mr_lane_start(&receiver->lane, &config, &error), MR_OK);
}

/* The senders. */

static size_t write_hello(void *context, const struct mr_custody_hello *custody,
                          uint8_t *out, size_t capacity)
{
    const struct source *source = context;
    const struct mr_hello hello = {
        .sender = {9, source->index + 1},
        .oldest = custody->acked + 1,
        .token = "",
        .source = {.host = "host",
                   .app = "app",
                   .version = "1",
                   .exe = "exe",
                   .clock_warning = "",
                   .clock = {.kind = MR_CLOCK_MONOTONIC, .mult = 1}},
        .custody = *custody};

    return mr_hello_put(&hello, out, capacity);
}

/* The items that were acknowledged, in some payloads: all up to the one that each names. */
static size_t announce(void *context, uint64_t *cursor, uint8_t *out, size_t capacity)
{
    const struct source *source = context;
    uint32_t acked = 0;

    assert_true(capacity >= sizeof(acked));
    while (acked < source->items &&
           source->item_sequence[acked + 1] < source->sender.oldest_sequence)
        acked++;
    if (*cursor >= acked)
        return 0;
    *cursor += 1 + acked / 4;
    if (*cursor < acked)
        acked = (uint32_t)*cursor;
    memcpy(out, &acked, sizeof(acked));
    return sizeof(acked);
}

static void start_source(struct chain *chain, uint32_t index)
{
    struct source *source = &chain->sources[index];
    size_t compressor_size = mr_frame_compressor_size(MR_FRAME_COMPRESS_LEVEL);
    struct mr_sender_config config = {.address_count = 1,
                                      .incarnation = {9, index + 1},
                                      .outbox_size = OUTBOX_SIZE,
                                      .max_frame = MAX_FRAME,
                                      .now_ns_seed = chain->random.state,
                                      .backoff_min_ns = MR_MILLISECOND_NS,
                                      .backoff_max_ns = 20 * MR_MILLISECOND_NS,
                                      .hello = write_hello,
                                      .announce = announce,
                                      .context = source};

    source->index = index;
    source->outbox = malloc(OUTBOX_SIZE);
    source->compressor_memory = malloc(compressor_size);
    assert_non_null(source->outbox);
    assert_non_null(source->compressor_memory);
    assert_int_equal(mr_frame_compressor_init(&source->compressor,
                                              MR_FRAME_COMPRESS_LEVEL,
                                              source->compressor_memory, compressor_size),
                     MR_OK);
    config.outbox = source->outbox;
    memcpy(&config.addresses[0].address, &chain->address, sizeof(chain->address));
    config.addresses[0].size = sizeof(chain->address);
    assert_int_equal(mr_sender_init(&source->sender, &config), MR_OK);
}

static void commit(struct chain *chain, struct source *source)
{
    static const uint8_t zeros[PAYLOAD_MAX];
    bool is_item =
        below(chain, DICT_EVERY) == 0 && source->items + 1 < FRAMES / DICT_EVERY;
    uint32_t item = source->items + is_item;
    size_t size = sizeof(item) + below(chain, PAYLOAD_MAX - sizeof(item)), packed = 0;
    uint8_t payload[PAYLOAD_MAX], *out = mr_sender_reserve(&source->sender, PAYLOAD_MAX);
    uint64_t sequence;

    if (!out)
        return;
    memcpy(payload, zeros, sizeof(payload));
    memcpy(payload, &item, sizeof(item));
    if (below(chain, 4) == 0)
        packed = mr_frame_compress(&source->compressor, mr_span_of(payload, size), out,
                                   PAYLOAD_MAX);
    if (packed == 0)
        memcpy(out, payload, size);
    sequence =
        mr_sender_commit(&source->sender, is_item ? MR_FRAME_DICT : MR_FRAME_CHUNKS,
                         packed ? MR_WIRE_FLAG_ZSTD : 0, packed ? packed : size);
    if (is_item)
        source->item_sequence[++source->items] = sequence;
}

/* Some frames are under way at most: with more, a connection that is new were cut before its first acknowledgement. */
static bool may_commit(struct chain *chain, const struct source *source, uint64_t now_ns)
{
    const struct mr_sender *sender = &source->sender;

    return sender->next_sequence <= FRAMES && now_ns >= source->quiet_until_ns &&
           sender->next_sequence - sender->oldest_sequence < 1 + below(chain, WINDOW);
}

static bool has_sent_all(struct chain *chain, struct source *source)
{
    uint64_t now_ns = mr_clock_monotonic_ns();

    if (may_commit(chain, source, now_ns))
        commit(chain, source);
    if (now_ns >= source->quiet_until_ns && below(chain, 50) == 0)
        source->quiet_until_ns = now_ns + below(chain, 20) * MR_MILLISECOND_NS;
    (void)mr_sender_poll(&source->sender, 0);
    return source->sender.next_sequence > FRAMES;
}

/* The register. */

static uint64_t decide(struct chain *chain, const struct mr_custody_ask *ask)
{
    for (uint32_t i = 0; i < chain->decision_count; i++) {
        const struct decision *decision = &chain->decisions[i];

        if (mr_id_equal(decision->subject, ask->subject) && decision->epoch == ask->epoch)
            return decision->position;
    }
    assert_true(chain->decision_count < DECISIONS_MAX);
    chain->decisions[chain->decision_count++] =
        (struct decision){ask->subject, ask->epoch, ask->position};
    return ask->position;
}

static void hear_questions(struct chain *chain, struct receiver *receiver,
                           uint64_t now_ns)
{
    struct mr_custody_ask ask;

    if (below(chain, 200) == 0) /* the connection to the register is a new one */
        mr_asks_mark_unsent(&receiver->asks);
    while (chain->answer_count < ANSWERS_MAX && mr_asks_next(&receiver->asks, &ask)) {
        mr_asks_mark_sent(&receiver->asks, &ask);
        ask.position = decide(chain, &ask);
        if (below(chain, 5) == 0)
            continue; /* lost */
        chain->answers[chain->answer_count].due_ns =
            now_ns + below(chain, 30) * MR_MILLISECOND_NS;
        chain->answers[chain->answer_count].receiver = receiver;
        chain->answers[chain->answer_count++].ask = ask;
    }
}

static void run_register(struct chain *chain, uint64_t now_ns)
{
    for (uint32_t i = 0; i < RECEIVERS; i++)
        hear_questions(chain, &chain->receivers[i], now_ns);
    for (uint32_t i = 0; i < chain->answer_count;) {
        if (chain->answers[i].due_ns > now_ns) {
            i++;
            continue;
        }
        mr_asks_answer(&chain->answers[i].receiver->asks, &chain->answers[i].ask);
        chain->answers[i] = chain->answers[--chain->answer_count];
    }
}

/* The relay. */

static void accept_some(struct chain *chain, uint64_t now_ns)
{
    for (uint32_t i = 0; i < RELAYS_MAX; i++) {
        struct relay *relay = &chain->relays[i];
        int fd;

        if (relay->is_used)
            continue;
        fd = accept4(chain->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            return;
        *relay = (struct relay){.front = fd,
                                .back = -1,
                                .is_used = true,
                                .is_late = below(chain, 2) == 0,
                                .target = &chain->receivers[below(chain, RECEIVERS)]};
        relay->sloth = 1 + (uint32_t)below(chain, 10);
        relay->give_at_ns =
            now_ns + (below(chain, 8) ? 0 : below(chain, 40)) * MR_MILLISECOND_NS;
        relay->heard_ns = now_ns;
        relay->cut_at_ns =
            below(chain, 2) ? UINT64_MAX : now_ns + below(chain, 50) * MR_MILLISECOND_NS;
        relay->cut_after =
            1 + below(chain, below(chain, 3) ? 2 * CUT_AFTER : PAYLOAD_MAX);
        relay->deaf_after =
            below(chain, 10) < 7 ? below(chain, relay->cut_after) : SIZE_MAX;
    }
}

static void close_front(struct chain *chain, struct relay *relay, uint64_t now_ns)
{
    (void)close(relay->front);
    relay->front = -1;
    relay->end_at_ns =
        now_ns + (below(chain, 2) ? 0 : below(chain, 60)) * MR_MILLISECOND_NS;
}

/* All of it; what the other end no longer takes is lost. */
static void pass(int fd, const uint8_t *data, size_t size)
{
    size_t done = 0;
    ssize_t sent = 1;

    while (done < size && sent > 0) {
        sent = send(fd, data + done, size - done, MSG_NOSIGNAL);
        done += sent > 0 ? (size_t)sent : 0;
    }
}

static bool has_whole_hello(const struct relay *relay)
{
    return relay->hello_size >= MR_WIRE_HEADER_SIZE &&
           relay->hello_size >=
               MR_WIRE_HEADER_SIZE + mr_get_u32(relay->hello + LENGTH_AT);
}

/* What the greeter does. */
static void give(struct relay *relay, uint64_t now_ns)
{
    struct mr_connection *connection;
    struct mr_frame frame;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    relay->back = pair[0];
    pass(relay->back, relay->hello, relay->hello_size);
    connection = mr_connection_new(pair[1], "sender", MAX_FRAME, now_ns);
    assert_non_null(connection);
    assert_int_equal(mr_conn_read(&connection->conn), MR_OK);
    assert_int_equal(mr_conn_next(&connection->conn, &frame), MR_OK);
    assert_int_equal(mr_hello_get(frame.payload, &connection->hello, NULL), MR_OK);
    mr_lane_give(&relay->target->lane, connection);
}

static void tend_hello(struct chain *chain, struct relay *relay, uint64_t now_ns)
{
    ssize_t size;

    if (relay->front >= 0 && !has_whole_hello(relay)) {
        size = recv(relay->front, relay->hello + relay->hello_size,
                    sizeof(relay->hello) - relay->hello_size, MSG_DONTWAIT);
        if (size > 0)
            relay->hello_size += (size_t)size;
        else if (size == 0 || errno != EAGAIN)
            close_front(chain, relay, now_ns);
    }
    if (has_whole_hello(relay) && now_ns >= relay->give_at_ns)
        give(relay, now_ns);
    else if (relay->front < 0 && !has_whole_hello(relay))
        relay->is_used = false;
}

/* At the byte that was drawn. */
static void cut(struct chain *chain, struct relay *relay, const uint8_t *data,
                size_t size, uint64_t now_ns)
{
    chain->cuts++;
    if (relay->is_late) {
        memcpy(relay->late, data, size);
        relay->late_size = size;
    }
    close_front(chain, relay, now_ns);
}

/* What lies behind a frame that is held has to be told from the frames of later. */
static bool ends_with_settle(const uint8_t *data, size_t size)
{
    return size >= SETTLE_SIZE && data[size - SETTLE_SIZE + TYPE_AT] == MR_FRAME_SETTLE &&
           mr_get_u32(data + size - SETTLE_SIZE + LENGTH_AT) == MR_SETTLE_SIZE;
}

static void pass_up(struct chain *chain, struct relay *relay, uint64_t now_ns)
{
    uint8_t data[sizeof(relay->late)];
    ssize_t got = recv(relay->front, data, sizeof(data), MSG_DONTWAIT);
    size_t size = got > 0 ? (size_t)got : 0, now = size;
    bool is_deaf = relay->passed >= relay->deaf_after;

    if (got == 0 || (got < 0 && errno != EAGAIN)) {
        close_front(chain, relay, now_ns);
        return;
    }
    if (size > 0)
        relay->heard_ns = now_ns;
    if (ends_with_settle(data, size) && below(chain, 4) == 0)
        relay->cut_after = relay->passed + size;
    if (!chain->is_calm && relay->passed + size >= relay->cut_after)
        now = relay->cut_after - relay->passed;
    pass(relay->back, data, now);
    relay->passed += now;
    /* Who has missed something does not go on, calm or not. */
    if (now < size ||
        (!chain->is_calm &&
         (relay->passed >= relay->cut_after || now_ns >= relay->cut_at_ns)) ||
        (is_deaf && (chain->is_calm || now_ns - relay->heard_ns > DEAF_NS)))
        cut(chain, relay, data + now, size - now, now_ns);
}

/* False: the receiver has closed it. */
static bool pass_down(struct relay *relay)
{
    uint8_t data[sizeof(relay->late)];
    ssize_t got = recv(relay->back, data, sizeof(data), MSG_DONTWAIT);

    if (got > 0 && relay->front >= 0 && relay->passed < relay->deaf_after)
        pass(relay->front, data, (size_t)got);
    return got > 0 || (got < 0 && errno == EAGAIN);
}

static void end_relay(struct relay *relay)
{
    if (relay->front >= 0)
        (void)close(relay->front);
    if (relay->back >= 0)
        (void)close(relay->back);
    relay->is_used = false;
}

static void tend_relay(struct chain *chain, struct relay *relay, uint64_t now_ns)
{
    if (relay->back < 0) {
        tend_hello(chain, relay, now_ns);
        return;
    }
    if (relay->front >= 0)
        pass_up(chain, relay, now_ns);
    if (relay->front < 0 && now_ns >= relay->end_at_ns) {
        pass(relay->back, relay->late, relay->late_size);
        end_relay(relay);
    } else if (below(chain, relay->sloth) == 0 && !pass_down(relay)) {
        end_relay(relay);
    }
}

static void run_relay(struct chain *chain)
{
    uint64_t now_ns = mr_clock_monotonic_ns();

    accept_some(chain, now_ns);
    for (uint32_t i = 0; i < RELAYS_MAX; i++)
        if (chain->relays[i].is_used)
            tend_relay(chain, &chain->relays[i], now_ns);
    run_register(chain, now_ns);
}

/* The runs. */

static struct chain *new_chain(bool has_custody)
{
    struct chain *chain = calloc(1, sizeof(*chain));
    socklen_t size = sizeof(chain->address);

    assert_non_null(chain);
    chain->random = mr_test_random_new();
    chain->has_custody = has_custody;
    chain->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    chain->address = (struct sockaddr_in){.sin_family = AF_INET,
                                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(chain->listener, (struct sockaddr *)&chain->address, size), 0);
    assert_int_equal(listen(chain->listener, SOMAXCONN), 0);
    assert_int_equal(
        getsockname(chain->listener, (struct sockaddr *)&chain->address, &size), 0);
    for (uint32_t i = 0; i < RECEIVERS; i++)
        assert_int_equal(mr_driver_start(&chain->drivers[i], "driver", NULL), MR_OK);
    for (uint32_t i = 0; i < RECEIVERS; i++)
        start_receiver(chain, i);
    for (uint32_t i = 0; i < SENDERS; i++)
        start_source(chain, i);
    return chain;
}

static bool are_drained(const struct chain *chain)
{
    bool are = true;

    for (uint32_t i = 0; i < SENDERS; i++)
        are &= mr_sender_is_drained(&chain->sources[i].sender);
    return are;
}

/* A lane goes from the driver that has it to another, between two turns. */
static void pass_lane(struct chain *chain)
{
    struct mr_driven *driven = &chain->receivers[below(chain, RECEIVERS)].lane.driven;
    struct mr_driver *from = mr_load_relaxed(&driven->driver); /* a hint */
    struct mr_driver *to = &chain->drivers[below(chain, RECEIVERS)];

    if (from && from != to)
        chain->passes += mr_driver_pass(from, driven, to);
}

/* Until all is acknowledged; then half of the senders say BYE, and the others are gone without a word. */
static void send_all(struct chain *chain)
{
    uint64_t end_ns = mr_clock_monotonic_ns() + PATIENCE_NS;
    bool have_sent_all = false;

    while (!have_sent_all || !are_drained(chain)) {
        have_sent_all = true;
        for (uint32_t i = 0; i < SENDERS; i++)
            have_sent_all &= has_sent_all(chain, &chain->sources[i]);
        chain->is_calm = have_sent_all;
        if (below(chain, 2000) == 0)
            mr_lane_move(&chain->receivers[below(chain, RECEIVERS)].lane, 1);
        if (below(chain, 50) == 0)
            pass_lane(chain);
        run_relay(chain);
        (void)usleep(ROUND_US);
        if (mr_clock_monotonic_ns() > end_ns)
            fail_msg("not all is acknowledged after a minute");
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        if (i % 2)
            (void)mr_sender_finish(&chain->sources[i].sender, MR_BYE_FINISHED, 0);
        else
            mr_sender_fini(&chain->sources[i].sender);
    }
}

static void stop_receivers(struct chain *chain)
{
    uint64_t end_ns = mr_clock_monotonic_ns() + PATIENCE_NS;
    bool have_ended = false;

    for (uint32_t i = 0; i < RECEIVERS; i++)
        mr_lane_stop(&chain->receivers[i].lane, end_ns);
    while (!have_ended) {
        have_ended = true;
        for (uint32_t i = 0; i < RECEIVERS; i++)
            have_ended &= mr_lane_has_ended(&chain->receivers[i].lane);
        run_relay(chain);
    }
    for (uint32_t i = 0; i < RECEIVERS; i++)
        mr_driver_stop(&chain->drivers[i]);
    for (uint32_t i = 0; i < RECEIVERS; i++) {
        struct receiver *receiver = &chain->receivers[i];

        mr_lane_join(&receiver->lane);
        mr_graph_free(receiver->graph);
        mr_lane_fini(&receiver->lane);
        mr_asks_fini(&receiver->asks);
        assert_int_equal(receiver->lane.left_in_doubt, 0);
        assert_int_equal(mr_load_relaxed(&receiver->counters.frames_in_doubt), 0);
    }
}

/* Frames that were not used once. */
static uint32_t count_wrong(const struct chain *chain)
{
    uint32_t lost = 0, twice = 0;

    for (uint32_t i = 0; i < SENDERS; i++)
        for (uint32_t sequence = 1; sequence <= FRAMES; sequence++) {
            lost += mr_load_relaxed(&chain->used[i][sequence]) == 0;
            twice += mr_load_relaxed(&chain->used[i][sequence]) > 1;
        }
    print_message(
        "%u cuts, %u lanes passed, %u epochs asked about; %u of %u frames lost, "
        "%u used twice\n",
        chain->cuts, chain->passes, chain->decision_count, lost, SENDERS * FRAMES, twice);
    return lost + twice;
}

static void free_chain(struct chain *chain)
{
    for (uint32_t i = 0; i < RELAYS_MAX; i++)
        if (chain->relays[i].is_used)
            end_relay(&chain->relays[i]);
    for (uint32_t i = 0; i < SENDERS; i++) {
        free(chain->sources[i].outbox);
        free(chain->sources[i].compressor_memory);
    }
    (void)close(chain->listener);
    free(chain);
}

static void every_frame_is_used_once(void **state)
{
    struct chain *chain = new_chain(true);

    MR_UNUSED(state);
    send_all(chain);
    stop_receivers(chain);
    assert_int_equal(count_wrong(chain), 0);
    assert_int_equal(mr_load_relaxed(&chain->lacking), 0);
    assert_true(chain->cuts > SENDERS * 10);
    assert_true(chain->decision_count > SENDERS * 5);
    assert_true(chain->passes > 10);
    free_chain(chain);
}

/* Or the test above would find nothing. */
static void without_custody_they_are_not(void **state)
{
    struct chain *chain = new_chain(false);

    MR_UNUSED(state);
    send_all(chain);
    stop_receivers(chain);
    assert_true(count_wrong(chain) > 0);
    free_chain(chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_frame_is_used_once),
        cmocka_unit_test(without_custody_they_are_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
