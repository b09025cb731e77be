/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors in a process that is not ours. Programs close all they do not know
 * (daemon(), closefrom()), get the same numbers again for files of their own, and count
 * on the lowest number being given next. So the probe's socket lives at a high number,
 * and before each use it is asked whether the number still means that socket; if not, it
 * is forgotten, not closed.
 *
 *     struct mr_own_fd own;
 *     fd = mr_own_fd_adopt(&own, socket(...));    // another number, if there is one
 *     if (!mr_own_fd_is_there(&own)) ...          // closed, or somebody else's by now
 *
 * Between the question and the use some time remains, at most a millisecond while the
 * program runs; the high number makes it unlikely to be used again within it.
 * One thread; async-signal-safe; errno may change.
 */
#ifndef MR_PROBE_OWN_FD_H
#define MR_PROBE_OWN_FD_H

#include <stdbool.h>
#include <sys/types.h>

/* Above what programs use without asking for more, below their usual limit of 1024. */
#define MR_OWN_FD_MIN 512

struct mr_own_fd {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

/*
 * Lets the process have such numbers without a wait, while it has one thread: a table of descriptors that threads share grows
 * only after a grace period of the kernel's (RCU), 10 ms and more in which a writer would drain nothing. Where it has more, this waits. Nothing else changes.
 */
void mr_own_fd_make_room(void);
/* Takes `fd`, moves it up, and remembers it; its new number, -1 if it is not open. */
int mr_own_fd_adopt(struct mr_own_fd *own, int fd);
/* Remembers what `fd` is now, and leaves it where it is. */
void mr_own_fd_remember(struct mr_own_fd *own, int fd);
/* The number still means what was remembered. */
bool mr_own_fd_is_there(const struct mr_own_fd *own);

#endif
