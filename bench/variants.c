/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/variants.h"

#include "bench/names.h"
#include "bench/rivals.h"

#include <stdio.h>

#define NAMES_MAX 24

/* As in docs/OPERATIONS.md: the flags that pkg-config gives, and no others. */
const struct mr_variant mr_variants[] = {
    {.name = "plain", .kind = MR_VARIANT_PLAIN},
    {.name = "plain-clang", .kind = MR_VARIANT_PLAIN, .compiler = "clang"},
    {.name = "nops",
     .kind = MR_VARIANT_NOPS,
     .cflags = "-pg -mfentry -minstrument-return=call"},
    {.name = "manual",
     .kind = MR_VARIANT_DOOR,
     .package = "millrace-manual",
     .cflags = "-DWORKLOAD_SPANS",
     .spans_only = true},
    {.name = "hooks", .kind = MR_VARIANT_DOOR, .package = "millrace"},
    {.name = "patchable", .kind = MR_VARIANT_DOOR, .package = "millrace-patchable"},
    {.name = "patchable-clang",
     .kind = MR_VARIANT_DOOR,
     .package = "millrace-patchable",
     .cflags_what = "--variable=clang_cflags",
     .compiler = "clang",
     .libs = "-fxray-instrument -fnoxray-link-deps",
     .tool = "clang"},
    {.name = "uftrace",
     .kind = MR_VARIANT_RIVAL,
     .cflags = "-pg",
     .libs = "-pg",
     .tool = "uftrace",
     .words = MR_RIVAL_UFTRACE " FOLDER",
     .clock = "monotonic",
     .sink = "file",
     .begin = mr_rival_uftrace_begin,
     .end = mr_rival_uftrace_end},
    {.name = "lttng",
     .kind = MR_VARIANT_RIVAL,
     .cflags = "-finstrument-functions",
     .tool = "lttng",
     .words = "lttng create; lttng enable-event -u " MR_RIVAL_LTTNG_EVENTS
              "; lttng start; " MR_RIVAL_LTTNG_ENV,
     .clock = "monotonic",
     .sink = "file",
     .begin = mr_rival_lttng_begin,
     .end = mr_rival_lttng_end},
    {.name = "xray-fdr",
     .kind = MR_VARIANT_RIVAL,
     .compiler = "clang",
     .cflags = "-fxray-instrument -fxray-instruction-threshold=1",
     .libs = "-fxray-instrument",
     .tool = "clang",
     .words = "XRAY_OPTIONS=" MR_RIVAL_XRAY "; " MR_RIVAL_XRAY_FDR,
     .clock = "tsc",
     .sink = "memory",
     .begin = mr_rival_xray_begin,
     .end = mr_rival_xray_end},
};
const size_t mr_variant_count = MR_ARRAY_COUNT(mr_variants);

enum mr_status mr_variants_choose(const char *option, const char *text,
                                  enum mr_variant_kind kind, uint32_t *variants,
                                  struct mr_error *error)
{
    const char *names[NAMES_MAX] = {NULL};
    size_t at[NAMES_MAX], count = 0;
    uint32_t mask;
    enum mr_status status;

    for (size_t i = 0; i < mr_variant_count; i++)
        if (mr_variants[i].kind == kind) {
            names[count] = mr_variants[i].name;
            at[count++] = i;
        }
    status = mr_names_choose(option, text, names, count, &mask, error);
    for (size_t i = 0; i < count && status == MR_OK; i++)
        if (mask >> i & 1)
            *variants |= UINT32_C(1) << at[i];
    return status;
}

const struct mr_variant *mr_variant_plain(const struct mr_variant *variant)
{
    for (size_t i = 0; i < mr_variant_count; i++) {
        const struct mr_variant *plain = &mr_variants[i];

        if (plain->kind == MR_VARIANT_PLAIN &&
            (plain->compiler != NULL) == (variant->compiler != NULL))
            return plain;
    }
    return &mr_variants[0];
}

enum mr_status mr_variant_find(const struct mr_build *build,
                               const struct mr_variant *variant, struct mr_error *error)
{
    struct mr_words flags = {0};
    char version[16];
    enum mr_status status = MR_OK;

    if (variant->tool) {
        mr_build_version(build, variant->tool, version, sizeof(version));
        if (!*version)
            return mr_error_set(
                error, MR_ENOTFOUND,
                "%s: not installed here (Debian: scripts/install-deps.sh bench)",
                variant->name);
    }
    if (variant->package)
        status = mr_build_flags(build, variant->package, "--cflags", &flags, NULL);
    mr_words_fini(&flags);
    return status == MR_OK
               ? MR_OK
               : mr_error_set(error, MR_ENOTFOUND, "%s: pkg-config knows no %s",
                              variant->name, variant->package);
}

enum mr_status mr_variant_flags(const struct mr_build *build,
                                const struct mr_variant *variant, struct mr_words *words,
                                struct mr_error *error)
{
    mr_words_split(words, "-Isource");
    mr_words_split(words, variant->cflags);
    if (!variant->package)
        return MR_OK;
    return mr_build_flags(build, variant->package,
                          variant->cflags_what ? variant->cflags_what : "--cflags", words,
                          error);
}

enum mr_status mr_variant_compile(const struct mr_build *build,
                                  const struct mr_variant *variant, const char *source,
                                  const char *object, const struct mr_words *flags,
                                  struct mr_words *objects, struct mr_error *error)
{
    const struct mr_build_object wanted = {.compiler = variant->compiler,
                                           .source = source,
                                           .object = object,
                                           .flags = flags};

    mr_words_add(objects, "%s", object);
    return mr_build_object(build, &wanted, error);
}

enum mr_status mr_variant_compile_workload(const struct mr_build *build,
                                           const struct mr_variant *variant,
                                           struct mr_words *objects,
                                           struct mr_error *error)
{
    struct mr_words flags = {0};
    char object[64];
    enum mr_status status = mr_variant_flags(build, variant, &flags, error);

    (void)snprintf(object, sizeof(object), "workload.%s.o", variant->name);
    if (status == MR_OK)
        status = mr_variant_compile(build, variant, "bench/programs/workload.c", object,
                                    &flags, objects, error);
    mr_words_fini(&flags);
    return status;
}

enum mr_status mr_variant_compile_program(const struct mr_build *build,
                                          const struct mr_variant *variant,
                                          const char *name, struct mr_words *objects,
                                          struct mr_error *error)
{
    struct mr_words flags = {0};
    char source[96], object[64];
    enum mr_status status = MR_OK;

    mr_words_split(&flags, "-std=c17 -D_GNU_SOURCE -Isource");
    if (variant->package) {
        mr_words_add(&flags, "-DPROGRAM_PROBE");
        status =
            mr_build_flags(build, variant->package, "--cflags-only-I", &flags, error);
    }
    (void)snprintf(source, sizeof(source), "bench/programs/%s.c", name);
    (void)snprintf(object, sizeof(object), "%s.%s.o", name, variant->name);
    if (status == MR_OK)
        status =
            mr_variant_compile(build, variant, source, object, &flags, objects, error);
    mr_words_fini(&flags);
    return status;
}

enum mr_status mr_variant_link(const struct mr_build *build,
                               const struct mr_variant *variant, const char *path,
                               struct mr_words *objects, struct mr_error *error)
{
    enum mr_status status = MR_OK;

    mr_words_split(objects, variant->libs);
    if (variant->package)
        status = mr_build_flags(build, variant->package, "--libs", objects, error);
    mr_words_split(objects, "-lm -ldl -pthread");
    if (status == MR_OK)
        status = mr_build_link(build, variant->compiler, path, objects, error);
    return status;
}
