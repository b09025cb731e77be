/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One service of a chain: takes requests on a socket, one after the other on a connection,
 * asks the next service for each if there is one, and answers. Requests carry a
 * traceparent header if they are of a traced program.
 *
 *     service client COUNT PORT           sends COUNT requests to PORT, "ok" or "failed" each
 *     service server NAME [PORT]          listens, prints its port, serves until stdin ends;
 *                                         asks PORT, if given, for each request
 *
 * The request is "N HEADER\n", N its number; the answer "ok\n", "failed\n". Every tenth request to
 * a server without a next one fails.
 */
#include <millrace/probe.h>

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINE 256

/* A line, without its end. 0 at the end of the connection. */
MR_NEVER_TRACE static int read_line(int fd, char line[LINE])
{
    int size = 0;

    while (size < LINE - 1) {
        char one;

        if (read(fd, &one, 1) != 1)
            return 0;
        if (one == '\n')
            break;
        line[size++] = one;
    }
    line[size] = '\0';
    return 1;
}

MR_NEVER_TRACE static int write_line(int fd, const char *line)
{
    char text[LINE];
    int size = snprintf(text, sizeof(text), "%s\n", line);

    return write(fd, text, (size_t)size) == size;
}

MR_NEVER_TRACE static int connect_to(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((unsigned short)atoi(port)),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        perror("connect");
        exit(1);
    }
    return fd;
}

/* Sends one request and waits for its answer. */
static int ask(int fd, unsigned number)
{
    struct mr_traceparent parent;
    char line[LINE], header[MR_TRACEPARENT_SIZE] = "-";

    if (mr_send(&parent))
        mr_traceparent_format(&parent, header);
    snprintf(line, sizeof(line), "%u %s", number, header);
    if (!write_line(fd, line) || !read_line(fd, line))
        return -1;
    return strcmp(line, "ok") == 0 ? 0 : 1;
}

static unsigned price(unsigned number)
{
    return number * 3;
}

static int answer(unsigned number, int next)
{
    int failed = next >= 0 ? ask(next, number) : number % 10 == 9;

    (void)price(number);
    if (failed)
        mr_status_failed();
    return failed;
}

/* What a request is, traced or not: the header tells. */
MR_NEVER_TRACE static int serve_one(char *line, int next)
{
    struct mr_traceparent parent;
    char *header = strchr(line, ' ');
    int failed;

    if (header && strcmp(header, " -") != 0) {
        (void)mr_traceparent_parse(header + 1, strlen(header + 1), &parent);
        mr_receive(&parent);
    } else {
        mr_receive(NULL);
    }
    failed = answer((unsigned)atoi(line), next);
    mr_detach();
    return failed;
}

MR_NEVER_TRACE static void serve(int fd, int next)
{
    char line[LINE];

    while (read_line(fd, line))
        if (!write_line(fd, serve_one(line, next) ? "failed" : "ok"))
            break;
    close(fd);
}

MR_NEVER_TRACE static int listen_anywhere(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 8) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        perror("listen");
        exit(1);
    }
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void run_server(const char *port)
{
    int listener = listen_anywhere(), next = port ? connect_to(port) : -1;
    struct pollfd fds[] = {{.fd = listener, .events = POLLIN},
                           {.fd = STDIN_FILENO, .events = POLLIN}};

    while (poll(fds, 2, -1) > 0 && !fds[1].revents)
        if (fds[0].revents)
            serve(accept(listener, NULL, NULL), next);
}

static int request(int fd, unsigned number)
{
    int failed;

    mr_receive(NULL); /* a trace begins */
    failed = ask(fd, number);
    if (failed)
        mr_status_failed();
    mr_detach();
    return failed;
}

static int run_client(unsigned count, const char *port)
{
    int fd = connect_to(port), unanswered = 0;

    for (unsigned i = 0; i < count && !unanswered; i++) {
        int result = request(fd, i);

        unanswered = result < 0;
        if (i + 1 == count || unanswered)
            printf("asked %u\n", i + 1);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], "client") == 0)
        return run_client((unsigned)atoi(argv[2]), argv[3]);
    run_server(argc > 3 ? argv[3] : NULL);
    return 0;
}
