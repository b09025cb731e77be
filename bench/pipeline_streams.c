/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/pipeline.h"

#include "bench/markov.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So that call trees begin at SQLite's interface. */
static const char *const sqlite_outer[] = {"main", "testset_*", "speedtest1_*"};

#define SWEEP_PART 4 /* sweeps have that part of the events */
#define BUILD_NAME 64

static enum mr_status make(struct mr_pipeline_bench *bench,
                           const struct mr_stream_kind *kind,
                           struct mr_bench_stream *stream, struct mr_error *error)
{
    struct mr_made_config config = kind->made;

    (void)error;
    config.events = bench->options.events;
    if (!(kind->in & MR_STREAMS_MAIN))
        config.events /= SWEEP_PART;
    mr_bench_make(&config, stream);
    return MR_OK;
}

/* Compiles a source, with door hooks if it is called `*.hooks.o`, at its place among the objects. */
static enum mr_status compile(struct mr_pipeline_bench *bench, const char *source,
                              const char *object, const char *more,
                              struct mr_words *objects, struct mr_error *error)
{
    struct mr_words flags = {0};
    const struct mr_build_object wanted = {
        .source = source, .object = object, .flags = &flags};
    enum mr_status status = MR_OK;

    mr_words_split(&flags, more);
    if (strstr(object, ".hooks."))
        status = mr_build_flags(&bench->build, "millrace", "--cflags", &flags, error);
    mr_words_add(objects, "%s", object);
    if (status == MR_OK)
        status = mr_build_object(&bench->build, &wanted, error);
    mr_words_fini(&flags);
    return status;
}

static enum mr_status link_and_record(struct mr_pipeline_bench *bench, const char *name,
                                      struct mr_words *objects, const char *arguments,
                                      struct mr_bench_stream *stream,
                                      struct mr_error *error)
{
    enum mr_status status =
        mr_build_flags(&bench->build, "millrace", "--libs", objects, error);
    struct mr_words argv = {0};
    char path[PATH_MAX];

    mr_words_split(objects, "-lm -ldl -pthread");
    if (status == MR_OK)
        status = mr_build_link(&bench->build, NULL, name, objects, error);
    mr_words_add(&argv, "%s", mr_build_path(&bench->build, name, path));
    mr_words_split(&argv, arguments);
    if (status == MR_OK)
        status = mr_bench_record(bench, name, &argv, stream, error);
    mr_words_fini(&argv);
    return status;
}

static enum mr_status need_build(const struct mr_pipeline_bench *bench,
                                 struct mr_error *error)
{
    return bench->has_build
               ? MR_OK
               : mr_error_set(error, MR_ENOTFOUND, "nothing can be compiled here");
}

/* `caller`: the object of speedtest1.c, which says whether it is traced as SQLite is. */
static enum mr_status run_sqlite(struct mr_pipeline_bench *bench, const char *caller,
                                 const char *program, struct mr_bench_stream *stream,
                                 struct mr_error *error)
{
    char source[PATH_MAX + 16], flags[PATH_MAX + 16], size[BUILD_NAME];
    struct mr_words objects = {0};
    enum mr_status status = need_build(bench, error);

    if (status == MR_OK && !*bench->sqlite)
        status = mr_error_set(error, MR_ENOTFOUND,
                              "no sources of SQLite: run scripts/sqlite-fetch.sh, or "
                              "name them with --sqlite");
    (void)snprintf(flags, sizeof(flags), "-w -I%s", bench->sqlite);
    (void)snprintf(source, sizeof(source), "%s/sqlite3.c", bench->sqlite);
    if (status == MR_OK)
        status = compile(bench, source, "sqlite3.hooks.o", flags, &objects, error);
    (void)snprintf(source, sizeof(source), "%s/speedtest1.c", bench->sqlite);
    if (status == MR_OK)
        status = compile(bench, source, caller, flags, &objects, error);
    (void)snprintf(size, sizeof(size), "--size %llu",
                   (unsigned long long)bench->options.sqlite_size);
    if (status == MR_OK)
        status = link_and_record(bench, program, &objects, size, stream, error);
    mr_words_fini(&objects);
    return status;
}

static enum mr_status record_sqlite(struct mr_pipeline_bench *bench,
                                    const struct mr_stream_kind *kind,
                                    struct mr_bench_stream *stream,
                                    struct mr_error *error)
{
    enum mr_status status =
        run_sqlite(bench, "speedtest1.hooks.o", "sqlite.hooks", stream, error);

    (void)kind;
    stream->outer = sqlite_outer;
    stream->outer_count = MR_ARRAY_COUNT(sqlite_outer);
    return status;
}

static enum mr_status learn(struct mr_markov *markov,
                            const struct mr_bench_stream *recorded,
                            struct mr_error *error)
{
    enum mr_status status;

    for (uint32_t i = 0; i < recorded->run_count; i++)
        mr_markov_learn(markov, recorded->runs[i].stack, recorded->runs[i].words,
                        recorded->runs[i].count);
    status = mr_markov_seal(markov, MR_MADE_FUNCTIONS);
    return status == MR_OK
               ? MR_OK
               : mr_error_set(error, status,
                              "of what was recorded no call trees can be made: %s",
                              status == MR_ELIMIT ? "too many functions" : "it has none");
}

/* What SQLite could have done: call trees that begin at its interface, each like none before. */
static enum mr_status imagine_sqlite(struct mr_pipeline_bench *bench,
                                     const struct mr_stream_kind *kind,
                                     struct mr_bench_stream *stream,
                                     struct mr_error *error)
{
    struct mr_bench_stream recorded = {0};
    struct mr_stream_kind with = *kind;
    enum mr_status status =
        run_sqlite(bench, "speedtest1.o", "sqlite.alone", &recorded, error);

    with.made.markov = mr_markov_new();
    if (status == MR_OK)
        status = learn(with.made.markov, &recorded, error);
    mr_bench_stream_free(&recorded);
    if (status == MR_OK)
        status = make(bench, &with, stream, error);
    if (status == MR_OK)
        stream->markov = with.made.markov;
    else
        mr_markov_free(with.made.markov);
    return status;
}

/* A program of bench/programs that has the stream's name. */
static enum mr_status record_program(struct mr_pipeline_bench *bench,
                                     const struct mr_stream_kind *kind,
                                     struct mr_bench_stream *stream,
                                     struct mr_error *error)
{
    char source[BUILD_NAME], object[BUILD_NAME], program[BUILD_NAME];
    struct mr_words objects = {0};
    enum mr_status status = need_build(bench, error);
    const char *flags = "-std=c17 -D_GNU_SOURCE -Isource";

    (void)snprintf(source, sizeof(source), "bench/programs/%s.c", kind->name);
    (void)snprintf(object, sizeof(object), "%s.hooks.o", kind->name);
    (void)snprintf(program, sizeof(program), "%s.hooks", kind->name);
    if (status == MR_OK)
        status = compile(bench, source, object, flags, &objects, error);
    if (status == MR_OK)
        status = link_and_record(bench, program, &objects, "4 20000", stream, error);
    mr_words_fini(&objects);
    return status;
}

#define MAIN MR_STREAMS_MAIN
const struct mr_stream_kind mr_stream_kinds[] = {
    {"recursion-10", make, {.kind = MR_MADE_RECURSION, .number = 10}, MAIN},
    {"mixed-100", make, {.kind = MR_MADE_MIXED, .number = 100}, MAIN},
    {"mixed-1000", make, {.kind = MR_MADE_MIXED, .number = 1000}, MAIN},
    {"sqlite-like", make, {.kind = MR_MADE_SQLITE}, MAIN},
    {"shapes-1000",
     make,
     {.kind = MR_MADE_SHAPES, .number = 1000},
     MAIN | MR_STREAMS_SHAPES},
    {"never", make, {.kind = MR_MADE_SHAPES}, MAIN},
    {"never-few", make, {.kind = MR_MADE_SHAPES, .levels = 3}, MAIN},
    {"sqlite", record_sqlite, {.number = 0}, MR_STREAMS_RECORDED},
    {"requests", record_program, {.number = 0}, MR_STREAMS_RECORDED},
    {"never-sqlite",
     imagine_sqlite,
     {.kind = MR_MADE_MARKOV},
     MAIN | MR_STREAMS_RECORDED},
    {"services", record_program, {.number = 0}, MR_STREAMS_RECORDED},
    {"shapes-1", make, {.kind = MR_MADE_SHAPES, .number = 1}, MR_STREAMS_SHAPES},
    {"shapes-10", make, {.kind = MR_MADE_SHAPES, .number = 10}, MR_STREAMS_SHAPES},
    {"shapes-100", make, {.kind = MR_MADE_SHAPES, .number = 100}, MR_STREAMS_SHAPES},
    {"shapes-10000", make, {.kind = MR_MADE_SHAPES, .number = 10000}, MR_STREAMS_SHAPES},
    {"shapes-100000",
     make,
     {.kind = MR_MADE_SHAPES, .number = 100000},
     MR_STREAMS_SHAPES},
    {"shapes-1000000",
     make,
     {.kind = MR_MADE_SHAPES, .number = 1000000},
     MR_STREAMS_SHAPES},
    {"depth-1", make, {.kind = MR_MADE_RECURSION, .number = 1}, MR_STREAMS_DEPTH},
    {"depth-100", make, {.kind = MR_MADE_RECURSION, .number = 100}, MR_STREAMS_DEPTH},
    {"depth-1000", make, {.kind = MR_MADE_RECURSION, .number = 1000}, MR_STREAMS_DEPTH},
    {"depth-10000", make, {.kind = MR_MADE_RECURSION, .number = 10000}, MR_STREAMS_DEPTH},
    {"streams-1",
     make,
     {.kind = MR_MADE_RECURSION, .number = 10, .streams = 1},
     MR_STREAMS_COUNT},
    {"streams-10",
     make,
     {.kind = MR_MADE_RECURSION, .number = 10, .streams = 10},
     MR_STREAMS_COUNT},
    {"streams-100",
     make,
     {.kind = MR_MADE_RECURSION, .number = 10, .streams = 100},
     MR_STREAMS_COUNT},
    {"streams-1000",
     make,
     {.kind = MR_MADE_RECURSION, .number = 10, .streams = 1000},
     MR_STREAMS_COUNT},
    {"streams-10000",
     make,
     {.kind = MR_MADE_RECURSION, .number = 10, .streams = 10000},
     MR_STREAMS_COUNT},
};
const size_t mr_stream_kind_count = MR_ARRAY_COUNT(mr_stream_kinds);
