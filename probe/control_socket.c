/* SPDX-License-Identifier: Apache-2.0 */
/* Where the control socket lies, and what killed processes left there. */
#include "probe/control.h"

#include "base/compiler.h"
#include "base/id.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 16
#define FOLDER_SIZE 88
/* Of one sweep. */
#define SWEEP_NAMES_MAX 4096
#define SWEEP_REMOVED_MAX 256

static socklen_t address_of(const char *path, struct sockaddr_un *address)
{
    size_t size = strlen(path);

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, path, size);
    if (path[0] != '@')
        return (socklen_t)sizeof(*address);
    address->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
}

/* A folder that nobody else can write to. False with errno. */
static bool make_folder(const char *path)
{
    struct stat stat;

    if (mkdir(path, 0700) == 0)
        return true;
    if (errno != EEXIST || lstat(path, &stat) != 0)
        return false;
    errno = EPERM;
    return S_ISDIR(stat.st_mode) && stat.st_uid == geteuid() && !(stat.st_mode & 077);
}

/* The name gets the mode that the descriptor has, less the umask. */
static bool bind_to(int fd, const char *path)
{
    struct sockaddr_un address;
    socklen_t size = address_of(path, &address);

    (void)fchmod(fd, 0600);
    if (bind(fd, (const struct sockaddr *)&address, size) != 0)
        return false;
    if (path[0] != '@' && chmod(path, 0600) != 0) {
        (void)unlink(path);
        return false;
    }
    return true;
}

static bool listen_at(struct mr_control_socket *control, const char *path)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), failure;

    if (fd < 0)
        return false;
    if (bind_to(fd, path) && listen(fd, BACKLOG) == 0) {
        (void)snprintf(control->path, sizeof(control->path), "%s", path);
        (void)mr_own_fd_adopt(&control->own, fd);
        return true;
    }
    failure = errno;
    (void)close(fd);
    errno = failure;
    return false;
}

static uint32_t random_number(uint32_t pid)
{
    struct mr_id id;
    uint32_t number = pid;

    if (mr_id_random(&id) == MR_OK)
        memcpy(&number, &id, sizeof(number));
    return number;
}

static bool open_in(struct mr_control_socket *control, const char *directory,
                    uint32_t pid)
{
    char folder[FOLDER_SIZE], path[MR_CONTROL_PATH_SIZE];
    int size = snprintf(folder, sizeof(folder), "%s/millrace-%u", directory, geteuid());

    errno = ENAMETOOLONG;
    if (size < 0 || size >= (int)sizeof(folder))
        return false;
    size = snprintf(path, sizeof(path), "%s/%u-%08x", folder, pid, random_number(pid));
    if (size < 0 || size >= (int)sizeof(path) || !make_folder(folder))
        return false;
    return listen_at(control, path);
}

static bool open_abstract(struct mr_control_socket *control, uint32_t pid)
{
    char name[64];

    (void)snprintf(name, sizeof(name), "@millrace-%u/%u-%08x", geteuid(), pid,
                   random_number(pid));
    return listen_at(control, name);
}

enum mr_status mr_control_socket_open(struct mr_control_socket *control,
                                      const struct mr_config *config, uint32_t pid,
                                      struct mr_error *error)
{
    const char *directory = config->control_dir;
    char of_user[32];
    const char *candidates[] = {config->runtime_dir, of_user, "/tmp", "/dev/shm",
                                "/var/tmp"};

    *control = (struct mr_control_socket){.own = {.fd = -1}};
    (void)snprintf(of_user, sizeof(of_user), "/run/user/%u", geteuid());
    if (*directory) {
        if (directory[0] == '/' && open_in(control, directory, pid))
            return MR_OK;
        return mr_error_set_errno(error, MR_EADDR, directory[0] == '/' ? errno : EINVAL,
                                  "no control socket in MILLRACE_CONTROL_DIR=%s",
                                  directory);
    }
    for (size_t i = 0; i < MR_ARRAY_COUNT(candidates); i++)
        if (candidates[i][0] == '/' && open_in(control, candidates[i], pid))
            return MR_OK;
    if (open_abstract(control, pid))
        return MR_OK;
    return mr_error_set_errno(error, MR_EADDR, errno, "no control socket can be made");
}

void mr_control_socket_close(struct mr_control_socket *control, bool is_ours)
{
    if (is_ours && control->path[0] == '/')
        (void)unlink(control->path);
    if (mr_own_fd_is_there(&control->own))
        (void)close(control->own.fd);
    control->own.fd = -1;
    control->path[0] = '\0';
}

/* The process of a name of ours, or 0. */
static pid_t pid_of(const char *name)
{
    char *end;
    unsigned long pid = isdigit((unsigned char)*name) ? strtoul(name, &end, 10) : 0;

    if (pid == 0 || pid > INT32_MAX || *end != '-' || strlen(end + 1) != 8 ||
        strspn(end + 1, "0123456789abcdef") != 8)
        return 0;
    return (pid_t)pid;
}

/*
 * A process of another pid namespace may share the folder: what counts is that nobody
 * listens. errno of the attempt to connect.
 */
static int try_to_connect(const char *path)
{
    struct sockaddr_un address;
    socklen_t size = address_of(path, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int failure = 0;

    if (fd < 0)
        return errno;
    if (connect(fd, (const struct sockaddr *)&address, size) != 0)
        failure = errno;
    (void)close(fd);
    return failure;
}

static bool sweep_name(const char *folder, const char *name)
{
    char path[MR_CONTROL_PATH_SIZE];
    pid_t pid = pid_of(name);
    int size;

    if (pid == 0 || kill(pid, 0) == 0 || errno != ESRCH)
        return false;
    size = snprintf(path, sizeof(path), "%s/%s", folder, name);
    return size > 0 && size < (int)sizeof(path) && try_to_connect(path) == ECONNREFUSED &&
           unlink(path) == 0;
}

void mr_control_socket_sweep(const struct mr_control_socket *control)
{
    char folder[MR_CONTROL_PATH_SIZE];
    uint32_t names = 0, removed = 0;
    const struct dirent *entry;
    DIR *stream;

    if (control->path[0] != '/')
        return;
    memcpy(folder, control->path, sizeof(folder));
    *strrchr(folder, '/') = '\0';
    stream = opendir(folder);
    while (stream && names++ < SWEEP_NAMES_MAX && removed < SWEEP_REMOVED_MAX &&
           (entry = readdir(stream)) != NULL)
        removed += sweep_name(folder, entry->d_name);
    if (stream)
        (void)closedir(stream);
}
