/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/pipeline.h"

#include "base/atomics.h"
#include "bench/receiver.h"
#include "net/chunk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORDING_MAX ((size_t)1 << 31)
#define RUN_NS (300 * MR_SECOND_NS)
#define STACKS_MAX 64u
#define TRACES_FIRST 1024u
#define WORD_SIZE 8u

static enum mr_status run_program(struct mr_pipeline_bench *bench,
                                  const struct mr_words *argv,
                                  const struct mr_receiver *receiver,
                                  struct mr_error *error)
{
    struct mr_words env = {0};
    struct mr_command command = {
        .argv = argv, .env = &env, .directory = bench->scratch, .timeout_ns = RUN_NS};
    enum mr_status status;

    mr_words_add(&env, "MILLRACE_ENDPOINT=%s", receiver->endpoint);
    mr_words_add(&env, "MILLRACE_POLICY=block");
    mr_words_add(&env, "MILLRACE_BLOCK_TIMEOUT=60s");
    mr_words_add(&env, "MILLRACE_ENCODING=words");
    status = mr_command_run(&command, error);
    mr_command_fini(&command);
    mr_words_fini(&env);
    mr_receiver_settle(receiver);
    return status;
}

static enum mr_status check_recording(const struct mr_receiver *receiver,
                                      struct mr_error *error)
{
    uint64_t lost = mr_load_relaxed(&receiver->totals->lost);

    if (mr_load_relaxed(&receiver->totals->opened) != 1)
        return mr_error_set(
            error, MR_EIO, "%llu connections came, not one",
            (unsigned long long)mr_load_relaxed(&receiver->totals->opened));
    if (lost || mr_load_relaxed(&receiver->totals->faults))
        return mr_error_set(error, MR_EIO, "%llu events were lost while it was recorded",
                            (unsigned long long)lost);
    return MR_OK;
}

static enum mr_status read_file(const char *path, uint8_t **bytes, size_t *size)
{
    FILE *file = fopen(path, "re");
    enum mr_status status = MR_EIO;
    long end = -1;

    if (!file)
        return MR_EIO;
    if (fseek(file, 0, SEEK_END) == 0)
        end = ftell(file);
    *bytes = end > 0 && (size_t)end < RECORDING_MAX ? malloc((size_t)end) : NULL;
    *size = (size_t)end;
    if (*bytes && fseek(file, 0, SEEK_SET) == 0 && fread(*bytes, 1, *size, file) == *size)
        status = MR_OK;
    (void)fclose(file);
    return status;
}

/* `word`: where the first word of the trace id of a message lies. */
static enum mr_status add_trace(struct mr_bench_traces *traces, size_t word)
{
    if (traces->count == traces->capacity) {
        uint32_t capacity = traces->capacity ? 2 * traces->capacity : TRACES_FIRST;
        size_t *grown = realloc(traces->words, capacity * sizeof(*grown));

        if (!grown)
            return MR_ENOMEM;
        traces->words = grown;
        traces->capacity = capacity;
    }
    traces->words[traces->count++] = word;
    return MR_OK;
}

/* A record that is no enter or exit, and begins at `at`. */
static enum mr_status note_record(const struct mr_bench_stream *stream,
                                  const struct mr_record *record, const uint8_t *at)
{
    bool is_message = record->kind == MR_RECORD_SEND || record->kind == MR_RECORD_RECEIVE;

    return is_message
               ? add_trace(stream->traces, (size_t)(at - stream->bytes) + WORD_SIZE)
               : MR_OK;
}

/* Enters and exits of a chunk, as words for the plain loop. */
static enum mr_status add_words(struct mr_bench_stream *stream,
                                const struct mr_chunk *chunk)
{
    static struct mr_record_reader reader;
    static struct mr_record record;
    struct mr_bench_run run = {.stack = chunk->stream % STACKS_MAX};
    enum mr_status status = MR_OK;
    const uint8_t *at;

    run.words = malloc((chunk->records + 1) * sizeof(*run.words));
    if (!run.words)
        return MR_ENOMEM;
    mr_record_reader_init(&reader, chunk);
    while (status == MR_OK) {
        at = reader.at;
        status = mr_record_next(&reader, &record);
        if (status == MR_OK && record.kind == 0)
            run.words[run.count++] = mr_word_event(
                record.site, record.is_exit ? MR_WORD_EXIT : 0, record.ticks);
        else if (status == MR_OK)
            status = note_record(stream, &record, at);
    }
    if (stream->run_count == 0 || chunk->ticks < stream->first_ticks)
        stream->first_ticks = chunk->ticks;
    if (reader.ticks > stream->last_ticks)
        stream->last_ticks = reader.ticks;
    mr_bench_add_run(stream, &run);
    return status == MR_END ? MR_OK : status;
}

static enum mr_status add_chunks(struct mr_bench_stream *stream, struct mr_span payload)
{
    struct mr_chunk chunk;
    enum mr_status status;

    while ((status = mr_chunk_next(&payload, &chunk)) == MR_OK) {
        stream->events += chunk.events;
        status = add_words(stream, &chunk);
        if (status != MR_OK)
            return status;
    }
    return status == MR_END ? MR_OK : status;
}

static enum mr_status add_frame(struct mr_bench_stream *stream, uint32_t type,
                                struct mr_span payload, struct mr_error *error)
{
    enum mr_status status;

    if (type == MR_FRAME_HELLO) {
        status = mr_hello_get(payload, &stream->message, error);
        stream->hello = stream->message.hello;
        stream->hello.resume_max = 0; /* who sends it again keeps none */
        return status;
    }
    if (type != MR_FRAME_DICT && type != MR_FRAME_CHUNKS)
        return MR_OK;
    mr_bench_add_frame(stream, (uint8_t)type, payload);
    return type == MR_FRAME_CHUNKS ? add_chunks(stream, payload) : MR_OK;
}

static enum mr_status load(const char *path, struct mr_bench_stream *stream,
                           struct mr_error *error)
{
    size_t size = 0, at = 0;
    enum mr_status status = read_file(path, &stream->bytes, &size);

    while (status == MR_OK && at + 8 <= size) {
        uint32_t head[2];

        memcpy(head, stream->bytes + at, sizeof(head));
        at += sizeof(head);
        if (head[1] > size - at)
            return mr_error_set(error, MR_EIO, "the recording is cut");
        status =
            add_frame(stream, head[0], mr_span_of(stream->bytes + at, head[1]), error);
        at += head[1];
    }
    if (status == MR_OK && stream->events == 0)
        status = mr_error_set(error, MR_EIO, "nothing was recorded");
    return status;
}

enum mr_status mr_bench_record(struct mr_pipeline_bench *bench, const char *name,
                               const struct mr_words *argv,
                               struct mr_bench_stream *stream, struct mr_error *error)
{
    struct mr_receiver receiver;
    char path[PATH_MAX];
    enum mr_status status;

    *stream = (struct mr_bench_stream){.is_recorded = true,
                                       .stacks = STACKS_MAX,
                                       .traces = calloc(1, sizeof(*stream->traces))};
    if (!stream->traces)
        return MR_ENOMEM;
    (void)snprintf(path, sizeof(path), "%.*s/%s.recording", PATH_MAX - 64, bench->scratch,
                   name);
    status = mr_receiver_start_recording(&receiver, path, error);
    if (status != MR_OK)
        return status;
    status = run_program(bench, argv, &receiver, error);
    if (status == MR_OK)
        status = check_recording(&receiver, error);
    mr_receiver_stop(&receiver);
    if (status == MR_OK)
        status = load(path, stream, error);
    (void)unlink(path);
    return status;
}
