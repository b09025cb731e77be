/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/probe.h"

#include "bench/interrupt.h"
#include "bench/machine.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_BLOCKS 100u /* of one object each; all are words of one command line */
#define START_STEPS 8u

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

static enum mr_status compile_nops(struct mr_probe_bench *bench,
                                   const struct mr_variant *variant,
                                   struct mr_words *objects, struct mr_error *error)
{
    char from[PATH_MAX], to[PATH_MAX];
    struct mr_words line = {0}, flags = {0}, none = {0};
    enum mr_status status = mr_variant_flags(&bench->build, variant, &flags, error);

    mr_words_split(&line, bench->build.compiler);
    mr_words_split(&line, "-O2");
    mr_words_add_all(&line, &flags);
    mr_words_split(&line, "-S source/bench/programs/workload.c -o workload.patchable.s");
    if (status == MR_OK)
        status = mr_build_run(&bench->build, &line, MR_VARIANT_TOOL_NS, error);
    if (status == MR_OK)
        status =
            mr_probe_nops(mr_build_path(&bench->build, "workload.patchable.s", from),
                          mr_build_path(&bench->build, "workload.nops.s", to), error);
    if (status == MR_OK)
        status = mr_variant_compile(&bench->build, variant, to, "workload.nops.o", &none,
                                    objects, error);
    mr_words_fini(&line);
    mr_words_fini(&flags);
    return status;
}

static enum mr_status build_small(struct mr_probe_bench *bench,
                                  const struct mr_variant *variant,
                                  struct mr_words *objects, struct mr_error *error)
{
    enum mr_status status =
        mr_variant_compile_program(&bench->build, variant, "subject", objects, error);

    if (status != MR_OK)
        return status;
    return variant->kind == MR_VARIANT_NOPS
               ? compile_nops(bench, variant, objects, error)
               : mr_variant_compile_workload(&bench->build, variant, objects, error);
}

static enum mr_status build_sqlite(struct mr_probe_bench *bench,
                                   const struct mr_variant *variant,
                                   struct mr_words *objects, struct mr_error *error)
{
    static const char *const sources[] = {"sqlite3", "speedtest1"};
    struct mr_words flags = {0};
    enum mr_status status = mr_variant_flags(&bench->build, variant, &flags, error);

    mr_words_split(&flags, "-w");
    mr_words_add(&flags, "-I%s", bench->sqlite);
    for (size_t i = 0; i < MR_ARRAY_COUNT(sources) && status == MR_OK; i++) {
        char source[PATH_MAX], object[64];

        (void)snprintf(source, sizeof(source), "%.*s/%s.c", PATH_MAX - 32, bench->sqlite,
                       sources[i]);
        (void)snprintf(object, sizeof(object), "%s.%s.o", sources[i], variant->name);
        status = mr_variant_compile(&bench->build, variant, source, object, &flags,
                                    objects, error);
    }
    mr_words_fini(&flags);
    return status;
}

static enum mr_status build_stamps(struct mr_probe_bench *bench,
                                   const struct mr_variant *variant,
                                   struct mr_words *objects, struct mr_error *error)
{
    enum mr_status status =
        mr_variant_compile_workload(&bench->build, variant, objects, error);

    return status == MR_OK ? mr_variant_compile_program(&bench->build, variant, "stamps",
                                                        objects, error)
                           : status;
}

/*
 * block.c: one of the START_BLOCKS equal parts of workload start's functions. All of them
 * are static, so that one object may be linked as often as there are parts: a compiler
 * takes a minute for 100,000 functions, and a second for 1,000. They have 0 to 7 steps,
 * 90 bytes of code in the mean.
 */
static enum mr_status generate_block(const struct mr_probe_bench *bench,
                                     struct mr_error *error)
{
    uint64_t count = (bench->options.sites + START_BLOCKS - 1) / START_BLOCKS;
    struct mr_buffer text;
    char path[PATH_MAX];
    enum mr_status status;

    mr_buffer_init(&text, SIZE_MAX / 2);
    status = mr_buffer_append_text(&text, "#include \"bench/programs/workload.h\"\n");
    for (uint64_t i = 0; i < count && status == MR_OK; i++) {
        status = mr_buffer_append_format(
            &text,
            "static __attribute__((used)) uint32_t function_%" PRIu64 "(uint32_t x)\n{\n",
            i);
        for (uint64_t step = 0; step < i % START_STEPS && status == MR_OK; step++)
            status = mr_buffer_append_text(&text, "    x = WORKLOAD_STEP(x);\n");
        if (status == MR_OK)
            status =
                mr_buffer_append_format(&text, "    return x + %" PRIu64 "u;\n}\n", i);
    }
    if (status == MR_OK)
        status = mr_file_write(mr_build_path(&bench->build, "source/block.c", path),
                               mr_buffer_span(&text), error);
    mr_buffer_fini(&text);
    return status;
}

static enum mr_status build_start(struct mr_probe_bench *bench,
                                  const struct mr_variant *variant,
                                  struct mr_words *objects, struct mr_error *error)
{
    struct mr_words flags = {0};
    char object[64];
    enum mr_status status = mr_variant_flags(&bench->build, variant, &flags, error);

    (void)snprintf(object, sizeof(object), "block.%s.o", variant->name);
    if (status == MR_OK)
        status = mr_variant_compile(&bench->build, variant, "block.c", object, &flags,
                                    objects, error);
    for (uint32_t i = 1; i < START_BLOCKS; i++)
        mr_words_add(objects, "%s", object);
    mr_words_fini(&flags);
    mr_words_split(&flags, "-std=c17 -D_GNU_SOURCE");
    (void)snprintf(object, sizeof(object), "start.%s.o", variant->name);
    if (status == MR_OK)
        status = mr_variant_compile(&bench->build, variant, "bench/programs/start.c",
                                    object, &flags, objects, error);
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

/* Compiles what a program is made of. */
static enum mr_status build_objects(struct mr_probe_bench *bench,
                                    const struct mr_variant *variant,
                                    enum mr_workload workload, struct mr_words *objects,
                                    struct mr_error *error)
{
    if (!MR_WORKLOAD_SMALL(workload) && workload != MR_WORKLOAD_STAMPS &&
        (variant->spans_only || variant->kind == MR_VARIANT_NOPS))
        return mr_error_set(error, MR_ENOTFOUND, "it has no such program");
    if (workload == MR_WORKLOAD_SQLITE && !*bench->sqlite)
        return mr_error_set(error, MR_ENOTFOUND,
                            "no sources of SQLite: run scripts/sqlite-fetch.sh, or name "
                            "them with --sqlite");
    return builders[workload](bench, variant, objects, error);
}

/* In a process of its own; what fails here fails again, and is told, in mr_probe_build(). */
static pid_t start_compiling(struct mr_probe_bench *bench,
                             const struct mr_variant *variant, enum mr_workload workload)
{
    struct mr_words objects = {0};
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    (void)build_objects(bench, variant, workload, &objects, NULL);
    _exit(0);
}

/* Until at most `most` of the processes are left; returns how many are. */
static uint32_t wait_until(uint32_t running, uint32_t most)
{
    while (running > most)
        if (wait(NULL) > 0)
            running--;
        else if (errno != EINTR)
            return 0;
    return running;
}

enum mr_status mr_probe_compile(struct mr_probe_bench *bench, uint32_t variants,
                                enum mr_workload workload, struct mr_error *error)
{
    uint32_t cpus = mr_machine_cpus(), running = 0;
    enum mr_status status = MR_OK;

    /* Files that several compilers read are written before they start. */
    if (workload == MR_WORKLOAD_START)
        status = generate_block(bench, error);
    for (size_t i = 0; i < mr_variant_count && status == MR_OK; i++) {
        if (!(variants >> i & 1))
            continue;
        running = wait_until(running, cpus > 1 ? cpus - 1 : 0);
        if (mr_interrupt_seen())
            status = MR_END;
        else if (start_compiling(bench, &mr_variants[i], workload) > 0)
            running++;
    }
    (void)wait_until(running, 0);
    return mr_interrupt_seen() ? MR_END : status;
}

enum mr_status mr_probe_build(struct mr_probe_bench *bench,
                              const struct mr_variant *variant, enum mr_workload workload,
                              struct mr_error *error)
{
    struct mr_words objects = {0};
    char path[PATH_MAX];
    enum mr_status status = build_objects(bench, variant, workload, &objects, error);

    if (status == MR_OK)
        status = mr_variant_link(&bench->build, variant,
                                 mr_probe_program(bench, variant, workload, path),
                                 &objects, error);
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
