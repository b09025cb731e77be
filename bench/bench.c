/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench.h"

#include "base/compiler.h"
#include "base/options.h"
#include "bench/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench {
    const char *name;
    int (*command)(int argc, char **argv);
    const char *summary;
};

static const struct bench benches[] = {
    {"probe", mr_bench_probe_command,
     "what a traced call costs, by each door, beside the floor and other tracers"},
    {"pipeline", mr_bench_pipeline_command,
     "what a worker costs per event, by part and stream, beside a plain loop"},
    {"overhead", mr_bench_overhead_command,
     "what tracing costs a program, phase by phase, after MooBench, beside its peers"},
    {"chain", mr_bench_chain_command,
     "what a chain costs per event and per sender, by workers and levels; a model of "
     "many hosts"},
};

static void print_help(FILE *out)
{
    (void)fputs("millrace bench: what tracing costs, measured on this machine\n\n"
                "Usage: millrace bench COMMAND [OPTION...]\n\n"
                "Commands:\n",
                out);
    for (size_t i = 0; i < MR_ARRAY_COUNT(benches); i++)
        (void)fprintf(out, "  %-10s%s\n", benches[i].name, benches[i].summary);
    (void)fputs("\n`millrace bench COMMAND --help` tells the options of a command.\n",
                out);
}

static int unknown(const char *name)
{
    const char *names[MR_ARRAY_COUNT(benches)];

    for (size_t i = 0; i < MR_ARRAY_COUNT(benches); i++)
        names[i] = benches[i].name;
    mr_options_tell_unknown("millrace bench", "command", name, names,
                            MR_ARRAY_COUNT(benches));
    return MR_BENCH_EXIT_USAGE;
}

int mr_bench_command(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return MR_BENCH_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    for (size_t i = 0; i < MR_ARRAY_COUNT(benches); i++)
        if (strcmp(argv[1], benches[i].name) == 0)
            return benches[i].command(argc - 1, argv + 1);
    return unknown(argv[1]);
}
