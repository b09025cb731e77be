/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/own_fd.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

void mr_own_fd_remember(struct mr_own_fd *own, int fd)
{
    struct stat stat;

    *own = (struct mr_own_fd){.fd = -1};
    if (fd >= 0 && fstat(fd, &stat) == 0)
        *own = (struct mr_own_fd){fd, stat.st_dev, stat.st_ino};
}

void mr_own_fd_make_room(void)
{
    int fd = open("/", O_PATH | O_CLOEXEC);
    int high = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, MR_OWN_FD_MIN) : -1;

    if (high >= 0)
        (void)close(high);
    if (fd >= 0)
        (void)close(fd);
}

int mr_own_fd_adopt(struct mr_own_fd *own, int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, MR_OWN_FD_MIN);

    if (high >= 0) { /* else the program's limit is lower: it stays where it is */
        (void)close(fd);
        fd = high;
    }
    mr_own_fd_remember(own, fd);
    return own->fd;
}

bool mr_own_fd_is_there(const struct mr_own_fd *own)
{
    struct stat stat;

    return own->fd >= 0 && fstat(own->fd, &stat) == 0 && stat.st_dev == own->device &&
           stat.st_ino == own->inode;
}
