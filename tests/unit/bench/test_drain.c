/* SPDX-License-Identifier: Apache-2.0 */
/* bench/drain.h: what is sent is counted; OTLP requests are answered, whatever pieces they come in. */
#include "bench/drain.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Two resources; three spans, one of them with fields of other kinds behind it. */
static const uint8_t request[] = {
    0x0a, 12,   0x0a, 1,  0x00, /* resource spans, resource */
    0x12, 7,    0x12, 2,  0x08, 1,
    0x12, 1,    0x08, /* scope spans: a span; one cut inside */
    0x0a, 12,   0x12, 10, 0x12, 1,
    0x00, 0x08, 0x96,              /* scope spans: a span, a varint */
    0x01, 0x25, 1,    2,  3,    4, /* and 32 bits */
};

static void spans_are_counted(void **unused)
{
    (void)unused;
    assert_int_equal(mr_drain_count_spans(request, sizeof(request)), 3);
    assert_int_equal(mr_drain_count_spans(NULL, 0), 0);
    for (size_t size = 0; size < sizeof(request); size++) /* cut anywhere */
        assert_true(mr_drain_count_spans(request, size) <= 3);
}

static int connect_to(const struct mr_drain *drain)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(drain->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void bytes_are_taken(void **unused)
{
    struct mr_drain drain;
    int fd;

    (void)unused;
    assert_int_equal(mr_drain_start(&drain, MR_DRAIN_BYTES, NULL), 0);
    fd = connect_to(&drain);
    for (int i = 0; i < 100; i++)
        assert_int_equal(send(fd, request, sizeof(request), 0), sizeof(request));
    (void)shutdown(fd, SHUT_WR);
    assert_int_equal(recv(fd, &(char){0}, 1, 0), 0); /* it has read to the end */
    (void)close(fd);
    mr_drain_stop(&drain);
    assert_int_equal(drain.bytes, 100 * sizeof(request));
    assert_int_equal(drain.spans, 0);
}

static void requests_are_answered(void **unused)
{
    char text[200], answer[200];
    struct mr_drain drain;
    size_t size;
    int fd;

    (void)unused;
    size = (size_t)snprintf(text, sizeof(text),
                            "POST /v1/traces HTTP/1.1\r\ncontent-length: %zu\r\n\r\n",
                            sizeof(request));
    memcpy(text + size, request, sizeof(request));
    size += sizeof(request);
    assert_int_equal(mr_drain_start(&drain, MR_DRAIN_OTLP, NULL), 0);
    fd = connect_to(&drain);
    for (int i = 0; i < 2; i++) {
        for (size_t at = 0; at < size; at += 10) {
            size_t part = size - at < 10 ? size - at : 10;

            assert_int_equal(send(fd, text + at, part, 0), part);
        }
        assert_true(recv(fd, answer, sizeof(answer), 0) > 0);
        assert_memory_equal(answer, "HTTP/1.1 200", 12);
    }
    (void)close(fd);
    mr_drain_stop(&drain);
    assert_int_equal(drain.spans, 6);
    assert_int_equal(drain.bytes, 2 * size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_counted),
        cmocka_unit_test(bytes_are_taken),
        cmocka_unit_test(requests_are_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
