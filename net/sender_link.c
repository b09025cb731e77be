/* SPDX-License-Identifier: Apache-2.0 */
/* What a sender sees of its link. */
#include "net/sender_private.h"

#include <arpa/inet.h>

bool mr_sender_is_stalled(const struct mr_sender *s)
{
    return s->state == MR_SENDER_OPEN && !s->is_announcing && !s->is_leaving &&
           mr_outbox_sendable(s, false).size > 0;
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
