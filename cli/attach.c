/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/attach.h"

#include "base/arena.h"
#include "base/options.h"
#include "base/text.h"
#include "cli/attach_client.h"
#include "cli/attach_names.h"
#include "cli/leave_out.h"
#include "cli/render.h"

#include <jansson.h>

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 2
#define NAMES_MAX 16
#define NAME_SIZE 4096
#define ARENA_CHUNK ((size_t)16 << 10)
#define ARENA_MAX ((size_t)4 << 20)
#define PRUNE_NS_MAX UINT64_C(1000000000) /* what the probe takes */

struct attach_options {
#define MR_OPTION MR_OPTION_FIELD
#include "cli/attach_options.def"
#undef MR_OPTION
};

static const struct mr_option_spec specs[] = {
#define MR_OPTION(...) MR_OPTION_SPEC(struct attach_options, __VA_ARGS__)
#include "cli/attach_options.def"
#undef MR_OPTION
};

static const struct mr_option_table table = {
    .command = "millrace attach",
    .summary =
        "asks what the probe of a running program does, and switches it on or off; "
        "the program was started with MILLRACE_CONTROL=1",
    .positionals = "PID",
    .specs = specs,
    .spec_count = MR_ARRAY_COUNT(specs)};

static int say(int exit_status, const char *text)
{
    (void)fprintf(stderr, "%s: %s\n", table.command, text);
    return exit_status;
}

static int fail(enum mr_status status, const struct mr_error *error)
{
    bool is_users =
        status == MR_EUSAGE || status == MR_ENOTFOUND || status == MR_EREFUSED;

    return say(is_users ? EXIT_USAGE : EXIT_FAILURE, error->text);
}

static bool read_pid(const char *text, pid_t *pid)
{
    char *end;
    long number;

    errno = 0;
    number = strtol(text, &end, 10);
    *pid = (pid_t)number;
    return errno == 0 && end != text && *end == '\0' && number > 0 && number <= INT32_MAX;
}

static bool has_choice(const struct attach_options *options)
{
    return options->only.count || options->except.count || options->min_size;
}

/* NULL, or what is wrong with the combination. */
static const char *mistake(const struct attach_options *options)
{
    if (options->on && options->off)
        return "--on and --off exclude each other";
    if (!options->on && !options->off && has_choice(options))
        return "--only, --except and --min-size need --on or --off";
    if (!options->on && *options->endpoint)
        return "--endpoint needs --on";
    if (*options->prune && (options->on || options->off))
        return "--prune goes alone, or with --flush";
    return NULL;
}

static void put_list(struct mr_attach_client *client, const char *key,
                     const struct mr_option_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        mr_attach_put(&client->request, key, "%s", list->items[i]);
}

static enum mr_status flush(pid_t pid, struct mr_error *error)
{
    struct mr_attach_client *client = NULL;
    enum mr_status status = mr_attach_open(pid, &client, error);

    if (status != MR_OK)
        return status;
    mr_attach_request(client, "flush");
    status = mr_attach_ask(client, -1, error);
    mr_attach_close(client);
    return status;
}

/* "off", or a duration from 1 ns to PRUNE_NS_MAX. */
static bool read_prune(const char *text, uint64_t *limit_ns)
{
    *limit_ns = 0;
    return strcmp(text, "off") == 0 || (mr_option_read_duration(text, limit_ns) &&
                                        *limit_ns > 0 && *limit_ns <= PRUNE_NS_MAX);
}

static const char *request_of(const struct attach_options *options)
{
    if (*options->prune)
        return "prune";
    return options->on ? "on" : options->off ? "off" : "status";
}

static enum mr_status ask(struct mr_attach_client *client,
                          const struct attach_options *options, struct mr_error *error)
{
    bool is_switch = options->on || options->off;
    enum mr_status status = MR_OK;
    uint64_t limit_ns;

    if (options->flush && !is_switch)
        status = flush(client->pid, error);
    mr_attach_request(client, request_of(options));
    if (*options->prune && read_prune(options->prune, &limit_ns))
        mr_attach_put(&client->request, "limit-ns", "%llu", (unsigned long long)limit_ns);
    put_list(client, "only", &options->only);
    put_list(client, "except", &options->except);
    if (options->min_size)
        mr_attach_put(&client->request, "min-size", "%llu",
                      (unsigned long long)options->min_size);
    if (*options->endpoint)
        mr_attach_put(&client->request, "endpoint", "%s", options->endpoint);
    if (status == MR_OK)
        status = mr_attach_ask(client, -1, error);
    if (status == MR_OK && options->flush && is_switch)
        status = flush(client->pid, error);
    return status;
}

/* Whole decimal numbers are shown as such in JSON. */
static json_t *value_of(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    if (digits > 0 && digits < 19 && text[digits] == '\0')
        return json_integer(strtoll(text, NULL, 10));
    return json_string(text);
}

/* "lost 12 ring-full" is {"lost": {"ring-full": 12}}; other keys that may repeat, lists. */
static void put_json(json_t *object, const struct mr_attach_field *field)
{
    static const char *const lists[] = {"endpoint", "refused", "unmatched",
                                        "pruned-function", "short-function"};
    bool is_list = false;
    json_t *there = json_object_get(object, field->key);

    for (size_t i = 0; i < MR_ARRAY_COUNT(lists); i++)
        is_list |= strcmp(field->key, lists[i]) == 0;
    if (strcmp(field->key, "lost") == 0) {
        const char *reason = strchr(field->value, ' ');

        if (!there)
            (void)json_object_set_new(object, "lost", there = json_object());
        if (reason)
            (void)json_object_set_new(there, reason + 1,
                                      json_integer(strtoll(field->value, NULL, 10)));
    } else if (is_list) {
        if (!there)
            (void)json_object_set_new(object, field->key, there = json_array());
        (void)json_array_append_new(there, json_string(field->value));
    } else {
        (void)json_object_set_new(object, field->key, value_of(field->value));
    }
}

static int print_json(const struct mr_attach_message *answer)
{
    json_t *object = json_object();
    int failed;

    for (uint32_t i = 0; i < answer->count; i++)
        put_json(object, &answer->fields[i]);
    failed = json_dumpf(object, stdout, JSON_INDENT(2));
    json_decref(object);
    (void)putchar('\n');
    return failed || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const char *text_of(const struct mr_attach_message *answer, const char *key)
{
    const char *text = mr_attach_get(answer, key);

    return text ? text : "";
}

/* The functions that the probe names as not worth their cost: "31 % name". */
static void tell_ways(const struct mr_attach_message *answer)
{
    const char *names[NAMES_MAX];
    struct mr_buffer out;
    size_t count = 0;

    mr_buffer_init(&out, MR_ATTACH_ANSWER_MAX);
    for (uint32_t i = 0; i < answer->count && count < NAMES_MAX; i++) {
        const char *name = strstr(answer->fields[i].value, " % ");

        if (strcmp(answer->fields[i].key, "short-function") == 0 && name)
            names[count++] = name + 3;
    }
    if (count > 0 && mr_leave_out_put(names, count, &out) == MR_OK)
        (void)printf("%.*s", (int)out.size, (const char *)out.data);
    mr_buffer_fini(&out);
}

/* Names in it do not drive the terminal. */
MR_PRINTF(1, 2) static void print_line(const char *format, ...)
{
    struct mr_buffer line;
    va_list values;

    mr_buffer_init(&line, MR_ATTACH_ANSWER_MAX);
    va_start(values, format);
    if (mr_render_values(&line, format, values) == MR_OK)
        (void)fwrite(line.data, 1, line.size, stdout);
    va_end(values);
    mr_buffer_fini(&line);
}

/* A headline, then what the answer holds besides, as it comes. */
static int print_text(const struct mr_attach_client *client)
{
    static const char *const in_headline[] = {"pid", "app", "state", "was"};
    const struct mr_attach_message *answer = &client->answer;
    const char *was = mr_attach_get(answer, "was");

    print_line("%d %s: %s%s%s%s\n", (int)client->pid, text_of(answer, "app"),
               text_of(answer, "state"), was ? " (was " : "", was ? was : "",
               was ? ")" : "");
    for (uint32_t i = 0; i < answer->count; i++) {
        const struct mr_attach_field *field = &answer->fields[i];
        bool is_told = false;

        for (size_t j = 0; j < MR_ARRAY_COUNT(in_headline); j++)
            is_told |= strcmp(field->key, in_headline[j]) == 0;
        if (!is_told)
            print_line("  %-16s%s\n", field->key, field->value);
    }
    tell_ways(answer);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Globs that match no function: status 2, whatever else was done. */
static int tell_unmatched(const struct mr_attach_client *client)
{
    const struct mr_attach_message *answer = &client->answer;
    int exit_status = EXIT_SUCCESS;

    for (uint32_t i = 0; i < answer->count; i++) {
        const struct mr_attach_field *field = &answer->fields[i];
        char names[256], glob[256];
        bool is_near;

        if (strcmp(field->key, "unmatched") != 0)
            continue;
        exit_status = EXIT_USAGE;
        is_near = mr_attach_nearest(client->pid, field->value, names, sizeof(names));
        (void)fprintf(
            stderr, "%s: process %d has no function '%s' that can be switched%s%s%s\n",
            table.command, (int)client->pid,
            mr_text_plain_copy(field->value, glob, sizeof(glob)),
            is_near ? " (near: " : "", is_near ? names : "", is_near ? ")" : "");
    }
    return exit_status;
}

/* C++ names of functions as people write them: the probe sends what the symbol table has. */
static void demangle(struct mr_attach_message *answer, struct mr_arena *arena)
{
    char plain[NAME_SIZE];

    for (uint32_t i = 0; i < answer->count; i++) {
        struct mr_attach_field *field = &answer->fields[i];
        char *copy;

        if (strcmp(field->key, "pruned-function") != 0 &&
            strcmp(field->key, "short-function") != 0)
            continue;
        mr_attach_plain(field->value, plain, sizeof(plain));
        copy = mr_arena_take(arena, strlen(plain) + 1);
        if (copy)
            field->value = memcpy(copy, plain, strlen(plain) + 1);
    }
}

static int print(struct mr_attach_client *client, bool is_json)
{
    struct mr_arena arena;
    int exit_status;

    mr_arena_init(&arena, ARENA_CHUNK, ARENA_MAX);
    demangle(&client->answer, &arena);
    exit_status = is_json ? print_json(&client->answer) : print_text(client);
    mr_arena_fini(&arena);
    return exit_status;
}

static int attach(pid_t pid, const struct attach_options *options)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_attach_client *client = NULL;
    enum mr_status status = mr_attach_open(pid, &client, &error);
    int exit_status, unmatched = EXIT_SUCCESS;

    if (status == MR_OK)
        status = ask(client, options, &error);
    if (status != MR_OK) {
        exit_status = fail(status, &error);
    } else {
        exit_status = print(client, options->json);
        unmatched = tell_unmatched(client);
    }
    mr_attach_close(client);
    return exit_status ? exit_status : unmatched;
}

int mr_attach_command(int argc, char **argv)
{
    struct attach_options options;
    int first = 0;
    int exit_status = mr_options_start(&table, &options, argc, argv, &first);
    const char *wrong;
    uint64_t limit_ns;
    char plain[41];
    pid_t pid;

    if (exit_status >= 0)
        return exit_status;
    if (first >= argc)
        return say(EXIT_USAGE,
                   "name a process by its pid (see 'millrace attach --help')");
    if (first + 1 < argc)
        return say(EXIT_USAGE, "one process at a time");
    if (!read_pid(argv[first], &pid)) {
        (void)fprintf(stderr, "%s: '%s' is not a pid\n", table.command,
                      mr_text_plain_copy(argv[first], plain, sizeof(plain)));
        return EXIT_USAGE;
    }
    if (*options.prune && !read_prune(options.prune, &limit_ns)) {
        (void)fprintf(
            stderr,
            "%s: --prune %s: expected a duration such as 50ns, at most 1s, or off\n",
            table.command, mr_text_plain_copy(options.prune, plain, sizeof(plain)));
        return EXIT_USAGE;
    }
    wrong = mistake(&options);
    return wrong ? say(EXIT_USAGE, wrong) : attach(pid, &options);
}
