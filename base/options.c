/* SPDX-License-Identifier: Apache-2.0 */
/* From argv, environment and defaults to a command's struct. */
#include "base/options.h"

#include "base/assert.h"
#include "base/compiler.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state of one mr_options_parse(). */
struct parser {
    const struct mr_option_table *table;
    void *options;
    int argc;
    char **argv;
    int at;               /* next argument to look at */
    int first_positional; /* argv[first_positional .. at-1] are the positionals so far */
    enum mr_options_action action;
    struct mr_error *error;
};

/* One "--name", "--no-name", "--name=value" taken apart. */
struct argument {
    const char *text; /* as written */
    const char *name;
    size_t name_size;
    const char *value; /* after '='; NULL without */
};

static void *field_of(const struct parser *parser, const struct mr_option_spec *spec)
{
    return (char *)parser->options + spec->offset;
}

void mr_options_env_name(const struct mr_option_spec *spec, char name[MR_OPTION_ENV_SIZE])
{
    int size;

    if (spec->env) {
        (void)snprintf(name, MR_OPTION_ENV_SIZE, "%s", spec->env);
        return;
    }
    size = snprintf(name, MR_OPTION_ENV_SIZE, "MILLRACE_%s", spec->name);
    MR_ASSERT(size > 0 && size < MR_OPTION_ENV_SIZE);
    for (char *at = name; *at; at++) {
        if (*at == '-')
            *at = '_';
        else
            *at = (char)toupper((unsigned char)*at);
    }
}

static const char *find_variable(char *const *env, const char *name)
{
    size_t size = strlen(name);

    for (; env && size && *env; env++) {
        if (strncmp(*env, name, size) == 0 && (*env)[size] == '=')
            return *env + size + 1;
    }
    return NULL;
}

static void clear_field(const struct parser *parser, const struct mr_option_spec *spec)
{
    void *field = field_of(parser, spec);

    switch (spec->kind) {
    case MR_OPTION_FLAG:
        *(bool *)field = false;
        return;
    case MR_OPTION_U64:
    case MR_OPTION_SIZE:
    case MR_OPTION_DURATION:
        *(uint64_t *)field = 0;
        return;
    case MR_OPTION_STRING:
        *(const char **)field = NULL;
        return;
    case MR_OPTION_CHOICE:
        *(unsigned *)field = 0;
        return;
    case MR_OPTION_LIST:
        ((struct mr_option_list *)field)->count = 0;
        return;
    }
}

static void set_defaults(const struct parser *parser)
{
    for (size_t i = 0; i < parser->table->spec_count; i++) {
        const struct mr_option_spec *spec = &parser->table->specs[i];

        MR_ASSERT(spec->name && spec->help);
        MR_ASSERT(spec->kind != MR_OPTION_CHOICE || spec->choices);
        clear_field(parser, spec);
        if (spec->default_text) {
            enum mr_status status = mr_options_parse_value(
                spec, spec->name, spec->default_text, field_of(parser, spec), NULL);

            MR_ASSERT(status == MR_OK); /* the table's default is within its own bounds */
        }
    }
}

static enum mr_status read_environment(const struct parser *parser, char *const *env)
{
    for (size_t i = 0; i < parser->table->spec_count; i++) {
        const struct mr_option_spec *spec = &parser->table->specs[i];
        char name[MR_OPTION_ENV_SIZE];
        const char *value;
        enum mr_status status;

        mr_options_env_name(spec, name);
        value = find_variable(env, name);
        if (!value || !*value)
            continue;
        status = mr_options_parse_value(spec, name, value, field_of(parser, spec),
                                        parser->error);
        if (status != MR_OK)
            return status;
    }
    return MR_OK;
}

static const struct mr_option_spec *find_spec(const struct mr_option_table *table,
                                              const char *name, size_t size)
{
    for (size_t i = 0; i < table->spec_count; i++) {
        const struct mr_option_spec *spec = &table->specs[i];

        if (strlen(spec->name) == size && strncmp(spec->name, name, size) == 0)
            return spec;
    }
    return NULL;
}

static bool argument_is(const struct argument *argument, const char *name)
{
    return !argument->value && strlen(name) == argument->name_size &&
           strncmp(argument->name, name, argument->name_size) == 0;
}

static enum mr_status unknown_option(const struct parser *parser,
                                     const struct argument *argument)
{
    const struct mr_option_table *table = parser->table;
    const char **names = calloc(table->spec_count + 1, sizeof(*names));
    int written = (int)(argument->name + argument->name_size - argument->text);
    char word[64];
    const char *nearest = NULL;

    (void)snprintf(word, sizeof(word), "%.*s", (int)argument->name_size, argument->name);
    if (names) {
        for (size_t i = 0; i < table->spec_count; i++)
            names[i] = table->specs[i].name;
        names[table->spec_count] = "help";
        nearest = mr_options_nearest(word, names, table->spec_count + 1);
    }
    free(names);
    if (nearest)
        return mr_error_set(parser->error, MR_EUSAGE,
                            "unknown option '%.*s' (did you mean '--%s'?)", written,
                            argument->text, nearest);
    return mr_error_set(parser->error, MR_EUSAGE,
                        "unknown option '%.*s' (see '%s --help')",
                        written < 80 ? written : 80, argument->text, table->command);
}

/* Kinds that take any text would take none for "not given": a variable of the shell that is not set. */
static bool is_text(const struct mr_option_spec *spec)
{
    return spec->kind == MR_OPTION_STRING || spec->kind == MR_OPTION_LIST;
}

static enum mr_status needs_value(const struct parser *parser,
                                  const struct mr_option_spec *spec)
{
    return mr_error_set(parser->error, MR_EUSAGE, "--%s: needs a value (%s)", spec->name,
                        spec->placeholder ? spec->placeholder : "VALUE");
}

/* Applies one option; *took_next tells if the following argument was its value. */
static enum mr_status apply_option(struct parser *parser, const struct argument *argument,
                                   bool *took_next)
{
    const struct mr_option_spec *spec =
        find_spec(parser->table, argument->name, argument->name_size);
    const char *value = argument->value;
    char where[80];

    if (!spec && argument->name_size > 3 && strncmp(argument->name, "no-", 3) == 0) {
        spec = find_spec(parser->table, argument->name + 3, argument->name_size - 3);
        if (spec && (spec->kind != MR_OPTION_FLAG || value))
            spec = NULL;
        value = "no";
    }
    if (!spec)
        return unknown_option(parser, argument);
    (void)snprintf(where, sizeof(where), "--%s", spec->name);
    if (!value && spec->kind == MR_OPTION_FLAG)
        value = "yes";
    if (!value) {
        if (parser->at + 1 >= parser->argc)
            return needs_value(parser, spec);
        value = parser->argv[parser->at + 1];
        *took_next = true;
    }
    if (!*value && is_text(spec))
        return needs_value(parser, spec);
    return mr_options_parse_value(spec, where, value, field_of(parser, spec),
                                  parser->error);
}

/* Moves argv[at .. at+count-1] in front of the positionals seen so far. */
static void move_option(struct parser *parser, int count)
{
    for (int i = 0; i < count; i++) {
        char *moved = parser->argv[parser->at];
        char **hole = &parser->argv[parser->first_positional];

        memmove(hole + 1, hole,
                (size_t)(parser->at - parser->first_positional) * sizeof(*hole));
        *hole = moved;
        parser->first_positional++;
        parser->at++;
    }
}

static struct argument take_apart(const char *text)
{
    struct argument argument = {.text = text, .name = text + (text[1] == '-' ? 2 : 1)};
    const char *end = strchrnul(argument.name, '=');

    argument.name_size = (size_t)(end - argument.name);
    argument.value = *end ? end + 1 : NULL;
    return argument;
}

/* One argument that begins with '-': an option of the table, help, or a mistake. */
static enum mr_status parse_option(struct parser *parser)
{
    struct argument argument = take_apart(parser->argv[parser->at]);
    bool took_next = false;
    enum mr_status status;

    if (argument_is(&argument, "help") || strcmp(argument.text, "-h") == 0) {
        parser->action = MR_OPTIONS_HELP;
        return MR_END;
    }
    if (argument_is(&argument, "help-man")) {
        parser->action = MR_OPTIONS_HELP_MAN;
        return MR_END;
    }
    if (argument.text[1] != '-')
        return unknown_option(parser, &argument);
    status = apply_option(parser, &argument, &took_next);
    if (status == MR_OK)
        move_option(parser, took_next ? 2 : 1);
    return status;
}

static enum mr_status parse_arguments(struct parser *parser)
{
    enum mr_status status = MR_OK;

    while (status == MR_OK && parser->at < parser->argc) {
        const char *text = parser->argv[parser->at];

        if (strcmp(text, "--") == 0) {
            move_option(parser, 1);
            break;
        }
        if (text[0] == '-' && text[1] != '\0')
            status = parse_option(parser);
        else if (!parser->table->positionals)
            status = mr_error_set(parser->error, MR_EUSAGE,
                                  "unexpected argument '%.80s' (see '%s --help')", text,
                                  parser->table->command);
        else if (parser->table->stop_at_positional)
            break;
        else
            parser->at++;
    }
    return status == MR_END ? MR_OK : status;
}

enum mr_status mr_options_parse(const struct mr_option_table *table, void *options,
                                int argc, char **argv, char *const *env,
                                int *first_positional, enum mr_options_action *action,
                                struct mr_error *error)
{
    struct parser parser = {.table = table,
                            .options = options,
                            .argc = argc,
                            .argv = argv,
                            .at = argc > 0 ? 1 : 0,
                            .first_positional = argc > 0 ? 1 : 0,
                            .error = error};
    enum mr_status arguments;
    enum mr_status status;

    MR_ASSERT(table && options && argv);
    MR_ASSERT(first_positional && action);
    set_defaults(&parser);
    status = read_environment(&parser, env);
    /*
     * Flags beat variables, so they come second; help shows even where a variable is bad.
     */
    arguments = parse_arguments(&parser);
    *first_positional = parser.first_positional;
    *action = parser.action;
    if (parser.action != MR_OPTIONS_RUN)
        return MR_OK;
    if (status == MR_OK)
        status = arguments;
    if (status == MR_OK && parser.first_positional < argc && !table->positionals)
        status = mr_error_set(error, MR_EUSAGE, "unexpected argument '%.80s'",
                              argv[parser.first_positional]);
    return status;
}
