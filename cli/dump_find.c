/* SPDX-License-Identifier: Apache-2.0 */
/* Which file is the flight recorder of a process, and whether the process lives. */
#include "cli/dump.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_SIZE (PATH_MAX + 256)
#define DELETED " (deleted)"

static bool is_number(const char *text)
{
    size_t size = strspn(text, "0123456789");

    return size > 0 && size < 10 && text[size] == '\0';
}

static bool ends_with(const char *text, const char *suffix)
{
    size_t size = strlen(text), end = strlen(suffix);

    return size >= end && strcmp(text + size - end, suffix) == 0;
}

/* The path at the end of a line of /proc/PID/maps, if it is a recorder's. */
static char *recorder_in(char *line)
{
    char *path = strchr(line, '/'), *name;

    if (!path)
        return NULL;
    path[strcspn(path, "\n")] = '\0';
    name = strrchr(path, '/') + 1;
    if (strncmp(name, MR_RECORDER_PREFIX, strlen(MR_RECORDER_PREFIX)) != 0 ||
        !strstr(name, MR_RECORDER_SUFFIX))
        return NULL;
    return path;
}

/* MR_OK with a path, MR_ENOTFOUND: it maps none, or there is no such process. */
static enum mr_status find_mapped(const char *pid, char path[PATH_MAX],
                                  struct mr_error *error)
{
    char maps[64], line[LINE_SIZE], *found = NULL;
    FILE *file;

    (void)snprintf(maps, sizeof(maps), "/proc/%s/maps", pid);
    file = fopen(maps, "re");
    if (!file && errno != ENOENT && errno != ESRCH)
        return mr_error_set_errno(error, MR_EUSAGE, errno,
                                  "process %s: its memory may not be looked at", pid);
    if (!file)
        return MR_ENOTFOUND;
    while (!found && fgets(line, sizeof(line), file))
        found = recorder_in(line);
    (void)fclose(file);
    if (!found)
        return MR_ENOTFOUND;
    if (ends_with(found, DELETED))
        return mr_error_set(error, MR_EUSAGE,
                            "process %s: its flight recorder's file was removed: %.150s",
                            pid, found);
    if (strlen(found) >= PATH_MAX)
        return mr_error_set(error, MR_EUSAGE, "process %s: path too long", pid);
    memcpy(path, found, strlen(found) + 1);
    return MR_OK;
}

/* The file as the process sees it: it may live in a container. */
static int open_of(const char *pid, const char *path)
{
    char below[PATH_MAX + 64];
    int fd;

    (void)snprintf(below, sizeof(below), "/proc/%s/root%s", pid, path);
    fd = open(below, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd >= 0 ? fd : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* A mapping holds the lock for as long as its process lives. */
static bool is_locked(int fd)
{
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
        (void)flock(fd, LOCK_UN);
        return false;
    }
    return true;
}

static bool is_of_pid(const char *name, const char *pid)
{
    size_t prefix = strlen(MR_RECORDER_PREFIX), size = strlen(pid);

    return strncmp(name, MR_RECORDER_PREFIX, prefix) == 0 &&
           strncmp(name + prefix, pid, size) == 0 && name[prefix + size] == '-' &&
           ends_with(name, MR_RECORDER_SUFFIX);
}

/* The newest that a dead process with this pid left there; -1: none. */
static int open_left_in(const char *place, const char *pid, char path[PATH_MAX])
{
    DIR *dir = opendir(place);
    struct dirent *entry;
    time_t newest = 0;
    int found = -1;

    while (dir && (entry = readdir(dir))) {
        struct stat stat;
        int fd;

        if (!is_of_pid(entry->d_name, pid))
            continue;
        fd = openat(dirfd(dir), entry->d_name,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && fstat(fd, &stat) == 0 && !is_locked(fd) &&
            (found < 0 || stat.st_mtime >= newest) &&
            snprintf(path, PATH_MAX, "%s/%s", place, entry->d_name) < PATH_MAX) {
            if (found >= 0)
                (void)close(found);
            found = fd;
            newest = stat.st_mtime;
        } else if (fd >= 0) {
            (void)close(fd);
        }
    }
    if (dir)
        (void)closedir(dir);
    return found;
}

static enum mr_status find_left(const struct mr_dump *dump, struct mr_dump_source *source,
                                struct mr_error *error)
{
    static const char *const usual[] = {"/dev/shm", "/tmp"};
    const char *pid = dump->process;
    bool is_there = kill((pid_t)strtol(pid, NULL, 10), 0) == 0 || errno == EPERM;

    source->fd = -1;
    if (*dump->places)
        source->fd = open_left_in(dump->places, pid, source->path);
    for (size_t i = 0; i < 2 && source->fd < 0 && !*dump->places; i++)
        source->fd = open_left_in(usual[i], pid, source->path);
    if (source->fd >= 0)
        return MR_OK;
    if (is_there)
        return mr_error_set(error, MR_EUSAGE,
                            "process %s has no flight recorder: it must be started with "
                            "MILLRACE_POLICY=overwrite, linked with libmillrace",
                            pid);
    return mr_error_set(error, MR_EUSAGE,
                        "no process %s, and no flight recorder that it left in %.100s; "
                        "--recorder-dir names another place",
                        pid, *dump->places ? dump->places : "/dev/shm and /tmp");
}

static enum mr_status find_by_pid(const struct mr_dump *dump,
                                  struct mr_dump_source *source, struct mr_error *error)
{
    enum mr_status status = find_mapped(dump->process, source->path, error);

    if (status == MR_OK && dump->is_recovery)
        return mr_error_set(error, MR_EUSAGE,
                            "process %s still runs: --dump %s reads its flight recorder",
                            dump->process, dump->process);
    if (status == MR_ENOTFOUND)
        return find_left(dump, source, error);
    if (status != MR_OK)
        return status;
    source->is_alive = true;
    source->fd = open_of(dump->process, source->path);
    if (source->fd < 0)
        return mr_error_set_errno(error, MR_EUSAGE, errno, "%s", source->path);
    return MR_OK;
}

static enum mr_status find_file(const struct mr_dump *dump, struct mr_dump_source *source,
                                struct mr_error *error)
{
    if (strlen(dump->process) >= sizeof(source->path))
        return mr_error_set(error, MR_EUSAGE, "%.60s...: path too long", dump->process);
    memcpy(source->path, dump->process, strlen(dump->process) + 1);
    source->fd = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (source->fd < 0)
        return mr_error_set_errno(error, MR_EUSAGE, errno,
                                  "%s: neither a process nor a file that can be read",
                                  dump->process);
    source->is_alive = is_locked(source->fd);
    if (source->is_alive && dump->is_recovery)
        return mr_error_set(error, MR_EUSAGE,
                            "%s: its process still runs: --dump reads it", dump->process);
    return MR_OK;
}

static enum mr_status map_file(struct mr_dump_source *source, struct mr_error *error)
{
    struct stat stat;
    enum mr_status status;

    if (fstat(source->fd, &stat) != 0 || !S_ISREG(stat.st_mode) || stat.st_size <= 0)
        return mr_error_set(error, MR_EUSAGE, "%s: no flight recorder of millrace",
                            source->path);
    source->size = (uint64_t)stat.st_size;
    source->memory = mmap(NULL, source->size, PROT_READ, MAP_SHARED, source->fd, 0);
    if (source->memory == MAP_FAILED) {
        source->memory = NULL;
        return mr_error_set_errno(error, MR_EIO, errno, "%s", source->path);
    }
    status = mr_recorder_view_open(&source->view, source->memory, source->size, NULL);
    if (status == MR_OK)
        return MR_OK;
    (void)mr_recorder_view_open(&source->view, source->memory, source->size, error);
    return MR_EUSAGE;
}

enum mr_status mr_dump_find(const struct mr_dump *dump, struct mr_dump_source *source,
                            struct mr_error *error)
{
    enum mr_status status;

    memset(source, 0, sizeof(*source));
    source->fd = -1;
    status = is_number(dump->process) ? find_by_pid(dump, source, error)
                                      : find_file(dump, source, error);
    if (status == MR_OK)
        status = map_file(source, error);
    if (status != MR_OK)
        mr_dump_close(source);
    return status;
}

void mr_dump_close(struct mr_dump_source *source)
{
    if (source->memory)
        (void)munmap(source->memory, source->size);
    if (source->fd >= 0)
        (void)close(source->fd);
    source->memory = NULL;
    source->fd = -1;
}
