/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A filter of sites as it is kept: its globs copied, and which of them ever matched.
 *
 *     status = mr_site_rule_init(&rule, filter, is_on, &error);
 *     if (mr_site_rule_matches(&rule, &symbols, address, size)) ...
 *
 * One thread at a time. Demangling allocates.
 */
#ifndef MR_PROBE_SITE_RULE_H
#define MR_PROBE_SITE_RULE_H

#include "probe/sites.h"
#include "probe/symbols.h"

struct mr_site_rule {
    bool is_on; /* what becomes of functions that match */
    uint64_t min_size;
    uint32_t only_count, except_count;
    bool is_hit[MR_SITE_GLOBS_MAX]; /* `only` first, then `except` */
    char text[MR_SITE_FILTER_TEXT]; /* the same order, each ends with NUL */
};

/* MR_ELIMIT: too many globs, or too long; MR_EUSAGE: an empty one. */
enum mr_status mr_site_rule_init(struct mr_site_rule *rule,
                                 const struct mr_site_filter *filter, bool is_on,
                                 struct mr_error *error);
/* The same functions, whatever becomes of them. */
bool mr_site_rule_is_same(const struct mr_site_rule *a, const struct mr_site_rule *b);
/* Matches every function. */
bool mr_site_rule_is_all(const struct mr_site_rule *rule);
/* Looks at names. */
bool mr_site_rule_has_globs(const struct mr_site_rule *rule);
/*
 * A function without a name (symbols may be NULL) has the name "". Its code is read where
 * it is smaller than the rule wants: what has a loop is large. Size UINT64_MAX: it always is.
 */
bool mr_site_rule_matches(struct mr_site_rule *rule, const struct mr_symbols *symbols,
                          uint64_t address, uint64_t size);
/* The first glob at `*at` or behind it that never matched, and *at behind it; NULL: none. */
const char *mr_site_rule_unmatched(const struct mr_site_rule *rule, uint32_t *at);

#endif
