/* SPDX-License-Identifier: Apache-2.0 */
/*
 *     IDLE --retry_at--> CONNECTING --connected--> GREETING --WELCOME--> OPEN
 *      ^                     |                        |                   |
 *      +---------------------+---- anything wrong ----+-------------------+
 *      +--- REFUSED <------------- ERROR frame -------+-------------------+
 */
#include "net/sender.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "net/sender_private.h"

/* How long a receiver has to close after our BYE. */
#define LEAVE_NS (MR_SECOND_NS / 2)
/* For a host to answer at all: as long as its kernel takes to ask a second time. */
#define CONNECT_NS MR_SECOND_NS

static uint64_t min_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t or_default(uint64_t value, uint64_t otherwise)
{
    return value ? value : otherwise;
}

enum mr_status mr_sender_init(struct mr_sender *s, const struct mr_sender_config *config)
{
    if (config->address_count == 0 || config->address_count > MR_SENDER_ADDRESSES_MAX ||
        !config->hello || !config->outbox || config->max_frame < MR_WIRE_MAX_FRAME_MIN ||
        config->outbox_size / 2 < config->max_frame ||
        (config->resume_size > 0 && !config->resume))
        return MR_EUSAGE;
    memset(s, 0, offsetof(struct mr_sender, control)); /* not what is large */
    s->config = *config;
    s->config.heartbeat_ns = or_default(config->heartbeat_ns, MR_WIRE_HEARTBEAT_NS);
    s->config.silence_ns = or_default(config->silence_ns, MR_WIRE_SILENCE_NS);
    s->config.backoff_min_ns =
        or_default(config->backoff_min_ns, MR_SENDER_BACKOFF_MIN_NS);
    s->config.backoff_max_ns =
        or_default(config->backoff_max_ns, MR_SENDER_BACKOFF_MAX_NS);
    s->state = MR_SENDER_IDLE;
    s->fd = s->parting.fd = -1;
    s->oldest_sequence = s->next_sequence = s->send_sequence = s->sent_sequence = 1;
    s->custody = (struct mr_custody_hello){.is_told = true};
    s->settled = 0;
    s->random =
        (config->now_ns_seed ^ config->incarnation.hi ^ config->incarnation.lo) | 1;
    s->input_size = 0;
    s->stats = (struct mr_sender_stats){.connects = 0};
    mr_error_clear(&s->last_error);
    return MR_OK;
}

static bool is_same_address(const struct mr_sender_address *a,
                            const struct mr_sender_address *b)
{
    return a->size == b->size && memcmp(&a->address, &b->address, a->size) == 0;
}

/* Where `address` is among those of now; their count where it is not. */
static uint32_t find_address(const struct mr_sender *s,
                             const struct mr_sender_address *address)
{
    uint32_t at = 0;

    while (at < s->config.address_count &&
           !is_same_address(&s->config.addresses[at], address))
        at++;
    return at;
}

/* Until the next connection messages speak of the present one: it stays among the addresses, as the last. */
static void keep_current(struct mr_sender *s, const struct mr_sender_address *current)
{
    uint32_t at = find_address(s, current);

    if (at == MR_SENDER_ADDRESSES_MAX)
        at--;
    s->config.addresses[at] = *current;
    if (at >= s->config.address_count)
        s->config.address_count = at + 1;
    s->address_index = at;
}

void mr_sender_set_addresses(struct mr_sender *s,
                             const struct mr_sender_address *addresses, uint32_t count)
{
    bool has_tried = s->stats.connects + s->stats.failures > 0;
    uint32_t before = s->config.address_count;
    struct mr_sender_address last;

    MR_ASSERT(count > 0 && count <= MR_SENDER_ADDRESSES_MAX);
    last = s->config.addresses[s->fd >= 0 ? s->address_index
                                          : (s->address_index + before - 1) % before];
    memcpy(s->config.addresses, addresses, count * sizeof(*addresses));
    s->config.address_count = count;
    s->address_index = 0;
    if (s->fd >= 0)
        keep_current(s, &last);
    else if (has_tried && find_address(s, &last) < count)
        s->address_index = (find_address(s, &last) + 1) % count;
}

void mr_sender_resume(struct mr_sender *s, const struct mr_custody_hello *custody)
{
    MR_ASSERT(s->next_sequence == 1 && s->custody.attempt == 0);
    s->custody = *custody;
    s->oldest_sequence = s->next_sequence = s->send_sequence = custody->acked + 1;
    s->sent_sequence = custody->sent + 1;
}

/* xorshift64 (Marsaglia 2003); for jitter, not for secrets. */
uint64_t mr_sender_random(struct mr_sender *s, uint64_t limit)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return limit == UINT64_MAX ? s->random : s->random % (limit + 1);
}

/* Nothing of a connection outlives it but the frames held, and RESUME where it was offered. */
static void close_connection(struct mr_sender *s)
{
    if (s->fd >= 0)
        (void)close(s->fd);
    s->fd = -1;
    s->input_size = 0;
    s->control_size = s->control_at = 0;
    s->is_leaving = s->is_moving = false;
    s->is_announcing = false;
    s->move_at_ns = 0;
    mr_sender_end_resume(s);
    mr_outbox_rewind(s);
}

void mr_sender_fini(struct mr_sender *s)
{
    close_connection(s);
    mr_sender_forget_resumes(s);
    s->state = MR_SENDER_IDLE;
    s->retry_at_ns = UINT64_MAX;
}

void mr_sender_abandon(struct mr_sender *s)
{
    if (s->fd >= 0)
        (void)close(s->fd);
    s->fd = -1;
    mr_sender_forget_resumes(s); /* the parent gives it */
    s->state = MR_SENDER_IDLE;
    s->retry_at_ns = UINT64_MAX;
}

/* A random time in the upper half of the back-off, which then doubles. */
static void retry_later(struct mr_sender *s, uint64_t now_ns, enum mr_sender_state state)
{
    uint64_t max_ns = s->config.backoff_max_ns, wait_ns = s->backoff_ns;

    if (wait_ns < s->config.backoff_min_ns)
        wait_ns = s->config.backoff_min_ns;
    if (wait_ns > max_ns || state == MR_SENDER_REFUSED)
        wait_ns = max_ns;
    s->backoff_ns = 2 * wait_ns;
    s->retry_at_ns = now_ns + wait_ns / 2 + mr_sender_random(s, wait_ns / 2);
    s->address_index = (s->address_index + 1) % s->config.address_count;
    s->state = state;
    s->stats.failures++;
}

struct address_text {
    char host[INET6_ADDRSTRLEN];
    unsigned port;
};

/* Where we are connected or connecting to; inet_ntop() neither allocates nor locks. */
static struct address_text address_text(const struct mr_sender *s)
{
    const struct sockaddr_storage *address =
        &s->config.addresses[s->address_index].address;
    struct address_text text = {.host = "?"};
    struct sockaddr_in6 v6;
    struct sockaddr_in v4;

    memcpy(&v6, address, sizeof(v6));
    memcpy(&v4, address, sizeof(v4));
    if (address->ss_family == AF_INET6)
        (void)inet_ntop(AF_INET6, &v6.sin6_addr, text.host, sizeof(text.host));
    else
        (void)inet_ntop(AF_INET, &v4.sin_addr, text.host, sizeof(text.host));
    text.port = ntohs(address->ss_family == AF_INET6 ? v6.sin6_port : v4.sin_port);
    return text;
}

/* strerror() translates, and so takes locks of the program's; these are the ones that say something. */
static const char *errno_text(int system_errno)
{
    switch (system_errno) {
    case ECONNREFUSED:
        return "connection refused: nobody listens there";
    case ECONNRESET:
    case EPIPE:
        return "the receiver closed the connection";
    case ENETUNREACH:
    case EHOSTUNREACH:
        return "no way to that address";
    case ETIMEDOUT:
        return "no answer";
    default:
        return "failed";
    }
}

void mr_sender_break(struct mr_sender *s, uint64_t now_ns, const char *what,
                     int system_errno)
{
    struct address_text to = address_text(s);

    mr_error_clear(&s->last_error);
    if (system_errno)
        (void)mr_error_set(&s->last_error, MR_EIO, "%s port %u: %s: %s (errno %d)",
                           to.host, to.port, what, errno_text(system_errno),
                           system_errno);
    else
        (void)mr_error_set(&s->last_error, MR_EIO, "%s port %u: %s", to.host, to.port,
                           what);
    close_connection(s);
    retry_later(s, now_ns, MR_SENDER_IDLE);
    mr_sender_miss_receiver(s, now_ns);
}

void mr_sender_refuse(struct mr_sender *s, uint64_t now_ns,
                      const struct mr_wire_error_text *error)
{
    struct address_text to = address_text(s);

    mr_error_clear(&s->last_error);
    (void)mr_error_set(&s->last_error, MR_EREFUSED, "%s port %u: refused (%u): %.*s",
                       to.host, to.port, error->code, (int)error->text.size,
                       (const char *)error->text.data);
    close_connection(s);
    retry_later(s, now_ns, MR_SENDER_REFUSED);
    mr_sender_miss_receiver(s, now_ns);
}

void mr_sender_leave(struct mr_sender *s, uint64_t now_ns)
{
    close_connection(s);
    s->address_index = (s->address_index + 1) % s->config.address_count;
    s->state = MR_SENDER_IDLE;
    s->retry_at_ns = now_ns;
}

static void greet(struct mr_sender *s, uint64_t now_ns)
{
    uint8_t *payload = s->control + MR_WIRE_HEADER_SIZE;
    size_t size;

    s->custody.acked = s->oldest_sequence - 1;
    s->custody.sent = s->sent_sequence - 1;
    s->custody.attempt++;
    size = s->config.hello(s->config.context, &s->custody, payload, MR_WIRE_MAX_CONTROL);

    if (size == 0) {
        mr_sender_break(s, now_ns, "no HELLO could be made", 0);
        return;
    }
    mr_sender_queue_control(s, MR_FRAME_HELLO, mr_span_of(payload, size));
    s->custody.was_shown = true;
    s->state = MR_SENDER_GREETING;
    s->stats.connects++;
}

static void start_connect(struct mr_sender *s, uint64_t now_ns)
{
    const struct mr_sender_address *to = &s->config.addresses[s->address_index];
    const int on = 1;

    s->fd = socket(to->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->fd < 0) {
        mr_sender_break(s, now_ns, "socket", errno);
        return;
    }
    /*
     * SO_SNDBUF stays: setting it ends the kernel's own tuning. Frames of 256 KiB over loopback, two threads: 3.2 GB/s
     * as it is, 1.4 GB/s with 1 MiB.
     */
    (void)setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    s->heard_ns = s->said_ns = now_ns;
    s->state = MR_SENDER_CONNECTING;
    if (connect(s->fd, (const struct sockaddr *)&to->address, to->size) == 0)
        greet(s, now_ns);
    else if (errno != EINPROGRESS && errno != EINTR)
        mr_sender_break(s, now_ns, "connect", errno);
}

static bool finish_connect(struct mr_sender *s, uint64_t now_ns)
{
    struct pollfd poll_fd = {.fd = s->fd, .events = POLLOUT};
    socklen_t size = sizeof(int);
    int failure = 0;

    if (poll(&poll_fd, 1, 0) <= 0)
        return false;
    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &failure, &size) || failure)
        mr_sender_break(s, now_ns, "connect", failure ? failure : errno);
    else
        greet(s, now_ns);
    return true;
}

static void start_leaving(struct mr_sender *s, uint64_t now_ns)
{
    uint8_t bye[MR_BYE_SIZE];

    mr_bye_put(MR_BYE_MOVING, bye);
    mr_sender_queue_control(s, MR_FRAME_BYE, mr_span_of(bye, sizeof(bye)));
    s->is_leaving = s->is_moving = true;
    s->move_at_ns = now_ns + LEAVE_NS;
    s->stats.moves++;
}

/* A kernel answers at once, a receiver when it can. */
static uint64_t patience_ns(const struct mr_sender *s)
{
    return s->state == MR_SENDER_CONNECTING ? min_of(CONNECT_NS, s->config.silence_ns)
                                            : s->config.silence_ns;
}

/* When it is time, not before; what waits for a word of the receiver before goes to the one of now first. */
static bool may_move(const struct mr_sender *s)
{
    return s->move_at_ns && (s->is_leaving || !mr_sender_waits_for_grant(s));
}

/* What is due by the clock on a connection that is there. */
static bool run_timers(struct mr_sender *s, uint64_t now_ns)
{
    if (now_ns - s->heard_ns >= patience_ns(s)) {
        mr_sender_break(s, now_ns, "nothing was heard of the receiver for too long", 0);
        return true;
    }
    if (mr_sender_peer_is_gone(s, now_ns)) {
        mr_sender_break(s, now_ns, "the receiver's host does not answer", 0);
        return true;
    }
    if (may_move(s) && now_ns >= s->move_at_ns) {
        if (s->is_leaving)
            mr_sender_leave(s, now_ns);
        else
            start_leaving(s, now_ns);
        return true;
    }
    if (s->state == MR_SENDER_OPEN && now_ns - s->said_ns >= s->config.heartbeat_ns &&
        s->control_size == 0) {
        mr_sender_queue_control(s, MR_FRAME_HEARTBEAT, mr_span_of(NULL, 0));
        s->said_ns = now_ns;
        return true;
    }
    return false;
}

static bool step(struct mr_sender *s, uint64_t now_ns)
{
    bool has_moved = mr_sender_tend_parting(s, now_ns);

    switch (s->state) {
    case MR_SENDER_IDLE:
    case MR_SENDER_REFUSED:
        if (now_ns < s->retry_at_ns)
            return has_moved;
        start_connect(s, now_ns);
        return true;
    case MR_SENDER_CONNECTING:
        has_moved |= finish_connect(s, now_ns);
        break;
    case MR_SENDER_GREETING:
    case MR_SENDER_OPEN:
        has_moved |= mr_sender_receive(s, now_ns);
        if (s->fd >= 0)
            has_moved |= mr_sender_transmit(s, now_ns);
        break;
    }
    if (s->fd >= 0)
        has_moved |= run_timers(s, now_ns);
    return has_moved;
}

/* When step() has something to do even if the socket is silent. */
static uint64_t next_timer_ns(const struct mr_sender *s)
{
    uint64_t at_ns = s->parting.fd < 0 ? UINT64_MAX : s->parting.due_ns;

    if (s->fd < 0)
        return min_of(at_ns, s->retry_at_ns);
    at_ns = min_of(at_ns, s->heard_ns + patience_ns(s));
    at_ns = min_of(at_ns, mr_sender_look_at_ns(s));
    if (may_move(s))
        at_ns = min_of(at_ns, s->move_at_ns);
    if (s->state == MR_SENDER_OPEN)
        at_ns = min_of(at_ns, s->said_ns + s->config.heartbeat_ns);
    return at_ns;
}

static void wait_for_io(const struct mr_sender *s, uint64_t now_ns, uint64_t timeout_ns)
{
    bool has_output = s->state == MR_SENDER_CONNECTING || mr_sender_has_output(s);
    /* Of one that is not there nothing comes. */
    struct pollfd poll_fds[] = {
        {.fd = s->fd, .events = (short)(POLLIN | (has_output ? POLLOUT : 0))},
        {.fd = s->parting.fd, .events = POLLIN},
    };
    uint64_t timer_ns = next_timer_ns(s);
    uint64_t wait_ns = min_of(timeout_ns, timer_ns > now_ns ? timer_ns - now_ns : 0);
    struct timespec wait = {.tv_sec = (time_t)(wait_ns / MR_SECOND_NS),
                            .tv_nsec = (long)(wait_ns % MR_SECOND_NS)};

    (void)ppoll(poll_fds, sizeof(poll_fds) / sizeof(*poll_fds), &wait, NULL);
}

enum mr_status mr_sender_poll(struct mr_sender *s, uint64_t timeout_ns)
{
    uint64_t now_ns = mr_clock_monotonic_ns();
    bool has_moved = step(s, now_ns);

    if (!has_moved && timeout_ns) {
        wait_for_io(s, now_ns, timeout_ns);
        has_moved = step(s, mr_clock_monotonic_ns());
    }
    if (s->state == MR_SENDER_REFUSED)
        return MR_EREFUSED;
    return has_moved ? MR_OK : MR_AGAIN;
}

bool mr_sender_is_drained(const struct mr_sender *s)
{
    return s->oldest_sequence == s->next_sequence;
}

/* Polls until `is_done` or the deadline; whether it is done. */
static bool poll_until(struct mr_sender *s, bool (*is_done)(const struct mr_sender *),
                       uint64_t deadline_ns)
{
    while (!is_done(s)) {
        uint64_t now_ns = mr_clock_monotonic_ns();

        if (now_ns >= deadline_ns)
            return false;
        (void)mr_sender_poll(s, deadline_ns - now_ns);
    }
    return true;
}

static bool has_left(const struct mr_sender *s)
{
    return !s->is_leaving;
}

/* A receiver answers BYE by closing; then nothing of ours can be lost to a reset. */
static void say_bye(struct mr_sender *s, enum mr_bye_reason reason, uint64_t deadline_ns)
{
    uint8_t bye[MR_BYE_SIZE];

    if (s->state != MR_SENDER_OPEN)
        return;
    mr_bye_put(reason, bye);
    mr_sender_queue_control(s, MR_FRAME_BYE, mr_span_of(bye, sizeof(bye)));
    s->is_leaving = true;
    s->move_at_ns = min_of(deadline_ns, mr_clock_monotonic_ns() + LEAVE_NS);
    (void)mr_sender_poll(s, 0); /* at least tried, even past the deadline */
    (void)poll_until(s, has_left, deadline_ns);
}

enum mr_status mr_sender_finish(struct mr_sender *s, enum mr_bye_reason reason,
                                uint64_t deadline_ns)
{
    bool is_drained = poll_until(s, mr_sender_is_drained, deadline_ns);

    say_bye(s, reason, deadline_ns);
    mr_sender_fini(s);
    return is_drained ? MR_OK : MR_ETIMEOUT;
}
