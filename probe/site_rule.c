/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/site_rule.h"

#include "probe/code_loop.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* Where the program has the C++ runtime. */
MR_WEAK char *__cxa_demangle(const char *name, char *out, size_t *size, int *status);

#define NAME_SIZE 1024
/* As the symbol table has it, demangled, demangled without parameters. */
#define FORMS 3

struct names {
    const char *forms[FORMS];
    uint32_t count;
    char *demangled;
    char bare[NAME_SIZE];
};

static enum mr_status add_globs(struct mr_site_rule *rule, const char *const *globs,
                                uint32_t count, size_t *used, struct mr_error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        size_t size = strlen(globs[i]) + 1;

        if (size == 1)
            return mr_error_set(error, MR_EUSAGE, "an empty glob");
        if (size > sizeof(rule->text) - *used)
            return mr_error_set(error, MR_ELIMIT, "more than %zu bytes of globs",
                                sizeof(rule->text));
        memcpy(rule->text + *used, globs[i], size);
        *used += size;
    }
    return MR_OK;
}

enum mr_status mr_site_rule_init(struct mr_site_rule *rule,
                                 const struct mr_site_filter *filter, bool is_on,
                                 struct mr_error *error)
{
    enum mr_status status;
    size_t used = 0;

    memset(rule, 0, sizeof(*rule));
    rule->is_on = is_on;
    rule->min_size = filter->min_size;
    rule->only_count = filter->only_count;
    rule->except_count = filter->except_count;
    if (filter->only_count > MR_SITE_GLOBS_MAX ||
        filter->except_count > MR_SITE_GLOBS_MAX - filter->only_count)
        return mr_error_set(error, MR_ELIMIT, "more than %d globs", MR_SITE_GLOBS_MAX);
    status = add_globs(rule, filter->only, filter->only_count, &used, error);
    if (status == MR_OK)
        status = add_globs(rule, filter->except, filter->except_count, &used, error);
    return status;
}

bool mr_site_rule_is_same(const struct mr_site_rule *a, const struct mr_site_rule *b)
{
    return a->min_size == b->min_size && a->only_count == b->only_count &&
           a->except_count == b->except_count &&
           memcmp(a->text, b->text, sizeof(a->text)) == 0;
}

bool mr_site_rule_has_globs(const struct mr_site_rule *rule)
{
    return rule->only_count + rule->except_count > 0;
}

bool mr_site_rule_is_all(const struct mr_site_rule *rule)
{
    return !mr_site_rule_has_globs(rule) && rule->min_size == 0;
}

/*
 * Up to the parenthesis that opens the parameters: the first outside <...> that is not
 * behind "operator", nor of "(anonymous namespace)".
 */
static size_t bare_size(const char *name)
{
    static const char anonymous[] = "(anonymous namespace)";
    static const char call_operator[] = "operator()";
    size_t depth = 0, i = 0;

    while (name[i] != '\0') {
        if (strncmp(name + i, anonymous, sizeof(anonymous) - 1) == 0) {
            i += sizeof(anonymous) - 1;
        } else if (strncmp(name + i, call_operator, sizeof(call_operator) - 1) == 0) {
            i += sizeof(call_operator) - 1;
        } else {
            if (name[i] == '(' && depth == 0)
                break;
            depth += name[i] == '<';
            depth -= name[i] == '>' && depth > 0;
            i++;
        }
    }
    return i;
}

static void spell(struct names *names, const char *name)
{
    int status = -1;

    names->count = 1;
    names->forms[0] = name;
    names->demangled = NULL;
    if (name[0] == '_' && name[1] == 'Z' && __cxa_demangle)
        names->demangled = __cxa_demangle(name, NULL, NULL, &status);
    if (names->demangled) {
        size_t size = bare_size(names->demangled);

        names->forms[names->count++] = names->demangled;
        if (size < sizeof(names->bare)) {
            memcpy(names->bare, names->demangled, size);
            names->bare[size] = '\0';
            names->forms[names->count++] = names->bare;
        }
    }
}

static bool glob_matches(const char *glob, const struct names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        if (fnmatch(glob, names->forms[i], 0) == 0)
            return true;
    return false;
}

/* Every glob is tried, so that is_hit tells of each. */
static void match_name(struct mr_site_rule *rule, const char *name, bool *is_only,
                       bool *is_except)
{
    const char *glob = rule->text;
    struct names names;

    spell(&names, name);
    for (uint32_t i = 0; i < rule->only_count + rule->except_count; i++) {
        if (glob_matches(glob, &names)) {
            rule->is_hit[i] = true;
            *(i < rule->only_count ? is_only : is_except) = true;
        }
        glob += strlen(glob) + 1;
    }
    free(names.demangled);
}

bool mr_site_rule_matches(struct mr_site_rule *rule, const struct mr_symbols *symbols,
                          uint64_t address, uint64_t size)
{
    bool is_only = rule->only_count == 0, is_except = false;

    if (mr_site_rule_has_globs(rule) && symbols)
        for (uint32_t i = mr_symbols_first(symbols, address);
             i < symbols->count && symbols->items[i].address == address; i++)
            match_name(rule, symbols->items[i].name, &is_only, &is_except);
    return is_only && !is_except &&
           (size >= rule->min_size || mr_code_has_loop(address, size));
}

const char *mr_site_rule_unmatched(const struct mr_site_rule *rule, uint32_t *at)
{
    const char *glob = rule->text;

    for (uint32_t i = 0; i < rule->only_count + rule->except_count; i++) {
        if (i >= *at && !rule->is_hit[i]) {
            *at = i + 1;
            return glob;
        }
        glob += strlen(glob) + 1;
    }
    return NULL;
}

/* Blanks inside belong to names such as `operator new`. */
static char *trim(char *item)
{
    char *end = item + strlen(item);

    while (end > item && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = '\0';
    return item + strspn(item, " \t");
}

enum mr_status mr_site_globs_parse(struct mr_site_globs *globs, const char *text,
                                   struct mr_error *error)
{
    char *rest = globs->text, *item;
    size_t size = strlen(text);

    globs->count = 0;
    if (size == 0)
        return MR_OK;
    if (size >= sizeof(globs->text))
        return mr_error_set(error, MR_ELIMIT, "more than %zu bytes of globs",
                            sizeof(globs->text) - 1);
    memcpy(globs->text, text, size + 1);
    while ((item = strsep(&rest, ",")) != NULL) {
        item = trim(item);
        if (item[0] == '\0')
            return mr_error_set(error, MR_EUSAGE, "%.100s: an empty glob", text);
        if (globs->count == MR_SITE_GLOBS_MAX)
            return mr_error_set(error, MR_ELIMIT, "%.100s: more than %d globs", text,
                                MR_SITE_GLOBS_MAX);
        globs->items[globs->count++] = item;
    }
    return MR_OK;
}
