/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patchable sites: functions whose entry and exits are calls that the compiler put there
 * (gcc -pg -mfentry -minstrument-return=call, clang -fxray-instrument), turned on and off
 * while the program runs. Off, a site is an instruction that does nothing; on, it calls a
 * stub that writes the event. How a site is found: probe/site_table.h; how it is
 * switched, and why that is sound: probe/patch.h and docs/why/2026-11-20-live-patching.md.
 *
 *     struct mr_site_filter filter = {.only = globs, .only_count = 1};
 *     struct mr_sites_result result;
 *     enum mr_status status = mr_sites_switch(&filter, true, &result, &error);
 *
 * A filter says which functions: those whose name matches one of `only` (all, if there is
 * none), none of `except`, and that are no smaller than `min_size` bytes of code, or have
 * a loop, or MR_ALWAYS_TRACE where a patchable site can tell. Globs
 * are those of fnmatch(3), over the symbol's name; of a C++ function also over its
 * demangled name, with and without parameters, where the program has a demangler.
 * Switching changes the functions that match and leaves the others as they are. What was
 * switched holds for modules that come later, too. Functions built with
 * -finstrument-functions obey the same filters (probe/hook.h).
 *
 * mr_sites_switch() and mr_sites_count(): any thread but the writer and never from hooks
 * or signal handlers; they allocate, read files and wait for a module that is being
 * opened or closed. Switches are one at a time. A forked child begins as its parent was.
 *
 * Limits: MR_SITES_MODULES_MAX modules, MR_SITES_RULES_MAX filters since all functions
 * were last switched, MR_SITE_FILTER_TEXT bytes of globs per filter.
 */
#ifndef MR_PROBE_SITES_H
#define MR_PROBE_SITES_H

#include "base/compiler.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_SITES_MODULES_MAX 256
#define MR_SITES_RULES_MAX 16
#define MR_SITE_FILTER_TEXT 4096

struct mr_site_filter {
    const char *const *only, *const *except;
    uint32_t only_count, except_count;
    uint64_t min_size; /* bytes of code; 0: any; what has a loop is never too small */
};

/* A list of globs with commas between them, as options have it, taken apart. */
#define MR_SITE_GLOBS_MAX 128

struct mr_site_globs {
    uint32_t count;
    const char *items[MR_SITE_GLOBS_MAX]; /* point into the next */
    char text[MR_SITE_FILTER_TEXT];
};

/*
 * Empty text: no globs. Blanks around a glob are left out. MR_EUSAGE: an empty glob;
 * MR_ELIMIT: too many, or too long. `globs` stays where it is: it points into itself.
 */
enum mr_status mr_site_globs_parse(struct mr_site_globs *globs, const char *text,
                                   struct mr_error *error);

struct mr_sites_result {
    uint32_t modules;  /* with patchable sites */
    uint32_t sites;    /* patchable functions in them */
    uint32_t on;       /* of these, on now */
    uint32_t matched;  /* by the filter */
    uint32_t switched; /* of these, were in the other state before */
    uint32_t refused;  /* of these, could not be switched: see mr_sites_counts */
    uint32_t hooked; /* functions of modules with hooks that match; 0 if all are meant */
    /* The first glob that no function's name matches, in any module; "" if none. */
    char unmatched[128];
};

/*
 * Switches the functions that match. MR_OK, also when nothing matches (see `unmatched`);
 * MR_ELIMIT: too many filters, or too long; MR_EUSAGE: the program is not traced;
 * MR_ENOMEM; MR_EIO: the system lets nobody write to code. `result` may be NULL.
 */
enum mr_status mr_sites_switch(const struct mr_site_filter *filter, bool is_on,
                               struct mr_sites_result *result, struct mr_error *error);

struct mr_sites_counts {
    uint32_t modules;         /* with patchable sites, loaded now */
    uint32_t modules_refused; /* seen, but none of their sites is used */
    uint32_t sites;           /* functions */
    uint32_t points;          /* their entries and exits */
    uint32_t on;              /* functions that are on */
    uint32_t points_unclear;  /* calls of ours that could not be told apart from data */
    uint64_t patched;         /* points switched so far */
    uint64_t foreign;         /* points that held neither form: a debugger's, say */
    char refused_why[MR_ERROR_TEXT_SIZE]; /* of the last refused module */
};

void mr_sites_count(struct mr_sites_counts *counts);

/*
 * Whether the site's calls can be counted instead of recorded (probe/prune.h): functions
 * with hooks can, patchable ones but those with MR_ALWAYS_TRACE. Any thread, as above.
 */
MR_HIDDEN bool mr_sites_may_prune(uint32_t site);
/* A patchable function that is not: its module was closed and opened since. Hooks: true. */
MR_HIDDEN bool mr_sites_is_pruned(uint32_t site);
/*
 * Does that, or takes it back, for `count` sites. is_done[i]: false where the code is not
 * what it was, or is not to be written. MR_ENOMEM: nothing was done for hooks.
 */
MR_HIDDEN enum mr_status mr_sites_prune(const uint32_t *sites, uint32_t count,
                                        bool is_pruned, bool *is_done);

/*
 * What the small object in each instrumented module (probe/module_x86_64.S) tells of it:
 * the addresses of the module's own __fentry__ and __return__, and its XRay table.
 */
struct mr_site_module {
    uint64_t version; /* MR_SITE_MODULE_VERSION */
    uint64_t entry, exit;
    uint64_t xray_start, xray_end; /* equal where there is none */
    uint64_t entry_always;         /* as `entry`, of functions with MR_ALWAYS_TRACE */
};

#define MR_SITE_MODULE_VERSION 2

/* Called by that object's constructor and destructor: before all others, after them. */
MR_EXPORT void mr_probe_module_add(const struct mr_site_module *module);
MR_EXPORT void mr_probe_module_remove(const struct mr_site_module *module);

/* What the start of the probe decided about this process. */
enum mr_sites_mode {
    MR_SITES_WAIT,    /* not decided yet */
    MR_SITES_LEAVE,   /* MILLRACE_DISABLED: code stays as it was linked */
    MR_SITES_NEUTRAL, /* never traced: sites become no-operations for good */
    MR_SITES_OFF,     /* traced; sites are off until they are switched */
    MR_SITES_ON       /* traced; sites are on, or those that MILLRACE_ONLY ... name */
};

struct mr_probe;

/*
 * The constructor, once, after mr_probe and its windows stand: takes the modules that
 * came before, and those that come later as they come. `probe` is NULL where mode says
 * that it is not traced.
 */
MR_HIDDEN void mr_sites_start(struct mr_probe *probe, enum mr_sites_mode mode);

/*
 * Modules came or went: functions with hooks in new ones obey the filters, too. Until the
 * helper has called this (100 ms), they are as what was there before, or unfiltered.
 */
MR_HIDDEN void mr_sites_modules_changed(void);

/*
 * The next glob of the last filter that no function's name matches so far; *at begins
 * as 0. False: no more.
 */
MR_HIDDEN bool mr_sites_unmatched(uint32_t *at, char *glob, size_t capacity);
/* The last filter is that of the environment: nothing was switched since. */
MR_HIDDEN bool mr_sites_are_as_started(void);

/*
 * The functions with patchable sites of one module, for who looks some up on the way of an
 * exception; true until the generation changes, or the module is gone.
 */
struct mr_site_function;

struct mr_sites_view {
    uint32_t generation;
    uint32_t count; /* of functions; 0: none */
    uint64_t address, size;
    const struct mr_site_function *functions;
};

/*
 * That of the module at `address`, of `size` bytes. False: not now, as they are being
 * switched. Any thread, and signal handlers; never waits.
 */
MR_HIDDEN bool mr_sites_look(uint64_t address, uint64_t size, struct mr_sites_view *view);

/*
 * Whether `address` is an instruction of a thunk, and what that has pushed by then, in bytes
 * (probe/stub.h). False also: not now, as above.
 */
MR_HIDDEN bool mr_sites_is_thunk(uint64_t address, uint64_t *pushed);
/* Changes when a module with sites comes or goes. */
MR_HIDDEN uint32_t mr_sites_generation(void);
/* Whether `function` is the first address of one of them. */
MR_HIDDEN bool mr_sites_view_has(const struct mr_sites_view *view, uint64_t function);

/* fork(): no switch and no module is under way in the moment of the copy. */
MR_HIDDEN void mr_sites_before_fork(void);
MR_HIDDEN void mr_sites_after_fork(void);

#endif
