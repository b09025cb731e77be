/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests from outside to a running program (MILLRACE_CONTROL=1): a thread of its own,
 * all signals blocked, that answers on a unix socket of mode 0600 to its own user and to
 * root. What is said is in net/attach.h; which requests there are, in
 * probe/control_requests.def: a line there and a function of type mr_control_handler make
 * a new one.
 *
 * Where the socket is: the first of these in which one can be made,
 *
 *     $MILLRACE_CONTROL_DIR, and then no other
 *     $XDG_RUNTIME_DIR, /run/user/UID, /tmp, /dev/shm, /var/tmp
 *     the abstract namespace of the network namespace
 *
 * in a folder `millrace-UID` (0700) of that one, as PID-RANDOM. Nobody has to guess: who
 * wants it looks in /proc/PID/fd and /proc/PID/net/unix (cli/attach_find.c). Every
 * process has its own, forked children too; the control thread sweeps away what killed
 * processes of the user left in the folder.
 *
 * Bounds: 4 connections at a time (more wait in the listener's queue), one request each,
 * 2 s for a client to say it and 5 s to take the answer, sizes as in net/attach.h.
 */
#ifndef MR_PROBE_CONTROL_H
#define MR_PROBE_CONTROL_H

#include "net/attach.h"
#include "probe/config.h"
#include "probe/own_fd.h"

struct mr_probe;

struct mr_control_request {
    const struct mr_attach_message *message;
    int fd; /* passed with it and closed after it; -1: none */
};

/*
 * Runs on the control thread, one request at a time. Puts fields into `answer`, or fails
 * with a reason for people in `error`, and what it put is forgotten. May take its time:
 * other requests wait.
 */
typedef enum mr_status mr_control_handler(struct mr_probe *probe,
                                          const struct mr_control_request *request,
                                          struct mr_attach_writer *answer,
                                          struct mr_error *error);

#define MR_CONTROL_REQUEST(name_, handler_, keys_, takes_fd_, summary_)                  \
    mr_control_handler handler_;
#include "probe/control_requests.def"
#undef MR_CONTROL_REQUEST

/* Functions that are pruned, and those that are worth leaving out. control_prune.c. */
void mr_control_put_prune(struct mr_probe *probe, struct mr_attach_writer *answer);

#define MR_CONTROL_PATH_SIZE 108 /* of sockaddr_un */

struct mr_control_socket {
    struct mr_own_fd own;
    char path[MR_CONTROL_PATH_SIZE]; /* '@...' in the abstract namespace; "": none */
};

/* A listening socket. MR_EADDR with what the user can do. control_socket.c. */
enum mr_status mr_control_socket_open(struct mr_control_socket *control,
                                      const struct mr_config *config, uint32_t pid,
                                      struct mr_error *error);
/* Takes its name away and closes it; in a forked child only closes it. */
void mr_control_socket_close(struct mr_control_socket *control, bool is_ours);
/* Removes sockets of processes that are gone from the folder of this one. */
void mr_control_socket_sweep(const struct mr_control_socket *control);

/* Makes the socket and starts the thread. MR_EADDR, MR_ENOMEM. */
enum mr_status mr_control_start(struct mr_probe *probe, struct mr_error *error);
/* In a forked child, before a new start: gives up the parent's. */
void mr_control_after_fork(struct mr_probe *probe);
/* At the end of the program. */
void mr_control_end(struct mr_probe *probe);

#endif
