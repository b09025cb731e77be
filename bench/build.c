/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/build.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/hash.h"
#include "bench/interrupt.h"
#include "bench/sources.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOOL_NS (20 * MR_SECOND_NS)
#define COMPILE_NS (20 * MR_MINUTE_NS)

enum mr_status mr_folder_make(const char *path, struct mr_error *error)
{
    char part[PATH_MAX];
    size_t size = strlen(path);

    if (size == 0 || size >= sizeof(part))
        return mr_error_set(error, MR_EUSAGE, "'%.80s' is no folder's name", path);
    memcpy(part, path, size + 1);
    for (size_t i = 1; i <= size; i++) {
        if (part[i] != '/' && part[i] != '\0')
            continue;
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return mr_error_set_errno(error, MR_EIO, errno, "cannot make %s", part);
        if (i < size)
            part[i] = '/';
    }
    return MR_OK;
}

static bool holds(const char *path, struct mr_span content)
{
    FILE *file = fopen(path, "re");
    uint8_t *bytes = malloc(content.size + 1);
    bool is_same = file && bytes &&
                   fread(bytes, 1, content.size + 1, file) == content.size &&
                   memcmp(bytes, content.data, content.size) == 0;

    free(bytes);
    if (file)
        (void)fclose(file);
    return is_same;
}

enum mr_status mr_file_write(const char *path, struct mr_span content,
                             struct mr_error *error)
{
    FILE *file;
    bool is_good;

    if (content.size > 0 && holds(path, content))
        return MR_OK;
    file = fopen(path, "we");
    if (!file)
        return mr_error_set_errno(error, MR_EIO, errno, "cannot write %s", path);
    is_good = fwrite(content.data, 1, content.size, file) == content.size;
    if (fclose(file) != 0 || !is_good)
        return mr_error_set_errno(error, MR_EIO, errno, "cannot write %s", path);
    return MR_OK;
}

const char *mr_build_path(const struct mr_build *build, const char *name,
                          char path[PATH_MAX])
{
    (void)snprintf(path, PATH_MAX, "%s/%s", build->folder, name);
    return path;
}

static enum mr_status write_sources(const struct mr_build *build, struct mr_error *error)
{
    enum mr_status status = MR_OK;

    for (size_t i = 0; i < mr_source_file_count && status == MR_OK; i++) {
        const struct mr_source_file *source = &mr_source_files[i];
        char path[PATH_MAX], folder[PATH_MAX];

        (void)snprintf(path, sizeof(path), "%s/source/%s", build->folder, source->name);
        memcpy(folder, path, sizeof(folder));
        status = mr_folder_make(dirname(folder), error);
        if (status == MR_OK)
            status = mr_file_write(path, mr_span_of(source->data, source->size), error);
    }
    return status;
}

/* The .pc files of this very millrace first: beside the build, or in its prefix. */
static void set_pkg_config_path(struct mr_build *build)
{
    const char *before = getenv("PKG_CONFIG_PATH");
    char exe[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    char *prefix;

    exe[size > 0 ? size : 0] = '\0';
    prefix = dirname(exe); /* .../bin */
    mr_words_add(&build->env,
                 "PKG_CONFIG_PATH=%s/../lib/pkgconfig:%s/../lib/" MR_LIB_TRIPLET
                 "/pkgconfig%s%s",
                 prefix, prefix, before ? ":" : "", before ? before : "");
}

void mr_build_version(const struct mr_build *build, const char *tool, char *out,
                      size_t size)
{
    struct mr_words words = {0};
    struct mr_command command = {
        .argv = &words, .env = &build->env, .timeout_ns = TOOL_NS};
    const char *text;

    out[0] = '\0';
    mr_words_add(&words, "%s", tool ? tool : build->compiler);
    mr_words_add(&words, "--version");
    if (mr_command_run(&command, NULL) == MR_OK) {
        text = mr_command_text(&command.output);
        (void)snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
    }
    mr_command_fini(&command);
    mr_words_fini(&words);
}

static enum mr_status try_tool(const struct mr_build *build, const char *tool,
                               const char *advice, struct mr_error *error)
{
    char version[16];

    mr_build_version(build, tool, version, sizeof(version));
    return *version || mr_interrupt_seen()
               ? MR_OK
               : mr_error_set(error, MR_ENOTFOUND, "cannot run '%.60s': %s", tool,
                              advice);
}

enum mr_status mr_build_init(struct mr_build *build, const char *folder,
                             struct mr_error *error)
{
    const char *compiler = getenv("CC");
    char absolute[PATH_MAX];
    enum mr_status status = mr_folder_make(folder, error);

    *build = (struct mr_build){.compiler = compiler && *compiler ? compiler : "gcc"};
    if (status != MR_OK)
        return status;
    if (!realpath(folder, absolute) || strlen(absolute) >= sizeof(build->folder))
        return mr_error_set(error, MR_EIO, "%.100s: no usable path", folder);
    (void)snprintf(build->folder, sizeof(build->folder), "%.*s",
                   (int)sizeof(build->folder) - 1, absolute);
    set_pkg_config_path(build);
    status = write_sources(build, error);
    if (status == MR_OK)
        status = try_tool(build, build->compiler,
                          "the measured programs are compiled here; install gcc, or "
                          "name a compiler in CC",
                          error);
    if (status == MR_OK)
        status = try_tool(build, "pkg-config", "install pkg-config", error);
    if (status != MR_OK)
        mr_build_fini(build);
    return status;
}

void mr_build_fini(struct mr_build *build)
{
    mr_words_fini(&build->env);
}

enum mr_status mr_build_flags(const struct mr_build *build, const char *package,
                              const char *what, struct mr_words *words,
                              struct mr_error *error)
{
    struct mr_words line = {0};
    struct mr_command command = {
        .argv = &line, .env = &build->env, .timeout_ns = TOOL_NS};
    enum mr_status status;

    mr_words_add(&line, "pkg-config");
    mr_words_add(&line, "%s", what);
    mr_words_add(&line, "%s", package);
    status = mr_command_run(&command, NULL);
    if (status == MR_OK)
        mr_words_split(words, mr_command_text(&command.output));
    else if (status != MR_END)
        status = mr_error_set(error, MR_ENOTFOUND, "pkg-config knows no %s", package);
    mr_command_fini(&command);
    mr_words_fini(&line);
    return status;
}

/* What colours a terminal is left out: ESC [ numbers and a letter. */
static void strip_colours(char *text)
{
    char *to = text;

    while (*text) {
        if (text[0] == '\033' && text[1] == '[') {
            text += 2 + strspn(text + 2, "0123456789;");
            text += *text != '\0';
        } else {
            *to++ = *text++;
        }
    }
    *to = '\0';
}

/* The first line that says what is wrong; a linker says "error" only at its end. */
static void first_error(struct mr_buffer *said, char *out, size_t size)
{
    static const char *const words[] = {"undefined reference", "[ERROR]", "error"};
    const char *text = mr_command_text(said), *start = text, *at = NULL;

    for (size_t i = 0; i < MR_ARRAY_COUNT(words) && !at; i++)
        at = strstr(text, words[i]);
    for (const char *c = text; at && c < at; c++)
        if (*c == '\n')
            start = c + 1;
    (void)snprintf(out, size, "%.*s", (int)strcspn(start, "\n"), start);
    strip_colours(out);
}

enum mr_status mr_build_run(const struct mr_build *build, const struct mr_words *words,
                            uint64_t timeout_ns, struct mr_error *error)
{
    struct mr_command command = {.argv = words,
                                 .env = &build->env,
                                 .directory = build->folder,
                                 .timeout_ns = timeout_ns};
    enum mr_status status = mr_command_run(&command, NULL);
    char line[180];

    if (status != MR_OK && status != MR_END) {
        first_error(&command.errors, line, sizeof(line));
        if (!*line) /* Maven says it where its results go */
            first_error(&command.output, line, sizeof(line));
        status = mr_error_set(error, status, "%s: %s", words->items[0], line);
    }
    mr_command_fini(&command);
    return status;
}

/* Goes on from `seed` with what is in a file; one that cannot be read changes nothing. */
static uint64_t hash_file(const char *path, uint64_t seed)
{
    FILE *file = fopen(path, "re");
    uint8_t bytes[65536];
    size_t size;

    while (file && (size = fread(bytes, 1, sizeof(bytes), file)) > 0)
        seed = mr_hash64_seed(mr_span_of(bytes, size), seed);
    if (file)
        (void)fclose(file);
    return seed;
}

/*
 * What an object is made from: the source, all that is embedded unless it is somebody
 * else's, and what the command line names of millrace: its header, and the specs file.
 */
static uint64_t hash_inputs(const struct mr_words *words, const char *source,
                            bool is_foreign)
{
    static const char specs[] = "-specs=";
    uint64_t hash = hash_file(source, 0);
    char path[PATH_MAX];

    for (size_t i = 0; i < mr_source_file_count && !is_foreign; i++)
        hash = mr_hash64_seed(
            mr_span_of(mr_source_files[i].data, mr_source_files[i].size), hash);
    for (size_t i = 0; i < words->count; i++) {
        const char *word = words->items[i];

        if (strncmp(word, "-I", 2) == 0) {
            (void)snprintf(path, sizeof(path), "%.*s/millrace/probe.h", PATH_MAX - 64,
                           word + 2);
            hash = hash_file(path, hash);
        } else if (strncmp(word, specs, sizeof(specs) - 1) == 0) {
            hash = hash_file(word + sizeof(specs) - 1, hash);
        }
    }
    return hash;
}

enum mr_status mr_build_object(const struct mr_build *build,
                               const struct mr_build_object *object,
                               struct mr_error *error)
{
    char source[PATH_MAX], product[PATH_MAX], stamp[PATH_MAX], line[8192], made[8224];
    struct mr_words words = {0};
    enum mr_status status = MR_OK;

    (void)snprintf(source, sizeof(source), "%s%s%s",
                   *object->source == '/' ? "" : build->folder,
                   *object->source == '/' ? "" : "/source/", object->source);
    (void)mr_build_path(build, object->object, product);
    (void)snprintf(stamp, sizeof(stamp), "%.*s.made", (int)sizeof(stamp) - 8, product);
    mr_words_split(&words, object->compiler ? object->compiler : build->compiler);
    mr_words_split(&words, "-O2");
    mr_words_add_all(&words, object->flags);
    mr_words_add(&words, "-c");
    mr_words_add(&words, "%s", source);
    mr_words_add(&words, "-o");
    mr_words_add(&words, "%s", product);
    (void)snprintf(made, sizeof(made), "%s\n%016" PRIx64 "\n",
                   mr_words_join(&words, line, sizeof(line)),
                   hash_inputs(&words, source, *object->source == '/'));
    if (access(product, R_OK) != 0 ||
        !holds(stamp, mr_span_of((const uint8_t *)made, strlen(made)))) {
        (void)unlink(stamp);
        status = mr_build_run(build, &words, COMPILE_NS, error);
        if (status == MR_OK)
            status = mr_file_write(stamp, mr_span_of((const uint8_t *)made, strlen(made)),
                                   error);
    }
    mr_words_fini(&words);
    return status;
}

enum mr_status mr_build_link(const struct mr_build *build, const char *compiler,
                             const char *program, const struct mr_words *words,
                             struct mr_error *error)
{
    struct mr_words line = {0};
    enum mr_status status;

    mr_words_split(&line, compiler ? compiler : build->compiler);
    mr_words_add_all(&line, words);
    mr_words_add(&line, "-o");
    mr_words_add(&line, "%s", program);
    status = mr_build_run(build, &line, COMPILE_NS, error);
    mr_words_fini(&line);
    return status;
}

static int remove_one(const char *path, const struct stat *stat_of, int type,
                      struct FTW *at)
{
    MR_UNUSED(stat_of);
    MR_UNUSED(type);
    MR_UNUSED(at);
    return remove(path);
}

void mr_folder_remove(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
