/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/probe.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_FILES 8u /* a compiler is slow with 100,000 functions at once */

const char *mr_probe_program(const struct mr_probe_bench *bench,
                             const struct mr_variant *variant, enum mr_workload workload,
                             char path[PATH_MAX])
{
    char name[64];

    (void)snprintf(name, sizeof(name), "%s.%s",
                   MR_WORKLOAD_SMALL(workload) ? "subject" : mr_workload_names[workload],
                   variant->name);
    return mr_build_path(&bench->build, name, path);
}

/* The variant's flags for what is traced. */
static enum mr_status traced_flags(const struct mr_probe_bench *bench,
                                   const struct mr_variant *variant,
                                   struct mr_words *words, struct mr_error *error)
{
    mr_words_split(words, "-Isource");
    mr_words_split(words, variant->cflags);
    if (!variant->package)
        return MR_OK;
    return mr_build_flags(&bench->build, variant->package,
                          variant->cflags_what ? variant->cflags_what : "--cflags", words,
                          error);
}

static enum mr_status link_program(const struct mr_probe_bench *bench,
                                   const struct mr_variant *variant,
                                   enum mr_workload workload, struct mr_words *objects,
                                   struct mr_error *error)
{
    char path[PATH_MAX];
    enum mr_status status = MR_OK;

    mr_words_split(objects, variant->libs);
    if (variant->package)
        status =
            mr_build_flags(&bench->build, variant->package, "--libs", objects, error);
    mr_words_split(objects, "-lm -ldl -pthread");
    if (status == MR_OK)
        status = mr_build_link(&bench->build, variant->compiler,
                               mr_probe_program(bench, variant, workload, path), objects,
                               error);
    return status;
}

/* Compiles `source`; its object is added to `objects`. */
static enum mr_status compile(const struct mr_probe_bench *bench,
                              const struct mr_variant *variant, const char *source,
                              const char *object, const struct mr_words *flags,
                              struct mr_words *objects, struct mr_error *error)
{
    const struct mr_build_object wanted = {.compiler = variant->compiler,
                                           .source = source,
                                           .object = object,
                                           .flags = flags};

    mr_words_add(objects, "%s", object);
    return mr_build_object(&bench->build, &wanted, error);
}

/* The harness of the small workloads is never traced. */
static enum mr_status compile_subject(const struct mr_probe_bench *bench,
                                      const struct mr_variant *variant,
                                      struct mr_words *objects, struct mr_error *error)
{
    struct mr_words flags = {0};
    char object[64];
    enum mr_status status = MR_OK;

    mr_words_split(&flags, "-std=c17 -D_GNU_SOURCE -Isource");
    if (variant->package) {
        mr_words_add(&flags, "-DSUBJECT_PROBE");
        status = mr_build_flags(&bench->build, variant->package, "--cflags-only-I",
                                &flags, error);
    }
    (void)snprintf(object, sizeof(object), "subject.%s.o", variant->name);
    if (status == MR_OK)
        status = compile(bench, variant, "bench/programs/subject.c", object, &flags,
                         objects, error);
    mr_words_fini(&flags);
    return status;
}

static enum mr_status compile_nops(struct mr_probe_bench *bench,
                                   const struct mr_variant *variant,
                                   const struct mr_words *flags, struct mr_words *objects,
                                   struct mr_error *error)
{
    char from[PATH_MAX], to[PATH_MAX];
    struct mr_words line = {0}, none = {0};
    enum mr_status status;

    mr_words_split(&line, bench->build.compiler);
    mr_words_split(&line, "-O2");
    mr_words_add_all(&line, flags);
    mr_words_split(&line, "-S source/bench/programs/workload.c -o workload.patchable.s");
    status = mr_build_run(&bench->build, &line, MR_PROBE_TOOL_NS, error);
    if (status == MR_OK)
        status =
            mr_probe_nops(mr_build_path(&bench->build, "workload.patchable.s", from),
                          mr_build_path(&bench->build, "workload.nops.s", to), error);
    if (status == MR_OK)
        status = compile(bench, variant, to, "workload.nops.o", &none, objects, error);
    mr_words_fini(&line);
    return status;
}

static enum mr_status build_small(struct mr_probe_bench *bench,
                                  const struct mr_variant *variant,
                                  struct mr_words *objects, struct mr_error *error)
{
    struct mr_words flags = {0};
    char object[64];
    enum mr_status status = traced_flags(bench, variant, &flags, error);

    (void)snprintf(object, sizeof(object), "workload.%s.o", variant->name);
    if (status == MR_OK)
        status = compile_subject(bench, variant, objects, error);
    if (status == MR_OK && variant->kind == MR_VARIANT_NOPS)
        status = compile_nops(bench, variant, &flags, objects, error);
    else if (status == MR_OK)
        status = compile(bench, variant, "bench/programs/workload.c", object, &flags,
                         objects, error);
    mr_words_fini(&flags);
    return status;
}

static enum mr_status build_sqlite(struct mr_probe_bench *bench,
                                   const struct mr_variant *variant,
                                   struct mr_words *objects, struct mr_error *error)
{
    static const char *const sources[] = {"sqlite3", "speedtest1"};
    struct mr_words flags = {0};
    enum mr_status status = traced_flags(bench, variant, &flags, error);

    mr_words_split(&flags, "-w");
    mr_words_add(&flags, "-I%s", bench->sqlite);
    for (size_t i = 0; i < MR_ARRAY_COUNT(sources) && status == MR_OK; i++) {
        char source[PATH_MAX], object[64];

        (void)snprintf(source, sizeof(source), "%.*s/%s.c", PATH_MAX - 32, bench->sqlite,
                       sources[i]);
        (void)snprintf(object, sizeof(object), "%s.%s.o", sources[i], variant->name);
        status = compile(bench, variant, source, object, &flags, objects, error);
    }
    mr_words_fini(&flags);
    return status;
}

static enum mr_status build_stamps(struct mr_probe_bench *bench,
                                   const struct mr_variant *variant,
                                   struct mr_words *objects, struct mr_error *error)
{
    struct mr_words flags = {0};
    char object[64];
    enum mr_status status = traced_flags(bench, variant, &flags, error);

    (void)snprintf(object, sizeof(object), "workload.%s.o", variant->name);
    if (status == MR_OK)
        status = compile(bench, variant, "bench/programs/workload.c", object, &flags,
                         objects, error);
    mr_words_fini(&flags);
    mr_words_split(&flags, "-std=c17 -D_GNU_SOURCE -Isource");
    (void)snprintf(object, sizeof(object), "stamps.%s.o", variant->name);
    if (status == MR_OK)
        status = mr_build_flags(&bench->build, variant->package, "--cflags-only-I",
                                &flags, error);
    if (status == MR_OK)
        status = compile(bench, variant, "bench/programs/stamps.c", object, &flags,
                         objects, error);
    mr_words_fini(&flags);
    return status;
}

/* functions_N.c: a part of the functions of workload start. */
static enum mr_status generate(const struct mr_probe_bench *bench, uint32_t file,
                               struct mr_error *error)
{
    uint64_t count = bench->options.sites / START_FILES;
    struct mr_buffer text;
    char name[64], path[PATH_MAX];
    enum mr_status status;

    mr_buffer_init(&text, SIZE_MAX / 2);
    status = mr_buffer_append_text(&text, "#include <stdint.h>\n");
    for (uint64_t i = file * count; i < (file + 1) * count && status == MR_OK; i++)
        status = mr_buffer_append_format(
            &text,
            "uint32_t function_%llu(uint32_t x);\n"
            "uint32_t function_%llu(uint32_t x) { return x * %lluu + 7u; }\n",
            (unsigned long long)i, (unsigned long long)i, (unsigned long long)i);
    (void)snprintf(name, sizeof(name), "source/functions_%u.c", file);
    if (status == MR_OK)
        status = mr_file_write(mr_build_path(&bench->build, name, path),
                               mr_buffer_span(&text), error);
    mr_buffer_fini(&text);
    return status;
}

static enum mr_status build_start(struct mr_probe_bench *bench,
                                  const struct mr_variant *variant,
                                  struct mr_words *objects, struct mr_error *error)
{
    struct mr_words flags = {0};
    char source[64], object[64];
    enum mr_status status = traced_flags(bench, variant, &flags, error);

    for (uint32_t i = 0; i < START_FILES && status == MR_OK; i++) {
        (void)snprintf(source, sizeof(source), "functions_%u.c", i);
        (void)snprintf(object, sizeof(object), "functions_%u.%s.o", i, variant->name);
        status = generate(bench, i, error);
        if (status == MR_OK)
            status = compile(bench, variant, source, object, &flags, objects, error);
    }
    mr_words_fini(&flags);
    mr_words_split(&flags, "-std=c17 -D_GNU_SOURCE");
    (void)snprintf(object, sizeof(object), "start.%s.o", variant->name);
    if (status == MR_OK)
        status = compile(bench, variant, "bench/programs/start.c", object, &flags,
                         objects, error);
    mr_words_fini(&flags);
    return status;
}

static enum mr_status (*const builders[MR_WORKLOAD_COUNT])(
    struct mr_probe_bench *bench, const struct mr_variant *variant,
    struct mr_words *objects, struct mr_error *error) = {
    [MR_WORKLOAD_TINY] = build_small,  [MR_WORKLOAD_REC10] = build_small,
    [MR_WORKLOAD_BODY] = build_small,  [MR_WORKLOAD_SQLITE] = build_sqlite,
    [MR_WORKLOAD_START] = build_start, [MR_WORKLOAD_STAMPS] = build_stamps,
};

enum mr_status mr_probe_build(struct mr_probe_bench *bench,
                              const struct mr_variant *variant, enum mr_workload workload,
                              struct mr_error *error)
{
    struct mr_words objects = {0};
    enum mr_status status;

    if (!MR_WORKLOAD_SMALL(workload) && workload != MR_WORKLOAD_STAMPS &&
        (variant->spans_only || variant->kind == MR_VARIANT_NOPS))
        return mr_error_set(error, MR_ENOTFOUND, "it has no such program");
    if (workload == MR_WORKLOAD_SQLITE && !*bench->sqlite)
        return mr_error_set(error, MR_ENOTFOUND,
                            "no sources of SQLite: run scripts/sqlite-fetch.sh, or name "
                            "them with --sqlite");
    status = builders[workload](bench, variant, &objects, error);
    if (status == MR_OK)
        status = link_program(bench, variant, workload, &objects, error);
    mr_words_fini(&objects);
    return status;
}

uint64_t mr_probe_loaded_bytes(const char *path)
{
    FILE *file = fopen(path, "re");
    uint64_t bytes = 0;
    Elf64_Ehdr head;
    Elf64_Phdr part;

    if (!file)
        return 0;
    if (fread(&head, sizeof(head), 1, file) == 1 &&
        memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
        head.e_ident[EI_CLASS] == ELFCLASS64 &&
        fseek(file, (long)head.e_phoff, SEEK_SET) == 0)
        for (int i = 0; i < head.e_phnum && fread(&part, sizeof(part), 1, file) == 1; i++)
            bytes += part.p_type == PT_LOAD ? part.p_filesz : 0;
    (void)fclose(file);
    return bytes;
}
