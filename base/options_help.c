/* SPDX-License-Identifier: Apache-2.0 */
/* --help, --help-man and the nearest name. */
#include "base/assert.h"
#include "base/compiler.h"
#include "base/options.h"
#include "base/options_private.h"
#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX 63    /* longer words are never near anything */
#define HELP_COLUMN 26 /* where the explanations start */
#define HELP_COLUMNS_MIN 40

/* The first failure sticks and makes the rest do nothing, so that callers check once. */
struct writer {
    struct mr_buffer *out;
    enum mr_status status;
};

static void put(struct writer *writer, const char *text)
{
    if (writer->status == MR_OK)
        writer->status = mr_buffer_append_text(writer->out, text);
}

static void put_part(struct writer *writer, const char *text, size_t size)
{
    if (writer->status == MR_OK)
        writer->status = mr_buffer_append(writer->out, text, size);
}

static void put_spaces(struct writer *writer, size_t count)
{
    while (count-- > 0)
        put(writer, " ");
}

/*
 * Text from `column` on, wrapped at spaces before `columns`, each further line indented
 * to `column`.
 */
static void put_wrapped(struct writer *writer, const char *text, size_t column,
                        size_t columns)
{
    size_t used = column;

    while (*text) {
        size_t size = strcspn(text, " ");

        if (used > column && used + 1 + size > columns) {
            put(writer, "\n");
            put_spaces(writer, column);
            used = column;
        } else if (used > column) {
            put(writer, " ");
            used++;
        }
        put_part(writer, text, size);
        used += size;
        text += size;
        text += strspn(text, " ");
    }
    put(writer, "\n");
}

/* "--lanes COUNT", or "--no-x" for flags that are on by default. */
static void option_text(const struct mr_option_spec *spec, char *text, size_t size)
{
    bool on = spec->kind == MR_OPTION_FLAG && spec->default_text &&
              strcmp(spec->default_text, "yes") == 0;

    (void)snprintf(text, size, "--%s%s%s%s", on ? "no-" : "", spec->name,
                   spec->placeholder ? " " : "",
                   spec->placeholder ? spec->placeholder : "");
}

/* The explanation: help, what is allowed, the default, the variable. */
static void explanation_text(const struct mr_option_spec *spec, char *text, size_t size)
{
    char range[MR_OPTION_RANGE_SIZE];
    char env[MR_OPTION_ENV_SIZE];
    const char *value = spec->kind == MR_OPTION_FLAG ? NULL : spec->default_text;
    size_t used;

    mr_option_range_text(spec, range, sizeof(range));
    mr_options_env_name(spec, env);
    (void)snprintf(text, size, "%s", spec->help);
    if (mr_option_is_bounded(spec)) {
        used = strlen(text);
        (void)snprintf(text + used, size - used, "; %s", range);
    }
    if (value) {
        used = strlen(text);
        (void)snprintf(text + used, size - used, " [default: %s]",
                       *value ? value : "none");
    }
    if (*env) {
        used = strlen(text);
        (void)snprintf(text + used, size - used, " [%s]", env);
    }
}

static void put_option(struct writer *writer, const char *option, const char *explanation,
                       size_t columns)
{
    size_t size = strlen(option) + 2;

    put(writer, "  ");
    put(writer, option);
    if (size + 2 > HELP_COLUMN) {
        put(writer, "\n");
        size = 0;
    }
    put_spaces(writer, HELP_COLUMN - size);
    put_wrapped(writer, explanation, HELP_COLUMN, columns);
}

static void put_usage(struct writer *writer, const struct mr_option_table *table)
{
    put(writer, table->command);
    put(writer, " [OPTION...]");
    if (table->positionals) {
        put(writer, " ");
        put(writer, table->positionals);
    }
    put(writer, "\n");
}

enum mr_status mr_options_help(const struct mr_option_table *table, size_t columns,
                               struct mr_buffer *out)
{
    struct writer writer = {out, MR_OK};
    char option[96];
    char explanation[1024];

    MR_ASSERT(table && out);
    MR_ASSERT(columns >= HELP_COLUMNS_MIN);
    put(&writer, "Usage: ");
    put_usage(&writer, table);
    put_wrapped(&writer, table->summary, 0, columns);
    put(&writer, "\nOptions [and the variables that set them]:\n");
    for (size_t i = 0; i < table->spec_count; i++) {
        option_text(&table->specs[i], option, sizeof(option));
        explanation_text(&table->specs[i], explanation, sizeof(explanation));
        put_option(&writer, option, explanation, columns);
    }
    put_option(&writer, "--help", "show this text", columns);
    put_option(&writer, "--help-man", "show the manual page's source (scdoc)", columns);
    return writer.status;
}

/* scdoc gives '_' and '*' a meaning; a backslash takes it away. */
static void put_escaped(struct writer *writer, const char *text)
{
    for (; *text; text++) {
        if (strchr("_*\\#<", *text))
            put(writer, "\\");
        put_part(writer, text, 1);
    }
}

/* "millrace worker" is the page millrace-worker(1). */
static void put_man_name(struct writer *writer, const char *command)
{
    for (; *command; command++)
        put_part(writer, *command == ' ' ? "-" : command, 1);
}

static void put_man_option(struct writer *writer, const struct mr_option_spec *spec)
{
    char option[96];
    char explanation[1024];

    option_text(spec, option, sizeof(option));
    explanation_text(spec, explanation, sizeof(explanation));
    put(writer, "*");
    put_escaped(writer, option);
    put(writer, "*\n\t");
    put_escaped(writer, explanation);
    put(writer, "\n\n");
}

enum mr_status mr_options_man(const struct mr_option_table *table, struct mr_buffer *out)
{
    struct writer writer = {out, MR_OK};

    MR_ASSERT(table && out);
    put_man_name(&writer, table->command);
    put(&writer, "(1)\n\n# NAME\n\n");
    put_man_name(&writer, table->command);
    put(&writer, " - ");
    put_escaped(&writer, table->summary);
    put(&writer, "\n\n# SYNOPSIS\n\n");
    put_usage(&writer, table);
    put(&writer, "\n# OPTIONS\n\nA flag beats its variable, a variable beats the "
                 "default; an empty variable is as if unset, an empty flag is an "
                 "error.\n\n");
    for (size_t i = 0; i < table->spec_count; i++)
        put_man_option(&writer, &table->specs[i]);
    put(&writer, "*--help*\n\tshow a summary of the options\n");
    return writer.status;
}

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;

    return ab < c ? ab : c;
}

/* Levenshtein's distance, one row at a time; words of at most WORD_MAX letters. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[WORD_MAX + 1];
    size_t b_size = strlen(b);

    for (size_t j = 0; j <= b_size; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            size_t above = row[j];

            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[b_size];
}

const char *mr_options_nearest(const char *word, const char *const *words, size_t count)
{
    const char *nearest = NULL;
    size_t word_size = strlen(word);
    size_t best = word_size / 3 + 1; /* a distance has to be below or equal */

    MR_ASSERT(words || count == 0);
    if (word_size > WORD_MAX)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t distance;

        if (strlen(words[i]) > WORD_MAX)
            continue;
        distance = edit_distance(word, words[i]);
        if (distance < best || (distance == best && !nearest)) {
            best = distance;
            nearest = words[i];
        }
    }
    return nearest;
}

void mr_options_tell_unknown(const char *command, const char *what, const char *word,
                             const char *const *words, size_t count)
{
    const char *nearest = mr_options_nearest(word, words, count);
    char plain[81];

    (void)fprintf(stderr, "%s: unknown %s '%s' ", command, what,
                  mr_text_plain_copy(word, plain, sizeof(plain)));
    if (nearest)
        (void)fprintf(stderr, "(did you mean '%s'?)\n", nearest);
    else
        (void)fprintf(stderr, "(see '%s --help')\n", command);
}
