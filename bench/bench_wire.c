/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the encodings of chunks cost and save on the events of a real program: it runs one under the probe, takes its words
 * over loopback, keeps the first of them, and encodes and decodes those again and again, interleaved, beside memcpy.
 * Thread CPU time, medians over all loops.
 *
 *     bench_wire [--json] [--loops N] [--events N] [--chunk WORDS] [--dither TICKS] COMMAND [ARGUMENT...]
 *
 *     --dither     adds 0 .. TICKS - 1 to every time: some processors' clocks only go in steps (26 ticks were seen), which
 *                  makes streams smaller than those of others
 *
 *     memcpy       the words alone
 *     words        as the probe's writer sends them to its own host (bytes only)
 *     compact      encoding; decode-*: reading it again, beside reading words
 *     zstd-L       compressing what compact made, at level L (its cost alone; the bytes of both)
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sys/socket.h>
#include <zstd.h>

#include "base/clock.h"
#include "net/chunk.h"
#include "net/conn.h"
#include "net/endpoint.h"

#define LOOPS_DEFAULT 11
#define LOOPS_MAX 1000
#define EVENTS_DEFAULT 4000000
#define CHUNK_WORDS_DEFAULT 8000
#define WORD_SIZE 8u
#define CHECK(condition) ((condition) ? (void)0 : abort())

static const int levels[] = {-5, -1, 1, 3, 6};

enum { LEVELS = sizeof(levels) / sizeof(levels[0]) };
enum metric {
    MEMCPY,
    WORDS,
    DECODE_WORDS,
    COMPACT,
    DECODE_COMPACT,
    ZSTD,
    METRICS = ZSTD + LEVELS
};

struct options {
    bool json;
    uint32_t loops, chunk_words, dither;
    uint64_t words;
    char **command;
};

struct chunk {
    struct mr_chunk words;
    size_t packed_at, packed_size;
    uint32_t records;
};

struct bench {
    struct options options;
    uint8_t *bytes; /* words taken */
    uint64_t count; /* words */
    uint64_t start_ticks;
    uint64_t events;
    struct chunk *chunks;
    uint32_t chunk_count;
    uint8_t *packed, *scratch;
    struct mr_compact_workspace workspace;
    ZSTD_CCtx *zstd;
    double ns[METRICS][LOOPS_MAX];
    uint64_t size[METRICS];
    uint64_t sum; /* so that what is decoded is used */
};

static struct bench bench;

static uint64_t cpu_ns(void)
{
    struct timespec time;

    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
    return (uint64_t)time.tv_sec * MR_SECOND_NS + (uint64_t)time.tv_nsec;
}

/* Taking the words of the program: those of its first stream, one chunk behind the other. */

static void keep_chunk(const struct mr_chunk *chunk)
{
    size_t size = chunk->body.size;

    CHECK(chunk->encoding == MR_CHUNK_WORDS);
    if (chunk->stream != 1 || bench.count + chunk->records > bench.options.words)
        return;
    if (bench.count == 0)
        bench.start_ticks = chunk->ticks;
    if (size > 0)
        memcpy(bench.bytes + bench.count * WORD_SIZE, chunk->body.data, size);
    bench.count += chunk->records;
}

static void take_frame(const struct mr_frame *frame)
{
    struct mr_span payload = frame->payload;
    struct mr_chunk chunk;

    while (frame->type == MR_FRAME_CHUNKS && mr_chunk_next(&payload, &chunk) == MR_OK)
        keep_chunk(&chunk);
}

/* Until the program says good-bye. */
static void receive(int fd)
{
    static struct mr_conn conn;
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    struct mr_frame frame;
    enum mr_status status;

    CHECK(mr_conn_init(&conn, fd, "program", MR_WIRE_MAX_FRAME_DEFAULT) == MR_OK);
    do {
        CHECK(poll(&poll_fd, 1, -1) > 0);
        (void)mr_conn_read(&conn);
        while ((status = mr_conn_next(&conn, &frame)) == MR_OK) {
            if (frame.type == MR_FRAME_HELLO)
                CHECK(mr_conn_welcome(&conn, 1, 0) == MR_OK);
            else
                take_frame(&frame);
        }
        if (conn.greeted)
            (void)mr_conn_ack(&conn, conn.next_sequence - 1, 0);
        (void)mr_conn_flush(&conn);
    } while (status == MR_AGAIN);
    CHECK(status == MR_END);
    mr_conn_fini(&conn);
}

static void run_program(void)
{
    struct mr_endpoint endpoint = {.host = "127.0.0.1", .port = "0"};
    struct pollfd poll_fd = {.events = POLLIN};
    char variable[64];
    uint16_t port;
    pid_t child;

    CHECK(mr_listen(&endpoint, false, false, &poll_fd.fd, &port, NULL) == MR_OK);
    (void)snprintf(variable, sizeof(variable), "tcp://127.0.0.1:%u", port);
    CHECK(setenv("MILLRACE_ENDPOINT", variable, 1) == 0);
    CHECK(setenv("MILLRACE_POLICY", "block", 1) == 0);
    CHECK(setenv("MILLRACE_ENCODING", "words", 1) == 0);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(dup2(STDERR_FILENO, STDOUT_FILENO) >= 0);
        (void)execvp(bench.options.command[0], bench.options.command);
        perror(bench.options.command[0]);
        _exit(127);
    }
    while (poll(&poll_fd, 1, 100) == 0)
        if (waitpid(child, NULL, WNOHANG) == child) {
            (void)fprintf(stderr,
                          "bench_wire: the program sent nothing: is it instrumented?\n");
            exit(1);
        }
    receive(accept(poll_fd.fd, NULL, NULL));
    (void)waitpid(child, NULL, 0);
    (void)close(poll_fd.fd);
}

/* Later times stay later if TICKS is the step of the clock. */
static void dither(void)
{
    uint64_t random = 1; /* xorshift64, Marsaglia 2003 */

    for (uint64_t i = 0; i < bench.count && bench.options.dither; i++) {
        uint8_t *at = bench.bytes + i * WORD_SIZE;
        uint64_t word;

        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        memcpy(&word, at, sizeof(word));
        if (mr_word_site(word) >= MR_SITE_FIRST_NAMED)
            word = (word & ~(uint64_t)UINT32_MAX) |
                   (uint32_t)(word + random % bench.options.dither);
        memcpy(at, &word, sizeof(word));
    }
}

/* Cutting them into chunks, between records. */

static void add_chunk(const uint8_t *from, const uint8_t *to, uint64_t ticks)
{
    struct chunk *chunk = &bench.chunks[bench.chunk_count++];

    chunk->words =
        (struct mr_chunk){.stream = 1,
                          .ticks = ticks,
                          .records = (uint32_t)((size_t)(to - from) / WORD_SIZE),
                          .body = mr_span_of(from, (size_t)(to - from))};
}

static void cut(void)
{
    static struct mr_record_reader reader;
    static struct mr_record record;
    struct mr_chunk all = {.stream = 1,
                           .ticks = bench.start_ticks,
                           .records = (uint32_t)bench.count,
                           .body = mr_span_of(bench.bytes, bench.count * WORD_SIZE)};
    const uint8_t *from = bench.bytes;
    uint64_t ticks = all.ticks;

    mr_record_reader_init(&reader, &all);
    while (mr_record_next(&reader, &record) == MR_OK) {
        bench.events += record.kind == 0;
        if ((size_t)(reader.at - from) / WORD_SIZE + 4 < bench.options.chunk_words)
            continue;
        add_chunk(from, reader.at, ticks);
        from = reader.at;
        ticks = record.ticks;
    }
    if (from < reader.at)
        add_chunk(from, reader.at, ticks);
}

/* What is measured. */

static void run_memcpy(void)
{
    for (uint32_t i = 0; i < bench.chunk_count; i++) {
        struct mr_span body = bench.chunks[i].words.body;

        memcpy(bench.scratch, body.data, body.size);
        bench.sum += bench.scratch[body.size / 2];
    }
}

static void run_words(void)
{
    bench.size[WORDS] = 0;
    for (uint32_t i = 0; i < bench.chunk_count; i++)
        bench.size[WORDS] += MR_CHUNK_HEADER_SIZE + bench.chunks[i].words.body.size;
}

static void run_compact(void)
{
    size_t at = 0;

    bench.size[COMPACT] = 0;
    for (uint32_t i = 0; i < bench.chunk_count; i++) {
        struct chunk *chunk = &bench.chunks[i];

        chunk->packed_at = at;
        chunk->packed_size =
            mr_chunk_compact(&chunk->words, &bench.workspace, bench.packed + at,
                             chunk->words.body.size + 64, &chunk->records);
        CHECK(chunk->packed_size > 0);
        at += chunk->packed_size;
        bench.size[COMPACT] += MR_CHUNK_HEADER_SIZE + chunk->packed_size;
    }
}

static void read_words(void)
{
    static struct mr_record_reader reader;
    static struct mr_record record;

    for (uint32_t i = 0; i < bench.chunk_count; i++) {
        mr_record_reader_init(&reader, &bench.chunks[i].words);
        while (mr_record_next_event(&reader, &record) ||
               mr_record_next(&reader, &record) == MR_OK)
            bench.sum += record.ticks + record.site;
    }
}

static void read_compact(void)
{
    static struct mr_record_reader reader;
    static struct mr_record record;
    static struct mr_record_event events[256];
    uint32_t count;

    for (uint32_t i = 0; i < bench.chunk_count; i++) {
        struct mr_chunk chunk = bench.chunks[i].words;

        chunk.encoding = MR_CHUNK_COMPACT;
        chunk.records = bench.chunks[i].records;
        chunk.body = mr_span_of(bench.packed + bench.chunks[i].packed_at,
                                bench.chunks[i].packed_size);
        mr_record_reader_init(&reader, &chunk);
        do {
            while ((count = mr_record_next_run(&reader, events, 256)) > 0)
                for (uint32_t k = 0; k < count; k++)
                    bench.sum += events[k].ticks + events[k].site;
        } while (mr_record_next(&reader, &record) == MR_OK);
    }
}

static void run_zstd(int which)
{
    uint64_t size = 0;

    for (uint32_t i = 0; i < bench.chunk_count; i++) {
        const struct chunk *chunk = &bench.chunks[i];
        size_t packed = ZSTD_compressCCtx(
            bench.zstd, bench.scratch,
            ZSTD_COMPRESSBOUND((size_t)MR_WIRE_MAX_FRAME_DEFAULT),
            bench.packed + chunk->packed_at, chunk->packed_size, levels[which]);

        CHECK(!ZSTD_isError(packed));
        size += MR_CHUNK_HEADER_SIZE +
                (packed + 4 < chunk->packed_size ? packed + 4 : chunk->packed_size);
    }
    bench.size[ZSTD + which] = size;
}

static void run(enum metric metric)
{
    switch (metric) {
    case MEMCPY:
        run_memcpy();
        break;
    case WORDS:
        run_words();
        break;
    case DECODE_WORDS:
        read_words();
        break;
    case COMPACT:
        run_compact();
        break;
    case DECODE_COMPACT:
        read_compact();
        break;
    default:
        run_zstd((int)metric - ZSTD);
    }
}

static int compare(const void *a, const void *b)
{
    const double *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

static void tell(enum metric metric)
{
    static const char *const names[ZSTD] = {"memcpy", "words", "decode-words", "compact",
                                            "decode-compact"};
    double *ns = bench.ns[metric], events = (double)bench.events;
    double bytes = (double)bench.size[metric] / events, median;
    char name[16];

    qsort(ns, bench.options.loops, sizeof(*ns), compare);
    median = ns[bench.options.loops / 2];
    if (metric >= ZSTD)
        (void)snprintf(name, sizeof(name), "zstd%+d", levels[metric - ZSTD]);
    else
        (void)snprintf(name, sizeof(name), "%s", names[metric]);
    if (!bench.options.json) {
        printf("%-16s %8.2f ns/event %8.1f M events/s %8.3f bytes/event\n", name, median,
               1e3 / median, bytes);
        return;
    }
    printf(
        "{\"bench\":\"wire\",\"case\":\"%s\",\"metric\":\"cost\",\"value\":%.3f,\"unit\":"
        "\"ns/event\",\"ratio_to\":\"memcpy\",\"ratio\":%.3f,\"lost\":0}\n",
        name, median, median / bench.ns[MEMCPY][bench.options.loops / 2]);
    if (bench.size[metric] > 0)
        printf("{\"bench\":\"wire\",\"case\":\"%s\",\"metric\":\"size\",\"value\":%.3f,"
               "\"unit\":"
               "\"bytes/event\",\"ratio_to\":\"words\",\"ratio\":%.3f,\"lost\":0}\n",
               name, bytes, (double)bench.size[metric] / (double)bench.size[WORDS]);
}

static uint64_t number(const char *text)
{
    char *end = NULL;
    uint64_t value = text ? strtoull(text, &end, 10) : 0;

    return value > 0 && *end == '\0' ? value : 0;
}

static bool parse(int argc, char **argv)
{
    struct options *options = &bench.options;
    int i = 1;

    *options = (struct options){.loops = LOOPS_DEFAULT,
                                .chunk_words = CHUNK_WORDS_DEFAULT,
                                .words = EVENTS_DEFAULT};
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--json") == 0)
            options->json = true;
        else if (strcmp(argv[i], "--loops") == 0)
            options->loops = (uint32_t)number(argv[++i]);
        else if (strcmp(argv[i], "--events") == 0)
            options->words = number(argv[++i]);
        else if (strcmp(argv[i], "--dither") == 0)
            options->dither = (uint32_t)number(argv[++i]);
        else if (strcmp(argv[i], "--chunk") == 0)
            options->chunk_words = (uint32_t)number(argv[++i]);
        else
            return false;
    }
    options->command = argv + i;
    return i < argc && options->loops > 0 && options->loops <= LOOPS_MAX &&
           options->words > 0 && options->words < UINT32_MAX &&
           options->chunk_words >= 16 &&
           options->chunk_words <= MR_WIRE_MAX_FRAME_DEFAULT / WORD_SIZE;
}

static void allocate(void)
{
    uint64_t words = bench.options.words,
             chunks = words / (bench.options.chunk_words - 8) + 8;

    bench.bytes = malloc(words * WORD_SIZE);
    bench.chunks = malloc(chunks * sizeof(*bench.chunks));
    bench.packed = malloc(words * WORD_SIZE + chunks * 64);
    bench.scratch = malloc(ZSTD_COMPRESSBOUND((size_t)MR_WIRE_MAX_FRAME_DEFAULT));
    bench.zstd = ZSTD_createCCtx();
    CHECK(bench.bytes && bench.chunks && bench.packed && bench.scratch && bench.zstd);
}

int main(int argc, char **argv)
{
    if (!parse(argc, argv)) {
        (void)fprintf(stderr, "usage: bench_wire [--json] [--loops N] [--events N] "
                              "[--chunk WORDS] [--dither TICKS]\n                  "
                              "COMMAND [ARGUMENT...]\n");
        return 2;
    }
    allocate();
    run_program();
    dither();
    cut();
    CHECK(bench.events > 0);
    for (uint32_t loop = 0; loop < bench.options.loops; loop++)
        for (int i = 0; i < METRICS; i++) {
            uint64_t start_ns = cpu_ns();

            run((enum metric)i);
            bench.ns[i][loop] = (double)(cpu_ns() - start_ns) / (double)bench.events;
        }
    if (!bench.options.json)
        printf("%llu events in %u chunks\n", (unsigned long long)bench.events,
               bench.chunk_count);
    for (int i = 0; i < METRICS; i++)
        tell((enum metric)i);
    return bench.sum == 1; /* used */
}
