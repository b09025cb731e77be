/* SPDX-License-Identifier: Apache-2.0 */
/* The msgpack payloads: as DICT, whose items can be written and read again, and as HELLO, the same. */
#include <stdlib.h>

#include "base/assert.h"
#include "net/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 1 << 20 };

/* Items of `payload` that could be read, written to out; the size. */
static size_t copy_dict(struct mr_span payload, uint8_t *out, size_t capacity)
{
    struct mr_dict_reader reader;
    struct mr_dict_writer writer;
    struct mr_dict_item item;
    struct mr_error error = MR_ERROR_NONE;

    mr_dict_writer_init(&writer, out, capacity);
    if (mr_dict_open(&reader, payload, &error) != MR_OK)
        return 0;
    while (mr_dict_next(&reader, &item, &error) == MR_OK)
        MR_ASSERT(mr_dict_put(&writer, &item) == MR_OK);
    mr_dict_close(&reader);
    return mr_dict_writer_finish(&writer);
}

static void try_dict(struct mr_span payload)
{
    static uint8_t one[OUT_MAX], two[OUT_MAX];
    size_t size = copy_dict(payload, one, sizeof(one));

    if (size)
        MR_ASSERT(copy_dict(mr_span_of(one, size), two, sizeof(two)) == size);
    MR_ASSERT(memcmp(one, two, size) == 0);
}

static void try_hello(struct mr_span payload)
{
    static uint8_t out[OUT_MAX];
    struct mr_hello_message message, again;
    struct mr_error error = MR_ERROR_NONE;
    size_t size;

    if (mr_hello_get(payload, &message, &error) != MR_OK)
        return;
    size = mr_hello_put(&message.hello, out, sizeof(out));
    MR_ASSERT(size != 0);
    MR_ASSERT(mr_hello_get(mr_span_of(out, size), &again, &error) == MR_OK);
    (void)mr_clock_info_ns(&message.hello.source.clock, again.hello.oldest);
    mr_hello_free(&again);
    mr_hello_free(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_dict(mr_span_of(data, size));
    try_hello(mr_span_of(data, size));
    return 0;
}
