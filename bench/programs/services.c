/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small system of services, to be traced: what one request causes on several threads is one trace. Gateways take requests
 * from clients, who tell no trace; each asks the shard that has the key, by a message that carries a traceparent; a shard that
 * stores a value asks a replica to store it, too; and every fourth request is handed to a thread that keeps an audit.
 *
 *     services GATEWAYS REQUESTS         each of them; there is one shard, replica and auditor for each gateway
 *
 *     client --> gateway --> shard --> replica
 *                   |
 *                   +------> auditor
 *
 * Requests are "get KEY", "put KEY" or "scan KEY"; one in a thousand is none, and fails.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <millrace/probe.h>

#define KEYS 4096u
#define TEXT 64
#define AUDIT_EVERY 4u

struct message {
    char parent[MR_TRACEPARENT_SIZE]; /* empty: none */
    char command;                     /* 'g', 'p', 's'; 0: end */
    uint32_t key;
};

/* A binary search tree in an array; 0 is none. */
struct node {
    uint32_t key, left, right, versions;
};

struct store {
    struct node nodes[KEYS + 1];
    uint32_t count, root;
};

struct peer {
    int socket;
    int replica; /* -1: it is one itself */
    struct store store;
};

struct job {
    struct mr_token token;
    uint32_t key; /* UINT32_MAX: end */
};

struct gateway {
    int client, shard, audit;
    uint32_t number, served;
};

static uint32_t mix(uint32_t key)
{
    key ^= key >> 15;
    key *= 0x2c1b3c6du;
    return key ^ key >> 12;
}

static uint32_t *side_of(struct node *node, uint32_t key)
{
    return mix(key) < mix(node->key) ? &node->left : &node->right;
}

/* Where the key's node is, or would be, named. */
static uint32_t *descend(struct store *store, uint32_t *at, uint32_t key)
{
    struct node *node = &store->nodes[*at];

    if (*at == 0 || node->key == key)
        return at;
    return descend(store, side_of(node, key), key);
}

static int store_get(struct store *store, uint32_t key)
{
    const uint32_t *at = descend(store, &store->root, key);

    return *at ? (int)store->nodes[*at].versions : -1;
}

static int store_put(struct store *store, uint32_t key)
{
    uint32_t *at = descend(store, &store->root, key);

    if (*at == 0 && store->count < KEYS) {
        *at = ++store->count;
        store->nodes[*at].key = key;
    }
    return *at ? (int)++store->nodes[*at].versions : -1;
}

static int visit(const struct store *store, uint32_t at, int left)
{
    const struct node *node = &store->nodes[at];

    if (at == 0 || left == 0)
        return left;
    left = visit(store, node->left, left - 1);
    return visit(store, node->right, left);
}

static int store_scan(struct store *store, uint32_t key)
{
    return (int)(key % 24) -
           visit(store, *descend(store, &store->root, key), (int)(key % 24));
}

static void say(int socket, const struct message *message)
{
    if (send(socket, message, sizeof(*message), 0) < 0)
        abort();
}

static void call(int socket, char command, uint32_t key)
{
    struct message message = {.command = command, .key = key};
    struct mr_traceparent parent;

    if (mr_send(&parent))
        (void)mr_traceparent_format(&parent, message.parent);
    say(socket, &message);
}

static void hear(const struct message *message)
{
    struct mr_traceparent parent;

    (void)mr_traceparent_parse(message->parent, strlen(message->parent), &parent);
    mr_receive(&parent);
}

static int apply(struct peer *peer, const struct message *message)
{
    if (message->command == 'g')
        return store_get(&peer->store, message->key);
    if (message->command == 's')
        return store_scan(&peer->store, message->key);
    return store_put(&peer->store, message->key);
}

static void answer(struct peer *peer, const struct message *message)
{
    int value;

    hear(message);
    value = apply(peer, message);
    if (peer->replica < 0)
        return;
    if (message->command == 'p')
        call(peer->replica, 'p', message->key);
    if (send(peer->socket, &value, sizeof(value), 0) < 0)
        abort();
}

MR_NEVER_TRACE static void *run_peer(void *argument)
{
    struct peer *peer = argument;
    struct message message;

    while (recv(peer->socket, &message, sizeof(message), 0) == sizeof(message) &&
           message.command)
        answer(peer, &message);
    if (peer->replica >= 0)
        say(peer->replica, &(struct message){.command = 0});
    return NULL;
}

static void keep(uint32_t *entries, uint32_t key)
{
    entries[key % KEYS]++;
}

static void audit(uint32_t *entries, uint32_t key)
{
    for (uint32_t i = 0; i <= key % 3; i++)
        keep(entries, key + i);
}

MR_NEVER_TRACE static void *run_auditor(void *argument)
{
    static _Thread_local uint32_t entries[KEYS];
    const int *socket = argument;
    struct job job;

    while (recv(*socket, &job, sizeof(job), 0) == sizeof(job) && job.key != UINT32_MAX) {
        mr_attach(job.token);
        audit(entries, job.key);
        mr_detach();
    }
    return NULL;
}

static void hand_over(struct gateway *gateway, uint32_t key)
{
    struct job job = {mr_capture(), key};

    if (send(gateway->audit, &job, sizeof(job), 0) < 0)
        abort();
}

static char parse(const char *line, uint32_t *key)
{
    if (sscanf(line, "get %u", key) == 1)
        return 'g';
    if (sscanf(line, "put %u", key) == 1)
        return 'p';
    return sscanf(line, "scan %u", key) == 1 ? 's' : 0;
}

static int ask_shard(struct gateway *gateway, char command, uint32_t key)
{
    int value;

    call(gateway->shard, command, key);
    return recv(gateway->shard, &value, sizeof(value), 0) == sizeof(value) ? value : -1;
}

static int format(char *reply, int value)
{
    return snprintf(reply, TEXT, value < 0 ? "none" : "%d", value);
}

static void serve(struct gateway *gateway, const char *line)
{
    char reply[TEXT];
    uint32_t key = 0;
    char command;
    int size = 0;

    mr_receive(NULL);
    command = parse(line, &key);
    if (command)
        size = format(reply, ask_shard(gateway, command, key));
    else
        mr_status_failed();
    if (command && ++gateway->served % AUDIT_EVERY == 0)
        hand_over(gateway, key);
    if (send(gateway->client, reply, (size_t)size + 1, 0) < 0)
        abort();
}

MR_NEVER_TRACE static void *run_gateway(void *argument)
{
    struct gateway *gateway = argument;
    char line[TEXT];

    while (recv(gateway->client, line, sizeof(line), 0) > 0)
        serve(gateway, line);
    say(gateway->shard, &(struct message){.command = 0});
    (void)send(gateway->audit, &(struct job){.key = UINT32_MAX}, sizeof(struct job), 0);
    return NULL;
}

struct client {
    int fd;
    uint32_t requests, seed;
};

/* Nothing of it is traced. */
MR_NEVER_TRACE static void *run_client(void *argument)
{
    static const char *const words[] = {"get", "get", "get", "put", "put", "scan"};
    const struct client *client = argument;
    uint32_t seed = client->seed;

    for (uint32_t i = 0; i < client->requests; i++) {
        char line[TEXT], reply[TEXT];
        int size;

        seed = seed * 1664525u + 1013904223u;
        size =
            snprintf(line, sizeof(line), "%s %u",
                     seed >> 22 ? words[(seed >> 8) % 6] : "what", (seed >> 12) % KEYS);
        if (send(client->fd, line, (size_t)size + 1, 0) < 0 ||
            recv(client->fd, reply, sizeof(reply), 0) < 0)
            abort();
    }
    (void)close(client->fd);
    return NULL;
}

MR_NEVER_TRACE static int link_to(int *other)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) != 0)
        abort();
    *other = fds[1];
    return fds[0];
}

MR_NEVER_TRACE static void start(pthread_t *id, void *(*function)(void *), void *argument)
{
    if (pthread_create(id, NULL, function, argument) != 0)
        abort();
}

/* All that serves one client. */
struct chain {
    struct client client;
    struct gateway gateway;
    struct peer shard, replica;
    int auditor;
    pthread_t ids[5];
};

MR_NEVER_TRACE static void start_chain(struct chain *chain, uint32_t number,
                                       uint32_t requests)
{
    chain->client = (struct client){.requests = requests, .seed = number + 1};
    chain->client.fd = link_to(&chain->gateway.client);
    chain->gateway.shard = link_to(&chain->shard.socket);
    chain->gateway.audit = link_to(&chain->auditor);
    chain->shard.replica = link_to(&chain->replica.socket);
    chain->replica.replica = -1;
    start(&chain->ids[0], run_client, &chain->client);
    start(&chain->ids[1], run_gateway, &chain->gateway);
    start(&chain->ids[2], run_peer, &chain->shard);
    start(&chain->ids[3], run_peer, &chain->replica);
    start(&chain->ids[4], run_auditor, &chain->auditor);
}

MR_NEVER_TRACE int main(int argc, char **argv)
{
    uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 4;
    uint32_t requests = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1000;
    struct chain *chains = calloc(count, sizeof(*chains));

    if (!chains)
        return 1;
    for (uint32_t i = 0; i < count; i++)
        start_chain(&chains[i], i, requests);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < 5; k++)
            (void)pthread_join(chains[i].ids[k], NULL);
    return 0;
}
