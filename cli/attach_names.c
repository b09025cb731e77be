/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/attach_names.h"

#include "base/compiler.h"
#include "base/options.h"
#include "pipeline/demangle.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE 4352
#define FILES_MAX 64
/* Of all files together; names longer than what is compared are left out. */
#define NAMES_MAX 200000
#define NAME_SIZE 64
#define SUGGESTIONS_MAX 3

struct names {
    size_t count, capacity;
    char **items;
};

static void add_name(struct names *names, const char *name)
{
    char plain[NAME_SIZE * 4];
    size_t size;

    if (mr_demangle(name, plain, sizeof(plain))) {
        plain[strcspn(plain, "(")] = '\0';
        name = plain;
    }
    size = strlen(name);
    if (size == 0 || size >= NAME_SIZE || names->count == NAMES_MAX)
        return;
    if (names->count == names->capacity) {
        size_t capacity = names->capacity ? 2 * names->capacity : 1024;
        char **grown = realloc(names->items, capacity * sizeof(*grown));

        if (!grown)
            return;
        names->items = grown;
        names->capacity = capacity;
    }
    names->items[names->count] = strdup(name);
    names->count += names->items[names->count] != NULL;
}

static void read_table(Elf *elf, Elf_Scn *section, size_t strings, struct names *names)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Sym symbol;

    for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
        const char *name = elf_strptr(elf, strings, symbol.st_name);

        if (name && GELF_ST_TYPE(symbol.st_info) == STT_FUNC &&
            symbol.st_shndx != SHN_UNDEF)
            add_name(names, name);
    }
}

static void read_file(const char *path, struct names *names)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    Elf *elf;

    if (fd < 0)
        return;
    (void)elf_version(EV_CURRENT);
    elf = elf_begin(fd, ELF_C_READ, NULL);
    while (elf && elf_kind(elf) == ELF_K_ELF && (section = elf_nextscn(elf, section)))
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB)
            read_table(elf, section, header.sh_link, names);
    (void)elf_end(elf); /* NULL allowed */
    (void)close(fd);
}

/* The path in a line of /proc/PID/maps that maps code, or NULL. */
static char *code_path(char *line)
{
    char *path = strchr(line, '/');
    const char *modes = strchr(line, ' ');

    line[strcspn(line, "\n")] = '\0';
    return path && modes && strlen(modes) > 4 && modes[3] == 'x' ? path : NULL;
}

static void read_modules(pid_t pid, struct names *names)
{
    char line[PATH_SIZE], path[PATH_SIZE + 64], last[PATH_SIZE] = "";
    int files = 0;
    FILE *maps;

    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    maps = fopen(path, "re");
    while (maps && files < FILES_MAX && fgets(line, sizeof(line), maps)) {
        const char *file = code_path(line);

        if (!file || strcmp(file, last) == 0 || strstr(file, "/libmillrace."))
            continue;
        (void)snprintf(last, sizeof(last), "%s", file);
        (void)snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, file);
        read_file(path, names);
        files++;
    }
    if (maps)
        (void)fclose(maps);
}

/* Without what stands for any letters. */
static void strip(const char *glob, char *word, size_t size)
{
    size_t used = 0;

    for (; *glob && used < size - 1; glob++)
        if (!strchr("*?[]\\", *glob))
            word[used++] = *glob;
    word[used] = '\0';
}

/* What of each name the glob's words are compared with: "hanle_*" with as many letters as it has. */
static void shorten(const struct names *all, const char *glob, const char *word,
                    struct names *keys)
{
    size_t end = strlen(glob),
           most = end && glob[end - 1] == '*' ? strlen(word) : NAME_SIZE;

    keys->items = calloc(all->count + 1, sizeof(*keys->items));
    for (size_t i = 0; keys->items && i < all->count; i++) {
        keys->items[i] = strndup(all->items[i], most);
        if (!keys->items[i])
            break;
        keys->count++;
    }
}

static void free_names(struct names *names)
{
    for (size_t i = 0; names->items && i < names->count; i++)
        free(names->items[i]);
    free(names->items);
}

/* The number of the key that is nearest to the word, whose name is told only once; `count`: none is. */
static size_t take_nearest(const struct names *all, struct names *keys, const char *word)
{
    char **items = keys->items;
    const char *nearest;
    size_t found = 0;

    if (!items)
        return all->count;
    nearest = mr_options_nearest(word, (const char *const *)items, keys->count);
    while (found < keys->count && items[found] != nearest)
        found++;
    if (found == keys->count || !*items[found])
        return all->count;
    for (size_t i = 0; i < keys->count; i++)
        if (strcmp(all->items[i], all->items[found]) == 0)
            items[i][0] = '\0'; /* an empty one is near to nothing */
    return found;
}

void mr_attach_plain(const char *text, char *plain, size_t size)
{
    size_t used = 0;

    while (*text && used + 1 < size) {
        size_t gap = strspn(text, " "), word = strcspn(text + gap, " ");
        char mangled[MR_DEMANGLE_NAME_MAX + 1], name[2 * MR_DEMANGLE_NAME_MAX];
        int added;

        (void)snprintf(mangled, sizeof(mangled), "%.*s", (int)word, text + gap);
        added =
            word < sizeof(mangled) && mr_demangle(mangled, name, sizeof(name))
                ? snprintf(plain + used, size - used, "%.*s%s", (int)gap, text, name)
                : snprintf(plain + used, size - used, "%.*s", (int)(gap + word), text);
        used += added > 0 ? (size_t)added : 0;
        text += gap + word;
    }
    plain[used < size ? used : size - 1] = '\0';
}

bool mr_attach_nearest(pid_t pid, const char *glob, char *names, size_t size)
{
    struct names all = {0}, keys = {0};
    char word[NAME_SIZE];
    size_t used = 0;

    strip(glob, word, sizeof(word));
    read_modules(pid, &all);
    shorten(&all, glob, word, &keys);
    for (int i = 0; all.items && i < SUGGESTIONS_MAX; i++) {
        size_t nearest = take_nearest(&all, &keys, word);
        int more;

        if (nearest == all.count)
            break;
        more = snprintf(names + used, size - used, "%s%s", used ? ", " : "",
                        all.items[nearest]);
        if (more < 0 || (size_t)more >= size - used)
            break;
        used += (size_t)more;
    }
    free_names(&keys);
    free_names(&all);
    return used > 0;
}
