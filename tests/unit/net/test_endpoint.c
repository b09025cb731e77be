/* SPDX-License-Identifier: Apache-2.0 */
#include "net/endpoint.h"

#include <arpa/inet.h>
#include <unistd.h>

#include "tests/unit/net/net_test.h"

static void endpoints_are_a_list_with_commas(void **state)
{
    struct mr_endpoints endpoints;

    (void)state;
    assert_int_equal(mr_endpoints_parse("tcp://127.0.0.1:4400,web1:1,tcp://[::1]:65535",
                                        &endpoints, NULL),
                     MR_OK);
    assert_int_equal(endpoints.count, 3);
    assert_string_equal(endpoints.items[0].host, "127.0.0.1");
    assert_string_equal(endpoints.items[0].port, "4400");
    assert_string_equal(endpoints.items[1].host, "web1");
    assert_string_equal(endpoints.items[2].host, "::1");
    assert_string_equal(endpoints.items[2].port, "65535");
}

static void a_bad_endpoint_is_named(void **state)
{
    static const char *const bad[] = {"",
                                      "host",
                                      "tcp://",
                                      "tcp://host",
                                      "tcp://host:",
                                      "tcp://:80",
                                      "host:65536",
                                      "host:8x",
                                      "host:80,",
                                      ",host:80",
                                      "::1:80",
                                      "http://host:80",
                                      "tcp://[]:80",
                                      "ho st:80",
                                      "a@b:80",
                                      "host:000080",
                                      "tcp://host:80/path"};
    char list[200] = "h:1";
    struct mr_endpoints endpoints;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct mr_error error = MR_ERROR_NONE;

        assert_int_equal(mr_endpoints_parse(bad[i], &endpoints, &error), MR_EUSAGE);
        assert_non_null(strstr(error.text, "tcp://host:port"));
    }
    for (int i = 0; i < MR_ENDPOINTS_MAX; i++)
        strcat(list, ",h:1");
    assert_int_equal(mr_endpoints_parse(list, &endpoints, NULL), MR_EUSAGE);
}

static void another_scheme_is_named_as_that(void **state)
{
    struct mr_endpoints endpoints;
    struct mr_error error = MR_ERROR_NONE;

    (void)state;
    assert_int_equal(mr_endpoints_parse("unix:///run/x", &endpoints, &error), MR_EUSAGE);
    assert_non_null(strstr(error.text, "tcp:// is all"));
}

static void a_host_that_is_too_long_is_refused(void **state)
{
    char text[400];
    struct mr_endpoints endpoints;

    (void)state;
    memset(text, 'a', sizeof(text));
    memcpy(text + 255, ":1", 3);
    assert_int_equal(mr_endpoints_parse(text, &endpoints, NULL), MR_OK);
    text[255] = 'a';
    memcpy(text + 256, ":1", 3);
    assert_int_equal(mr_endpoints_parse(text, &endpoints, NULL), MR_EUSAGE);
}

static void addresses_need_no_resolver_and_names_do(void **state)
{
    struct mr_endpoints endpoints;
    struct mr_sender_address addresses[MR_SENDER_ADDRESSES_MAX];
    struct mr_error error = MR_ERROR_NONE;
    struct sockaddr_in v4;
    uint32_t count;

    (void)state;
    assert_int_equal(mr_endpoints_parse("127.0.0.1:4400,[::1]:1", &endpoints, NULL),
                     MR_OK);
    assert_int_equal(mr_endpoints_numeric(&endpoints, addresses, &count, &error), MR_OK);
    assert_int_equal(count, 2);
    memcpy(&v4, &addresses[0].address, sizeof(v4));
    assert_int_equal(ntohs(v4.sin_port), 4400);
    assert_int_equal(addresses[1].address.ss_family, AF_INET6);
    assert_int_equal(addresses[1].size, sizeof(struct sockaddr_in6));
    assert_int_equal(mr_endpoints_parse("localhost:1", &endpoints, NULL), MR_OK);
    assert_int_equal(mr_endpoints_numeric(&endpoints, addresses, &count, &error),
                     MR_EUSAGE);
    assert_non_null(strstr(error.text, "localhost"));
    assert_int_equal(mr_endpoints_resolve(&endpoints, addresses, &count, NULL), MR_OK);
    assert_true(count >= 1);
}

static void a_name_that_does_not_resolve_is_not_found(void **state)
{
    struct mr_endpoints endpoints;
    struct mr_sender_address addresses[MR_SENDER_ADDRESSES_MAX];
    struct mr_error error = MR_ERROR_NONE;
    uint32_t count;

    (void)state;
    assert_int_equal(mr_endpoints_parse("no-such-host.invalid:1", &endpoints, NULL),
                     MR_OK);
    assert_int_equal(mr_endpoints_resolve(&endpoints, addresses, &count, &error),
                     MR_ENOTFOUND);
    assert_non_null(strstr(error.text, "no-such-host.invalid"));
}

static enum mr_status listen_on(const char *host, const char *port, bool has_token,
                                bool insecure, int *fd, uint16_t *bound,
                                struct mr_error *error)
{
    struct mr_endpoint endpoint;

    (void)snprintf(endpoint.host, sizeof(endpoint.host), "%s", host);
    (void)snprintf(endpoint.port, sizeof(endpoint.port), "%s", port);
    return mr_listen(&endpoint, has_token, insecure, fd, bound, error);
}

static void a_port_that_is_in_use_is_told_with_the_way_out(void **state)
{
    struct mr_error error = MR_ERROR_NONE;
    char port[8];
    int first, second;
    uint16_t bound, other;

    (void)state;
    assert_int_equal(listen_on("127.0.0.1", "0", false, false, &first, &bound, NULL),
                     MR_OK);
    assert_int_not_equal(bound, 0);
    (void)snprintf(port, sizeof(port), "%u", bound);
    assert_int_equal(listen_on("127.0.0.1", port, false, false, &second, &other, &error),
                     MR_EADDR);
    assert_int_equal(second, -1);
    assert_non_null(strstr(error.text, "port 0"));
    assert_int_equal(close(first), 0);
}

static void listening_outside_loopback_needs_a_token_or_insecure(void **state)
{
    struct mr_error error = MR_ERROR_NONE;
    int fd;
    uint16_t port;

    (void)state;
    assert_int_equal(listen_on("0.0.0.0", "0", false, false, &fd, &port, &error),
                     MR_EUSAGE);
    assert_int_equal(fd, -1);
    assert_non_null(strstr(error.text, "--insecure"));
    assert_int_equal(listen_on("0.0.0.0", "0", true, false, &fd, &port, NULL), MR_OK);
    assert_int_equal(close(fd), 0);
    assert_int_equal(listen_on("0.0.0.0", "0", false, true, &fd, &port, NULL), MR_OK);
    assert_int_equal(close(fd), 0);
    assert_int_equal(listen_on("127.9.9.9", "0", false, false, &fd, &port, NULL), MR_OK);
    assert_int_equal(close(fd), 0);
    assert_int_equal(listen_on("::ffff:10.0.0.1", "0", false, false, &fd, &port, NULL),
                     MR_EUSAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoints_are_a_list_with_commas),
        cmocka_unit_test(a_bad_endpoint_is_named),
        cmocka_unit_test(another_scheme_is_named_as_that),
        cmocka_unit_test(a_host_that_is_too_long_is_refused),
        cmocka_unit_test(addresses_need_no_resolver_and_names_do),
        cmocka_unit_test(a_name_that_does_not_resolve_is_not_found),
        cmocka_unit_test(a_port_that_is_in_use_is_told_with_the_way_out),
        cmocka_unit_test(listening_outside_loopback_needs_a_token_or_insecure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
