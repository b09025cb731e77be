/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/overhead.h"

#include <stdio.h>

const char *mr_overhead_program(const struct mr_overhead_bench *bench,
                                const struct mr_variant *variant, char path[PATH_MAX])
{
    char name[64];

    (void)snprintf(name, sizeof(name), "traces.%s", variant->name);
    return mr_build_path(&bench->build, name, path);
}

/* The loop and the clock reads are never traced. */
static enum mr_status loop_flags(const struct mr_overhead_bench *bench,
                                 const struct mr_variant *variant, struct mr_words *flags,
                                 struct mr_error *error)
{
    mr_words_split(flags, "-std=c17 -D_GNU_SOURCE -Isource");
    if (!variant->package)
        return MR_OK;
    mr_words_add(flags, "-DTRACES_PROBE");
    return mr_build_flags(&bench->build, variant->package, "--cflags-only-I", flags,
                          error);
}

static enum mr_status compile(const struct mr_overhead_bench *bench,
                              const struct mr_variant *variant, struct mr_words *objects,
                              struct mr_error *error)
{
    struct mr_words traced = {0}, loop = {0};
    char object[64];
    enum mr_status status = mr_variant_flags(&bench->build, variant, &traced, error);

    (void)snprintf(object, sizeof(object), "workload.%s.o", variant->name);
    if (status == MR_OK)
        status = mr_variant_compile(&bench->build, variant, "bench/programs/workload.c",
                                    object, &traced, objects, error);
    if (status == MR_OK)
        status = loop_flags(bench, variant, &loop, error);
    (void)snprintf(object, sizeof(object), "traces.%s.o", variant->name);
    if (status == MR_OK)
        status = mr_variant_compile(&bench->build, variant, "bench/programs/traces.c",
                                    object, &loop, objects, error);
    mr_words_fini(&traced);
    mr_words_fini(&loop);
    return status;
}

enum mr_status mr_overhead_build(struct mr_overhead_bench *bench,
                                 const struct mr_variant *variant, struct mr_error *error)
{
    struct mr_words objects = {0};
    char path[PATH_MAX];
    enum mr_status status = mr_variant_find(&bench->build, variant, error);

    if (status == MR_OK)
        status = compile(bench, variant, &objects, error);
    if (status == MR_OK)
        status =
            mr_variant_link(&bench->build, variant,
                            mr_overhead_program(bench, variant, path), &objects, error);
    mr_words_fini(&objects);
    return status;
}
