/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread's ring under policy overwrite, read at each moment of its life: what was
 * interrupted, what was torn, what is not a recorder at all.
 */
#include "tests/unit/unit_test.h"

#include "net/chunk.h"
#include "probe/recorder.h"
#include "probe/recorder_read.h"
#include "probe/registry.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SITE MR_SITE_FIRST_MODULE
#define RING_WORDS MR_RING_WORDS_MIN
#define RING_BYTES (RING_WORDS * sizeof(uint64_t))

struct rig {
    struct mr_recorder recorder;
    struct mr_pool pool;
    struct mr_thread thread;
    struct mr_ring *ring;
    uint64_t made; /* events, written or not */
};

/* What chunks tell. */
struct told {
    uint64_t events, overwritten, nested, cuts;
    uint64_t last; /* number in the last event's site */
    bool is_first, is_last, is_source_end;
};

static void rig_open(struct rig *rig)
{
    struct mr_config config = {.clock = MR_CLOCK_MODE_COUNTER,
                               .memory_bytes = 8 * (RING_BYTES + 4096)};
    struct mr_source source = {.pid = (uint32_t)getpid()};
    struct mr_error error = MR_ERROR_NONE;

    memset(rig, 0, sizeof(*rig));
    assert_int_equal(mr_id_random(&source.id), MR_OK);
    (void)strcpy(source.host, "host");
    (void)strcpy(config.app, "app");
    config.attributes[0] = (struct mr_attribute){"key", "value"};
    config.attributes[1] = (struct mr_attribute){"empty", ""};
    config.attribute_count = 2;
    mr_clock_sample(config.clock, &source.first_sample);
    assert_int_equal(mr_recorder_open(&rig->recorder, &config, &source, "/bin/x", &error),
                     MR_OK);
    mr_pool_init(&rig->pool, RING_BYTES, config.memory_bytes);
    rig->pool.shared.policy = MR_POLICY_OVERWRITE;
    rig->pool.shared.epoch = &rig->recorder.header->epoch;
    rig->pool.recorder = &rig->recorder;
    mr_store_relaxed(&rig->pool.shared.pid, source.pid);
}

static void rig_begin(struct rig *rig)
{
    memset(&rig->thread, 0, sizeof(rig->thread));
    rig->ring = mr_pool_take(&rig->pool);
    assert_non_null(rig->ring);
    rig->ring->start_ticks = mr_clock_ticks();
    mr_store_relaxed(&rig->ring->name[0], 'n');
    mr_store_relaxed(&rig->ring->name[1], '\0');
    mr_ring_attach(&rig->thread, rig->ring);
    mr_pool_publish(rig->ring);
    rig->made = 0;
}

static void rig_close(struct rig *rig)
{
    mr_pool_fini(&rig->pool);
    mr_recorder_end(&rig->recorder);
    mr_recorder_abandon(&rig->recorder);
}

static void make(struct rig *rig, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, rig->made++)
        mr_ring_event(&rig->thread, mr_event_enter(SITE + (uint32_t)rig->made));
}

/* As an event that is interrupted between its two instructions, and never goes on. */
static uint64_t leave_hole(struct rig *rig)
{
    if (rig->thread.cursor >= rig->thread.limit)
        make(rig, 1);
    rig->made++;
    return mr_arch_reserve(&rig->thread.cursor);
}

static enum mr_status copy_of(struct rig *rig, struct mr_recorder_copy *copy)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_recorder_view view;

    assert_int_equal(
        mr_recorder_view_open(&view, rig->recorder.header, rig->recorder.size, &error),
        MR_OK);
    return mr_recorder_copy_ring(&view, 0, copy);
}

static void tell_record(struct told *told, const struct mr_record *record,
                        uint64_t *number)
{
    if (record->site >= MR_SITE_FIRST_NAMED) {
        assert_int_equal(record->site, SITE + *number);
        told->last = (*number)++;
        told->events++;
    } else if (record->kind == MR_RECORD_LOSS) {
        uint64_t events = record->payload[0] & UINT32_MAX;

        *number += events;
        if (record->payload[0] >> 48 == MR_LOSS_OVERWRITTEN)
            told->overwritten += events;
        else
            told->nested += events;
    } else if (record->kind == MR_RECORD_WIDE) {
        ++*number;
    } else if (record->kind == MR_RECORD_CUT) {
        told->cuts++;
    }
}

static struct told tell(struct mr_recorder_copy *copy)
{
    static uint8_t out[65536];
    static struct mr_record_reader reader;
    static struct mr_record record;
    struct told told = {0};
    uint64_t number = 0;
    size_t size;

    while ((size = mr_recorder_chunk(copy, out, sizeof(out))) > 0) {
        struct mr_span payload = mr_span_of(out, size);
        struct mr_chunk chunk;
        enum mr_status status;

        assert_int_equal(mr_chunk_next(&payload, &chunk), MR_OK);
        assert_int_equal(chunk.first_event, number);
        told.is_first |= (chunk.flags & MR_CHUNK_FIRST) != 0;
        told.is_last |= (chunk.flags & MR_CHUNK_LAST) != 0;
        told.is_source_end |= (chunk.flags & MR_CHUNK_SOURCE_END) != 0;
        mr_record_reader_init(&reader, &chunk);
        while ((status = mr_record_next(&reader, &record)) == MR_OK)
            tell_record(&told, &record, &number);
        assert_int_equal(status, MR_END);
        assert_int_equal(number, chunk.first_event + chunk.events);
    }
    return told;
}

static struct told read_now(struct rig *rig)
{
    struct mr_recorder_copy copy;
    struct told told;

    assert_int_equal(copy_of(rig, &copy), MR_OK);
    told = tell(&copy);
    mr_recorder_copy_fini(&copy);
    return told;
}

static void each_event_is_there_as_soon_as_it_was_made(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig);
    rig_begin(&rig);
    while (rig.made < 5 * RING_WORDS) {
        struct told told;

        make(&rig, 1);
        told = read_now(&rig);
        assert_true(told.events + told.overwritten == rig.made && told.nested == 0);
        assert_true(told.last == rig.made - 1);
        /* 7/8 of the ring, less sync records. */
        assert_true(told.overwritten == 0 || told.events >= RING_WORDS * 7 / 8 - 70);
        assert_true(told.is_first && !told.is_last && told.is_source_end);
        assert_int_equal(told.cuts, told.overwritten > 0);
    }
    rig_close(&rig);
}

static void a_word_that_is_never_written_is_one_lost_event_for_ever(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    struct rig rig;
    uint64_t holes = 0;

    (void)state;
    rig_open(&rig);
    rig_begin(&rig);
    make(&rig, 1);
    while (rig.made < 6 * RING_WORDS) {
        struct told told;

        if (mr_test_random_below(&random, 20) == 0) {
            (void)leave_hole(&rig);
            holes++;
        }
        make(&rig, 1);
        told = read_now(&rig);
        assert_true(told.events + told.overwritten + told.nested == rig.made);
        assert_true(told.last == rig.made - 1);
        assert_true(told.overwritten > 0 || told.nested == holes);
    }
    rig_close(&rig);
}

static void an_event_that_comes_late_stands_in_its_place(void **state)
{
    struct rig rig;
    struct told told;
    uint64_t index, number;

    (void)state;
    rig_open(&rig);
    rig_begin(&rig);
    make(&rig, 10);
    number = rig.made;
    index = leave_hole(&rig);
    make(&rig, RING_WORDS / 2);
    assert_int_equal(read_now(&rig).nested, 1);
    mr_ring_store(&rig.thread, index,
                  mr_event_enter(SITE + (uint32_t)number) | (uint32_t)mr_clock_ticks());
    told = read_now(&rig);
    assert_int_equal(told.nested, 0);
    assert_true(told.events == rig.made);
    rig_close(&rig);
}

/* A process that is killed inside put_record(): payload, and no first word. */
static void payload_without_its_first_word_is_no_event(void **state)
{
    struct rig rig;
    struct told told;
    uint64_t index;

    (void)state;
    rig_open(&rig);
    rig_begin(&rig);
    make(&rig, 100);
    index = rig.thread.cursor;
    mr_store_relaxed(&rig.ring->recorded->writing, index);
    mr_ring_store(&rig.thread, index + 1, mr_event_enter(SITE + 77));
    told = read_now(&rig);
    assert_true(told.events == 100 && told.nested == 0);
    mr_ring_store(&rig.thread, index, mr_word_record(MR_RECORD_WIDE, 1, 0, 0));
    assert_true(read_now(&rig).events == 100); /* whole, and no enter of a site */
    rig_close(&rig);
}

static void a_ring_tells_of_the_threads_before(void **state)
{
    struct mr_recorder_copy copy;
    struct rig rig;

    (void)state;
    rig_open(&rig);
    for (int i = 0; i < 60; i++) { /* more than there are rings */
        rig_begin(&rig);
        make(&rig, 10);
        mr_ring_detach(&rig.thread);
    }
    assert_int_equal(copy_of(&rig, &copy), MR_OK);
    assert_true(copy.streams_before > 0 &&
                copy.events_before == 10 * copy.streams_before);
    assert_true(copy.is_ended && copy.end_event == 10 && copy.overwritten == 0);
    assert_string_equal(copy.name, "n");
    assert_true(tell(&copy).is_last);
    mr_recorder_copy_fini(&copy);
    rig_close(&rig);
}

static void a_switch_is_told_at_its_time(void **state)
{
    struct rig rig;
    struct told told;

    (void)state;
    rig_open(&rig);
    mr_cuts_add(&rig.recorder.header->cuts, mr_clock_ticks()); /* before the stream */
    rig_begin(&rig);
    make(&rig, 50);
    mr_cuts_add(&rig.recorder.header->cuts, mr_clock_ticks());
    told = read_now(&rig);
    assert_int_equal(told.cuts, 0); /* nothing came after it */
    make(&rig, 50);
    told = read_now(&rig);
    assert_true(told.cuts == 1 && told.events == 100);
    rig_close(&rig);
}

static void it_says_whose_it_is(void **state)
{
    static struct mr_recorder_texts texts;
    struct mr_error error = MR_ERROR_NONE;
    struct mr_recorder_view view;
    struct mr_source_info info;
    struct mr_clock_info clock;
    struct rig rig;

    (void)state;
    rig_open(&rig);
    assert_int_equal(
        mr_recorder_view_open(&view, rig.recorder.header, rig.recorder.size, &error),
        MR_OK);
    mr_recorder_view_source(&view, &texts, &info);
    assert_string_equal(info.app, "app");
    assert_string_equal(info.host, "host");
    assert_string_equal(info.exe, "/bin/x");
    assert_int_equal(info.pid, getpid());
    assert_int_equal(info.attribute_count, 2);
    assert_string_equal(info.attributes[0].value, "value");
    assert_string_equal(info.attributes[1].key, "empty");
    mr_recorder_view_clock(&view, &clock); /* no second sample yet */
    assert_true(clock.mult > 0);
    rig_close(&rig);
}

/* Whatever stands in the file: refused, or read without harm. */
static void random_bytes_do_no_harm(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    struct rig rig;
    uint8_t *bytes, *whole;
    size_t from, to;

    (void)state;
    rig_open(&rig);
    rig_begin(&rig);
    make(&rig, 3 * RING_WORDS);
    from = rig.recorder.header->rings_offset;
    to = from + 2 * sizeof(struct mr_recorder_ring);
    whole = malloc(rig.recorder.size);
    bytes = (uint8_t *)rig.recorder.header;
    assert_non_null(whole);
    memcpy(whole, bytes, rig.recorder.size);
    for (int turn = 0; turn < 3000; turn++) {
        struct mr_recorder_view view;
        struct mr_recorder_copy copy;
        size_t begin = turn % 2 ? from : 0;
        size_t size = turn % 2 ? to - from : sizeof(struct mr_recorder_header);

        for (uint64_t i = mr_test_random_below(&random, 8); i-- > 0;)
            whole[begin + mr_test_random_below(&random, size)] ^=
                (uint8_t)(1u << mr_test_random_below(&random, 8));
        if (mr_recorder_view_open(&view, whole, rig.recorder.size, NULL) == MR_OK &&
            mr_recorder_copy_ring(&view, 0, &copy) == MR_OK) {
            uint8_t out[MR_RECORDER_CHUNK_MIN];

            for (int i = 0; i < 5000 && mr_recorder_chunk(&copy, out, sizeof(out)); i++)
                ;
            mr_recorder_copy_fini(&copy);
        }
        memcpy(whole + begin, bytes + begin, size);
    }
    assert_int_not_equal(mr_recorder_copy_ring(&(struct mr_recorder_view){.base = whole},
                                               0, &(struct mr_recorder_copy){0}),
                         MR_OK);
    free(whole);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_event_is_there_as_soon_as_it_was_made),
        cmocka_unit_test(a_word_that_is_never_written_is_one_lost_event_for_ever),
        cmocka_unit_test(an_event_that_comes_late_stands_in_its_place),
        cmocka_unit_test(payload_without_its_first_word_is_no_event),
        cmocka_unit_test(a_ring_tells_of_the_threads_before),
        cmocka_unit_test(a_switch_is_told_at_its_time),
        cmocka_unit_test(it_says_whose_it_is),
        cmocka_unit_test(random_bytes_do_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
