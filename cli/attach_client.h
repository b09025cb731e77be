/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of the control socket of a running program (probe/control.h): finds it,
 * connects, asks. The pid is as this process sees it; the program may live in other
 * mount, pid, user and network namespaces.
 *
 *     struct mr_attach_client *client;
 *     status = mr_attach_open(pid, &client, &error);
 *     mr_attach_request(client, "on");
 *     mr_attach_put(&client->request, "only", "%s", glob);
 *     status = mr_attach_ask(client, -1, &error);        // client->answer
 *     mr_attach_close(client);
 *
 * One request per mr_attach_request() and mr_attach_ask(); each connects anew. One
 * thread. May enter the program's network namespace, so it is for commands that end soon.
 */
#ifndef MR_CLI_ATTACH_CLIENT_H
#define MR_CLI_ATTACH_CLIENT_H

#include "net/attach.h"

#include <sys/types.h>

/* Longer than the longest request takes. */
#define MR_ATTACH_WAIT_S 90
#define MR_ATTACH_ADDRESS_SIZE 128

struct mr_attach_client {
    pid_t pid;
    char address[MR_ATTACH_ADDRESS_SIZE]; /* as the program bound it; '@': abstract */
    struct mr_attach_writer request;
    char request_text[MR_ATTACH_REQUEST_MAX];
    struct mr_attach_message answer; /* of the last mr_attach_ask() that was MR_OK */
    char answer_text[MR_ATTACH_ANSWER_MAX];
};

/*
 * Where the process listens. MR_ENOTFOUND: no such process; MR_EREFUSED: another user's;
 * MR_EUSAGE: it has no probe, or was not started with MILLRACE_CONTROL=1 - `error` tells
 * what it needs. attach_find.c.
 */
enum mr_status mr_attach_find(pid_t pid, char address[MR_ATTACH_ADDRESS_SIZE],
                              struct mr_error *error);

/* The failures of mr_attach_find(), MR_ENOMEM. */
enum mr_status mr_attach_open(pid_t pid, struct mr_attach_client **client,
                              struct mr_error *error);
void mr_attach_close(struct mr_attach_client *client);
void mr_attach_request(struct mr_attach_client *client, const char *name);
/*
 * Sends the request, with a duplicate of `fd` where it is not -1, and waits for the
 * answer. MR_EUSAGE: the probe refuses, with its reason; MR_EIO, MR_ETIMEOUT, MR_EFORMAT.
 */
enum mr_status mr_attach_ask(struct mr_attach_client *client, int fd,
                             struct mr_error *error);

#endif
