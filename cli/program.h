/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `millrace record` must know of the program it is to run: where it lies, whether it can be
 * executed, and whether a probe is in it. Read with libelf; nothing is executed.
 *
 *     status = mr_program_find("./server", path, &error);
 *     status = mr_program_inspect(path, &program, &error);
 *     if (program.probe == MR_PROBE_NONE) ...
 */
#ifndef MR_CLI_PROGRAM_H
#define MR_CLI_PROGRAM_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>

enum mr_program_probe {
    MR_PROBE_NONE, /* no hook is called, the library is not linked */
    MR_PROBE_HOOKS, /* calls the hooks of -finstrument-functions; the library is not linked */
    MR_PROBE_LINKED, /* linked with libmillrace, shared or static */
    MR_PROBE_UNKNOWN, /* a script, or not an ELF file of this kind: what it runs may have one */
};

struct mr_program {
    enum mr_program_probe probe;
    bool is_static; /* no dynamic section: LD_PRELOAD does nothing */
};

/*
 * The file that execvp() would run for `name`. MR_ENOTFOUND: there is none; MR_EREFUSED: it is a
 * directory or not executable.
 */
enum mr_status mr_program_find(const char *name, char path[PATH_MAX],
                               struct mr_error *error);

/* Looks into the file. MR_EIO when it cannot be read. */
enum mr_status mr_program_inspect(const char *path, struct mr_program *program,
                                  struct mr_error *error);

#endif
