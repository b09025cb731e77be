/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One module with patchable sites: its functions, its stubs, and which are on.
 *
 *     status = mr_site_module_open(&module, &told, windows, &error);
 *     mr_site_module_apply(module, &rule, &result);       // any time later
 *     mr_site_module_close(module);
 *
 * Under the lock of probe/sites.c, but for what says otherwise.
 */
#ifndef MR_PROBE_SITE_MODULE_H
#define MR_PROBE_SITE_MODULE_H

#include "probe/patch.h"
#include "probe/site_rule.h"
#include "probe/site_table.h"
#include "probe/stub.h"

struct mr_site_state {
    struct mr_module module;
    struct mr_site_table table;
    struct mr_stub_area stubs;
    uint64_t key;  /* address of its __fentry__ */
    bool is_ended; /* its destructors have run: not to be written to any more */
    uint32_t on;   /* functions that are on */
    uint64_t patched, foreign;
};

/*
 * Finds the sites of the module that `told` describes, makes its stubs and turns its
 * points into their off form. Functions are off. Before the module's first instruction.
 * Maps *state. The error says why none of its sites can be used.
 */
enum mr_status mr_site_module_open(struct mr_site_state **state,
                                   const struct mr_site_module *told,
                                   const struct mr_windows *windows,
                                   struct mr_error *error);

/* Instead of it, where nothing will ever be traced: points become no-operations. */
enum mr_status mr_site_module_neutralise(const struct mr_site_module *told,
                                         struct mr_error *error);

/* The module is not loaded any more, and no thread runs its code. */
void mr_site_module_close(struct mr_site_state *state);

/* The function that begins at `address`, or NULL. */
struct mr_site_function *mr_site_module_find(const struct mr_site_state *state,
                                             uint64_t address);

/*
 * Its calls are counted from here on, or recorded again. False: its code, or the code of
 * its thunk, is not what it was, or is not to be written; some of it may be changed.
 */
bool mr_site_module_prune(struct mr_site_state *state, struct mr_patch *patch,
                          struct mr_site_function *function, bool is_pruned);

/*
 * Switches the functions that match to rule->is_on, and adds to *result. MR_EIO: the
 * system lets nobody write to code. Names are read where the rule has globs; without
 * them no glob matches.
 */
enum mr_status mr_site_module_apply(struct mr_site_state *state,
                                    struct mr_site_rule *rule,
                                    struct mr_sites_result *result);

#endif
