/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../unit_test.h"
#include "net/control.h"
#include "pipeline/mark.h"
#include "pipeline/spool_log.h"

#define SENDERS 3u
#define COMMITS_MAX 4096u
#define ROUNDS 25
#define SMALL (UINT64_C(8) << 20)

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

static struct mr_spool *open_spool(uint64_t bytes_max)
{
    const struct mr_spool_config config = {.folder = folder, .bytes_max = bytes_max};
    struct mr_error error = MR_ERROR_NONE;
    struct mr_spool *spool;

    if (mr_spool_open(&config, &spool, &error) != MR_OK)
        fail_msg("%s", error.text);
    return spool;
}

static struct mr_id id_of(uint32_t sender)
{
    return (struct mr_id){7, sender + 1};
}

/* A frame whose bytes follow from whose it is. */
static size_t make_frame(uint32_t sender, uint64_t sequence, uint8_t *out)
{
    size_t size = (size_t)(sender * 131 + sequence * 977) % 3000;

    for (size_t i = 0; i < size; i++)
        out[MR_WIRE_HEADER_SIZE + i] = (uint8_t)(sequence + i * (sender + 1));
    mr_frame_put_header(MR_FRAME_CHUNKS, 0, sequence,
                        mr_span_of(out + MR_WIRE_HEADER_SIZE, size), out);
    return MR_WIRE_HEADER_SIZE + size;
}

static void put_sender(struct mr_spool *spool, uint32_t index)
{
    const struct mr_spool_position position = {
        .custody = {.state = MR_CUSTODY_OPEN, .epoch = 1}, .serial = 1};
    struct mr_error error = MR_ERROR_NONE;

    assert_int_equal(mr_spool_put_sender(spool, mr_spool_sender(spool, id_of(index)),
                                         &position, mr_span_of_text("hello"), true,
                                         &error),
                     MR_OK);
}

/* What the child tells of its doings, in memory that outlives it: `begun` before, `done` after. */
struct told {
    uint64_t frames_begun[SENDERS], frames_done[SENDERS];
    uint64_t commits_begun, commits_done;
    uint64_t covered[COMMITS_MAX][SENDERS]; /* by a commit */
    uint64_t acked_begun, acked_done;
};

static uint64_t next_random(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random >> 11;
}

static void put_stream(struct mr_buffer *marks, uint32_t sender, uint64_t commit)
{
    struct mr_resume_call call = {.enter_ns = 3000000000u + commit,
                                  .site_id = {1, commit},
                                  .flags = MR_EVENT_OUTER};
    const struct mr_resume_stream stream = {
        .last = commit, .last_ns = 3000000000u + commit, .depth = 1, .calls = &call};
    const struct mr_resume_source source = {.last_ns = commit};
    struct mr_buffer bytes;
    struct mr_mark mark = {
        .kind = MR_MARK_STREAM, .id = id_of(sender), .serial = 1, .stream = 5};

    mr_buffer_init(&bytes, SIZE_MAX);
    assert_int_equal(mr_resume_put_stream(&bytes, &stream), MR_OK);
    mark.bytes = mr_buffer_span(&bytes);
    assert_int_equal(mr_mark_put(marks, &mark), MR_OK);
    mark.kind = MR_MARK_SOURCE;
    mark.bytes = mr_span_of(&source, sizeof(source));
    assert_int_equal(mr_mark_put(marks, &mark), MR_OK);
    mr_buffer_fini(&bytes);
}

/* Two frames that tell their commit, and what is covered by it. */
static enum mr_status commit(struct mr_spool *spool, struct told *told)
{
    uint64_t number = told->commits_begun;
    struct mr_batch *frames = mr_batch_new(MR_BATCH_DICT);
    struct mr_error error = MR_ERROR_NONE;
    struct mr_buffer marks;
    enum mr_status status;

    frames->next = mr_batch_new(MR_BATCH_DELTA);
    assert_int_equal(mr_buffer_append(&frames->bytes, &number, sizeof(number)), MR_OK);
    assert_int_equal(mr_buffer_append(&frames->next->bytes, &number, sizeof(number)),
                     MR_OK);
    mr_buffer_init(&marks, SIZE_MAX);
    for (uint32_t i = 0; i < SENDERS; i++) {
        const struct mr_mark mark = {
            .kind = MR_MARK_COVER, .id = id_of(i), .sequence = told->covered[number][i]};

        assert_int_equal(mr_mark_put(&marks, &mark), MR_OK);
        put_stream(&marks, i, number);
    }
    status =
        mr_spool_commit(spool, 2 * number + 1, frames, mr_buffer_span(&marks), &error);
    mr_buffer_fini(&marks);
    mr_batch_free(frames->next);
    mr_batch_free(frames);
    return status;
}

static void append(struct mr_spool *spool, struct mr_spool_log *log, struct told *told,
                   uint32_t sender)
{
    uint8_t frame[4096];
    uint64_t sequence = told->frames_done[sender] + 1;
    size_t size = make_frame(sender, sequence, frame);

    if (mr_spool_log_reserve(log, size) != MR_OK)
        return;
    told->frames_begun[sender] = sequence;
    if (mr_spool_log_append(log, mr_spool_sender(spool, id_of(sender)), 1, sequence,
                            mr_span_of(frame, size)) != MR_OK)
        _exit(2);
    told->frames_done[sender] = sequence;
}

static void cover(struct mr_spool *spool, struct told *told, uint64_t *random)
{
    if (told->commits_begun + 1 >= COMMITS_MAX)
        return;
    for (uint32_t i = 0; i < SENDERS; i++) {
        uint64_t before =
            told->commits_begun ? told->covered[told->commits_begun - 1][i] : 0;

        told->covered[told->commits_begun][i] =
            before + next_random(random) % (told->frames_done[i] - before + 1);
    }
    /* Told as begun by the commit that follows; a reader after a kill looks one further than `done`. */
    if (commit(spool, told) != MR_OK)
        _exit(3);
    told->commits_begun++;
    told->commits_done = told->commits_begun;
}

static void acknowledge(struct mr_spool *spool, struct told *told, uint64_t *random)
{
    const struct mr_custody_hello custody = {.custodian = {1, 2}, .epoch = 9};
    struct mr_error error = MR_ERROR_NONE;

    told->acked_begun = told->acked_done + next_random(random) % (2 * told->commits_done -
                                                                  told->acked_done + 1);
    if (mr_spool_keep(spool, &custody, told->acked_begun, &error) != MR_OK)
        _exit(4);
    told->acked_done = told->acked_begun;
}

/* Until it is killed. */
static void work(struct told *told, uint64_t seed)
{
    struct mr_spool *spool = open_spool(64 << 20);
    struct mr_spool_log *log = mr_spool_log_new(spool);
    uint64_t random = seed;

    for (uint32_t i = 0; i < SENDERS; i++)
        put_sender(spool, i);
    for (;;) {
        uint64_t what = next_random(&random) % 32;

        if (what < 24)
            append(spool, log, told, (uint32_t)(what % SENDERS));
        else if (what < 28)
            cover(spool, told, &random);
        else if (what < 30)
            acknowledge(spool, told, &random);
        else
            mr_spool_log_tidy(log);
    }
}

/* What is found after the kill. */
struct seen {
    const struct told *told;
    uint64_t commits; /* kept: told, or the one that was under way */
    uint64_t covered[SENDERS], taken[SENDERS];
    uint32_t senders;
};

static enum mr_status see_sender(void *context, struct mr_spool_found *found)
{
    struct seen *seen = context;
    uint32_t sender = (uint32_t)found->sender->id.lo - 1;
    struct mr_span rest = mr_buffer_span(&found->frames);
    uint64_t covered = mr_load_acquire(&found->sender->covered), next = covered + 1;
    struct mr_frame frame;

    assert_true(sender < SENDERS);
    for (; mr_frame_take_again(&rest, &frame); next++) {
        uint8_t expected[4096];
        size_t size = make_frame(sender, next, expected);

        assert_int_equal(frame.sequence, next);
        assert_int_equal(frame.payload.size + MR_WIRE_HEADER_SIZE, size);
        assert_memory_equal(frame.payload.data, expected + MR_WIRE_HEADER_SIZE,
                            frame.payload.size);
    }
    assert_int_equal(found->position.custody.taken, next - 1);
    assert_int_equal(found->position.custody.state, MR_CUSTODY_BROKEN);
    assert_true(next - 1 >= seen->told->frames_done[sender]); /* it was acknowledged */
    assert_true(next - 1 <= seen->told->frames_begun[sender]);
    if (seen->commits) {
        uint64_t last = seen->commits - 1;

        assert_int_equal(covered, seen->told->covered[last][sender]);
        assert_non_null(found->resume);
        assert_int_equal(found->resume->source.last_ns, last);
        assert_int_equal(found->resume->stream_count, 1);
        assert_int_equal(found->resume->streams[0].last, last);
        assert_int_equal(found->resume->streams[0].calls[0].enter_ns, 3000000000u + last);
    } else {
        assert_int_equal(covered, 0);
    }
    seen->covered[sender] = covered;
    seen->taken[sender] = next - 1;
    seen->senders++;
    return MR_OK;
}

static enum mr_status see_frame(void *context, const struct mr_spool_frame *frame)
{
    uint64_t *next = context, number;

    assert_int_equal(frame->sequence, *next);
    assert_int_equal(frame->payload.size, sizeof(number));
    memcpy(&number, frame->payload.data, sizeof(number));
    assert_int_equal(number, (frame->sequence - 1) / 2);
    assert_int_equal(frame->type, frame->sequence % 2 ? MR_FRAME_DICT : MR_FRAME_DELTA);
    ++*next;
    return MR_OK;
}

/* And goes on from there. */
static void compare(struct told *told)
{
    struct mr_spool *spool = open_spool(64 << 20);
    struct mr_error error = MR_ERROR_NONE;
    struct mr_spool_upward upward;
    struct seen seen = {.told = told};
    uint64_t next;

    assert_int_equal(mr_spool_get_upward(spool, &upward, &error), MR_OK);
    assert_true(upward.custody.acked == told->acked_done ||
                upward.custody.acked == told->acked_begun);
    next = upward.custody.acked + 1;
    assert_int_equal(mr_spool_each_frame(spool, see_frame, &next, &error), MR_OK);
    seen.commits = (next - 1) / 2;
    assert_int_equal((next - 1) % 2, 0); /* both frames of a commit, or none */
    assert_true(seen.commits == told->commits_done ||
                seen.commits == told->commits_done + 1);
    assert_int_equal(mr_spool_recover(spool, see_sender, &seen, &error), MR_OK);
    assert_true(seen.senders == SENDERS || told->commits_begun == 0);
    mr_spool_close(spool);
    told->commits_begun = told->commits_done = seen.commits;
    told->acked_begun = told->acked_done = upward.custody.acked;
    for (uint32_t i = 0; i < SENDERS; i++)
        told->frames_begun[i] = told->frames_done[i] = seen.taken[i];
}

static void whenever_it_is_killed_what_was_told_is_there_and_nothing_twice(void **state)
{
    const char *given = getenv("MR_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    struct told *told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t random = seed | 1;

    (void)state;
    assert_ptr_not_equal(told, MAP_FAILED);
    print_message("seed %" PRIu64 "\n", seed);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t child_seed = next_random(&random) | 1;
        uint64_t life_us = 1000 + next_random(&random) % 60000;
        int status;
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0)
            work(told, child_seed);
        (void)usleep((useconds_t)life_us);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status)); /* else it could not go on */
        compare(told);
    }
    print_message("%" PRIu64 " commits, %" PRIu64 " frames of the first sender\n",
                  told->commits_done, told->frames_done[0]);
    assert_true(told->commits_done > 0 && told->frames_done[0] > 0);
    (void)munmap(told, sizeof(*told));
}

static void a_second_worker_is_refused(void **state)
{
    const struct mr_spool_config config = {.folder = folder, .bytes_max = SMALL};
    struct mr_spool *first = open_spool(SMALL), *second;
    struct mr_error error = MR_ERROR_NONE;
    struct mr_id self = mr_spool_self(first);

    (void)state;
    assert_int_equal(mr_spool_open(&config, &second, &error), MR_EUSAGE);
    assert_non_null(strstr(error.text, "another worker uses it"));
    mr_spool_close(first);
    first = open_spool(SMALL);
    assert_true(mr_id_equal(self, mr_spool_self(first))); /* the same worker */
    mr_spool_close(first);
}

static void a_folder_that_is_no_path_is_refused(void **state)
{
    const struct mr_spool_config config = {.folder = "relative", .bytes_max = SMALL};
    struct mr_error error = MR_ERROR_NONE;
    struct mr_spool *spool;

    (void)state;
    assert_int_equal(mr_spool_open(&config, &spool, &error), MR_EUSAGE);
}

static void write_at(const char *name, off_t at, const void *bytes, size_t size)
{
    char path[128];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, size, at), (ssize_t)size);
    (void)close(fd);
}

static void a_damaged_database_is_refused_with_what_to_do(void **state)
{
    const struct mr_spool_config config = {.folder = folder, .bytes_max = SMALL};
    struct mr_error error = MR_ERROR_NONE;
    struct mr_spool *spool = open_spool(SMALL);

    (void)state;
    mr_spool_close(spool);
    write_at("spool.db", 0, "this is no database at all, it once was", 39);
    assert_int_equal(mr_spool_open(&config, &spool, &error), MR_EFORMAT);
    assert_non_null(strstr(error.text, "move the folder away"));
}

static enum mr_status take_position(void *context, struct mr_spool_found *found)
{
    *(uint64_t *)context = found->position.custody.taken;
    return MR_OK;
}

static uint64_t recover_taken(void)
{
    struct mr_spool *spool = open_spool(SMALL);
    struct mr_error error = MR_ERROR_NONE;
    uint64_t taken = UINT64_MAX;

    assert_int_equal(mr_spool_recover(spool, take_position, &taken, &error), MR_OK);
    mr_spool_close(spool);
    return taken;
}

/* Files in the folder of frames. */
static uint32_t count_files(void)
{
    char path[128];
    DIR *directory;
    const struct dirent *entry;
    uint32_t count = 0;

    (void)snprintf(path, sizeof(path), "%s/frames", folder);
    directory = opendir(path);
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL)
        count += entry->d_name[0] != '.';
    (void)closedir(directory);
    return count;
}

/* 40 MiB of frames, then a commit that covers them all. */
static uint32_t fill_and_cover(struct mr_spool *spool, struct mr_spool_log *log,
                               struct told *told)
{
    static uint8_t frame[1 << 20];
    uint32_t files;

    for (uint32_t i = 0; i < 40; i++) {
        uint64_t sequence = told->frames_done[0] + 1;

        mr_frame_put_header(
            MR_FRAME_CHUNKS, 0, sequence,
            mr_span_of(frame + MR_WIRE_HEADER_SIZE, sizeof(frame) - MR_WIRE_HEADER_SIZE),
            frame);
        assert_int_equal(mr_spool_log_reserve(log, sizeof(frame)), MR_OK);
        assert_int_equal(mr_spool_log_append(log, mr_spool_sender(spool, id_of(0)), 1,
                                             sequence, mr_span_of(frame, sizeof(frame))),
                         MR_OK);
        told->frames_done[0] = sequence;
    }
    files = count_files();
    told->covered[told->commits_begun][0] = told->frames_done[0];
    assert_int_equal(commit(spool, told), MR_OK);
    told->commits_begun++;
    return files;
}

static void files_are_written_over_and_given_back_when_nothing_comes(void **state)
{
    struct told *told = calloc(1, sizeof(*told));
    struct mr_spool *spool = open_spool(UINT64_C(256) << 20);
    struct mr_spool_log *log = mr_spool_log_new(spool);
    uint32_t files;

    (void)state;
    for (uint32_t i = 0; i < SENDERS; i++)
        put_sender(spool, i);
    files = fill_and_cover(spool, log, told);
    assert_in_range(files, 5, 7);
    for (int i = 0; i < 5; i++) {
        mr_spool_log_tidy(log);
        assert_int_equal(count_files(), files); /* kept, to be written over */
        assert_int_equal(fill_and_cover(spool, log, told), files);
    }
    for (int i = 0; i < 50; i++)
        mr_spool_log_tidy(log);
    assert_int_equal(count_files(), files);
    for (int i = 0; i < 60; i++)
        mr_spool_log_tidy(log);
    assert_int_equal(count_files(), 1); /* the one that is being written */
    fill_and_cover(spool, log, told);
    mr_spool_close(spool);
    free(told);
}

static void what_follows_a_damaged_frame_is_not_used(void **state)
{
    struct told told = {.commits_done = 0};
    struct mr_spool *spool = open_spool(SMALL);
    struct mr_spool_log *log = mr_spool_log_new(spool);
    uint8_t frame[4096];
    off_t third = 16 + 2 * 56;

    (void)state;
    put_sender(spool, 0);
    for (int i = 0; i < 5; i++)
        append(spool, log, &told, 0);
    mr_spool_close(spool);
    assert_int_equal(recover_taken(), 5);
    third += (off_t)(make_frame(0, 1, frame) + make_frame(0, 2, frame));
    write_at("frames/1", third + 56 + MR_WIRE_HEADER_SIZE + 7, "x", 1);
    assert_int_equal(recover_taken(), 2);
    write_at("frames/1", third, "yy", 2); /* its record */
    assert_int_equal(recover_taken(), 2);
    write_at("frames/1", 0, "z", 1); /* the file */
    assert_int_equal(recover_taken(), 0);
}

static void full_it_says_so_and_goes_on_when_something_is_covered(void **state)
{
    struct told told = {.commits_done = 0};
    struct mr_spool *spool = open_spool(SMALL);
    struct mr_spool_log *log = mr_spool_log_new(spool);
    uint64_t last = 0;

    (void)state;
    put_sender(spool, 0);
    do {
        last = told.frames_done[0];
        append(spool, log, &told, 0);
    } while (told.frames_done[0] > last);
    assert_true(last > 1000); /* of 1.5 KB on average, 4 MiB */
    assert_int_equal(mr_spool_log_reserve(log, 100000), MR_ELIMIT);
    told.covered[0][0] = last;
    assert_int_equal(commit(spool, &told), MR_OK);
    assert_true(mr_spool_covers(mr_spool_sender(spool, id_of(0)), last));
    assert_int_equal(mr_spool_log_reserve(log, 100000), MR_OK);
    append(spool, log, &told, 0);
    assert_int_equal(told.frames_done[0], last + 1);
    mr_spool_close(spool);
    assert_int_equal(recover_taken(), last + 1);
}

static bool has_file(const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* A spool with five frames, closed when so many are covered. */
static void close_covered(uint64_t covered)
{
    struct told told = {.commits_done = 0};
    struct mr_spool *spool = open_spool(SMALL);
    struct mr_spool_log *log = mr_spool_log_new(spool);

    put_sender(spool, 0);
    for (int i = 0; i < 5; i++)
        append(spool, log, &told, 0);
    told.covered[0][0] = covered;
    assert_int_equal(commit(spool, &told), MR_OK);
    assert_true(has_file("frames/1"));
    mr_spool_close(spool);
}

static void closed_it_keeps_files_of_frames_that_are_not_covered(void **state)
{
    (void)state;
    close_covered(4);
    assert_true(has_file("frames/1"));
    assert_int_equal(recover_taken(), 5);
}

static void closed_it_keeps_no_others(void **state)
{
    (void)state;
    close_covered(5);
    assert_false(has_file("frames/1"));
    assert_int_equal(recover_taken(), 5);
}

static void a_commit_that_finds_no_room_changes_nothing(void **state)
{
    struct told told = {.commits_done = 0};
    struct mr_spool *spool = open_spool(SMALL);
    struct mr_batch *large = mr_batch_new(MR_BATCH_DELTA);
    struct mr_error error = MR_ERROR_NONE;
    const struct mr_mark mark = {.kind = MR_MARK_COVER, .id = id_of(0), .sequence = 99};
    struct mr_buffer marks;
    uint8_t *at;
    uint64_t next = 1;

    (void)state;
    put_sender(spool, 0);
    mr_buffer_init(&marks, SIZE_MAX);
    assert_int_equal(mr_mark_put(&marks, &mark), MR_OK);
    assert_int_equal(mr_buffer_reserve(&large->bytes, 6 << 20, &at), MR_OK);
    memset(at, 1, 6 << 20);
    mr_buffer_commit(&large->bytes, 6 << 20);
    assert_int_equal(mr_spool_commit(spool, 1, large, mr_buffer_span(&marks), &error),
                     MR_ELIMIT);
    assert_false(mr_spool_covers(mr_spool_sender(spool, id_of(0)), 1));
    assert_int_equal(mr_spool_each_frame(spool, see_frame, &next, &error), MR_OK);
    assert_int_equal(next, 1);
    assert_int_equal(commit(spool, &told), MR_OK);
    assert_int_equal(mr_spool_each_frame(spool, see_frame, &next, &error), MR_OK);
    assert_int_equal(next, 3);
    mr_buffer_fini(&marks);
    mr_batch_free(large);
    mr_spool_close(spool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            whenever_it_is_killed_what_was_told_is_there_and_nothing_twice, make_folder,
            remove_folder),
        cmocka_unit_test_setup_teardown(a_second_worker_is_refused, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_folder_that_is_no_path_is_refused, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_damaged_database_is_refused_with_what_to_do,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(
            files_are_written_over_and_given_back_when_nothing_comes, make_folder,
            remove_folder),
        cmocka_unit_test_setup_teardown(what_follows_a_damaged_frame_is_not_used,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(
            full_it_says_so_and_goes_on_when_something_is_covered, make_folder,
            remove_folder),
        cmocka_unit_test_setup_teardown(
            closed_it_keeps_files_of_frames_that_are_not_covered, make_folder,
            remove_folder),
        cmocka_unit_test_setup_teardown(closed_it_keeps_no_others, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_commit_that_finds_no_room_changes_nothing,
                                        make_folder, remove_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
