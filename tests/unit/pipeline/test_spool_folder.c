/* SPDX-License-Identifier: Apache-2.0 */
/* Where a spool lies, who is forgotten in it, and what is passed over. */
#include "../unit_test.h"

#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/control.h"
#include "pipeline/mark.h"
#include "pipeline/spool_private.h"

#define SMALL (UINT64_C(8) << 20)

static char root[64], folder[96];

static int make_folder(void **state)
{
    (void)state;
    (void)snprintf(root, sizeof(root), "/tmp/millrace-spool-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    (void)snprintf(folder, sizeof(folder), "%s/shared", root);
    if (mkdir(folder, 0700) != 0 || chmod(folder, 01777) != 0) /* as /dev/shm */
        return -1;
    (void)snprintf(folder, sizeof(folder), "%s/shared/ours", root);
    return 0;
}

static int remove_folder(void **state)
{
    char command[128];

    (void)state;
    (void)snprintf(command, sizeof(command), "rm -r %s", root);
    return system(command); /* NOLINT(cert-env33-c): of a name made here */
}

static enum mr_status try_open(const char *path, struct mr_spool **spool)
{
    const struct mr_spool_config config = {.folder = path, .bytes_max = SMALL};
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = mr_spool_open(&config, spool, &error);

    if (status == MR_EUSAGE)
        assert_non_null(strstr(error.text, "others may write to it"));
    return status;
}

static struct mr_spool *open_spool(void)
{
    struct mr_spool *spool;

    assert_int_equal(try_open(folder, &spool), MR_OK);
    return spool;
}

/* Who made it before us could have put links into it, through which we would write to files of our own. */
static void a_folder_that_others_may_write_to_is_refused_where_anybody_makes_some(
    void **state)
{
    struct mr_spool *spool;
    char below[128];

    (void)state;
    (void)snprintf(below, sizeof(below), "%s/1", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(try_open(folder, &spool), MR_EUSAGE);
    assert_int_equal(try_open(below, &spool), MR_EUSAGE);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(try_open(below, &spool), MR_OK);
    mr_spool_close(spool);
    assert_int_equal(try_open(folder, &spool), MR_OK);
    mr_spool_close(spool);
}

static void a_link_is_refused_where_anybody_makes_some(void **state)
{
    struct mr_spool *spool;
    char target[128];

    (void)state;
    (void)snprintf(target, sizeof(target), "%s/elsewhere", root);
    assert_int_equal(mkdir(target, 0700), 0);
    assert_int_equal(symlink(target, folder), 0);
    assert_int_equal(try_open(folder, &spool), MR_EUSAGE);
}

static void another_users_folder_is_refused_where_anybody_makes_some(void **state)
{
    struct mr_spool *spool;

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(chown(folder, 12345, 12345), 0);
    assert_int_equal(try_open(folder, &spool), MR_EUSAGE);
    assert_int_equal(chmod(folder, 01777), 0); /* its owner may take away what is in it */
    assert_int_equal(try_open(folder, &spool), MR_EUSAGE);
}

static struct mr_spool_sender *put_sender(struct mr_spool *spool, uint64_t number)
{
    const struct mr_spool_position position = {
        .custody = {.state = MR_CUSTODY_OPEN, .epoch = 1}, .serial = 1};
    struct mr_spool_sender *sender = mr_spool_sender(spool, (struct mr_id){7, number});
    struct mr_error error = MR_ERROR_NONE;

    assert_int_equal(mr_spool_put_sender(spool, sender, &position,
                                         mr_span_of_text("hello"), true, &error),
                     MR_OK);
    return sender;
}

static void append(struct mr_spool_log *log, struct mr_spool_sender *sender,
                   uint64_t sequence)
{
    uint8_t frame[MR_WIRE_HEADER_SIZE];

    mr_frame_put_header(MR_FRAME_CHUNKS, 0, sequence, mr_span_of(frame, 0), frame);
    assert_int_equal(mr_spool_log_reserve(log, sizeof(frame)), MR_OK);
    assert_int_equal(
        mr_spool_log_append(log, sender, 1, sequence, mr_span_of(frame, sizeof(frame))),
        MR_OK);
}

static void commit_mark(struct mr_spool *spool, const struct mr_mark *mark)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_buffer marks;

    mr_buffer_init(&marks, 1 << 16);
    assert_int_equal(mr_mark_put(&marks, mark), MR_OK);
    assert_int_equal(mr_spool_commit(spool, 1, NULL, mr_buffer_span(&marks), &error),
                     MR_OK);
    mr_buffer_fini(&marks);
}

static void cover(struct mr_spool *spool, uint64_t number, uint64_t sequence)
{
    const struct mr_mark mark = {
        .kind = MR_MARK_COVER, .id = {7, number}, .sequence = sequence};

    commit_mark(spool, &mark);
}

/* A worker that sees programs come and go is never quiet: there always is somebody whose last frame is not covered. */
static void a_sender_that_is_forgotten_takes_no_room_though_others_go_on(void **state)
{
    struct mr_spool *spool = open_spool();
    struct mr_spool_log *log = mr_spool_log_new(spool);
    struct mr_spool_sender *steady[2] = {put_sender(spool, 0), put_sender(spool, 1)};
    struct mr_error error = MR_ERROR_NONE;
    uint64_t last[2] = {0, 0};

    (void)state;
    assert_non_null(log);
    for (uint64_t i = 0; i < 100; i++) {
        struct mr_spool_sender *passing = put_sender(spool, 100 + i);

        append(log, passing, 1);
        append(log, steady[i % 2], ++last[i % 2]);
        cover(spool, 100 + i, 1);
        if (i > 0)
            cover(spool, (i + 1) % 2, last[(i + 1) % 2]);
        mr_spool_log_tidy(log);
        assert_int_equal(mr_spool_forget_sender(spool, passing, &error), MR_OK);
        mr_spool_log_tidy(log);
    }
    assert_int_equal(spool->sender_count, 2);
    mr_spool_close(spool);
}

static void a_sender_that_was_forgotten_begins_anew(void **state)
{
    struct mr_spool *spool = open_spool();
    struct mr_spool_log *log = mr_spool_log_new(spool);
    struct mr_spool_sender *sender = put_sender(spool, 0), *other = put_sender(spool, 1);
    struct mr_error error = MR_ERROR_NONE;

    (void)state;
    append(log, sender, 1);
    append(log, other, 1);
    cover(spool, 0, 1);
    assert_int_equal(mr_spool_forget_sender(spool, sender, &error), MR_OK);
    sender = put_sender(spool, 0);
    assert_false(mr_spool_covers(sender, 1));
    append(log, sender, 1);
    cover(spool, 0, 1);
    cover(spool, 1, 1);
    mr_spool_log_tidy(log);
    assert_true(mr_spool_covers(sender, 1));
    assert_int_equal(mr_spool_forget_sender(spool, sender, &error), MR_OK);
    assert_int_equal(spool->sender_count, 1);
    mr_spool_close(spool);
}

static enum mr_status take(void *context, struct mr_spool_found *found)
{
    assert_null(found->resume);
    assert_int_equal(found->position.serial, 1);
    ++*(uint32_t *)context;
    return MR_OK;
}

static void a_source_whose_state_is_damaged_begins_anew_and_others_go_on(void **state)
{
    const struct mr_mark mark = {.kind = MR_MARK_SOURCE,
                                 .id = {7, 0},
                                 .serial = 1,
                                 .bytes = mr_span_of_text("this is no source")};
    struct mr_spool *spool = open_spool();
    struct mr_error error = MR_ERROR_NONE;
    uint32_t count = 0;

    (void)state;
    (void)put_sender(spool, 0);
    (void)put_sender(spool, 1);
    commit_mark(spool, &mark);
    mr_spool_close(spool);
    spool = open_spool();
    assert_int_equal(mr_spool_recover(spool, take, &count, &error), MR_OK);
    assert_int_equal(count, 2);
    mr_spool_close(spool);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_folder_that_others_may_write_to_is_refused_where_anybody_makes_some),
        TEST(a_link_is_refused_where_anybody_makes_some),
        TEST(another_users_folder_is_refused_where_anybody_makes_some),
        TEST(a_sender_that_is_forgotten_takes_no_room_though_others_go_on),
        TEST(a_sender_that_was_forgotten_begins_anew),
        TEST(a_source_whose_state_is_damaged_begins_anew_and_others_go_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
