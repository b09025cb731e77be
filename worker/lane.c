/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field       written by        read by       access
 * given       greeter, lane     lane          under given_lock; wake_fd tells
 * stop_at_ns  main thread       lane          release store [S], acquire load [T]; wake_fd tells
 * has_ended   lane              main thread   release store [E], acquire load [F]
 * load        greeter, lane     greeter       relaxed: a measure
 * the rest    the lane's thread (start and join happen before and after it; worker/driver.c orders one behind another)
 * Pairs: [S]-[T] what main did before the stop; [E]-[F] all that the lane did. Progress: give and stop block for a moment at most.
 */
#include "worker/lane_private.h"

#include "base/assert.h"
#include "base/log.h"
#include "pipeline/source.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TICK_NS (10 * MR_MILLISECOND_NS)
#define IDLE_TICK_NS (100 * MR_MILLISECOND_NS) /* of a lane that has nobody to time */
#define EVENTS_MAX 64
/* So that the senders of a worker that stops do not all knock elsewhere at the same moment. */
#define MOVE_JITTER_MS 100
#define STALL_NS (500 * MR_MILLISECOND_NS)

static enum mr_source_state state_after(uint8_t bye_reason)
{
    /* One that moves on lives, and another receiver has its events from here on. */
    return bye_reason == MR_BYE_MOVING ? MR_SOURCE_LIVE : MR_SOURCE_FINISHED;
}

/* Its connection is no longer there; it keeps its state, as it may come back with the next one. */
static void part(struct mr_lane *lane, struct mr_lane_sender *sender,
                 const struct mr_connection *connection)
{
    if (sender->waiting == connection) {
        sender->waiting = NULL;
        sender->has_begin = false;
    }
    if (sender->connection != connection)
        return;
    mr_lane_lose(lane, sender, connection);
    sender->connection = NULL;
    if (connection->conn.greeted) /* one that was refused knows of no frames */
        sender->next_sequence = connection->conn.next_sequence;
    sender->away_ns = lane->now_ns;
}

static bool is_parting(const struct mr_connection *connection)
{
    return connection->handing > MR_HANDING_ENDING;
}

void mr_lane_part(struct mr_lane *lane, struct mr_connection *connection)
{
    part(lane, connection->sender, connection);
    connection->sender = NULL; /* it may come back while this one lasts */
    mr_connection_list_remove(&lane->open, connection);
    mr_connection_list_add(&lane->parting, connection);
}

void mr_lane_close(struct mr_lane *lane, struct mr_connection *connection)
{
    struct mr_lane_sender *sender = connection->sender;
    bool is_current = sender && sender->connection == connection;

    if (sender)
        part(lane, sender, connection);
    if (is_current && connection->conn.finished && sender->source &&
        mr_lane_is_settled(sender)) {
        mr_lane_end_source(lane, sender, state_after(connection->conn.bye_reason));
        mr_lane_count(&lane->config.counters->finished, 1);
    }
    mr_lane_give_up_handover(lane, connection);
    mr_lane_count(&lane->config.counters->duplicates, connection->conn.stats.duplicates);
    mr_lane_count(&lane->config.counters->open, (uint64_t)-1);
    mr_connection_list_remove(is_parting(connection) ? &lane->parting : &lane->open,
                              connection);
    mr_connection_free(connection);
    mr_add_relaxed(&lane->load, (uint32_t)-1);
}

void mr_lane_refuse(struct mr_lane *lane, struct mr_connection *connection,
                    enum mr_wire_error code, const char *text)
{
    if (connection->sender)
        part(lane, connection->sender, connection);
    connection->sender = NULL; /* it may be forgotten while the connection lingers */
    mr_lane_count(&lane->config.counters->refused, 1);
    mr_connection_refuse(connection, code, text, lane->now_ns);
}

static bool is_broken(const struct mr_connection *connection)
{
    const struct mr_source *source = connection->sender->source;

    return source && mr_source_is_broken(source);
}

/* What its frames hold breaks the format: it is over with this sender, returning or not. */
static void break_off(struct mr_lane *lane, struct mr_connection *connection)
{
    struct mr_lane_sender *sender = connection->sender;

    mr_lane_refuse(lane, connection, MR_WIRE_ERROR_FORMAT,
                   mr_source_error(sender->source));
    mr_lane_give_up(lane, sender);
    mr_lane_end_source(lane, sender, MR_SOURCE_DIED);
    mr_lane_count(&lane->config.counters->died, 1);
}

/* After a failure to keep one nothing more is acknowledged. */
static void hold_frame(struct mr_lane *lane, struct mr_connection *connection,
                       const struct mr_frame *frame)
{
    enum mr_status status = mr_lane_keep_frame(lane, connection->sender, frame);

    if (status == MR_OK) {
        mr_custody_take(&connection->sender->custody, frame->sequence);
        return;
    }
    if (lane->status == MR_OK)
        mr_log_error("%s: cannot write to the spool: %s", lane->config.name,
                     mr_status_text(status));
    lane->status = status;
}

/* Until the spool has room again: its sender's credit runs out. */
static void stall(struct mr_lane *lane, struct mr_connection *connection)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(10 * MR_SECOND_NS);

    (void)mr_log_limited(
        &limit, MR_LOG_ERROR,
        "--spool %s: it is full, or its disk is: senders wait until there is "
        "room (docs/OPERATIONS.md)",
        mr_spool_folder(lane->config.spool));
    if (connection->is_stalled)
        return;
    (void)epoll_ctl(lane->epoll_fd, EPOLL_CTL_DEL, connection->conn.fd, NULL);
    connection->is_stalled = true;
    connection->stalled_ns = lane->now_ns;
    mr_lane_count(&lane->config.counters->stalls, 1);
}

/* A frame that came: held until the sender knows that it did, or used at once. */
static void take_frame(struct mr_lane *lane, struct mr_connection *connection,
                       const struct mr_frame *frame)
{
    if (frame->type == MR_FRAME_ASK) {
        mr_lane_pass_on(lane, connection, frame);
        return;
    }
    if (frame->type == MR_FRAME_RESUME) {
        mr_lane_take_resume(lane, connection, frame);
        return;
    }
    /* The connection may break before the sender has heard that it is to repeat the dictionary, or has done so. */
    if (frame->sequence && connection->conn.wants_dictionary)
        connection->sender->lacks_dictionary = false;
    if (connection->conn.hold_max && frame->sequence)
        hold_frame(lane, connection, frame);
    else
        mr_lane_push_frame(lane, connection->sender, frame);
}

static bool goes_on(const struct mr_lane *lane, const struct mr_connection *connection)
{
    return lane->status == MR_OK && connection->linger_until_ns == 0 &&
           !is_broken(connection);
}

static void acknowledge(const struct mr_lane *lane, struct mr_connection *connection)
{
    struct mr_conn *conn = &connection->conn;

    (void)mr_conn_ack(conn, conn->next_sequence - 1, connection->credit);
    if (conn->hold_max)
        mr_lane_credit_acked(lane, connection);
}

/* Takes the frames that have arrived, acknowledges them with one ACK, and uses what is settled. */
static void take_frames(struct mr_lane *lane, struct mr_connection *connection)
{
    struct mr_conn *conn = &connection->conn;
    enum mr_status status = MR_OK;
    struct mr_frame frame;

    while (goes_on(lane, connection)) {
        if (!mr_lane_has_room(lane, connection)) {
            stall(lane, connection);
            break;
        }
        status = mr_conn_next(conn, &frame);
        if (status == MR_OK)
            take_frame(lane, connection, &frame);
        else if (status != MR_END || conn->hold_max == 0)
            break; /* behind BYE a SETTLE may come */
    }
    if (connection->linger_until_ns != 0)
        return;
    if (!mr_status_is_error(status) && conn->hold_max)
        status = mr_lane_settle(lane, connection);
    if (is_broken(connection))
        break_off(lane, connection);
    else if (lane->status != MR_OK)
        mr_lane_refuse(lane, connection, MR_WIRE_ERROR_INTERNAL,
                       "the worker cannot go on");
    else if (mr_status_is_error(status))
        mr_lane_refuse(lane, connection, mr_conn_wire_code(status), conn->error.text);
    else if (conn->greeted)
        acknowledge(lane, connection);
}

/* It said BYE, and all is settled. */
static bool has_finished(const struct mr_connection *connection)
{
    return connection->conn.finished && mr_lane_is_settled(connection->sender) &&
           !mr_lane_is_behind(connection);
}

/* Takes what has come already, of which epoll tells nothing. False: that ended with BYE, and the connection is closed. */
static bool take_waiting(struct mr_lane *lane, struct mr_connection *connection)
{
    take_frames(lane, connection);
    if (connection->linger_until_ns != 0 || !has_finished(connection) ||
        mr_lane_hand_over(lane, connection))
        return true;
    mr_lane_close(lane, connection);
    return false;
}

static void on_ready(struct mr_lane *lane, struct mr_connection *connection)
{
    enum mr_status status;
    bool is_gone;

    if (connection->linger_until_ns != 0) {
        if (!mr_connection_linger(connection, lane->now_ns))
            mr_lane_close(lane, connection);
        return;
    }
    if (is_parting(connection)) {
        if (!mr_lane_tend_parting(lane, connection))
            mr_lane_close(lane, connection);
        return;
    }
    if (connection->is_stalled || mr_lane_is_behind(connection))
        return;
    status = mr_conn_read(&connection->conn);
    take_frames(lane, connection);
    if (connection->linger_until_ns != 0)
        return;
    is_gone = status == MR_END || mr_status_is_error(status);
    if (!is_gone && has_finished(connection) && mr_lane_hand_over(lane, connection))
        return;
    if (is_gone || has_finished(connection)) {
        if (!connection->conn.finished)
            mr_log_info("%s: the connection broke; waiting for the sender to return",
                        connection->conn.peer);
        mr_lane_close(lane, connection);
    }
}

/* Best effort: who does not hear it is cut off at the end of the drain time-out. */
static void move_away(struct mr_connection *connection)
{
    if (connection->linger_until_ns == 0 && connection->conn.greeted)
        (void)mr_conn_move(&connection->conn, MOVE_JITTER_MS);
}

static void adopt(struct mr_lane *lane, struct mr_connection *connection)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = connection}};

    mr_connection_list_add(&lane->open, connection);
    if (epoll_ctl(lane->epoll_fd, EPOLL_CTL_ADD, connection->conn.fd, &event) != 0) {
        mr_lane_close(lane, connection);
        return;
    }
    mr_lane_greet(lane, connection);
    bool is_there = connection->linger_until_ns != 0 ||
                    take_waiting(lane, connection); /* what came behind the HELLO */
    if (is_there && lane->is_moving)
        move_away(connection);
}

static struct mr_connection *take_given(struct mr_lane *lane)
{
    struct mr_connection *connection;

    pthread_mutex_lock(&lane->given_lock);
    connection = lane->given.first;
    if (connection)
        mr_connection_list_remove(&lane->given, connection);
    pthread_mutex_unlock(&lane->given_lock);
    return connection;
}

static void on_wake(struct mr_lane *lane)
{
    struct mr_connection *connection;
    uint64_t ignored;
    ssize_t size = read(lane->wake_fd, &ignored, sizeof(ignored));

    MR_UNUSED(size); /* nothing to read is as good */
    while ((connection = take_given(lane)))
        adopt(lane, connection);
    mr_lane_take_answers(lane);
}

/* What has come is taken, if there is room for it now. It is we who did not listen. */
static void try_again(struct mr_lane *lane, struct mr_connection *connection)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = connection}};

    connection->conn.heard_ns = lane->now_ns;
    if (!mr_lane_has_room(lane, connection)) {
        /* The SETTLE that would make room may lie behind what finds none; at a new connection it comes first. */
        if (!mr_lane_is_settled(connection->sender) &&
            lane->now_ns - connection->stalled_ns >= STALL_NS)
            mr_lane_close(lane, connection);
        return;
    }
    connection->is_stalled = false;
    (void)epoll_ctl(lane->epoll_fd, EPOLL_CTL_ADD, connection->conn.fd, &event);
    (void)take_waiting(lane, connection);
}

/* Heartbeats, silence, control frames that the socket did not take. */
static void tend(struct mr_lane *lane, struct mr_connection *connection)
{
    enum mr_status status;

    if (connection->is_stalled) {
        try_again(lane, connection);
        return; /* it may be closed */
    }
    if (connection->handing != MR_HANDING_NOT) {
        if (mr_status_is_error(mr_conn_tick(&connection->conn, lane->now_ns)) ||
            !mr_lane_hand_over(lane, connection))
            mr_lane_close(lane, connection);
        return;
    }
    if (mr_lane_is_behind(connection))
        connection->conn.heard_ns = lane->now_ns; /* it is we who do not listen */
    status = mr_conn_tick(&connection->conn, lane->now_ns);

    /* It may be we who did not listen: the graph can hold the lane up. */
    if (status == MR_ETIMEOUT && mr_conn_read(&connection->conn) == MR_OK) {
        (void)take_waiting(lane, connection);
        return;
    }
    if (!mr_status_is_error(status))
        status = mr_conn_flush(&connection->conn);
    if (!mr_status_is_error(status))
        return;
    mr_log_info("%s: %s; waiting for the sender to return", connection->conn.peer,
                status == MR_ETIMEOUT ? "silent for 5 s" : "the connection broke");
    mr_lane_close(lane, connection);
}

static void tend_connections(struct mr_lane *lane)
{
    struct mr_connection *next;

    for (struct mr_connection *at = lane->open.first; at; at = next) {
        next = at->next;
        if (at->linger_until_ns == 0)
            tend(lane, at);
        else if (!mr_connection_linger(at, lane->now_ns))
            mr_lane_close(lane, at);
    }
    for (struct mr_connection *at = lane->parting.first; at; at = next) {
        next = at->next;
        if (!mr_lane_tend_parting(lane, at))
            mr_lane_close(lane, at);
    }
}

static bool visit_sender(void *context, struct mr_lane_sender *sender)
{
    struct mr_lane *lane = context;

    if (sender->connection)
        return true;
    if (mr_lane_tend_doubt(lane, sender)) {
        lane->doubts++;
        return true;
    }
    if (sender->connection) /* the one that waited: it is away no more */
        return true;
    if (sender->source && sender->has_left) {
        mr_lane_end_source(lane, sender, state_after(sender->bye_reason));
        mr_lane_count(&lane->config.counters->finished, 1);
    }
    if (lane->now_ns - sender->away_ns < lane->config.source_grace_ns)
        return true;
    if (sender->source) {
        mr_lane_end_source(lane, sender, MR_SOURCE_DIED);
        mr_lane_count(&lane->config.counters->died, 1);
    }
    return !mr_lane_forgets(lane, sender);
}

static void tick(struct mr_lane *lane)
{
    enum mr_status status = mr_graph_tick(lane->config.graph, lane->now_ns);

    if (status != MR_OK && lane->status == MR_OK)
        lane->status = status;
    tend_connections(lane);
    mr_lane_tell_wanted(lane);
    lane->doubts = 0;
    mr_senders_sweep(&lane->senders, visit_sender, lane);
    mr_lane_adopt(lane);
    if (lane->config.log)
        mr_spool_log_tidy(lane->config.log);
    mr_lane_free_ended(lane, false);
}

/* Once, when the stop is seen: all senders are to go elsewhere. What they sent is taken until they close. */
static void start_moving(struct mr_lane *lane)
{
    if (lane->is_moving || !mr_load_acquire(&lane->stop_at_ns)) /* [T] */
        return;
    lane->is_moving = true;
    lane->doubts = 1; /* until the next tick has counted */
    for (struct mr_connection *at = lane->open.first; at; at = at->next)
        move_away(at);
}

static bool is_over(struct mr_lane *lane)
{
    uint64_t stop_at_ns = mr_load_acquire(&lane->stop_at_ns); /* [T] */

    return stop_at_ns != 0 &&
           (lane->now_ns >= stop_at_ns ||
            (lane->open.count + lane->parting.count == 0 && lane->doubts == 0));
}

/* A slice for each that the lane is behind with; it is read again when it has caught up. */
static void catch_up(struct mr_lane *lane)
{
    struct mr_connection *next;

    lane->is_behind = false;
    for (struct mr_connection *at = lane->open.first; at; at = next) {
        next = at->next;
        if (at->linger_until_ns != 0 || !mr_lane_is_behind(at))
            continue;
        if (take_waiting(lane, at))
            lane->is_behind |= mr_lane_is_behind(at);
    }
}

/* A word of anybody, a new connection or a stop, makes the next one due sooner. */
static uint64_t after_tick_ns(const struct mr_lane *lane)
{
    bool is_idle = lane->senders.count == 0 && !lane->is_moving &&
                   lane->open.count + lane->parting.count == 0;

    return is_idle ? IDLE_TICK_NS : TICK_NS;
}

static uint64_t turn(void *context)
{
    struct mr_lane *lane = context;
    struct epoll_event events[EVENTS_MAX];
    int ready = epoll_wait(lane->epoll_fd, events, EVENTS_MAX, 0);

    lane->now_ns = mr_clock_monotonic_ns();
    if (ready > 0 && lane->next_tick_ns > lane->now_ns + TICK_NS)
        lane->next_tick_ns = lane->now_ns + TICK_NS;
    for (int i = 0; i < ready; i++) {
        if (events[i].data.ptr)
            on_ready(lane, events[i].data.ptr);
    }
    mr_lane_move_some(lane);
    /* This and what follows may close connections that have an event above. */
    catch_up(lane);
    on_wake(lane);
    start_moving(lane);
    lane->now_ns = mr_clock_monotonic_ns();
    if (lane->now_ns >= lane->next_tick_ns) {
        tick(lane);
        lane->next_tick_ns = lane->now_ns + after_tick_ns(lane);
    }
    if (is_over(lane))
        return MR_DRIVEN_OVER;
    return lane->is_behind ? 0 : lane->next_tick_ns;
}

static bool leave(void *context, struct mr_lane_sender *sender)
{
    struct mr_lane *lane = context;
    uint64_t in_doubt = sender->custody.taken - sender->custody.settled;

    if (sender->kept) {
        lane->left_kept += in_doubt;
    } else {
        lane->left_in_doubt += in_doubt;
        mr_lane_count(&lane->config.counters->frames_in_doubt, in_doubt);
    }
    if (sender->source && sender->kept && !mr_lane_is_settled(sender)) {
        mr_lane_let_source(lane, sender->source,
                           NULL); /* without an end: who comes after us goes on */
        sender->source = NULL;
    } else if (sender->source)
        mr_lane_end_source(lane, sender, MR_SOURCE_LIVE);
    return false;
}

/* Who sends to us waits for an answer, or has nothing to say. A heartbeat that fails is the next tick's. */
static void tell_alive(void *context)
{
    struct mr_lane *lane = context;
    uint64_t now_ns = mr_clock_monotonic_ns();

    for (struct mr_connection *at = lane->open.first; at; at = at->next)
        if (at->linger_until_ns == 0)
            (void)mr_conn_beat(&at->conn, now_ns);
}

/* The trunk is full, and the lane waits for room there: senders of all lanes that its driver turns wait with it. */
static void on_wait(void *context)
{
    const struct mr_lane *lane = context;
    /* Relaxed: the driver's own thread wrote it. Behind the last turn there is none. */
    const struct mr_driver *driver = mr_load_relaxed(&lane->driven.driver);

    if (driver)
        mr_driver_wait(driver);
}

static void begin(void *context)
{
    struct mr_lane *lane = context;

    mr_graph_on_wait(lane->config.graph, on_wait, lane);
    lane->now_ns = mr_clock_monotonic_ns();
    mr_lane_adopt(lane);
    mr_lane_count_left(lane);
}

static void end(void *context)
{
    struct mr_lane *lane = context;

    while (lane->open.first)
        mr_lane_close(lane, lane->open.first);
    while (lane->parting.first)
        mr_lane_close(lane, lane->parting.first);
    mr_senders_sweep(&lane->senders, leave, lane);
    mr_lane_free_ended(lane, false);
    mr_lane_free_left(lane);
    (void)mr_graph_drain(lane->config.graph); /* its failure is the graph's status */
    mr_store_release(&lane->has_ended, true); /* [E] */
}

static const struct mr_driven_kind driven_kind = {
    .begin = begin, .turn = turn, .wait = tell_alive, .end = end};

enum mr_status mr_lane_start(struct mr_lane *lane, const struct mr_lane_config *config,
                             struct mr_error *error)
{
    struct epoll_event event = {.events = EPOLLIN};

    MR_ASSERT(config->graph && config->counters && config->driver);
    memset(lane, 0, sizeof(*lane));
    lane->config = *config;
    mr_senders_init(&lane->senders, config->max_senders);
    mr_frame_expander_init(&lane->expander);
    pthread_mutex_init(&lane->given_lock, NULL);
    lane->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    lane->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (lane->epoll_fd < 0 || lane->wake_fd < 0 ||
        epoll_ctl(lane->epoll_fd, EPOLL_CTL_ADD, lane->wake_fd, &event) != 0)
        return mr_error_set_errno(error, MR_EIO, errno, "%s: cannot start", config->name);
    lane->driven =
        (struct mr_driven){.kind = &driven_kind, .context = lane, .fd = lane->epoll_fd};
    mr_driver_give(config->driver, &lane->driven);
    return MR_OK;
}

void mr_lane_wake(struct mr_lane *lane)
{
    uint64_t one = 1;
    ssize_t ignored = write(lane->wake_fd, &one, sizeof(one));

    MR_UNUSED(ignored); /* full: it is awake */
}

void mr_lane_give(struct mr_lane *lane, struct mr_connection *connection)
{
    mr_add_relaxed(&lane->load, 1);
    pthread_mutex_lock(&lane->given_lock);
    mr_connection_list_add(&lane->given, connection);
    pthread_mutex_unlock(&lane->given_lock);
    mr_lane_wake(lane);
}

void mr_lane_stop(struct mr_lane *lane, uint64_t deadline_ns)
{
    MR_ASSERT(deadline_ns > 0);
    mr_store_release(&lane->stop_at_ns, deadline_ns); /* [S] */
    mr_lane_wake(lane);
}

uint32_t mr_lane_load(const struct mr_lane *lane)
{
    return mr_load_relaxed(&lane->load);
}

bool mr_lane_has_ended(const struct mr_lane *lane)
{
    return mr_load_acquire(&lane->has_ended); /* [F] */
}

void mr_lane_join(struct mr_lane *lane)
{
    struct mr_connection *connection;

    MR_ASSERT(mr_lane_has_ended(lane));
    while ((connection = take_given(lane)))
        mr_connection_free(connection);
    mr_senders_fini(&lane->senders);
    mr_frame_expander_fini(&lane->expander);
    pthread_mutex_destroy(&lane->given_lock);
    (void)close(lane->epoll_fd);
    (void)close(lane->wake_fd);
}

void mr_lane_fini(struct mr_lane *lane)
{
    mr_lane_free_ended(lane, true);
}
