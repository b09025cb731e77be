/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of a command, once: a table that makes the flag, the MILLRACE_ variable,
 * the checks, --help and the man page. A command keeps its table in a .def list beside
 * it, one line per option:
 *
 *     MR_OPTION(kind, field, "flag", "PLACEHOLDER", "default", "help", .designators...)
 *
 *     kind      type of field     values on the command line
 *     FLAG      bool              --x, --no-x, --x=VALUE: 1|yes|true|on, 0|no|false|off
 *     U64       uint64_t          decimal
 *     SIZE      uint64_t bytes    decimal with K, M, G, T (powers of 1024), also KiB ...
 *     DURATION  uint64_t ns       decimal with ns, us, ms, s, m, h; 0 needs none
 *     STRING    const char *      anything but nothing; borrowed from argv, environment or table
 *     CHOICE    unsigned          one of .choices = "a|b|c"; its position from 0
 *     LIST      mr_option_list    as STRING, but each time it is given adds one; a variable
 *                                 gives one
 *
 * Designators: .min, .max (U64, SIZE, DURATION, in the field's unit; .max 0 is none, for
 * a DURATION 100000h: sums of some do not overflow),
 * .choices, .env (a variable name instead of the derived MILLRACE_FLAG_NAME; "" for
 * none). A default of NULL leaves the field zero and is shown as nothing. Flag beats
 * variable beats default; the last of repeated flags wins (but LIST); an empty variable is as if
 * unset.
 *
 * Use (worker/options.def):
 *     MR_OPTION(STRING, listen, "listen", "ENDPOINT", "tcp://127.0.0.1:4600", "listener")
 *     MR_OPTION(U64, lanes, "lanes", "COUNT", "1", "analysis lanes", .max = 64)
 *     MR_OPTION(DURATION, wait_ns, "wait", "TIME", "100ms", "longest wait")
 *
 * (worker/main.c):
 *     struct worker_options {
 *     #define MR_OPTION MR_OPTION_FIELD
 *     #include "worker/options.def"
 *     #undef MR_OPTION
 *     };
 *     static const struct mr_option_spec specs[] = {
 *     #define MR_OPTION(...) MR_OPTION_SPEC(struct worker_options, __VA_ARGS__)
 *     #include "worker/options.def"
 *     #undef MR_OPTION
 *     };
 *     static const struct mr_option_table table = {
 *         .command = "millrace worker", .summary = "analyse ...", .specs = specs,
 *         .spec_count = MR_ARRAY_COUNT(specs)};
 *     int exit_status = mr_options_start(&table, &options, argc, argv, &first);
 *     if (exit_status >= 0)
 *         return exit_status;
 *
 * --help and --help-man exist in every table. Parsing happens once, before threads start;
 * no function keeps state.
 */
#ifndef MR_BASE_OPTIONS_H
#define MR_BASE_OPTIONS_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "50ns": as an option of kind DURATION reads it. False: it does not. */
bool mr_option_read_duration(const char *text, uint64_t *ns);

enum mr_option_kind {
    MR_OPTION_FLAG,
    MR_OPTION_U64,
    MR_OPTION_SIZE,
    MR_OPTION_DURATION,
    MR_OPTION_STRING,
    MR_OPTION_CHOICE,
    MR_OPTION_LIST
};

#define MR_OPTION_LIST_MAX 64

struct mr_option_list {
    uint32_t count;
    const char *items[MR_OPTION_LIST_MAX]; /* borrowed, as a STRING */
};

#define MR_OPTION_TYPE_FLAG bool
#define MR_OPTION_TYPE_U64 uint64_t
#define MR_OPTION_TYPE_SIZE uint64_t
#define MR_OPTION_TYPE_DURATION uint64_t
#define MR_OPTION_TYPE_STRING const char *
#define MR_OPTION_TYPE_CHOICE unsigned
#define MR_OPTION_TYPE_LIST struct mr_option_list

/* A table line as a field of the command's struct. */
#define MR_OPTION_FIELD(kind_, field_, ...) MR_OPTION_TYPE_##kind_ field_;

/*
 * A table line as a struct mr_option_spec; the last argument is the help, with
 * designators after it.
 */
#define MR_OPTION_SPEC(struct_, kind_, field_, name_, placeholder_, default_, ...)       \
    {.kind = MR_OPTION_##kind_,                                                          \
     .offset = offsetof(struct_, field_),                                                \
     .name = (name_),                                                                    \
     .placeholder = (placeholder_),                                                      \
     .default_text = (default_),                                                         \
     .help = __VA_ARGS__},

struct mr_option_spec {
    enum mr_option_kind kind;
    size_t offset;           /* of the field in the command's struct */
    const char *name;        /* flag without dashes: "block-timeout" */
    const char *placeholder; /* of the value, in help: "TIME"; NULL for FLAG */
    const char *default_text;
    const char *help; /* one or two sentences, no full stop at the end */
    uint64_t min;
    uint64_t max; /* 0: no upper limit */
    const char *choices;
    const char *env; /* NULL: derived from the name; "": none */
};

struct mr_option_table {
    const char *command;     /* "millrace worker" */
    const char *summary;     /* one sentence, lower case, no full stop */
    const char *positionals; /* for the usage line: "PROGRAM [ARGUMENT...]"; NULL: none */
    const struct mr_option_spec *specs;
    size_t spec_count;
    bool stop_at_positional; /* the first one ends the options: `record PROGRAM ARGS` */
};

enum mr_options_action { MR_OPTIONS_RUN, MR_OPTIONS_HELP, MR_OPTIONS_HELP_MAN };

/*
 * Fills `*options` (the command's struct, all of whose table fields are written) from
 * default, `env` (as environ; may be NULL) and argv[1..]. Moves the options to the front
 * of argv, in order; argv[*first_positional .. argc-1] are the positionals, without a
 * "--" before them. *action tells if --help or --help-man was met, which ends the
 * parsing. MR_EUSAGE, with the option or variable, the value and what is allowed in
 * `error`. Bad tables assert.
 */
enum mr_status mr_options_parse(const struct mr_option_table *table, void *options,
                                int argc, char **argv, char *const *env,
                                int *first_positional, enum mr_options_action *action,
                                struct mr_error *error);

/*
 * The start of a command's main: parses with the process' environment; prints help to
 * stdout, or the error in one line to stderr. Returns -1 to go on, else the exit status:
 * 0 after help, 2 after an error.
 */
int mr_options_start(const struct mr_option_table *table, void *options, int argc,
                     char **argv, int *first_positional);

/*
 * The same for a command that has but options, in a struct of `size` bytes, which is cleared first. `check` sees them when all
 * were read: it sets its error for what does not go together, MR_EUSAGE, and that is told in one line, too.
 */
int mr_options_read(const struct mr_option_table *table, void *options, size_t size,
                    int argc, char **argv,
                    enum mr_status (*check)(void *options, struct mr_error *error));

/*
 * Appends the text of --help, wrapped to `columns` (at least 40). The buffer's failures.
 */
enum mr_status mr_options_help(const struct mr_option_table *table, size_t columns,
                               struct mr_buffer *out);

/* Appends the man page in scdoc(5) form. The buffer's failures. */
enum mr_status mr_options_man(const struct mr_option_table *table, struct mr_buffer *out);

/*
 * Reads one value as the table's kind; for values that come from elsewhere, such as
 * attributes. `where` names the origin in the error text ("--lanes"). MR_EUSAGE.
 */
enum mr_status mr_options_parse_value(const struct mr_option_spec *spec,
                                      const char *where, const char *text, void *field,
                                      struct mr_error *error);

/* Writes the variable's name ("MILLRACE_BLOCK_TIMEOUT", or "" for none) to `name`. */
#define MR_OPTION_ENV_SIZE 64
void mr_options_env_name(const struct mr_option_spec *spec,
                         char name[MR_OPTION_ENV_SIZE]);

/*
 * The one of `count` words nearest to `word` by edit distance, or NULL if none is near
 * (more than a third of its letters differ). Also for subcommands.
 */
const char *mr_options_nearest(const char *word, const char *const *words, size_t count);
/*
 * To stderr: "COMMAND: unknown WHAT 'WORD'", and the nearest of the words, or where they
 * are listed.
 */
void mr_options_tell_unknown(const char *command, const char *what, const char *word,
                             const char *const *words, size_t count);

#endif
