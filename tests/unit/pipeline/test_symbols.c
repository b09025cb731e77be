/* SPDX-License-Identifier: Apache-2.0 */
/* On real programs, built here with the compiler and binutils that built the tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "pipeline/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <ftw.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[256];

static const char c_source[] =
    "#include <stdio.h>\n"
    "int first(int n)\n" /* line 2 */
    "{\n"
    "    return n + 1;\n"
    "}\n"
    "static int second(int n)\n" /* line 6 */
    "{\n"
    "    return first(n) * 2;\n"
    "}\n"
    "__attribute__((alias(\"first\"))) int __other_first(int n);\n"
    "int (*table[])(int) = {first, second};\n"
    "int main(void)\n" /* line 12 */
    "{\n"
    "    return table[1](3) > 100;\n"
    "}\n";

static const char cc_source[] =
    "namespace shop {\n"
    "template <typename T> struct Box {\n"
    "    T value;\n"
    "    __attribute__((noinline)) T twice() const { return value + value; "
    "}\n" /* line 4 */
    "};\n"
    "__attribute__((noinline)) int sell(const Box<int> &box)\n" /* line 6 */
    "{\n"
    "    auto inner = [&](int n) __attribute__((noinline)) { return n + "
    "box.twice(); };\n"
    "    return inner(1);\n"
    "}\n"
    "}\n"
    "int main()\n"
    "{\n"
    "    return shop::sell({3}) > 100;\n"
    "}\n";

MR_PRINTF(1, 2) static void run(const char *format, ...);
static void run(const char *format, ...)
{
    char command[2048];
    va_list values;
    int size, code;

    va_start(values, format);
    size = vsnprintf(command, sizeof(command), format, values);
    va_end(values);
    assert_in_range(size, 1, sizeof(command) - 1);
    code = system(command);
    if (!WIFEXITED(code) || WEXITSTATUS(code) != 0)
        fail_msg("failed: %s", command);
}

static const char *in_folder(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];

    (void)snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(in_folder(name), "w");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static const char *compiler(const char *variable, const char *fallback)
{
    const char *given = getenv(variable);

    return given && *given ? given : fallback;
}

static void build_c(const char *name, const char *flags)
{
    run("cd '%s' && %s -Wl,--build-id %s -o %s program.c", folder, compiler("CC", "cc"),
        flags, name);
}

static int remove_one(const char *path, const struct stat *about, int type,
                      struct FTW *where)
{
    (void)about;
    (void)type;
    (void)where;
    return remove(path);
}

static int make_folder(void **state)
{
    const char *root = getenv("TMPDIR");

    (void)state;
    (void)snprintf(folder, sizeof(folder), "%s/mr-symbols-XXXXXX", root ? root : "/tmp");
    if (!mkdtemp(folder))
        return -1;
    write_file("program.c", c_source, sizeof(c_source) - 1);
    write_file("program.cc", cc_source, sizeof(cc_source) - 1);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The answer of another reader: nm. */
static uint64_t offset_of(const char *program, const char *symbol)
{
    char command[1024], line[1024];
    uint64_t offset = 0;
    FILE *nm;

    (void)snprintf(command, sizeof(command), "nm '%s'", in_folder(program));
    nm = popen(command, "r");
    assert_non_null(nm);
    while (fgets(line, sizeof(line), nm)) {
        char name[900], type;
        unsigned long long value;

        if (sscanf(line, "%llx %c %899s", &value, &type, name) == 3 &&
            strcmp(name, symbol) == 0)
            offset = value;
    }
    assert_int_equal(pclose(nm), 0);
    assert_int_not_equal(offset, 0);
    return offset;
}

struct build_id {
    uint8_t bytes[MR_BUILD_ID_MAX];
    size_t size;
};

/* The note, read by hand. */
static struct build_id build_id_of(const char *program)
{
    struct build_id id = {.size = 0};
    static uint8_t data[16u << 20];
    FILE *file = fopen(in_folder(program), "r");
    size_t size;
    ElfW(Ehdr) header;

    assert_non_null(file);
    size = fread(data, 1, sizeof(data), file);
    (void)fclose(file);
    assert_true(size > sizeof(header));
    memcpy(&header, data, sizeof(header));
    for (size_t i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) segment;
        size_t at = 0;

        memcpy(&segment, data + header.e_phoff + i * header.e_phentsize, sizeof(segment));
        while (segment.p_type == PT_NOTE && at + sizeof(ElfW(Nhdr)) < segment.p_filesz) {
            ElfW(Nhdr) note;
            const uint8_t *start = data + segment.p_offset + at;

            memcpy(&note, start, sizeof(note));
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4) {
                id.size = note.n_descsz;
                memcpy(id.bytes, start + sizeof(note) + 4, id.size);
                return id;
            }
            at += sizeof(note) + ((note.n_namesz + 3u) & ~3u) +
                  ((note.n_descsz + 3u) & ~3u);
        }
    }
    return id;
}

static struct mr_symbols *new_symbols(const struct mr_symbols_limits *limits)
{
    struct mr_symbols *symbols = NULL;

    assert_int_equal(mr_symbols_new(limits, &symbols), MR_OK);
    return symbols;
}

static enum mr_status look_up(struct mr_symbols *symbols, const char *program,
                              uint64_t offset, struct mr_symbol *symbol)
{
    struct build_id id = build_id_of(program);

    assert_true(id.size >= 8);
    return mr_symbols_lookup(symbols, mr_span_of(id.bytes, id.size), in_folder(program),
                             offset, symbol);
}

static void assert_c_names(struct mr_symbols *symbols, const char *program,
                           const char *with_symbols, enum mr_site_quality quality)
{
    static const struct {
        const char *name;
        uint32_t line;
    } functions[] = {{"first", 2}, {"second", 6}, {"main", 12}};

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        struct mr_symbol symbol;

        assert_int_equal(look_up(symbols, program,
                                 offset_of(with_symbols, functions[i].name), &symbol),
                         MR_OK);
        assert_string_equal(symbol.name, functions[i].name);
        assert_int_equal(symbol.quality, quality);
        assert_int_equal(symbol.line,
                         quality == MR_QUALITY_DEBUG ? functions[i].line : 0);
        if (quality == MR_QUALITY_DEBUG)
            assert_non_null(strstr(symbol.file, "program.c"));
        else
            assert_string_equal(symbol.file, "");
    }
}

static void programs_with_debug_information_have_lines(void **state)
{
    static const char *const flags[] = {"-g -O0 -pie -fPIE", "-g -O0 -no-pie -fno-pie",
                                        "-g -O2 -pie -fPIE", "-gdwarf-4 -O0",
                                        "-gdwarf-5 -O0 -gno-column-info"};

    (void)state;
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        struct mr_symbols *symbols = new_symbols(NULL);

        build_c("debug", flags[i]);
        assert_c_names(symbols, "debug", "debug", MR_QUALITY_DEBUG);
        mr_symbols_free(symbols);
    }
}

static void without_debug_information_names_remain(void **state)
{
    struct mr_symbols *symbols = new_symbols(NULL);

    (void)state;
    build_c("plain", "-O0");
    assert_c_names(symbols, "plain", "plain", MR_QUALITY_SYMBOL);
    mr_symbols_free(symbols);
}

static void an_address_inside_a_function_finds_it_too(void **state)
{
    struct mr_symbols *symbols = new_symbols(NULL);
    struct mr_symbol symbol;

    (void)state;
    build_c("debug", "-g -O0");
    assert_int_equal(look_up(symbols, "debug", offset_of("debug", "first") + 3, &symbol),
                     MR_OK);
    assert_string_equal(symbol.name, "first"); /* and not __other_first, its alias */
    assert_int_equal(symbol.line, 2);
    assert_int_equal(look_up(symbols, "debug", 1, &symbol), MR_ENOTFOUND);
    assert_int_equal(look_up(symbols, "debug", UINT64_MAX, &symbol), MR_ENOTFOUND);
    assert_string_equal(symbol.name, "");
    assert_int_equal(symbol.quality, MR_QUALITY_OFFSET);
    mr_symbols_free(symbols);
}

/* Its debug information has ranges, and no lowest address. */
static void a_function_in_a_hot_and_a_cold_piece_has_a_line(void **state)
{
    static const char source[] = "#include <stdio.h>\n"
                                 "__attribute__((cold)) void fail(int n);\n"
                                 "__attribute__((cold)) void fail(int n)\n"
                                 "{\n"
                                 "    printf(\"%d\\n\", n);\n"
                                 "}\n"
                                 "int pieces(int n)\n" /* line 7 */
                                 "{\n"
                                 "    if (n > 9)\n"
                                 "        fail(n);\n"
                                 "    return n * 3;\n"
                                 "}\n"
                                 "int main(int argc, char **argv)\n"
                                 "{\n"
                                 "    return pieces(argc) + argv[0][0];\n"
                                 "}\n";
    struct mr_symbols *symbols = new_symbols(NULL);
    struct mr_symbol symbol;

    (void)state;
    write_file("pieces.c", source, sizeof(source) - 1);
    run("cd '%s' && %s -Wl,--build-id -g -O2 -o pieces pieces.c", folder,
        compiler("CC", "cc"));
    assert_int_equal(look_up(symbols, "pieces", offset_of("pieces", "pieces"), &symbol),
                     MR_OK);
    assert_string_equal(symbol.name, "pieces");
    assert_int_equal(symbol.quality, MR_QUALITY_DEBUG);
    assert_int_equal(symbol.line, 7);
    mr_symbols_free(symbols);
}

static void separate_debug_files_are_found_by_link(void **state)
{
    struct mr_symbols *symbols = new_symbols(NULL);

    (void)state;
    build_c("whole", "-g -O0");
    run("cd '%s' && cp whole split && objcopy --only-keep-debug split split.debug && "
        "strip split && "
        "objcopy --add-gnu-debuglink=split.debug split",
        folder);
    assert_c_names(symbols, "split", "whole", MR_QUALITY_DEBUG);
    mr_symbols_free(symbols);
}

static void name_by_build_id(const char *program, char path[1024])
{
    struct build_id id = build_id_of(program);
    int used = snprintf(path, 1024, "%s/debugroot/.build-id/%02x/", folder, id.bytes[0]);

    for (size_t i = 1; i < id.size; i++)
        used += snprintf(path + used, 1024 - (size_t)used, "%02x", id.bytes[i]);
    (void)snprintf(path + used, 1024 - (size_t)used, ".debug");
}

static void separate_debug_files_are_found_by_build_id(void **state)
{
    struct mr_symbols_limits limits = {.debug_dir = in_folder("debugroot")};
    struct mr_symbols *symbols;
    struct mr_symbol symbol;
    struct build_id id;
    char path[1024], dir[512];

    (void)state;
    (void)snprintf(dir, sizeof(dir), "%s", in_folder("debugroot"));
    limits.debug_dir = dir;
    build_c("whole", "-g -O0 -DBY_BUILD_ID -frecord-gcc-switches");
    name_by_build_id("whole", path);
    run("mkdir -p \"$(dirname '%s')\" && cd '%s' && cp whole bare && objcopy "
        "--only-keep-debug bare '%s' && strip bare",
        path, folder, path);
    symbols = new_symbols(&limits);
    assert_c_names(symbols, "bare", "whole", MR_QUALITY_DEBUG);
    mr_symbols_free(symbols);

    symbols = new_symbols(&limits); /* also when the program itself is not there */
    id = build_id_of("whole");
    assert_int_equal(mr_symbols_lookup(symbols, mr_span_of(id.bytes, id.size),
                                       "/nowhere/at/all", offset_of("whole", "first"),
                                       &symbol),
                     MR_OK);
    assert_string_equal(symbol.name, "first");
    assert_int_equal(symbol.quality, MR_QUALITY_DEBUG);
    mr_symbols_free(symbols);
}

static void a_stripped_program_has_module_and_offset_alone(void **state)
{
    struct mr_symbols *symbols = new_symbols(NULL);
    struct mr_symbols_stats stats;
    struct mr_symbol symbol;
    uint64_t offset;

    (void)state;
    build_c("stripped", "-O0");
    offset = offset_of("stripped", "first");
    run("strip '%s'", in_folder("stripped"));
    assert_int_equal(look_up(symbols, "stripped", offset, &symbol), MR_ENOTFOUND);
    assert_int_equal(symbol.quality, MR_QUALITY_OFFSET);
    assert_string_equal(symbol.name, "");
    mr_symbols_stats(symbols, &stats);
    assert_int_equal(stats.lookups, 1);
    assert_int_equal(stats.found, 0);
    assert_int_equal(stats.stripped, 1);
    mr_symbols_free(symbols);
}

static void another_build_is_not_used(void **state)
{
    struct mr_symbols *symbols = new_symbols(NULL);
    struct build_id other;
    struct mr_symbols_stats stats;
    struct mr_symbol symbol;
    uint64_t offset;

    (void)state;
    build_c("old", "-g -O0");
    build_c("new", "-g -O1");
    other = build_id_of("old");
    offset = offset_of("new", "first");
    assert_int_equal(mr_symbols_lookup(symbols, mr_span_of(other.bytes, other.size),
                                       in_folder("new"), offset, &symbol),
                     MR_ENOTFOUND);
    assert_int_equal(mr_symbols_lookup(symbols, mr_span_of(NULL, 0), in_folder("new"),
                                       offset, &symbol),
                     MR_ENOTFOUND);
    mr_symbols_stats(symbols, &stats);
    assert_int_equal(stats.mismatched, 2);
    assert_int_equal(stats.not_found, 2);
    mr_symbols_free(symbols);
}

static void a_program_without_build_id_is_known_by_its_path(void **state)
{
    struct mr_symbols *symbols = new_symbols(NULL);
    struct mr_symbol symbol;

    (void)state;
    run("cd '%s' && %s -g -O0 -Wl,--build-id=none -o anonymous program.c", folder,
        compiler("CC", "cc"));
    assert_int_equal(mr_symbols_lookup(symbols, mr_span_of(NULL, 0),
                                       in_folder("anonymous"),
                                       offset_of("anonymous", "first"), &symbol),
                     MR_OK);
    assert_string_equal(symbol.name, "first");
    mr_symbols_free(symbols);
}

static void assert_cc_name(struct mr_symbols *symbols, const char *mangled,
                           const char *name, uint32_t line)
{
    struct mr_symbol symbol;

    assert_int_equal(look_up(symbols, "cc", offset_of("cc", mangled), &symbol), MR_OK);
    assert_string_equal(symbol.name, name);
    assert_int_equal(symbol.quality, MR_QUALITY_DEBUG);
    assert_int_equal(symbol.line, line);
    assert_non_null(strstr(symbol.file, "program.cc"));
}

static void cc_names_are_readable_templates_and_namespaces_too(void **state)
{
    static const char *const compilers[] = {"c++", "clang++ -gdwarf-5"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct mr_symbols *symbols = new_symbols(NULL);

        if (i == 1 && system("clang++ --version >/dev/null 2>&1") != 0)
            print_message("no clang++: its layout of debug information is not tried\n");
        else {
            run("cd '%s' && %s -Wl,--build-id -g -O0 -o cc program.cc", folder,
                compilers[i]);
            assert_cc_name(symbols, "_ZNK4shop3BoxIiE5twiceEv",
                           "shop::Box<int>::twice() const", 4);
            assert_cc_name(symbols, "_ZN4shop4sellERKNS_3BoxIiEE",
                           "shop::sell(shop::Box<int> const&)", 6);
            assert_cc_name(symbols, "main", "main", 12);
            assert_cc_name(
                symbols,
                i ? "_ZZN4shop4sellERKNS_3BoxIiEEENK3$_0clEi"
                  : "_ZZN4shop4sellERKNS_3BoxIiEEENKUliE_clEi",
                i ? "shop::sell(shop::Box<int> const&)::$_0::operator()(int) const"
                  : "shop::sell(shop::Box<int> const&)::{lambda(int)#1}::operator()(int) "
                    "const",
                8);
        }
        mr_symbols_free(symbols);
    }
}

static void few_open_modules_serve_many(void **state)
{
    const struct mr_symbols_limits limits = {.modules_max = 2};
    struct mr_symbols *symbols = new_symbols(&limits);
    struct mr_symbols_stats stats;

    (void)state;
    build_c("m0", "-g -O0");
    build_c("m1", "-g -O0 -DONE");
    build_c("m2", "-O1");
    for (int round = 0; round < 3; round++) {
        assert_c_names(symbols, "m0", "m0", MR_QUALITY_DEBUG);
        assert_c_names(symbols, "m2", "m2", MR_QUALITY_SYMBOL);
    }
    mr_symbols_stats(symbols, &stats);
    assert_int_equal(stats.modules, 2); /* once per build-id */
    run("cd '%s' && %s -Wl,--build-id -g -O2 -o m3 program.c", folder,
        compiler("CC", "cc"));
    assert_c_names(symbols, "m3", "m3", MR_QUALITY_DEBUG);
    assert_c_names(symbols, "m2", "m2",
                   MR_QUALITY_SYMBOL); /* used more lately than m0: still open */
    mr_symbols_stats(symbols, &stats);
    assert_int_equal(stats.modules, 3);
    assert_c_names(symbols, "m0", "m0", MR_QUALITY_DEBUG);
    mr_symbols_stats(symbols, &stats);
    assert_int_equal(stats.modules, 4);
    mr_symbols_free(symbols);
}

static void functions_past_the_limit_are_counted(void **state)
{
    const struct mr_symbols_limits limits = {.functions_max = 1};
    struct mr_symbols *symbols = new_symbols(&limits);
    struct mr_symbols_stats stats;
    struct mr_symbol symbol;

    (void)state;
    build_c("plain", "-O0");
    (void)look_up(symbols, "plain", offset_of("plain", "first"), &symbol);
    mr_symbols_stats(symbols, &stats);
    assert_true(stats.over_limit > 0);
    mr_symbols_free(symbols);
}

static void what_is_no_program_is_not_opened(void **state)
{
    struct mr_symbols *symbols = new_symbols(NULL);
    struct mr_symbols_stats stats;
    struct mr_symbol symbol;
    const char *paths[] = {
        "", "/", "/nowhere", "/dev/zero", in_folder("fifo"), in_folder("text")};

    (void)state;
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    write_file("text", "\177ELF", 4);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        assert_int_equal(mr_symbols_lookup(symbols, mr_span_of("12345678", 8), paths[i],
                                           0x1000 + i, &symbol),
                         MR_ENOTFOUND);
    mr_symbols_stats(symbols, &stats);
    assert_int_equal(stats.modules, 1); /* one build-id: asked once */
    mr_symbols_free(symbols);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        symbols = new_symbols(NULL);
        assert_int_equal(
            mr_symbols_lookup(symbols, mr_span_of(NULL, 0), paths[i], 0x1000, &symbol),
            MR_ENOTFOUND);
        mr_symbols_free(symbols);
    }
    mr_symbols_free(NULL);
}

/* Some bytes changed, or the end missing: whatever comes out, the process lives and the answer is a string. */
static void damaged_programs_do_no_harm(void **state)
{
    static uint8_t whole[1u << 20];
    unsigned seed = (unsigned)mr_clock_realtime_ns();
    uint64_t offset;
    struct build_id id;
    FILE *file;
    size_t size;

    (void)state;
    print_message("seed %u\n", seed);
    build_c("victim", "-g -O0");
    offset = offset_of("victim", "first");
    id = build_id_of("victim");
    file = fopen(in_folder("victim"), "r");
    assert_non_null(file);
    size = fread(whole, 1, sizeof(whole), file);
    (void)fclose(file);
    for (int i = 0; i < 400; i++) {
        struct mr_symbols *symbols = new_symbols(NULL);
        struct mr_symbol symbol;
        uint8_t saved[64];
        size_t at = i % 3 == 0 ? (size_t)rand_r(&seed) % 64
                               : (size_t)rand_r(&seed) % (size - sizeof(saved));

        memcpy(saved, whole + at, sizeof(saved));
        for (int n = 0; n < 1 + i % 16; n++)
            whole[at + (size_t)rand_r(&seed) % sizeof(saved)] = (uint8_t)rand_r(&seed);
        write_file("damaged", whole, i % 4 == 0 ? (size_t)rand_r(&seed) % size : size);
        memcpy(whole + at, saved, sizeof(saved));
        (void)mr_symbols_lookup(symbols, mr_span_of(id.bytes, id.size),
                                in_folder("damaged"), offset, &symbol);
        assert_true(strlen(symbol.name) < MR_TEXT_MAX);
        (void)mr_symbols_lookup(symbols, mr_span_of(id.bytes, id.size),
                                in_folder("damaged"), offset + 64, &symbol);
        mr_symbols_free(symbols);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_with_debug_information_have_lines),
        cmocka_unit_test(without_debug_information_names_remain),
        cmocka_unit_test(an_address_inside_a_function_finds_it_too),
        cmocka_unit_test(a_function_in_a_hot_and_a_cold_piece_has_a_line),
        cmocka_unit_test(separate_debug_files_are_found_by_link),
        cmocka_unit_test(separate_debug_files_are_found_by_build_id),
        cmocka_unit_test(a_stripped_program_has_module_and_offset_alone),
        cmocka_unit_test(another_build_is_not_used),
        cmocka_unit_test(a_program_without_build_id_is_known_by_its_path),
        cmocka_unit_test(cc_names_are_readable_templates_and_namespaces_too),
        cmocka_unit_test(few_open_modules_serve_many),
        cmocka_unit_test(functions_past_the_limit_are_counted),
        cmocka_unit_test(what_is_no_program_is_not_opened),
        cmocka_unit_test(damaged_programs_do_no_harm),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
