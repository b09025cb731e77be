/* SPDX-License-Identifier: Apache-2.0 */
#include "net/file.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static enum mr_status write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, data, size);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return MR_EIO;
        data += written;
        size -= (size_t)written;
    }
    return MR_OK;
}

/* The rename would put a file in the place of a device (/dev/null), of a pipe, of a link (/dev/stdout): for root it does. */
static bool may_be_replaced(const char *path)
{
    struct stat there;

    return lstat(path, &there) != 0 || S_ISREG(there.st_mode);
}

enum mr_status mr_file_replace(const char *path, const void *data, size_t size,
                               struct mr_error *error)
{
    char temporary[PATH_MAX];
    int fd;
    enum mr_status status;

    MR_ASSERT(path && *path);
    if (!may_be_replaced(path))
        return mr_error_set(error, MR_EIO,
                            "%s: is there and is no regular file: give another path",
                            path);
    if (snprintf(temporary, sizeof(temporary), "%s.%ld.tmp", path, (long)getpid()) >=
        (int)sizeof(temporary))
        return mr_error_set(error, MR_EIO, "%.80s...: the path is too long", path);
    fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return mr_error_set_errno(error, MR_EIO, errno, "%s: cannot write", path);
    status = write_all(fd, data, size);
    if (close(fd) != 0)
        status = MR_EIO;
    if (status == MR_OK && rename(temporary, path) != 0)
        status = MR_EIO;
    if (status != MR_OK) {
        mr_error_set_errno(error, status, errno, "%s: cannot write", path);
        (void)unlink(temporary);
    }
    return status;
}
