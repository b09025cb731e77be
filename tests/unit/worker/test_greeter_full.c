/* SPDX-License-Identifier: Apache-2.0 */
/* A greeter whose process has no descriptor left. */
#include "worker/greeter.h"

#include "tests/unit/unit_test.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static int open_client(int listener)
{
    struct sockaddr_in address;
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, size), 0);
    return fd;
}

static void give(void *context, struct mr_connection *connection)
{
    (void)context;
    (void)connection;
    fail_msg("no HELLO came");
}

/* What is open stays; nothing more can be opened. */
static void allow_files(rlim_t count)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = count < limit.rlim_max ? count : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* The listener is readable for as long as somebody waits: to be told of it at once, again and again, is a processor for nothing. */
static void without_descriptors_it_does_not_listen_until_the_next_tick(void **state)
{
    struct mr_worker_counters counters = {0};
    struct mr_greeter greeter = {
        .rules = {.max_frame = 65536, .max_connections = 10},
        .listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
        .epoll_fd = epoll_create1(EPOLL_CLOEXEC),
        .give = give,
        .counters = &counters};
    struct epoll_event event;
    int client;

    (void)state;
    assert_int_equal(listen(greeter.listen_fd, 1), 0); /* at any port of this host */
    assert_int_equal(mr_greeter_open(&greeter), MR_OK);
    client = open_client(greeter.listen_fd);
    allow_files(0);
    assert_int_equal(epoll_wait(greeter.epoll_fd, &event, 1, 10000), 1);
    mr_greeter_accept(&greeter, 1);
    assert_int_equal(epoll_wait(greeter.epoll_fd, &event, 1, 0), 0);
    mr_greeter_tick(&greeter, 2);
    assert_int_equal(epoll_wait(greeter.epoll_fd, &event, 1, 0), 1); /* it asks again */
    mr_greeter_accept(&greeter, 3);
    allow_files(1024);
    mr_greeter_tick(&greeter, 4);
    assert_int_equal(epoll_wait(greeter.epoll_fd, &event, 1, 0), 1);
    mr_greeter_accept(&greeter, 5);
    assert_int_equal(greeter.pending.count, 1);
    mr_greeter_close(&greeter);
    (void)close(client);
    (void)close(greeter.epoll_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_descriptors_it_does_not_listen_until_the_next_tick),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
