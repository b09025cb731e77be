/* SPDX-License-Identifier: Apache-2.0 */
/* The one part of the options that prints: what every command's main does first. */
#include "base/assert.h"
#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HELP_BYTES_MAX ((size_t)256 << 10)
#define HELP_COLUMNS 90
#define EXIT_USAGE 2

static int print_help(const struct mr_option_table *table, enum mr_options_action action)
{
    struct mr_buffer text;
    enum mr_status status;
    int exit_status = EXIT_SUCCESS;

    mr_buffer_init(&text, HELP_BYTES_MAX);
    status = action == MR_OPTIONS_HELP ? mr_options_help(table, HELP_COLUMNS, &text)
                                       : mr_options_man(table, &text);
    if (status != MR_OK || fwrite(text.data, 1, text.size, stdout) != text.size ||
        fflush(stdout))
        exit_status = EXIT_FAILURE;
    mr_buffer_fini(&text);
    return exit_status;
}

int mr_options_start(const struct mr_option_table *table, void *options, int argc,
                     char **argv, int *first_positional)
{
    struct mr_error error = MR_ERROR_NONE;
    enum mr_options_action action = MR_OPTIONS_RUN;
    enum mr_status status;

    MR_ASSERT(table && options);
    status = mr_options_parse(table, options, argc, argv, environ, first_positional,
                              &action, &error);
    if (status != MR_OK) {
        (void)fprintf(stderr, "%s: %s\n", table->command, error.text);
        return EXIT_USAGE;
    }
    return action == MR_OPTIONS_RUN ? -1 : print_help(table, action);
}

int mr_options_read(const struct mr_option_table *table, void *options, size_t size,
                    int argc, char **argv,
                    enum mr_status (*check)(void *options, struct mr_error *error))
{
    struct mr_error error = MR_ERROR_NONE;
    int first = 0, exit_status;

    MR_ASSERT(!table->positionals && check);
    memset(options, 0, size);
    exit_status = mr_options_start(table, options, argc, argv, &first);
    if (exit_status >= 0)
        return exit_status;
    if (check(options, &error) == MR_OK)
        return -1;
    (void)fprintf(stderr, "%s: %s\n", table->command, error.text);
    return EXIT_USAGE;
}
