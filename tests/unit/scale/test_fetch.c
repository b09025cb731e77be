/* SPDX-License-Identifier: Apache-2.0 */
/* scale/fetch.h: metrics are found by name and labels. What servers answer is tests/system/scale's. */
#include "scale/fetch.h"

#include "base/clock.h"
#include "tests/unit/unit_test.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char text[] = "HTTP/1.1 200 OK\r\nX: y\r\n\r\n"
                           "# HELP millrace_senders Senders.\n"
                           "# TYPE millrace_senders gauge\n"
                           "millrace_senders 12\n"
                           "millrace_senders_total 13\n"
                           "millrace_state{state=\"up\"} 0\n"
                           "millrace_state{state=\"drain\"} 1\n"
                           "millrace_busy{f=\"a b\"} 0.25\n"
                           "millrace_busy{f=\"c\"} 0.5\n"
                           "millrace_busy{f=\"d\"} 0.125\n";

static void a_value_is_found_by_name_and_labels(void **state)
{
    double value = -1;

    MR_UNUSED(state);
    assert_true(mr_fetch_value(text, "millrace_senders", "", &value));
    assert_int_equal(value, 12);
    assert_true(mr_fetch_value(text, "millrace_state", "{state=\"drain\"}", &value));
    assert_int_equal(value, 1);
    assert_false(mr_fetch_value(text, "millrace_state", "{state=\"down\"}", &value));
    assert_false(mr_fetch_value(text, "millrace_state", "", &value));
    assert_false(mr_fetch_value(text, "millrace_sender", "", &value));
    assert_false(mr_fetch_value("", "millrace_senders", "", &value));
}

static void the_largest_is_that_of_all_labels(void **state)
{
    double value = -1;

    MR_UNUSED(state);
    assert_true(mr_fetch_largest(text, "millrace_busy", &value));
    assert_int_equal(value * 1000, 500);
    assert_false(mr_fetch_largest(text, "millrace_idle", &value));
}

static void who_is_not_there_is_told_of_with_the_address(void **state)
{
    struct mr_fetch fetches[] = {{.address = "127.0.0.1:1"}, {.address = "nonsense"}};

    MR_UNUSED(state);
    mr_fetch_all(fetches, 2, "/metrics", 30 * MR_SECOND_NS);
    assert_false(fetches[0].is_there || fetches[1].is_there);
    assert_non_null(strstr(fetches[0].error.text, "127.0.0.1:1: connect"));
    assert_non_null(strstr(fetches[1].error.text, "nonsense"));
    mr_fetch_free(fetches, 2);
}

static int listen_at(int backlog, uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_return_code(bind(fd, (const struct sockaddr *)&at, size), 0);
    assert_return_code(listen(fd, backlog), 0);
    assert_return_code(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

/* Its queue holds one connection that nobody takes, and is full: what comes then is not answered. */
static void fill(uint16_t port, int clients[2])
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons(port)};

    for (int i = 0; i < 2; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(clients[i], (const struct sockaddr *)&to, sizeof(to));
    }
}

static void *answer_once(void *listener)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\n\r\nmillrace_senders 3\n";
    int fd = accept(*(int *)listener, NULL, NULL);
    char request[1024];

    (void)!read(fd, request, sizeof(request));
    (void)!write(fd, answer, sizeof(answer) - 1);
    (void)close(fd);
    return NULL;
}

/* A name with several addresses, of which the first one refuses, then is silent. */
static void the_address_that_answers_is_asked(void **state)
{
    uint16_t silent_port, port;
    int silent = listen_at(0, &silent_port), listener = listen_at(1, &port), clients[2];
    const unsigned before[] = {1, silent_port};

    MR_UNUSED(state);
    fill(silent_port, clients);
    for (size_t i = 0; i < MR_ARRAY_COUNT(before); i++) {
        struct mr_fetch fetch = {.fd = -1};
        pthread_t server;

        (void)snprintf(fetch.address, sizeof(fetch.address), "127.0.0.1:%u,127.0.0.1:%u",
                       before[i], (unsigned)port);
        assert_int_equal(pthread_create(&server, NULL, answer_once, &listener), 0);
        mr_fetch_all(&fetch, 1, "/metrics", MR_SECOND_NS);
        assert_string_equal(fetch.error.text, "");
        assert_true(fetch.is_there);
        assert_non_null(strstr(fetch.text, "millrace_senders 3"));
        mr_fetch_free(&fetch, 1);
        assert_int_equal(pthread_join(server, NULL), 0);
    }
    for (int i = 0; i < 2; i++)
        (void)close(clients[i]);
    (void)close(silent);
    (void)close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_found_by_name_and_labels),
        cmocka_unit_test(the_largest_is_that_of_all_labels),
        cmocka_unit_test(who_is_not_there_is_told_of_with_the_address),
        cmocka_unit_test(the_address_that_answers_is_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
