/* SPDX-License-Identifier: Apache-2.0 */
/* The program whose functions are looked up is this test itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "net/control.h"
#include "pipeline/filters/names.h"
#include "pipeline/graph.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What came out, one line per item. */
struct seen {
    char text[4096];
    uint32_t deltas, bad;
};

static void see_dict(struct seen *seen, struct mr_span payload)
{
    struct mr_dict_reader reader;
    struct mr_dict_item item;

    if (mr_dict_open(&reader, payload, NULL) != MR_OK) {
        seen->bad++;
        return;
    }
    while (mr_dict_next(&reader, &item, NULL) == MR_OK) {
        size_t used = strlen(seen->text);

        assert_int_equal(item.kind, MR_DICT_SITE);
        (void)snprintf(seen->text + used, sizeof(seen->text) - used, "%d:%s:%d\n",
                       (int)item.site.id.lo, item.site.name,
                       item.site.quality != MR_QUALITY_OFFSET);
    }
    mr_dict_close(&reader);
}

static enum mr_status sink_open(struct mr_filter *filter, const void *config,
                                struct mr_error *error)
{
    (void)error;
    *(struct seen **)mr_filter_state(filter) = *(struct seen *const *)config;
    return MR_OK;
}

static enum mr_status sink_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct seen *seen = *(struct seen **)mr_filter_state(filter);

    if (batch->kind == MR_BATCH_DICT)
        see_dict(seen, mr_buffer_span(&batch->bytes));
    else
        seen->deltas++;
    mr_batch_free(batch);
    return MR_OK;
}

static const struct mr_filter_kind sink_kind = {.name = "sink",
                                                .state_size = sizeof(struct seen *),
                                                .open = sink_open,
                                                .process = sink_process};

struct self {
    char path[4096];
    uint8_t build_id[MR_BUILD_ID_MAX];
    size_t build_id_size;
    uint64_t bias;
};

static int read_notes(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct self *self = argument;

    (void)size;
    self->bias = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t at = (uintptr_t)info->dlpi_addr + segment->p_vaddr,
                  end = at + segment->p_memsz;

        while (segment->p_type == PT_NOTE && at < end) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;

            at += sizeof(*note) + ((note->n_namesz + 3u) & ~3u);
            if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz <= MR_BUILD_ID_MAX) {
                self->build_id_size = note->n_descsz;
                memcpy(self->build_id, (const void *)at, note->n_descsz);
            }
            at += (note->n_descsz + 3u) & ~3u;
        }
    }
    return 1; /* the program alone */
}

static struct self know_self(void)
{
    struct self self = {.build_id_size = 0};
    ssize_t size = readlink("/proc/self/exe", self.path, sizeof(self.path) - 1);

    assert_true(size > 0);
    (void)dl_iterate_phdr(read_notes, &self);
    return self;
}

struct rig {
    struct seen seen, *seen_pointer;
    struct mr_graph *graph;
    struct self self;
};

static void start(struct rig *rig, const struct mr_names_config *config,
                  enum mr_place place)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_graph_node nodes[] = {{&mr_names_filter, config, MR_PLACE_FUSED},
                                    {&sink_kind, NULL, place}};

    memset(rig, 0, sizeof(*rig));
    rig->seen_pointer = &rig->seen;
    nodes[1].config = &rig->seen_pointer;
    rig->self = know_self();
    assert_int_equal(mr_graph_new(nodes, 2, "names", &rig->graph, &error), MR_OK);
    assert_int_equal(mr_graph_start(rig->graph), MR_OK);
}

static uint64_t counter(const struct rig *rig, enum mr_names_counter which)
{
    struct mr_filter_stats stats[2];

    (void)mr_graph_stats(rig->graph, stats, 2);
    assert_non_null(stats[0].counter_names[which]);
    return stats[0].counters[which];
}

static void push_site(struct rig *rig, const struct mr_dict_site *site)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_DICT);
    const struct mr_dict_item item = {.kind = MR_DICT_SITE, .site = *site};
    struct mr_dict_writer writer;
    uint8_t *at;

    assert_int_equal(mr_buffer_reserve(&batch->bytes, 8000, &at), MR_OK);
    mr_dict_writer_init(&writer, at, 8000);
    assert_int_equal(mr_dict_put(&writer, &item), MR_OK);
    mr_buffer_commit(&batch->bytes, mr_dict_writer_finish(&writer));
    assert_int_equal(mr_graph_push(rig->graph, batch), MR_OK);
}

static void push_own_function(struct rig *rig, uint64_t number, void *function)
{
    const struct mr_dict_site site = {
        .id = {0, number},
        .module = rig->self.path,
        .build_id = mr_span_of(rig->self.build_id, rig->self.build_id_size),
        .offset = (uint64_t)(uintptr_t)function - rig->self.bias,
        .name = "",
        .file = ""};

    push_site(rig, &site);
}

int mr_test_names_one(int n);
int mr_test_names_two(int n);
int mr_test_names_one(int n)
{
    return n + 1;
}
int mr_test_names_two(int n)
{
    return n * 3;
}

static void functions_get_their_names_after_they_passed(void **state)
{
    static const enum mr_place places[] = {MR_PLACE_FUSED, MR_PLACE_THREAD};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rig rig;

        start(&rig, NULL, places[i]);
        push_own_function(&rig, 1, (void *)(uintptr_t)mr_test_names_one);
        push_own_function(&rig, 2, (void *)(uintptr_t)mr_test_names_two);
        assert_int_equal(mr_graph_drain(rig.graph), MR_OK);
        assert_string_equal(rig.seen.text,
                            "1::0\n2::0\n1:mr_test_names_one:1\n2:mr_test_names_two:1\n");
        assert_int_equal(counter(&rig, MR_NAMES_FOUND), 2);
        assert_int_equal(counter(&rig, MR_NAMES_LEFT), 0);
        mr_graph_free(rig.graph);
    }
}

static void names_come_with_a_tick_too(void **state)
{
    struct rig rig;

    (void)state;
    start(&rig, NULL, MR_PLACE_FUSED);
    push_own_function(&rig, 1, (void *)(uintptr_t)mr_test_names_one);
    while (!strstr(rig.seen.text, "mr_test_names_one")) /* or the test times out */
        assert_int_equal(mr_graph_tick(rig.graph, mr_clock_monotonic_ns()), MR_OK);
    mr_graph_free(rig.graph);
}

static void what_has_a_name_or_is_no_function_is_not_looked_up(void **state)
{
    struct rig rig;
    struct mr_dict_site named, span;

    (void)state;
    start(&rig, NULL, MR_PLACE_FUSED);
    named = (struct mr_dict_site){.id = {0, 1},
                                  .module = rig.self.path,
                                  .name = "known",
                                  .file = "",
                                  .quality = MR_QUALITY_SYMBOL};
    span = (struct mr_dict_site){
        .id = {0, 2}, .type = MR_SITE_SPAN, .module = "shop", .name = "buy", .file = ""};
    push_site(&rig, &named);
    push_site(&rig, &span);
    assert_int_equal(mr_graph_drain(rig.graph), MR_OK);
    assert_string_equal(rig.seen.text, "1:known:1\n2:buy:0\n");
    assert_int_equal(counter(&rig, MR_NAMES_UNKNOWN), 0);
    mr_graph_free(rig.graph);
}

static void functions_of_unreadable_modules_keep_module_and_offset(void **state)
{
    struct rig rig;
    const struct mr_dict_site nowhere = {.id = {0, 1},
                                         .module = "/nowhere/program",
                                         .build_id = {(const uint8_t *)"12345678", 8},
                                         .name = "",
                                         .file = ""};
    const struct mr_dict_site relative = {
        .id = {0, 2}, .module = "test_names", .name = "", .file = ""};

    (void)state;
    start(&rig, NULL, MR_PLACE_FUSED);
    push_site(&rig, &nowhere);
    push_site(&rig, &relative);
    assert_int_equal(mr_graph_drain(rig.graph), MR_OK);
    assert_string_equal(rig.seen.text, "1::0\n2::0\n");
    assert_int_equal(counter(&rig, MR_NAMES_UNKNOWN), 2);
    assert_int_equal(counter(&rig, MR_NAMES_NO_FILE), 2);
    mr_graph_free(rig.graph);
}

static void other_batches_and_bad_ones_pass(void **state)
{
    struct rig rig;
    struct mr_batch *bad = mr_batch_new(MR_BATCH_DICT);

    (void)state;
    start(&rig, NULL, MR_PLACE_FUSED);
    assert_int_equal(mr_graph_push(rig.graph, mr_batch_new(MR_BATCH_DELTA)), MR_OK);
    assert_int_equal(mr_buffer_append_text(&bad->bytes, "bad"), MR_OK);
    assert_int_equal(mr_graph_push(rig.graph, bad), MR_OK);
    assert_int_equal(rig.seen.deltas, 1);
    assert_int_equal(rig.seen.bad, 1);
    assert_int_equal(counter(&rig, MR_NAMES_BAD_DICT), 1);
    mr_graph_free(rig.graph);
}

static void a_full_queue_is_counted(void **state)
{
    const struct mr_names_config config = {.queue_max = 1};
    struct rig rig;

    (void)state;
    start(&rig, &config, MR_PLACE_FUSED);
    for (uint64_t i = 0; i < 200; i++)
        push_own_function(&rig, i, (void *)(uintptr_t)mr_test_names_one);
    assert_int_equal(mr_graph_drain(rig.graph), MR_OK);
    assert_int_equal(counter(&rig, MR_NAMES_FOUND),
                     1); /* done ones hold their place until a tick */
    assert_int_equal(counter(&rig, MR_NAMES_QUEUE_FULL), 199);
    mr_graph_free(rig.graph);
}

static void freed_in_the_middle_it_ends(void **state)
{
    struct rig rig;

    (void)state;
    start(&rig, NULL, MR_PLACE_FUSED);
    for (uint64_t i = 0; i < 200; i++)
        push_own_function(&rig, i, (void *)(uintptr_t)mr_test_names_one);
    mr_graph_free(rig.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_get_their_names_after_they_passed),
        cmocka_unit_test(names_come_with_a_tick_too),
        cmocka_unit_test(what_has_a_name_or_is_no_function_is_not_looked_up),
        cmocka_unit_test(functions_of_unreadable_modules_keep_module_and_offset),
        cmocka_unit_test(other_batches_and_bad_ones_pass),
        cmocka_unit_test(a_full_queue_is_counted),
        cmocka_unit_test(freed_in_the_middle_it_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
