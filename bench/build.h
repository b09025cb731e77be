/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles measured programs as a user of millrace does: with the compiler of the machine
 * and the flags that pkg-config tells. One thread.
 *
 *     status = mr_build_init(&build, "./millrace.bench/programs", &error);
 *     status = mr_build_flags(&build, "millrace", "--cflags", &words, &error);
 *     status = mr_build_object(&build, &(struct mr_build_object){...}, &error);
 *     status = mr_build_link(&build, "tiny.hooks", &words, &error);
 *
 * Sources are written to FOLDER/source, programs to FOLDER. An object that is there, made by
 * the same command line from the same bytes of source, headers of millrace and specs (file
 * OBJECT.made says so), is kept: SQLite takes a minute.
 */
#ifndef MR_BENCH_BUILD_H
#define MR_BENCH_BUILD_H

#include "base/error.h"
#include "bench/command.h"

#include <limits.h>
#include <stdbool.h>

struct mr_build {
    char folder[PATH_MAX - 256];
    const char *compiler; /* $CC, or gcc */
    struct mr_words env;  /* PKG_CONFIG_PATH */
};

/*
 * Makes the folders, writes the sources, tries the compiler and pkg-config. MR_ENOTFOUND
 * says which of them is missing and what to do; MR_EIO.
 */
enum mr_status mr_build_init(struct mr_build *build, const char *folder,
                             struct mr_error *error);
void mr_build_fini(struct mr_build *build);

/* Adds what `pkg-config WHAT PACKAGE` says. MR_ENOTFOUND when there is no such package. */
enum mr_status mr_build_flags(const struct mr_build *build, const char *package,
                              const char *what, struct mr_words *words,
                              struct mr_error *error);

struct mr_build_object {
    const char *compiler; /* NULL: the build's */
    const char *source;   /* a path, or the name of an embedded one */
    const char *object;   /* its name in the folder */
    const struct mr_words *flags;
};

/* Compiles with -O2 and the flags. MR_EIO with the compiler's word, MR_ENOTFOUND. */
enum mr_status mr_build_object(const struct mr_build *build,
                               const struct mr_build_object *object,
                               struct mr_error *error);

/* Links FOLDER/PROGRAM from words: names of objects in the folder, and flags. */
enum mr_status mr_build_link(const struct mr_build *build, const char *compiler,
                             const char *program, const struct mr_words *words,
                             struct mr_error *error);

/* FOLDER/NAME */
const char *mr_build_path(const struct mr_build *build, const char *name,
                          char path[PATH_MAX]);

/* Runs `words` in the folder; for steps between. */
enum mr_status mr_build_run(const struct mr_build *build, const struct mr_words *words,
                            uint64_t timeout_ns, struct mr_error *error);

/* The first line of `TOOL --version`; "" where there is none. TOOL NULL: the compiler's. */
void mr_build_version(const struct mr_build *build, const char *tool, char *out,
                      size_t size);

/* Makes the folder and those above it. MR_EIO. */
enum mr_status mr_folder_make(const char *path, struct mr_error *error);
/* With all that is in it; what cannot be removed stays. */
void mr_folder_remove(const char *path);
/* Writes a file anew; one that holds just this is left alone. MR_EIO. */
enum mr_status mr_file_write(const char *path, struct mr_span content,
                             struct mr_error *error);

#endif
