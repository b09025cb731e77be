/* SPDX-License-Identifier: Apache-2.0 */
/* What asks the resolver, and listening; declared in net/endpoint.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/assert.h"
#include "net/endpoint.h"

static enum mr_status lookup(const struct mr_endpoint *endpoint, int flags,
                             struct addrinfo **list, struct mr_error *error)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV | flags};
    int failure = getaddrinfo(endpoint->host, endpoint->port, &hints, list);

    if (failure == 0)
        return MR_OK;
    *list = NULL;
    return mr_error_set(error, MR_ENOTFOUND, "host '%s' was not found: %s",
                        endpoint->host, gai_strerror(failure));
}

/* Those of one name begin at a random one, so that not all senders of the world go to the same. */
static void rotate(struct mr_sender_address *addresses, uint32_t count)
{
    struct mr_sender_address rotated[MR_SENDER_ADDRESSES_MAX];
    uint32_t by = 0;

    if (count < 2 || getrandom(&by, sizeof(by), GRND_NONBLOCK) != sizeof(by))
        return;
    for (uint32_t i = 0; i < count; i++)
        rotated[i] = addresses[(i + by % count) % count];
    memcpy(addresses, rotated, count * sizeof(*addresses));
}

/* Adds what there is room for. */
static void add_all(const struct addrinfo *list, struct mr_sender_address *out,
                    uint32_t *count)
{
    for (; list && *count < MR_SENDER_ADDRESSES_MAX; list = list->ai_next) {
        struct mr_sender_address *address = &out[*count];

        if (list->ai_addrlen > sizeof(address->address))
            continue;
        memset(address, 0, sizeof(*address));
        memcpy(&address->address, list->ai_addr, list->ai_addrlen);
        address->size = list->ai_addrlen;
        ++*count;
    }
}

enum mr_status mr_endpoints_resolve(const struct mr_endpoints *endpoints,
                                    struct mr_sender_address *out, uint32_t *count,
                                    struct mr_error *error)
{
    struct mr_error first = MR_ERROR_NONE;

    *count = 0;
    for (uint32_t i = 0; i < endpoints->count; i++) {
        struct addrinfo *list;
        uint32_t first_of_name;

        if (lookup(&endpoints->items[i], 0, &list, &first) != MR_OK)
            continue; /* the others may do */
        first_of_name = *count;
        add_all(list, out, count);
        rotate(out + first_of_name, *count - first_of_name);
        freeaddrinfo(list);
    }
    if (*count)
        return MR_OK;
    return mr_error_set(error, MR_ENOTFOUND, "%s",
                        first.status == MR_OK ? "no endpoint is given" : first.text);
}

static bool is_loopback_v6(const struct in6_addr *address)
{
    if (IN6_IS_ADDR_V4MAPPED(address))
        return address->s6_addr[12] == 127;
    return IN6_IS_ADDR_LOOPBACK(address);
}

static bool is_loopback(const struct sockaddr *address, socklen_t size)
{
    struct sockaddr_in6 v6;
    struct sockaddr_in v4;

    if (address->sa_family == AF_INET6 && size >= sizeof(v6)) {
        memcpy(&v6, address, sizeof(v6));
        return is_loopback_v6(&v6.sin6_addr);
    }
    if (address->sa_family != AF_INET || size < sizeof(v4))
        return false;
    memcpy(&v4, address, sizeof(v4));
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
}

static uint16_t bound_port(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    struct sockaddr_in6 v6;
    struct sockaddr_in v4;

    if (getsockname(fd, (struct sockaddr *)&address, &size))
        return 0;
    memcpy(&v6, &address, sizeof(v6));
    memcpy(&v4, &address, sizeof(v4));
    return ntohs(address.ss_family == AF_INET6 ? v6.sin6_port : v4.sin_port);
}

static enum mr_status fail_listen(const struct mr_endpoint *endpoint, int system_errno,
                                  struct mr_error *error)
{
    if (system_errno == EADDRINUSE)
        return mr_error_set(
            error, MR_EADDR,
            "%s:%s is in use by another process; give another one, or port 0 for any "
            "that is free",
            endpoint->host, endpoint->port);
    return mr_error_set_errno(
        error, system_errno == EMFILE || system_errno == ENFILE ? MR_EIO : MR_EADDR,
        system_errno, "cannot listen on %s:%s", endpoint->host, endpoint->port);
}

static enum mr_status open_listener(const struct mr_endpoint *endpoint,
                                    const struct addrinfo *info, int *fd,
                                    struct mr_error *error)
{
    const int on = 1;
    int system_errno;

    *fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return fail_listen(endpoint, errno, error);
    (void)setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(*fd, info->ai_addr, info->ai_addrlen) == 0 && listen(*fd, SOMAXCONN) == 0)
        return MR_OK;
    system_errno = errno;
    (void)close(*fd);
    *fd = -1;
    return fail_listen(endpoint, system_errno, error);
}

enum mr_status mr_listen(const struct mr_endpoint *endpoint, bool has_token,
                         bool insecure, int *fd, uint16_t *port, struct mr_error *error)
{
    struct addrinfo *list;
    enum mr_status status;

    *fd = -1;
    status = lookup(endpoint, AI_PASSIVE, &list, error);
    if (status != MR_OK)
        return status;
    MR_ASSERT(list);
    if (has_token || insecure || is_loopback(list->ai_addr, list->ai_addrlen))
        status = open_listener(endpoint, list, fd, error);
    else
        status =
            mr_error_set(error, MR_EUSAGE,
                         "%s:%s can be reached from other hosts: give --token-file, or "
                         "--insecure if everybody there may send",
                         endpoint->host, endpoint->port);
    freeaddrinfo(list);
    if (status == MR_OK)
        *port = bound_port(*fd);
    return status;
}
