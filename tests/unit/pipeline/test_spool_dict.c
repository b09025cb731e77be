/* SPDX-License-Identifier: Apache-2.0 */
/* What a spool keeps beside frames stays as large as it is, however often the worker is started again. */
#include "pipeline/spool.h"

#include <string.h>

#include "net/control.h"
#include "net/wire.h"
#include "pipeline/mark.h"
#include "tests/unit/unit_test.h"

#define SPOOL_BYTES (UINT64_C(8) << 20)
#define MODULES 40u
#define RESTARTS 6
#define PAGE 8192

static const struct mr_id sender_id = {7, 1};
static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof(folder), "/tmp/millrace-spool-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[128];

    (void)state;
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command); /* NOLINT(cert-env33-c): of a name made here */
}

static struct mr_spool *open_spool(void)
{
    const struct mr_spool_config config = {.folder = folder, .bytes_max = SPOOL_BYTES};
    struct mr_error error = MR_ERROR_NONE;
    struct mr_spool *spool;

    if (mr_spool_open(&config, &spool, &error) != MR_OK)
        fail_msg("%s", error.text);
    return spool;
}

/* Of the one sender that is there. */
struct seen {
    uint32_t rows, modules, named, others;
    uint32_t sites; /* that are told for open calls */
};

static enum mr_status see(void *context, struct mr_spool_found *found)
{
    struct seen *seen = context;

    seen->rows = found->dict_count;
    for (uint32_t i = 0; i < found->dict_count; i++) {
        struct mr_dict_reader reader;
        struct mr_dict_item item;

        assert_int_equal(mr_dict_open(&reader, mr_buffer_span(&found->dicts[i]), NULL),
                         MR_OK);
        while (mr_dict_next(&reader, &item, NULL) == MR_OK) {
            seen->modules += item.kind == MR_DICT_MODULE;
            seen->named += item.kind == MR_DICT_NAMED_SITE;
            seen->others +=
                item.kind != MR_DICT_MODULE && item.kind != MR_DICT_NAMED_SITE;
        }
        mr_dict_close(&reader);
    }
    if (found->resume)
        seen->sites = found->resume->sites->count;
    return MR_OK;
}

static struct mr_spool *restart(struct mr_spool *spool, struct seen *seen)
{
    struct mr_error error = MR_ERROR_NONE;

    *seen = (struct seen){0};
    mr_spool_close(spool);
    spool = open_spool();
    assert_int_equal(mr_spool_recover(spool, see, seen, &error), MR_OK);
    return spool;
}

static void put_sender(struct mr_spool *spool, uint32_t serial)
{
    const struct mr_spool_position position = {
        .custody = {.state = MR_CUSTODY_OPEN, .epoch = serial}, .serial = serial};
    struct mr_error error = MR_ERROR_NONE;

    assert_int_equal(mr_spool_put_sender(spool, mr_spool_sender(spool, sender_id),
                                         &position, mr_span_of_text("hello"), true,
                                         &error),
                     MR_OK);
}

static void put_page(struct mr_spool *spool, uint32_t serial, uint64_t sequence,
                     struct mr_dict_writer *writer)
{
    struct mr_error error = MR_ERROR_NONE;
    size_t size = mr_dict_writer_finish(writer);

    if (size > 0 &&
        mr_spool_put_dict(spool, mr_spool_sender(spool, sender_id), serial, sequence,
                          mr_span_of(writer->out, size), &error) != MR_OK)
        fail_msg("%s", error.text);
    mr_dict_writer_init(writer, writer->out, writer->capacity);
}

static void put_item(struct mr_dict_writer *writer, const struct mr_dict_item *item)
{
    assert_int_equal(mr_dict_put(writer, item), MR_OK);
}

/* As a probe does: all that it has, and the time of day, in pages that are cut anywhere. */
static void tell(struct mr_spool *spool, uint32_t serial, uint32_t named,
                 struct mr_test_random *random)
{
    uint8_t page[PAGE];
    struct mr_dict_writer writer;
    const struct mr_dict_item sync = {
        .kind = MR_DICT_SYNC,
        .sync = {.ticks = mr_test_random_next(random), .realtime_ns = 1}};

    mr_dict_writer_init(&writer, page, sizeof(page));
    for (uint32_t i = 0; i < MODULES + named; i++) {
        const struct mr_dict_item module = {.kind = MR_DICT_MODULE,
                                            .module = {.module = i,
                                                       .site_base = MR_SITE_FIRST_MODULE,
                                                       .size = 4096,
                                                       .path = "/lib/x.so"}};
        const struct mr_dict_item span = {.kind = MR_DICT_NAMED_SITE,
                                          .named_site = {.site = MR_SITE_FIRST_NAMED + i,
                                                         .name = "span",
                                                         .file = "x.c"}};

        put_item(&writer, i < MODULES ? &module : &span);
        if (mr_test_random_below(random, 10) == 0)
            put_page(spool, serial, 0, &writer);
    }
    put_item(&writer, &sync);
    put_page(spool, serial, 0, &writer);
}

static void commit_mark(struct mr_spool *spool, enum mr_mark_kind kind, uint32_t serial,
                        uint64_t sequence)
{
    const struct mr_mark mark = {
        .kind = kind, .id = sender_id, .serial = serial, .sequence = sequence};
    struct mr_error error = MR_ERROR_NONE;
    struct mr_buffer marks;

    mr_buffer_init(&marks, SIZE_MAX);
    assert_int_equal(mr_mark_put(&marks, &mark), MR_OK);
    assert_int_equal(mr_spool_commit(spool, serial, NULL, mr_buffer_span(&marks), &error),
                     MR_OK);
    mr_buffer_fini(&marks);
}

static void end_source(struct mr_spool *spool, uint32_t serial)
{
    commit_mark(spool, MR_MARK_SOURCE_END, serial, 0);
}

static void a_dictionary_that_is_told_again_is_kept_once(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    struct mr_spool *spool = open_spool();
    struct seen first, seen;

    (void)state;
    put_sender(spool, 1);
    tell(spool, 1, 3, &random);
    spool = restart(spool, &first);
    assert_int_equal(first.modules, MODULES);
    assert_int_equal(first.named, 3);
    assert_int_equal(first.others, 0);
    for (int i = 0; i < RESTARTS; i++) {
        tell(spool, 1, 3, &random);
        spool = restart(spool, &seen);
        assert_memory_equal(&seen, &first, sizeof(seen));
    }
    tell(spool, 1, 4, &random); /* one more, in a row of its own */
    spool = restart(spool, &seen);
    assert_int_equal(seen.rows, first.rows + 1);
    assert_int_equal(seen.modules, MODULES);
    assert_int_equal(seen.named, 4);
    mr_spool_close(spool);
}

static void the_next_source_of_a_sender_tells_its_own(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    struct mr_spool *spool = open_spool();
    struct seen seen;

    (void)state;
    put_sender(spool, 1);
    tell(spool, 1, 3, &random);
    end_source(spool, 1);
    put_sender(spool, 2);
    spool = restart(spool, &seen);
    assert_int_equal(seen.rows, 0);
    tell(spool, 2, 3, &random);
    spool = restart(spool, &seen);
    assert_int_equal(seen.modules, MODULES);
    assert_int_equal(seen.named, 3);
    mr_spool_close(spool);
}

static void a_damaged_telling_is_not_kept(void **state)
{
    struct mr_spool *spool = open_spool();
    struct mr_error error = MR_ERROR_NONE;
    struct seen seen;

    (void)state;
    put_sender(spool, 1);
    assert_int_equal(mr_spool_put_dict(spool, mr_spool_sender(spool, sender_id), 1, 0,
                                       mr_span_of_text("\xdd no dictionary"), &error),
                     MR_EFORMAT);
    spool = restart(spool, &seen);
    assert_int_equal(seen.rows, 0);
    mr_spool_close(spool);
}

/* More new names than the spool is large, as frame after frame or told anew. */
static void tell_for_ever(struct mr_spool *spool, bool is_numbered)
{
    char name[1000];
    uint8_t page[PAGE];
    struct mr_dict_writer writer;
    uint32_t site = MR_SITE_FIRST_NAMED;

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    mr_dict_writer_init(&writer, page, sizeof(page));
    for (uint64_t told = 0; told < SPOOL_BYTES; told += sizeof(name)) {
        const struct mr_dict_item item = {
            .kind = MR_DICT_NAMED_SITE,
            .named_site = {.site = site, .name = name, .file = "x.c"}};

        put_item(&writer, &item);
        if (++site % 4 == 0)
            put_page(spool, 1, is_numbered ? site : 0, &writer);
    }
}

/* Else no commit finds the room that gives room, and the worker stands for all, after a restart too. */
static void a_dictionary_without_an_end_leaves_room(void **state)
{
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (int is_numbered = 0; is_numbered < 2; is_numbered++) {
        struct mr_spool *spool = open_spool();
        struct seen seen;

        put_sender(spool, 1);
        tell_for_ever(spool, is_numbered);
        commit_mark(spool, MR_MARK_COVER, 1, UINT32_MAX);
        spool = restart(spool, &seen);
        assert_true(seen.named > 0);
        assert_true(seen.named < SPOOL_BYTES / 8 / 1000);
        tell_for_ever(spool, is_numbered); /* it is known how much is there */
        end_source(spool, 1);
        put_sender(spool, 2);
        tell(spool, 2, 3, &random); /* there is room for it again */
        spool = restart(spool, &seen);
        assert_int_equal(seen.modules, MODULES);
        assert_int_equal(seen.named, 3);
        end_source(spool, 2);
        mr_spool_close(spool);
    }
}

static void put_mark(struct mr_buffer *marks, enum mr_mark_kind kind, struct mr_id id,
                     struct mr_span bytes)
{
    const struct mr_mark mark = {
        .kind = kind, .id = id, .serial = 1, .stream = 5, .bytes = bytes};

    assert_int_equal(mr_mark_put(marks, &mark), MR_OK);
}

/* A commit that tells `count` sites; the call that is open at its end is of the last. */
static void commit_sites(struct mr_spool *spool, uint64_t count)
{
    const struct mr_resume_source source = {.last_ns = 1};
    struct mr_resume_call call = {
        .enter_ns = 3000000000u, .site_id = {1, count}, .flags = MR_EVENT_OUTER};
    const struct mr_resume_stream stream = {
        .last = 1, .last_ns = 3000000000u, .depth = 1, .calls = &call};
    struct mr_buffer marks, bytes;
    struct mr_error error = MR_ERROR_NONE;

    mr_buffer_init(&marks, SIZE_MAX);
    mr_buffer_init(&bytes, SIZE_MAX);
    for (uint64_t i = 1; i <= count; i++)
        put_mark(&marks, MR_MARK_SITE, (struct mr_id){1, i}, mr_span_of_text("a site"));
    assert_int_equal(mr_resume_put_stream(&bytes, &stream), MR_OK);
    put_mark(&marks, MR_MARK_SOURCE, sender_id, mr_span_of(&source, sizeof(source)));
    put_mark(&marks, MR_MARK_STREAM, sender_id, mr_buffer_span(&bytes));
    assert_int_equal(mr_spool_commit(spool, 1, NULL, mr_buffer_span(&marks), &error),
                     MR_OK);
    mr_buffer_fini(&bytes);
    mr_buffer_fini(&marks);
}

static void sites_of_no_open_call_are_gone_after_a_start(void **state)
{
    struct mr_spool *spool = open_spool();
    struct seen seen;

    (void)state;
    put_sender(spool, 1);
    commit_sites(spool, 100);
    spool = restart(spool, &seen);
    assert_int_equal(seen.sites, 100);
    spool = restart(spool, &seen);
    assert_int_equal(seen.sites, 1);
    commit_sites(spool, 3);
    spool = restart(spool, &seen);
    assert_int_equal(seen.sites, 4);
    spool = restart(spool, &seen);
    assert_int_equal(seen.sites, 1);
    mr_spool_close(spool);
}

#define DEEP 3000u
#define STREAMS 300u

/* A commit in which streams 1 .. STREAMS have so many calls open, each of one millisecond more. */
static enum mr_status commit_streams(struct mr_spool *spool, uint32_t depth)
{
    const struct mr_resume_source source = {.last_ns = 1};
    struct mr_resume_call *calls = calloc(depth, sizeof(*calls));
    struct mr_resume_stream stream = {.last = depth,
                                      .last_ns = UINT64_C(9000000000),
                                      .depth = depth,
                                      .trace_count = 1,
                                      .calls = calls};
    struct mr_buffer marks, bytes;
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status;

    assert_non_null(calls);
    for (uint32_t i = 0; i < depth; i++)
        calls[i] = (struct mr_resume_call){.enter_ns = UINT64_C(3000000000) + i,
                                           .flags = i ? 0 : MR_EVENT_ROOT};
    mr_buffer_init(&marks, SIZE_MAX);
    mr_buffer_init(&bytes, SIZE_MAX);
    put_mark(&marks, MR_MARK_SOURCE, sender_id, mr_span_of(&source, sizeof(source)));
    assert_int_equal(mr_resume_put_stream(&bytes, &stream), MR_OK);
    for (uint32_t i = 1; i <= STREAMS; i++) {
        const struct mr_mark mark = {.kind = MR_MARK_STREAM,
                                     .id = sender_id,
                                     .serial = 1,
                                     .stream = i,
                                     .bytes = mr_buffer_span(&bytes)};

        assert_int_equal(mr_mark_put(&marks, &mark), MR_OK);
    }
    status = mr_spool_commit(spool, 1, NULL, mr_buffer_span(&marks), &error);
    mr_buffer_fini(&bytes);
    mr_buffer_fini(&marks);
    free(calls);
    return status;
}

struct stacks {
    uint32_t whole, without;
};

static enum mr_status see_stacks(void *context, struct mr_spool_found *found)
{
    struct stacks *stacks = context;

    for (uint32_t i = 0; i < found->resume->stream_count; i++) {
        const struct mr_resume_stream *stream = &found->resume->streams[i];

        assert_int_equal(stream->last, DEEP);
        stacks->whole += stream->depth == DEEP && stream->trace_count == 1;
        stacks->without +=
            stream->depth == 0 && stream->trace_count == 0 && stream->is_base_unsure;
    }
    return MR_OK;
}

/* 30 MB of open calls, in a database of 4: what is kept is what fits, each commit has room, and what is shallow again is whole. */
static void stacks_too_deep_for_the_spool_are_left_out(void **state)
{
    struct mr_spool *spool = open_spool();
    struct mr_error error = MR_ERROR_NONE;
    struct stacks stacks = {0, 0};

    (void)state;
    put_sender(spool, 1);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(commit_streams(spool, DEEP), MR_OK);
    mr_spool_close(spool);
    spool = open_spool();
    assert_int_equal(mr_spool_recover(spool, see_stacks, &stacks, &error), MR_OK);
    assert_int_equal(stacks.whole + stacks.without, STREAMS);
    assert_in_range(stacks.whole, 5, SPOOL_BYTES / 8 / (34u * DEEP));
    assert_int_equal(commit_streams(spool, 10), MR_OK);
    assert_int_equal(commit_streams(spool, DEEP), MR_OK);
    end_source(spool, 1);
    mr_spool_close(spool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_dictionary_that_is_told_again_is_kept_once,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(the_next_source_of_a_sender_tells_its_own,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_damaged_telling_is_not_kept, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_dictionary_without_an_end_leaves_room,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(sites_of_no_open_call_are_gone_after_a_start,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(stacks_too_deep_for_the_spool_are_left_out,
                                        make_folder, remove_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
