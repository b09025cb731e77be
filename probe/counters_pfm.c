/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libpfm4, loaded for as long as names are looked up: linked in, its tables of all processors would be 1.07 MiB of
 * private memory in every traced program, and Debian's archive cannot be linked into a shared library.
 *
 * This file alone includes libpfm4's headers: they have a struct perf_event_attr of their own.
 */
#include "base/compiler.h"
#include "probe/counters_names.h"

#include <dlfcn.h>
#include <perfmon/pfmlib_perf_event.h>
#include <string.h>

#define LIBRARY "libpfm.so.4"

/* Weak: a program that is linked statically has no loader, and goes without. */
extern MR_WEAK void *dlopen(const char *file, int mode);
extern MR_WEAK void *dlsym(void *handle, const char *name);
extern MR_WEAK int dlclose(void *handle);

struct pfm {
    void *library;
    int (*initialize)(void);
    const char *(*text)(int code);
    int (*encode)(const char *name, int levels, pfm_os_t os, void *argument);
};

/* ISO C has no cast from an object to a function. */
static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);

    memcpy(function, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static bool load(struct pfm *pfm)
{
    if (!dlopen || !dlsym || !dlclose)
        return false;
    pfm->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!pfm->library)
        return false;
    return find(pfm->library, "pfm_initialize", &pfm->initialize) &&
           find(pfm->library, "pfm_strerror", &pfm->text) &&
           find(pfm->library, "pfm_get_os_event_encoding", &pfm->encode);
}

static enum mr_status encode(const struct pfm *pfm, const char *name,
                             struct mr_counter_event *event, struct mr_error *error)
{
    struct perf_event_attr attributes = {.size = sizeof(attributes)};
    pfm_perf_encode_arg_t argument = {.attr = &attributes, .size = sizeof(argument)};
    int code = pfm->initialize();

    if (code == PFM_SUCCESS)
        code = pfm->encode(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT_EXT, &argument);
    if (code != PFM_SUCCESS)
        return mr_error_set(error, MR_ENOTFOUND, "libpfm4: %s", pfm->text(code));
    event->type = attributes.type;
    event->config = attributes.config;
    event->config1 = attributes.config1;
    event->config2 = attributes.config2;
    event->is_user_only = attributes.exclude_kernel;
    event->is_software = attributes.type == PERF_TYPE_SOFTWARE;
    return MR_OK;
}

enum mr_status mr_counter_resolve_pfm(const char *name, struct mr_counter_event *event,
                                      struct mr_error *error)
{
    struct pfm pfm = {.library = NULL};
    enum mr_status status;

    if (load(&pfm))
        status = encode(&pfm, name, event, error);
    else
        status = mr_error_set(error, MR_ENOTFOUND, "%s is not installed", LIBRARY);
    if (pfm.library)
        (void)dlclose(pfm.library);
    return status;
}
