/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a thread began after recording was last switched, for threads that were not
 * made by our pthread_create() (static programs, clone()): the kernel knows, to a tick of
 * 10 ms. Called once in the life of a thread, and only where recording was ever switched.
 */
#include "probe/registry.h"

#include "probe/futex.h"

#include <fcntl.h>
#include <sys/auxv.h>

#define STAT_SIZE 384 /* the 22 fields that matter are shorter: stacks are small */
/* Of /proc/PID/stat, counted from the one behind the name in parentheses. */
#define START_FIELD 19
#define TICKS_PER_S_USUAL 100

static char *append(char *at, const char *text)
{
    while (*text)
        *at++ = *text++;
    return at;
}

static char *append_number(char *at, uint32_t number)
{
    char digits[12];
    size_t count = 0;

    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0)
        *at++ = digits[--count];
    return at;
}

/* What was read, with a zero at its end. */
static bool read_stat(uint32_t tid, char *text)
{
    char path[64], *at = append(path, "/proc/self/task/");
    long fd, size;

    at = append(append_number(at, tid), "/stat");
    *at = '\0';
    fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size = syscall(SYS_read, fd, text, STAT_SIZE - 1);
    (void)syscall(SYS_close, fd);
    text[size > 0 ? size : 0] = '\0';
    return size > 0;
}

/* Behind the name, which may have any characters; NULL: no such place. */
static const char *behind_name(const char *text)
{
    const char *at = NULL;

    for (; *text; text++)
        if (*text == ')')
            at = text + 1;
    return at;
}

/* Clock ticks since the system began; 0: unknown. */
static uint64_t start_of(const char *text)
{
    const char *at = behind_name(text);
    uint64_t ticks = 0;

    for (int field = 0; at && *at && field <= START_FIELD; at++)
        field += *at == ' ' ? 1 : 0;
    for (; at && *at >= '0' && *at <= '9'; at++)
        ticks = 10 * ticks + (uint64_t)(*at - '0');
    return ticks;
}

/* Of its own, so that who need not ask needs no stack for it. */
MR_NOINLINE static bool began_after(uint32_t tid, uint64_t ns)
{
    uint64_t per_s = getauxval(AT_CLKTCK);
    uint64_t tick_ns = MR_SECOND_NS / (per_s ? per_s : TICKS_PER_S_USUAL);
    char text[STAT_SIZE];

    return read_stat(tid, text) && start_of(text) > ns / tick_ns;
}

uint32_t mr_thread_cuts_before(const struct mr_probe *probe,
                               const struct mr_thread *thread, uint32_t tid)
{
    const struct mr_cuts *cuts = &probe->pool.shared.cuts;
    uint32_t settled = mr_load_acquire(&cuts->settled); /* [T] */

    if (thread->cuts_before == settled)
        return settled;
    return began_after(tid, mr_load_relaxed(&cuts->settled_ns)) ? settled
                                                                : thread->cuts_before;
}

bool mr_thread_has_ended(uint32_t tid)
{
    char text[STAT_SIZE];
    const char *at = read_stat(tid, text) ? behind_name(text) : NULL;

    return at && at[0] == ' ' && (at[1] == 'Z' || at[1] == 'X');
}
