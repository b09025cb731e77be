/* SPDX-License-Identifier: Apache-2.0 */
#include "master/http_clients.h"

#include <stdlib.h>
#include <sys/socket.h>

static void unlink_one(struct mr_http_clients *clients, struct mr_http_client *client)
{
    if (client->before)
        client->before->after = client->after;
    else
        clients->oldest = client->after;
    if (client->after)
        client->after->before = client->before;
    else
        clients->newest = client->before;
    clients->count--;
}

static void link_newest(struct mr_http_clients *clients, struct mr_http_client *client)
{
    client->before = clients->newest;
    client->after = NULL;
    if (clients->newest)
        clients->newest->after = client;
    else
        clients->oldest = client;
    clients->newest = client;
    clients->count++;
}

/* The library hears of its end as if the client had closed, and tells it by its own way. */
static void let_go(struct mr_http_clients *clients, struct mr_http_client *client)
{
    unlink_one(clients, client);
    (void)shutdown(client->fd, SHUT_RDWR);
    client->fd = -1;
    clients->gave_way++;
}

struct mr_http_client *mr_http_clients_add(struct mr_http_clients *clients, int fd)
{
    struct mr_http_client *client = malloc(sizeof(*client));

    if (!client)
        return NULL;
    if (clients->count >= clients->max)
        let_go(clients, clients->oldest);
    client->fd = fd;
    link_newest(clients, client);
    return client;
}

void mr_http_clients_moved(struct mr_http_clients *clients, struct mr_http_client *client)
{
    if (!client || client->fd < 0)
        return;
    unlink_one(clients, client);
    link_newest(clients, client);
}

void mr_http_clients_remove(struct mr_http_clients *clients,
                            struct mr_http_client *client)
{
    if (client && client->fd >= 0)
        unlink_one(clients, client);
    free(client);
}
