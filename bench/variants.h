/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways to make a program: by each of our doors, by what other tracers want, or with nothing compiled in. Compiling
 * and linking by them. One thread.
 *
 *     status = mr_variant_flags(&build, variant, &flags, &error);
 *     status = mr_variant_compile(&build, variant, "bench/programs/workload.c", "w.o", &flags, &objects, &error);
 *     status = mr_variant_link(&build, variant, path, &objects, &error);
 *
 * To add a door or a rival: a line in variants.c.
 */
#ifndef MR_BENCH_VARIANTS_H
#define MR_BENCH_VARIANTS_H

#include "base/clock.h"
#include "bench/build.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_VARIANT_TOOL_NS (60 * MR_SECOND_NS)

enum mr_variant_kind {
    MR_VARIANT_PLAIN, /* nothing is compiled in */
    MR_VARIANT_NOPS,  /* what door patchable compiles in, as hand-written nops */
    MR_VARIANT_DOOR,
    MR_VARIANT_RIVAL
};

struct mr_rivals;

struct mr_variant {
    const char *name;
    enum mr_variant_kind kind;
    const char *package;      /* of pkg-config; NULL: none */
    const char *cflags_what;  /* what pkg-config is asked for; NULL: --cflags */
    const char *compiler;     /* NULL: the build's */
    const char *cflags;       /* more, for what is traced */
    const char *libs;         /* more, for linking */
    const char *tool;         /* the rival's program, which must be there; NULL */
    const char *words;        /* of a rival: how it is run, to be told */
    const char *clock, *sink; /* of a rival, for the case's name */
    bool spans_only;          /* has no way into code that nobody changed */
    /* Of a rival; words come before the program and its arguments. MR_EIO ... */
    enum mr_status (*begin)(struct mr_rivals *rivals, struct mr_words *argv,
                            struct mr_words *env, struct mr_error *error);
    /* Fills recorded events and bytes, NAN where it has no account, and cleans up. */
    void (*end)(struct mr_rivals *rivals, double *events, double *bytes);
};

extern const struct mr_variant mr_variants[];
extern const size_t mr_variant_count;

/* Adds the chosen ones of a kind, by their names, to the bits of *variants; see names.h. MR_EUSAGE. */
enum mr_status mr_variants_choose(const char *option, const char *text,
                                  enum mr_variant_kind kind, uint32_t *variants,
                                  struct mr_error *error);

/* The program of its compiler into which nothing is compiled. */
const struct mr_variant *mr_variant_plain(const struct mr_variant *variant);

/* MR_ENOTFOUND when its tool or package is not on this machine; the error says what to do. */
enum mr_status mr_variant_find(const struct mr_build *build,
                               const struct mr_variant *variant, struct mr_error *error);

/* Adds the flags for what is traced. MR_ENOTFOUND. */
enum mr_status mr_variant_flags(const struct mr_build *build,
                                const struct mr_variant *variant, struct mr_words *words,
                                struct mr_error *error);
/* Compiles `source`; its object is added to `objects`. See mr_build_object(). */
enum mr_status mr_variant_compile(const struct mr_build *build,
                                  const struct mr_variant *variant, const char *source,
                                  const char *object, const struct mr_words *flags,
                                  struct mr_words *objects, struct mr_error *error);
/* Compiles what is measured, bench/programs/workload.c, with the variant's flags. */
enum mr_status mr_variant_compile_workload(const struct mr_build *build,
                                           const struct mr_variant *variant,
                                           struct mr_words *objects,
                                           struct mr_error *error);
/* Compiles bench/programs/NAME.c around it: loops and clock reads, which are never traced. */
enum mr_status mr_variant_compile_program(const struct mr_build *build,
                                          const struct mr_variant *variant,
                                          const char *name, struct mr_words *objects,
                                          struct mr_error *error);
/* Links `path` of objects, to which the libraries are added. */
enum mr_status mr_variant_link(const struct mr_build *build,
                               const struct mr_variant *variant, const char *path,
                               struct mr_words *objects, struct mr_error *error);

#endif
