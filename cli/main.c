/* SPDX-License-Identifier: Apache-2.0 */
/* The `millrace` command: a door to each room. */
#include "base/compiler.h"
#include "base/options.h"
#include "bench/bench.h"
#include "cli/attach.h"
#include "cli/record.h"
#include "cli/report.h"
#include "master/master.h"
#include "scale/scale.h"
#include "worker/worker.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 2

struct room {
    const char *name;
    int (*command)(int argc, char **argv);
    const char *summary;
};

static const struct room rooms[] = {
    {"record", mr_record_command, "run a program and trace every call of it"},
    {"attach", mr_attach_command, "switch tracing of a running program on and off"},
    {"report", mr_report_command, "print again what a recording holds"},
    {"worker", mr_worker_command,
     "take events, reduce them, send them to the next level"},
    {"master", mr_master_command, "keep the model, answer queries, serve the page"},
    {"scale", mr_scale_command, "start and stop workers of a level by how busy they are"},
    {"bench", mr_bench_command, "measure what tracing costs on this machine"},
};

static void print_help(FILE *out)
{
    (void)fputs("millrace: live, unsampled call tracing\n\n"
                "Usage: millrace COMMAND [OPTION...] [ARGUMENT...]\n\n"
                "Commands:\n",
                out);
    for (size_t i = 0; i < MR_ARRAY_COUNT(rooms); i++)
        (void)fprintf(out, "  %-10s%s\n", rooms[i].name, rooms[i].summary);
    (void)fputs("\nOptions:\n"
                "  --help      this text\n"
                "  --version   the version\n\n"
                "`millrace COMMAND --help` tells the options of a command.\n"
                "To begin:  millrace record ./program\n",
                out);
}

static int unknown_command(const char *name)
{
    const char *names[MR_ARRAY_COUNT(rooms)];

    for (size_t i = 0; i < MR_ARRAY_COUNT(rooms); i++)
        names[i] = rooms[i].name;
    mr_options_tell_unknown("millrace", "command", name, names, MR_ARRAY_COUNT(rooms));
    return EXIT_USAGE;
}

static int unknown_option(const char *text)
{
    static const char *const names[] = {"--help", "--version"};

    mr_options_tell_unknown("millrace", "option", text, names, MR_ARRAY_COUNT(names));
    return EXIT_USAGE;
}

static int enter(int argc, char **argv)
{
    for (size_t i = 0; i < MR_ARRAY_COUNT(rooms); i++) {
        if (strcmp(argv[1], rooms[i].name) == 0)
            return rooms[i].command(argc - 1, argv + 1);
    }
    return unknown_command(argv[1]);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        (void)printf("millrace %s\n", MR_VERSION);
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    return argv[1][0] == '-' ? unknown_option(argv[1]) : enter(argc, argv);
}
