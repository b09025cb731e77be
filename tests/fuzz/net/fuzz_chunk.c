/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks and their records; what reads well as words must read the same when it was made compact. */
#include "base/assert.h"
#include "net/chunk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { COMPACT_MAX = 1 << 20 };

static struct mr_record_reader first, second;
static struct mr_record record, other;

/* Times never run back. */
static enum mr_status read_all(const struct mr_chunk *chunk)
{
    uint64_t ticks = chunk->ticks;
    enum mr_status status;

    mr_record_reader_init(&first, chunk);
    while ((status = mr_record_next(&first, &record)) == MR_OK) {
        MR_ASSERT(record.ticks >= ticks && record.ticks < 2 * MR_TICKS_LIMIT);
        MR_ASSERT(record.kind != 0 || record.site >= MR_SITE_FIRST_NAMED);
        ticks = record.ticks;
    }
    return status;
}

static void assert_same(void)
{
    MR_ASSERT(record.site == other.site && record.kind == other.kind);
    MR_ASSERT(record.ticks == other.ticks && record.is_exit == other.is_exit);
    MR_ASSERT(record.words == other.words);
    MR_ASSERT(memcmp(record.payload, other.payload, record.words * sizeof(uint64_t)) ==
              0);
}

static void compare(const struct mr_chunk *words, const struct mr_chunk *compact)
{
    mr_record_reader_init(&first, words);
    mr_record_reader_init(&second, compact);
    while (mr_record_next(&first, &record) == MR_OK) {
        enum mr_status status = mr_record_next(&second, &other);

        MR_ASSERT(status == MR_OK);
        assert_same();
    }
    MR_ASSERT(mr_record_next(&second, &other) == MR_END);
}

static void make_compact(const struct mr_chunk *words)
{
    static struct mr_compact_workspace workspace;
    static uint8_t out[COMPACT_MAX];
    struct mr_chunk compact = *words;
    size_t size = mr_chunk_compact(words, &workspace, out, sizeof(out), &compact.records);

    if (size == 0)
        return;
    compact.encoding = MR_CHUNK_COMPACT;
    compact.body = mr_span_of(out, size);
    compare(words, &compact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_span payload = mr_span_of(data, size);
    struct mr_chunk chunk;

    while (mr_chunk_next(&payload, &chunk) == MR_OK) {
        enum mr_status status = read_all(&chunk);

        MR_ASSERT(status == MR_END || status == MR_EFORMAT);
        if (status == MR_END && chunk.encoding == MR_CHUNK_WORDS)
            make_compact(&chunk);
    }
    return 0;
}
