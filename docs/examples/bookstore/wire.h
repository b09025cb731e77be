/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of text over TCP on loopback: all that the three programs say to each other. */
#ifndef BOOKSTORE_WIRE_H
#define BOOKSTORE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_LINE 512 /* bytes of a line, with the zero behind it */

struct peer {
    int fd;
    size_t used; /* bytes of `buffer` read and not yet handed out */
    char buffer[WIRE_LINE];
};

/* Listens on a free port of 127.0.0.1; writes the port to the file `ready`. Ends the program when it cannot. */
int wire_listen(const char *ready);
bool wire_accept(int listener, struct peer *peer); /* false: the listener was shut down */
struct peer wire_connect(const char *port);        /* ends the program when it cannot */
void wire_close(struct peer *peer);

bool wire_send(struct peer *peer, const char *line); /* the newline is added */
bool wire_receive(struct peer *peer, char line[WIRE_LINE]);

#endif
