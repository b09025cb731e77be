/* SPDX-License-Identifier: Apache-2.0 */
/* A server of one thread per connection, until someone says QUIT. */
#ifndef BOOKSTORE_SERVER_H
#define BOOKSTORE_SERVER_H

#include "wire.h"

/* Answers one request line; called from the connection's thread. */
typedef void answer_function(struct peer *peer, char *line);

/* Serves on a free port, told in the file `ready`, until server_stop(); returns when every connection has ended. */
void server_run(const char *ready, answer_function *answer);
void server_stop(void);

#endif
