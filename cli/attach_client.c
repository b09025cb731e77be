/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/attach_client.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PATH_SIZE (MR_ATTACH_ADDRESS_SIZE + 64)

enum mr_status mr_attach_open(pid_t pid, struct mr_attach_client **client,
                              struct mr_error *error)
{
    struct mr_attach_client *made = malloc(sizeof(*made));
    enum mr_status status;

    if (!made)
        return mr_error_set(error, MR_ENOMEM, "out of memory");
    made->pid = pid;
    status = mr_attach_find(pid, made->address, error);
    if (status == MR_OK)
        *client = made;
    else
        free(made);
    return status;
}

void mr_attach_close(struct mr_attach_client *client)
{
    free(client);
}

void mr_attach_request(struct mr_attach_client *client, const char *name)
{
    mr_attach_begin(&client->request, client->request_text, sizeof(client->request_text),
                    name);
}

static enum mr_status cannot_reach(const struct mr_attach_client *client, int failure,
                                   struct mr_error *error)
{
    return mr_error_set_errno(error, MR_EIO, failure, "process %d: cannot reach %.107s",
                              (int)client->pid, client->address);
}

/* The same namespace as ours already counts as entered. */
static bool enter_namespace(pid_t pid, const char *name)
{
    char path[64], own[64];
    struct stat theirs, ours;
    bool is_in;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, name);
    (void)snprintf(own, sizeof(own), "/proc/self/ns/%s", name);
    if (stat(path, &theirs) == 0 && stat(own, &ours) == 0 && theirs.st_ino == ours.st_ino)
        return true;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    is_in = fd >= 0 && setns(fd, 0) == 0;
    if (fd >= 0)
        (void)close(fd);
    return is_in;
}

/* It waits for a limited time, also to be connected where many want to be. */
static int new_socket(void)
{
    struct timeval wait = {.tv_sec = MR_ATTACH_WAIT_S};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
    }
    return fd;
}

/* Abstract names are those of a network namespace; its owner may be a user namespace. */
static bool connect_abstract(const struct mr_attach_client *client, int *fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(client->address);

    if (size > sizeof(address.sun_path))
        return false;
    memcpy(address.sun_path, client->address, size);
    address.sun_path[0] = '\0';
    if (!enter_namespace(client->pid, "net")) {
        (void)enter_namespace(client->pid, "user");
        if (!enter_namespace(client->pid, "net"))
            return false;
    }
    *fd = new_socket();
    return *fd >= 0 &&
           connect(*fd, (const struct sockaddr *)&address,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size)) == 0;
}

/* By a descriptor of the socket's file, as names below /proc/PID/root may get too long. */
static bool connect_file(const struct mr_attach_client *client, int *fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[PATH_SIZE];
    int file, failure;
    bool is_open;

    (void)snprintf(path, sizeof(path), "/proc/%d/root%s", (int)client->pid,
                   client->address);
    file = open(path, O_PATH | O_CLOEXEC);
    if (file < 0)
        return false;
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", file);
    *fd = new_socket();
    is_open = *fd >= 0 && connect(*fd, (const struct sockaddr *)&address,
                                  (socklen_t)sizeof(address)) == 0;
    failure = errno;
    (void)close(file);
    errno = failure;
    return is_open;
}

/* Who listens is the process that was asked for, by the kernel's word. */
static enum mr_status check_peer(const struct mr_attach_client *client, int fd,
                                 struct mr_error *error)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return cannot_reach(client, errno, error);
    if (peer.pid != client->pid)
        return mr_error_set(error, MR_EIO,
                            "process %d: process %d listens on %.107s; one that has just "
                            "been forked has its own socket in a moment",
                            (int)client->pid, (int)peer.pid, client->address);
    return MR_OK;
}

static enum mr_status connect_to(const struct mr_attach_client *client, int *fd,
                                 struct mr_error *error)
{
    bool is_open;

    *fd = -1;
    is_open = client->address[0] == '@' ? connect_abstract(client, fd)
                                        : connect_file(client, fd);
    if (!is_open)
        return cannot_reach(client, errno, error);
    return check_peer(client, *fd, error);
}

/* The descriptor goes with the first byte. */
static bool send_request(int to, const char *text, size_t size, int fd)
{
    union {
        struct cmsghdr header; /* for its alignment */
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.space = {0}};
    struct iovec part = {.iov_base = (void *)(uintptr_t)text, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t sent;

    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(fd)),
                                          .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    }
    sent = sendmsg(to, &message, MSG_NOSIGNAL);
    while (sent > 0 && (size_t)sent < size) {
        text += sent;
        size -= (size_t)sent;
        sent = send(to, text, size, MSG_NOSIGNAL);
    }
    return sent > 0;
}

static enum mr_status receive_answer(struct mr_attach_client *client, int fd,
                                     size_t *size, struct mr_error *error)
{
    ssize_t more = 1;

    *size = 0;
    while (more > 0 && *size < sizeof(client->answer_text) &&
           !mr_attach_is_whole(client->answer_text, *size)) {
        more =
            recv(fd, client->answer_text + *size, sizeof(client->answer_text) - *size, 0);
        if (more < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return mr_error_set(error, MR_ETIMEOUT, "process %d: no answer within %d s",
                                (int)client->pid, MR_ATTACH_WAIT_S);
        if (more > 0)
            *size += (size_t)more;
    }
    if (more < 0)
        return cannot_reach(client, errno, error);
    if (*size == 0)
        return mr_error_set(error, MR_EIO,
                            "process %d closed the connection: it serves only its own "
                            "user and root, or has just ended",
                            (int)client->pid);
    return MR_OK;
}

static enum mr_status read_answer(struct mr_attach_client *client, size_t size,
                                  struct mr_error *error)
{
    struct mr_attach_message *answer = &client->answer;
    struct mr_error cause = MR_ERROR_NONE;
    const char *text;

    if (mr_attach_parse(client->answer_text, size, answer, &cause) != MR_OK)
        return mr_error_set(error, MR_EFORMAT, "process %d: its answer: %s",
                            (int)client->pid, cause.text);
    if (strcmp(answer->word, "ok") == 0)
        return MR_OK;
    text = mr_attach_get(answer, "text");
    return mr_error_set(error, MR_EUSAGE, "process %d: %s", (int)client->pid,
                        text ? text : "refused without a reason");
}

enum mr_status mr_attach_ask(struct mr_attach_client *client, int fd,
                             struct mr_error *error)
{
    size_t size = mr_attach_end(&client->request);
    enum mr_status status;
    int connection = -1;

    if (size == 0)
        return mr_error_set(error, MR_EUSAGE, "the request is longer than %zu bytes",
                            MR_ATTACH_REQUEST_MAX);
    status = connect_to(client, &connection, error);
    if (status == MR_OK && !send_request(connection, client->request_text, size, fd))
        status = cannot_reach(client, errno, error);
    if (status == MR_OK)
        status = receive_answer(client, connection, &size, error);
    if (connection >= 0)
        (void)close(connection);
    return status == MR_OK ? read_answer(client, size, error) : status;
}
