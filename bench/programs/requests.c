/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small request server, to be traced: THREADS of it serve REQUESTS each, which a client on the other end of a socket pair
 * makes. Requests are lines: "get KEY", "put KEY VALUE", "sum FIRST COUNT", "page NUMBER"; one in a thousand is no request.
 *
 *     requests THREADS REQUESTS
 *
 * What a request calls hangs on what it asks for and on what was stored, as it is with servers.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <millrace/probe.h>

#define KEYS 1024u
#define TEXT 256

struct entry {
    uint32_t key, length;
    char value[48];
};

struct server {
    int socket;
    uint32_t requests;
    struct entry entries[KEYS];
    char reply[4096];
    size_t size;
};

static uint32_t hash(uint32_t key)
{
    key ^= key >> 16;
    return key * 0x85ebca6bu;
}

static struct entry *probe_slot(struct server *server, uint32_t at)
{
    return &server->entries[at % KEYS];
}

static struct entry *find(struct server *server, uint32_t key)
{
    uint32_t at = hash(key);

    for (uint32_t i = 0; i < 8; i++) {
        struct entry *entry = probe_slot(server, at + i);

        if (entry->length == 0 || entry->key == key)
            return entry;
    }
    return NULL;
}

static void append(struct server *server, const char *text, size_t size)
{
    if (size > sizeof(server->reply) - server->size - 1)
        return;
    memcpy(server->reply + server->size, text, size);
    server->size += size;
}

static void append_number(struct server *server, uint64_t number)
{
    char text[24];

    append(server, text,
           (size_t)snprintf(text, sizeof(text), "%llu", (unsigned long long)number));
}

static void escape(struct server *server, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] == '<')
            append(server, "&lt;", 4);
        else
            append(server, text + i, 1);
}

static int serve_get(struct server *server, uint32_t key)
{
    const struct entry *entry = find(server, key);

    if (!entry || entry->length == 0)
        return 404;
    escape(server, entry->value, entry->length);
    return 200;
}

static int serve_put(struct server *server, uint32_t key, const char *value)
{
    struct entry *entry = find(server, key);

    if (!entry)
        return 507;
    entry->key = key;
    entry->length = (uint32_t)strnlen(value, sizeof(entry->value));
    memcpy(entry->value, value, entry->length);
    return 201;
}

static uint64_t length_of(struct server *server, uint32_t key)
{
    const struct entry *entry = find(server, key);

    return entry ? entry->length : 0;
}

static int serve_sum(struct server *server, uint32_t first, uint32_t count)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < count % 32; i++)
        sum += length_of(server, first + i);
    append_number(server, sum);
    return 200;
}

static void render(struct server *server, uint32_t number, uint32_t depth)
{
    append(server, "<li>", 4);
    append_number(server, number);
    for (uint32_t i = 0; depth > 0 && i < 1 + number % 3; i++)
        render(server, number / 3 + i, depth - 1);
}

static int serve_page(struct server *server, uint32_t number)
{
    render(server, number, 2 + number % 3);
    return 200;
}

static int route(struct server *server, const char *line)
{
    unsigned a = 0, b = 0;
    char value[64] = "";

    if (sscanf(line, "get %u", &a) == 1)
        return serve_get(server, a);
    if (sscanf(line, "put %u %63s", &a, value) == 2)
        return serve_put(server, a, value);
    if (sscanf(line, "sum %u %u", &a, &b) == 2)
        return serve_sum(server, a, b);
    if (sscanf(line, "page %u", &a) == 1)
        return serve_page(server, a);
    return 400;
}

static int serve(struct server *server)
{
    char line[TEXT];
    ssize_t size = recv(server->socket, line, sizeof(line) - 1, 0);
    int status;

    if (size <= 0)
        return -1;
    line[size] = '\0';
    server->size = 0;
    status = route(server, line);
    append_number(server, (uint64_t)status);
    return send(server->socket, server->reply, server->size, 0) > 0 ? 0 : -1;
}

static void *run(void *argument)
{
    struct server *server = argument;

    while (serve(server) == 0)
        continue;
    return NULL;
}

/* The other end: nothing of it is traced. */
MR_NEVER_TRACE static void ask(int fd, uint32_t count, uint32_t seed)
{
    for (uint32_t i = 0; i < count; i++) {
        char line[TEXT], reply[4096];
        int size;

        seed = seed * 1664525u + 1013904223u;
        if (seed >> 22 == 0)
            size = snprintf(line, sizeof(line), "what?");
        else if ((seed >> 8) % 10 < 4)
            size = snprintf(line, sizeof(line), "get %u", (seed >> 12) % 2000);
        else if ((seed >> 8) % 10 < 7)
            size = snprintf(line, sizeof(line), "put %u v<%u", (seed >> 12) % 2000, seed);
        else if ((seed >> 8) % 10 < 9)
            size = snprintf(line, sizeof(line), "sum %u %u", (seed >> 12) % 2000,
                            seed >> 24);
        else
            size = snprintf(line, sizeof(line), "page %u", (seed >> 12) % 500);
        if (send(fd, line, (size_t)size, 0) < 0 || recv(fd, reply, sizeof(reply), 0) < 0)
            abort();
    }
    (void)close(fd);
}

struct client {
    int fd;
    uint32_t requests, seed;
};

MR_NEVER_TRACE static void *run_client(void *argument)
{
    const struct client *client = argument;

    ask(client->fd, client->requests, client->seed);
    return NULL;
}

MR_NEVER_TRACE int main(int argc, char **argv)
{
    uint32_t threads = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 4;
    uint32_t requests = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1000;
    struct server *servers = calloc(threads, sizeof(*servers));
    struct client *clients = calloc(threads, sizeof(*clients));
    pthread_t *ids = calloc(2 * (size_t)threads, sizeof(*ids));

    if (!servers || !clients || !ids)
        return 1;
    for (uint32_t i = 0; i < threads; i++) {
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) != 0)
            return 1;
        servers[i].socket = fds[0];
        clients[i] = (struct client){fds[1], requests, i + 1};
        if (pthread_create(&ids[2 * i], NULL, run, &servers[i]) != 0 ||
            pthread_create(&ids[2 * i + 1], NULL, run_client, &clients[i]) != 0)
            return 1;
    }
    for (uint32_t i = 0; i < 2 * threads; i++)
        (void)pthread_join(ids[i], NULL);
    return 0;
}
