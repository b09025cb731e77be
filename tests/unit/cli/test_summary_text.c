/* SPDX-License-Identifier: Apache-2.0 */
/* cli/summary_text.h: a summary made by hand, as text and as JSON. */
#include "cli/summary_text.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#include <jansson.h>
#include <string.h>

static const struct mr_view all_rows = {.functions = 100, .entries = 100};

static struct mr_summary_function functions[] = {
    {.site = {0, 1},
     .name = "serve",
     .module = "server",
     .build = "0123456789abcdef",
     .file = "/src/server/serve.c",
     .line = 42,
     .calls = 1000,
     .ok = 990,
     .failed = 10,
     .is_timed = true,
     .self_ns = 750000,
     .total_ns = 1000000},
    {.site = {0, 2},
     .name = "leaf",
     .module = "server",
     .build = "0123456789abcdef",
     .file = "",
     .calls = 2000,
     .ok = 2000,
     .is_timed = true,
     .self_ns = 250000,
     .total_ns = 250000},
    {.site = {0, 3},
     .name = "main",
     .module = "server",
     .build = "0123456789abcdef",
     .file = "",
     .calls = 1,
     .incomplete = 1,
     .is_outer = true},
};

static struct mr_summary_entry entries[] = {
    {.name = "serve",
     .app = "server",
     .version = "",
     .host = "",
     .count = 1000,
     .ok = 990,
     .failed = 10,
     .is_timed = true,
     .p50 = {1000, 990, 1010},
     .p90 = {2000, 1980, 2020},
     .p99 = {3000, 2970, 3030},
     .time_ns = 1000000,
     .max_ns = 5000,
     .shapes = 3,
     .paths = 2},
};

/* Wherever the last order has put it. */
static struct mr_summary_function *leaf(void)
{
    size_t at = 0;

    while (functions[at].site.lo != 2)
        at++;
    return &functions[at];
}

static struct mr_summary summary_of_all(void)
{
    return (struct mr_summary){
        .functions = functions,
        .function_count = MR_ARRAY_COUNT(functions),
        .function_total = MR_ARRAY_COUNT(functions),
        .entries = entries,
        .entry_count = 1,
        .entry_total = 1,
        .coverage = {.time_ns = {900000, 99900, 100, 0}},
        .shares = {.of = {[MR_SHARE_RECURRING] = {990, 2900, 900000},
                          [MR_SHARE_ONCE] = {9, 99, 99900},
                          [MR_SHARE_PATHS] = {1, 1, 100}},
                   .all = {1000, 3000, 1000000},
                   .path_ns = 999000},
        .ledger = {.streams = 2,
                   .streams_balanced = 2,
                   .last = 6002,
                   .reduced = 6002,
                   .is_balanced = true},
        .calls = 3001,
        .incomplete_calls = 1,
        .self_ns = 1000000,
        .traces = 1000,
        .paths = 3,
        .shapes = 3};
}

static const char *text_of(struct mr_summary *summary, const struct mr_run *run,
                           const struct mr_view *view)
{
    static struct mr_buffer out;

    mr_buffer_fini(&out);
    mr_buffer_init(&out, 1 << 20);
    assert_int_equal(mr_summary_text(summary, run, view, &out), MR_OK);
    assert_int_equal(mr_buffer_append_byte(&out, 0), MR_OK);
    return (const char *)out.data;
}

static void the_text_is_laid_out_as_here(void **state)
{
    struct mr_summary summary = summary_of_all();
    char command[] = "./server --quick";
    struct mr_run run = {
        .command = command, .wall_ns = 2000000, .plain_ns = 1000000, .exit_status = 3};

    MR_UNUSED(state);
    assert_string_equal(
        text_of(&summary, &run, &all_rows),
        "./server --quick\n"
        "ran for 2.00 ms, exit status 3\n"
        "untraced it ran for 1.00 ms: 2.00 times slower (its hooks cost something in "
        "that "
        "run, too)\n"
        "\n"
        "Functions by self time\n"
        "  self   share    total  calls  self/call  function      where\n"
        "750 µs  75.0 %  1.00 ms  1,000     750 ns  serve         serve.c:42\n"
        "250 µs  25.0 %   250 µs  2,000     125 ns  leaf          server\n"
        "     -   0.0 %        -      1          -  main (outer)  server\n"
        "\n"
        "Entry points\n"
        "count             p50             p99      max    total  failed  shapes  paths  "
        "entry point  application\n"
        "1,000  1.00 µs ±1.0 %  3.00 µs ±1.0 %  5.00 µs  1.00 ms      10       3      2  "
        "serve        server\n"
        "\n"
        "Traces    1,000; of their time 90.0 % in whole shapes, 10.0 % in folded shapes, "
        "< 0.1 % in paths only, 0.0 % incomplete\n"
        "Shares    of calls 96.7 % in shapes that recur, 3.3 % in shapes seen once, "
        "< 0.1 % in paths only\n"
        "          of time 90.0 % in shapes that recur, 10.0 % in shapes seen once, "
        "< 0.1 % in paths only; on a path 99.9 %\n"
        "Calls     1 without an end: counted, not timed\n"
        "Lost      none of 6,002 events\n"
        "Ledger    balanced: 6,002 events = 6,002 reduced + 0 held + 0 lost; 2 of 2 "
        "streams "
        "balanced\n");
}

static void entry_points_of_one_name_are_told_apart_by_version_and_host(void **state)
{
    struct mr_summary_entry rows[] = {entries[0], entries[0], entries[0]};
    struct mr_summary summary = summary_of_all();
    const char *text;

    MR_UNUSED(state);
    rows[0].host = rows[1].host = "alpha";
    rows[2].host = "beta";
    rows[1].version = rows[2].version = "2.1";
    summary.entries = rows;
    summary.entry_count = summary.entry_total = MR_ARRAY_COUNT(rows);
    text = text_of(&summary, NULL, &all_rows);
    assert_non_null(strstr(text, "entry point  application  version  host\n"));
    assert_non_null(strstr(text, "serve        server                alpha\n"));
    assert_non_null(strstr(text, "serve        server       2.1      alpha\n"));
    assert_non_null(strstr(text, "serve        server       2.1      beta\n"));
}

static void loss_and_imbalance_are_never_hidden(void **state)
{
    struct mr_summary summary = summary_of_all();
    const char *text;

    MR_UNUSED(state);
    summary.ledger.lost_all = 102;
    summary.ledger.lost[MR_LOSS_RING_FULL] = 100;
    summary.ledger.lost[MR_LOSS_EXIT] = 2;
    summary.ledger.is_balanced = false;
    summary.ledger.streams_balanced = 1;
    summary.ledger.held = -7;
    summary.open = 3;
    summary.refused = 5;
    summary.ledger.sources = 3;
    summary.ledger.sources_died = 1;
    summary.past_limit.calls = 9472;
    summary.past_limit.traces = 815;
    summary.past_limit.events = 9620;
    summary.past_limit.source_events = 1200;
    summary.past_limit.notes = 3;
    summary.past_limit.rows_too_large = 1982;
    summary.past_limit.frames_too_large = 1;
    text = text_of(&summary, NULL, &(struct mr_view){0});
    assert_non_null(
        strstr(text, "Lost      102 of 6,002 events (1.7 %): ring-full 100, exit 2\n"));
    assert_non_null(strstr(text,
                           "NOT BALANCED: 6,002 events = 6,002 reduced + -7 held + 102 "
                           "lost; 1 of 2 streams balanced\n"));
    assert_non_null(strstr(text, "Died      1 of 3 sources left without a goodbye "));
    assert_non_null(strstr(text, "Open      3 traces have not ended\n"));
    assert_non_null(strstr(text, "Refused   5 items past a limit of the model\n"));
    assert_non_null(strstr(text,
                           "Not kept  9,472 calls and 815 traces more: of paths past "
                           "the master's --max-paths, --max-sites or --max-scopes\n"));
    assert_non_null(strstr(text, "Not kept  rows of streams past the master's "
                                 "--max-streams: their 9,620 events are in the sums "
                                 "alone\n"));
    assert_non_null(strstr(
        text, "Not kept  1,200 events of sources past the master's --max-sources\n"));
    assert_non_null(
        strstr(text, "Not kept  notes past the master's --max-notes (3 came)"));
    assert_non_null(strstr(text, "Not kept  1,982 rows and 1 frames of deltas, larger "
                                 "than the --max-frame of the next level"));
}

static void a_cut_table_says_of_how_many(void **state)
{
    struct mr_summary summary = summary_of_all();
    const struct mr_view view = {.functions = 1, .entries = 0, .sort = MR_SORT_CALLS};
    const char *text;

    MR_UNUSED(state);
    text = text_of(&summary, NULL, &view);
    assert_non_null(strstr(text, "Functions by calls (1 of 3)\n"));
    assert_non_null(strstr(text, "leaf"));
    assert_null(strstr(text, "serve.c"));
    assert_null(strstr(text, "Entry points"));
}

static void nothing_recorded_is_said(void **state)
{
    struct mr_summary summary = {.ledger = {.is_balanced = true}};

    MR_UNUSED(state);
    assert_non_null(
        strstr(text_of(&summary, NULL, &all_rows), "No call was recorded.\n"));
}

static void each_order_is_total(void **state)
{
    static const char *const first[] = {"serve", "serve", "leaf", "leaf"};
    struct mr_summary summary = summary_of_all();

    MR_UNUSED(state);
    for (unsigned sort = MR_SORT_SELF; sort <= MR_SORT_NAME; sort++) {
        mr_summary_sort(&summary, (enum mr_view_sort)sort);
        assert_string_equal(summary.functions[0].name, first[sort]);
    }
}

static void json_holds_the_same_numbers(void **state)
{
    struct mr_summary summary = summary_of_all();
    struct mr_buffer out;
    json_t *root;
    const char *name, *other;
    json_int_t calls, last;
    double p50_low;
    int balanced;

    MR_UNUSED(state);
    leaf()->name = "\xc3\xa9(\xff)"; /* not UTF-8: must not spoil the rest */
    mr_buffer_init(&out, 1 << 20);
    assert_int_equal(mr_summary_json(&summary, NULL, &all_rows, &out), MR_OK);
    root = json_loadb((const char *)out.data, out.size, 0, NULL);
    assert_non_null(root);
    assert_int_equal(json_unpack(root,
                                 "{s:[{s:s, s:I}, {s:s}], s:[{s:{s:f}}], s:{s:I, s:b}}",
                                 "functions", "name", &name, "calls", &calls, "name",
                                 &other, "entries", "p50", "low_ns", &p50_low, "ledger",
                                 "last", &last, "balanced", &balanced),
                     0);
    assert_string_equal(name, "serve");
    assert_string_equal(other, "\xc3\xa9(?)");
    assert_int_equal(calls, 1000);
    assert_true(p50_low > 989.5 && p50_low < 990.5);
    assert_int_equal(last, 6002);
    assert_true(balanced);
    assert_null(json_object_get(root, "run"));
    json_decref(root);
    mr_buffer_fini(&out);
    leaf()->name = "leaf";
}

static const char *text_into(struct mr_summary *summary, struct mr_buffer *out)
{
    mr_buffer_init(out, 1 << 16);
    assert_int_equal(mr_summary_text(summary, NULL, &all_rows, out), MR_OK);
    assert_int_equal(mr_buffer_append_byte(out, 0), MR_OK);
    return (const char *)out->data;
}

static void what_hangs_is_told_with_its_stack(void **state)
{
    static const char *stack[] = {"serve", "walk", "walk", "walk", "\x1bread"};
    static const char *deep[] = {"a", "b", "c", "d", "e", "f", "g",
                                 "h", "i", "j", "k", "l", "m"};
    struct mr_summary_open opens[6];
    struct mr_summary summary = summary_of_all();
    struct mr_buffer out;
    json_t *rows;

    MR_UNUSED(state);
    for (size_t i = 0; i < MR_ARRAY_COUNT(opens); i++)
        opens[i] = (struct mr_summary_open){.name = "serve",
                                            .app = "server",
                                            .version = "",
                                            .host = "",
                                            .count = i + 1,
                                            .stack = deep,
                                            .stack_count = 13,
                                            .oldest_for_ns = 2000000000,
                                            .in_call_for_ns = 1000000};
    opens[0].stack = stack;
    opens[0].stack_count = 5;
    opens[0].version = "2";
    opens[0].host = "alpha";
    opens[1].stack_elided = 47;
    opens[2].stack_count = 0;
    summary.open = 21;
    summary.opens = opens;
    summary.open_count = MR_ARRAY_COUNT(opens);
    assert_non_null(strstr(text_of(&summary, NULL, &all_rows),
                           "\nOpen      21 traces have not ended\n"
                           "          1 of serve in server 2 on alpha, the oldest for "
                           "2.00 s, for 1.00 ms in "
                           "?read: serve > walk x 3 > ?read\n"
                           "          2 of serve in server, the oldest for 2.00 s, for "
                           "1.00 ms in m: 48 more "
                           "> b > c > d > e > f > g > h > i > j > k > l > m\n"
                           "          3 of serve in server, the oldest for 2.00 s\n"
                           "          4 of serve in server, the oldest for 2.00 s, for "
                           "1.00 ms in m: 1 more > "
                           "b > c > d > e > f > g > h > i > j > k > l > m\n"));
    assert_non_null(
        strstr(text_of(&summary, NULL, &all_rows),
               "          and of 1 entry points more: --json tells of each\n"));
    mr_buffer_init(&out, 1 << 20);
    assert_int_equal(mr_summary_json(&summary, NULL, &all_rows, &out), MR_OK);
    rows = json_loadb((const char *)out.data, out.size, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(rows, "open_traces")), 6);
    json_decref(rows);
    mr_buffer_fini(&out);
    summary.open = 1;
    summary.open_count = 0;
    assert_non_null(strstr(text_of(&summary, NULL, &all_rows),
                           "\nOpen      1 trace has not ended\n"));
}

static void names_cannot_forge_lines_nor_drive_the_terminal(void **state)
{
    char name[] = "esc\x1b[31m\nLedger    balanced", command[] = "./a '\nb'";
    struct mr_run run = {.command = command, .wall_ns = 1};
    struct mr_summary summary = summary_of_all();
    struct mr_buffer out;
    const char *text, *at;

    MR_UNUSED(state);
    leaf()->name = entries[0].name = entries[0].app = name;
    summary.kept = (struct mr_summary_kept){
        .shapes = 1, .name = name, .inner_count = 1, .inner = {{.name = name}}};
    mr_buffer_init(&out, 1 << 16);
    assert_int_equal(mr_summary_text(&summary, &run, &all_rows, &out), MR_OK);
    assert_int_equal(mr_buffer_append_byte(&out, 0), MR_OK);
    text = (const char *)out.data;
    assert_null(strchr(text, '\x1b'));
    assert_ptr_equal(strstr(text, "./a '?b'\n"), text);
    assert_non_null(strstr(text, "Slowest   esc?[31m?Ledger    balanced, "));
    at = strstr(text, "\nLedger    ");
    assert_non_null(at);
    assert_null(strstr(at + 1, "\nLedger    ")); /* the one line that is its own */
    mr_buffer_fini(&out);
    leaf()->name = "leaf";
    entries[0].name = "serve";
    entries[0].app = "server";
}

static void of_functions_that_look_the_same_the_build_is_told(void **state)
{
    struct mr_summary_function rows[] = {
        {.name = "f",
         .module = "m",
         .build = "0123456789",
         .file = "/s/f.c",
         .line = 7,
         .calls = 1,
         .has_twin = true},
        {.name = "f",
         .module = "m",
         .build = "",
         .file = "/s/f.c",
         .line = 7,
         .calls = 1,
         .has_twin = true},
        {.name = "g",
         .module = "m",
         .build = "fedcba9876",
         .file = "",
         .calls = 1,
         .has_twin = true},
        {.name = "h", .module = "m", .build = "fedcba9876", .file = "", .calls = 1}};
    struct mr_summary summary = {
        .functions = rows, .function_count = 4, .function_total = 4, .calls = 4};
    struct mr_buffer out;
    const char *text;

    (void)state;
    text = text_into(&summary, &out);
    assert_non_null(strstr(text, " f         f.c:7 (build 01234567)\n"));
    assert_non_null(strstr(text, " f         f.c:7 (build none)\n"));
    assert_non_null(strstr(text, " g         m (build fedcba98)\n"));
    assert_non_null(strstr(text, " h         m\n"));
    mr_buffer_fini(&out);
}

static void what_a_tick_hides_is_a_bound_and_not_0(void **state)
{
    struct mr_summary_function rows[] = {{.name = "f",
                                          .module = "",
                                          .build = "",
                                          .file = "",
                                          .calls = 3,
                                          .ok = 3,
                                          .is_timed = true},
                                         {.name = "g",
                                          .module = "",
                                          .build = "",
                                          .file = "",
                                          .calls = 4,
                                          .ok = 4,
                                          .is_timed = true,
                                          .self_ns = 40,
                                          .total_ns = 40}};
    struct mr_summary_entry entry = {
        .name = "f", .app = "", .count = 3, .ok = 3, .is_timed = true, .max_ns = 999};
    struct mr_summary_source source = {.app = "app", .pid = 7};
    struct mr_summary summary = {.functions = rows,
                                 .function_count = 2,
                                 .function_total = 2,
                                 .entries = &entry,
                                 .entry_count = 1,
                                 .entry_total = 1,
                                 .sources = &source,
                                 .source_count = 1,
                                 .tick_ns = 1000};
    struct mr_buffer out;
    const char *text;

    (void)state;
    source.clock.notes[MR_NOTE_TICK_NS] = "1000";
    source.clock.notes[MR_NOTE_TICK_GAP_P99_NS] = "1200";
    source.clock.notes[MR_NOTE_TICK_GAP_MAX_NS] = "34000";
    source.clock.notes[MR_NOTE_TICKER_CPU_NS] = "5000000";
    text = text_into(&summary, &out);
    assert_null(strstr(text, " 0 ns"));
    assert_non_null(strstr(text, "<= 3.00 \302\265s")); /* the sum of f: three ticks */
    assert_non_null(strstr(text, "<= 1.00 \302\265s")); /* a call of f, and the longest */
    assert_non_null(strstr(text, "10 ns"));             /* the mean of g */
    assert_non_null(strstr(text, "Clock     app[7]: hybrid, ticks of 1.00 \302\265s"));
    assert_non_null(strstr(text, "longest gap was 34.0 \302\265s"));
    mr_buffer_fini(&out);
}

static void a_clock_that_is_not_the_one_asked_for_is_told(void **state)
{
    struct mr_summary_source sources[7] = {{.app = "a", .pid = 1},
                                           {.app = "b", .pid = 2}};
    struct mr_summary summary = {.sources = sources, .source_count = 7};
    struct mr_buffer out;
    const char *text;

    (void)state;
    sources[0].clock.notes[MR_NOTE_CLOCK_WARNING] = "no counter";
    sources[1].clock.notes[MR_NOTE_TIMES_CLAMPED] = "12";
    sources[1].clock.notes[MR_NOTE_DRIFT_NS] = "-2500000";
    text = text_into(&summary, &out);
    assert_non_null(strstr(text, "Clock     a[1]: no counter\n"));
    assert_non_null(strstr(text, "Clock     b[2]: 12 times ran back"));
    assert_non_null(strstr(text, "moved 2.50 ms back"));
    assert_null(strstr(text, "more sources"));
    mr_buffer_fini(&out);
    for (int i = 0; i < 7; i++)
        sources[i].clock.notes[MR_NOTE_TIMES_CLAMPED] = "1";
    text = text_into(&summary, &out);
    assert_non_null(strstr(text, "and 2 more sources"));
    mr_buffer_fini(&out);
}

static void short_calls_are_named_when_they_are_most(void **state)
{
    static const char *const names[] = {
        "p0", "p1", "p2",  "p3", "p4", "ns::f(int, int)", "p6", "/lib/stripped.so+0x10",
        "p8", "p9", "p10", "p11"};
    struct mr_summary_function rows[12];
    struct mr_summary summary = {.functions = rows,
                                 .function_count = 12,
                                 .function_total = 12,
                                 .cheap_ns = 20,
                                 .least_ns = 9};
    struct mr_buffer out;
    const char *text;

    (void)state;
    memset(rows, 0, sizeof(rows));
    for (uint32_t i = 0; i < 12; i++) {
        rows[i] = (struct mr_summary_function){
            .name = names[i], .is_named = i != 7, .module = "", .build = "", .file = ""};
        rows[i].calls = 100;
        rows[i].cheap_calls = i == 5 ? 90 : i;
        summary.calls += rows[i].calls;
        summary.cheap_calls += rows[i].cheap_calls;
    }
    text = text_into(&summary, &out);
    assert_null(strstr(text, "Short calls")); /* not over half */
    mr_buffer_fini(&out);
    summary.cheap_calls = 700;
    text = text_into(&summary, &out);
    assert_non_null(strstr(text, "Short calls: 58.3 % of all have bodies under 20 ns"));
    assert_non_null(strstr(text, "less the 9 ns"));
    assert_non_null(strstr(text, "MILLRACE_EXCEPT='ns::f*,p11,p10,p9,p8,p6,p4,"
                                 "p3,p2'")); /* ten, the most first; one has no name */
    mr_buffer_fini(&out);
    for (uint32_t i = 0; i < 12; i++)
        rows[i].is_named = false;
    text = text_into(&summary, &out);
    assert_null(strstr(text, "MILLRACE_EXCEPT"));
    assert_non_null(strstr(text, "no symbols of them.\nCount them only: MILLRACE_PRUNE"));
    mr_buffer_fini(&out);
    summary.tick_ns = 1000; /* nobody can say */
    text = text_into(&summary, &out);
    assert_null(strstr(text, "Short calls"));
    mr_buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_hangs_is_told_with_its_stack),
        cmocka_unit_test(names_cannot_forge_lines_nor_drive_the_terminal),
        cmocka_unit_test(of_functions_that_look_the_same_the_build_is_told),
        cmocka_unit_test(what_a_tick_hides_is_a_bound_and_not_0),
        cmocka_unit_test(a_clock_that_is_not_the_one_asked_for_is_told),
        cmocka_unit_test(short_calls_are_named_when_they_are_most),
        cmocka_unit_test(the_text_is_laid_out_as_here),
        cmocka_unit_test(entry_points_of_one_name_are_told_apart_by_version_and_host),
        cmocka_unit_test(loss_and_imbalance_are_never_hidden),
        cmocka_unit_test(a_cut_table_says_of_how_many),
        cmocka_unit_test(nothing_recorded_is_said),
        cmocka_unit_test(each_order_is_total),
        cmocka_unit_test(json_holds_the_same_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
