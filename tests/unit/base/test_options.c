/* SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include "tests/unit/base/sample.h"
#include "tests/unit/unit_test.h"

#include <string.h>

enum { ARGUMENTS_MAX = 16 };

/* One parse and all that comes of it. */
struct outcome {
    enum mr_status status;
    struct sample_options options;
    struct mr_error error;
    enum mr_options_action action;
    int first;
    int argc;
    char *argv[ARGUMENTS_MAX];
};

/* Parses `line`, cut at spaces, with `env` (NULL-terminated, may be NULL). */
static struct outcome parse_table(const struct mr_option_table *table, const char *line,
                                  char *const *env)
{
    static char words[512];
    struct outcome outcome = {.error = MR_ERROR_NONE};
    char *rest = words;

    assert_true(strlen(line) < sizeof(words));
    strcpy(words, line);
    outcome.argv[outcome.argc++] = (char[]){"sample"};
    for (char *word; (word = strsep(&rest, " "));) {
        assert_true(outcome.argc < ARGUMENTS_MAX);
        if (*word)
            outcome.argv[outcome.argc++] = word;
    }
    memset(&outcome.options, 0xa5, sizeof(outcome.options));
    outcome.status =
        mr_options_parse(table, &outcome.options, outcome.argc, outcome.argv, env,
                         &outcome.first, &outcome.action, &outcome.error);
    return outcome;
}

static struct outcome parse(const char *line)
{
    return parse_table(&sample_table, line, NULL);
}

static void assert_refused(const char *line, const char *text)
{
    struct outcome outcome = parse(line);

    assert_int_equal(outcome.status, MR_EUSAGE);
    assert_string_equal(outcome.error.text, text);
}

static void without_arguments_every_field_has_its_default(void **state)
{
    struct outcome outcome = parse("");

    (void)state;
    assert_int_equal(outcome.status, MR_OK);
    assert_int_equal(outcome.action, MR_OPTIONS_RUN);
    assert_string_equal(outcome.options.listen, "tcp://127.0.0.1:4600");
    assert_int_equal(outcome.options.lanes, 1);
    assert_int_equal(outcome.options.memory_bytes, 64 << 20);
    assert_int_equal(outcome.options.block_timeout_ns, 100 * MR_MILLISECOND_NS);
    assert_int_equal(outcome.options.policy, 0);
    assert_false(outcome.options.compare);
    assert_true(outcome.options.color);
    assert_null(outcome.options.output_file_of_the_run);
    assert_int_equal(outcome.options.seed, 0);
    assert_int_equal(outcome.first, 1);
}

static void a_value_follows_a_space_or_an_equals_sign(void **state)
{
    struct outcome outcome = parse("--lanes 2 --policy=block --listen=here --compare "
                                   "--no-color --memory=8K --block-timeout 5us");

    (void)state;
    assert_int_equal(outcome.status, MR_OK);
    assert_int_equal(outcome.options.lanes, 2);
    assert_int_equal(outcome.options.policy, 1);
    assert_string_equal(outcome.options.listen, "here");
    assert_true(outcome.options.compare);
    assert_false(outcome.options.color);
    assert_int_equal(outcome.options.memory_bytes, 8192);
    assert_int_equal(outcome.options.block_timeout_ns, 5000);
}

static void the_last_of_repeated_options_wins(void **state)
{
    struct outcome outcome = parse("--lanes 2 --compare --lanes 3 --no-compare");

    (void)state;
    assert_int_equal(outcome.options.lanes, 3);
    assert_false(outcome.options.compare);
}

struct list_options {
    struct mr_option_list only;
};

static const struct mr_option_spec list_specs[] = {
    MR_OPTION_SPEC(struct list_options, LIST, only, "only", "GLOB", NULL, "which")};

static const struct mr_option_table list_table = {.command = "millrace list",
                                                  .summary = "has a list",
                                                  .specs = list_specs,
                                                  .spec_count = 1};

static void every_one_of_a_list_is_kept_up_to_a_limit(void **state)
{
    char name[] = "list", option[] = "--only=a", variable[] = "MILLRACE_ONLY=v";
    char *argv[MR_OPTION_LIST_MAX + 3] = {name}, *env[] = {variable, NULL};
    struct list_options options;
    struct mr_error error = MR_ERROR_NONE;
    enum mr_options_action action;
    int first;

    (void)state;
    for (int i = 1; i <= MR_OPTION_LIST_MAX + 1; i++)
        argv[i] = option;
    assert_int_equal(
        mr_options_parse(&list_table, &options, 3, argv, env, &first, &action, &error),
        MR_OK);
    assert_int_equal(options.only.count, 3);
    assert_string_equal(options.only.items[0], "v");
    assert_string_equal(options.only.items[2], "a");
    assert_int_equal(mr_options_parse(&list_table, &options, MR_OPTION_LIST_MAX + 2, argv,
                                      NULL, &first, &action, &error),
                     MR_EUSAGE);
    assert_string_equal(error.text, "--only: more than 64 of them");
}

static void a_flag_beats_its_variable_which_beats_the_default(void **state)
{
    char lanes[] = "MILLRACE_LANES=5";
    char timeout[] = "MILLRACE_BLOCK_TIMEOUT=2s";
    char color[] = "SAMPLE_COLOR=off";
    char empty[] = "MILLRACE_MEMORY=";
    char none[] = "MILLRACE_OUTPUT_FILE_OF_THE_RUN=x";
    char *env[] = {lanes, timeout, color, empty, none, NULL};
    struct outcome outcome = parse_table(&sample_table, "--lanes 6", env);

    (void)state;
    assert_int_equal(outcome.status, MR_OK);
    assert_int_equal(outcome.options.lanes, 6);
    assert_int_equal(outcome.options.block_timeout_ns, 2 * MR_SECOND_NS);
    assert_false(outcome.options.color);
    assert_int_equal(outcome.options.memory_bytes, 64 << 20);
    assert_null(outcome.options.output_file_of_the_run);
}

static void a_bad_variable_is_named(void **state)
{
    char lanes[] = "MILLRACE_LANES=many";
    char *env[] = {lanes, NULL};
    struct outcome outcome = parse_table(&sample_table, "", env);

    (void)state;
    assert_int_equal(outcome.status, MR_EUSAGE);
    assert_string_equal(outcome.error.text,
                        "MILLRACE_LANES: 'many' is not a number (allowed: 1 to 64)");
    assert_int_equal(parse_table(&sample_table, "--help", env).status, MR_OK);
}

static void a_bad_value_is_told_with_what_is_allowed(void **state)
{
    (void)state;
    assert_refused("--lanes 0", "--lanes: '0' is out of range (allowed: 1 to 64)");
    assert_refused("--lanes=65", "--lanes: '65' is out of range (allowed: 1 to 64)");
    assert_refused("--lanes=-1", "--lanes: '-1' is not a number (allowed: 1 to 64)");
    assert_refused("--lanes=", "--lanes: '' is not a number (allowed: 1 to 64)");
    assert_refused("--seed 18446744073709551616",
                   "--seed: '18446744073709551616' is not a number");
    assert_refused("--memory 1", "--memory: '1' is out of range (allowed: at least 4K)");
    assert_refused("--memory 99999999999T",
                   "--memory: '99999999999T' is not a size such as 64K, 16M or 1G "
                   "(allowed: at least 4K)");
    assert_refused("--block-timeout 5",
                   "--block-timeout: '5' is not a duration such as 500us, 100ms or 2s "
                   "(allowed: 0 to 1m)");
    assert_refused("--block-timeout 2m",
                   "--block-timeout: '2m' is out of range (allowed: 0 to 1m)");
    assert_refused("--policy bloc",
                   "--policy: 'bloc' is not one of drop|block|overwrite");
    assert_refused("--compare=maybe", "--compare: 'maybe' is not yes or no");
    assert_refused("--lanes", "--lanes: needs a value (COUNT)");
    assert_refused("--memory=", "--memory: '' is not a size such as 64K, 16M or 1G "
                                "(allowed: at least 4K)");
    assert_refused("--block-timeout=", "--block-timeout: '' is not a duration such as "
                                       "500us, 100ms or 2s (allowed: 0 to 1m)");
    assert_refused("--policy=", "--policy: '' is not one of drop|block|overwrite");
    assert_refused("--compare=", "--compare: '' is not yes or no");
    assert_refused("--listen=", "--listen: needs a value (ENDPOINT)");
    assert_refused("--output-file-of-the-run=",
                   "--output-file-of-the-run: needs a value (PATH)");
}

static void an_unknown_option_suggests_the_nearest(void **state)
{
    (void)state;
    assert_refused("--lane 2", "unknown option '--lane' (did you mean '--lanes'?)");
    assert_refused("--blok-timeout=1s",
                   "unknown option '--blok-timeout' (did you mean '--block-timeout'?)");
    assert_refused("-lanes", "unknown option '-lanes' (did you mean '--lanes'?)");
    assert_refused("--hlep", "unknown option '--hlep' (did you mean '--help'?)");
    assert_refused("--xyzzyplugh",
                   "unknown option '--xyzzyplugh' (see 'millrace sample --help')");
    assert_refused("-x", "unknown option '-x' (see 'millrace sample --help')");
    assert_int_equal(parse("--no-lanes").status, MR_EUSAGE);
    assert_int_equal(parse("--no-color=yes").status, MR_EUSAGE);
}

static void positionals_may_stand_anywhere_and_keep_their_order(void **state)
{
    struct outcome outcome = parse("a --lanes 2 b - --compare c -- --lanes d");

    (void)state;
    assert_int_equal(outcome.status, MR_OK);
    assert_int_equal(outcome.options.lanes, 2);
    assert_true(outcome.options.compare);
    assert_int_equal(outcome.argc - outcome.first, 6);
    assert_string_equal(outcome.argv[outcome.first], "a");
    assert_string_equal(outcome.argv[outcome.first + 1], "b");
    assert_string_equal(outcome.argv[outcome.first + 2], "-");
    assert_string_equal(outcome.argv[outcome.first + 3], "c");
    assert_string_equal(outcome.argv[outcome.first + 4], "--lanes");
    assert_string_equal(outcome.argv[outcome.first + 5], "d");
}

static void the_first_positional_ends_the_options_where_asked(void **state)
{
    struct mr_option_table table = sample_table;
    struct outcome outcome;

    (void)state;
    table.stop_at_positional = true;
    outcome = parse_table(&table, "--lanes 2 program --lanes 3 --help", NULL);
    assert_int_equal(outcome.status, MR_OK);
    assert_int_equal(outcome.options.lanes, 2);
    assert_int_equal(outcome.action, MR_OPTIONS_RUN);
    assert_string_equal(outcome.argv[outcome.first], "program");
    assert_int_equal(outcome.argc - outcome.first, 4);
    outcome = parse_table(&table, "--lanes 2 -- --program", NULL);
    assert_string_equal(outcome.argv[outcome.first], "--program");
}

static void a_command_without_positionals_refuses_them(void **state)
{
    struct mr_option_table table = sample_table;

    (void)state;
    table.positionals = NULL;
    assert_string_equal(parse_table(&table, "--lanes 2 file", NULL).error.text,
                        "unexpected argument 'file' (see 'millrace sample --help')");
    assert_int_equal(parse_table(&table, "-- file", NULL).status, MR_EUSAGE);
    assert_int_equal(parse_table(&table, "--", NULL).status, MR_OK);
}

static void help_ends_the_parsing(void **state)
{
    (void)state;
    assert_int_equal(parse("--help --nonsense").action, MR_OPTIONS_HELP);
    assert_int_equal(parse("-h").action, MR_OPTIONS_HELP);
    assert_int_equal(parse("--lanes 2 --help-man").action, MR_OPTIONS_HELP_MAN);
    assert_int_equal(parse("--nonsense --help").status, MR_EUSAGE);
}

static void units_scale(void **state)
{
    static const struct {
        const char *line;
        uint64_t expected_ns;
    } rows[] = {{"--block-timeout 0", 0},
                {"--block-timeout 7ns", 7},
                {"--block-timeout 7us", 7000},
                {"--block-timeout 7ms", 7000000},
                {"--block-timeout 7s", 7 * MR_SECOND_NS},
                {"--block-timeout 1m", MR_MINUTE_NS}};

    (void)state;
    for (size_t i = 0; i < MR_ARRAY_COUNT(rows); i++)
        assert_int_equal(parse(rows[i].line).options.block_timeout_ns,
                         rows[i].expected_ns);
    assert_int_equal(parse("--memory 4096").options.memory_bytes, 4096);
    assert_int_equal(parse("--memory 3MiB").options.memory_bytes, 3 << 20);
    assert_int_equal(parse("--memory 2G").options.memory_bytes, UINT64_C(2) << 30);
    assert_int_equal(parse("--memory 1TiB").options.memory_bytes, UINT64_C(1) << 40);
}

/* Any arguments whatever give a status, never a crash, and lose no argument. */
static void random_arguments_are_parsed_or_refused(void **state)
{
    static const char *const words[] = {
        "--lanes",  "--lanes=2", "--",         "-",        "--no-", "--no-color",
        "3",        "file",      "--=",        "--policy", "drop",  "--no-compare",
        "--listen", "=",         "--memory=4K"};
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (int round = 0; round < 5000; round++) {
        char line[256] = "";
        uint64_t count = mr_test_random_below(&random, 10);
        struct outcome outcome;

        while (count-- > 0) {
            strcat(line, words[mr_test_random_below(&random, MR_ARRAY_COUNT(words))]);
            strcat(line, " ");
        }
        outcome = parse(line);
        assert_true(outcome.status == MR_OK || outcome.status == MR_EUSAGE);
        assert_int_equal(outcome.status != MR_OK, outcome.error.text[0] != '\0');
        assert_in_range(outcome.first, 1, outcome.argc);
        for (int i = 0; i < outcome.argc; i++)
            assert_non_null(outcome.argv[i]);
    }
}

static void a_duration_without_a_bound_leaves_room_for_sums(void **state)
{
    const struct mr_option_spec wait = {.kind = MR_OPTION_DURATION};
    struct mr_error error = MR_ERROR_NONE;
    uint64_t ns = 0;

    (void)state;
    assert_int_equal(mr_options_parse_value(&wait, "--wait", "100000h", &ns, &error),
                     MR_OK);
    assert_true(ns <= UINT64_MAX / 50);
    assert_int_equal(mr_options_parse_value(&wait, "--wait", "100001h", &ns, &error),
                     MR_EUSAGE);
    assert_string_equal(error.text,
                        "--wait: '100001h' is out of range (allowed: 0 to 100000h)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_arguments_every_field_has_its_default),
        cmocka_unit_test(a_value_follows_a_space_or_an_equals_sign),
        cmocka_unit_test(the_last_of_repeated_options_wins),
        cmocka_unit_test(every_one_of_a_list_is_kept_up_to_a_limit),
        cmocka_unit_test(a_flag_beats_its_variable_which_beats_the_default),
        cmocka_unit_test(a_bad_variable_is_named),
        cmocka_unit_test(a_bad_value_is_told_with_what_is_allowed),
        cmocka_unit_test(an_unknown_option_suggests_the_nearest),
        cmocka_unit_test(positionals_may_stand_anywhere_and_keep_their_order),
        cmocka_unit_test(the_first_positional_ends_the_options_where_asked),
        cmocka_unit_test(a_command_without_positionals_refuses_them),
        cmocka_unit_test(help_ends_the_parsing),
        cmocka_unit_test(units_scale),
        cmocka_unit_test(random_arguments_are_parsed_or_refused),
        cmocka_unit_test(a_duration_without_a_bound_leaves_room_for_sums),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
