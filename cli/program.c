/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/program.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROBE_LIBRARY "libmillrace.so"
#define HOOK "__cyg_profile_func_enter"
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

static enum mr_status check_file(const char *path, const char *name,
                                 struct mr_error *error)
{
    struct stat stat_buffer;

    if (stat(path, &stat_buffer) != 0)
        return mr_error_set_errno(error, MR_ENOTFOUND, errno, "%s", name);
    if (S_ISDIR(stat_buffer.st_mode))
        return mr_error_set(error, MR_EREFUSED, "%s: is a directory", name);
    if (access(path, X_OK) != 0)
        return mr_error_set_errno(error, MR_EREFUSED, errno, "%s", name);
    return MR_OK;
}

/* The first part of `list` up to a colon, with the name behind it; moves `list` on. */
static bool next_candidate(const char **list, const char *name, char path[PATH_MAX])
{
    size_t size = strcspn(*list, ":");
    int written =
        snprintf(path, PATH_MAX, "%.*s%s%s", (int)size, *list, size ? "/" : "", name);

    *list += size + ((*list)[size] == ':');
    return written > 0 && written < PATH_MAX;
}

enum mr_status mr_program_find(const char *name, char path[PATH_MAX],
                               struct mr_error *error)
{
    const char *list = getenv("PATH");
    enum mr_status refused = MR_ENOTFOUND;

    if (strchr(name, '/')) {
        if (snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX)
            return mr_error_set(error, MR_ENOTFOUND, "%.80s...: the path is too long",
                                name);
        return check_file(path, name, error);
    }
    if (!list || !*list)
        list = DEFAULT_PATH;
    while (*name && *list) {
        enum mr_status status;

        if (!next_candidate(&list, name, path))
            continue;
        status = check_file(path, name, NULL);
        if (status == MR_OK)
            return MR_OK;
        if (status == MR_EREFUSED)
            refused = status;
    }
    return mr_error_set(error, refused, "%s: %s", name,
                        refused == MR_EREFUSED ? "not executable" : "not found in PATH");
}

static void look_at_needed(Elf *elf, Elf_Data *data, size_t string_section,
                           struct mr_program *program)
{
    GElf_Dyn entry;

    for (int i = 0; gelf_getdyn(data, i, &entry); i++) {
        const char *name;

        if (entry.d_tag == DT_NULL)
            break;
        if (entry.d_tag != DT_NEEDED)
            continue;
        name = elf_strptr(elf, string_section, (size_t)entry.d_un.d_val);
        if (name && strncmp(name, PROBE_LIBRARY, strlen(PROBE_LIBRARY)) == 0)
            program->probe = MR_PROBE_LINKED;
    }
}

/* A reference to the hook, or the hook itself, which a static link has brought in. */
static void look_at_symbols(Elf *elf, Elf_Data *data, size_t string_section,
                            struct mr_program *program)
{
    GElf_Sym symbol;

    for (int i = 0; gelf_getsym(data, i, &symbol); i++) {
        const char *name = elf_strptr(elf, string_section, symbol.st_name);

        if (!name || strcmp(name, HOOK) != 0)
            continue;
        if (symbol.st_shndx != SHN_UNDEF)
            program->probe = MR_PROBE_LINKED;
        else if (program->probe == MR_PROBE_NONE)
            program->probe = MR_PROBE_HOOKS;
        return;
    }
}

static void look_at_section(Elf *elf, Elf_Scn *section, struct mr_program *program)
{
    GElf_Shdr header;
    Elf_Data *data;

    if (!gelf_getshdr(section, &header))
        return;
    if (header.sh_type == SHT_DYNAMIC)
        program->is_static = false;
    if (header.sh_type != SHT_DYNAMIC && header.sh_type != SHT_DYNSYM &&
        header.sh_type != SHT_SYMTAB)
        return;
    data = elf_getdata(section, NULL);
    if (!data)
        return;
    if (header.sh_type == SHT_DYNAMIC)
        look_at_needed(elf, data, header.sh_link, program);
    else
        look_at_symbols(elf, data, header.sh_link, program);
}

enum mr_status mr_program_inspect(const char *path, struct mr_program *program,
                                  struct mr_error *error)
{
    Elf_Scn *section = NULL;
    Elf *elf;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return mr_error_set_errno(error, MR_EIO, errno, "%s", path);
    *program = (struct mr_program){.probe = MR_PROBE_UNKNOWN, .is_static = true};
    (void)elf_version(EV_CURRENT);
    elf = elf_begin(fd, ELF_C_READ, NULL);
    if (elf && elf_kind(elf) == ELF_K_ELF) {
        program->probe = MR_PROBE_NONE;
        while ((section = elf_nextscn(elf, section)))
            look_at_section(elf, section, program);
    }
    (void)elf_end(elf); /* NULL allowed */
    (void)close(fd);
    return MR_OK;
}
