/* SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

/* The file appears complete or not at all: whoever waits for it can read it at once. */
static void write_ready(const char *ready, unsigned port)
{
    char name[4096];
    FILE *file;

    snprintf(name, sizeof name, "%s.new", ready);
    file = fopen(name, "w");
    if (!file || fprintf(file, "%u\n", port) < 0 || fclose(file) || rename(name, ready))
        err(1, "%s", ready);
}

int wire_listen(const char *ready)
{
    struct sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) || listen(fd, 16) ||
        getsockname(fd, (struct sockaddr *)&address, &size))
        err(1, "listen");
    write_ready(ready, ntohs(address.sin_port));
    return fd;
}

static void start_peer(struct peer *peer, int fd)
{
    int on = 1;

    peer->fd = fd;
    peer->used = 0;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool wire_accept(int listener, struct peer *peer)
{
    int fd = accept(listener, NULL, NULL);

    if (fd < 0)
        return false;
    start_peer(peer, fd);
    return true;
}

struct peer wire_connect(const char *port)
{
    struct sockaddr_in address = loopback((uint16_t)atoi(port));
    struct peer peer;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
        err(1, "connect to port %s", port);
    start_peer(&peer, fd);
    return peer;
}

void wire_close(struct peer *peer)
{
    close(peer->fd);
}

bool wire_send(struct peer *peer, const char *line)
{
    char text[WIRE_LINE];
    int size = snprintf(text, sizeof text, "%.*s\n", WIRE_LINE - 2, line);

    return send(peer->fd, text, (size_t)size, MSG_NOSIGNAL) == size;
}

bool wire_receive(struct peer *peer, char line[WIRE_LINE])
{
    char *end;

    while (!(end = memchr(peer->buffer, '\n', peer->used))) {
        ssize_t size =
            read(peer->fd, peer->buffer + peer->used, sizeof peer->buffer - peer->used);
        if (size <= 0)
            return false; /* closed, or a line too long: read() of 0 bytes */
        peer->used += (size_t)size;
    }
    *end++ = '\0';
    memcpy(line, peer->buffer, (size_t)(end - peer->buffer));
    peer->used -= (size_t)(end - peer->buffer);
    memmove(peer->buffer, end, peer->used);
    return true;
}
