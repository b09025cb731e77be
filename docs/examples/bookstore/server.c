/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include <err.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX 64

struct connection {
    pthread_t thread;
    struct peer peer;
};

static struct {
    int listener;
    answer_function *answer;
    unsigned count;
    struct connection connections[CONNECTIONS_MAX];
} server;

/* The thread's start function: an outer frame. What it calls are the entry points. */
static void *serve(void *argument)
{
    struct peer *peer = argument;
    char line[WIRE_LINE];

    while (wire_receive(peer, line))
        server.answer(peer, line);
    wire_close(peer);
    return NULL;
}

static void start_connection(struct connection *connection)
{
    if (pthread_create(&connection->thread, NULL, serve, &connection->peer))
        errx(1, "cannot start a thread");
    server.count++;
}

static void join_connections(void)
{
    for (unsigned i = 0; i < server.count; i++)
        pthread_join(server.connections[i].thread, NULL);
}

void server_run(const char *ready, answer_function *answer)
{
    server.listener = wire_listen(ready);
    server.answer = answer;
    while (server.count < CONNECTIONS_MAX &&
           wire_accept(server.listener, &server.connections[server.count].peer))
        start_connection(&server.connections[server.count]);
    join_connections();
    close(server.listener);
}

void server_stop(void)
{
    shutdown(server.listener, SHUT_RDWR); /* accept() returns */
}
