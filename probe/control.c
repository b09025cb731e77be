/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control thread: takes connections, reads one request of each, has it done, gives
 * the answer back. It never waits for one client while another could go on, but for the
 * requests themselves, which are done one after the other.
 *
 * field        written by              read by  access
 * control      constructor, fork, end  we       the thread starts after it is set, and a
 *                                               forked child has another thread
 * stop_wanted  end of the program      we       acquire; a second late at most
 */
#include "probe/control.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "probe/futex.h"
#include "probe/registry.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define CLIENTS_MAX 4
#define REQUEST_NS (2 * MR_SECOND_NS)
#define ANSWER_NS (5 * MR_SECOND_NS)
/* A listener that the program closed is noticed so late. */
#define POLL_MS 500
#define PASSED_MAX 4
#define OVERFLOW_UID 65534 /* what the kernel shows of users that a namespace lacks */

struct client {
    struct mr_own_fd own; /* -1: free */
    int passed;           /* the descriptor that came with the request, or -1 */
    bool is_answering;
    uint64_t deadline_ns;
    size_t in_size, out_size, out_at;
    char in[MR_ATTACH_REQUEST_MAX];
    char out[MR_ATTACH_ANSWER_MAX];
};

struct mr_control {
    struct mr_control_socket socket;
    struct client clients[CLIENTS_MAX];
    struct mr_attach_message message;
};

struct request_kind {
    const char *name, *keys;
    mr_control_handler *handler;
    bool takes_fd;
};

static const struct request_kind kinds[] = {
#define MR_CONTROL_REQUEST(name_, handler_, keys_, takes_fd_, summary_)                  \
    {.name = (name_), .keys = (keys_), .handler = (handler_), .takes_fd = (takes_fd_)},
#include "probe/control_requests.def"
#undef MR_CONTROL_REQUEST
};

static void close_passed(struct client *client)
{
    if (client->passed >= 0)
        (void)close(client->passed);
    client->passed = -1;
}

static void close_client(struct client *client)
{
    close_passed(client);
    if (mr_own_fd_is_there(&client->own))
        (void)close(client->own.fd);
    client->own.fd = -1;
}

/*
 * The same user, or root. A user whom our user namespace does not know has passed the
 * mode of the socket's name (0600, in a folder of 0700), as only root outside can.
 */
static bool may_ask(const struct mr_control *control, int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return false;
    return peer.uid == geteuid() || peer.uid == 0 ||
           (peer.uid == OVERFLOW_UID && control->socket.path[0] == '/');
}

static struct client *free_client(struct mr_control *control)
{
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        if (control->clients[i].own.fd < 0)
            return &control->clients[i];
    return NULL;
}

static void take_client(struct mr_control *control, struct client *client)
{
    int fd = accept4(control->socket.own.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    if (!may_ask(control, fd)) {
        (void)close(fd);
        return;
    }
    client->passed = -1;
    client->is_answering = false;
    client->in_size = 0;
    client->deadline_ns = mr_clock_monotonic_ns() + REQUEST_NS;
    (void)mr_own_fd_adopt(&client->own, fd);
}

static const struct request_kind *kind_of(const char *name)
{
    for (size_t i = 0; i < MR_ARRAY_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

static enum mr_status unknown_request(const char *name, struct mr_error *error)
{
    char names[128] = "";

    for (size_t i = 0; i < MR_ARRAY_COUNT(kinds); i++) {
        size_t size = strlen(names);

        (void)snprintf(names + size, sizeof(names) - size, "%s%s", size ? ", " : "",
                       kinds[i].name);
    }
    return mr_error_set(error, MR_EUSAGE, "the probe has no request '%.31s', only %s",
                        name, names);
}

static bool has_key(const char *keys, const char *key)
{
    size_t size = strlen(key);

    for (const char *at = keys; (at = strstr(at, key)) != NULL; at += size)
        if ((at == keys || at[-1] == ' ') && (at[size] == ' ' || at[size] == '\0'))
            return true;
    return false;
}

static enum mr_status check_keys(const struct request_kind *kind,
                                 const struct mr_attach_message *message,
                                 struct mr_error *error)
{
    for (uint32_t i = 0; i < message->count; i++)
        if (!has_key(kind->keys, message->fields[i].key))
            return mr_error_set(error, MR_EUSAGE, "'%s' does not know '%s'", kind->name,
                                message->fields[i].key);
    return MR_OK;
}

static enum mr_status perform(struct mr_probe *probe, struct client *client,
                              struct mr_attach_writer *answer, struct mr_error *error)
{
    struct mr_attach_message *message = &probe->control->message;
    struct mr_control_request request = {.message = message, .fd = client->passed};
    const struct request_kind *kind;
    enum mr_status status = mr_attach_parse(client->in, client->in_size, message, error);

    if (status != MR_OK)
        return status;
    kind = kind_of(message->word);
    if (!kind)
        return unknown_request(message->word, error);
    status = check_keys(kind, message, error);
    if (status != MR_OK)
        return status;
    if ((request.fd >= 0) != kind->takes_fd)
        return mr_error_set(error, MR_EUSAGE, "'%s' %s descriptor", kind->name,
                            kind->takes_fd ? "needs a" : "takes no");
    return kind->handler(probe, &request, answer, error);
}

static void answer(struct mr_probe *probe, struct client *client)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_attach_writer writer;

    mr_attach_begin(&writer, client->out, sizeof(client->out), "ok");
    if (perform(probe, client, &writer, &error) != MR_OK) {
        mr_attach_begin(&writer, client->out, sizeof(client->out), "error");
        mr_attach_put(&writer, "text", "%s", error.text);
    }
    client->out_size = mr_attach_end_cut(&writer);
    client->out_at = 0;
    client->is_answering = true;
    client->deadline_ns = mr_clock_monotonic_ns() + ANSWER_NS;
    close_passed(client);
}

static void refuse(struct client *client, const char *text)
{
    struct mr_attach_writer writer;

    mr_attach_begin(&writer, client->out, sizeof(client->out), "error");
    mr_attach_put(&writer, "text", "%s", text);
    client->out_size = mr_attach_end_cut(&writer);
    client->out_at = 0;
    client->is_answering = true;
}

/* Keeps the first descriptor that comes, closes the rest. */
static void take_passed(struct client *client, struct msghdr *message)
{
    struct cmsghdr *header = CMSG_FIRSTHDR(message);

    for (; header; header = CMSG_NXTHDR(message, header)) {
        size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
            if (client->passed < 0)
                client->passed = fd;
            else
                (void)close(fd);
        }
    }
}

static ssize_t receive(struct client *client)
{
    union {
        struct cmsghdr header; /* for its alignment */
        char space[CMSG_SPACE(PASSED_MAX * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = client->in + client->in_size,
                         .iov_len = sizeof(client->in) - client->in_size};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    ssize_t size = recvmsg(client->own.fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

    if (size >= 0)
        take_passed(client, &message);
    return size;
}

static void read_some(struct mr_probe *probe, struct client *client)
{
    ssize_t size = receive(client);

    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size <= 0) {
        close_client(client);
        return;
    }
    client->in_size += (size_t)size;
    if (mr_attach_is_whole(client->in, client->in_size))
        answer(probe, client);
    else if (client->in_size == sizeof(client->in))
        refuse(client, "the request is too long");
}

static void write_some(struct client *client)
{
    ssize_t size = send(client->own.fd, client->out + client->out_at,
                        client->out_size - client->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size > 0)
        client->out_at += (size_t)size;
    if (size < 0 || client->out_at == client->out_size)
        close_client(client);
}

static void serve(struct mr_probe *probe, struct client *client, short events,
                  uint64_t now_ns)
{
    if (!mr_own_fd_is_there(&client->own)) { /* the program closed it */
        client->own.fd = -1;
        close_passed(client);
        return;
    }
    if (events && !client->is_answering)
        read_some(probe, client);
    if (client->own.fd >= 0 && client->is_answering)
        write_some(client);
    if (client->own.fd >= 0 && now_ns > client->deadline_ns)
        close_client(client);
}

/* The program closed the listener: another one, under another name. */
static void listen_again(struct mr_probe *probe)
{
    struct mr_control_socket *control = &probe->control->socket;
    struct mr_error error = MR_ERROR_NONE;

    if (mr_own_fd_is_there(&control->own))
        return;
    mr_control_socket_close(control, true);
    (void)mr_control_socket_open(control, &probe->config, probe->source.pid, &error);
}

/* Waits for clients; entry CLIENTS_MAX is the listener. */
static void wait_for_clients(struct mr_control *control, struct pollfd *polls)
{
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        polls[i] = (struct pollfd){.fd = control->clients[i].own.fd,
                                   .events = control->clients[i].is_answering ? POLLOUT
                                                                              : POLLIN};
    polls[CLIENTS_MAX] = (struct pollfd){
        .fd = free_client(control) ? control->socket.own.fd : -1, .events = POLLIN};
    if (poll(polls, CLIENTS_MAX + 1, POLL_MS) <= 0)
        for (size_t i = 0; i <= CLIENTS_MAX; i++)
            polls[i].revents = 0;
}

static void *control_main(void *argument)
{
    struct mr_probe *probe = argument;
    struct mr_control *control = probe->control;
    struct pollfd polls[CLIENTS_MAX + 1];

    mr_own_thread_begin(probe, "millrace-ctl");
    mr_control_socket_sweep(&control->socket);
    while (!mr_load_acquire(&probe->stop_wanted)) {
        uint64_t now_ns;

        listen_again(probe);
        mr_last_thread_look(probe);
        wait_for_clients(control, polls);
        now_ns = mr_clock_monotonic_ns();
        for (size_t i = 0; i < CLIENTS_MAX; i++)
            if (control->clients[i].own.fd >= 0)
                serve(probe, &control->clients[i], polls[i].revents, now_ns);
        if ((polls[CLIENTS_MAX].revents & POLLIN) &&
            mr_own_fd_is_there(&control->socket.own))
            take_client(control, free_client(control));
    }
    return NULL;
}

static void init_clients(struct mr_control *control)
{
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        control->clients[i].own.fd = -1;
        control->clients[i].passed = -1;
    }
}

static struct mr_control *map_control(void)
{
    struct mr_control *control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return control == MAP_FAILED ? NULL : control;
}

enum mr_status mr_control_start(struct mr_probe *probe, struct mr_error *error)
{
    enum mr_status status;

    if (!probe->control)
        probe->control = map_control();
    if (!probe->control)
        return mr_error_set(error, MR_ENOMEM, "out of memory");
    init_clients(probe->control);
    status = mr_control_socket_open(&probe->control->socket, &probe->config,
                                    probe->source.pid, error);
    if (status == MR_OK && mr_own_thread(probe, control_main) != MR_OK) {
        mr_control_socket_close(&probe->control->socket, true);
        return mr_error_set(error, MR_ENOMEM, "no control thread could be started");
    }
    return status;
}

void mr_control_after_fork(struct mr_probe *probe)
{
    struct mr_control *control = probe->control;

    if (!control)
        return;
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        if (control->clients[i].own.fd >= 0)
            close_client(&control->clients[i]);
    mr_control_socket_close(&control->socket, false);
    /* Fresh pages instead of copies. */
    (void)madvise(control, sizeof(*control), MADV_DONTNEED);
    control->socket.own.fd = -1;
    init_clients(control);
}

void mr_control_end(struct mr_probe *probe)
{
    struct mr_control *control = probe->control;

    if (control && control->socket.path[0] == '/')
        (void)unlink(control->socket.path);
}
