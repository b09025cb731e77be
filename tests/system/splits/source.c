/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of several sources that say together what random streams of a seed say (tests/differential/streams.h), cut into chunks by
 * another seed.
 *
 *     split_source ENDPOINT SEED CUT SOURCES INDEX
 *
 * Who gives the same SEED and SOURCES gets the same streams on the same sources, whatever CUT is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../differential/streams.h"
#include "../lib/source.h"
#include "base/clock.h"

#define START_NS (UINT64_C(1700000000) * MR_SECOND_NS)
#define STREAMS 30u

/* Streams of less than 10 s, on which no outer frame is learned: those hold for other streams of a lane too. */
static const struct mood mood = {.streams = STREAMS,
                                 .events = 400,
                                 .functions = 6,
                                 .depth = 12,
                                 .opens = 50,
                                 .step = 20000000,
                                 .equal = 1000,
                                 .repeats = 5,
                                 .statuses = 100,
                                 .others = 50,
                                 .wides = 200,
                                 .links = 300,
                                 .tokens = 400,
                                 .losses = 20,
                                 .gaps = 20,
                                 .cuts = 20,
                                 .unwinds = 50,
                                 .strays = 20,
                                 .backward = 50,
                                 .has_spans = true,
                                 .has_roots = true,
                                 .has_outers = true};

static void tell_module(struct test_source *source, uint32_t number)
{
    const struct script_module *module = &script_modules[number];

    test_source_item(
        source,
        &(struct mr_dict_item){
            .kind = MR_DICT_MODULE,
            .module = {.epoch = SCRIPT_EPOCH,
                       .module = number,
                       .site_base = module->site_base,
                       .address = module->address,
                       .size = SCRIPT_MODULE_SIZE,
                       .bias = module->bias,
                       .build_id = mr_span_of(module->build_id, strlen(module->build_id)),
                       .path = "/nonexistent/module"}});
}

static void tell(struct test_source *source, const struct op *op)
{
    struct mr_dict_item item = {.kind = MR_DICT_STREAM};
    char name[24];

    switch (op->kind) {
    case OP_MODULE:
        tell_module(source, op->number);
        break;
    case OP_NAMED:
        item.kind = MR_DICT_NAMED_SITE;
        item.named_site.site = op->number;
        item.named_site.name = script_name(op->number, name);
        item.named_site.file = "";
        item.named_site.flags = op->value;
        test_source_item(source, &item);
        break;
    case OP_STREAM:
        item.stream.stream = item.stream.tid = op->number;
        item.stream.name = "thread";
        item.stream.start_site = op->value;
        test_source_item(source, &item);
        break;
    case OP_CHUNKS:
        test_source_frame(source, MR_FRAME_CHUNKS, op->bytes, op->size);
        break;
    case OP_TICK:
    case OP_OPEN:
        break;
    }
}

static void send_all(struct test_source *source, const struct streams *streams,
                     uint64_t cut_seed, const uint8_t *sources, uint8_t index)
{
    struct mr_test_random random = {cut_seed};
    const struct cut cut = {.chunk_max = 1 + (uint32_t)mr_test_random_below(&random, 200),
                            .frame_chunks =
                                1 + (uint32_t)mr_test_random_below(&random, 20),
                            .compact = (uint32_t)mr_test_random_below(&random, 101),
                            .idle = (uint32_t)mr_test_random_below(&random, 30),
                            .keeps_header_time = true,
                            .lanes = sources,
                            .lane = index};
    struct script script = {0};

    streams_write(&random, streams, &cut, &script);
    for (size_t i = 0; i < script.count; i++)
        tell(source, &script.ops[i]);
    script_clear(&script);
}

int main(int argc, char **argv)
{
    static struct test_source source = {
        .app = "split",
        .clock = {.kind = MR_CLOCK_MONOTONIC, .mult = 1, .realtime_ns = START_NS}};
    static struct streams streams;
    struct mr_test_random random;
    uint8_t sources[STREAMS_MAX];
    unsigned long count, index;

    if (argc != 6) {
        (void)fprintf(stderr, "usage: split_source ENDPOINT SEED CUT SOURCES INDEX\n");
        return 2;
    }
    random.state = strtoull(argv[2], NULL, 10);
    count = strtoul(argv[4], NULL, 10);
    index = strtoul(argv[5], NULL, 10);
    source.id = (struct mr_id){random.state + 1, index + 1};
    streams_make(&random, &mood, &streams);
    for (uint32_t i = 0; i < streams.count; i++)
        sources[i] = (uint8_t)(i % count);
    test_source_start(&source, argv[1]);
    send_all(&source, &streams, strtoull(argv[3], NULL, 10) + index, sources,
             (uint8_t)index);
    test_source_drain(&source);
    test_source_finish(&source);
    streams_clear(&streams);
    return 0;
}
