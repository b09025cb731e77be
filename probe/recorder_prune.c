/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs that died left behind, in bounds. Dead is whose file can be locked: a
 * mapping holds the lock as long as its process lives. No state, one thread; allocates.
 */
#include "probe/recorder.h"

#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 4096 /* looked at; of more, the rest is for the next time */
/* Between its creation and its lock, a file looks dead. */
#define YOUNG_NS (10 * MR_SECOND_NS)

struct file {
    char name[64];
    uint64_t made_ns;
};

static bool ends_with(const char *name, const char *suffix)
{
    size_t size = strlen(name), end = strlen(suffix);

    return size >= end && strcmp(name + size - end, suffix) == 0;
}

static bool is_ours(const char *name)
{
    return strncmp(name, MR_RECORDER_PREFIX, strlen(MR_RECORDER_PREFIX)) == 0 &&
           (ends_with(name, MR_RECORDER_SUFFIX) ||
            ends_with(name, MR_RECORDER_SUFFIX MR_RECORDER_SUFFIX_NEW)) &&
           strlen(name) < sizeof(((struct file *)NULL)->name);
}

/* A file of this user whose process is dead; when it was made. */
static bool is_dead(int directory, const char *name, uint64_t *made_ns)
{
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat stat;
    bool is_dead;

    if (fd < 0)
        return false;
    is_dead = fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) &&
              stat.st_uid == geteuid() && flock(fd, LOCK_SH | LOCK_NB) == 0;
    (void)close(fd);
    if (!is_dead)
        return false;
    *made_ns =
        (uint64_t)stat.st_mtim.tv_sec * MR_SECOND_NS + (uint64_t)stat.st_mtim.tv_nsec;
    return *made_ns + YOUNG_NS < mr_clock_realtime_ns();
}

static int by_age(const void *a, const void *b)
{
    const struct file *left = a, *right = b;

    return left->made_ns < right->made_ns ? 1 : left->made_ns > right->made_ns ? -1 : 0;
}

static size_t find(DIR *dir, struct file *files)
{
    struct dirent *entry;
    size_t count = 0;

    while (count < FILES_MAX && (entry = readdir(dir))) {
        struct file *file = &files[count];

        if (!is_ours(entry->d_name) ||
            !is_dead(dirfd(dir), entry->d_name, &file->made_ns))
            continue;
        if (ends_with(entry->d_name, MR_RECORDER_SUFFIX_NEW)) {
            (void)unlinkat(dirfd(dir), entry->d_name, 0); /* nothing is in it */
            continue;
        }
        memcpy(file->name, entry->d_name, strlen(entry->d_name) + 1);
        count++;
    }
    return count;
}

void mr_recorder_prune(const char *directory, uint32_t keep)
{
    DIR *dir = opendir(directory);
    struct file *files = malloc(FILES_MAX * sizeof(*files));

    if (dir && files) {
        size_t count = find(dir, files);

        qsort(files, count, sizeof(*files), by_age);
        for (size_t i = keep; i < count; i++)
            (void)unlinkat(dirfd(dir), files[i].name, 0);
    }
    free(files);
    if (dir)
        (void)closedir(dir);
}

void mr_recorder_prune_beside(const struct mr_recorder *recorder, uint32_t keep)
{
    char directory[MR_RECORDER_PATH_SIZE];
    const char *slash = strrchr(recorder->path, '/');

    if (!slash || slash == recorder->path)
        return;
    memcpy(directory, recorder->path, (size_t)(slash - recorder->path));
    directory[slash - recorder->path] = '\0';
    mr_recorder_prune(directory, keep);
}
