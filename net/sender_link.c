/* SPDX-License-Identifier: Apache-2.0 */
/* What a sender sees of its link. */
#include "net/sender_private.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>

/*
 * A peer's kernel that lives acknowledges within a round trip, whatever its process does. Two time-outs of TCP in a row (0.2 s and 0.4 s
 * at least) without a word, and so long: the host is gone, or the way to it.
 */
#define GONE_NS UINT64_C(700000000)
#define GONE_ROUND_TRIPS 4
#define GONE_TIMEOUTS 2
#define LOOK_NS UINT64_C(100000000)

bool mr_sender_is_stalled(const struct mr_sender *s)
{
    return s->state == MR_SENDER_OPEN && !s->is_resuming && !s->is_announcing &&
           !s->is_leaving && mr_outbox_sendable(s, false).size > 0;
}

static bool waits_for_peer(const struct mr_sender *s)
{
    return s->state == MR_SENDER_GREETING ||
           (s->state == MR_SENDER_OPEN && s->unacked_bytes > 0);
}

uint64_t mr_sender_look_at_ns(const struct mr_sender *s)
{
    uint64_t at_ns = s->heard_ns + GONE_NS;

    if (!waits_for_peer(s))
        return UINT64_MAX;
    return at_ns > s->look_at_ns ? at_ns : s->look_at_ns;
}

bool mr_sender_peer_is_gone(struct mr_sender *s, uint64_t now_ns)
{
    struct tcp_info info;
    socklen_t size = sizeof(info);

    if (now_ns < mr_sender_look_at_ns(s))
        return false;
    s->look_at_ns = now_ns + LOOK_NS;
    if (getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size < offsetof(struct tcp_info, tcpi_rcv_rtt))
        return false;
    uint64_t round_trips_ns = UINT64_C(1000) * GONE_ROUND_TRIPS * info.tcpi_rtt;
    uint64_t silent_ns = info.tcpi_last_ack_recv * MR_MILLISECOND_NS;

    return info.tcpi_unacked > 0 && info.tcpi_retransmits >= GONE_TIMEOUTS &&
           silent_ns >= GONE_NS && silent_ns >= round_trips_ns;
}

/* The bytes of an IP address as IPv6, v4-mapped where it is none; false: another family. */
static bool to_v6(const struct sockaddr_storage *address, struct in6_addr *out)
{
    struct sockaddr_in6 v6;
    struct sockaddr_in v4;

    memcpy(&v6, address, sizeof(v6));
    memcpy(&v4, address, sizeof(v4));
    *out = v6.sin6_addr;
    if (address->ss_family == AF_INET) {
        static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

        memcpy(out->s6_addr, mapped, sizeof(mapped));
        memcpy(out->s6_addr + sizeof(mapped), &v4.sin_addr, sizeof(v4.sin_addr));
    }
    return address->ss_family == AF_INET || address->ss_family == AF_INET6;
}

static bool is_loopback(const struct in6_addr *address)
{
    return IN6_IS_ADDR_LOOPBACK(address) ||
           (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

bool mr_sender_address_is_loopback(const struct mr_sender_address *address)
{
    struct in6_addr v6;

    return to_v6(&address->address, &v6) && is_loopback(&v6);
}

/* A connection from an address of this host to the same address does not leave it. */
bool mr_sender_is_same_host(const struct mr_sender *s)
{
    struct sockaddr_storage own = {.ss_family = AF_UNSPEC}, peer = own;
    socklen_t own_size = sizeof(own), peer_size = sizeof(peer);
    struct in6_addr a, b;

    if (s->fd < 0 || getsockname(s->fd, (struct sockaddr *)&own, &own_size) != 0 ||
        getpeername(s->fd, (struct sockaddr *)&peer, &peer_size) != 0 ||
        !to_v6(&own, &a) || !to_v6(&peer, &b))
        return false;
    return is_loopback(&b) || memcmp(&a, &b, sizeof(a)) == 0;
}
