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

enum mr_status mr_overhead_build(struct mr_overhead_bench *bench,
                                 const struct mr_variant *variant, struct mr_error *error)
{
    struct mr_words objects = {0};
    char path[PATH_MAX];
    enum mr_status status = mr_variant_find(&bench->build, variant, error);

    if (status == MR_OK)
        status = mr_variant_compile_workload(&bench->build, variant, &objects, error);
    if (status == MR_OK)
        status =
            mr_variant_compile_program(&bench->build, variant, "traces", &objects, error);
    if (status == MR_OK)
        status =
            mr_variant_link(&bench->build, variant,
                            mr_overhead_program(bench, variant, path), &objects, error);
    mr_words_fini(&objects);
    return status;
}
