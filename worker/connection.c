/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/connection.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define CUTS_AT_ONCE 100 /* lines of the log; then ten a second */

struct mr_connection *mr_connection_new(int fd, const char *peer, uint32_t max_frame,
                                        uint64_t now_ns)
{
    struct mr_connection *connection = calloc(1, sizeof(*connection));

    if (!connection || mr_conn_init(&connection->conn, fd, peer, max_frame) != MR_OK) {
        free(connection);
        (void)close(fd);
        return NULL;
    }
    connection->opened_ns = now_ns;
    return connection;
}

void mr_connection_free(struct mr_connection *connection)
{
    MR_ASSERT(!connection->next && !connection->previous);
    mr_hello_free(&connection->hello);
    mr_conn_fini(&connection->conn);
    free(connection);
}

void mr_connection_tell_cut(const struct mr_connection *connection, const char *text)
{
    static struct mr_log_limit limit =
        MR_LOG_LIMIT_BURST(100 * MR_MILLISECOND_NS, CUTS_AT_ONCE);

    (void)mr_log_limited(&limit, MR_LOG_WARN, "%s: cut off: %s", connection->conn.peer,
                         text);
}

void mr_connection_refuse(struct mr_connection *connection, enum mr_wire_error code,
                          const char *text, uint64_t now_ns)
{
    MR_ASSERT(connection->linger_until_ns == 0);
    mr_connection_tell_cut(connection, text);
    mr_conn_refuse(&connection->conn, code, text);
    connection->linger_until_ns = now_ns + MR_CONNECTION_LINGER_NS;
}

bool mr_connection_linger(struct mr_connection *connection, uint64_t now_ns)
{
    char ignored[16384];

    MR_ASSERT(connection->linger_until_ns != 0);
    for (int reads = 0; reads < 64 && now_ns < connection->linger_until_ns; reads++) {
        ssize_t size = recv(connection->conn.fd, ignored, sizeof(ignored), MSG_DONTWAIT);

        if (size == 0)
            return false;
        if (size < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    }
    return now_ns < connection->linger_until_ns;
}

void mr_connection_list_add(struct mr_connection_list *list,
                            struct mr_connection *connection)
{
    MR_ASSERT(!connection->next && !connection->previous);
    connection->next = list->first;
    if (list->first)
        list->first->previous = connection;
    list->first = connection;
    list->count++;
}

void mr_connection_list_remove(struct mr_connection_list *list,
                               struct mr_connection *connection)
{
    MR_ASSERT(list->count > 0);
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        list->first = connection->next;
    if (connection->next)
        connection->next->previous = connection->previous;
    connection->next = connection->previous = NULL;
    list->count--;
}
