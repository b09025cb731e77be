/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose frames are whose: net/custody.h at work for the senders of a lane.
 *
 * A frame that came is held, in the buffer of its connection, until the sender has said that it knows it to be here; then
 * it goes into the graph. What a connection holds when it breaks moves into the sender's `held`, and waits there for the
 * sender's return or for the register.
 */
#include "base/assert.h"
#include "base/log.h"
#include "pipeline/source.h"
#include "worker/lane_private.h"

#include <inttypes.h>

/* Of the lane's time, for what one sender has settled: that may be seconds of work, and others wait. */
#define SLICE_NS (10 * MR_MILLISECOND_NS)

bool mr_lane_is_settled(const struct mr_lane_sender *sender)
{
    return sender->custody.settled == sender->custody.taken;
}

static bool is_in_doubt(const struct mr_lane_sender *sender)
{
    return sender->custody.state == MR_CUSTODY_BROKEN ||
           sender->custody.state == MR_CUSTODY_CLAIMING;
}

static void forget_held(struct mr_lane_sender *sender)
{
    mr_buffer_fini(&sender->held);
    mr_buffer_init(&sender->held, SIZE_MAX);
}

static void lose_held(struct mr_lane *lane, const struct mr_lane_sender *sender,
                      uint64_t count)
{
    mr_log_error("%s: %" PRIu64 " frames before frame %" PRIu64
                 " of a sender cannot be read again; they are lost and counted",
                 lane->config.name, count, sender->held_sequence + count);
    mr_lane_count(&lane->config.counters->frames_in_doubt, count);
}

/* The next of `held`. */
static void push_again(struct mr_lane *lane, struct mr_lane_sender *sender,
                       struct mr_frame *frame)
{
    bool is_whole =
        !(frame->flags & MR_WIRE_FLAG_ZSTD) ||
        mr_frame_expand(&lane->expander, lane->config.max_frame, frame, NULL) == MR_OK;
    uint64_t lost = frame->sequence - sender->held_sequence + !is_whole;

    if (lost > 0)
        lose_held(lane, sender, lost);
    sender->held_sequence = frame->sequence + 1;
    if (is_whole)
        mr_lane_push_frame(lane, sender, frame);
}

/*
 * The frames of `held` that are settled now. Control frames and duplicates between and behind them go with them: what stays
 * would be taken for frames that are held.
 */
static void push_held(struct mr_lane *lane, struct mr_lane_sender *sender)
{
    struct mr_span rest = mr_buffer_span(&sender->held), ahead = rest;
    struct mr_frame frame;

    while (mr_frame_take_again(&ahead, &frame) &&
           frame.sequence <= sender->custody.settled) {
        rest = ahead;
        if (frame.sequence >= sender->held_sequence)
            push_again(lane, sender, &frame);
    }
    mr_buffer_consume(&sender->held, sender->held.size - rest.size);
    if (rest.size == 0)
        forget_held(sender);
}

/* One frame at least. MR_AGAIN: there is no more; MR_OK: it is `until_ns`. */
static enum mr_status push_until(struct mr_lane *lane, struct mr_lane_sender *sender,
                                 uint64_t until_ns)
{
    struct mr_frame frame;
    enum mr_status status = MR_AGAIN;

    if (sender->held.size > 0)
        push_held(lane, sender);
    while (sender->connection &&
           (status = mr_conn_next_settled(&sender->connection->conn,
                                          sender->custody.settled, &frame)) == MR_OK) {
        mr_lane_push_frame(lane, sender, &frame);
        if (mr_clock_monotonic_ns() >= until_ns)
            break;
    }
    return status;
}

enum mr_status mr_lane_push_settled(struct mr_lane *lane, struct mr_lane_sender *sender)
{
    return push_until(lane, sender, UINT64_MAX);
}

bool mr_lane_is_behind(const struct mr_connection *connection)
{
    const struct mr_lane_sender *sender = connection->sender;
    const struct mr_conn *conn = &connection->conn;

    return sender && sender->connection == connection && conn->hold_max > 0 &&
           conn->held_sequence < conn->next_sequence &&
           conn->held_sequence <= sender->custody.settled;
}

enum mr_status mr_lane_settle(struct mr_lane *lane, struct mr_connection *connection)
{
    struct mr_lane_sender *sender = connection->sender;
    bool was_behind = mr_lane_is_behind(connection);
    enum mr_status status;

    if (!mr_custody_settle(&sender->custody, connection->conn.settled) && !was_behind)
        return MR_OK;
    mr_lane_credit_settled(lane, connection);
    status = push_until(lane, sender, mr_clock_monotonic_ns() + SLICE_NS);
    if (!was_behind)
        mr_lane_credit_used(lane, connection);
    return status;
}

void mr_lane_lose(struct mr_lane *lane, struct mr_lane_sender *sender,
                  const struct mr_connection *connection)
{
    const struct mr_conn *conn = &connection->conn;

    if (sender->custody.state != MR_CUSTODY_OPEN)
        return;
    if (mr_lane_is_behind(connection))
        (void)mr_lane_push_settled(lane, sender); /* what fails is with it */
    mr_custody_break(&sender->custody);
    lane->doubts++; /* until the next tick has counted: a lane that stops does not end before */
    sender->has_left = conn->finished;
    sender->bye_reason = conn->bye_reason;
    if (conn->finished)
        mr_lane_keep_state(lane, sender);
    if (conn->held_sequence == conn->next_sequence)
        return;
    if (sender->held.size == 0)
        sender->held_sequence = conn->held_sequence;
    if (mr_conn_copy_held(conn, &sender->held) == MR_OK)
        return;
    mr_log_error("%s: no memory to keep %" PRIu64 " frames; they are lost and counted",
                 connection->conn.peer, sender->custody.taken - sender->custody.settled);
    mr_lane_give_up(lane, sender);
}

void mr_lane_give_up(struct mr_lane *lane, struct mr_lane_sender *sender)
{
    mr_lane_count(&lane->config.counters->frames_in_doubt,
                  sender->custody.taken - sender->custody.settled);
    sender->custody.taken = sender->custody.settled;
    if (sender->custody.state == MR_CUSTODY_BROKEN)
        (void)mr_custody_claim(&sender->custody); /* nothing: it is closed */
    mr_lane_keep_state(lane, sender);
    forget_held(sender);
}

/* The sender has a source from here on; false: no memory. What another receiver had between makes it a new one. */
static bool has_source(struct mr_lane *lane, struct mr_lane_sender *sender,
                       struct mr_connection *connection, uint64_t next_sequence)
{
    if (sender->source && next_sequence != sender->next_sequence)
        mr_lane_end_source(lane, sender, MR_SOURCE_LIVE);
    sender->next_sequence = next_sequence;
    if (sender->source)
        return true;
    if (mr_source_new(&connection->hello.hello, lane->config.group_by_host,
                      &sender->source) != MR_OK)
        return false;
    sender->source->is_continuation |= next_sequence > 1;
    connection->conn.takes_resume =
        sender->source->role == MR_ROLE_PROBE && connection->hello.hello.resume_max > 0;
    sender->lacks_dictionary = sender->source->is_continuation;
    return true;
}

static void refuse_for_room(struct mr_lane *lane, struct mr_connection *connection)
{
    mr_lane_refuse(lane, connection, MR_WIRE_ERROR_LIMIT,
                   "too many senders (--max-senders), or no memory");
}

static void log_welcome(const struct mr_connection *connection)
{
    const struct mr_hello *hello = &connection->hello.hello;

    mr_log_debug("%s: welcomed %s %s", connection->conn.peer,
                 hello->role == MR_ROLE_WORKER ? "worker" : "probe of",
                 hello->source.app);
}

/* Its epoch is open. */
static void welcome(struct mr_lane *lane, struct mr_lane_sender *sender,
                    struct mr_connection *connection, bool begins)
{
    const struct mr_custody *custody = &sender->custody;

    sender->waiting = NULL;
    sender->connection = connection;
    sender->has_asked = sender->has_left = false;
    if (!begins && !mr_lane_has_kept_end(sender)) {
        mr_lane_refuse(lane, connection, MR_WIRE_ERROR_BUSY,
                       "its source has just ended here, and that is not kept yet");
        return;
    }
    if (!has_source(lane, sender, connection, custody->taken + 1)) {
        refuse_for_room(lane, connection);
        return;
    }
    if (!mr_lane_keep_sender(lane, sender, connection, begins)) {
        mr_lane_refuse(lane, connection, MR_WIRE_ERROR_BUSY,
                       "the worker's spool is full");
        return;
    }
    sender->is_recovered = false;
    connection->conn.wants_dictionary = sender->lacks_dictionary;
    mr_lane_count(&lane->config.counters->greeted, 1);
    mr_lane_credit_begin(lane, connection);
    mr_conn_hold(&connection->conn, (size_t)lane->config.credit + lane->config.max_frame);
    (void)mr_conn_welcome_epoch(&connection->conn, custody->taken + 1, connection->credit,
                                custody->epoch, lane->config.self);
    log_welcome(connection);
}

/* One that knows no custody: what it sends is used at once. What we lack and it no longer holds, another receiver has. */
static void welcome_trusting(struct mr_lane *lane, struct mr_lane_sender *sender,
                             struct mr_connection *connection)
{
    uint64_t oldest = connection->hello.hello.oldest;
    uint64_t next = sender->next_sequence < oldest ? oldest : sender->next_sequence;

    sender->connection = connection;
    if (!has_source(lane, sender, connection, next)) {
        refuse_for_room(lane, connection);
        return;
    }
    connection->credit = lane->config.credit;
    connection->conn.wants_dictionary = sender->lacks_dictionary;
    mr_lane_count(&lane->config.counters->greeted, 1);
    (void)mr_conn_welcome(&connection->conn, next, lane->config.credit);
    log_welcome(connection);
}

static void ask(struct mr_lane *lane, struct mr_lane_sender *sender,
                const struct mr_custody_ask *body)
{
    struct mr_ask question = {.body = *body, .lane = lane->config.index};

    if (sender->has_asked)
        return;
    sender->has_asked = mr_asks_put(lane->config.asks, &question) == MR_OK;
    if (sender->has_asked)
        mr_lane_count(body->is_claim ? &lane->config.counters->claims
                                     : &lane->config.counters->takeovers,
                      1);
}

static void ask_to_claim(struct mr_lane *lane, struct mr_lane_sender *sender)
{
    const struct mr_custody_ask body = {.subject = sender->id,
                                        .epoch = sender->custody.epoch,
                                        .position = sender->custody.taken,
                                        .is_claim = true};

    ask(lane, sender, &body);
}

static void ask_to_take_over(struct mr_lane *lane, struct mr_lane_sender *sender)
{
    const struct mr_custody_hello *hello = &sender->waiting->hello.hello.custody;
    const struct mr_custody_ask body = {
        .subject = sender->id, .epoch = hello->epoch, .position = hello->acked};

    ask(lane, sender, &body);
}

static void claim(struct mr_lane *lane, struct mr_lane_sender *sender)
{
    bool begins = sender->custody.state == MR_CUSTODY_BROKEN;

    if (begins && !mr_custody_claim(&sender->custody))
        return;
    if (begins)
        mr_lane_keep_state(lane, sender);
    ask_to_claim(lane, sender);
}

static void begin(struct mr_lane *lane, struct mr_lane_sender *sender,
                  struct mr_connection *connection, uint64_t position)
{
    if (sender->source && position + 1 != sender->next_sequence)
        mr_lane_end_source(lane, sender, MR_SOURCE_LIVE);
    /* The spool has frames of one epoch of a sender, and one source. */
    if (!mr_lane_is_covered(sender)) {
        sender->waiting = connection;
        sender->begin_after = position;
        sender->has_begin = true;
        return;
    }
    sender->has_begin = false;
    MR_DEBUG_ASSERT(sender->held.size == 0);
    mr_custody_begin(&sender->custody, &connection->hello.hello.custody, position);
    welcome(lane, sender, connection, true);
}

/* Again, when what it waited for is decided. */
static void greet(struct mr_lane *lane, struct mr_lane_sender *sender,
                  struct mr_connection *connection)
{
    const struct mr_custody_hello *hello = &connection->hello.hello.custody;

    switch (mr_custody_greet(&sender->custody, lane->config.self, hello)) {
    case MR_CUSTODY_GO_ON:
        welcome(lane, sender, connection, false);
        break;
    case MR_CUSTODY_BEGIN:
        begin(lane, sender, connection, hello->sent);
        break;
    case MR_CUSTODY_ASK:
        sender->waiting = connection;
        ask_to_take_over(lane, sender);
        break;
    case MR_CUSTODY_CLAIM_FIRST:
        sender->waiting = connection;
        claim(lane, sender);
        if (sender->custody.state == MR_CUSTODY_CLOSED)
            greet(lane, sender, connection);
        break;
    case MR_CUSTODY_STALE:
        mr_lane_refuse(lane, connection, MR_WIRE_ERROR_STATE,
                       "a newer connection of this sender was here already");
        break;
    }
}

void mr_lane_greet(struct mr_lane *lane, struct mr_connection *connection)
{
    const struct mr_hello *hello = &connection->hello.hello;
    struct mr_lane_sender *sender = mr_senders_find(&lane->senders, hello->sender);

    if (sender)
        mr_lane_count(&lane->config.counters->returned, 1);
    else if (!mr_lane_is_left(lane, hello->sender))
        sender = mr_senders_add(&lane->senders, hello->sender);
    if (!sender) {
        refuse_for_room(lane, connection);
        return;
    }
    /* A sender has one connection: an older one is half dead. */
    if (sender->connection)
        mr_lane_close(lane, sender->connection);
    if (sender->waiting)
        mr_lane_close(lane, sender->waiting);
    connection->sender = sender;
    if (lane->config.has_custody && hello->custody.is_told)
        greet(lane, sender, connection);
    else
        welcome_trusting(lane, sender, connection);
}

bool mr_lane_tend_doubt(struct mr_lane *lane, struct mr_lane_sender *sender)
{
    bool may_return =
        !lane->is_moving && !sender->has_left &&
        lane->now_ns - sender->away_ns <
            (sender->is_recovered ? MR_LANE_RECOVERED_RETURN_NS : MR_LANE_RETURN_NS);

    if (sender->custody.state == MR_CUSTODY_CLAIMING ||
        (sender->custody.state == MR_CUSTODY_BROKEN && !may_return))
        claim(lane, sender);
    else if (sender->waiting && sender->has_begin)
        begin(lane, sender, sender->waiting, sender->begin_after);
    else if (sender->waiting)
        ask_to_take_over(lane, sender);
    return is_in_doubt(sender) || sender->waiting;
}

void mr_lane_pass_on(struct mr_lane *lane, struct mr_connection *connection,
                     const struct mr_frame *frame)
{
    struct mr_ask question = {.asker = connection->sender->id,
                              .lane = lane->config.index};

    /* Each question is kept at the master for 30 days, and may cut off whom it is about. */
    if (connection->hello.hello.role == MR_ROLE_PROBE) {
        mr_lane_refuse(lane, connection, MR_WIRE_ERROR_STATE,
                       "ASK from a probe: only workers ask the register");
    } else if (mr_ask_get(frame->payload, &question.body) != MR_OK) {
        mr_lane_refuse(lane, connection, MR_WIRE_ERROR_FORMAT, "bad ASK");
    } else if (mr_asks_put(lane->config.asks, &question) != MR_OK) {
        mr_asks_forget(lane->config.asks, question.asker);
        mr_lane_refuse(lane, connection, MR_WIRE_ERROR_BUSY,
                       "too many questions to the register are under way");
    }
}

static void on_claimed(struct mr_lane *lane, struct mr_lane_sender *sender,
                       const struct mr_custody_ask *answer)
{
    struct mr_connection *waiting = sender->waiting;
    uint64_t taken = sender->custody.taken;

    if (sender->custody.state != MR_CUSTODY_CLAIMING ||
        sender->custody.epoch != answer->epoch)
        return;
    mr_custody_decide(&sender->custody, answer->position);
    mr_lane_keep_state(lane, sender);
    mr_lane_count(&lane->config.counters->frames_handed_over,
                  taken - sender->custody.settled);
    (void)mr_lane_push_settled(lane, sender);
    forget_held(sender);
    sender->next_sequence = sender->custody.taken + 1;
    sender->has_asked = false;
    if (waiting)
        greet(lane, sender, waiting);
}

static void on_taken_over(struct mr_lane *lane, struct mr_lane_sender *sender,
                          const struct mr_custody_ask *answer)
{
    struct mr_connection *waiting = sender->waiting;
    const struct mr_custody_hello *hello;

    if (is_in_doubt(sender))
        return;
    /* Whoever waits now may be another than who asked: if this is no answer for it, it asks at the next tick. */
    sender->has_asked = false;
    if (!waiting || sender->has_begin)
        return;
    hello = &waiting->hello.hello.custody;
    if (hello->epoch != answer->epoch)
        return;
    if (answer->position >= hello->acked && answer->position <= hello->sent)
        begin(lane, sender, waiting, answer->position);
    else
        mr_lane_refuse(lane, waiting, MR_WIRE_ERROR_SEQUENCE,
                       "the register knows other frames of this sender");
}

void mr_lane_take_answers(struct mr_lane *lane)
{
    struct mr_ask answer;

    while (mr_asks_take(lane->config.asks, lane->config.index, &answer)) {
        bool is_own = mr_id_is_zero(answer.asker);
        struct mr_lane_sender *sender =
            mr_senders_find(&lane->senders, is_own ? answer.body.subject : answer.asker);

        if (!sender)
            continue;
        if (!is_own && sender->connection)
            (void)mr_conn_answer(&sender->connection->conn, &answer.body);
        else if (is_own && answer.body.is_claim)
            on_claimed(lane, sender, &answer.body);
        else if (is_own)
            on_taken_over(lane, sender, &answer.body);
    }
}
