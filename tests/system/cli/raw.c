/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that breaks the format in one way, and prints what the server answers.
 *
 *     cli_raw HOST PORT WAY [ARGUMENT]
 *
 *     close             connects and closes: a health check
 *     good [TOKEN]      HELLO, then BYE
 *     worker LEVEL      HELLO of a worker
 *     version           HELLO in a frame of version 2
 *     oversized         HELLO, then a header that announces 2 GiB
 *     checksum          HELLO, then a frame with one bit of its payload turned
 *     skip              HELLO, then data frame 7
 *     early             data before HELLO
 *     hello             a HELLO that is no msgpack map
 *     dict              HELLO, then a DICT that is no array
 *     http              GET / HTTP/1.0
 *     random SEED       some kilobytes of noise
 *     noise SEED        HELLO, then noise
 *     truncated SEED    HELLO, then a sound frame that ends somewhere
 *
 * One line per frame that comes back ("WELCOME", "ERROR 2: text"), then "closed", or "open" when the
 * server said nothing for 2 s.
 */
#include "net/control.h"
#include "net/frame.h"
#include "net/wire.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define FRAME_MAX 65536

struct client {
    int fd;
    uint8_t frame[MR_WIRE_HEADER_SIZE + FRAME_MAX];
    uint64_t random;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t next_random(struct client *client)
{
    client->random ^= client->random << 13;
    client->random ^= client->random >> 7;
    client->random ^= client->random << 17;
    return client->random;
}

static void connect_to(struct client *client, const char *host, const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)atoi(port))};
    struct timeval wait = {.tv_sec = 2};

    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client->fd < 0 || inet_pton(AF_INET, host, &address.sin_addr) != 1 ||
        connect(client->fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) != 0)
        fail("connect");
}

static void send_bytes(struct client *client, const void *data, size_t size)
{
    /* The server may have closed already: that is no failure of ours. */
    (void)send(client->fd, data, size, MSG_NOSIGNAL);
}

/* Lays the frame out in client->frame, so that it can be spoilt; its size. */
static size_t lay_out(struct client *client, uint8_t type, uint64_t sequence,
                      const void *payload, size_t size)
{
    uint8_t *at = client->frame + MR_WIRE_HEADER_SIZE;

    memmove(at, payload, size);
    mr_frame_put_header(type, 0, sequence, mr_span_of(at, size), client->frame);
    return MR_WIRE_HEADER_SIZE + size;
}

static void send_frame(struct client *client, uint8_t type, uint64_t sequence,
                       const void *payload, size_t size)
{
    send_bytes(client, client->frame, lay_out(client, type, sequence, payload, size));
}

static size_t make_hello(struct client *client, enum mr_role role, uint32_t level,
                         const char *token, uint8_t *out)
{
    struct mr_hello hello = {.sender = {next_random(client), next_random(client)},
                             .role = role,
                             .level = level,
                             .oldest = 1,
                             .token = token};

    hello.source =
        (struct mr_source_info){.host = "localhost",
                                .app = "raw",
                                .version = "",
                                .exe = "/raw",
                                .pid = (uint32_t)getpid(),
                                .start_ns = 1,
                                .clock = {.kind = MR_CLOCK_MONOTONIC, .mult = 1}};
    return mr_hello_put(&hello, out, FRAME_MAX);
}

static void send_hello(struct client *client)
{
    uint8_t payload[FRAME_MAX];
    size_t size = make_hello(client, MR_ROLE_PROBE, 0, "", payload);

    send_frame(client, MR_FRAME_HELLO, 0, payload, size);
}

/* Prints a frame that came; false when there is none within the time, or it is over. */
static int print_answer(struct client *client)
{
    static uint8_t input[FRAME_MAX];
    static size_t used;
    struct mr_span bytes = mr_span_of(input, used);
    struct mr_wire_error_text text;
    struct mr_frame frame;
    size_t need = 0;

    while (mr_frame_take(&bytes, FRAME_MAX, &frame, &need, NULL) != MR_OK) {
        ssize_t size = recv(client->fd, input + used, sizeof(input) - used, 0);

        if (size <= 0) {
            puts(size == 0 ? "closed" : "open");
            return 0;
        }
        used += (size_t)size;
        bytes = mr_span_of(input, used);
    }
    if (frame.type == MR_FRAME_ERROR && mr_error_get(frame.payload, &text) == MR_OK)
        printf("ERROR %u: %.*s\n", text.code, (int)text.text.size,
               (const char *)text.text.data);
    else
        printf("%s\n", mr_frame_type_name(frame.type));
    memmove(input, bytes.data, bytes.size);
    used = bytes.size;
    return 1;
}

static void send_noise(struct client *client)
{
    uint8_t noise[8192];
    size_t size = 1 + next_random(client) % sizeof(noise);

    for (size_t i = 0; i < size; i++)
        noise[i] = (uint8_t)next_random(client);
    send_bytes(client, noise, size);
}

static void send_spoilt(struct client *client, const char *way)
{
    uint8_t payload[64] = {0};
    size_t size = lay_out(client, MR_FRAME_CHUNKS, 1, payload, sizeof(payload));

    if (strcmp(way, "oversized") == 0)
        memcpy(client->frame + 8, "\xff\xff\xff\x7f", 4);
    else if (strcmp(way, "checksum") == 0)
        client->frame[size - 1] ^= 1;
    else if (strcmp(way, "truncated") == 0)
        size = next_random(client) % size;
    send_bytes(client, client->frame, size);
    if (strcmp(way, "truncated") == 0)
        (void)shutdown(client->fd, SHUT_WR);
}

/* Ways that say no HELLO, or another one. */
static int begin_badly(struct client *client, const char *way, const char *argument)
{
    static const char get[] = "GET / HTTP/1.0\r\n\r\n";
    uint8_t payload[FRAME_MAX];
    size_t size = make_hello(client, MR_ROLE_PROBE, 0, argument, payload);

    if (strcmp(way, "worker") == 0)
        size = make_hello(client, MR_ROLE_WORKER, (uint32_t)atoi(argument), "", payload);
    if (strcmp(way, "http") == 0) {
        send_bytes(client, get, sizeof(get) - 1);
    } else if (strcmp(way, "random") == 0) {
        send_noise(client);
    } else if (strcmp(way, "early") == 0) {
        send_frame(client, MR_FRAME_CHUNKS, 1, "", 0);
    } else if (strcmp(way, "hello") == 0) {
        send_frame(client, MR_FRAME_HELLO, 0, "\xc0", 1);
    } else if (strcmp(way, "version") == 0) {
        size = lay_out(client, MR_FRAME_HELLO, 0, payload, size);
        client->frame[4] = 2;
        send_bytes(client, client->frame, size);
    } else if (strcmp(way, "good") == 0 || strcmp(way, "worker") == 0) {
        send_frame(client, MR_FRAME_HELLO, 0, payload, size);
    } else {
        return 0;
    }
    return 1;
}

static void go_on_badly(struct client *client, const char *way)
{
    if (strcmp(way, "noise") == 0)
        send_noise(client);
    else if (strcmp(way, "skip") == 0)
        send_frame(client, MR_FRAME_CHUNKS, 7, "", 0);
    else if (strcmp(way, "dict") == 0)
        send_frame(client, MR_FRAME_DICT, 1, "\xc0", 1);
    else
        send_spoilt(client, way);
}

int main(int argc, char **argv)
{
    static struct client client;
    const char *way = argc > 3 ? argv[3] : "";
    const char *argument = argc > 4 ? argv[4] : "";

    if (argc < 4) {
        fputs("usage: cli_raw HOST PORT WAY [ARGUMENT]\n", stderr);
        return 2;
    }
    client.random =
        0x9e3779b97f4a7c15 ^ ((uint64_t)getpid() << 32) ^ strtoull(argument, NULL, 0);
    if (strcmp(way, "random") == 0 || strcmp(way, "noise") == 0 ||
        strcmp(way, "truncated") == 0)
        client.random = 0x9e3779b97f4a7c15 ^ strtoull(argument, NULL, 0);
    connect_to(&client, argv[1], argv[2]);
    if (strcmp(way, "close") == 0)
        return close(client.fd);
    if (!begin_badly(&client, way, argument)) {
        send_hello(&client);
        if (print_answer(&client)) /* WELCOME */
            go_on_badly(&client, way);
    } else if (strcmp(way, "good") == 0 && print_answer(&client)) {
        uint8_t bye[MR_BYE_SIZE];

        mr_bye_put(MR_BYE_FINISHED, bye);
        send_frame(&client, MR_FRAME_BYE, 0, bye, sizeof(bye));
    }
    while (print_answer(&client))
        continue;
    return 0;
}
