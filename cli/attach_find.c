/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which unix socket a process listens on for us: /proc/PID/fd tells the inodes of its
 * sockets, /proc/PID/net/unix the names of those of its network namespace. So nothing
 * has to be known of its environment or its folders.
 */
#include "cli/attach_client.h"
#include "cli/program.h"

#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 64
#define SOCKETS_MAX 65536
#define MARK "millrace-" /* the folder, or the start of an abstract name */
#define LISTENS 0x10000u /* __SO_ACCEPTCON in /proc/net/unix */

struct inodes {
    uint32_t count;
    uint64_t *items;
};

static FILE *open_of(pid_t pid, const char *name)
{
    char path[PATH_SIZE];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return fopen(path, "re");
}

static enum mr_status no_such_process(pid_t pid, struct mr_error *error)
{
    return mr_error_set(error, MR_ENOTFOUND, "there is no process %d", (int)pid);
}

static enum mr_status not_ours(pid_t pid, struct mr_error *error)
{
    char path[PATH_SIZE];
    struct stat stat_of;
    const struct passwd *user;

    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    if (stat(path, &stat_of) != 0)
        return no_such_process(pid, error);
    user = getpwuid(stat_of.st_uid);
    if (stat_of.st_uid == geteuid())
        return mr_error_set(error, MR_EREFUSED,
                            "process %d does not let its user look at it (it changed its "
                            "user, or is not dumpable): attach as root",
                            (int)pid);
    return mr_error_set(error, MR_EREFUSED,
                        "process %d belongs to %s%s: attach as that user, or as root",
                        (int)pid, user ? user->pw_name : "another user",
                        stat_of.st_uid == 0 && !user ? " (root)" : "");
}

static void add_inode(struct inodes *inodes, pid_t pid, const char *name)
{
    static const char kind[] = "socket:[";
    char path[PATH_SIZE + 256], target[64];
    ssize_t size;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd/%.255s", (int)pid, name);
    size = readlink(path, target, sizeof(target) - 1);
    if (size <= 0 || inodes->count == SOCKETS_MAX)
        return;
    target[size] = '\0';
    if (strncmp(target, kind, sizeof(kind) - 1) == 0)
        inodes->items[inodes->count++] = strtoull(target + sizeof(kind) - 1, NULL, 10);
}

static enum mr_status list_sockets(pid_t pid, struct inodes *inodes,
                                   struct mr_error *error)
{
    char path[PATH_SIZE];
    const struct dirent *entry;
    DIR *folder;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    folder = opendir(path);
    if (!folder)
        return errno == ENOENT ? no_such_process(pid, error) : not_ours(pid, error);
    inodes->count = 0;
    inodes->items = calloc(SOCKETS_MAX, sizeof(*inodes->items));
    while (inodes->items && (entry = readdir(folder)) != NULL)
        add_inode(inodes, pid, entry->d_name);
    (void)closedir(folder);
    return inodes->items ? MR_OK : mr_error_set(error, MR_ENOMEM, "out of memory");
}

static bool has_inode(const struct inodes *inodes, uint64_t inode)
{
    for (uint32_t i = 0; i < inodes->count; i++)
        if (inodes->items[i] == inode)
            return true;
    return false;
}

/* "Num: RefCount Protocol Flags Type St Inode Path" of a listener of ours. */
static bool read_line(char *line, const struct inodes *inodes, char *address)
{
    const char *fields[8];
    char *rest = line, *field;
    size_t count = 0;

    line[strcspn(line, "\n")] = '\0';
    while (count < 7 && (field = strsep(&rest, " ")) != NULL)
        if (*field)
            fields[count++] = field;
    if (count < 7 || !rest || !strstr(rest, MARK) ||
        strlen(rest) >= MR_ATTACH_ADDRESS_SIZE)
        return false;
    if (!(strtoul(fields[3], NULL, 16) & LISTENS) ||
        !has_inode(inodes, strtoull(fields[6], NULL, 10)))
        return false;
    (void)snprintf(address, MR_ATTACH_ADDRESS_SIZE, "%s", rest);
    return true;
}

static bool find_listener(pid_t pid, const struct inodes *inodes, char *address)
{
    FILE *file = open_of(pid, "net/unix");
    char line[512];
    bool is_found = false;

    while (file && !is_found && fgets(line, sizeof(line), file))
        is_found = read_line(line, inodes, address);
    if (file)
        (void)fclose(file);
    return is_found;
}

static void name_of(pid_t pid, char *name, size_t size)
{
    FILE *file = open_of(pid, "comm");

    name[0] = '\0';
    if (file && fgets(name, (int)size, file))
        name[strcspn(name, "\n")] = '\0';
    if (file)
        (void)fclose(file);
}

static bool is_zombie(pid_t pid)
{
    FILE *file = open_of(pid, "status");
    char line[256];
    bool is_dead = false;

    while (file && fgets(line, sizeof(line), file))
        is_dead |=
            strncmp(line, "State:\tZ", 8) == 0 || strncmp(line, "State:\tX", 8) == 0;
    if (file)
        (void)fclose(file);
    return is_dead;
}

/* The library is mapped, or linked into the executable. */
static bool has_probe(pid_t pid)
{
    FILE *file = open_of(pid, "maps");
    char line[512], path[PATH_SIZE];
    struct mr_program program;
    bool is_mapped = false;

    while (file && !is_mapped && fgets(line, sizeof(line), file))
        is_mapped = strstr(line, "/libmillrace.so") != NULL;
    if (file)
        (void)fclose(file);
    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    return is_mapped || (mr_program_inspect(path, &program, NULL) == MR_OK &&
                         program.probe == MR_PROBE_LINKED);
}

static bool was_control_asked_for(pid_t pid)
{
    FILE *file = open_of(pid, "environ");
    char *text = NULL;
    size_t size = 0;
    bool is_asked = false;

    while (file && !is_asked && getdelim(&text, &size, '\0', file) > 0)
        is_asked = strncmp(text, "MILLRACE_CONTROL=", 17) == 0 && text[17] != '\0' &&
                   text[17] != '0';
    free(text);
    if (file)
        (void)fclose(file);
    return is_asked;
}

static enum mr_status explain(pid_t pid, struct mr_error *error)
{
    char name[32];

    name_of(pid, name, sizeof(name));
    if (is_zombie(pid))
        return mr_error_set(error, MR_ENOTFOUND, "process %d (%s) has ended", (int)pid,
                            name);
    if (!has_probe(pid))
        return mr_error_set(error, MR_EUSAGE,
                            "process %d (%s) has no probe: build it with $(pkg-config "
                            "--cflags --libs millrace), start it with MILLRACE_CONTROL=1",
                            (int)pid, name);
    if (!was_control_asked_for(pid))
        return mr_error_set(
            error, MR_EUSAGE,
            "process %d (%s) has a probe that takes no requests: start it "
            "with MILLRACE_CONTROL=1",
            (int)pid, name);
    return mr_error_set(error, MR_EUSAGE,
                        "process %d (%s) has no control socket: either its start is not "
                        "over, or its standard error says why (MILLRACE_DISABLED?)",
                        (int)pid, name);
}

enum mr_status mr_attach_find(pid_t pid, char address[MR_ATTACH_ADDRESS_SIZE],
                              struct mr_error *error)
{
    struct inodes inodes = {0};
    enum mr_status status = list_sockets(pid, &inodes, error);
    bool is_found;

    if (status != MR_OK)
        return status;
    is_found = find_listener(pid, &inodes, address);
    free(inodes.items);
    return is_found ? MR_OK : explain(pid, error);
}
