/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints that need no resolver: what the probe's writer may do. */
#include "net/endpoint.h"

#include <arpa/inet.h>

static const char scheme[] = "tcp://";
static const char usage[] =
    "an endpoint is written tcp://host:port, such as tcp://127.0.0.1:7410";

static enum mr_status fail(struct mr_error *error, struct mr_span part, const char *why)
{
    return mr_error_set(error, MR_EUSAGE, "endpoint '%.*s': %s; %s",
                        (int)(part.size < 80 ? part.size : 80), (const char *)part.data,
                        why, usage);
}

static bool copy_text(struct mr_span from, char *to, size_t capacity)
{
    if (from.size == 0 || from.size >= capacity)
        return false;
    memcpy(to, from.data, from.size);
    to[from.size] = '\0';
    return true;
}

/* Position of the last `c`, or size where there is none. */
static size_t find_last(struct mr_span text, char c)
{
    for (size_t i = text.size; i-- > 0;) {
        if (text.data[i] == (uint8_t)c)
            return i;
    }
    return text.size;
}

static size_t find_first(struct mr_span text, char c)
{
    const uint8_t *at = text.size ? memchr(text.data, c, text.size) : NULL;

    return at ? (size_t)(at - text.data) : text.size;
}

static bool is_port(struct mr_span text)
{
    uint32_t port = 0;

    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        port = port * 10 + (text.data[i] - '0');
        if (port > UINT16_MAX)
            return false;
    }
    return text.size > 0 && text.size <= 5;
}

/* A host with colons stands in brackets; nothing stands in a host that has no business in a name or address. */
static bool take_host(struct mr_span host, struct mr_endpoint *endpoint)
{
    bool is_v6 = host.size > 2 && host.data[0] == '[' && host.data[host.size - 1] == ']';

    if (is_v6)
        host = mr_span_of(host.data + 1, host.size - 2);
    for (size_t i = 0; i < host.size; i++) {
        uint8_t c = host.data[i];

        if (c <= ' ' || c == '/' || c == '[' || c == ']' || c == '@' ||
            (c == ':' && !is_v6))
            return false;
    }
    return copy_text(host, endpoint->host, sizeof(endpoint->host));
}

static bool has_scheme(struct mr_span text)
{
    size_t colon = find_first(text, ':');

    return text.size - colon >= 3 && memcmp(text.data + colon, "://", 3) == 0;
}

static enum mr_status parse_one(struct mr_span part, struct mr_endpoint *endpoint,
                                struct mr_error *error)
{
    struct mr_span rest = part, host, port, prefix = rest;
    size_t colon;

    prefix.size = sizeof(scheme) - 1;
    if (rest.size >= prefix.size && mr_span_equal(prefix, mr_span_of_text(scheme)))
        (void)mr_span_skip(&rest, prefix.size);
    if (has_scheme(rest))
        return fail(error, part, "tcp:// is all there is");
    colon = find_last(rest, ':');
    if (colon == rest.size)
        return fail(error, part, "it has no port");
    host = mr_span_of(rest.data, colon);
    port = mr_span_of(rest.data + colon + 1, rest.size - colon - 1);
    if (!is_port(port) || !copy_text(port, endpoint->port, sizeof(endpoint->port)))
        return fail(error, part, "the port is no number from 0 to 65535");
    if (!take_host(host, endpoint))
        return fail(error, part,
                    "the host is empty or not one (IPv6 addresses go in brackets)");
    return MR_OK;
}

enum mr_status mr_endpoints_parse(const char *text, struct mr_endpoints *endpoints,
                                  struct mr_error *error)
{
    struct mr_span rest = mr_span_of_text(text);

    endpoints->count = 0;
    for (;;) {
        struct mr_span part = rest;
        enum mr_status status;

        part.size = find_first(rest, ',');
        if (endpoints->count == MR_ENDPOINTS_MAX)
            return fail(error, part, "there are more than 16");
        status = parse_one(part, &endpoints->items[endpoints->count], error);
        if (status != MR_OK)
            return status;
        endpoints->count++;
        if (part.size == rest.size)
            return MR_OK;
        (void)mr_span_skip(&rest, part.size + 1);
    }
}

/* The port has been checked by mr_endpoints_parse(). */
static in_port_t port_of(const struct mr_endpoint *endpoint)
{
    uint32_t port = 0;

    for (const char *c = endpoint->port; *c; c++)
        port = port * 10 + (uint32_t)(*c - '0');
    return htons((uint16_t)port);
}

static bool to_v4(const struct mr_endpoint *endpoint, struct mr_sender_address *out)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = port_of(endpoint)};

    if (inet_pton(AF_INET, endpoint->host, &address.sin_addr) != 1)
        return false;
    memcpy(&out->address, &address, sizeof(address));
    out->size = sizeof(address);
    return true;
}

static bool to_v6(const struct mr_endpoint *endpoint, struct mr_sender_address *out)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6,
                                   .sin6_port = port_of(endpoint)};

    if (inet_pton(AF_INET6, endpoint->host, &address.sin6_addr) != 1)
        return false;
    memcpy(&out->address, &address, sizeof(address));
    out->size = sizeof(address);
    return true;
}

enum mr_status mr_endpoints_numeric(const struct mr_endpoints *endpoints,
                                    struct mr_sender_address *out, uint32_t *count,
                                    struct mr_error *error)
{
    for (uint32_t i = 0; i < endpoints->count; i++) {
        const struct mr_endpoint *endpoint = &endpoints->items[i];

        memset(&out[i], 0, sizeof(out[i]));
        if (!to_v4(endpoint, &out[i]) && !to_v6(endpoint, &out[i]))
            return mr_error_set(error, MR_EUSAGE,
                                "endpoint host '%s' is a name, not an address",
                                endpoint->host);
    }
    *count = endpoints->count;
    return MR_OK;
}
