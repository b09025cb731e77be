/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A synthetic worker: sends a dictionary and then deltas whose sums are known, and prints
 * what was acknowledged, so that a test can compare it with what the master says.
 *
 *     feed PORT [--deltas N] [--paths N] [--rate PER_SECOND] [--seed N] [--token TEXT]
 *               [--sender HEX32] [--bad]
 *
 * Every delta has each of --paths paths once more per entry point: ok calls, in trees of
 * the shape of a heap (the children of i are 3i+1 .. 3i+3). With --bad the last frame is a
 * delta that is cut in its middle. Prints one JSON line: deltas acknowledged, refused,
 * seconds. Waits for the master when it is away, as a real worker does.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "net/control.h"
#include "net/delta.h"
#include "net/endpoint.h"
#include "net/ids.h"
#include "net/sender.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUTBOX_SIZE (32u << 20)
#define PATHS_MAX 20000
#define DRAIN_NS (100 * MR_SECOND_NS) /* the longest wait for acknowledgements */
#define ENTRIES 5
#define SOURCES 3

struct feed {
    uint64_t deltas, paths, rate, seed;
    const char *token;
    bool is_bad;
    struct mr_id incarnation, scope, sources[SOURCES];
    struct mr_sender sender;
    struct mr_buffer delta;
    uint64_t random;
    uint8_t *outbox;
};

static const char *const entry_names[ENTRIES] = {"checkout", "search", "add_to_cart",
                                                 "nightly_report", "health"};
static const char *const verbs[] = {"parse",  "find",   "read",   "encode",
                                    "hash",   "lock",   "insert", "merge",
                                    "lookup", "render", "verify"};
static const char *const nouns[] = {"header", "row",   "page",  "token", "cursor",
                                    "index",  "tuple", "block", "order", "session"};
static const char *const apps[SOURCES] = {"bookshop", "payments", "warehouse"};

static uint64_t next_random(struct feed *feed)
{
    feed->random ^= feed->random << 13;
    feed->random ^= feed->random >> 7;
    feed->random ^= feed->random << 17;
    return feed->random;
}

static void name_of(uint64_t site, char name[64])
{
    if (site < ENTRIES)
        snprintf(name, 64, "%s", entry_names[site]);
    else
        snprintf(name, 64, "%s_%s%s%.0" PRIu64, verbs[site % 11], nouns[site / 11 % 10],
                 site / 110 ? "_" : "", site / 110);
}

static struct mr_id site_id(uint64_t site)
{
    static const uint8_t build_id[4] = {1, 2, 3, 4};

    return mr_id_function(mr_span_of(build_id, 4), "", 0x1000 + site * 64);
}

static size_t put_hello(void *context, const struct mr_custody_hello *custody,
                        uint8_t *out, size_t capacity)
{
    const struct feed *feed = context;
    const struct mr_hello hello = {.sender = feed->incarnation,
                                   .role = MR_ROLE_WORKER,
                                   .level = 1,
                                   .oldest = custody->acked + 1,
                                   .custody = *custody,
                                   .token = feed->token};

    return mr_hello_put(&hello, out, capacity);
}

static void send_frame(struct feed *feed, enum mr_frame_type type, const void *data,
                       size_t size)
{
    uint8_t *at;

    while (!(at = mr_sender_reserve(&feed->sender, size)))
        if (mr_sender_poll(&feed->sender, MR_SECOND_NS) == MR_EREFUSED)
            return;
    memcpy(at, data, size);
    mr_sender_commit(&feed->sender, type, 0, size);
}

static void put_sites(struct feed *feed, struct mr_dict_writer *writer)
{
    for (uint64_t site = 0; site < feed->paths; site++) {
        char name[64];

        name_of(site, name);
        const struct mr_dict_item item = {
            .kind = MR_DICT_SITE,
            .site = {.id = site_id(site),
                     .type = MR_SITE_FUNCTION,
                     .module = site % 7 == 3 ? "libstore.so.2" : "bookshop",
                     .build_id = mr_span_of("\1\2\3\4", 4),
                     .offset = 0x1000 + site * 64,
                     .name = name,
                     .file = site % 3 ? "src/store/orders.c" : "src/http/routes.c",
                     .line = (uint32_t)(40 + site * 13),
                     .quality = MR_QUALITY_DEBUG}};
        mr_dict_put(writer, &item);
    }
}

static void put_sources(struct feed *feed, struct mr_dict_writer *writer)
{
    for (uint32_t i = 0; i < SOURCES; i++) {
        const struct mr_dict_item item = {
            .kind = MR_DICT_SOURCE,
            .source = {.id = feed->sources[i],
                       .scope = feed->scope,
                       .worker = feed->incarnation,
                       .host = i ? "node-b" : "node-a",
                       .app = apps[i],
                       .version = "2.4.1",
                       .exe = "/opt/shop/bin/bookshop",
                       .pid = 4100 + i,
                       .start_ns = mr_clock_realtime_ns(),
                       .state = i == 2 ? MR_SOURCE_FINISHED : MR_SOURCE_LIVE,
                       .policy = MR_POLICY_DROP}};
        mr_dict_put(writer, &item);
    }
}

static void send_dictionary(struct feed *feed)
{
    size_t capacity = 3 << 20;
    uint8_t *bytes = malloc(capacity);
    struct mr_dict_writer writer;
    const struct mr_dict_item scope = {
        .kind = MR_DICT_SCOPE,
        .scope = {.id = feed->scope, .app = "bookshop", .version = "2.4.1", .host = ""}};

    mr_dict_writer_init(&writer, bytes, capacity);
    mr_dict_put(&writer, &scope);
    put_sources(feed, &writer);
    put_sites(feed, &writer);
    struct mr_id leaf;
    struct mr_buffer scratch, children;
    mr_buffer_init(&scratch, 1 << 20);
    mr_buffer_init(&children, 1 << 20);
    mr_id_node(MR_EXACTNESS_FOLDED, site_id(9), NULL, 0, &scratch, &leaf);
    struct mr_dict_item node = {.kind = MR_DICT_NODE,
                                .node = {.id = leaf, .site = site_id(9)}};
    mr_dict_put(&writer, &node);
    for (uint64_t entry = 0; entry < ENTRIES; entry++) {
        const struct mr_node_child child = {leaf, entry % 2};

        mr_buffer_clear(&children);
        mr_node_child_put(&children, &child);
        mr_id_node(MR_EXACTNESS_FOLDED, site_id(entry), &child, 1, &scratch,
                   &node.node.id);
        node.node.site = site_id(entry);
        node.node.children = mr_buffer_span(&children);
        mr_dict_put(&writer, &node);
    }
    size_t size = mr_dict_writer_finish(&writer);
    send_frame(feed, MR_FRAME_DICT, bytes, size);
    mr_buffer_fini(&scratch);
    mr_buffer_fini(&children);
    free(bytes);
}

static void add_call(struct mr_path_stats *stats, uint64_t ns, uint64_t self_ns)
{
    bool first = stats->ok == 0;

    stats->ok++;
    mr_times_add(&stats->total, ns, first);
    mr_times_add(&stats->self, self_ns, first);
    mr_histogram_add(&stats->histogram, ns, 1);
}

/* A time between about 1 us and 1 s, shorter further down. */
static uint64_t some_time(struct feed *feed, uint64_t depth)
{
    double spread = (double)(next_random(feed) % 1000) / 1000;
    double tail = next_random(feed) % 100 ? 1 : 12;

    return (uint64_t)(tail * 4e6 * exp(spread * 1.5) / exp2(2.0 * (double)depth)) + 200;
}

static void put_tree(struct feed *feed, struct mr_delta_writer *w, uint64_t entry,
                     uint64_t window)
{
    static uint32_t indices[PATHS_MAX];
    uint64_t count = feed->paths / ENTRIES, depth = 0, level_end = 1;
    uint64_t calls = 1 + entry % 3;
    uint32_t scope = 0;

    for (uint64_t i = 0; i < count; i++) {
        struct mr_path_stats stats = {.histogram = MR_HISTOGRAM_EMPTY};
        uint64_t site = i ? (i * ENTRIES + entry) % feed->paths : entry;

        if (i >= level_end) {
            depth++;
            level_end = level_end * 3 + 1;
        }
        indices[i] = mr_delta_path(w, i ? indices[(i - 1) / 3] : MR_DELTA_NONE, scope,
                                   (uint32_t)site, 0);
        for (uint64_t call = 0; call < calls; call++) {
            uint64_t ns = some_time(feed, depth);

            add_call(&stats, ns, ns / 3 + 1);
        }
        if (i == 0 && entry == 1 && next_random(feed) % 9 == 0)
            stats.incomplete++;
        mr_delta_path_stat(w, indices[i], window, &stats);
        mr_histogram_fini(&stats.histogram);
    }
    struct mr_entry_stats traces = {.traces = {0}};
    traces.traces[entry % 3] = calls;
    traces.calls[entry % 3] = calls * count;
    traces.time_ns[entry % 3] = calls * 5000000;
    mr_delta_entry_stat(w, indices[0], window, &traces);
    struct mr_buffer scratch;
    struct mr_id leaf, root;
    mr_buffer_init(&scratch, 4096);
    mr_id_node(MR_EXACTNESS_FOLDED, site_id(9), NULL, 0, &scratch, &leaf);
    const struct mr_node_child child = {leaf, entry % 2};
    mr_id_node(MR_EXACTNESS_FOLDED, site_id(entry), &child, 1, &scratch, &root);
    mr_buffer_fini(&scratch);
    struct mr_shape_stats shape = {.ok = calls,
                                   .calls = calls * 2,
                                   .first_ns = window * MR_SECOND_NS,
                                   .last_ns = window * MR_SECOND_NS,
                                   .histogram = MR_HISTOGRAM_EMPTY};
    for (uint64_t call = 0; call < calls; call++) {
        mr_times_add(&shape.time, 5000000, call == 0);
        mr_histogram_add(&shape.histogram, 5000000, 1);
    }
    mr_delta_shape_stat(w, mr_delta_shape(w, scope, indices[0], root), window, &shape);
    mr_histogram_fini(&shape.histogram);
}

static void put_ledger(struct feed *feed, struct mr_delta_writer *w, uint64_t number)
{
    uint64_t events = 2 * feed->paths;

    for (uint32_t i = 0; i < SOURCES; i++) {
        struct mr_ledger_entry entry = {.last = (number + 1) * events, .reduced = events};
        uint32_t source = mr_delta_source(w, feed->sources[i]);

        if (i == 1) {
            entry.lost[MR_LOSS_RING_FULL] = 2;
            entry.reduced -= 2;
        }
        mr_delta_ledger(w, source, 1, &entry);
    }
}

static void make_delta(struct feed *feed, uint64_t number)
{
    struct mr_delta_writer w;
    uint64_t now_ns = mr_clock_realtime_ns();

    mr_buffer_clear(&feed->delta);
    mr_delta_begin(&w, &feed->delta);
    mr_delta_head(&w, 1, now_ns);
    mr_delta_scope(&w, feed->scope);
    for (uint64_t site = 0; site < feed->paths; site++)
        mr_delta_site(&w, site_id(site));
    for (uint64_t entry = 0; entry < ENTRIES; entry++)
        put_tree(feed, &w, entry, now_ns / MR_SECOND_NS);
    put_ledger(feed, &w, number);
    mr_delta_counter(&w, "feed.deltas", 1);
    if (mr_delta_status(&w) != MR_OK) {
        fprintf(stderr, "feed: the delta is too large\n");
        exit(2);
    }
}

static void pace(struct feed *feed, uint64_t start_ns, uint64_t number)
{
    uint64_t due_ns = feed->rate ? start_ns + number * MR_SECOND_NS / feed->rate : 0;

    do {
        uint64_t now_ns = mr_clock_monotonic_ns();
        uint64_t left_ns = due_ns > now_ns ? due_ns - now_ns : 0;

        mr_sender_poll(&feed->sender, left_ns);
    } while (mr_clock_monotonic_ns() < due_ns);
}

static void report(const struct feed *feed, bool is_drained, uint64_t spent_ns)
{
    const struct mr_sender_stats *stats = &feed->sender.stats;

    printf("{\"committed\":%" PRIu64 ",\"acked\":%" PRIu64 ",\"connects\":%" PRIu64
           ",\"resends\":%" PRIu64 ",\"drained\":%s,\"refused\":%s,\"seconds\":%.3f,"
           "\"error\":\"%s\"}\n",
           stats->frames_committed, stats->frames_acked, stats->connects, stats->resends,
           is_drained ? "true" : "false",
           feed->sender.state == MR_SENDER_REFUSED ? "true" : "false",
           (double)spent_ns / 1e9, feed->sender.last_error.text);
}

static void run(struct feed *feed)
{
    uint64_t start_ns = mr_clock_monotonic_ns();

    send_dictionary(feed);
    for (uint64_t i = 0; i < feed->deltas; i++) {
        make_delta(feed, i);
        send_frame(feed, MR_FRAME_DELTA, feed->delta.data, feed->delta.size);
        pace(feed, start_ns, i);
        if (feed->sender.state == MR_SENDER_REFUSED)
            break;
    }
    if (feed->is_bad)
        send_frame(feed, MR_FRAME_DELTA, feed->delta.data, feed->delta.size / 2);
    uint64_t deadline_ns = mr_clock_monotonic_ns() + DRAIN_NS;
    while (!mr_sender_is_drained(&feed->sender) &&
           feed->sender.state != MR_SENDER_REFUSED &&
           mr_clock_monotonic_ns() < deadline_ns)
        mr_sender_poll(&feed->sender, MR_SECOND_NS / 10);
    bool is_drained = mr_sender_is_drained(&feed->sender);
    report(feed, is_drained, mr_clock_monotonic_ns() - start_ns);
    if (is_drained)
        mr_sender_finish(&feed->sender, MR_BYE_FINISHED,
                         mr_clock_monotonic_ns() + MR_SECOND_NS);
}

static void read_arguments(struct feed *feed, int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--bad") == 0) {
            feed->is_bad = true;
            continue;
        }
        if (strcmp(argv[i], "--deltas") == 0)
            feed->deltas = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--paths") == 0)
            feed->paths = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--rate") == 0)
            feed->rate = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            feed->seed = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--token") == 0)
            feed->token = value;
        else if (strcmp(argv[i], "--sender") == 0)
            (void)mr_id_parse(value, strlen(value), &feed->incarnation);
        i++;
    }
}

int main(int argc, char **argv)
{
    static struct feed feed = {.deltas = 10, .paths = 100, .seed = 1, .token = ""};
    struct mr_sender_config config = {.incarnation = {0, 0}};
    struct mr_endpoints endpoints;
    struct mr_error error = MR_ERROR_NONE;

    if (argc < 2 || mr_id_random(&feed.incarnation) != MR_OK)
        return 2;
    read_arguments(&feed, argc, argv);
    if (feed.paths < ENTRIES || feed.paths > PATHS_MAX ||
        mr_endpoints_parse(argv[1], &endpoints, &error) != MR_OK ||
        mr_endpoints_numeric(&endpoints, config.addresses, &config.address_count,
                             &error) != MR_OK) {
        fprintf(stderr, "feed: %s\n", error.text);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    feed.random = feed.seed * 0x9e3779b97f4a7c15 + 1;
    feed.scope = mr_id_scope("bookshop", "2.4.1", "");
    for (uint32_t i = 0; i < SOURCES; i++)
        feed.sources[i] = (struct mr_id){feed.incarnation.hi + i, feed.incarnation.lo};
    mr_buffer_init(&feed.delta, 4 << 20);
    feed.outbox = malloc(OUTBOX_SIZE);
    config.incarnation = feed.incarnation;
    config.outbox = feed.outbox;
    config.outbox_size = OUTBOX_SIZE;
    config.max_frame = 4 << 20;
    config.now_ns_seed = mr_clock_monotonic_ns();
    config.hello = put_hello;
    config.context = &feed;
    if (!feed.outbox || mr_sender_init(&feed.sender, &config) != MR_OK)
        return 2;
    run(&feed);
    mr_sender_fini(&feed.sender);
    mr_buffer_fini(&feed.delta);
    free(feed.outbox);
    return 0;
}
