/* SPDX-License-Identifier: Apache-2.0 */
#include "net/token.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* Bytes read, fewer than `size` only at the end of the file; -1 with errno. */
static ssize_t read_start(int fd, char *data, size_t size)
{
    size_t have = 0;

    while (have < size) {
        ssize_t more = read(fd, data + have, size - have);

        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return -1;
        if (more == 0)
            break;
        have += (size_t)more;
    }
    return (ssize_t)have;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

enum mr_status mr_token_read(const char *option, const char *path,
                             char token[MR_TOKEN_SIZE], struct mr_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t have = fd < 0 ? -1 : read_start(fd, token, MR_TOKEN_SIZE);
    int failure = errno;

    MR_ASSERT(have <= MR_TOKEN_SIZE);
    if (fd >= 0)
        (void)close(fd);
    if (have < 0)
        return mr_error_set_errno(error, MR_EUSAGE, failure, "%s: %s", option, path);
    size_t size = (size_t)have;
    const char *line_end = memchr(token, '\n', size);
    if (line_end)
        size = (size_t)(line_end - token);
    if (size == MR_TOKEN_SIZE)
        return mr_error_set(error, MR_EUSAGE, "%s: %s: the token is longer than %d bytes",
                            option, path, MR_TOKEN_SIZE - 1);
    while (size > 0 && is_blank(token[size - 1]))
        size--;
    token[size] = '\0';
    if (*token == '\0')
        return mr_error_set(error, MR_EUSAGE, "%s: %s: holds no token", option, path);
    return MR_OK;
}
