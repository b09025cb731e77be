/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlopen() and dlclose() in front of libc's, to learn of modules that hooks are in: these
 * have nothing of ours that says they came (probe/changes.h).
 *
 *     dlopen()   notes that something may come, and jumps on to libc's, which looks at who
 *                called it: its run path and $ORIGIN count (probe/interpose_load.S)
 *     dlclose()  takes stock before, so that what goes is known, and after, so that the
 *                moment is
 *
 * In the static library there is none: a static program has no plugins.
 */
#include "probe/registry.h"

#include "base/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

typedef void *open_function(const char *, int);
typedef int close_function(void *);

static _Atomic(void *) real_open, real_close;

/* Relaxed: always the same value. */
static void *find_real(_Atomic(void *) *kept, const char *name)
{
    void *symbol = mr_load_relaxed(kept);

    if (!symbol) {
        symbol = dlsym(RTLD_NEXT, name);
        mr_store_relaxed(kept, symbol);
    }
    return symbol;
}

static bool is_watched(const struct mr_probe *probe)
{
    return probe && mr_load_relaxed(&probe->is_running) &&
           !mr_load_relaxed(&probe->stop_wanted) &&
           !(mr_thread_self.flags & MR_THREAD_OWN);
}

static void *open_nothing(const char *name, int mode)
{
    (void)name;
    (void)mode;
    errno = ENOSYS;
    return NULL;
}

/* Called by dlopen() in interpose_load.S: where it goes on. errno stays. */
MR_HIDDEN open_function *mr_interpose_dlopen(void);

open_function *mr_interpose_dlopen(void)
{
    int saved_errno = errno;
    void *symbol = find_real(&real_open, "dlopen");
    open_function *function = open_nothing;

    if (is_watched(mr_probe))
        mr_store_relaxed(&mr_probe->changes.opened_ns, mr_clock_monotonic_ns());
    if (symbol)
        memcpy(&function, &symbol, sizeof(function)); /* ISO C has no such cast */
    errno = saved_errno;
    return function;
}

MR_EXPORT int dlclose(void *handle)
{
    bool is_told = is_watched(mr_probe);
    void *symbol = find_real(&real_close, "dlclose");
    close_function *function;
    int saved_errno = errno, failure;

    if (!symbol)
        return -1;
    memcpy(&function, &symbol, sizeof(function));
    if (is_told)
        (void)mr_changes_look(mr_probe, true);
    errno = saved_errno;
    failure = function(handle);
    saved_errno = errno;
    if (is_told && is_watched(mr_probe))
        (void)mr_changes_look(mr_probe, true);
    errno = saved_errno;
    return failure;
}
