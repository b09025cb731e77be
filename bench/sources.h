/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sources of the measured programs (bench/programs/), inside the command: it compiles
 * them wherever it is installed. Made by embed.cmake.
 */
#ifndef MR_BENCH_SOURCES_H
#define MR_BENCH_SOURCES_H

#include <stddef.h>
#include <stdint.h>

struct mr_source_file {
    const char *name; /* "bench/programs/workload.c" */
    const uint8_t *data;
    size_t size;
};

extern const struct mr_source_file mr_source_files[];
extern const size_t mr_source_file_count;

#endif
